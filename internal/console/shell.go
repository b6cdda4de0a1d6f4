package console

import (
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/tenant"
)

// shell is what stands around the page of a visit.
func (v *visit) shell(title string) page.Shell {
	s := page.Shell{Title: title, Theme: v.theme(), Path: v.query(), Visitor: v.who.Person.Name, Test: v.console.Development || v.tenant.Mode == tenant.Test}
	if s.Visitor == "" {
		s.Path = v.r.URL.Path
		return s
	}
	s.Sites = v.sites()
	if v.route == nil {
		return s
	}
	switch {
	case v.route.Simulator: // a page by itself
	case v.route.Site == operators:
		s.Nav, s.Search = v.nav("/ops", opsNav), "/ops/search"
	case v.route.Site == tenants && v.tenant.ID != "":
		s.Nav, s.Search = v.nav("/app/"+v.tenant.ID, appNav), "/app/"+v.tenant.ID+"/search"
		if v.viewing {
			s.Viewing = v.tenant.Name
		}
	}
	if !v.can(identity.ReadPayments) {
		s.Search = ""
	}
	s.Query = page.Visible(v.param("q"))
	return s
}

// base is where the pages of the visit's site begin.
func (v *visit) base() string {
	if v.route.Site == tenants {
		return "/app/" + v.tenant.ID
	}
	return "/ops"
}

// navItem is one page of a site's navigation.
type navItem struct {
	path, text, key string
	permission      identity.Permission
}

var opsNav = []navItem{
	{"", "Overview", "v", identity.ReadHome},
	{"/payments", "Payments", "p", identity.ReadPayments},
	{"/stuck", "Stuck", "s", identity.ReadPayments},
	{"/messages", "Messages", "m", identity.ReadMessages},
	{"/tenants", "Accounts", "a", identity.ReadTenants},
	{"/acts", "Acts", "t", identity.ReadActs},
	{"/policy", "Policy", "y", identity.ReadActs},
	{"/senders", "Sender IDs", "i", identity.ReviewSenders},
	{"/people", "People", "e", identity.ReadPeople},
	{"/audit", "Audit log", "l", identity.ReadAudit},
	{"/requests", "Requests", "q", identity.ReadRequests},
	{"/providers", "Providers", "r", identity.ReadProviders},
	{"/routes", "Routes", "u", identity.ReadProviders},
	{"/float", "Float", "f", identity.ReadTreasury},
	{"/jobs", "Dead letters", "j", identity.ReadChecks},
	{"/checks", "Checks", "c", identity.ReadChecks},
}

var appNav = []navItem{
	{"", "Home", "e", identity.ReadHome},
	{"/collections", "Collections", "c", identity.ReadPayments},
	{"/payouts", "Payouts", "p", identity.ReadPayments},
	{"/payouts/new", "New payout", "n", identity.MakePayouts},
	{"/airtime", "Airtime", "a", identity.ReadPayments},
	{"/data", "Data packages", "d", identity.ReadPayments},
	{"/messages", "Messages", "m", identity.ReadMessages},
	{"/acts", "Acts", "t", identity.ReadActs},
	{"/policy", "Policy", "y", identity.ReadActs},
	{"/requests", "Requests", "q", identity.ReadRequests},
	{"/access", "Keys and settings", "k", identity.ReadAccess},
	{"/people", "People", "l", identity.ReadPeople},
}

// nav is the navigation of a site, as far as the visitor's role goes.
func (v *visit) nav(base string, items []navItem) []page.Link {
	var links []page.Link
	current := "" // the item that is nearest to this page
	for _, i := range items {
		if v.r.URL.Path == base+i.path || i.path != "" && v.under(base+i.path) && len(i.path) > len(current) {
			current = i.path
		}
	}
	for _, i := range items {
		if v.can(i.permission) {
			here := i.path == current && (current != "" || v.r.URL.Path == base)
			links = append(links, page.Link{Href: base + i.path, Text: i.text, Key: i.key, Current: here})
		}
	}
	return links
}

// under says whether this page is the one at a path, or under it.
func (v *visit) under(path string) bool {
	here := v.r.URL.Path
	return here == path || len(here) > len(path) && here[:len(path)+1] == path+"/"
}

// sites are the parts of the console that a visitor has.
func (v *visit) sites() []page.Link {
	var links []page.Link
	if v.who.Operator() {
		links = append(links, page.Link{Href: "/ops", Text: "Operator", Key: "o", Current: v.route != nil && v.route.Site == operators && !v.under("/sim")})
	}
	for _, m := range v.who.Memberships {
		if m.Tenant == identity.Installation || len(links) > 5 {
			continue
		}
		if t, err := v.console.Tenants.Get(v.ctx, m.Tenant); err == nil { // a name that cannot be read now is left out
			links = append(links, page.Link{Href: "/app/" + t.ID, Text: t.Name, Current: v.tenant.ID == t.ID})
		}
	}
	if v.tenant.ID != "" && v.viewing {
		links = append(links, page.Link{Href: "/app/" + v.tenant.ID, Text: v.tenant.Name, Current: true})
	}
	if v.console.Development && v.who.Can(identity.Installation, identity.UseSimulator) {
		links = append(links, page.Link{Href: "/sim", Text: "Handsets", Key: "h", Current: v.under("/sim")})
	}
	return links
}
