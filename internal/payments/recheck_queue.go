package payments

import (
	"context"
	"sync"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

// rechecksKept bounds the final payments that wait for a recheck. More than that are
// left to the sweep, which comes to every one.
const rechecksKept = 1000

// recheckers is how many final payments are asked about at once.
const recheckers = 8

// A recheckQueue has final payments that a callback spoke of. Each waits two seconds
// (providers repeat themselves, and the callback of a payment that was just
// settled is often the one that comes late), then it is asked about once.
type recheckQueue struct {
	clock   *clock.Clock
	recheck func(context.Context, book.Payment)

	mu      sync.Mutex
	queue   []dueRecheck // in order of time
	ids     map[string]bool
	running bool
	busy    int           // rechecks under way
	changed chan struct{} // closed at each change; for quiet
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
}

type dueRecheck struct {
	pay book.Payment
	at  moment
}

func newRecheckQueue(c *clock.Clock, recheck func(context.Context, book.Payment)) *recheckQueue {
	l := &recheckQueue{clock: c, recheck: recheck, ids: map[string]bool{}, changed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// soon has a payment rechecked.
func (l *recheckQueue) soon(pay book.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids[pay.ID] || len(l.ids) >= rechecksKept || l.ctx.Err() != nil {
		return
	}
	l.ids[pay.ID] = true
	l.queue = append(l.queue, dueRecheck{pay, momentOf(l.clock).Add(hintTime)})
	if !l.running {
		l.running = true
		l.group.Go(l.run)
	}
}

// run rechecks what is due until nothing waits.
func (l *recheckQueue) run() {
	slots := make(chan struct{}, recheckers)
	for {
		l.mu.Lock()
		if len(l.queue) == 0 || l.ctx.Err() != nil {
			l.running = false
			l.mu.Unlock()
			return
		}
		next := l.queue[0]
		l.mu.Unlock()
		if l.clock.Sleep(l.ctx, next.at.Sub(momentOf(l.clock))) != nil {
			continue
		}
		slots <- struct{}{}
		l.mu.Lock()
		l.queue = l.queue[1:]
		l.busy++
		delete(l.ids, next.pay.ID) // a callback from here on is news
		l.mu.Unlock()
		l.group.Go(func() {
			l.recheck(l.ctx, next.pay)
			<-slots
			l.mu.Lock()
			defer l.mu.Unlock()
			l.busy--
			close(l.changed)
			l.changed = make(chan struct{})
		})
	}
}

// quiet waits until no recheck is under way or due.
func (l *recheckQueue) quiet(ctx context.Context) error {
	for {
		l.mu.Lock()
		due := len(l.queue) > 0 && l.queue[0].at <= momentOf(l.clock)
		if l.busy == 0 && !due {
			l.mu.Unlock()
			return nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close gives up what waits and waits for what runs.
func (l *recheckQueue) close() {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.group.Wait()
}
