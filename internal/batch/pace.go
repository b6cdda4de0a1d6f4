package batch

import (
	"context"
	"sync/atomic"
	"time"
)

// Payments of others wait while a set is accepted: SQLite has one writer, and a wallet one group commit. So a set takes about
// setTime on every machine, and a pause of the same length follows it.
const (
	setTime   = 5 * time.Millisecond
	setRows   = 100 // maximum number of rows in a set
	leastRows = 5

	pauseTimes = 2
	mostPause  = 500 * time.Millisecond
)

// pace chooses the size of the next set of rows from the duration of the last set. All batches of a node share it. It
// is safe for concurrent use.
type pace struct {
	time time.Duration // time that one set should take; 0: sets have the maximum size, without pauses
	most int           // rows
	next atomic.Int64  // size of the next set; 0: no set was accepted yet
}

// rows returns the number of rows of the next set.
func (p *pace) rows() int {
	if p.time == 0 {
		return p.most
	}
	return min(p.most, max(leastRows, int(p.next.Load())))
}

// took sets the number of rows of the next set, at most twice that of this one, and returns the pause before it.
func (p *pace) took(rows int, took time.Duration) (pause time.Duration) {
	if p.time == 0 || rows == 0 {
		return 0
	}
	p.next.Store(int64(min(2*rows, max(leastRows, rows*int(p.time)/max(1, int(took))))))
	return min(pauseTimes*took, mostPause)
}

// rest waits so that other payments get their turn. It uses real time, as the measurement of the sets does.
func rest(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
