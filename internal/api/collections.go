package api

import (
	"cmp"

	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/webhook"
)

// collect requests money from a payer.
func collect(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := payments.Collect{
		Amount:      f.amount("amount", payments.MinCollection, payments.MaxCollection),
		MSISDN:      f.phone("phone_number"),
		Network:     f.network("network", true),
		Reference:   f.reference("transaction_id", true),
		Label:       f.label("reference"),
		CallbackURL: f.url("callback_url", webhook.CheckURL),
	}
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	p, replayed, err := c.api.Payments.Collect(c.ctx, who, in)
	c.replayed(replayed) // the error may also repeat an earlier refusal
	if err != nil {
		return err
	}
	w := c.success("Payment Initiated Successful")
	w.Object("data")
	w.record(p)
	w.End()
	w.End()
	return nil
}

// voucher completes a collection with the voucher of its payer.
func voucher(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	of, unknown := f.called("transaction_id", problem.New(problem.NotFound, "payment_not_found", "Payment not found"))
	code := f.oneTimeCode("code")
	if err := cmp.Or(f.err(), unknown); err != nil {
		return err
	}
	p, err := c.api.Payments.Voucher(c.ctx, c.caller.Tenant, of, code)
	if err != nil {
		return err
	}
	w := c.success("Voucher Sent Successfully")
	w.Object("data")
	w.Text("status", polled(p))
	w.Text("transaction_id", p.Reference)
	w.Text("ext_transaction_id", p.ProviderReference)
	w.End()
	w.End()
	return nil
}

// paymentStatus returns the status of a collection or payout.
func paymentStatus(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	unknown := problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	id, err := f.called("transaction_id", unknown)
	if err == nil {
		err = f.err()
	}
	if err != nil {
		return err
	}
	p, err := c.api.Payments.Status(c.ctx, c.caller.Tenant, id)
	if err != nil {
		return err
	}
	w := c.fetched(p)
	w.Object("data")
	w.Text("status", polled(p))
	w.Text("transaction_id", p.Reference)
	w.Text("ext_transaction_id", p.ProviderReference)
	w.Amount("amount", p.Amount)
	w.Text("type", paymentType(p.Kind))
	w.refundOf(p)
	w.reason(p)
	w.End()
	w.End()
	return nil
}
