package identity

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Standing is a person's state and role at one place, as read in a transaction.
type Standing struct {
	Person    Person
	HasFactor bool
	ResetAt   time.Time  // when the password and factor were last removed; zero: never
	Role      roles.Role // empty: none
	RoleAt    time.Time  // when the role was given or last changed
}

// Can reports whether the person may sign in and has a permission at a site.
func (s Standing) Can(at roles.Site, p roles.Permission) bool {
	return s.Person.DisabledAt.IsZero() && s.Role != "" && roles.Can(at, s.Role, p)
}

const (
	selectStanding = `SELECT id, email, name, created_at, disabled_at, reset_at FROM people WHERE id = $1`
	lockStanding   = selectStanding + ` FOR UPDATE`
	selectRoleAt   = `SELECT role, changed_at FROM memberships WHERE person = $1 AND tenant = $2`
	lockRole       = selectRoleAt + ` FOR UPDATE`
	selectFactor   = `SELECT person FROM factors WHERE person = $1 AND sealed <> ''`
)

// Standing reads a person's role at a tenant or at the Installation, and locks the row until tx ends.
func (i *Identity) Standing(tx *db.Tx, person, tenant string) (Standing, error) {
	return standing(tx, lockStanding, lockRole, person, tenant)
}

// StandingNow is Standing without a lock, for pages.
func (i *Identity) StandingNow(tx *db.Tx, person, tenant string) (Standing, error) {
	return standing(tx, selectStanding, selectRoleAt, person, tenant)
}

func standing(tx *db.Tx, ofPerson, ofRole, person, tenant string) (s Standing, err error) {
	found, err := tx.One(ofPerson, []any{person}, &s.Person.ID, &s.Person.Email, &s.Person.Name, &s.Person.CreatedAt, &s.Person.DisabledAt, &s.ResetAt)
	if err == nil && !found {
		err = problem.New(problem.NotFound, "person_not_found", "There is no such person")
	}
	if err != nil {
		return s, err
	}
	if _, err = tx.One(ofRole, []any{person, tenant}, &s.Role, &s.RoleAt); err != nil {
		return s, err
	}
	var id string
	s.HasFactor, err = tx.One(selectFactor, []any{person}, &id)
	return s, err
}

// Holder is a person with a role who can sign in.
type Holder struct {
	Person
	Role      roles.Role
	HasFactor bool   // without a factor, the person cannot approve in production
	Sponsor   string // the person who got both link and code of this account: an id, or Machine; empty: nobody
}

const selectHolders = `SELECT m.person, p.email, p.name, m.role, COALESCE(f.sealed, '') <> '' AND p.password <> '', p.sponsor FROM memberships m JOIN people p ON p.id = m.person
	LEFT JOIN factors f ON f.person = m.person WHERE m.tenant = $1 AND p.disabled_at = 0 ORDER BY p.email`

// Holders lists the people with a role at a tenant or at the Installation who are not disabled.
func (i *Identity) Holders(tx *db.Tx, tenant string) ([]Holder, error) {
	return db.All(tx, selectHolders, []any{tenant}, func(h *Holder, r *db.Row) error {
		return r.Scan(&h.ID, &h.Email, &h.Name, &h.Role, &h.HasFactor, &h.Sponsor)
	})
}

// Acquaintance describes the connections between an approver and a requester: invitation, network and browser.
type Acquaintance struct {
	InvitedBy        string
	Network, Browser bool // a session of the requester began in the same network, or in a browser of the same name
}

const (
	selectInvitedBy = `SELECT invited_by FROM people WHERE id = $1`
	countShared     = `SELECT coalesce(sum(CASE WHEN source <> '' AND source = $2 THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN agent <> '' AND agent = $3 THEN 1 ELSE 0 END), 0)
		FROM sessions WHERE person = $1`
)

// Acquainted compares the session of an approver with the stored sessions of a requester.
func (i *Identity) Acquainted(tx *db.Tx, approver Visitor, requester string) (a Acquaintance, err error) {
	if _, err := tx.One(selectInvitedBy, []any{approver.Person.ID}, &a.InvitedBy); err != nil {
		return a, err
	}
	var network, browser int
	_, err = tx.One(countShared, []any{requester, approver.Session.Source, approver.Session.Agent}, &network, &browser)
	a.Network, a.Browser = network > 0, browser > 0
	return a, err
}

const selectRolesOf = `SELECT tenant, role FROM memberships WHERE person = $1 ORDER BY tenant`

// rolesOf lists a person's roles and their places.
func rolesOf(tx *db.Tx, person string) ([]Membership, error) {
	return db.All(tx, selectRolesOf, []any{person}, func(m *Membership, r *db.Row) error { return r.Scan(&m.Tenant, &m.Role) })
}
