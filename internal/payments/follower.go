package payments

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
)

// A follower takes open payments to their end: it has them in memory between the runs of their jobs, and settles
// them in the book.
type follower struct {
	book      *book.Book
	jobs      *jobs.Queue
	rails     *rails
	recovered *recoverySearch
	live      live
	rechecks  *recheckQueue
	clock     *clock.Clock
	log       *slog.Logger
}

const (
	refusedTime = time.Minute     // the longest pause between questions about a refusal
	troubleTime = 2 * time.Second // pause after an error of our own
)

// askPauses are the pauses between questions about an open payment; the last
// one repeats for ever.
var askPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour,
}

// askPause is the pause after the nth question. A refusal that is not confirmed is
// asked about more often: its money waits for one answer.
func askPause(n int, r book.Refusal) time.Duration {
	if r == book.RefusalNone {
		return pause(askPauses, n)
	}
	return min(pause(askPauses, n), refusedTime)
}

// asksResumed bounds the questions that a payment counts as asked after a restart: the next pause is ten minutes at most.
// The clock, by which its age is known then, may have been set.
const asksResumed = 9

func pause(of []time.Duration, n int) time.Duration { return of[min(n, len(of)-1)] }

// answerTime is the whole time that a payout's answer may take. The calls go on when the answer has been given.
const answerTime = 8 * time.Second

// answering says whether the request that made a payment may still wait for its answer: the payment is a payout that
// is being submitted, on this node or on another.
func (f *follower) answering(pay book.Payment) bool {
	if pay.Kind != book.KindPayout || !pay.Status.Open() || pay.Waits() {
		return false
	}
	if w := f.live.byID(pay.ID); w != nil {
		return !w.isAnswered()
	}
	return f.clock.Since(pay.CreatedAt).Abs() < answerTime
}

// opened begins to follow a payment that is committed.
func (f *follower) opened(row book.Payment) {
	f.live.begin(row, func() *attempt { return openedAttempt(row, f.clock) })
}

// left forgets an open payment whose job is not in this node's memory any more. Its
// next run begins with the row.
func (f *follower) left(job jobs.Job) {
	a := f.live.byID(job.Subject)
	if a == nil {
		return
	}
	a.answer()
	f.drop(a.id)
}

// drop forgets a payment that is final, or that another node follows now.
func (f *follower) drop(id string) {
	f.live.drop(id)
	f.rails.questions.forget(id)
}

// resume finds what is known of a job's payment: from the transaction that
// accepted it, from an earlier run, or from the row alone. nil: there is nothing
// to do.
func (f *follower) resume(ctx context.Context, job jobs.Job) (*attempt, error) {
	if a := f.live.byID(job.Subject); a != nil {
		return a, nil
	}
	said, err := book.PayloadOf(job)
	if err != nil {
		return nil, err
	}
	row, found, err := f.book.Get(ctx, said.Tenant, said.Kind, job.Subject)
	if err != nil || !found || row.Status != book.StatusPending {
		return nil, err
	}
	wall, now := readingOf(f.clock)
	age := wall.Sub(db.FromMicros(said.At))
	a := newAttempt(row, 0)
	// The age by the clock decides when operators are called, and how often the provider is asked: never about money.
	a.openedAt = now.Add(-max(0, age))
	a.asks = min(asksWithin(age), asksResumed)
	f.resetFromRow(a, row)
	a.kept = &row
	if job.Fresh && row.SendingAt.IsZero() && row.Attempt == 1 && row.Posts == 1 {
		a.stage, a.arrived = stageUnsent, 0 // it had no room in memory
		a.mayLeave = written(row, wall, now)
	}
	return f.live.enter(a), nil
}

// rowOf gives the row for a run: as the acceptance or the last run has left it, while
// that is kept, and else as the database has it. Where another process has changed the
// attempt meanwhile, what this one remembers of it is void. A kept row may be old: the
// guards of every mark and settlement find that out.
func (f *follower) rowOf(ctx context.Context, a *attempt) (book.Payment, error) {
	if row := a.kept; row != nil {
		a.kept = nil
		if a.isOf(*row) {
			return *row, nil
		}
	}
	row, found, err := f.book.Row(ctx, a.tenant, a.id)
	if err == nil && !found {
		err = errors.New("payments: the row of an open payment is not there")
	}
	if err != nil {
		return book.Payment{}, err
	}
	if a.upstreamID != "" {
		row.UpstreamID = a.upstreamID
	}
	if row.Status == book.StatusPending && !a.isOf(row) {
		f.resetFromRow(a, row)
		f.live.put(a, row)
	}
	return row, nil
}

// asksWithin is how many questions a payment of this age has behind it.
func asksWithin(age time.Duration) (n int) {
	for ; n < len(askPauses)-1 && age >= askPauses[n]; n++ {
		age -= askPauses[n]
	}
	return n
}

// resetFromRow makes the row all that is known of an attempt. The memory of this process is void.
func (f *follower) resetFromRow(a *attempt, row book.Payment) {
	a.saw(row)
	opened := a.openedAt
	a.observed = observed{stage: stageUnsure, arrived: row.Posts}
	if rail, ok := f.rails.routes.Rail(row.Rail, row.Mode); ok {
		a.observed = observedOf(row, rail, momentOf(f.clock))
	}
	a.openedAt, a.taken, a.mayLeave = opened, true, 0
	if a.stage == stageUnsent && (row.Unsent > 0 || a.arrived > 0) {
		a.resends = max(a.resends, 1)
	}
}

// overtaken goes on from the row after another process has changed it.
func (f *follower) overtaken(a *attempt, row book.Payment) jobs.Outcome {
	a.answer()
	if row.Status != book.StatusPending {
		f.drop(a.id)
		return jobs.Done()
	}
	f.resetFromRow(a, row)
	f.live.put(a, row)
	return jobs.Later(troubleTime)
}

// finish settles. A final word that cannot be written down now is kept and
// written before anything else is done.
func (f *follower) finish(ctx context.Context, a *attempt, s book.Settlement) jobs.Outcome {
	s.Known = true
	reply := a.reply.Load()
	if s.Event == book.EventFailed && reply != nil {
		// The request that waits is told of a refusal; one that went is not.
		s.Refused = reply.waiter.CompareAndSwap(waiterThere, waiterTold) || reply.waiter.Load() == waiterTold
	}
	done, err := f.book.Settle(ctx, s)
	if err != nil {
		f.trouble(ctx, err, "a payment could not be settled", "payment", a.id, "event", string(s.Event))
		a.unwritten = &s
		if s.Refused && !errors.Is(err, db.ErrAmbiguous) {
			// There is nothing to tell yet. The request may go, and the webhook tells.
			reply.waiter.CompareAndSwap(waiterTold, waiterThere)
		}
		return jobs.Later(troubleTime)
	}
	a.unwritten = nil
	if !done.Changed && done.Payment.Status == book.StatusPending {
		return f.overtaken(a, done.Payment)
	}
	if done.Payment.Refused && reply != nil {
		reply.refusal = &done.Payment
	}
	a.answer()
	f.drop(a.id)
	if !done.Changed && (s.Event == book.EventSucceeded) != (done.Payment.Status == book.StatusSuccess) {
		f.rechecks.soon(done.Payment) // an operator, or another node, was told otherwise
	}
	return jobs.Done()
}

// trouble logs an error of our own about a payment, which is tried again. A
// database that is away concerns all alike and says so elsewhere: a line for
// each open payment every two seconds would bury that.
func (f *follower) trouble(ctx context.Context, err error, text string, about ...any) {
	level := slog.LevelError
	if book.Systemic(err) {
		level = slog.LevelDebug
	}
	f.log.Log(ctx, level, text, append(about, "error", err)...)
}
