// Package figures counts payments and sums their amounts: by hour and day, account, kind, status and rail. Pages show them
// without reading a payment.
//
// A payment counts once, in the hour and the day in which it was accepted, with the status and the rail that it has now. A payout that is
// accepted at 09:59 and succeeds at 11:02 first counts as pending at 09:00, and after the next pass as a success at 09:00. So the figures of
// an hour equal the totals of a list of the payments accepted in that hour. A success rate compares payments that were accepted at the same
// time. Nothing is counted by the time of its settlement: the statement of an account does that.
//
// A pass runs later than the payments and never in their transactions. It reads three kinds of payments: new payments of each
// list, counted open payments whose status or rail has changed, and collections that were paid late after a failure. The last is
// the only change from one final status to another. The pass applies the differences. Sums, positions and open payments change
// in one transaction, guarded by the number of the pass. So an interrupted pass changes nothing, and only one of two concurrent
// passes takes effect.
//
// For a collection that did not succeed, a bit stores the counted status. So a late payment is moved only once.
//
// Hours are kept for KeepHours, days for good. Rebuild deletes all figures and counts the payments again.
//
// Files:
//
//	read.go      sums for pages
//	pass.go      one pass: read, difference, write
//	payments.go  the payments that a pass reads
//	cells.go     sums by hour and day, and the writes of a pass
//	figures.go   periodic passes, and a rebuild
package figures

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

const (
	// Every is the pause between two runs. The figures are behind by at most this pause and the length of a
	// run.
	Every = 5 * time.Second
	// KeepHours is how long the figures of hours are kept.
	KeepHours = 40 * 24 * time.Hour
	// passesOfRun is the maximum number of passes of one run.
	passesOfRun = 1000
)

// Figures keeps the counts and sums. It is safe for concurrent use, also by several nodes.
type Figures struct {
	db    *db.DB
	clock *clock.Clock
	most  int // payments of each kind that one pass reads
}

// New returns the figures of a database.
func New(d *db.DB, c *clock.Clock) *Figures { return &Figures{db: d, clock: c, most: 20_000} }

// Sum makes passes until nothing is left to count. If another node makes a pass at the same time, Sum ends.
func (f *Figures) Sum(ctx context.Context) error {
	for range passesOfRun {
		whole, err := f.pass(ctx)
		if errors.Is(err, db.ErrGuard) {
			return nil
		}
		if err != nil || whole {
			return err
		}
	}
	return nil
}

// The statements of a rebuild. If a pass has read its data before them, its guard fails.
var forget = []string{
	`UPDATE figures_state SET passes = passes + 1, counted_to = 0, late_from = 0`,
	`DELETE FROM figures_hours`, `DELETE FROM figures_days`, `DELETE FROM figures_lists`, `DELETE FROM figures_open`, `DELETE FROM figures_unpaid`,
}

// Rebuild deletes all figures and counts the payments again. Until it ends, pages show that the figures are
// incomplete.
func (f *Figures) Rebuild(ctx context.Context) error {
	err := f.db.Write(ctx, func(tx *db.Tx) error {
		for _, sql := range forget {
			if _, err := tx.Exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.Sum(ctx)
}
