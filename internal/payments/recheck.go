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

// A provider's final report may be wrong. Every final payment is queried again a day after acceptance and after each
// callback about it. An answer that contradicts the status never changes it silently. A collection that was paid late
// is credited. The money of every other contradiction moves to suspense, and an operator decides.

// A rechecker queries the status of final payments.
type rechecker struct {
	book    *book.Book
	rails   *rails
	clock   *clock.Clock
	log     *slog.Logger
	metrics metrics
}

// recheck queries a final payment and acts on a contradiction. queried is false if the provider did not answer.
func (c *rechecker) recheck(ctx context.Context, pay book.Payment) (queried bool, err error) {
	if pay.Status.Open() || pay.Rail == "" {
		return true, nil
	}
	rail, ok := c.rails.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return true, nil
	}
	o := c.rails.queries.status(ctx, rail, pay)
	now := momentOf(c.clock)
	_, v, _ := judge(evidenceOf(pay, rail, now), report{from: fromQuery, outcome: o, at: now})
	e, contradicts := contradictions[v]
	if !contradicts {
		if pay.Status == book.StatusSuccess && pay.ContradictedAt.IsZero() && o.Final() && o.State == provider.Success && o.FeeKnown {
			err = c.book.BookCosts(ctx, pay, o.Fee, o.Commission)
		}
		return answersSomething(o), err
	}
	s := book.Settlement{Payment: pay, Event: e, Outcome: o}
	if s.Event == book.EventReversed {
		// A reversed payment also loses the provider's costs, because the provider returns them.
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
		s.Event = book.EventDisputed // the collection was refunded, so its money was given back already
	}
	c.log.Error("provider contradicted its final status", "payment", pay.ID, "tenant", pay.Tenant, "kind", string(pay.Kind),
		"provider", pay.Rail, "provider_reference", pay.AttemptReference, "was", string(pay.Status), "event", string(s.Event))
	c.metrics.contradicted(pay, s.Event)
	return true, nil
}

// recheckNow calls recheck for the queue and logs its errors.
func (c *rechecker) recheckNow(ctx context.Context, pay book.Payment) {
	if _, err := c.recheck(ctx, pay); err != nil && ctx.Err() == nil {
		c.log.Error("failed to recheck final payment", "payment", pay.ID, "error", err)
	}
}

// contradictions maps the verdicts about final payments to events.
var contradictions = map[verdict]book.Event{
	verdictReversed: book.EventReversed, verdictPaidLate: book.EventPaidLate, verdictFoundPaid: book.EventFoundPaid, verdictOpposite: book.EventOpposite,
}

// maxRechecks limits the final payments that wait for a recheck. The sweep rechecks the others later.
const maxRechecks = 1000

// recheckers is the number of concurrent rechecks.
const recheckers = 8

// A recheckQueue has the final payments of recent callbacks. Each payment waits two seconds and is queried once.
// Within this wait, all callbacks that a provider sends around a settlement cause one query.
type recheckQueue struct {
	clock   *clock.Clock
	recheck func(context.Context, book.Payment)

	mu      sync.Mutex
	queue   []dueRecheck // ordered by time
	ids     map[string]bool
	running bool
	busy    int           // running rechecks
	changed chan struct{} // closed at each change; read by quiet
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

// soon adds a payment to the queue.
func (l *recheckQueue) soon(pay book.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids[pay.ID] || len(l.ids) >= maxRechecks || l.ctx.Err() != nil {
		return
	}
	l.ids[pay.ID] = true
	l.queue = append(l.queue, dueRecheck{pay, momentOf(l.clock).Add(hintTime)})
	if !l.running {
		l.running = true
		l.group.Go(l.run)
	}
}

// run rechecks due payments until none waits.
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
		if l.clock.SleepUntil(l.ctx, next.at.elapsed()) != nil {
			continue
		}
		slots <- struct{}{}
		l.mu.Lock()
		l.queue = l.queue[1:]
		l.busy++
		delete(l.ids, next.pay.ID) // a later callback causes another recheck
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

// quiet waits until no recheck is running or due.
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

// close drops the waiting rechecks and waits for the running ones.
func (l *recheckQueue) close() {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.group.Wait()
}

const (
	recheckEvery  = 10 * time.Minute
	recheckPause  = 2 * time.Hour         // pause before an unanswered recheck is repeated
	recheckGiven  = 2 * book.RecheckAfter // age after which an unanswered recheck is not repeated
	recheckBatch  = 100
	recheckSilent = 100 // unanswered queries after which this sweep skips the provider
)

// A round is one run of the sweep. It schedules payments without an answer for a later round, so that they delay no
// others. After recheckSilent unanswered queries it skips the provider until the next round.
type round struct {
	c          *rechecker
	began      time.Time
	unanswered map[railKind]int // queries since the last answer
}

// sweep rechecks all due payments. It runs every ten minutes on one node.
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

// list rechecks the payments of a list that are old enough and that no earlier sweep rechecked.
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
		// The recheck of a payment that is still open is planned after it settles.
		again := r.recheckAll(ctx, ripe, func(pay book.Payment) bool { return pay.Status.Open() || pay.SettledLate() || pay.CreatedAt.After(now) })
		for _, pay := range ripe {
			if pay.CreatedAt.After(now) { // accepted by a node whose clock ran ahead
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

// planned runs the rechecks with their own due time that were due when the round began.
func (r *round) planned(ctx context.Context) error {
	for {
		due, rows, err := r.c.book.Due(ctx, r.began, recheckBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		early := r.early(due, rows)
		again := r.recheckAll(ctx, rows, func(pay book.Payment) bool {
			return slices.ContainsFunc(early, func(l book.Recheck) bool { return l.ID == pay.ID })
		})
		err = r.c.book.Rechecked(ctx, due, append(again, early...))
		if err != nil || len(due) < recheckBatch {
			return err
		}
	}
}

// early returns new due times for rechecks that are due too early because the clock was set forward.
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

// recheckAll rechecks payments, a few at once. It returns new rechecks for payments without an answer, until
// recheckGiven. The payments that were not queried come first in the result.
func (r *round) recheckAll(ctx context.Context, rows []book.Payment, skip func(book.Payment) bool) (again []book.Recheck) {
	answered := make([]bool, len(rows))
	queried := make([]bool, len(rows))
	slots := make(chan struct{}, recheckers)
	var group sync.WaitGroup
	for i, pay := range rows {
		answered[i] = skip(pay)
		if answered[i] || r.unanswered[railKindOf(pay)] >= recheckSilent {
			continue
		}
		queried[i] = true
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
		case queried[i] && answered[i]:
			r.unanswered[railKindOf(pay)] = 0
		case answered[i]:
		case queried[i]:
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
