package identity

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Machine is the Sponsor of a person who was invited or reset by a command without a signed-in person.
const Machine = "machine"

// Invitation has the token of a link and the code that is needed with the link to choose a password. It also has the
// id for a new person. It is made before the transaction that stores it, because the transaction may run twice.
type Invitation struct {
	Token, Code string
	// Sponsor is the person who gets both link and code, because no approval was needed. It is the id of a
	// person, or Machine. It is empty if two people get them. A sponsored person cannot approve changes that the
	// sponsor requested (package changes).
	Sponsor string
	By      string // name of the person who invites or resets
	id      string
}

// NewInvitation returns a new Invitation.
func NewInvitation() Invitation {
	return Invitation{Token: newToken(), Code: newInvitationCode(), id: uuid.Must(uuid.NewV7()).String()}
}

const (
	lockPerson = `SELECT id, email, name, created_at, disabled_at, password <> '' FROM people WHERE email = $1 FOR UPDATE`
	selectRole = `SELECT role FROM memberships WHERE person = $1 AND tenant = $2`
	makePerson = `INSERT INTO people (id, email, name, created_at) VALUES ($1, $2, $3, $4)`
	setRole    = `INSERT INTO memberships (tenant, person, role, created_at, changed_at) VALUES ($1, $2, $3, $4, $4)
		ON CONFLICT (tenant, person) DO UPDATE SET role = excluded.role, changed_at = excluded.changed_at`
	dropRole   = `DELETE FROM memberships WHERE tenant = $1 AND person = $2`
	lockOwners = `SELECT p.id FROM memberships m JOIN people p ON p.id = m.person
		WHERE m.tenant = '' AND m.role = 'owner' AND p.disabled_at = 0 AND (p.password <> '' OR $1 = 1) ORDER BY p.id FOR UPDATE`
	disable     = `UPDATE people SET disabled_at = $2 WHERE id = $1`
	endSessions = `UPDATE sessions SET ended_at = $2 WHERE person = $1 AND ended_at = 0`
	endLinks    = `UPDATE sign_in_links SET used_at = $2 WHERE person = $1 AND used_at = 0`
	resetPerson = `UPDATE people SET password = '', reset_at = $2, sponsor = $3, invited_by = $4 WHERE id = $1`
	dropFactor  = `DELETE FROM factors WHERE person = $1`
)

// locked reads a person and locks the row.
func (i *Identity) locked(tx *db.Tx, email string) (p Person, password bool, err error) {
	email = strings.ToLower(strings.TrimSpace(email))
	found, err := tx.One(lockPerson, []any{email}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt, &password)
	if err == nil && !found {
		err = problem.New(problem.NotFound, "person_not_found", "There is no person with the e-mail address "+email)
	}
	return p, password, err
}

// Invite gives a person a role in tx. The caller writes the audit entry in the same transaction. It creates a missing
// person. invited reports whether the link of the invitation is valid. The user of the link becomes the person, with
// every role. Older links end. If the person has a role at the place, Invite changes nothing and returns Duplicate.
//
// An existing account proves nothing: anybody who may invite people could have created it and chosen its password. So
// an account without a role loses its password and second factor. An account with roles only at tenants is refused
// until it is reset. An account with a role at the installation stays as it is, because the installation sent its
// link.
func (i *Identity) Invite(tx *db.Tx, by Invitation, email, name string, m Membership) (p Person, invited bool, err error) {
	p, password, err := i.locked(tx, email)
	if problem.Is(err, problem.NotFound) {
		if email, err = checkPerson(email, name, []Membership{m}); err != nil {
			return Person{}, false, err
		}
		if err := checkNew(email, name); err != nil {
			return Person{}, false, err
		}
		p = Person{ID: by.id, Email: email, Name: name, CreatedAt: i.clock.Now()}
		_, err = tx.Exec(makePerson, p.ID, p.Email, p.Name, p.CreatedAt)
	}
	if err != nil {
		return Person{}, false, err
	}
	if _, err := checkPerson(p.Email, p.Name, []Membership{m}); err != nil {
		return Person{}, false, err
	}
	if !p.DisabledAt.IsZero() {
		return Person{}, false, problem.New(problem.InProgress, "person_disabled", p.Email+" is disabled: enable the person first")
	}
	memberships, err := rolesOf(tx, p.ID)
	if err != nil {
		return Person{}, false, err
	}
	operator := false
	for _, r := range memberships {
		if r.Tenant == m.Tenant {
			return Person{}, false, problem.New(problem.Duplicate, "has_role", p.Email+" is "+string(r.Role)+" there already")
		}
		operator = operator || r.Tenant == roles.Installation
	}
	now := i.clock.Now()
	switch {
	case password && operator:
	case password && len(memberships) > 0:
		return Person{}, false, problem.New(problem.InProgress, "account_elsewhere", p.Email+" already has a role at a customer's account. Reset this person first, so that they choose a new password with the link")
	default:
		i.reset(tx, by, p, now)
	}
	tx.Defer(setRole, 1, m.Tenant, p.ID, string(m.Role), now)
	return p, !(password && operator), nil
}

// SetRole changes the role of a person at one place in tx. The caller writes the audit entry in the same transaction.
// An empty role removes the membership. The installation must keep an owner.
func (i *Identity) SetRole(tx *db.Tx, email string, m Membership) (p Person, before roles.Role, err error) {
	if p, _, err = i.locked(tx, email); err != nil {
		return p, "", err
	}
	if m.Role != "" && !m.Role.ExistsAt(roles.SiteOf(m.Tenant)) {
		return p, "", problem.Field("role", "is not a role there")
	}
	found, err := tx.One(selectRole, []any{p.ID, m.Tenant}, &before)
	if err != nil {
		return p, "", err
	}
	if !found {
		return p, "", problem.New(problem.NotFound, "no_role", p.Email+" has no role there: invite the person")
	}
	if m.Tenant == roles.Installation && before == roles.Owner && m.Role != roles.Owner {
		if err := i.keepOwner(tx, p); err != nil {
			return p, before, err
		}
	}
	if m.Role == "" {
		tx.Defer(dropRole, 1, m.Tenant, p.ID)
	} else {
		tx.Defer(setRole, 1, m.Tenant, p.ID, string(m.Role), i.clock.Now())
	}
	return p, before, nil
}

// keepOwner returns an error if the installation would have no owner who can sign in.
func (i *Identity) keepOwner(tx *db.Tx, without Person) error {
	others, own := 0, false
	link := 0 // in development an owner may have no password, because the server prints a link that signs the owner in
	if i.development {
		link = 1
	}
	err := tx.Query(lockOwners, []any{link}, func(r *db.Row) error {
		var id string
		err := r.Scan(&id)
		if id == without.ID {
			own = true
		} else {
			others++
		}
		return err
	})
	if err == nil && own && others == 0 {
		err = problem.New(problem.Forbidden, "last_owner", without.Email+" is the last owner of the installation: add another owner first")
	}
	return err
}

// Disable prevents a person from signing in, and ends sessions and links. It runs in tx, in which the caller also
// writes the audit entry.
func (i *Identity) Disable(tx *db.Tx, email string) (Person, error) {
	p, _, err := i.locked(tx, email)
	if err != nil {
		return p, err
	}
	if !p.DisabledAt.IsZero() {
		return p, problem.New(problem.Duplicate, "person_disabled", p.Email+" is disabled already")
	}
	if err := i.keepOwner(tx, p); err != nil {
		return p, err
	}
	now := i.clock.Now()
	tx.Defer(disable, 1, p.ID, now)
	tx.Defer(endSessions, -1, p.ID, now)
	tx.Defer(endTokens, -1, p.ID, now)
	tx.Defer(endLinks, -1, p.ID, now)
	return p, nil
}

// Enable lets a disabled person sign in again. It runs in tx, in which the caller also writes the audit entry.
func (i *Identity) Enable(tx *db.Tx, email string) (Person, error) {
	p, _, err := i.locked(tx, email)
	if err == nil && p.DisabledAt.IsZero() {
		err = problem.New(problem.Duplicate, "person_enabled", p.Email+" is not disabled")
	}
	if err == nil {
		tx.Defer(disable, 1, p.ID, time.Time{})
	}
	return p, err
}

// Reset removes a person's password, second factor and recovery codes, and ends sessions and older links. It stores
// the link of an invitation. It runs in tx, in which the caller also writes the audit entry.
func (i *Identity) Reset(tx *db.Tx, by Invitation, email string) (Person, error) {
	p, _, err := i.locked(tx, email)
	if err == nil && !p.DisabledAt.IsZero() {
		err = problem.New(problem.InProgress, "person_disabled", p.Email+" is disabled: enable the person first")
	}
	if err != nil {
		return p, err
	}
	i.reset(tx, by, p, i.clock.Now())
	return p, nil
}

// reset removes all proofs of a person. Only the bearer of the invitation's link and code can then sign in as the
// person.
func (i *Identity) reset(tx *db.Tx, by Invitation, p Person, now time.Time) {
	tx.Defer(resetPerson, 1, p.ID, now, by.Sponsor, by.By)
	tx.Defer(dropFactor, -1, p.ID)
	tx.Defer(dropCodes, -1, p.ID)
	tx.Defer(endSessions, -1, p.ID, now)
	tx.Defer(endTokens, -1, p.ID, now)
	tx.Defer(endLinks, -1, p.ID, now)
	tx.Defer(insertLink, 1, hashInvitation(by.Token), p.ID, now, now.Add(InvitationLasts), kindInvitation, hashCode(by.Token, by.Code))
}

const selectMember = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at FROM memberships m JOIN people p ON p.id = m.person
	WHERE m.tenant = $1 AND p.disabled_at = 0 AND (p.id = $2 OR p.email = $3)`

// Member returns a person with a role at a tenant, by the id or the complete e-mail address.
func (i *Identity) Member(ctx context.Context, tenant, who string) (p Person, err error) {
	found, err := i.db.ReadOne(ctx, selectMember, []any{tenant, who, strings.ToLower(strings.TrimSpace(who))}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt)
	if err == nil && !found {
		err = problem.Field("member", "must be the e-mail address or the id of a person with a role at this account who is not disabled")
	}
	return p, err
}

// Listed is a person with the roles and the kinds of proofs.
type Listed struct {
	Person
	HasPassword, HasFactor bool
	SeenAt                 time.Time // last use of a stored session, to the minute; zero: none
	Memberships            []Membership
	InvitedBy              string // name of the person who invited or last reset the person
	Sponsor                string // the person who got both link and code: an id, or Machine; empty: nobody
}

const (
	selectPeople = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, p.password <> '', coalesce(f.sealed, '') <> '',
		coalesce((SELECT max(s.used_at) FROM sessions s WHERE s.person = p.id), 0), p.invited_by, p.sponsor
		FROM people p LEFT JOIN factors f ON f.person = p.id
		WHERE ($2 = '' OR EXISTS (SELECT 1 FROM memberships m WHERE m.person = p.id AND m.tenant = $2)) AND ($3 = '' OR p.id = $3) ORDER BY p.email LIMIT $1`
	selectRoles = `SELECT person, tenant, role FROM memberships ORDER BY tenant`
)

// People lists at most limit people, by e-mail address.
func (i *Identity) People(ctx context.Context, limit int) (list []Listed, err error) {
	return i.Members(ctx, "", "", limit)
}

// Members lists at most limit people with a role at a tenant. An empty tenant means all people. If id is not empty,
// only the person with that id is returned.
func (i *Identity) Members(ctx context.Context, tenant, id string, limit int) (list []Listed, err error) {
	err = i.db.ReadSnapshot(ctx, func(tx *db.Tx) error {
		list = nil
		at := map[string]int{}
		if err := tx.Query(selectPeople, []any{limit, tenant, id}, func(r *db.Row) error {
			var l Listed
			err := r.Scan(&l.ID, &l.Email, &l.Name, &l.CreatedAt, &l.DisabledAt, &l.HasPassword, &l.HasFactor, &l.SeenAt, &l.InvitedBy, &l.Sponsor)
			at[l.ID] = len(list)
			list = append(list, l)
			return err
		}); err != nil {
			return err
		}
		return tx.Query(selectRoles, nil, func(r *db.Row) error {
			var person string
			var m Membership
			err := r.Scan(&person, &m.Tenant, &m.Role)
			if n, listed := at[person]; listed {
				list[n].Memberships = append(list[n].Memberships, m)
			}
			return err
		})
	})
	return list, err
}

const markBootstrap = `UPDATE people SET bootstrap = 1 WHERE id = $1`

// Bootstrap creates the first person, an owner of the installation with a password. If there is any person already,
// it changes nothing and made is false.
func (i *Identity) Bootstrap(ctx context.Context, email, name, password string) (made bool, err error) {
	email, err = checkPerson(email, name, []Membership{{roles.Installation, roles.Owner}})
	if err == nil {
		err = checkNew(email, name)
	}
	if err != nil {
		return false, err
	}
	if set, err := i.SetUp(ctx); err != nil || set {
		return false, err
	}
	p := Person{ID: uuid.Must(uuid.NewV7()).String(), Email: email, Name: name}
	words, err := i.wordsAround(ctx, p)
	if err != nil {
		return false, err
	}
	if err := checkPassword(password, words); err != nil {
		return false, err
	}
	sealed, err := i.hasher.seal(ctx, password)
	if err != nil {
		return false, err
	}
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		now := i.clock.Now()
		n, err := tx.Exec(insertPerson, p.ID, p.Email, p.Name, now)
		if made = n == 1; err != nil || !made {
			return err // another node created the person first
		}
		tx.Defer(choosePassword, 1, p.ID, sealed)
		tx.Defer(markBootstrap, 1, p.ID)
		tx.Defer(setRole, 1, roles.Installation, p.ID, string(roles.Owner), now)
		return i.audit.Write(tx, audit.Entry{Actor: "bootstrap", Action: "people.create", Subject: p.ID, Reason: "the first owner, from the settings of the server",
			Details: changesOf("role at the installation", "", string(roles.Owner))})
	})
	return made, err
}

// Made reports whether this invitation created the person.
func (by Invitation) Made(p Person) bool { return p.ID == by.id }

// Locked returns a person by e-mail address, with all memberships, and locks the row until tx ends.
func (i *Identity) Locked(tx *db.Tx, email string) (p Person, all []Membership, err error) {
	if p, _, err = i.locked(tx, email); err != nil {
		return p, nil, err
	}
	all, err = rolesOf(tx, p.ID)
	return p, all, err
}
