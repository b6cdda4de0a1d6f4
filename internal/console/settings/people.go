package settings

import (
	"slices"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
)

// mostPeople are listed on a page.
const mostPeople = 500

var peopleColumns = []page.Column{{Name: "Who"}, {Name: "Role"}, {Name: "Second factor", Minor: true}, {Name: "Seen", Minor: true}}

// peopleList lists who has a role: of a tenant its own people, of the installation all.
func (ps *Pages) peopleList(v *console.Visit) (console.Answer, error) {
	all, err := ps.Identity.Members(v.Ctx, v.Tenant.ID, "", mostPeople)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "People", Actions: v.Actions(roles.ChangePeople, page.Link{Href: v.Base() + "/people/invite", Text: "Invite a person"}), Lead: "Who signs in here, with which role.", Columns: peopleColumns, Empty: page.Empty{Title: "No people", Text: "Whoever is invited appears here."}}
	for _, p := range all {
		seen := page.Text("never")
		if !p.SeenAt.IsZero() {
			seen = page.Time(p.SeenAt)
		}
		factor := "no"
		if p.HasFactor {
			factor = "yes"
		}
		l.Rows = append(l.Rows, page.Row{Href: v.Base() + "/people/" + p.ID, Cells: []templ.Component{page.Text(p.Email + " (" + p.Name + ")"), page.Text(rolesOf(v, p)), page.Text(factor), seen}})
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// rolesOf are the roles of a person that the page may show: a tenant sees its own alone.
func rolesOf(v *console.Visit, p identity.Listed) string {
	text := ""
	for _, m := range p.Memberships {
		if v.Route.Site == console.Tenants && m.Tenant != v.Tenant.ID {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += string(m.Role)
		if v.Route.Site == console.Operators && m.Tenant != roles.Installation {
			text += " of " + v.NameOf(m.Tenant)
		}
	}
	if !p.DisabledAt.IsZero() {
		text += " (kept out)"
	}
	return text
}

// member finds the person of the page.
func (ps *Pages) member(v *console.Visit) (identity.Listed, error) {
	list, err := ps.Identity.Members(v.Ctx, v.Tenant.ID, v.R.PathValue("person"), 1)
	if err == nil && len(list) == 0 {
		err = console.ErrNoPage()
	}
	if err != nil {
		return identity.Listed{}, err
	}
	return list[0], nil
}

// personPage is one person with what can be asked for about them.
func (ps *Pages) personPage(v *console.Visit) (console.Answer, error) {
	p, err := ps.member(v)
	if err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "E-mail", Value: page.Text(p.Email)}, {Name: "Name", Value: page.Text(p.Name)}, {Name: "Role", Value: page.Text(rolesOf(v, p))},
		{Name: "Password", Value: page.Text(words.OnOff(p.HasPassword))}, {Name: "Second factor", Value: page.Text(words.OnOff(p.HasFactor))}, {Name: "Since", Value: page.Time(p.CreatedAt)}}
	if p.InvitedBy != "" {
		facts = append(facts, page.Fact{Name: "Invited or reset by", Value: page.Text(p.InvitedBy)})
	}
	if p.Sponsor != "" {
		facts = append(facts, page.Fact{Name: "Second person", Value: page.Mark(page.Badge{Tone: page.Bad, Word: "not to who invited or reset them alone"})})
	}
	here := v.Base() + "/people/" + p.ID
	var links []page.Link
	if v.Can(roles.ChangePeople) && p.ID != v.Who.Person.ID {
		links = []page.Link{{Href: here + "/role", Text: "Change the role"}, {Href: here + "/reset", Text: "Reset"}}
		if p.DisabledAt.IsZero() {
			links = append(links, page.Link{Href: here + "/disable", Text: "Keep out"})
		} else {
			links = append(links, page.Link{Href: here + "/enable", Text: "Let in again"})
		}
	}
	return console.Answer{Title: p.Email, Body: personBody(p, facts, links)}, nil
}

// roleOptions are the roles that can be given on the page.
func roleOptions(v *console.Visit, none bool) (options []page.Option) {
	if none {
		options = append(options, page.Option{Value: "none", Text: "no role"})
	}
	sites := []roles.Site{roles.TenantSite}
	if v.Route.Site == console.Operators {
		sites = []roles.Site{roles.InstallationSite, roles.TenantSite}
	}
	for _, s := range sites {
		for _, r := range roles.At(s) {
			if !slices.ContainsFunc(options, func(o page.Option) bool { return o.Value == string(r) }) {
				options = append(options, page.Option{Value: string(r), Text: string(r)})
			}
		}
	}
	return options
}

// place is where a role is given: the tenant of the page, or what the form of an operator says.
func place(v *console.Visit) string {
	if v.Route.Site == console.Tenants {
		return v.Tenant.ID
	}
	return v.Given("tenant", "")
}

// placeFields ask an operator where.
func placeFields(v *console.Visit) []page.Field {
	if v.Route.Site == console.Tenants {
		return nil
	}
	return []page.Field{{Name: "tenant", Label: "Account", Value: v.Given("tenant", ""), Max: 64, Hint: "The id of an account; empty: the installation."}}
}

// ofPerson is the lead of an order about the person of the page.
func (ps *Pages) ofPerson(text string) func(v *console.Visit) (string, error) {
	return func(v *console.Visit) (string, error) {
		p, err := ps.member(v)
		return p.Email + ", " + rolesOf(v, p) + ". " + text, err
	}
}

// askPerson makes an order about the person of the page.
func (ps *Pages) askPerson(ask func(v *console.Visit, id string, p identity.Listed) (changes.Request, error)) func(v *console.Visit, id string) (changes.Request, error) {
	return func(v *console.Visit, id string) (changes.Request, error) {
		p, err := ps.member(v)
		if err != nil {
			return changes.Request{}, err
		}
		return ask(v, id, p)
	}
}

// simply makes an order about a person that says nothing but why.
func (ps *Pages) simply(verb func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error)) func(v *console.Visit, id string) (changes.Request, error) {
	return ps.askPerson(func(v *console.Visit, id string, p identity.Listed) (changes.Request, error) {
		return verb(ps.Approvals.Changes, v, id, p.Email, v.R.PostFormValue("reason"))
	})
}

// peopleOrders are those about people, on both sites.
func (ps *Pages) peopleOrders() []approvals.Form {
	where, role := console.Input{Name: "tenant", Max: 64}, console.Input{Name: "role", Max: 20}
	return []approvals.Form{
		{Path: "/people/invite", Title: "Invite a person", May: roles.ChangePeople, Submit: "Invite", Inputs: []console.Input{{Name: "email", Max: 254}, {Name: "name", Max: 120}, role, where},
			Lead: func(*console.Visit) (string, error) {
				return "Whoever has no password yet gets a link, which is shown once, to you, and a code, which is shown once, to whoever approves this.", nil
			},
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return append([]page.Field{{Name: "email", Label: "E-mail", Value: v.Given("email", ""), Max: 254, Required: true}, {Name: "name", Label: "Name", Value: v.Given("name", ""), Max: 120, Required: true},
					{Name: "role", Label: "Role", Value: v.Given("role", "support"), Options: roleOptions(v, false)}}, placeFields(v)...), nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				value := v.R.PostFormValue
				return ps.Approvals.Changes.Invite(v.Ctx, approvals.By(v), id, value("email"), value("name"), identity.Membership{Tenant: place(v), Role: roles.Role(value("role"))}, value("reason"))
			}},
		{Path: "/people/{person}/role", Title: "Change a role", May: roles.ChangePeople, Submit: "Change the role", Inputs: []console.Input{role, where}, Lead: ps.ofPerson("In force within a second."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return append([]page.Field{{Name: "role", Label: "Role", Value: v.Given("role", "none"), Options: roleOptions(v, true)}}, placeFields(v)...), nil
			},
			Ask: ps.askPerson(func(v *console.Visit, id string, p identity.Listed) (changes.Request, error) {
				m, before := identity.Membership{Tenant: place(v), Role: roles.Role(v.R.PostFormValue("role"))}, roles.Role("")
				if m.Role == "none" {
					m.Role = ""
				}
				for _, has := range p.Memberships {
					if has.Tenant == m.Tenant {
						before = has.Role
					}
				}
				return ps.Approvals.Changes.SetRole(v.Ctx, approvals.By(v), id, p.Email, m, before, v.R.PostFormValue("reason"))
			})},
		{Path: "/people/{person}/disable", Title: "Keep a person out", May: roles.ChangePeople, Submit: "Keep out", Danger: true, Lead: ps.ofPerson("Sessions end within a second."),
			Ask: ps.simply(func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error) {
				return a.Disable(v.Ctx, approvals.By(v), id, email, reason)
			})},
		{Path: "/people/{person}/enable", Title: "Let a person in again", May: roles.ChangePeople, Submit: "Let in again", Lead: ps.ofPerson("With the roles from before."),
			Ask: ps.simply(func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error) {
				return a.Enable(v.Ctx, approvals.By(v), id, email, reason)
			})},
		{Path: "/people/{person}/reset", Title: "Reset a person", May: roles.ChangePeople, Submit: "Reset", Danger: true,
			Lead: ps.ofPerson("Takes password, second factor and recovery codes away; the link for new ones is shown once, to you, its code to whoever approves this. Make sure that you speak with this person."),
			Ask: ps.simply(func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error) {
				return a.Reset(v.Ctx, approvals.By(v), id, email, reason)
			})},
	}
}
