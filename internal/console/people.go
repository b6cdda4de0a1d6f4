package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
)

// mostPeople are listed on a page.
const mostPeople = 500

// site is the site of identity that the page belongs to.
func (v *visit) site() identity.Site { return identity.SiteOf(v.tenant.ID) }

var peopleColumns = []page.Column{{Name: "Who"}, {Name: "Role"}, {Name: "Second factor", Minor: true}, {Name: "Seen", Minor: true}}

// peopleList lists who has a role: of a tenant its own people, of the installation all.
func peopleList(v *visit) (answer, error) {
	all, err := v.console.Identity.Members(v.ctx, v.tenant.ID, "", mostPeople)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "People", Actions: v.actions(identity.MakePeople, page.Link{Href: v.base() + "/people/invite", Text: "Invite a person"}), Lead: "Who signs in here, with which role.", Columns: peopleColumns, Empty: page.Empty{Title: "No people", Text: "Whoever is invited appears here."}}
	for _, p := range all {
		seen := page.Text("never")
		if !p.SeenAt.IsZero() {
			seen = page.Time(p.SeenAt)
		}
		factor := "no"
		if p.HasFactor {
			factor = "yes"
		}
		l.Rows = append(l.Rows, page.Row{Href: v.base() + "/people/" + p.ID, Cells: []templ.Component{page.Text(p.Email + " (" + p.Name + ")"), page.Text(v.rolesOf(p)), page.Text(factor), seen}})
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// rolesOf are the roles of a person that the page may show: a tenant sees its own alone.
func (v *visit) rolesOf(p identity.Listed) string {
	text := ""
	for _, m := range p.Memberships {
		if v.route.Site == tenants && m.Tenant != v.tenant.ID {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += string(m.Role)
		if v.route.Site == operators && m.Tenant != identity.Installation {
			text += " of " + v.nameOf(m.Tenant)
		}
	}
	if !p.DisabledAt.IsZero() {
		text += " (kept out)"
	}
	return text
}

// member finds the person of the page.
func (v *visit) member() (identity.Listed, error) {
	list, err := v.console.Identity.Members(v.ctx, v.tenant.ID, v.r.PathValue("person"), 1)
	if err == nil && len(list) == 0 {
		err = errNoPage()
	}
	if err != nil {
		return identity.Listed{}, err
	}
	return list[0], nil
}

// personPage is one person with what can be asked for about them.
func personPage(v *visit) (answer, error) {
	p, err := v.member()
	if err != nil {
		return answer{}, err
	}
	facts := []page.Fact{{Name: "E-mail", Value: page.Text(p.Email)}, {Name: "Name", Value: page.Text(p.Name)}, {Name: "Role", Value: page.Text(v.rolesOf(p))},
		{Name: "Password", Value: page.Text(onOff(p.HasPassword))}, {Name: "Second factor", Value: page.Text(onOff(p.HasFactor))}, {Name: "Since", Value: page.Time(p.CreatedAt)}}
	if p.InvitedBy != "" {
		facts = append(facts, page.Fact{Name: "Invited or reset by", Value: page.Text(p.InvitedBy)})
	}
	if p.Sponsor != "" {
		facts = append(facts, page.Fact{Name: "Second person", Value: page.Mark(page.Badge{Tone: page.Bad, Word: "not to who invited or reset them alone"})})
	}
	here := v.base() + "/people/" + p.ID
	var links []page.Link
	if v.can(identity.MakePeople) && p.ID != v.who.Person.ID {
		links = []page.Link{{Href: here + "/role", Text: "Change the role"}, {Href: here + "/reset", Text: "Reset"}}
		if p.DisabledAt.IsZero() {
			links = append(links, page.Link{Href: here + "/disable", Text: "Keep out"})
		} else {
			links = append(links, page.Link{Href: here + "/enable", Text: "Let in again"})
		}
	}
	return answer{title: p.Email, body: personBody(p, facts, links)}, nil
}

// roleOptions are the roles that can be given on the page.
func (v *visit) roleOptions(none bool) (options []page.Option) {
	if none {
		options = append(options, page.Option{Value: "none", Text: "no role"})
	}
	sites := []identity.Site{identity.TenantSite}
	if v.route.Site == operators {
		sites = []identity.Site{identity.InstallationSite, identity.TenantSite}
	}
	for _, s := range sites {
		for _, r := range identity.Roles(s) {
			if !slices.ContainsFunc(options, func(o page.Option) bool { return o.Value == string(r) }) {
				options = append(options, page.Option{Value: string(r), Text: string(r)})
			}
		}
	}
	return options
}

// place is where a role is given: the tenant of the page, or what the form of an operator says.
func (v *visit) place() string {
	if v.route.Site == tenants {
		return v.tenant.ID
	}
	return v.given("tenant", "")
}

// placeFields ask an operator where.
func (v *visit) placeFields() []page.Field {
	if v.route.Site == tenants {
		return nil
	}
	return []page.Field{{Name: "tenant", Label: "Account", Value: v.given("tenant", ""), Max: 64, Hint: "The id of an account; empty: the installation."}}
}

// ofPerson is the lead of an order about the person of the page.
func ofPerson(text string) func(v *visit) (string, error) {
	return func(v *visit) (string, error) {
		p, err := v.member()
		return p.Email + ", " + v.rolesOf(p) + ". " + text, err
	}
}

// askPerson makes an order about the person of the page.
func askPerson(ask func(v *visit, id string, p identity.Listed) (changes.Request, error)) func(v *visit, id string) (changes.Request, error) {
	return func(v *visit, id string) (changes.Request, error) {
		p, err := v.member()
		if err != nil {
			return changes.Request{}, err
		}
		return ask(v, id, p)
	}
}

// simply makes an order about a person that says nothing but why.
func simply(verb func(a *changes.Changes, v *visit, id, email, reason string) (changes.Request, error)) func(v *visit, id string) (changes.Request, error) {
	return askPerson(func(v *visit, id string, p identity.Listed) (changes.Request, error) {
		return verb(v.console.Changes, v, id, p.Email, v.r.PostFormValue("reason"))
	})
}

// peopleOrders are those about people, on both sites.
func peopleOrders() []asking {
	where, role := Input{"tenant", 64}, Input{"role", 20}
	return []asking{
		{path: "/people/invite", title: "Invite a person", may: identity.MakePeople, submit: "Invite", inputs: []Input{{"email", 254}, {"name", 120}, role, where},
			lead: func(*visit) (string, error) {
				return "Whoever has no password yet gets a link, which is shown once, to you, and a code, which is shown once, to whoever approves this.", nil
			},
			fields: func(v *visit) ([]page.Field, error) {
				return append([]page.Field{{Name: "email", Label: "E-mail", Value: v.given("email", ""), Max: 254, Required: true}, {Name: "name", Label: "Name", Value: v.given("name", ""), Max: 120, Required: true},
					{Name: "role", Label: "Role", Value: v.given("role", "support"), Options: v.roleOptions(false)}}, v.placeFields()...), nil
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				value := v.r.PostFormValue
				return v.console.Changes.Invite(v.ctx, v.by(), id, value("email"), value("name"), identity.Membership{Tenant: v.place(), Role: identity.Role(value("role"))}, value("reason"))
			}},
		{path: "/people/{person}/role", title: "Change a role", may: identity.MakePeople, submit: "Change the role", inputs: []Input{role, where}, lead: ofPerson("In force within a second."),
			fields: func(v *visit) ([]page.Field, error) {
				return append([]page.Field{{Name: "role", Label: "Role", Value: v.given("role", "none"), Options: v.roleOptions(true)}}, v.placeFields()...), nil
			},
			ask: askPerson(func(v *visit, id string, p identity.Listed) (changes.Request, error) {
				m, before := identity.Membership{Tenant: v.place(), Role: identity.Role(v.r.PostFormValue("role"))}, identity.Role("")
				if m.Role == "none" {
					m.Role = ""
				}
				for _, has := range p.Memberships {
					if has.Tenant == m.Tenant {
						before = has.Role
					}
				}
				return v.console.Changes.SetRole(v.ctx, v.by(), id, p.Email, m, before, v.r.PostFormValue("reason"))
			})},
		{path: "/people/{person}/disable", title: "Keep a person out", may: identity.MakePeople, submit: "Keep out", danger: true, lead: ofPerson("Sessions end within a second."),
			ask: simply(func(a *changes.Changes, v *visit, id, email, reason string) (changes.Request, error) {
				return a.Disable(v.ctx, v.by(), id, email, reason)
			})},
		{path: "/people/{person}/enable", title: "Let a person in again", may: identity.MakePeople, submit: "Let in again", lead: ofPerson("With the roles from before."),
			ask: simply(func(a *changes.Changes, v *visit, id, email, reason string) (changes.Request, error) {
				return a.Enable(v.ctx, v.by(), id, email, reason)
			})},
		{path: "/people/{person}/reset", title: "Reset a person", may: identity.MakePeople, submit: "Reset", danger: true,
			lead: ofPerson("Takes password, second factor and recovery codes away; the link for new ones is shown once, to you, its code to whoever approves this. Make sure that you speak with this person."),
			ask: simply(func(a *changes.Changes, v *visit, id, email, reason string) (changes.Request, error) {
				return a.Reset(v.ctx, v.by(), id, email, reason)
			})},
	}
}
