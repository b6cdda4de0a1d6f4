package messaging

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
)

// SenderStatus is where a sender ID is in its review. Stored; never renamed.
type SenderStatus string

// The states of a sender ID: pending -> approved or rejected. A rejected name may be asked for again.
const (
	SenderPending  SenderStatus = "pending"
	SenderApproved SenderStatus = "approved"
	SenderRejected SenderStatus = "rejected"
)

// MaxSenderName is the most characters of a sender ID: what the handset's header holds.
const MaxSenderName = 11

// maxDescription is the most characters of a purpose; a longer one is cut.
const maxDescription = 500

// Sender is a name under which a tenant sends.
type Sender struct {
	Tenant      string
	ID          string
	Name        string
	Description string
	Status      SenderStatus
	Reason      string // of a rejection, in the reviewer's words
	CreatedAt   time.Time
	ReviewedAt  time.Time // zero while pending
	Reviewer    string
}

// CheckSenderName refuses a name that no operator would carry, or that pretends to be a network, a
// mobile money service or a brand.
func CheckSenderName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxSenderName {
		return problem.Field("name", "must have 1 to 11 characters")
	}
	letter := false
	for _, r := range name {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		letter = letter || isLetter
		if !isLetter && (r < '0' || r > '9') && !strings.ContainsRune(" .-&", r) {
			// A look-alike from another alphabet is named as what it pretends to be, if it does.
			if word, bad := forbiddenWord(name); bad {
				return forbiddenName(word)
			}
			return problem.Field("name", "may have letters, digits, spaces and . - & only")
		}
	}
	if !letter {
		return problem.Field("name", "must have at least one letter")
	}
	if word, bad := forbiddenWord(name); bad {
		return forbiddenName(word)
	}
	return nil
}

// forbiddenName ends with the lower-case word, which clients read.
func forbiddenName(word string) error {
	message := "The name contains a forbidden word: " + word
	return &problem.Error{Kind: problem.Invalid, Code: "forbidden_word", Message: message, Fields: map[string][]string{"name": {message}}}
}

const insertSender = `INSERT INTO sender_ids (tenant, id, name, folded, description, status, reason, created_at, reviewed_at, reviewer)
	VALUES ($1, $2, $3, $4, $5, 'pending', '', $6, 0, '')`

// RequestSender asks for a sender ID; an operator reviews it. A name that the tenant asked for before,
// in any case, and that was not rejected is a Duplicate. replayed says that the caller's Idempotency-Key
// asked for it before: it is then as it was.
func (m *Messaging) RequestSender(ctx context.Context, caller idempotency.Caller, name, description string) (asked Sender, replayed bool, err error) {
	name = strings.TrimSpace(name)
	if err := CheckSenderName(name); err != nil {
		return Sender{}, false, err
	}
	s := Sender{Tenant: caller.Tenant, ID: uuid.Must(uuid.NewV7()).String(), Name: name, Description: cut(description, maxDescription),
		Status: SenderPending, CreatedAt: m.clock.Now()}
	quotas, err := m.quotasOf(ctx, s.Tenant)
	if err != nil {
		return Sender{}, false, err
	}
	asked, replayed, err = idempotency.Once(ctx, m.answers, caller, func(tx *db.Tx) (Sender, error) {
		if err := roomForSender(tx, s.Tenant, quotas.Senders); err != nil {
			return Sender{}, err
		}
		_, err := tx.Exec(insertSender, s.Tenant, s.ID, s.Name, strings.ToLower(s.Name), s.Description, s.CreatedAt)
		return s, err
	})
	if errors.Is(err, db.ErrUnique) {
		err = problem.New(problem.Duplicate, "sender_id_exists", "You have already requested this sender id")
	}
	return asked, replayed, err
}

// CreateSender makes an approved sender ID in tx, where the caller also writes the audit entry: an operator brings a
// customer's over, with the id that the customer's programs have in their configuration. s has Tenant, ID (a UUID), Name
// and Description. An id that is taken, or a name that the tenant has, is a Duplicate.
func (m *Messaging) CreateSender(tx *db.Tx, s Sender, reason, reviewer string) (Sender, error) {
	s.Name = strings.TrimSpace(s.Name)
	id, err := givenID(s.ID)
	if err != nil {
		return Sender{}, err
	}
	if err := CheckSenderName(s.Name); err != nil {
		return Sender{}, err
	}
	if _, err := m.tenants.Locked(tx, s.Tenant); err != nil {
		return Sender{}, err
	}
	taken := false
	if err := tx.Query(findSender, []any{id}, func(*db.Row) error { taken = true; return nil }); err != nil {
		return Sender{}, err
	}
	s.ID, s.CreatedAt, s.Description = id, m.clock.Now(), cut(s.Description, maxDescription)
	s.Status, s.Reason, s.ReviewedAt, s.Reviewer = SenderApproved, cut(reason, maxDescription), s.CreatedAt, reviewer
	if !taken {
		_, err = tx.Exec(insertSender, s.Tenant, s.ID, s.Name, strings.ToLower(s.Name), s.Description, s.CreatedAt)
	}
	if taken || errors.Is(err, db.ErrUnique) {
		return Sender{}, problem.New(problem.Duplicate, "sender_id_exists", "There is a sender id with this id, or this name at this customer")
	}
	tx.Defer(reviewSender, 1, s.Tenant, s.ID, string(s.Status), s.Reason, s.ReviewedAt, s.Reviewer)
	tx.AfterCommit(func() { m.senders.Forget(senderKey{s.Tenant, s.ID}) })
	return s, err
}

// givenID reads an id that an operator gives, in any spelling of a UUID.
func givenID(text string) (string, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return "", problem.Field("id", "must be a UUID")
	}
	return id.String(), nil
}

const senderColumns = `tenant, id, name, description, status, reason, created_at, reviewed_at, reviewer`

func (s *Sender) scan(r *db.Row) error {
	return r.Scan(&s.Tenant, &s.ID, &s.Name, &s.Description, &s.Status, &s.Reason, &s.CreatedAt, &s.ReviewedAt, &s.Reviewer)
}

// Approved names come first: real clients send with the first row they find.
const listSenders = `SELECT ` + senderColumns + ` FROM sender_ids WHERE tenant = $1
	ORDER BY CASE status WHEN 'approved' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, created_at DESC, id DESC LIMIT 1000`

// Senders gives the tenant's sender IDs, approved ones first, newest first within a status.
func (m *Messaging) Senders(ctx context.Context, tenant string) ([]Sender, error) {
	return m.querySenders(ctx, listSenders, tenant)
}

const listPendingSenders = `SELECT ` + senderColumns + ` FROM sender_ids WHERE status = 'pending' ORDER BY created_at, id LIMIT $1`

// PendingSenders gives what waits for a review, oldest first.
func (m *Messaging) PendingSenders(ctx context.Context, limit int) ([]Sender, error) {
	return m.querySenders(ctx, listPendingSenders, limit)
}

func (m *Messaging) querySenders(ctx context.Context, sql string, args ...any) ([]Sender, error) {
	var all []Sender
	err := m.db.Read(ctx, func(tx *db.Tx) error {
		all = nil
		return tx.Query(sql, args, func(r *db.Row) error {
			var s Sender
			if err := s.scan(r); err != nil {
				return err
			}
			all = append(all, s)
			return nil
		})
	})
	return all, err
}

const findSender = `SELECT ` + senderColumns + ` FROM sender_ids WHERE id = $1`

// Sender gives a sender ID of anybody, for operators.
func (m *Messaging) Sender(ctx context.Context, id string) (Sender, error) {
	list, err := m.querySenders(ctx, findSender, id)
	if err != nil {
		return Sender{}, err
	}
	if len(list) == 0 {
		return Sender{}, noSender()
	}
	return list[0], nil
}

func noSender() error {
	return problem.New(problem.NotFound, "sender_id_not_found", "Sender id not found")
}

const selectSender = `SELECT ` + senderColumns + ` FROM sender_ids WHERE tenant = $1 AND id = $2`

const reviewSender = `UPDATE sender_ids SET status = $3, reason = $4, reviewed_at = $5, reviewer = $6
	WHERE tenant = $1 AND id = $2 AND status = 'pending'`

// ReviewSender decides a pending sender ID in tx, where the caller also writes the audit entry. A
// rejection needs a reason, which the tenant sees.
func (m *Messaging) ReviewSender(tx *db.Tx, tenant, id string, to SenderStatus, reason, reviewer string) (Sender, error) {
	if to != SenderApproved && to != SenderRejected {
		return Sender{}, problem.Field("status", "must be approved or rejected")
	}
	if to == SenderRejected && strings.TrimSpace(reason) == "" {
		return Sender{}, problem.Field("reason", "is required for a rejection: the customer reads it")
	}
	var s Sender
	found := false
	err := tx.Query(selectSender+tx.ForUpdate(), []any{tenant, id}, func(r *db.Row) error {
		found = true
		return s.scan(r)
	})
	if err != nil {
		return Sender{}, err
	}
	if !found {
		return Sender{}, noSender()
	}
	if s.Status != SenderPending {
		return Sender{}, problem.New(problem.Duplicate, "sender_id_reviewed", "This sender id was reviewed before: it is "+string(s.Status))
	}
	s.Status, s.Reason, s.ReviewedAt, s.Reviewer = to, cut(reason, maxDescription), m.clock.Now(), reviewer
	tx.Defer(reviewSender, 1, tenant, id, string(to), s.Reason, s.ReviewedAt, reviewer)
	tx.AfterCommit(func() { m.senders.Forget(senderKey{tenant, id}) })
	return s, nil
}

// senderKey finds a sender ID in the cache.
type senderKey struct{ tenant, id string }

// loadSender reads one sender ID; an unknown one is remembered as one without an id.
func (m *Messaging) loadSender(ctx context.Context, k senderKey) (Sender, error) {
	var s Sender
	err := m.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Query(selectSender, []any{k.tenant, k.id}, s.scan)
	})
	return s, err
}

// approved gives an approved sender ID of the tenant, as it was at most a second ago.
func (m *Messaging) approved(ctx context.Context, field, tenant, id string) (Sender, error) {
	s, err := m.senders.Get(ctx, senderKey{tenant, id})
	if err != nil {
		return Sender{}, err
	}
	if s.ID == "" || s.Status != SenderApproved {
		return Sender{}, &problem.Error{Kind: problem.Invalid, Code: "invalid_sender_id", Message: "Invalid sender id",
			Fields: map[string][]string{field: {"Invalid sender id"}}}
	}
	return s, nil
}

// cut shortens a label to so many characters.
func cut(s string, most int) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most]))
}
