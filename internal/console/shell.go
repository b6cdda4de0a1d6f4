package console

import (
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// shell is what stands around the page of a visit.
func (v *Visit) shell(title string) page.Shell {
	s := page.Shell{Title: title, Theme: v.theme(), Path: v.Query(), Visitor: v.Who.Person.Name, Test: v.console.Development || v.Tenant.Mode == tenant.Test}
	if s.Visitor == "" {
		s.Path = v.R.URL.Path
		return s
	}
	s.Sites = v.sites()
	if v.Route == nil {
		return s
	}
	switch {
	case v.Route.Alone: // a page by itself
	case v.Route.Site == Operators:
		s.Nav, s.Search = v.nav("/ops", opsNav), "/ops/search"
	case v.Route.Site == Tenants && v.Tenant.ID != "":
		s.Nav, s.Search = v.nav("/app/"+v.Tenant.ID, appNav), "/app/"+v.Tenant.ID+"/search"
		if v.Viewing {
			s.Viewing = v.Tenant.Name
		}
	}
	if !v.Can(roles.ReadPayments) {
		s.Search = ""
	}
	s.Query = page.Visible(v.R.URL.Query().Get("q"))
	return s
}

// Base is where the pages of the visit's site begin.
func (v *Visit) Base() string {
	if v.Route.Site == Tenants {
		return "/app/" + v.Tenant.ID
	}
	return "/ops"
}

// navItem is one page of a site's navigation.
type navItem struct {
	path, text, key string
	permission      roles.Permission
}

var opsNav = []navItem{
	{"", "Overview", "v", roles.ReadHome},
	{"/payments", "Payments", "p", roles.ReadPayments},
	{"/stuck", "Stuck", "s", roles.ReadPayments},
	{"/messages", "Messages", "m", roles.ReadMessages},
	{"/tenants", "Accounts", "a", roles.ReadTenants},
	{"/acts", "Acts", "t", roles.ReadChanges},
	{"/policy", "Policy", "y", roles.ReadChanges},
	{"/senders", "Sender IDs", "i", roles.ReviewSenders},
	{"/people", "People", "e", roles.ReadPeople},
	{"/audit", "Audit log", "l", roles.ReadAudit},
	{"/requests", "Requests", "q", roles.ReadRequests},
	{"/providers", "Providers", "r", roles.ReadProviders},
	{"/routes", "Routes", "u", roles.ReadProviders},
	{"/float", "Float", "f", roles.ReadTreasury},
	{"/jobs", "Dead letters", "j", roles.ReadChecks},
	{"/checks", "Checks", "c", roles.ReadChecks},
}

var appNav = []navItem{
	{"", "Home", "e", roles.ReadHome},
	{"/collections", "Collections", "c", roles.ReadPayments},
	{"/payouts", "Payouts", "p", roles.ReadPayments},
	{"/payouts/new", "New payout", "n", roles.RequestPayouts},
	{"/airtime", "Airtime", "a", roles.ReadPayments},
	{"/data", "Data packages", "d", roles.ReadPayments},
	{"/statement", "Statement", "s", roles.ReadBalances},
	{"/fees", "Fees", "g", roles.ReadBalances},
	{"/messages", "Messages", "m", roles.ReadMessages},
	{"/acts", "Acts", "t", roles.ReadChanges},
	{"/policy", "Policy", "y", roles.ReadChanges},
	{"/requests", "Requests", "q", roles.ReadRequests},
	{"/access", "Keys and settings", "k", roles.ReadAccess},
	{"/people", "People", "l", roles.ReadPeople},
}

// nav is the navigation of a site, as far as the visitor's role goes.
func (v *Visit) nav(base string, items []navItem) []page.Link {
	var links []page.Link
	current := "" // the item that is nearest to this page
	for _, i := range items {
		if v.R.URL.Path == base+i.path || i.path != "" && v.under(base+i.path) && len(i.path) > len(current) {
			current = i.path
		}
	}
	for _, i := range items {
		if v.Can(i.permission) {
			here := i.path == current && (current != "" || v.R.URL.Path == base)
			links = append(links, page.Link{Href: base + i.path, Text: i.text, Key: i.key, Current: here})
		}
	}
	return links
}

// under says whether this page is the one at a path, or under it.
func (v *Visit) under(path string) bool {
	here := v.R.URL.Path
	return here == path || len(here) > len(path) && here[:len(path)+1] == path+"/"
}

// sites are the parts of the console that a visitor has.
func (v *Visit) sites() []page.Link {
	var links []page.Link
	if v.Who.Operator() {
		links = append(links, page.Link{Href: "/ops", Text: "Operator", Key: "o", Current: v.Route != nil && v.Route.Site == Operators && !v.under("/sim")})
	}
	for _, m := range v.Who.Memberships {
		if m.Tenant == roles.Installation || len(links) > 5 {
			continue
		}
		if t, err := v.console.Tenants.Get(v.Ctx, m.Tenant); err == nil { // a name that cannot be read now is left out
			links = append(links, page.Link{Href: "/app/" + t.ID, Text: t.Name, Current: v.Tenant.ID == t.ID})
		}
	}
	if v.Tenant.ID != "" && v.Viewing {
		links = append(links, page.Link{Href: "/app/" + v.Tenant.ID, Text: v.Tenant.Name, Current: true})
	}
	if v.console.Development && v.Who.Can(roles.Installation, roles.UseSimulator) {
		links = append(links, page.Link{Href: "/sim", Text: "Handsets", Key: "h", Current: v.under("/sim")})
	}
	return links
}

// theme is what the browser wants; empty: as its system says.
func (v *Visit) theme() string {
	cookie, err := v.R.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}
