package batch

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

const (
	sweepEvery = 10 * time.Minute
	// unboundTime is how long the rows of an upload may belong to no batch yet.
	unboundTime = 24 * time.Hour
	// unboundFor is how long the sweep searches for such rows after that.
	unboundFor = 7 * 24 * time.Hour
	// keepTime is how long the rows of a batch that is over are kept.
	keepTime = 90 * 24 * time.Hour
	// lookupDays is for how many days the numbers of lookups are kept.
	lookupDays = 7
	// sweptAtOnce is the limit of one sweep for each kind of row.
	sweptAtOnce = 50
)

const (
	oldDrafts = `SELECT tenant, id FROM batches WHERE status = 'draft' AND changed_at < $1 ORDER BY id LIMIT $2`

	longPaused = `SELECT tenant, id FROM batches WHERE status = 'paused' AND paused_at < $1 AND cause <> 'recovery' ORDER BY id LIMIT $2`

	// The ids of batches increase with time.
	unboundRows = `DELETE FROM batch_rows WHERE batch BETWEEN $1 AND $2 AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.id = batch_rows.batch)`

	namedBatches = `SELECT tenant, id FROM batches WHERE ended_at BETWEEN 1 AND $1 AND EXISTS (
	SELECT 1 FROM batch_rows r WHERE r.batch = batches.id AND r.account <> '') ORDER BY id LIMIT $2`

	eraseBatch = `UPDATE batch_rows SET ` + erasedRow + ` WHERE batch = $1 AND account <> ''`
)

// sweep ends drafts after seven days, and paused batches after the same time, except those of a recovery. It deletes
// rows of interrupted uploads and files whose columns nobody confirmed, and erases people from batches that ended long ago.
func (s *Batches) sweep(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	now := s.clock.Now()
	err := s.eachOf(ctx, oldDrafts, now.Add(-draftTime), s.Discard)
	err = errors.Join(err, s.eachOf(ctx, longPaused, now.Add(-pauseTime), func(ctx context.Context, tenant, id string) error {
		return s.Cancel(ctx, tenant, id, "it was paused for seven days", "the program", nil)
	}))
	err = errors.Join(err, s.eachOf(ctx, namedBatches, now.Add(-keepTime), func(ctx context.Context, _, id string) error {
		_, err := s.db.Exec(ctx, eraseBatch, id)
		return err
	}))
	err = errors.Join(err, s.db.Write(ctx, func(tx *db.Tx) error {
		before := book.NewID(now.Add(-fileTime))
		if _, err := tx.Exec(oldParts, before); err != nil {
			return err
		}
		if _, err := tx.Exec(oldFiles, before); err != nil {
			return err
		}
		_, err := tx.Exec(oldLookups, dayOf(s.clock)-lookupDays)
		return err
	}))
	return errors.Join(err, s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(unboundRows, book.NewID(now.Add(-unboundTime-unboundFor)), book.NewID(now.Add(-unboundTime)))
		return err
	}))
}

// eachOf processes the batches that a statement lists. It skips a batch that changed meanwhile.
func (s *Batches) eachOf(ctx context.Context, sql string, before time.Time, do func(ctx context.Context, tenant, id string) error) error {
	list, err := db.ReadAll(ctx, s.db, sql, []any{db.Micros(before), int64(sweptAtOnce)}, func(of *[2]string, r *db.Row) error {
		return r.Scan(&of[0], &of[1])
	})
	for _, of := range list {
		if one := do(ctx, of[0], of[1]); one != nil && !problem.Is(one, problem.Invalid) && !problem.Is(one, problem.InProgress) {
			err = errors.Join(err, one)
		}
	}
	return err
}
