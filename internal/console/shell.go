package console

import (
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// shell returns the frame around a page.
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
	case v.Route.Alone:
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

// Base returns the prefix of the pages of the site.
func (v *Visit) Base() string {
	if v.Route.Site == Tenants {
		return "/app/" + v.Tenant.ID
	}
	return "/ops"
}

// navItem is one page of a site's navigation, in a group by job.
type navItem struct {
	group           string
	path, text, key string
	permission      roles.Permission
}

// The groups of pages by job, in the order of the navigation.
const (
	today    = "Today"
	payment  = "Payments"
	funds    = "Money"
	messages = "Messages"
	accounts = "Accounts"
	settings = "Settings"
	system   = "System"
)

var opsNav = []navItem{
	{today, "", "Overview", "v", roles.ReadHome},
	{today, "/stuck", "Needs attention", "s", roles.ReadPayments},
	{today, "/acts", "Approvals", "t", roles.ReadChanges},
	{payment, "/payments", "Payments", "p", roles.ReadPayments},
	{funds, "/float", "Float", "f", roles.ReadTreasury},
	{funds, "/funds", "Customer funds", "k", roles.ReadTreasury},
	{funds, "/days", "Days", "w", roles.ReadTreasury},
	{funds, "/journal", "Journal", "g", roles.ReadTreasury},
	{funds, "/banks", "Bank accounts", "b", roles.ReadTreasury},
	{funds, "/statements", "Statements", "n", roles.ReadStatements},
	{funds, "/exceptions", "Exceptions", "x", roles.ReadStatements},
	{messages, "/messages", "Messages", "m", roles.ReadMessages},
	{messages, "/incoming", "Incoming texts", "1", roles.ReadMessages},
	{messages, "/senders", "Sender IDs", "i", roles.ReviewSenders},
	{accounts, "/tenants", "Accounts", "a", roles.ReadTenants},
	{accounts, "/people", "People", "e", roles.ReadPeople},
	{settings, "/policy", "Approval policy", "y", roles.ReadChanges},
	{settings, "/routes", "Routes", "u", roles.ReadProviders},
	{settings, "/fees", "Default fees", "d", roles.ChangeTenants},
	{system, "/providers", "Providers", "r", roles.ReadProviders},
	{system, "/notices", "Notices", "z", roles.ReadChecks},
	{system, "/checks", "Ledger checks", "c", roles.ReadChecks},
	{system, "/jobs", "Failed jobs", "j", roles.ReadChecks},
	{system, "/requests", "Failed requests", "q", roles.ReadRequests},
	{system, "/audit", "Audit log", "l", roles.ReadAudit},
}

var appNav = []navItem{
	{today, "", "Home", "e", roles.ReadHome},
	{today, "/acts", "Approvals", "t", roles.ReadChanges},
	{payment, "/collections", "Collections", "c", roles.ReadPayments},
	{payment, "/payouts", "Payouts", "p", roles.ReadPayments},
	{payment, "/payouts/new", "New payout", "n", roles.RequestPayouts},
	{payment, "/batches", "Batches", "b", roles.ReadPayments},
	{payment, "/airtime", "Airtime", "a", roles.ReadPayments},
	{payment, "/data", "Data packages", "d", roles.ReadPayments},
	{funds, "/statement", "Statement", "s", roles.ReadBalances},
	{funds, "/fees", "Fees", "g", roles.ReadBalances},
	{messages, "/messages", "Messages", "m", roles.ReadMessages},
	{messages, "/incoming", "Incoming texts", "i", roles.ReadMessages},
	{messages, "/opt-outs", "Opt-outs", "u", roles.ReadMessages},
	{settings, "/access", "Keys and settings", "k", roles.ReadAccess},
	{settings, "/people", "People", "l", roles.ReadPeople},
	{settings, "/policy", "Approval policy", "y", roles.ReadChanges},
	{system, "/webhooks", "Webhooks", "w", roles.ReadWebhooks},
	{system, "/requests", "Failed requests", "q", roles.ReadRequests},
}

// nav returns the navigation of a site, as far as the visitor's role allows.
func (v *Visit) nav(base string, items []navItem) (groups []page.Group) {
	current := "" // the item that is nearest to this page
	for _, i := range items {
		if v.R.URL.Path == base+i.path || i.path != "" && v.under(base+i.path) && len(i.path) > len(current) {
			current = i.path
		}
	}
	for _, i := range items {
		if !v.Can(i.permission) {
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].Title != i.group {
			groups = append(groups, page.Group{Title: i.group})
		}
		here := i.path == current && (current != "" || v.R.URL.Path == base)
		g := &groups[len(groups)-1]
		g.Links = append(g.Links, page.Link{Href: base + i.path, Text: i.text, Key: i.key, Current: here, Waiting: v.waiting[i.path]})
	}
	return groups
}

// count reads how many items await the visitor on each page of the site. If a count cannot be read it is left out,
// because the page itself is more important.
func (v *Visit) count() {
	if v.console.Waiting == nil || v.Route.Alone || v.Viewing || v.Route.Site != Operators && v.Route.Site != Tenants {
		return
	}
	counts, err := v.console.Waiting(Place{Ctx: v.Ctx, Tenant: v.Tenant.ID, Person: v.Who.Person.ID, Can: v.Can})
	if err != nil {
		v.console.Log.Warn("failed to count waiting things", "request_id", v.id, "path", v.path(), "error", err)
		return
	}
	v.waiting = counts
}

// under reports whether this page is at a path, or below it.
func (v *Visit) under(path string) bool {
	here := v.R.URL.Path
	return here == path || len(here) > len(path) && here[:len(path)+1] == path+"/"
}

// sites returns the sites of the visitor.
func (v *Visit) sites() []page.Link {
	var links []page.Link
	if v.Who.Operator() {
		links = append(links, page.Link{Href: "/ops", Text: "Operator", Key: "o", Current: v.Route != nil && v.Route.Site == Operators && !v.under("/sim")})
	}
	for _, m := range v.Who.Memberships {
		if m.Tenant == roles.Installation || len(links) > 5 {
			continue
		}
		if t, err := v.console.Tenants.Get(v.Ctx, m.Tenant); err == nil { // a tenant whose name cannot be read now is left out
			links = append(links, page.Link{Href: "/app/" + t.ID, Text: t.Name, Current: v.Tenant.ID == t.ID})
		}
	}
	if v.Tenant.ID != "" && v.Viewing {
		links = append(links, page.Link{Href: "/app/" + v.Tenant.ID, Text: v.Tenant.Name, Current: true})
	}
	if v.console.Development && v.Who.Can(roles.Installation, roles.UseSimulator) {
		links = append(links, page.Link{Href: "/sim", Text: "Test phones", Key: "h", Current: v.under("/sim")})
	}
	return links
}

// theme returns the theme of the browser. It is empty for the theme of its system.
func (v *Visit) theme() string {
	cookie, err := v.R.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}
