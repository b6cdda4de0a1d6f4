package settings

import (
	"slices"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
)

// mostPeople is the maximum number of people on a page.
const mostPeople = 500

// peopleColumns returns the columns of the list of people.
func peopleColumns(v *console.Visit) []console.Column[identity.Listed] {
	type person = identity.Listed
	return []console.Column[person]{
		console.Text("Name", "", func(p person) string { return p.Name }).Laid(console.Link),
		console.Text("E-mail", "", func(p person) string { return p.Email }).Laid(console.Minor),
		console.Text("Role", "", func(p person) string { return rolesOf(v, p) }),
		console.Text("Second factor", "", func(p person) string { return words.OnOff(p.HasFactor) }).Laid(console.Minor),
		console.Time("Last seen", "", func(p person) time.Time { return p.SeenAt }).Laid(console.Under),
	}
}

// peopleList lists the people of an account, or all people.
func (ps *Pages) peopleList(v *console.Visit) (console.Answer, error) {
	all, err := ps.Identity.Members(v.Ctx, v.Tenant.ID, "", mostPeople)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "People", Lead: "People who can sign in here, with their roles.", Actions: v.Actions(roles.ChangePeople, page.Link{Href: v.Base() + "/people/invite", Text: "Invite person"}),
		Grid:  console.Grid(peopleColumns(v), all, func(p identity.Listed) string { return v.Base() + "/people/" + p.ID }),
		Empty: page.Empty{Title: "No people yet", Text: "Invited people appear here."}}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// rolesOf returns the roles of a person. An account sees only those at the account.
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
			text += " at " + v.NameOf(m.Tenant)
		}
	}
	if !p.DisabledAt.IsZero() {
		text += " (disabled)"
	}
	return text
}

// member returns the person of the page.
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

// personPage shows one person, with links to the forms about them.
func (ps *Pages) personPage(v *console.Visit) (console.Answer, error) {
	p, err := ps.member(v)
	if err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "E-mail", Value: page.Text(p.Email)}, {Name: "Name", Value: page.Text(p.Name)}, {Name: "Role", Value: page.Text(rolesOf(v, p))},
		{Name: "Password", Value: page.Text(setOrNot(p.HasPassword))}, {Name: "Second factor", Value: page.Text(setOrNot(p.HasFactor))}, {Name: "Added", Value: page.Time(p.CreatedAt)}}
	if p.InvitedBy != "" {
		facts = append(facts, page.Fact{Name: "Invited or reset by", Value: page.Text(p.InvitedBy)})
	}
	if p.Sponsor != "" {
		facts = append(facts, page.Fact{Name: "Independence", Value: page.Mark(page.Badge{Tone: page.Bad, Word: "Cannot approve for the person who invited or reset them"})})
	}
	here := v.Base() + "/people/" + p.ID
	var links []page.Link
	if v.Can(roles.ChangePeople) && p.ID != v.Who.Person.ID {
		links = []page.Link{{Href: here + "/role", Text: "Change role"}, {Href: here + "/reset", Text: "Reset credentials"}}
		if p.DisabledAt.IsZero() {
			links = append(links, page.Link{Href: here + "/disable", Text: "Disable person"})
		} else {
			links = append(links, page.Link{Href: here + "/enable", Text: "Enable person"})
		}
	}
	return console.Answer{Title: p.Name, Body: personBody(p, facts, links)}, nil
}

// setOrNot returns the text for a setting that a person has or lacks.
func setOrNot(has bool) string {
	if has {
		return "Set up"
	}
	return "Not set up"
}

// roleOptions lists the roles that the page can give.
func roleOptions(v *console.Visit, none bool) (options []page.Option) {
	if none {
		options = append(options, page.Option{Value: "none", Text: "No role"})
	}
	sites := []roles.Site{roles.TenantSite}
	if v.Route.Site == console.Operators {
		sites = []roles.Site{roles.InstallationSite, roles.TenantSite}
	}
	for _, s := range sites {
		for _, r := range roles.At(s) {
			if !slices.ContainsFunc(options, func(o page.Option) bool { return o.Value == string(r) }) {
				text := string(r) + ": " + r.About()
				if len(sites) > 1 && !r.ExistsAt(roles.InstallationSite) {
					text += " (accounts only)"
				}
				options = append(options, page.Option{Value: string(r), Text: text})
			}
		}
	}
	return options
}

// place returns where the form gives a role: the account of the page, or the choice of an operator.
func place(v *console.Visit) (string, error) {
	if v.Route.Site == console.Tenants {
		return v.Tenant.ID, nil
	}
	return v.AccountIn("tenant", v.Given("tenant", ""))
}

// placeFields let an operator choose where the form gives a role.
func (ps *Pages) placeFields(v *console.Visit) ([]page.Field, error) {
	if v.Route.Site == console.Tenants {
		return nil, nil
	}
	field, err := v.AccountChoice("tenant", "Place", v.Given("tenant", ""), page.Option{Text: "This installation"})
	return []page.Field{field}, err
}

// ofPerson returns the lead of a form about the person of the page.
func (ps *Pages) ofPerson(text string) func(v *console.Visit) (string, error) {
	return func(v *console.Visit) (string, error) {
		p, err := ps.member(v)
		return p.Name + " (" + p.Email + "), " + rolesOf(v, p) + ". " + text, err
	}
}

// askPerson requests a change about the person of the page.
func (ps *Pages) askPerson(ask func(v *console.Visit, id string, p identity.Listed) (changes.Request, error)) func(v *console.Visit, id string) (changes.Request, error) {
	return func(v *console.Visit, id string) (changes.Request, error) {
		p, err := ps.member(v)
		if err != nil {
			return changes.Request{}, err
		}
		return ask(v, id, p)
	}
}

// simply requests a change about the person of the page that has only a reason.
func (ps *Pages) simply(verb func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error)) func(v *console.Visit, id string) (changes.Request, error) {
	return ps.askPerson(func(v *console.Visit, id string, p identity.Listed) (changes.Request, error) {
		return verb(ps.Approvals.Changes, v, id, p.Email, v.R.PostFormValue("reason"))
	})
}

// peopleOrders are the forms about people, on both sites.
func (ps *Pages) peopleOrders() []approvals.Form {
	where, role := console.Input{Name: "tenant", Max: 120}, console.Input{Name: "role", Max: 20}
	return []approvals.Form{
		{Path: "/people/invite", Title: "Invite person", May: roles.ChangePeople, Submit: "Invite person", Inputs: []console.Input{{Name: "email", Max: 254}, {Name: "name", Max: 120}, role, where},
			Lead: func(v *console.Visit) (string, error) {
				to := "this installation or one of its accounts"
				if v.Route.Site == console.Tenants {
					to = console.AccountName(v.Tenant)
				}
				return "The person joins " + to + ". A new person needs a link, shown once to you, and a code, shown once to the approver.", nil
			},
			Fields: func(v *console.Visit) ([]page.Field, error) {
				place, err := ps.placeFields(v)
				return append([]page.Field{{Name: "email", Label: "E-mail", Value: v.Given("email", ""), Max: 254, Required: true}, {Name: "name", Label: "Name", Value: v.Given("name", ""), Max: 120, Required: true},
					{Name: "role", Label: "Role", Value: v.Given("role", "support"), Options: roleOptions(v, false)}}, place...), err
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				value := v.R.PostFormValue
				at, err := place(v)
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.Invite(v.Ctx, approvals.By(v), id, value("email"), value("name"), identity.Membership{Tenant: at, Role: roles.Role(value("role"))}, value("reason"))
			}},
		{Path: "/people/{person}/role", Title: "Change role", May: roles.ChangePeople, Submit: "Change role", Inputs: []console.Input{role, where}, Lead: ps.ofPerson("The new role applies within a second."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				place, err := ps.placeFields(v)
				return append([]page.Field{{Name: "role", Label: "Role", Value: v.Given("role", "none"), Options: roleOptions(v, true)}}, place...), err
			},
			Ask: ps.askPerson(func(v *console.Visit, id string, p identity.Listed) (changes.Request, error) {
				at, err := place(v)
				if err != nil {
					return changes.Request{}, err
				}
				m, before := identity.Membership{Tenant: at, Role: roles.Role(v.R.PostFormValue("role"))}, roles.Role("")
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
		{Path: "/people/{person}/disable", Title: "Disable person", May: roles.ChangePeople, Submit: "Disable person", Danger: true, Lead: ps.ofPerson("All sessions of the person end within a second."),
			Ask: ps.simply(func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error) {
				return a.Disable(v.Ctx, approvals.By(v), id, email, reason)
			})},
		{Path: "/people/{person}/enable", Title: "Enable person", May: roles.ChangePeople, Submit: "Enable person", Lead: ps.ofPerson("The person has the same roles as before."),
			Ask: ps.simply(func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error) {
				return a.Enable(v.Ctx, approvals.By(v), id, email, reason)
			})},
		{Path: "/people/{person}/reset", Title: "Reset credentials", May: roles.ChangePeople, Submit: "Reset credentials", Danger: true,
			Lead: ps.ofPerson("This removes the password, the second factor and the recovery codes. The link for new ones is shown once to you, its code once to the approver. Verify first that the request comes from this person."),
			Ask: ps.simply(func(a *changes.Changes, v *console.Visit, id, email, reason string) (changes.Request, error) {
				return a.Reset(v.Ctx, approvals.By(v), id, email, reason)
			})},
	}
}
