package payments

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A provider's final word is not always its last. Every final payment is asked
// about once more when it is a day old, and whenever a callback speaks of it.
// An answer that contradicts the stored word never changes it silently: money that comes
// late to a collection is credited, and everything else goes through suspense to
// an operator.

// A rechecker asks about final payments.
type rechecker struct {
	book    *book.Book
	rails   *rails
	clock   *clock.Clock
	log     *slog.Logger
	metrics metrics
}

// recheck asks about a final payment and acts on a contradiction. asked is
// false when the provider could not be asked.
func (c *rechecker) recheck(ctx context.Context, pay book.Payment) (asked bool, err error) {
	if pay.Status.Open() || pay.Rail == "" {
		return true, nil
	}
	rail, ok := c.rails.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return true, nil
	}
	o := c.rails.questions.ask(ctx, rail, pay)
	now := momentOf(c.clock)
	_, v, _ := judge(standingOf(pay, rail, now), report{from: fromQuestion, outcome: o, at: now})
	e, contradicts := contradictions[v]
	if !contradicts {
		if pay.Status == book.StatusSuccess && pay.ContradictedAt.IsZero() && o.Final() && o.State == provider.Success && o.FeeKnown {
			err = c.book.BookCosts(ctx, pay, o.Fee, o.Commission)
		}
		return answersSomething(o), err
	}
	s := book.Settlement{Payment: pay, Event: e, Outcome: o}
	if s.Event == book.EventReversed {
		// The provider takes its own part back, too.
		if s.Outcome.Fee, s.Outcome.Commission, err = c.book.Costs(ctx, pay); err != nil {
			return true, err
		}
		s.Outcome.FeeKnown = true
	}
	done, err := c.book.Settle(ctx, s)
	if err != nil || !done.Changed {
		return true, err
	}
	if done.Payment.Refunded > 0 {
		s.Event = book.EventDisputed // its own money was given back already
	}
	c.log.Error("provider contradicted its final status", "payment", pay.ID, "tenant", pay.Tenant, "kind", string(pay.Kind),
		"provider", pay.Rail, "provider_reference", pay.AttemptReference, "was", string(pay.Status), "event", string(s.Event))
	c.metrics.contradicted(pay, s.Event)
	return true, nil
}

// recheckNow is recheck for the queue: an error is logged.
func (c *rechecker) recheckNow(ctx context.Context, pay book.Payment) {
	if _, err := c.recheck(ctx, pay); err != nil && ctx.Err() == nil {
		c.log.Error("failed to recheck final payment", "payment", pay.ID, "error", err)
	}
}

// contradictions are the events of the verdicts about final payments.
var contradictions = map[verdict]book.Event{
	verdictReversed: book.EventReversed, verdictPaidLate: book.EventPaidLate, verdictFoundPaid: book.EventFoundPaid, verdictOpposite: book.EventOpposite,
}

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

const (
	recheckEvery  = 10 * time.Minute
	recheckPause  = 2 * time.Hour         // until a question that was not answered is asked again
	recheckGiven  = 2 * book.RecheckAfter // after which a payment that cannot be asked about is passed over
	recheckBatch  = 100
	recheckSilent = 100 // questions without an answer, after which the provider is not asked again in this sweep
)

// A round is one run of the sweep. A payment without an answer comes again later
// and holds up nothing behind it, and a provider that is silent is left alone
// until the next round.
type round struct {
	c          *rechecker
	began      time.Time
	unanswered map[railKind]int // questions since the last answer
}

// sweep rechecks all that is due. It runs every ten minutes on
// one node.
func (c *rechecker) sweep(ctx context.Context) error {
	r := &round{c: c, began: c.clock.Now(), unanswered: map[railKind]int{}}
	lists, err := c.book.Unswept(ctx)
	for i := 0; err == nil && i < len(lists); i++ {
		err = r.list(ctx, lists[i])
	}
	if err == nil {
		err = r.planned(ctx)
	}
	return err
}

// list rechecks the next payments of a list that are old enough.
func (r *round) list(ctx context.Context, l book.SweptList) error {
	for {
		now := r.c.clock.Now()
		rows, err := r.c.book.After(ctx, l, recheckBatch)
		if err != nil {
			return err
		}
		var ripe []book.Payment
		for _, pay := range rows {
			ahead := pay.CreatedAt.Sub(now) > clock.Skew
			if !ahead && r.c.clock.Passed(pay.CreatedAt) < book.RecheckAfter+book.RecheckSlack {
				break
			}
			ripe = append(ripe, pay)
		}
		if len(ripe) == 0 {
			return ctx.Err()
		}
		// One that is open is followed by its job, and will be late.
		again := r.ask(ctx, ripe, func(pay book.Payment) bool { return pay.Status.Open() || pay.SettledLate() || pay.CreatedAt.After(now) })
		for _, pay := range ripe {
			if pay.CreatedAt.After(now) { // by a clock that ran ahead, at an unknown time
				again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(book.RecheckAfter + book.RecheckSlack)})
			}
		}
		l.Done = ripe[len(ripe)-1].Seq
		err = r.c.book.Swept(ctx, l, again)
		if err != nil || len(ripe) < recheckBatch {
			return err
		}
	}
}

// planned asks again about the payments that have a time of their own for it, as far as that had come when
// the round began.
func (r *round) planned(ctx context.Context) error {
	for {
		due, rows, err := r.c.book.Due(ctx, r.began, recheckBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		early := r.early(due, rows)
		again := r.ask(ctx, rows, func(pay book.Payment) bool {
			return slices.ContainsFunc(early, func(l book.Recheck) bool { return l.ID == pay.ID })
		})
		err = r.c.book.Rechecked(ctx, due, append(again, early...))
		if err != nil || len(due) < recheckBatch {
			return err
		}
	}
}

// early plans anew the rechecks a day after a settlement that are due because the clock was set forward.
func (r *round) early(due []book.Recheck, rows []book.Payment) (again []book.Recheck) {
	now := r.c.clock.Now()
	for _, pay := range rows {
		left := book.RecheckAfter - r.c.clock.Passed(pay.SettledAt)
		planned := func(l book.Recheck) bool {
			return l.ID == pay.ID && !l.Due.Before(pay.SettledAt.Add(book.RecheckAfter))
		}
		if pay.SettledLate() && left > 0 && slices.ContainsFunc(due, planned) {
			again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(left)})
		}
	}
	return again
}

// ask rechecks payments, a few at once, and plans another recheck of what could not
// be asked about, but not for ever. Payments that were not asked about now come before those that
// were.
func (r *round) ask(ctx context.Context, rows []book.Payment, skip func(book.Payment) bool) (again []book.Recheck) {
	answered := make([]bool, len(rows))
	asked := make([]bool, len(rows))
	slots := make(chan struct{}, recheckers)
	var group sync.WaitGroup
	for i, pay := range rows {
		answered[i] = skip(pay)
		if answered[i] || r.unanswered[railKindOf(pay)] >= recheckSilent {
			continue
		}
		asked[i] = true
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var err error
			answered[i], err = r.c.recheck(ctx, pay)
			if err != nil {
				answered[i] = false
				r.c.log.Error("failed to recheck final payment", "payment", pay.ID, "error", err)
			}
		})
	}
	group.Wait()
	now := r.c.clock.Now()
	for i, pay := range rows {
		given := r.c.clock.Passed(pay.CreatedAt) > recheckGiven && r.c.clock.Passed(pay.SettledAt) > recheckGiven
		switch {
		case asked[i] && answered[i]:
			r.unanswered[railKindOf(pay)] = 0
		case answered[i]:
		case asked[i]:
			r.unanswered[railKindOf(pay)]++
			if !given {
				again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(recheckPause)})
			}
		default:
			again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(recheckEvery)})
		}
	}
	return again
}
