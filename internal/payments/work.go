package payments

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/provider"
)

// The times of an open payment.
const (
	hintTime     = 2 * time.Second  // a callback moves a question forward at most this often
	unsentTime   = 30 * time.Minute // how long a POST that cannot be sent is tried again
	doubtTime    = time.Minute      // how long a payment is unknown before operators are called
	pendingTime  = 30 * time.Minute // how long it is pending before they are
	refusedTime  = time.Minute      // how far apart two refusals of a repeated POST must be to count
	refusedReads = 3                // and how often the provider must not have known it in between
	railTime     = time.Minute      // pause of a payment whose rail is not configured
	troubleTime  = 2 * time.Second  // pause after an error of our own
	leaveTime    = 30 * time.Second // how long after the row said so a POST may begin
	chosenTime   = 2 * time.Second  // how long the choice of a rail stands without another look
)

// askPauses are the pauses between questions about an open payment; the last
// one repeats for ever.
var askPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour,
}

// resendPauses are the pauses between POSTs that could not be sent.
var resendPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}

func pause(of []time.Duration, n int) time.Duration { return of[min(n, len(of)-1)] }

// work runs the job of an open payment: it submits, asks, and settles. The job
// ends in the transaction that settles; until then it comes back from memory.
func (p *Payments) work(ctx context.Context, job jobs.Job) jobs.Outcome {
	w, err := p.resume(ctx, job)
	if err != nil {
		p.trouble(ctx, err, "a payment could not be read", "payment", job.Subject)
		return jobs.Later(troubleTime)
	}
	if w == nil {
		return jobs.Done()
	}
	w.rise()
	if w.decided != nil {
		return p.finish(ctx, w, *w.decided)
	}
	rail, ok := p.routes.Rail(w.pay.Rail, w.pay.Mode)
	if !ok {
		w.answer()
		p.log.Error("a payment's provider is not configured", "payment", w.pay.ID, "provider", w.pay.Rail, "mode", w.pay.Mode)
		return jobs.Later(railTime)
	}
	switch {
	case w.stage == stageUnsent && w.resends == 0:
		// Who accepted it had just chosen the rail; who takes it over, or comes to it
		// late, asks.
		if (w.taken || p.clock.Since(w.pay.CreatedAt).Abs() >= chosenTime) && !p.mayUse(ctx, *w.pay, rail) {
			w.answer()
			if w.since.IsZero() {
				w.since = p.clock.Now()
			}
			return p.unsentYet(ctx, w, pause(resendPauses, 0))
		}
		return p.submit(ctx, w, rail)
	case w.stage == stageUnsent:
		return p.resend(ctx, w, rail)
	}
	return p.follow(ctx, w, rail)
}

// resume finds what is known of a job's payment: from the transaction that
// accepted it, from an earlier run, or from the row alone.
func (p *Payments) resume(ctx context.Context, job jobs.Job) (*work, error) {
	if w, ok := job.Memo.(*work); ok {
		return w, nil
	}
	if w := p.live.byID(job.Subject); w != nil {
		return w, nil
	}
	var said payload
	if err := json.Unmarshal(job.Payload, &said); err != nil {
		return nil, err
	}
	pay, found, err := p.get(ctx, said.Tenant, said.Kind, job.Subject)
	if err != nil || !found || pay.Status != StatusPending {
		return nil, err
	}
	w := &work{rail: pay.Rail, payout: pay.Kind == KindPayout, openedAt: db.FromMicros(said.At), since: db.FromMicros(said.At)}
	w.asks = asksWithin(p.clock.Since(w.openedAt))
	p.stand(w, pay)
	if job.Fresh && pay.SendingAt.IsZero() && pay.Attempt == 1 && pay.Posts == 1 {
		w.stage, w.clean = stageUnsent, true // it had no room in memory
	}
	return p.live.enter(w), nil
}

// asksWithin is how many questions a payment of this age has behind it.
func asksWithin(age time.Duration) (n int) {
	for ; n < len(askPauses)-1 && age >= askPauses[n]; n++ {
		age -= askPauses[n]
	}
	return n
}

// stand puts a work where the row says, all that this process knew being void.
func (p *Payments) stand(w *work, pay Payment) {
	w.is(pay)
	w.unsent = pay.Unsent
	rail, ok := p.routes.Rail(pay.Rail, pay.Mode)
	w.stage, w.clean, w.socket, w.taken = stageUnsure, false, false, true
	if ok && !rail.MayRepeat && pay.SendingAt.IsZero() {
		// Every POST on such a rail is marked first.
		w.stage, w.clean = stageUnsent, true
		if pay.Unsent > 0 {
			w.resends = max(w.resends, 1)
		}
	}
}

// submit POSTs what certainly was not sent before.
func (p *Payments) submit(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	if w.openedAt.IsZero() {
		w.openedAt = p.clock.Now()
	}
	late := p.clock.Since(w.pay.CreatedAt).Abs() >= leaveTime // a clock may have been set back
	if late || !rail.MayRepeat {
		row := *w.pay
		row.SendingAt = p.clock.Now()
		if ok, out := p.mark(ctx, w, EventSending, row, ""); !ok {
			return out
		}
	}
	// Whatever becomes of this goroutine from here on, it may have been sent.
	w.stage = stageUnsure
	return p.posted(ctx, w, rail, p.post(ctx, rail, *w.pay))
}

// mark writes a change of the attempt. Without it nothing is POSTed.
func (p *Payments) mark(ctx context.Context, w *work, e Event, row Payment, reason string) (bool, jobs.Outcome) {
	s, err := p.settle(ctx, settlement{payment: *w.pay, event: e, known: true, reason: reason,
		mark: &mark{row: row, wasAttempt: w.pay.Attempt, wasPosts: w.pay.Posts, wasSending: w.pay.SendingAt}})
	switch {
	case err != nil:
		w.answer()
		p.trouble(ctx, err, "an attempt could not be marked", "payment", w.pay.ID, "event", string(e))
		return false, jobs.Later(troubleTime)
	case !s.changed:
		return false, p.overtaken(w, s.payment)
	}
	w.is(s.payment)
	return true, jobs.Outcome{}
}

// overtaken goes on from the row after another process has changed it.
func (p *Payments) overtaken(w *work, row Payment) jobs.Outcome {
	w.answer()
	if row.Status != StatusPending {
		p.live.drop(*w.pay)
		return jobs.Done()
	}
	p.stand(w, row)
	p.live.put(w)
	return jobs.Later(troubleTime)
}

// posted judges the outcome of a POST. This and follow are the only places
// where an outcome turns into money.
func (p *Payments) posted(ctx context.Context, w *work, rail provider.Rail, o provider.Outcome) jobs.Outcome {
	if o.Echo != nil && provider.Mismatch(o, provider.Expect{Reference: w.pay.AttemptReference, Amount: w.pay.Gross(), Party: w.pay.Account}) {
		o = provider.Outcome{Reason: provider.ReasonMismatch, Code: o.Code, Message: o.Message}
	}
	// POSTs of this attempt that may have reached the provider, this one
	// included: while it is the only one a refusal is about it.
	only := w.pay.Posts-w.unsent <= 1
	now := p.clock.Now()
	switch {
	case o.Class == provider.Accepted && o.State == provider.Success:
		return p.finish(ctx, w, settlement{event: EventSucceeded, outcome: o})
	case o.Class == provider.Rejected || o.Class == provider.Accepted && o.State == provider.Failed:
		if only || p.refusedAgain(w, rail, now) {
			return p.finish(ctx, w, settlement{event: EventFailed, reason: reasonOf(o), outcome: o, posts: w.pay.Posts})
		}
	case o.Class == provider.Accepted:
		w.stage, w.clean, w.acceptedAt = stageSent, false, now
		w.refusedAt, w.notFounds, w.doubtAt = time.Time{}, 0, time.Time{}
		if o.UpstreamID != "" {
			w.pay.UpstreamID = o.UpstreamID
		}
		w.answer()
		return p.schedule(w)
	case o.Class == provider.NotSent, o.Class == provider.Barred:
		return p.notSent(ctx, w, rail, o)
	}
	w.clean = false
	w.answer()
	return p.doubt(ctx, w, o)
}

// refusedAgain says whether a refusal of a POST that was not the first can be
// believed. An earlier POST may still be on its way, so that one refusal proves
// nothing. But a provider that refuses duplicates in words of their own has said,
// by refusing in other words twice, well apart and without knowing the reference
// at any time between, that it has none of them.
func (p *Payments) refusedAgain(w *work, rail provider.Rail, now time.Time) bool {
	if !rail.MayRepeat {
		return false
	}
	if w.refusedAt.IsZero() {
		w.refusedAt, w.notFounds = now, 0
		return false
	}
	return now.Sub(w.refusedAt) >= refusedTime && w.notFounds >= refusedReads
}

// notSent goes on after a POST that is proven not to have been processed.
func (p *Payments) notSent(ctx context.Context, w *work, rail provider.Rail, o provider.Outcome) jobs.Outcome {
	now := p.clock.Now()
	w.unsent++
	w.resends++
	w.socket = w.socket && o.Class == provider.NotSent
	if w.since.IsZero() {
		w.since = now
	}
	w.answer()
	if !w.clean {
		return p.doubt(ctx, w, o) // an earlier POST may have been processed
	}
	w.stage = stageUnsent
	if w.socket {
		if out, moved := p.reroute(ctx, w, o); moved {
			return out
		}
	}
	if !w.pay.SendingAt.IsZero() && !rail.MayRepeat {
		row := *w.pay
		row.SendingAt, row.Unsent = time.Time{}, w.unsent
		if ok, out := p.mark(ctx, w, EventUnsent, row, ""); !ok {
			return out
		}
	}
	return p.unsentYet(ctx, w, max(pause(resendPauses, w.resends-1), o.RetryAfter))
}

// unsentYet waits for the next try, or gives a payment up that could not be sent
// for too long. Every POST of it is proven unsent.
func (p *Payments) unsentYet(ctx context.Context, w *work, wait time.Duration) jobs.Outcome {
	left := unsentTime - p.clock.Since(w.since)
	if left <= 0 {
		return p.finish(ctx, w, settlement{event: EventFailed, reason: provider.ReasonUnavailable, posts: w.pay.Posts,
			outcome: provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable}})
	}
	return jobs.Later(min(wait, left))
}

// reroute gives the payment to another rail. It is asked only after POSTs that
// our own socket has not sent.
func (p *Payments) reroute(ctx context.Context, w *work, o provider.Outcome) (jobs.Outcome, bool) {
	if w.pay.Kind == KindBundle { // an offer is one provider's
		return jobs.Outcome{}, false
	}
	op, channel := operation(*w.pay)
	rails, err := p.routes.Choose(ctx, op, channel, w.pay.Tenant, w.pay.Mode)
	if err != nil {
		return jobs.Outcome{}, false
	}
	for _, rail := range rails {
		if rail.Name == w.pay.Rail || slices.Contains(w.tried, rail.Name) {
			continue
		}
		row := *w.pay
		row.Rail, row.Attempt = rail.Name, row.Attempt+1
		row.AttemptReference = p.references.make(row, row.Attempt)
		row.Posts, row.Unsent, row.SendingAt = 1, 0, time.Time{}
		old := w.pay.Rail
		if ok, out := p.mark(ctx, w, EventRerouted, row, reasonOf(o)); !ok {
			return out, true
		}
		w.tried = append(w.tried, old)
		w.unsent, w.resends = 0, 0
		p.live.put(w)
		return p.submit(ctx, w, rail), true
	}
	return jobs.Outcome{}, false
}

// resend POSTs again what could not be sent before, on the same rail with the
// same reference.
func (p *Payments) resend(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	if !p.mayUse(ctx, *w.pay, rail) {
		return p.unsentYet(ctx, w, pause(resendPauses, w.resends))
	}
	return p.repost(ctx, w, rail)
}

// repost raises posts, marks, and POSTs again.
func (p *Payments) repost(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	row := *w.pay
	row.Posts, row.Unsent = row.Posts+1, w.unsent
	row.SendingAt = p.clock.Now()
	if ok, out := p.mark(ctx, w, EventRepeated, row, ""); !ok {
		return out
	}
	w.stage = stageUnsure
	return p.posted(ctx, w, rail, p.post(ctx, rail, *w.pay))
}

// mayUse says whether a rail is neither paused nor failing.
func (p *Payments) mayUse(ctx context.Context, pay Payment, rail provider.Rail) bool {
	op, channel := operation(pay)
	rails, err := p.routes.Choose(ctx, op, channel, pay.Tenant, pay.Mode)
	return err == nil && slices.ContainsFunc(rails, func(r provider.Rail) bool { return r.Name == rail.Name })
}

// follow asks for a payment that may have been sent.
func (p *Payments) follow(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	now := p.clock.Now()
	if now.Before(w.nextAsk) { // woken by a hint
		if next := w.lastHint.Add(hintTime); now.Before(next) {
			return jobs.Later(min(next.Sub(now), w.nextAsk.Sub(now)))
		}
		w.lastHint = now
	}
	o := p.ask(ctx, rail, *w.pay)
	if s, final := finalWord(*w.pay, o); final {
		return p.finish(ctx, w, s)
	}
	switch {
	case o.Class == provider.Accepted:
		w.stage, w.doubtAt, w.refusedAt = stageSent, time.Time{}, time.Time{}
		if w.acceptedAt.IsZero() {
			w.acceptedAt = now
		}
		if o.UpstreamID != "" {
			w.pay.UpstreamID = o.UpstreamID
		}
		if p.clock.Since(w.openedAt) >= pendingTime {
			return p.escalate(ctx, w, provider.Accepted, "")
		}
		return p.schedule(w)
	case o.NotFound && rail.MayRepeat:
		w.notFounds++
		// What was accepted a moment ago may not be readable yet.
		unknown := w.stage == stageUnsure || now.Sub(w.acceptedAt) >= doubtTime
		if unknown && p.mayUse(ctx, *w.pay, rail) {
			w.clean = false
			return p.repost(ctx, w, rail)
		}
	}
	return p.doubt(ctx, w, o)
}

// doubt goes on while nobody knows what became of a payment. The money stays
// where it is.
func (p *Payments) doubt(ctx context.Context, w *work, o provider.Outcome) jobs.Outcome {
	now := p.clock.Now()
	if w.stage == stageUnsent {
		w.stage = stageUnsure
	}
	if w.doubtAt.IsZero() && w.stage == stageUnsure {
		w.doubtAt = now
	}
	switch {
	case o.Reason == provider.ReasonMismatch:
		return p.escalate(ctx, w, provider.Unknown, o.Reason)
	case !w.doubtAt.IsZero() && now.Sub(w.doubtAt) >= doubtTime,
		w.stage == stageSent && now.Sub(w.openedAt) >= pendingTime:
		return p.escalate(ctx, w, provider.Unknown, "")
	}
	return p.schedule(w)
}

// escalate calls the operators, once.
func (p *Payments) escalate(ctx context.Context, w *work, class provider.Class, reason string) jobs.Outcome {
	if !w.pay.EscalatedAt.IsZero() {
		return p.schedule(w)
	}
	row := *w.pay
	row.EscalatedAt, row.Class, row.Classed, row.Reason = p.clock.Now(), class, true, reason
	row.Unsent = w.unsent
	ok, out := p.mark(ctx, w, EventDoubted, row, reason)
	if !ok {
		return out
	}
	p.log.Warn("a payment needs an operator", "payment", w.pay.ID, "tenant", w.pay.Tenant, "kind", string(w.pay.Kind),
		"provider", w.pay.Rail, "provider_reference", w.pay.AttemptReference, "class", class.String(), "reason", reason, "posts", w.pay.Posts)
	return p.schedule(w)
}

// schedule sets the next question.
func (p *Payments) schedule(w *work) jobs.Outcome {
	now := p.clock.Now()
	if !now.Before(w.nextAsk) {
		w.nextAsk = now.Add(pause(askPauses, w.asks))
		w.asks++
	}
	w.asking.Store(true)
	w.rest()
	return jobs.Later(w.nextAsk.Sub(now))
}

// trouble logs an error of our own about a payment, which is tried again. A
// database that is away concerns all alike and says so elsewhere: a line for
// each open payment every two seconds would bury that.
func (p *Payments) trouble(ctx context.Context, err error, text string, about ...any) {
	level := slog.LevelError
	if systemic(err) {
		level = slog.LevelDebug
	}
	p.log.Log(ctx, level, text, append(about, "error", err)...)
}

// finish settles. A final word that cannot be written down now is kept and
// written before anything else is done.
func (p *Payments) finish(ctx context.Context, w *work, s settlement) jobs.Outcome {
	s.payment, s.known = *w.pay, true
	reply := w.reply.Load()
	if s.event == EventFailed && reply != nil {
		// The request that waits is told of a refusal; one that went is not.
		s.refused = reply.waiter.CompareAndSwap(waiterThere, waiterTold) || reply.waiter.Load() == waiterTold
	}
	done, err := p.settle(ctx, s)
	if err != nil {
		p.trouble(ctx, err, "a payment could not be settled", "payment", w.pay.ID, "event", string(s.event))
		w.decided = &s
		if s.refused && !errors.Is(err, db.ErrAmbiguous) {
			// There is nothing to tell yet. The request may go, and the webhook tells.
			reply.waiter.CompareAndSwap(waiterTold, waiterThere)
		}
		return jobs.Later(troubleTime)
	}
	w.decided = nil
	if !done.changed && done.payment.Status == StatusPending {
		return p.overtaken(w, done.payment)
	}
	if done.payment.Refused && reply != nil {
		reply.refusal = &done.payment
	}
	w.answer()
	p.live.drop(*w.pay)
	if !done.changed && (s.event == EventSucceeded) != (done.payment.Status == StatusSuccess) {
		p.looks.soon(done.payment) // an operator, or another node, was told otherwise
	}
	return jobs.Done()
}
