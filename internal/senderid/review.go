package senderid

import (
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

const reviewSender = `UPDATE sender_ids SET status = $3, reason = $4, reviewed_at = $5, reviewer = $6
	WHERE tenant = $1 AND id = $2 AND status = 'pending'`

// Review decides a pending sender ID in tx, where the caller also writes the audit entry. A rejection needs a reason,
// which the tenant sees.
func (s *Store) Review(tx *db.Tx, tenant, id string, to Status, reason, reviewer string) (Sender, error) {
	if to != Approved && to != Rejected {
		return Sender{}, problem.Field("status", "must be approved or rejected")
	}
	if to == Rejected && strings.TrimSpace(reason) == "" {
		return Sender{}, problem.Field("reason", "is required for a rejection: the customer reads it")
	}
	var n Sender
	if err := tx.Query(selectSender+tx.ForUpdate(), []any{tenant, id}, n.scan); err != nil {
		return Sender{}, err
	}
	if n.ID == "" {
		return Sender{}, errNotFound()
	}
	if n.Status != Pending {
		return Sender{}, problem.New(problem.Duplicate, "sender_id_reviewed", "This sender id was reviewed before: it is "+string(n.Status))
	}
	return s.decide(tx, n, to, reason, reviewer), nil
}

// decide defers the review of a sender ID whose row is pending at that time.
func (s *Store) decide(tx *db.Tx, n Sender, to Status, reason, reviewer string) Sender {
	n.Status, n.Reason, n.ReviewedAt, n.Reviewer = to, usertext.Cut(reason, maxText), s.clock.Now(), reviewer
	tx.Defer(reviewSender, 1, n.Tenant, n.ID, string(n.Status), n.Reason, n.ReviewedAt, n.Reviewer)
	tx.AfterCommit(func() { s.senders.Forget(key{n.Tenant, n.ID}) })
	return n
}

const setClass = `UPDATE sender_ids SET class = $3 WHERE tenant = $1 AND id = $2`

// SetClass sets the class of a sender ID in tx, where the caller also writes the audit entry. It returns the sender ID
// as it was.
func (s *Store) SetClass(tx *db.Tx, tenant, id string, to Class) (Sender, error) {
	if to != Transactional && to != Promotional {
		return Sender{}, problem.Field("class", "must be transactional or promotional")
	}
	var n Sender
	if err := tx.Query(selectSender+tx.ForUpdate(), []any{tenant, id}, n.scan); err != nil {
		return Sender{}, err
	}
	if n.ID == "" {
		return Sender{}, errNotFound()
	}
	tx.Defer(setClass, 1, tenant, id, string(to))
	tx.AfterCommit(func() { s.senders.Forget(key{tenant, id}) })
	return n, nil
}

// Create makes an approved sender ID in tx, where the caller also writes the audit entry. An operator uses it to move
// a customer's sender ID here, with the id in the customer's programs. n has Tenant, ID (a UUID), Name and
// Description. An existing id, or an existing name of the tenant, is a Duplicate.
func (s *Store) Create(tx *db.Tx, n Sender, reason, reviewer string) (Sender, error) {
	id, err := uuid.Parse(n.ID)
	if err != nil {
		return Sender{}, problem.Field("id", "must be a UUID")
	}
	n.ID, n.Name, n.Description, n.CreatedAt = id.String(), strings.TrimSpace(n.Name), usertext.Cut(n.Description, maxText), s.clock.Now()
	n.Class = Transactional
	if err := CheckName(n.Name); err != nil {
		return Sender{}, err
	}
	if _, err := s.tenants.Locked(tx, n.Tenant); err != nil {
		return Sender{}, err
	}
	var there Sender
	if err := tx.Query(findSender, []any{n.ID}, there.scan); err != nil {
		return Sender{}, err
	}
	taken := problem.New(problem.Duplicate, "sender_id_exists", "There is a sender id with this id, or this name at this customer")
	if there.ID != "" {
		return Sender{}, taken
	}
	if err := insert(tx, n); errors.Is(err, db.ErrUnique) {
		return Sender{}, taken
	} else if err != nil {
		return Sender{}, err
	}
	return s.decide(tx, n, Approved, reason, reviewer), nil
}
