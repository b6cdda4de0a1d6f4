package api

// unlistedShown is how many refused addresses an answer has.
const unlistedShown = 50

// addresses lists the addresses from which payouts are accepted, and other addresses that were refused lately. Only
// people change the list, on the page that the answer names.
func addresses(c *call) error {
	w := c.success("Addresses fetched successfully")
	w.Object("data")
	if err := c.writeAddresses(w); err != nil {
		return err
	}
	refused, err := c.api.Requests.Unlisted(c.ctx, c.caller.Tenant, unlistedShown)
	if err != nil {
		return err
	}
	w.List("refused")
	for _, r := range refused {
		w.Object("")
		w.Text("address", r.Origin)
		w.Text("endpoint", r.Endpoint)
		w.Text("key_id", r.Key)
		w.Text("request_id", r.RequestID)
		w.Time("created_at", r.At)
		w.End()
	}
	w.End()
	w.Text("page", c.ownPage("addresses"))
	w.End()
	w.End()
	return nil
}

// ownPage returns the page on which the account's own people make changes that no key may make.
func (c *call) ownPage(name string) string {
	return c.api.PublicURL + "/app/" + c.caller.Tenant + "/" + name
}
