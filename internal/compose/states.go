package compose

import (
	"context"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/problem"
)

const (
	requestDraft  = `UPDATE text_drafts SET status = 'requested', request = $3 WHERE tenant = $1 AND id = $2 AND digest = $4 AND status = 'draft'`
	withdrawDraft = `UPDATE text_drafts SET status = 'draft', request = '' WHERE tenant = $1 AND id = $2 AND request = $3 AND status = 'requested'`
	sendDraft     = `UPDATE text_drafts SET status = 'sent', recipients = '', message = '', campaigns = $4 WHERE tenant = $1 AND id = $2 AND digest = $3 AND status = 'requested'`
)

func errChanged() error {
	return problem.New(problem.Invalid, "changed_since", "The campaign has changed since this was requested")
}

// RequestIn freezes a draft in the transaction that stores its request.
func (s *Store) RequestIn(tx *db.Tx, d Draft, request string) error {
	return one(tx, errChanged(), requestDraft, d.Tenant, d.ID, request, d.Digest)
}

// Withdraw makes the draft of a request a draft again. It does not change a draft that was sent, or that belongs to another
// request.
func (s *Store) Withdraw(tx *db.Tx, tenantID, id, request string) error {
	_, err := tx.Exec(withdrawDraft, tenantID, id, request)
	return err
}

// one runs a statement that changes one draft. It returns refused if no row matches.
func one(tx *db.Tx, refused error, sql string, args ...any) error {
	n, err := tx.Exec(sql, args...)
	if err == nil && n == 0 {
		err = refused
	}
	return err
}

// Send charges and stores the campaigns of a requested draft, and ends the draft, in one transaction. also runs in the same
// transaction. Errors: the errors of messaging's SendComposed, and Invalid with the code changed_since if the digest differs.
func (s *Store) Send(ctx context.Context, tenantID, id, digest string, also func(tx *db.Tx, p Price) error) error {
	d, err := s.Get(ctx, tenantID, id)
	if err != nil {
		return err
	}
	if d.Status != Requested || d.Digest != digest {
		return errChanged()
	}
	t, err := s.tenants.Get(ctx, tenantID)
	if err != nil {
		return err
	}
	p, err := s.filled(ctx, d)
	if err != nil {
		return err
	}
	return s.messaging.SendComposed(ctx, t, p.Composed, func(tx *db.Tx, q messaging.Quote, list []messaging.Campaign) error {
		ids := make([]string, len(list))
		for i, c := range list {
			ids[i] = c.ID
		}
		if err := one(tx, errChanged(), sendDraft, tenantID, id, digest, strings.Join(ids, ",")); err != nil {
			return err
		}
		return also(tx, Price{Filled: p, Quote: q})
	})
}
