// Package senderid keeps the names under which tenants send texts. A tenant requests a name, an operator approves or
// rejects it, and only an approved name may send. A name that imitates a network, a mobile money service, one of its
// brands or the state is refused before the review. The review page marks names that resemble such a word.
//
// A review takes effect on every node within a second.
package senderid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// Status is the state of a sender ID's review. Values are stored and never renamed.
type Status string

// The states of a sender ID: pending, then approved or rejected. A rejected name may be requested again.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Rejected Status = "rejected"
)

// Class is the class of a sender ID. Values are stored and never renamed.
type Class string

// The classes. Texts of promotional sender IDs are sent only within certain hours.
const (
	Transactional Class = "transactional"
	Promotional   Class = "promotional"
)

const (
	// freshness is the greatest age of a cached sender ID.
	freshness = time.Second
	// cached is how many sender IDs a node remembers at once.
	cached = 10_000
	// maxText is the maximum length of a purpose and of a reason, in characters. A longer text is cut.
	maxText = 500
)

// Sender is a name under which a tenant sends.
type Sender struct {
	Tenant      string
	ID          string
	Name        string
	Description string
	Status      Status
	Class       Class
	Reason      string // of a rejection, as the reviewer wrote it
	CreatedAt   time.Time
	ReviewedAt  time.Time // zero while pending
	Reviewer    string
}

// Store keeps the sender IDs of all tenants. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	tenants *tenant.Store
	answers *idempotency.Answers
	clock   *clock.Clock
	quotas  config.Quotas
	senders *cache.Cache[key, Sender]
}

// New makes a store. quotas are the installation's; a tenant may have its own.
func New(d *db.DB, tenants *tenant.Store, answers *idempotency.Answers, c *clock.Clock, quotas config.Quotas) *Store {
	s := &Store{db: d, tenants: tenants, answers: answers, clock: c, quotas: quotas}
	s.senders = cache.New(c, freshness, cached, s.load)
	return s
}

const (
	insertSender = `INSERT INTO sender_ids (tenant, id, name, folded, description, status, reason, created_at, reviewed_at, reviewer)
	VALUES ($1, $2, $3, $4, $5, 'pending', '', $6, 0, '')`
	countSenders = `SELECT count(*) FROM sender_ids WHERE tenant = $1`
)

// Stored returns the number of sender IDs of a tenant, including rejected ones, and the limit.
func (s *Store) Stored(ctx context.Context, tenantID string) (stored tenant.Stored, err error) {
	t, err := s.tenants.Get(ctx, tenantID)
	if err != nil {
		return stored, err
	}
	stored.Most = t.Quotas.Over(s.quotas).Senders
	_, err = s.db.ReadOne(ctx, countSenders, []any{tenantID}, &stored.Used)
	return stored, err
}

// Request stores a sender ID for review by an operator. A name that the tenant requested before, in any case, and
// that was not rejected is a Duplicate. replayed reports that the caller's Idempotency-Key was used before; the
// earlier result is then returned.
func (s *Store) Request(ctx context.Context, caller idempotency.Caller, name, description string) (asked Sender, replayed bool, err error) {
	name = strings.TrimSpace(name)
	if err := CheckName(name); err != nil {
		return Sender{}, false, err
	}
	t, err := s.tenants.Get(ctx, caller.Tenant)
	if err != nil {
		return Sender{}, false, err
	}
	most := t.Quotas.Over(s.quotas).Senders
	full := problem.Field("name", fmt.Sprintf("cannot be requested: an account may have at most %d sender IDs, those rejected among them", most))
	n := Sender{Tenant: caller.Tenant, ID: uuid.Must(uuid.NewV7()).String(), Name: name, Description: usertext.Cut(description, maxText),
		Status: Pending, Class: Transactional, CreatedAt: s.clock.Now()}
	asked, replayed, err = idempotency.Once(ctx, s.answers, caller, func(tx *db.Tx) (Sender, error) {
		if err := tenant.Room(tx, countSenders, n.Tenant, 1, most, full); err != nil {
			return Sender{}, err
		}
		return n, insert(tx, n)
	})
	if errors.Is(err, db.ErrUnique) {
		err = problem.New(problem.Duplicate, "sender_id_exists", "You have already requested this sender id")
	}
	return asked, replayed, err
}

// insert makes the row of a sender ID that waits for a review.
func insert(tx *db.Tx, n Sender) error {
	_, err := tx.Exec(insertSender, n.Tenant, n.ID, n.Name, strings.ToLower(n.Name), n.Description, n.CreatedAt)
	return err
}

const senderColumns = `tenant, id, name, description, status, reason, created_at, reviewed_at, reviewer, class`

func (n *Sender) scan(r *db.Row) error {
	return r.Scan(&n.Tenant, &n.ID, &n.Name, &n.Description, &n.Status, &n.Reason, &n.CreatedAt, &n.ReviewedAt, &n.Reviewer, &n.Class)
}

const (
	// Approved names come first: real clients send with the first row they find.
	listSenders = `SELECT ` + senderColumns + ` FROM sender_ids WHERE tenant = $1
	ORDER BY CASE status WHEN 'approved' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, created_at DESC, id DESC LIMIT 1000`
	listPending  = `SELECT ` + senderColumns + ` FROM sender_ids WHERE status = 'pending' ORDER BY created_at, id LIMIT $1`
	findSender   = `SELECT ` + senderColumns + ` FROM sender_ids WHERE id = $1`
	selectSender = `SELECT ` + senderColumns + ` FROM sender_ids WHERE tenant = $1 AND id = $2`
)

// List gives the tenant's sender IDs, approved ones first, newest first within a status.
func (s *Store) List(ctx context.Context, tenant string) ([]Sender, error) {
	return s.query(ctx, listSenders, tenant)
}

// Waiting gives at most limit sender IDs that wait for a review, oldest first.
func (s *Store) Waiting(ctx context.Context, limit int) ([]Sender, error) {
	return s.query(ctx, listPending, limit)
}

// Find gives a sender ID of any tenant, for operators.
func (s *Store) Find(ctx context.Context, id string) (Sender, error) {
	list, err := s.query(ctx, findSender, id)
	if err == nil && len(list) == 0 {
		err = errNotFound()
	}
	if err != nil {
		return Sender{}, err
	}
	return list[0], nil
}

func (s *Store) query(ctx context.Context, sql string, args ...any) ([]Sender, error) {
	return db.ReadAll(ctx, s.db, sql, args, (*Sender).scan)
}

func errNotFound() error {
	return problem.New(problem.NotFound, "sender_id_not_found", "Sender id not found")
}

// key finds a sender ID in the cache.
type key struct{ tenant, id string }

// load reads one sender ID. An unknown one is cached without an id.
func (s *Store) load(ctx context.Context, k key) (Sender, error) {
	var n Sender
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Query(selectSender, []any{k.tenant, k.id}, n.scan)
	})
	return n, err
}

// Usable returns an approved sender ID of the tenant, at most a second old. It refuses any other with an error of the
// field that names it.
func (s *Store) Usable(ctx context.Context, field, tenant, id string) (Sender, error) {
	n, err := s.senders.Get(ctx, key{tenant, id})
	if err != nil {
		return Sender{}, err
	}
	if n.ID == "" || n.Status != Approved {
		return Sender{}, &problem.Error{Kind: problem.Invalid, Code: "invalid_sender_id", Message: "Invalid sender id",
			Fields: map[string][]string{field: {"Invalid sender id"}}}
	}
	return n, nil
}
