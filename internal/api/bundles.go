package api

import (
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
)

// offers lists the packages that a network offers to a number now.
func offers(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	unknown := problem.New(problem.NotFound, "service_not_found", "Data service not found")
	service, err := f.id("service_id", unknown)
	number := f.phone("phone_number")
	if bad := f.err(); bad != nil {
		return bad
	}
	if err != nil {
		return err
	}
	all, holder, err := c.api.Lookups.Offers(c.ctx, c.caller.Tenant, service, number)
	if err != nil {
		return err
	}
	w := c.success("Packages fetched successfully")
	w.Object("data")
	w.Object("packages")
	w.List("data")
	for _, o := range all {
		w.Object("")
		w.Text("id", o.ID)
		w.Text("Display", o.Display)
		w.Text("Value", o.Value)
		w.Amount("Amount", o.Amount)
		w.End()
	}
	w.End()
	w.End()
	w.Object("user")
	w.Text("name", holder)
	w.End()
	w.End()
	w.End()
	return nil
}

// buyBundle pays for a package from the wallet.
func buyBundle(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	f.choice("type", true, "e_wallet")
	in := payments.BuyBundle{
		MSISDN:    f.phone("phone_number"),
		ServiceID: f.ours("service_id"),
		OfferID:   f.ours("package_id"),
		Network:   f.network("network", true),
		Name:      f.label("name"),
		Reference: f.reference("client_reference", false),
	}
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	p, replayed, err := c.api.Payments.BuyBundle(c.ctx, who, in)
	c.replayed(replayed) // the error may also repeat an earlier refusal
	if err != nil {
		return err
	}
	w := c.success("Data bundle purchased successfully")
	w.Object("data")
	w.Object("payment")
	w.Amount("amount", p.Amount)
	w.Text("status", "success") // the wallet has paid, whatever the outcome of the purchase is
	w.Text("ext_transaction_id", p.ProviderReference)
	w.End()
	w.Object("data_bundle")
	w.Text("status", p.PublicStatus())
	w.Text("display", p.Details.Display)
	w.Text("phone_number", p.MSISDN().International())
	w.End()
	w.End()
	w.End()
	return nil
}

// bundleStatus returns the status of a data package.
func bundleStatus(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	unknown := problem.New(problem.NotFound, "bundle_not_found", "Data bundle transaction not found")
	id, err := f.called("ext_transaction_id", unknown)
	if err == nil {
		err = f.err()
	}
	if err != nil {
		return err
	}
	p, err := c.api.Payments.StatusBundle(c.ctx, c.caller.Tenant, id)
	if err != nil {
		return err
	}
	w := c.fetched(p)
	w.Object("data")
	w.Text("status", p.PublicStatus())
	w.Text("ext_transaction_id", p.ProviderReference)
	if p.Details.Generated { // the client sent no reference
		w.Null("client_reference")
	} else {
		w.Text("client_reference", p.Reference)
	}
	w.Amount("amount", p.Amount)
	w.Text("phone_number", p.MSISDN().International())
	w.Text("service_id", p.Details.ServiceID)
	w.Text("display", p.Details.Display)
	w.Text("value", p.Details.Value)
	w.reason(p)
	w.End()
	w.End()
	return nil
}
