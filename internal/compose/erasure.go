package compose

import (
	"context"

	"github.com/makola/makola/internal/db"
)

const (
	// sweptAtOnce is the maximum number of rows of one deletion.
	sweptAtOnce = 100
	sweepDrafts = `DELETE FROM text_drafts WHERE (tenant, id) IN (SELECT tenant, id FROM text_drafts WHERE status = 'draft' AND created_at < $1 ORDER BY created_at LIMIT $2)`
	sweepSent   = `DELETE FROM text_drafts WHERE (tenant, id) IN (SELECT tenant, id FROM text_drafts WHERE status = 'sent' AND created_at < $1 LIMIT $2)`
	// eraseNumber deletes the drafts with a number. A person can write them again without it.
	eraseNumber = `DELETE FROM text_drafts WHERE status = 'draft' AND recipients LIKE '%"' || $1 || '"%'`
)

// Sweep deletes drafts after seven days, and the rows of sent ones after 90 days.
func (s *Store) Sweep(ctx context.Context) error {
	now := s.clock.Now()
	if err := db.Prune(ctx, s.db, sweepDrafts, sweptAtOnce, now.Add(-draftTime)); err != nil {
		return err
	}
	return db.Prune(ctx, s.db, sweepSent, sweptAtOnce, now.Add(-sentTime))
}

// EraseNumber deletes the drafts that have a number, and returns how many. A requested draft keeps the number until it is sent.
func EraseNumber(tx *db.Tx, number string) (int64, error) { return tx.Exec(eraseNumber, number) }
