package contacts

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
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// MaxBulk is the maximum number of contacts that one call adds.
const MaxBulk = 20_000

// NewContact is a requested contact. Its number is not yet parsed.
type NewContact struct {
	Phone     string
	FirstName string
	LastName  string
	Email     string
}

// BadContact is the reason why one of several contacts was not added; Row counts from 1.
type BadContact struct {
	Row  int
	Text string
}

// Added is the result of adding a list of contacts.
type Added struct {
	New        int
	Duplicates int // numbers that the group, or an earlier row of the list, had already
	Bad        []BadContact
}

// count adds the result of a set. after is the number of rows before the set.
func (a *Added) count(set Added, after int) {
	a.New += set.New
	a.Duplicates += set.Duplicates
	for _, b := range set.Bad {
		a.Bad = append(a.Bad, BadContact{Row: after + b.Row, Text: b.Text})
	}
}

// contact reads a new contact, or returns the reason why it is invalid.
func (n NewContact) contact(g Group, now time.Time) (Contact, error) {
	number, err := msisdn.Parse(n.Phone)
	if err != nil {
		return Contact{}, fmt.Errorf("the phone number %w", err)
	}
	if !usertext.Storable(n.FirstName + n.LastName + n.Email) {
		return Contact{}, errors.New("a name or the email holds characters that cannot be stored")
	}
	if utf8.RuneCountInString(n.Email) > MaxEmail {
		return Contact{}, fmt.Errorf("the email must be at most %d characters", MaxEmail)
	}
	return Contact{Tenant: g.Tenant, GroupID: g.ID, ID: uuid.Must(uuid.NewV7()).String(), MSISDN: number, CreatedAt: now,
		FirstName: usertext.Cut(n.FirstName, maxPersonName), LastName: usertext.Cut(n.LastName, maxPersonName), Email: strings.TrimSpace(n.Email)}, nil
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

const (
	// knownNumbers searches each number separately, for the same reason as findOptOuts.
	knownNumbers = `SELECT value FROM texts($3)
	WHERE value = (SELECT c.msisdn FROM contacts c WHERE c.tenant = $1 AND c.group_id = $2 AND c.msisdn = value)`
	growGroup     = `UPDATE contact_groups SET contacts = contacts + $3 WHERE tenant = $1 AND id = $2`
	countContacts = `SELECT coalesce(sum(contacts), 0) FROM contact_groups WHERE tenant = $1`
)

// AddContacts adds a list to a group, in transactions of 1,000 rows. Other transactions can run between them, and
// rows added before an error stay. Bad rows are reported and left out. Existing numbers are counted. Both leave the
// other rows unaffected, but a list with only bad rows is Invalid. replayed means that the caller's Idempotency-Key
// added the list before.
func (s *Store) AddContacts(ctx context.Context, caller idempotency.Caller, group string, list []NewContact) (added Added, replayed bool, err error) {
	if len(list) > MaxBulk {
		return Added{}, false, problem.Field("contacts", fmt.Sprintf("must have at most %d contacts at once", MaxBulk))
	}
	quotas, err := s.quotasOf(ctx, caller.Tenant)
	if err != nil {
		return Added{}, false, err
	}
	ctx = db.Bulk(ctx, caller.Tenant)
	if len(list) > atOnce {
		if added, replayed, err = idempotency.Recall[Added](ctx, s.answers, caller); replayed || err != nil {
			return added, replayed, err
		}
	}
	var before Added // result of the sets before the last one; the last set stores the key
	first := 0
	for ; len(list)-first > atOnce; first += atOnce {
		set, err := s.addSet(ctx, caller.Tenant, group, list[first:first+atOnce], quotas.Contacts)
		if err != nil {
			return Added{}, false, err
		}
		before.count(set, first)
	}
	return idempotency.Once(ctx, s.answers, caller, func(tx *db.Tx) (Added, error) {
		last, _, err := addContacts(tx, caller.Tenant, group, list[first:], s.clock.Now(), quotas.Contacts)
		added := before
		added.Bad = slices.Clone(before.Bad)
		added.count(last, first)
		if err == nil && len(added.Bad) > 0 && added.New+added.Duplicates == 0 {
			err = problem.Field("contacts", "must have at least one contact that can be added: "+added.Bad[0].Text)
		}
		return added, err
	})
}

// addSet adds one of several sets of a list, without a key.
func (s *Store) addSet(ctx context.Context, tenant, group string, list []NewContact, quota int64) (Added, error) {
	set, _, err := idempotency.Once(ctx, s.answers, idempotency.Caller{}, func(tx *db.Tx) (Added, error) {
		added, _, err := addContacts(tx, tenant, group, list, s.clock.Now(), quota)
		return added, err
	})
	return set, err
}

// AddContact adds one number. A number that the group has already is a Duplicate. replayed means that the caller's
// Idempotency-Key added it before; the contact is then as it was.
func (s *Store) AddContact(ctx context.Context, caller idempotency.Caller, group string, n NewContact) (made Contact, replayed bool, err error) {
	quotas, err := s.quotasOf(ctx, caller.Tenant)
	if err != nil {
		return Contact{}, false, err
	}
	return idempotency.Once(db.Bulk(ctx, caller.Tenant), s.answers, caller, func(tx *db.Tx) (Contact, error) {
		added, contacts, err := addContacts(tx, caller.Tenant, group, []NewContact{n}, s.clock.Now(), quotas.Contacts)
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
		return contacts[0], nil
	})
}

// addContacts adds at most atOnce contacts to a group and returns the new ones. quota is the tenant's limit of
// contacts; 0 is none.
func addContacts(tx *db.Tx, tenantID, group string, list []NewContact, now time.Time, quota int64) (Added, []Contact, error) {
	g, err := lockGroup(tx, tenantID, group)
	if err != nil {
		return Added{}, nil, err
	}
	var added Added
	contacts := distinct(g, list, now, &added)
	if contacts, err = unknownTo(tx, g, contacts, &added); err != nil {
		return Added{}, nil, err
	}
	if g.Contacts+int64(len(contacts)) > MaxContacts {
		return Added{}, nil, problem.Field("contacts", fmt.Sprintf("do not fit: a group may have at most %d contacts", MaxContacts))
	}
	full := problem.Field("contacts", fmt.Sprintf("do not fit: an account may have at most %d contacts", quota))
	if err := tenant.Room(tx, countContacts, tenantID, int64(len(contacts)), quota, full); err != nil {
		return Added{}, nil, err
	}
	db.Insert(tx, "contacts", contactColumns, contacts)
	tx.Defer(growGroup, 1, tenantID, g.ID, len(contacts))
	added.New = len(contacts)
	return added, contacts, nil
}

// distinct parses the contacts of a list, and returns each number once.
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

// unknownTo returns the contacts whose number is not yet in the group.
func unknownTo(tx *db.Tx, g Group, contacts []Contact, added *Added) ([]Contact, error) {
	numbers := make([]msisdn.MSISDN, len(contacts))
	for i, c := range contacts {
		numbers[i] = c.MSISDN
	}
	known, err := lookUp(tx, knownNumbers, []any{g.Tenant, g.ID}, numbers)
	if err != nil {
		return nil, err
	}
	added.Duplicates += len(known)
	return slices.DeleteFunc(contacts, func(c Contact) bool { return known[c.MSISDN] }), nil
}
