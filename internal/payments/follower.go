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

// A follower tracks open payments until they are final. It keeps their attempts in memory between the runs of their
// jobs, and settles the payments in the book.
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
	refusedTime = time.Minute     // longest pause between queries about a refusal
	troubleTime = 2 * time.Second // pause after an internal error
)

// queryPauses are the pauses between status queries of an open payment. The last one repeats.
var queryPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour,
}

// queryPause returns the pause after the nth query. A payment with an unconfirmed refusal is polled more often,
// because a single answer may release its hold.
func queryPause(n int, r book.Refusal) time.Duration {
	if r == book.RefusalNone {
		return pause(queryPauses, n)
	}
	return min(pause(queryPauses, n), refusedTime)
}

// maxResumedQueries limits the number of queries that a restarted payment counts as made, so that its next pause is
// ten minutes at most. The number is computed from the payment's age by the wall clock, which may have been set.
const maxResumedQueries = 9

func pause(of []time.Duration, n int) time.Duration { return of[min(n, len(of)-1)] }

// answerTime is the maximum time until the client of a payout gets a response. The provider's own answer may take
// longer.
const answerTime = 8 * time.Second

// refusalWait is the additional time that a request waits for a refusal that is being stored.
const refusalWait = 1500 * time.Millisecond

// requestOpen reports whether the request that created a payment may still wait for a response. Only payouts have
// such requests. For a payout of another node it adds refusalWait, because that request may wait for a refusal that
// is being stored.
func (f *follower) requestOpen(pay book.Payment) bool {
	if pay.Kind != book.KindPayout || !pay.Status.Open() || pay.AwaitsApproval() {
		return false
	}
	if w := f.live.byID(pay.ID); w != nil {
		return !w.isAnswered()
	}
	return f.clock.Since(pay.CreatedAt).Abs() < answerTime+refusalWait
}

// opened starts to follow a committed payment.
func (f *follower) opened(row book.Payment) {
	f.live.begin(row, func() *attempt { return openedAttempt(row, f.clock) })
}

// evict removes an open payment whose job the queue dropped from this node's memory. The next run reads the row.
func (f *follower) evict(job jobs.Job) {
	a := f.live.byID(job.Subject)
	if a == nil {
		return
	}
	a.answer()
	f.drop(a.id)
}

// drop removes a payment that is final or that another node follows.
func (f *follower) drop(id string) {
	f.live.drop(id)
	f.rails.queries.forget(id)
}

// resume returns the attempt of a job's payment: from its acceptance, from an earlier run, or from the row. It
// returns nil if there is nothing to do.
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
	// The age by the wall clock affects only alerts and the query schedule, never money.
	a.openedAt = now.Add(-max(0, age))
	a.queries = min(queriesWithin(age), maxResumedQueries)
	f.resetFromRow(a, row)
	a.cachedRow = &row
	if job.Fresh && row.SendingAt.IsZero() && row.Attempt == 1 && row.Submissions == 1 {
		a.stage, a.arrived = stageUnsent, 0 // the memory was full and the job is new: nothing was submitted yet
		a.submittableAt = written(row, wall, now)
	}
	return f.live.enter(a), nil
}

// rowOf returns the cached row, or reads the row. If another process has changed the attempt, rowOf discards this
// node's observations. A cached row may be outdated: the guards of every change and settlement detect that.
func (f *follower) rowOf(ctx context.Context, a *attempt) (book.Payment, error) {
	if row := a.cachedRow; row != nil {
		a.cachedRow = nil
		if a.isOf(*row) {
			return *row, nil
		}
	}
	row, found, err := f.book.Row(ctx, a.tenant, a.id)
	if err == nil && !found {
		err = errors.New("payments: row of open payment not found")
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

// queriesWithin returns the number of scheduled queries of a payment that has this age.
func queriesWithin(age time.Duration) (n int) {
	for ; n < len(queryPauses)-1 && age >= queryPauses[n]; n++ {
		age -= queryPauses[n]
	}
	return n
}

// resetFromRow discards this process's observations of an attempt and rebuilds them from the row.
func (f *follower) resetFromRow(a *attempt, row book.Payment) {
	a.saw(row)
	opened := a.openedAt
	a.observed = observed{stage: stageMaybeSent, arrived: row.Submissions}
	if rail, ok := f.rails.routes.Rail(row.Rail, row.Mode); ok {
		a.observed = observedOf(row, rail, momentOf(f.clock))
	}
	a.openedAt, a.takenOver, a.submittableAt = opened, true, 0
	if a.stage == stageUnsent && (row.Unsent > 0 || a.arrived > 0) {
		a.resends = max(a.resends, 1)
	}
}

// overtaken continues with the row that another process has changed.
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

// finish settles a payment. If the write fails, the attempt keeps the settlement and its next run retries the write
// first.
func (f *follower) finish(ctx context.Context, a *attempt, s book.Settlement) jobs.Outcome {
	s.Known = true
	reply := a.reply.Load()
	if s.Event == book.EventFailed && reply != nil {
		// A waiting request returns the refusal itself, so it needs no webhook.
		s.Refused = reply.waiter.CompareAndSwap(requestWaits, requestRefused) || reply.waiter.Load() == requestRefused
	}
	done, err := f.book.Settle(ctx, s)
	if err != nil {
		f.trouble(ctx, err, "failed to settle payment", "payment", a.id, "event", string(s.Event))
		a.unwritten = &s
		if s.Refused && !errors.Is(err, db.ErrAmbiguous) {
			// The refusal is not stored. The request may time out, and the webhook then reports it.
			reply.waiter.CompareAndSwap(requestRefused, requestWaits)
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
		f.rechecks.soon(done.Payment) // an operator or another node settled the payment differently
	}
	return jobs.Done()
}

// trouble logs an internal error about a payment that will be retried. A lost database connection is logged at debug
// level only, because it would add a line for each open payment every two seconds.
func (f *follower) trouble(ctx context.Context, err error, text string, about ...any) {
	level := slog.LevelError
	if book.Systemic(err) {
		level = slog.LevelDebug
	}
	f.log.Log(ctx, level, text, append(about, "error", err)...)
}
