package api

// unlistedShown is the maximum number of refused addresses in a response.
const unlistedShown = 50

// addresses lists the addresses from which payouts are accepted, and the addresses that were refused lately. Only
// people can change the list, on the page that the response names.
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

// ownPage returns the URL of a page of the account, for changes that people may make and keys may not.
func (c *call) ownPage(name string) string {
	return c.api.PublicURL + "/app/" + c.caller.Tenant + "/" + name
}
