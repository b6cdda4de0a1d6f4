package api

// unlistedShown is how many refused addresses an answer has.
const unlistedShown = 50

// addresses says from where payouts are taken, and from which other addresses they were refused of late. The list is changed by
// people alone, on the page that is named.
func addresses(c *call) error {
	w := c.success("Addresses fetched successfully")
	w.object("data")
	if err := c.writeAddresses(w); err != nil {
		return err
	}
	refused, err := c.api.Requests.Unlisted(c.ctx, c.caller.Tenant, unlistedShown)
	if err != nil {
		return err
	}
	w.list("refused")
	for _, r := range refused {
		w.object("")
		w.text("address", r.Origin)
		w.text("endpoint", r.Endpoint)
		w.text("key_id", r.Key)
		w.text("request_id", r.RequestID)
		w.time("created_at", r.At)
		w.end()
	}
	w.end()
	w.text("page", c.ownPage("addresses"))
	w.end()
	w.end()
	return nil
}

// ownPage is where the account's own people do what no key may.
func (c *call) ownPage(name string) string {
	return c.api.PublicURL + "/app/" + c.caller.Tenant + "/" + name
}
