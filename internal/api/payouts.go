package api

import (
	"cmp"

	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/webhook"
)

// payoutToWallet pays out to a mobile money wallet.
func payoutToWallet(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := payments.Payout{
		Amount:      f.amount("amount", payments.MinPayout, c.tenant.PayoutLimitWallet),
		MSISDN:      f.phone("account_number"),
		Name:        f.label("account_name"),
		Network:     f.network("channel", true),
		Reference:   f.reference("client_reference", true),
		CallbackURL: f.url("callback_url", webhook.CheckURL),
		AccountType: f.choice("carriermomo_account_type", false, "subscriber", "agent"),
		Gone:        c.r.Context().Done(),
		Requester:   payments.Requester{Origin: c.origin()},
	}
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	return c.sent(c.api.Payments.Payout(c.ctx, who, in))
}

// payoutToBank pays out to a bank account.
func payoutToBank(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := payments.Payout{
		Amount:        f.amount("amount", payments.MinPayout, c.tenant.PayoutLimitBank),
		AccountNumber: f.account("account_number"),
		BankID:        f.ours("bank_id"),
		Name:          f.label("account_name"),
		Reference:     f.reference("client_reference", true),
		CallbackURL:   f.url("callback_url", webhook.CheckURL),
		Gone:          c.r.Context().Done(),
		Requester:     payments.Requester{Origin: c.origin()},
	}
	who := c.asker(f)
	unlisted(c.ctx, f, "bank_id", in.BankID, "banks", c.api.Routes.Bank)
	if err := f.err(); err != nil {
		return err
	}
	return c.sent(c.api.Payments.Payout(c.ctx, who, in))
}

// refund returns a collection to its payer.
func refund(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	of, unknown := f.called("transaction_id", problem.New(problem.NotFound, "payment_not_found", "Payment not found"))
	in := payments.Refund{
		Collection:  of,
		Reference:   f.reference("client_reference", true),
		Reason:      f.label("reason"),
		CallbackURL: f.url("callback_url", webhook.CheckURL),
		Gone:        c.r.Context().Done(),
		Requester:   payments.Requester{Origin: c.origin()},
	}
	if f.given("amount") {
		in.Amount = f.amount("amount", payments.MinRefund, payments.MaxCollection)
	}
	who := c.asker(f)
	if err := cmp.Or(f.err(), unknown); err != nil {
		return err
	}
	return c.sent(c.api.Payments.Refund(c.ctx, who, in))
}

// sent writes the response to a payout.
func (c *call) sent(p book.Payment, replayed bool, err error) error {
	c.replayed(replayed) // the error may also repeat an earlier refusal
	if err != nil {
		return err
	}
	w := c.success("Sent Successfully")
	w.Object("data")
	w.payout(p)
	w.End()
	w.End()
	return nil
}
