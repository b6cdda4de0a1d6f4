package payments

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// maxHints is how many payments one callback may speak of.
const maxHints = 16

// Hint hears that a provider spoke of payments. It moves the next question about
// an open one forward and has a final one looked at again, each at most once in
// two seconds; what is unknown here, or held by another provider, is passed
// over. Nothing that the callback said is believed.
func (p *Payments) Hint(ctx context.Context, rail provider.Rail, hints []provider.Hint) error {
	for _, h := range hints[:min(len(hints), maxHints)] {
		parsed, err := uuid.Parse(h.ProviderReference) // with hyphens or without: as the provider likes it
		if err != nil {
			continue
		}
		reference := parsed.String()
		if id, ok := p.live.known(reference); ok {
			p.jobs.Wake(id)
			continue
		}
		pay, found, err := p.ByProviderReference(ctx, reference)
		switch {
		case err != nil:
			return err
		case !found || pay.Rail != rail.Name || pay.Mode != rail.Mode:
		case pay.Status == book.StatusPending:
			p.jobs.Wake(pay.ID)
		case !pay.Status.Open():
			p.rechecks.soon(pay)
		}
	}
	return nil
}

// rechecksKept bounds the final payments that wait for a look. More than that are
// left to the sweep, which looks at every one.
const rechecksKept = 1000

// rechecks are final payments that a callback spoke of. Each waits two seconds
// (providers repeat themselves, and the callback of a payment that was just
// settled is often the one that comes late), then it is asked about once.
type rechecks struct {
	clock *clock.Clock
	look  func(context.Context, book.Payment)

	mu      sync.Mutex
	queue   []dueRecheck // in order of time
	ids     map[string]bool
	running bool
	busy    int           // looks under way
	changed chan struct{} // closed at each change; for quiet
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
}

type dueRecheck struct {
	pay book.Payment
	at  time.Time
}

func newRechecks(c *clock.Clock, look func(context.Context, book.Payment)) *rechecks {
	l := &rechecks{clock: c, look: look, ids: map[string]bool{}, changed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// soon has a payment looked at.
func (l *rechecks) soon(pay book.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids[pay.ID] || len(l.ids) >= rechecksKept || l.ctx.Err() != nil {
		return
	}
	l.ids[pay.ID] = true
	l.queue = append(l.queue, dueRecheck{pay, l.clock.Now().Add(hintTime)})
	if !l.running {
		l.running = true
		l.group.Go(l.run)
	}
}

// run looks at what is due until nothing waits.
func (l *rechecks) run() {
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
		if l.clock.Sleep(l.ctx, next.at.Sub(l.clock.Now())) != nil {
			continue
		}
		slots <- struct{}{}
		l.mu.Lock()
		l.queue = l.queue[1:]
		l.busy++
		delete(l.ids, next.pay.ID) // a callback from here on is news
		l.mu.Unlock()
		l.group.Go(func() {
			l.look(l.ctx, next.pay)
			<-slots
			l.mu.Lock()
			defer l.mu.Unlock()
			l.busy--
			close(l.changed)
			l.changed = make(chan struct{})
		})
	}
}

// quiet waits until no look is under way or due.
func (l *rechecks) quiet(ctx context.Context) error {
	for {
		l.mu.Lock()
		due := len(l.queue) > 0 && !l.queue[0].at.After(l.clock.Now())
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
func (l *rechecks) close() {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.group.Wait()
}
