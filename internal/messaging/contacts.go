package messaging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/label"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

const (
	// MaxContacts is the most contacts of one group.
	MaxContacts = 100_000
	// MaxBulk is the most contacts that one call adds.
	MaxBulk = 20_000
	// MaxEmail is the most characters of an email address.
	MaxEmail        = 254
	maxPersonName   = 100
	contactsAtOnce  = 1_000 // rows a statement
	maxContactsPage = 100
)

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

// NewContact is a contact as it was asked for, the number not yet read.
type NewContact struct {
	Phone     string
	FirstName string
	LastName  string
	Email     string
}

// BadContact says why one of several contacts was not added; Row counts from 1.
type BadContact struct {
	Row  int
	Text string
}

// Added is what became of a list of contacts.
type Added struct {
	New        int
	Duplicates int // numbers that the group, or the list before them, had already
	Bad        []BadContact

	contacts []Contact // the new ones
}

var errLongEmail = fmt.Errorf("the email must be at most %d characters", MaxEmail)

func (n NewContact) contact(g Group, now time.Time) (Contact, error) {
	number, err := msisdn.Parse(n.Phone)
	if err != nil {
		return Contact{}, fmt.Errorf("the phone number %w", err)
	}
	if !label.Storable(n.FirstName + n.LastName + n.Email) {
		return Contact{}, errors.New("a name or the email holds characters that cannot be stored")
	}
	if utf8.RuneCountInString(n.Email) > MaxEmail {
		return Contact{}, errLongEmail
	}
	return Contact{Tenant: g.Tenant, GroupID: g.ID, ID: uuid.Must(uuid.NewV7()).String(), MSISDN: number, CreatedAt: now,
		FirstName: label.Cut(n.FirstName, maxPersonName), LastName: label.Cut(n.LastName, maxPersonName), Email: strings.TrimSpace(n.Email)}, nil
}

var contactColumns = []db.Column[Contact]{
	{Name: "tenant", Text: func(c Contact) string { return c.Tenant }},
	{Name: "group_id", Text: func(c Contact) string { return c.GroupID }},
	{Name: "id", Text: func(c Contact) string { return c.ID }},
	{Name: "msisdn", Text: func(c Contact) string { return string(c.MSISDN) }},
	{Name: "first_name", Text: func(c Contact) string { return c.FirstName }},
	{Name: "last_name", Text: func(c Contact) string { return c.LastName }},
	{Name: "email", Text: func(c Contact) string { return c.Email }},
	{Name: "created_at", Time: func(c Contact) time.Time { return c.CreatedAt }},
}

// Each number is looked for by itself, as in findOptOuts.
const knownNumbers = `SELECT value FROM texts($3)
	WHERE value = (SELECT c.msisdn FROM contacts c WHERE c.tenant = $1 AND c.group_id = $2 AND c.msisdn = value)`

const growGroup = `UPDATE contact_groups SET contacts = contacts + $3 WHERE tenant = $1 AND id = $2`

// AddContacts adds a list to a group, in transactions of 1,000 rows: others go between them, and what was added before
// an error stays. Bad rows are reported and left out, numbers that are there already are counted; neither stops the
// rest, but a list of bad rows alone is Invalid. replayed says that the caller's Idempotency-Key added them before.
func (m *Messaging) AddContacts(ctx context.Context, caller idempotency.Caller, group string, list []NewContact) (added Added, replayed bool, err error) {
	if len(list) > MaxBulk {
		return Added{}, false, problem.Field("contacts", fmt.Sprintf("must have at most %d contacts at once", MaxBulk))
	}
	quotas, err := m.quotasOf(ctx, caller.Tenant)
	if err != nil {
		return Added{}, false, err
	}
	ctx = db.Bulk(ctx, caller.Tenant)
	if len(list) > contactsAtOnce {
		if added, replayed, err = idempotency.Recall[Added](ctx, m.answers, caller); replayed || err != nil {
			return added, replayed, err
		}
	}
	var before Added // by the sets before the last, with which the key is kept
	first := 0
	for ; len(list)-first > contactsAtOnce; first += contactsAtOnce {
		set, _, err := idempotency.Once(ctx, m.answers, idempotency.Caller{}, func(tx *db.Tx) (Added, error) {
			return addContacts(tx, caller.Tenant, group, list[first:first+contactsAtOnce], m.clock.Now(), quotas.Contacts)
		})
		if err != nil {
			return Added{}, false, err
		}
		before.add(set, first)
	}
	return idempotency.Once(ctx, m.answers, caller, func(tx *db.Tx) (Added, error) {
		last, err := addContacts(tx, caller.Tenant, group, list[first:], m.clock.Now(), quotas.Contacts)
		added := before.clone()
		added.add(last, first)
		if err == nil && len(added.Bad) > 0 && added.New+added.Duplicates == 0 {
			err = problem.Field("contacts", "must have at least one contact that can be added: "+added.Bad[0].Text)
		}
		return added, err
	})
}

// add counts a set in whose first row comes after so many of the list.
func (a *Added) add(set Added, after int) {
	a.New += set.New
	a.Duplicates += set.Duplicates
	a.contacts = append(a.contacts, set.contacts...)
	for _, b := range set.Bad {
		a.Bad = append(a.Bad, BadContact{Row: after + b.Row, Text: b.Text})
	}
}

func (a Added) clone() Added {
	a.Bad, a.contacts = slices.Clone(a.Bad), slices.Clone(a.contacts)
	return a
}

// addContacts adds a list of at most a set to a group; quota is the most contacts of the tenant, 0 is no bound.
func addContacts(tx *db.Tx, tenant, group string, list []NewContact, now time.Time, quota int64) (Added, error) {
	g, err := lockGroup(tx, tenant, group)
	if err != nil {
		return Added{}, err
	}
	var added Added
	fresh := distinct(g, list, now, &added)
	if fresh, err = unknownTo(tx, g, fresh, &added); err != nil {
		return Added{}, err
	}
	if g.Contacts+int64(len(fresh)) > MaxContacts {
		return Added{}, problem.Field("contacts", fmt.Sprintf("do not fit: a group may have at most %d contacts", MaxContacts))
	}
	if err := roomForContacts(tx, tenant, len(fresh), quota); err != nil {
		return Added{}, err
	}
	for rest := fresh; len(rest) > 0; {
		n := min(len(rest), contactsAtOnce)
		db.Insert(tx, "contacts", contactColumns, rest[:n])
		rest = rest[n:]
	}
	tx.Defer(growGroup, 1, tenant, g.ID, len(fresh))
	added.New, added.contacts = len(fresh), fresh
	return added, nil
}

// distinct reads the numbers of a list, each once.
func distinct(g Group, list []NewContact, now time.Time, added *Added) []Contact {
	seen := make(map[msisdn.MSISDN]bool, len(list))
	contacts := make([]Contact, 0, len(list))
	for i, n := range list {
		c, err := n.contact(g, now)
		switch {
		case err != nil:
			added.Bad = append(added.Bad, BadContact{Row: i + 1, Text: err.Error()})
		case seen[c.MSISDN]:
			added.Duplicates++
		default:
			seen[c.MSISDN] = true
			contacts = append(contacts, c)
		}
	}
	return contacts
}

// unknownTo leaves out what the group has already.
func unknownTo(tx *db.Tx, g Group, contacts []Contact, added *Added) ([]Contact, error) {
	known := map[msisdn.MSISDN]bool{}
	for rest := contacts; len(rest) > 0; {
		n := min(len(rest), contactsAtOnce)
		numbers := make([]string, n)
		for i, c := range rest[:n] {
			numbers[i] = string(c.MSISDN)
		}
		if err := tx.Query(knownNumbers, []any{g.Tenant, g.ID, numbers}, func(r *db.Row) error {
			var number string
			if err := r.Scan(&number); err != nil {
				return err
			}
			known[msisdn.MSISDN(number)] = true
			return nil
		}); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	fresh := contacts[:0]
	for _, c := range contacts {
		if known[c.MSISDN] {
			added.Duplicates++
			continue
		}
		fresh = append(fresh, c)
	}
	return fresh, nil
}

// AddContact adds one number; one that the group has already is a Duplicate. replayed says that the
// caller's Idempotency-Key added it before: it is then as it was.
func (m *Messaging) AddContact(ctx context.Context, caller idempotency.Caller, group string, n NewContact) (made Contact, replayed bool, err error) {
	quotas, err := m.quotasOf(ctx, caller.Tenant)
	if err != nil {
		return Contact{}, false, err
	}
	return idempotency.Once(db.Bulk(ctx, caller.Tenant), m.answers, caller, func(tx *db.Tx) (Contact, error) {
		added, err := addContacts(tx, caller.Tenant, group, []NewContact{n}, m.clock.Now(), quotas.Contacts)
		switch {
		case err != nil:
			return Contact{}, err
		case len(added.Bad) > 0:
			if _, err := msisdn.Parse(n.Phone); err != nil {
				return Contact{}, problem.Field("phone_number", err.Error())
			}
			return Contact{}, problem.Field("first_name", added.Bad[0].Text)
		case added.Duplicates > 0:
			return Contact{}, problem.New(problem.Duplicate, "contact_exists", "This number is in the group already")
		}
		return added.contacts[0], nil
	})
}

const contactFields = `tenant, group_id, id, msisdn, first_name, last_name, email, created_at`

func (c *Contact) scan(r *db.Row) error {
	return r.Scan(&c.Tenant, &c.GroupID, &c.ID, &c.MSISDN, &c.FirstName, &c.LastName, &c.Email, &c.CreatedAt)
}

const listContacts = `SELECT ` + contactFields + ` FROM contacts WHERE tenant = $1 AND group_id = $2 ORDER BY id LIMIT $3 OFFSET $4`

// Contacts gives a page of a group, oldest first, and how many contacts the group has. Pages count
// from 1 and hold 1 to 100 rows.
func (m *Messaging) Contacts(ctx context.Context, tenant, group string, page, size int64) (contacts []Contact, total int64, err error) {
	size = min(max(size, 1), maxContactsPage)
	page = max(page, 1)
	err = m.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		g, err := ownGroup(tx, selectGroup, tenant, group)
		if err != nil {
			return err
		}
		contacts, total = nil, g.Contacts
		return tx.Query(listContacts, []any{tenant, group, size, (page - 1) * size}, func(r *db.Row) error {
			var c Contact
			if err := c.scan(r); err != nil {
				return err
			}
			contacts = append(contacts, c)
			return nil
		})
	})
	return contacts, total, err
}

const selectContact = `SELECT ` + contactFields + ` FROM contacts WHERE id = $1
	AND NOT EXISTS (SELECT 1 FROM contact_groups g WHERE g.tenant = contacts.tenant AND g.id = contacts.group_id AND g.deleted_at <> 0)`

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

// UpdateContact changes what is not empty of a contact.
func (m *Messaging) UpdateContact(ctx context.Context, tenant, id string, n NewContact) (Contact, error) {
	var c Contact
	err := m.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		var err error
		if c, err = lockContact(tx, tenant, id); err != nil {
			return err
		}
		if n.Phone != "" {
			if c.MSISDN, err = msisdn.Parse(n.Phone); err != nil {
				return problem.Field("phone_number", err.Error())
			}
		}
		if !label.Storable(n.FirstName + n.LastName + n.Email) {
			return problem.Field("first_name", "must not hold control characters")
		}
		if utf8.RuneCountInString(n.Email) > MaxEmail {
			return problem.Field("email", fmt.Sprintf("must be at most %d characters", MaxEmail))
		}
		if n.FirstName != "" {
			c.FirstName = label.Cut(n.FirstName, maxPersonName)
		}
		if n.LastName != "" {
			c.LastName = label.Cut(n.LastName, maxPersonName)
		}
		if n.Email != "" {
			c.Email = strings.TrimSpace(n.Email)
		}
		_, err = tx.Exec(updateContact, tenant, id, string(c.MSISDN), c.FirstName, c.LastName, c.Email)
		return err
	})
	if errors.Is(err, db.ErrUnique) {
		return Contact{}, problem.New(problem.Duplicate, "contact_exists", "This number is in the group already")
	}
	return c, err
}

const deleteContact = `DELETE FROM contacts WHERE tenant = $1 AND id = $2`

// DeleteContact removes a contact from its group.
func (m *Messaging) DeleteContact(ctx context.Context, tenant, id string) error {
	return m.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		c, err := lockContact(tx, tenant, id)
		if err != nil {
			return err
		}
		tx.Defer(deleteContact, 1, tenant, id)
		tx.Defer(growGroup, 1, tenant, c.GroupID, -1)
		return nil
	})
}
