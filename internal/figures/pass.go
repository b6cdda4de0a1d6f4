package figures

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

// lateOverlap is the time before the last pass from which a pass searches for late payments. The time in a
// settlement is earlier than its commit.
const lateOverlap = time.Hour

const (
	firstState = `INSERT INTO figures_state (one, passes, counted_to, late_from) VALUES (1, 0, 0, 0) ON CONFLICT (one) DO NOTHING`
	readState  = `SELECT passes, counted_to, late_from FROM figures_state`
	writeState = `UPDATE figures_state SET passes = passes + 1, counted_to = $2, late_from = $3 WHERE passes = $1`
)

// A state is the row of figures_state.
type state struct {
	passes    int64
	countedTo time.Time
	lateFrom  int64
}

func (s *state) read(tx *db.Tx) error {
	_, err := tx.One(readState, nil, &s.passes, &s.countedTo, &s.lateFrom)
	return err
}

// pass makes one pass. whole reports whether nothing remained to count when it began.
func (f *Figures) pass(ctx context.Context) (whole bool, err error) {
	now := f.clock.Now()
	var s state
	var d *difference
	err = f.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		d, whole = newDifference(now), true
		if err := s.read(tx); err != nil {
			return err
		}
		changed, err := readChanged(tx, f.most)
		if err != nil {
			return err
		}
		late, next, err := readLate(tx, s.lateFrom, f.most)
		if err != nil {
			return err
		}
		fresh, rest, err := readNew(tx, f.most)
		if err != nil {
			return err
		}
		for _, c := range append(changed, late...) {
			d.changes(c)
		}
		for _, p := range fresh {
			d.begins(p)
		}
		s.lateFrom = db.Micros(now.Add(-lateOverlap))
		if next > 0 {
			s.lateFrom = next
		}
		whole = !rest && next == 0 && len(changed) < f.most
		return nil
	})
	if err != nil {
		return false, err
	}
	if whole {
		s.countedTo = now
	}
	return whole, f.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		if s.passes == 0 {
			tx.Defer(firstState, -1)
		}
		tx.Defer(writeState, 1, s.passes, db.Micros(s.countedTo), s.lateFrom)
		d.write(tx)
		return nil
	})
}
