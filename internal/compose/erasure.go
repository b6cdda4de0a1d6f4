package compose

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// sweptAtOnce is the maximum number of rows of one deletion.
	sweptAtOnce = 100
	sweepDrafts = `DELETE FROM text_drafts WHERE (tenant, id) IN (SELECT tenant, id FROM text_drafts WHERE status = 'draft' AND created_at < $1 ORDER BY created_at LIMIT $2)`
	sweepSent   = `DELETE FROM text_drafts WHERE (tenant, id) IN (SELECT tenant, id FROM text_drafts WHERE status = 'sent' AND created_at < $1 LIMIT $2)`
	// Few drafts exist at a time, so the scan is short.
	draftsOf = `SELECT tenant, id, status, created_at FROM text_drafts WHERE status <> 'sent' AND recipients LIKE '%"' || $1 || '"%' ORDER BY tenant, id`
)

const voidDrafts = `DELETE FROM text_drafts WHERE status <> 'sent'`

// RecoveryBegan deletes all unsent drafts in the transaction that begins a recovery. A draft may have been sent before the
// restore, and the approval of its request would send it again.
func RecoveryBegan(tx *db.Tx) { tx.Defer(voidDrafts, -1) }

// Named is an unsent draft that has a number among its recipients.
type Named struct {
	Tenant, ID string
	Status     Status
	CreatedAt  time.Time
}

// OfNumber calls each for every unsent draft that has the number among its recipients.
func OfNumber(ctx context.Context, d *db.DB, number string, each func(Named) error) error {
	found, err := db.ReadAll(db.Bulk(ctx, ""), d, draftsOf, []any{number}, func(n *Named, r *db.Row) error {
		return r.Scan(&n.Tenant, &n.ID, &n.Status, &n.CreatedAt)
	})
	if err != nil {
		return err
	}
	for _, n := range found {
		if err := each(n); err != nil {
			return err
		}
	}
	return nil
}

// Erase deletes a draft; a person can write it again without the number. It reports false for a requested draft, because that
// draft keeps the number until it is sent or withdrawn.
func Erase(ctx context.Context, d *db.DB, n Named) (erased bool, err error) {
	err = d.Write(db.Bulk(ctx, n.Tenant), func(tx *db.Tx) error {
		rows, err := tx.Exec(discardDraft, n.Tenant, n.ID)
		erased = rows > 0
		return err
	})
	return erased, err
}

// Sweep deletes drafts after seven days, and the rows of sent drafts after 90 days.
func (s *Store) Sweep(ctx context.Context) error {
	now := s.clock.Now()
	if err := db.Prune(ctx, s.db, sweepDrafts, sweptAtOnce, now.Add(-draftTime)); err != nil {
		return err
	}
	return db.Prune(ctx, s.db, sweepSent, sweptAtOnce, now.Add(-sentTime))
}
