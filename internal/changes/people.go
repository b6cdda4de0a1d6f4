package changes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/usertext"
)

// The kinds of changes about people.
const (
	KindInvite  = "people.invite"
	KindRole    = "people.role"
	KindDisable = "people.disable"
	KindEnable  = "people.enable"
	KindReset   = "people.reset"
)

// person is the payload of a change of a person as the requester saw it. Its members and their order are hashed.
type person struct {
	Email  string     `json:"email"`
	Name   string     `json:"name,omitempty"` // name of an invited person
	Tenant string     `json:"tenant"`         // empty: the installation
	Role   roles.Role `json:"role,omitempty"`
	Before roles.Role `json:"before,omitempty"`
}

// Fields of people.
var (
	emailField = Field{Name: "email", Label: "E-mail address", Max: 254, Required: true}
	placeField = Field{Name: FieldTenant, Label: "Account", Hint: "The id of the account. Leave empty for the installation.", Max: 64}
)

var peopleRule = Rule{Make: roles.ChangePeople, Check: roles.ApprovePeople}

// mayGive refuses roles that the requester may not give or take. It runs in the transaction that applies the request.
// The requester needs each permission of the role at that place. A person who may create people of the installation
// may give every role of a tenant.
func (a *Changes) mayGive(tx *db.Tx, request Request, all ...identity.Membership) error {
	if request.byMachine() {
		return nil
	}
	requester, err := a.People.Standing(tx, request.Requester, request.Place)
	if err != nil {
		return err
	}
	for _, m := range all {
		switch {
		case m.Role == "":
		case m.Tenant != request.Place && request.Place != roles.Installation:
			return problem.New(problem.Forbidden, "person_elsewhere", "This person also has a role elsewhere: only the installation can do this")
		case m.Tenant == request.Place && !requester.Role.Covers(roles.SiteOf(m.Tenant), m.Role):
			return problem.New(problem.Forbidden, "role_beyond", fmt.Sprintf("The role %s has rights that %s, who is %s, lacks", m.Role, requester.Person.Email, requester.Role))
		}
	}
	return nil
}

// other returns the roles of the person of a request. It refuses the requester.
func (a *Changes) other(tx *db.Tx, request Request, email string) ([]identity.Membership, error) {
	p, all, err := a.People.Locked(tx, email)
	if err != nil {
		return nil, err
	}
	if p.ID == request.Requester {
		return nil, errYourself()
	}
	if request.Place != roles.Installation && !slices.ContainsFunc(all, func(m identity.Membership) bool { return m.Tenant == request.Place }) {
		return nil, problem.New(problem.NotFound, "person_not_found", "There is no such person here")
	}
	return all, nil
}

func errYourself() error {
	return problem.New(problem.Forbidden, "yourself", "You cannot change your own access. Ask another person with this permission")
}

// where names the place of a membership.
func (a *Changes) where(ctx context.Context, place, tenantID string) (string, error) {
	if tenantID == roles.Installation {
		return "the installation", nil
	}
	t, err := a.Tenants.Get(ctx, tenantID)
	if err != nil {
		return "", err
	}
	return a.titled(ctx, place, t)
}

// lookPerson drafts a change about a person. sentence gets the address, the place, the name, the role and the
// previous role.
func (a *Changes) lookPerson(ctx context.Context, place, sentence string, p person) (Draft, error) {
	if p.Email = strings.ToLower(strings.TrimSpace(p.Email)); !usertext.IsEmail(p.Email) {
		return Draft{}, problem.Field("email", "must be an e-mail address")
	}
	if p.Role != "" && !slices.Contains(roles.At(roles.SiteOf(p.Tenant)), p.Role) {
		return Draft{}, problem.Field("role", "is not a role there")
	}
	where, err := a.where(ctx, place, p.Tenant)
	return Draft{Tenant: p.Tenant, Sentence: fmt.Sprintf(sentence, p.Email, where, p.Name, role(p.Role), role(p.Before)), Payload: p}, err
}

// Invite requests a role for a person. It creates the person if nobody has the address. If the person has no
// password, the Secret of the applied request is the token of the link, and its Code is for the approver.
func (a *Changes) Invite(ctx context.Context, by By, id, email, name string, m identity.Membership, reason string) (Request, error) {
	return a.Do(ctx, by, KindInvite, id, Values{"email": email, "name": name, FieldTenant: m.Tenant, "role": string(m.Role)}, reason)
}

func (a *Changes) lookInvite(ctx context.Context, o Order) (Draft, error) {
	p := person{Email: o.Values["email"], Name: o.Values["name"], Tenant: o.Values[FieldTenant], Role: roles.Role(o.Values["role"])}
	if !slices.Contains(roles.At(roles.SiteOf(p.Tenant)), p.Role) {
		return Draft{}, problem.Field("role", "has no role named "+string(p.Role))
	}
	return a.lookPerson(ctx, o.By.Place, "Invite %[1]s (%[3]s) as %[4]s of %[2]s", p)
}

// role formats a role for a sentence.
func role(r roles.Role) string {
	if r == "" {
		return "none"
	}
	return string(r)
}

func roleAt(tenantID string) string {
	if tenantID == roles.Installation {
		return "role at the installation"
	}
	return "role at the customer"
}

// invitation creates a link and a code. If a command without a person invites, the new person depends on the machine:
// see seconds. The first person of an installation depends on nobody.
func (a *Changes) invitation(ctx context.Context, _ person) (identity.Invitation, error) {
	by := identity.NewInvitation()
	people, err := a.People.SetUp(ctx)
	if people {
		by.Sponsor = identity.Machine
	}
	return by, err
}

// from completes an invitation. It sets the requester and, if nobody had to approve, the person who gets both link
// and code.
func from(request Request, by identity.Invitation) identity.Invitation {
	by.By = request.RequesterName
	switch {
	case request.byMachine():
	case request.Needs == 0:
		by.Sponsor = request.Requester
	default:
		by.Sponsor = ""
	}
	return by
}

func (a *Changes) inviteKind() Kind {
	return secretly(a, KindInvite, "Invitation of a person", peopleRule, a.invitation, func(tx *db.Tx, request Request, p person, by identity.Invitation) ([]audit.Change, []string, error) {
		m := identity.Membership{Tenant: p.Tenant, Role: p.Role}
		if err := a.mayGive(tx, request, m); err != nil {
			return nil, nil, err
		}
		person, all, err := a.People.Locked(tx, p.Email)
		if problem.Is(err, problem.NotFound) {
			err = nil
		}
		switch {
		case err != nil:
		case person.ID == request.Requester:
			err = errYourself()
		case request.Place != roles.Installation:
			err = a.mayGive(tx, request, all...)
		}
		if err != nil {
			return nil, nil, err
		}
		made, invited, err := a.People.Invite(tx, from(request, by), p.Email, p.Name, m)
		if err == nil && invited { // whoever has the link can become the person
			err = a.mayGive(tx, request, all...)
		}
		var secret []string
		if invited {
			secret = []string{by.Token, by.Code}
		}
		return []audit.Change{{What: roleAt(p.Tenant) + " of " + made.Email, After: string(p.Role)}}, secret, err
	}).by(a.lookInvite, emailField, Field{Name: "name", Label: "Name", Hint: "Enter the name of a new person.", Max: 120}, placeField,
		Field{Name: "role", Label: "Role", Max: 20, Required: true}).showing(a.checkPerson)
}

// SetRole requests another role of a person at one place. An empty role removes the person from the place.
func (a *Changes) SetRole(ctx context.Context, by By, id, email string, m identity.Membership, before roles.Role, reason string) (Request, error) {
	return a.Do(ctx, by, KindRole, id, Values{"email": email, FieldTenant: m.Tenant, "role": role(m.Role), "before": role(before)}, reason)
}

// roleOf parses the result of role.
func roleOf(text string) roles.Role {
	if text == role("") {
		return ""
	}
	return roles.Role(text)
}

func (a *Changes) lookRole(ctx context.Context, o Order) (Draft, error) {
	p := person{Email: o.Values["email"], Tenant: o.Values[FieldTenant], Role: roleOf(o.Values["role"]), Before: roleOf(o.Values["before"])}
	return a.lookPerson(ctx, o.By.Place, "Change the role of %[1]s at %[2]s from %[5]s to %[4]s", p)
}

func (a *Changes) roleKind() Kind {
	return written(a, KindRole, "Role of a person", peopleRule, func(tx *db.Tx, request Request, p person) ([]audit.Change, error) {
		if _, err := a.other(tx, request, p.Email); err != nil {
			return nil, err
		}
		if err := a.mayGive(tx, request, identity.Membership{Tenant: p.Tenant, Role: p.Role}, identity.Membership{Tenant: p.Tenant, Role: p.Before}); err != nil {
			return nil, err
		}
		_, before, err := a.People.SetRole(tx, p.Email, identity.Membership{Tenant: p.Tenant, Role: p.Role})
		if err == nil && before != p.Before {
			err = errChanged("The role")
		}
		return []audit.Change{{What: roleAt(p.Tenant) + " of " + p.Email, Before: role(p.Before), After: role(p.Role)}}, err
	}).by(a.lookRole, emailField, placeField, Field{Name: "role", Label: "New role", Hint: "Enter none to remove the role.", Max: 20, Required: true},
		Field{Name: "before", Label: "Role now", Hint: "Enter none if the person has no role there. A role that was changed in the meantime stays.", Max: 20, Required: true}).showing(a.checkPerson)
}

// Disable requests that a person loses all access at once.
func (a *Changes) Disable(ctx context.Context, by By, id, email, reason string) (Request, error) {
	return a.Do(ctx, by, KindDisable, id, Values{"email": email}, reason)
}

// Enable requests that a disabled person gets access again.
func (a *Changes) Enable(ctx context.Context, by By, id, email, reason string) (Request, error) {
	return a.Do(ctx, by, KindEnable, id, Values{"email": email}, reason)
}

// HasLink reports whether a request makes a link for a person, which works only with a code.
func HasLink(r Request) bool { return r.Kind == KindInvite || r.Kind == KindReset }

// Reset requests the removal of a person's password, second factor and recovery codes. The Secret of the applied
// request is the token of the link with which the person sets a new password and factor.
func (a *Changes) Reset(ctx context.Context, by By, id, email, reason string) (Request, error) {
	return a.Do(ctx, by, KindReset, id, Values{"email": email}, reason)
}

// lookWhole drafts a change of a person at all places. sentence gets the address and the place.
func (a *Changes) lookWhole(sentence string) func(ctx context.Context, o Order) (Draft, error) {
	return func(ctx context.Context, o Order) (Draft, error) {
		return a.lookPerson(ctx, o.By.Place, sentence, person{Email: o.Values["email"], Tenant: o.By.Place})
	}
}

// whole finds the person of a change at all places. It refuses a person with a role that the requester may not
// give.
func (a *Changes) whole(tx *db.Tx, request Request, p person) error {
	all, err := a.other(tx, request, p.Email)
	if err != nil {
		return err
	}
	return a.mayGive(tx, request, all...)
}

func (a *Changes) disableKind() Kind {
	return written(a, KindDisable, "Disabling of a person", peopleRule, func(tx *db.Tx, request Request, p person) ([]audit.Change, error) {
		if err := a.whole(tx, request, p); err != nil {
			return nil, err
		}
		_, err := a.People.Disable(tx, p.Email)
		return []audit.Change{{What: p.Email + " may sign in", Before: "yes", After: "no"}}, err
	}).by(a.lookWhole("Disable %[1]s (%[2]s)"), emailField).showing(a.checkPerson)
}

func (a *Changes) enableKind() Kind {
	return written(a, KindEnable, "Enabling of a person", peopleRule, func(tx *db.Tx, request Request, p person) ([]audit.Change, error) {
		if err := a.whole(tx, request, p); err != nil {
			return nil, err
		}
		_, err := a.People.Enable(tx, p.Email)
		return []audit.Change{{What: p.Email + " may sign in", Before: "no", After: "yes"}}, err
	}).by(a.lookWhole("Enable %[1]s again (%[2]s)"), emailField).showing(a.checkPerson)
}

func (a *Changes) resetKind() Kind {
	return secretly(a, KindReset, "Reset of a person", peopleRule, a.invitation, func(tx *db.Tx, request Request, p person, by identity.Invitation) ([]audit.Change, []string, error) {
		if err := a.whole(tx, request, p); err != nil {
			return nil, nil, err
		}
		_, err := a.People.Reset(tx, from(request, by), p.Email)
		return []audit.Change{{What: "password and second factor of " + p.Email, Before: "as they were", After: "none"}}, []string{by.Token, by.Code}, err
	}).by(a.lookWhole("Remove password and second factor of %[1]s and create a link for new ones (%[2]s)"), emailField).showing(a.checkPerson)
}

// peopleRead is the maximum number of people of a place among whom a person is searched.
const peopleRead = 2000

// checkPerson returns the facts about a person and the permissions of a new role. It warns of a similar address.
func (a *Changes) checkPerson(ctx context.Context, r Request) (list []Fact, err error) {
	p, err := payloadOf[person](r)
	if err != nil {
		return nil, err
	}
	there, err := a.People.Members(ctx, r.Place, "", peopleRead) // only people of the place, so that nobody sees people of other places
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(there, func(l identity.Listed) bool { return l.Email == p.Email })
	if at >= 0 {
		list = append(list, personFacts(there[at], r.Place)...)
	} else if r.Kind == KindInvite {
		list = append(list, Fact{Name: "Person", Value: "new here"})
	}
	if p.Role != "" || r.Kind == KindRole {
		list = append(list, roleFacts(roles.SiteOf(p.Tenant), p.Before, p.Role)...)
	}
	if r.Kind != KindInvite || at >= 0 {
		return list, nil
	}
	for _, l := range there {
		if mistakable(letters(l.Email), letters(p.Email)) {
			list = append(list, warning(fmt.Sprintf("%s is similar to %s, who already has a role here.", p.Email, l.Email)))
		}
	}
	return list, nil
}

// personFacts returns facts about a person and the person's roles at a place.
func personFacts(l identity.Listed, place string) []Fact {
	seen := "never"
	if !l.SeenAt.IsZero() {
		seen = at(l.SeenAt)
	}
	list := []Fact{{Name: "Person", Value: l.Name + ", " + l.Email}, {Name: "Last seen", Value: seen}}
	for _, m := range l.Memberships {
		if m.Tenant == place {
			list = append(list, Fact{Name: "Role here now", Value: string(m.Role)})
		}
	}
	if !l.HasFactor {
		list = append(list, Fact{Name: "Second factor", Value: "none"})
	}
	if !l.DisabledAt.IsZero() {
		list = append(list, Fact{Name: "Disabled", Value: at(l.DisabledAt)})
	}
	if l.InvitedBy != "" {
		list = append(list, Fact{Name: "Invited or reset by", Value: l.InvitedBy})
	}
	return list
}

// powerful are the permissions that cause a warning when a person gets them.
var powerful = []roles.Permission{roles.ChangePeople, roles.ChangePolicy, roles.ChangeMoney, roles.ApproveMoney, roles.ApprovePayouts, roles.RequestPayouts}

// roleFacts shows the permissions that a new role adds and removes.
func roleFacts(site roles.Site, before, after roles.Role) (list []Fact) {
	var gains, losses []string
	var power []string
	for _, g := range roles.Policy() {
		p := g.Permission
		was, is := roles.Can(site, before, p), roles.Can(site, after, p)
		switch {
		case is && !was:
			gains = append(gains, string(p))
			if slices.Contains(powerful, p) {
				power = append(power, string(p))
			}
		case was && !is:
			losses = append(losses, string(p))
		}
	}
	if len(gains) > 0 {
		list = append(list, Fact{Name: "May then", Value: strings.Join(gains, ", ")})
	}
	if len(losses) > 0 {
		list = append(list, Fact{Name: "May no longer", Value: strings.Join(losses, ", ")})
	}
	if len(power) > 0 {
		list = append(list, warning("The role "+string(after)+" gives "+strings.Join(power, ", ")+"."))
	}
	return list
}
