package batch

import (
	"context"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const (
	voidAll = `UPDATE batches SET status = 'void', version = version + 1, changed_at = $1, ended_at = $1 WHERE status IN ('draft', 'requested')`

	pauseAll = `UPDATE batches SET status = 'paused', cause = 'recovery', version = version + 1, changed_at = $1, paused_at = CASE WHEN paused_at = 0 THEN $1 ELSE paused_at END
WHERE status IN ('running', 'paused')`
)

// RecoveryBegan voids unsent batches and pauses running ones, in the transaction that starts a recovery. A batch may
// have been approved, sent or cancelled before the restore.
func RecoveryBegan(tx *db.Tx, c *clock.Clock) {
	now := db.Micros(c.Now())
	tx.Defer(voidAll, -1, now)
	tx.Defer(pauseAll, -1, now)
}

// notClosed refuses while a recovery is closed. In an open recovery each row is searched at every provider before it
// is sent.
func (s *Batches) notClosed(ctx context.Context) error {
	if s.recovery == nil {
		return nil
	}
	state, err := s.recovery.State(ctx)
	if err == nil && state.Closed() {
		err = problem.New(problem.Unavailable, "recovering", "The service is being recovered: try again later")
	}
	return err
}

const countUndecided = `SELECT count(*) FROM batch_rows r JOIN batches b ON b.id = r.batch WHERE b.status IN ('running', 'paused') AND b.cause = 'recovery' AND r.state = 'ready'`

// Undecided counts the rows of batches that a recovery paused. The recovery can end only after each of them was
// searched at every provider and sent, or canceled.
func Undecided(ctx context.Context, d *db.DB) (rows int, err error) {
	_, err = d.ReadOne(ctx, countUndecided, nil, &rows)
	return rows, err
}
