// Package contacts keeps the numbers to which tenants send: their contacts in groups, and the numbers that opted out
// of campaigns. Contacts come one at a time, in lists and from files. A number is in a group once, and a bad row
// never stops the rest. A quota limits a tenant's contacts.
//
// Long changes are made in transactions of 1,000 rows, so that other transactions can run between them. A list or a
// file is added set by set. A deleted group disappears at once and is emptied set by set.
//
// Files: contacts.go (the store; one contact), add.go (one, or a list), import.go (a file), groups.go, delete.go (a group
// and its contacts), numbers.go (the numbers of a send), optout.go (numbers that opted out), erasure.go (a person's
// number, found and erased).
package contacts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

const (
	// MaxContacts is the maximum number of contacts of one group.
	MaxContacts = 100_000
	// MaxEmail is the maximum length of an e-mail address in characters.
	MaxEmail       = 254
	maxPersonName  = 100 // characters; a longer name is cut
	maxContactPage = 100
	// atOnce is the maximum number of rows of a statement and of a transaction.
	atOnce = 1_000

	// freshness is the greatest age of cached data, and cached the number of tenants that a node caches.
	freshness = time.Second
	cached    = 10_000
)

// Store keeps the contacts of all tenants. It is safe for concurrent use.
type Store struct {
	db       *db.DB
	tenants  *tenant.Store
	answers  *idempotency.Answers
	clock    *clock.Clock
	quotas   config.Quotas
	optedOut *cache.Cache[string, bool] // tenants that have a list of numbers that opted out
}

// New makes a store. quotas are the installation's; a tenant may have its own.
func New(d *db.DB, tenants *tenant.Store, answers *idempotency.Answers, c *clock.Clock, quotas config.Quotas) *Store {
	s := &Store{db: d, tenants: tenants, answers: answers, clock: c, quotas: quotas}
	s.optedOut = cache.New(c, freshness, cached, s.loadOptOuts)
	return s
}

// quotasOf returns the quotas of a tenant, at most a second old.
func (s *Store) quotasOf(ctx context.Context, tenant string) (config.Quotas, error) {
	t, err := s.tenants.Get(ctx, tenant)
	return t.Quotas.Over(s.quotas), err
}

// Stored returns a tenant's number of contacts and groups, and its limits.
func (s *Store) Stored(ctx context.Context, tenantID string) (contacts, groups tenant.Stored, err error) {
	most, err := s.quotasOf(ctx, tenantID)
	if err != nil {
		return contacts, groups, err
	}
	contacts.Most, groups.Most = most.Contacts, most.Groups
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		if _, err := tx.One(countContacts, []any{tenantID}, &contacts.Used); err != nil {
			return err
		}
		_, err := tx.One(countGroups, []any{tenantID}, &groups.Used)
		return err
	})
	return contacts, groups, err
}

// Contact is one number of a group.
type Contact struct {
	Tenant    string
	GroupID   string
	ID        string
	MSISDN    msisdn.MSISDN
	FirstName string
	LastName  string
	Email     string
	CreatedAt time.Time
}

const contactFields = `tenant, group_id, id, msisdn, first_name, last_name, email, created_at`

func (c *Contact) scan(r *db.Row) error {
	return r.Scan(&c.Tenant, &c.GroupID, &c.ID, &c.MSISDN, &c.FirstName, &c.LastName, &c.Email, &c.CreatedAt)
}

const listContacts = `SELECT ` + contactFields + ` FROM contacts WHERE tenant = $1 AND group_id = $2 ORDER BY id LIMIT $3 OFFSET $4`

// Contacts gives a page of a group, oldest first, and how many contacts the group has. Pages count from 1 and hold 1 to
// 100 rows.
func (s *Store) Contacts(ctx context.Context, tenant, group string, page, size int64) (contacts []Contact, total int64, err error) {
	size = min(max(size, 1), maxContactPage)
	page = max(page, 1)
	err = s.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		g, err := ownGroup(tx, selectGroup, tenant, group)
		if err != nil {
			return err
		}
		contacts, total = nil, g.Contacts
		contacts, err = db.All(tx, listContacts, []any{tenant, group, size, (page - 1) * size}, (*Contact).scan)
		return err
	})
	return contacts, total, err
}

const selectContact = `SELECT ` + contactFields + ` FROM contacts WHERE id = $1
	AND NOT EXISTS (SELECT 1 FROM contact_groups g WHERE g.tenant = contacts.tenant AND g.id = contacts.group_id AND g.deleted_at <> 0)`

// lockContact reads a contact of the tenant and locks it until the end of tx. A contact of another tenant is
// Forbidden; an unknown one, and one of a deleted group, is NotFound.
func lockContact(tx *db.Tx, tenant, id string) (Contact, error) {
	var c Contact
	if err := tx.Query(selectContact+tx.ForUpdate(), []any{id}, c.scan); err != nil {
		return Contact{}, err
	}
	if c.ID == "" {
		return Contact{}, problem.New(problem.NotFound, "contact_not_found", "Contact not found")
	}
	if c.Tenant != tenant {
		return Contact{}, problem.New(problem.Forbidden, "contact_not_owned", "You do not own this contact")
	}
	return c, nil
}

const updateContact = `UPDATE contacts SET msisdn = $3, first_name = $4, last_name = $5, email = $6 WHERE tenant = $1 AND id = $2`

// UpdateContact sets the non-empty fields of a contact.
func (s *Store) UpdateContact(ctx context.Context, tenant, id string, n NewContact) (Contact, error) {
	var c Contact
	err := s.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		var err error
		if c, err = lockContact(tx, tenant, id); err != nil {
			return err
		}
		if err := c.change(n); err != nil {
			return err
		}
		_, err = tx.Exec(updateContact, tenant, id, string(c.MSISDN), c.FirstName, c.LastName, c.Email)
		return err
	})
	if errors.Is(err, db.ErrUnique) {
		return Contact{}, problem.New(problem.Duplicate, "contact_exists", "This number is in the group already")
	}
	return c, err
}

// change copies the non-empty fields of n.
func (c *Contact) change(n NewContact) error {
	if n.Phone != "" {
		number, err := msisdn.Parse(n.Phone)
		if err != nil {
			return problem.Field("phone_number", err.Error())
		}
		c.MSISDN = number
	}
	if !usertext.Storable(n.FirstName + n.LastName + n.Email) {
		return problem.Field("first_name", "must not hold control characters")
	}
	if utf8.RuneCountInString(n.Email) > MaxEmail {
		return problem.Field("email", fmt.Sprintf("must be at most %d characters", MaxEmail))
	}
	if n.FirstName != "" {
		c.FirstName = usertext.Cut(n.FirstName, maxPersonName)
	}
	if n.LastName != "" {
		c.LastName = usertext.Cut(n.LastName, maxPersonName)
	}
	if n.Email != "" {
		c.Email = strings.TrimSpace(n.Email)
	}
	return nil
}

const deleteContact = `DELETE FROM contacts WHERE tenant = $1 AND id = $2`

// DeleteContact removes a contact from its group.
func (s *Store) DeleteContact(ctx context.Context, tenant, id string) error {
	return s.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		c, err := lockContact(tx, tenant, id)
		if err != nil {
			return err
		}
		tx.Defer(deleteContact, 1, tenant, id)
		tx.Defer(growGroup, 1, tenant, c.GroupID, -1)
		return nil
	})
}
