package api

import (
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/webhook"
)

// sendAirtime tops up a number from the wallet.
func sendAirtime(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := payments.TopUp{
		MSISDN:      f.phone("phone_number"),
		Amount:      f.amount("amount", payments.MinTopUp, payments.MaxTopUp),
		NetworkID:   f.ours("network_id"),
		Reference:   f.reference("transaction_id", true),
		CallbackURL: f.url("callback_url", webhook.CheckURL),
	}
	who := c.asker(f)
	unlisted(c.ctx, f, "network_id", in.NetworkID, "networks", c.api.Routes.Network)
	if err := f.err(); err != nil {
		return err
	}
	p, replayed, err := c.api.Payments.TopUp(c.ctx, who, in)
	c.replayed(replayed) // the error may also repeat an earlier refusal
	if err != nil {
		return err
	}
	w := c.success("Airtime sent successfully")
	w.Object("data")
	w.Text("transaction_id", p.Reference)
	w.Text("ext_transaction_id", p.ProviderReference)
	w.Text("status", p.PublicStatus())
	w.End()
	w.End()
	return nil
}

// buyAirtime tops up a number after a mobile money wallet has paid.
func buyAirtime(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	f.choice("type", true, typeMoMo)
	in := payments.AirtimeBuy{
		Destination: f.phone("destination"),
		Payer:       f.phone("phoneNumber"),
		Network:     f.network("network", true),
		Amount:      f.amount("amount", payments.MinTopUp, payments.MaxAirtimeBuy),
		NetworkID:   f.ours("network_id"),
		Name:        f.label("name"),
		Reference:   f.wanted("transaction_id"),
		CallbackURL: f.url("callback_url", webhook.CheckURL),
	}
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	payment, topUp, replayed, err := c.api.Payments.AirtimeBuy(c.ctx, who, in)
	c.replayed(replayed) // the error may also repeat an earlier refusal
	if err != nil {
		return err
	}
	w := c.success("Payment Initiated Successful")
	w.Object("data")
	w.Object("payment")
	w.record(payment)
	w.End()
	w.Object("airtime")
	w.Cedis("amount", topUp.Amount)
	w.Text("phone_number", topUp.MSISDN().Local())
	w.Text("status", topUp.PublicStatus())
	w.End()
	w.End()
	w.End()
	return nil
}

// airtimeStatus returns the status of a top-up.
func airtimeStatus(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	unknown := problem.New(problem.NotFound, "airtime_not_found", "Airtime transaction not found")
	id, err := f.called("transaction_id", unknown)
	if err == nil {
		err = f.err()
	}
	if err != nil {
		return err
	}
	p, err := c.api.Payments.StatusTopUp(c.ctx, c.caller.Tenant, id)
	if err != nil {
		return err
	}
	w := c.fetched(p)
	w.Object("data")
	w.Text("status", p.PublicStatus())
	w.Text("transaction_id", p.Reference)
	w.Text("ext_transaction_id", p.ProviderReference)
	w.Amount("amount", p.Amount)
	w.Text("phone_number", p.MSISDN().Local())
	w.Text("network_id", p.Details.NetworkID)
	w.reason(p)
	w.End()
	w.End()
	return nil
}
