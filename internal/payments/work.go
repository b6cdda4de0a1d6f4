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

// The times of an open payment. Those of the judge are beside it.
const (
	hintTime    = 2 * time.Second  // a callback moves a question forward at most this often
	unsentTime  = 30 * time.Minute // how long a POST that does not get through is tried again
	refusedTime = time.Minute      // the longest pause between questions about a refusal
	railTime    = time.Minute      // pause of a payment whose rail is not configured
	troubleTime = 2 * time.Second  // pause after an error of our own
	leaveTime   = 30 * time.Second // how long after the row said so a POST may begin
	chosenTime  = 2 * time.Second  // how long the choice of a rail stands without another look
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
func askPause(n int, r Refusal) time.Duration {
	if r == RefusalNone {
		return pause(askPauses, n)
	}
	return min(pause(askPauses, n), refusedTime)
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
		// The accepting node has just chosen this rail; a later owner, and a run that
		// comes late, must check again.
		if (w.taken || p.clock.Since(w.pay.CreatedAt).Abs() >= chosenTime) && !p.mayUse(ctx, *w.pay, rail) {
			w.answer()
			if w.since.IsZero() {
				w.since = p.clock.Now()
			}
			return p.unsentYet(ctx, w, rail, pause(resendPauses, 0))
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
	w := &work{rail: pay.Rail, since: db.FromMicros(said.At)}
	w.openedAt = db.FromMicros(said.At)
	w.asks = asksWithin(p.clock.Since(w.openedAt))
	p.stand(w, pay)
	if job.Fresh && pay.SendingAt.IsZero() && pay.Attempt == 1 && pay.Posts == 1 {
		w.stage, w.arrived = stageUnsent, 0 // it had no room in memory
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
	opened := w.openedAt
	w.standing = standing{stage: stageUnsure, arrived: pay.Posts}
	if rail, ok := p.routes.Rail(pay.Rail, pay.Mode); ok {
		w.standing = standingOf(pay, rail)
	}
	w.openedAt, w.taken = opened, true
	if w.stage == stageUnsent && (pay.Unsent > 0 || w.arrived > 0) {
		w.resends = max(w.resends, 1)
	}
}

// standingOf is what the row alone tells of an attempt. A POST that it does not
// speak of may have been made.
func standingOf(row Payment, rail provider.Rail) standing {
	s := standing{
		stage: stageUnsure, arrived: row.Posts - row.Unsent, openedAt: row.CreatedAt,
		lastPost: row.mayLeaveSince().Add(leaveTime + submitTime),
		refusal:  row.Refusal, refusalReason: row.RefusalReason, refusedAt: row.RefusedAt, refusedLast: row.RefusedAt,
	}
	if !rail.MayRepeat && row.SendingAt.IsZero() && row.Refusal == RefusalNone {
		// Every POST on such a rail is marked first, and the mark is taken back when the
		// POST has not got through.
		s.stage, s.turnedAway = stageUnsent, row.Classed && row.Class == provider.Barred
		if !s.turnedAway {
			s.arrived = 0
		}
	}
	s.row(row, rail)
	return s
}

// row fills in what the judge reads from the row and the rail alone.
func (s *standing) row(row Payment, rail provider.Rail) {
	s.kind, s.status, s.said, s.turned = row.Kind, row.Status, row.said(), !row.TurnedAt.IsZero()
	s.mayRepeat, s.visibleAfter, s.unpaidAfter = rail.MayRepeat, rail.VisibleAfter, rail.UnpaidAfter
	s.sentAt, s.mayLeave, s.escalated = sentSince(row, rail), row.mayLeaveSince(), row.EscalatedAt
}

// submit POSTs what certainly was not sent before.
func (p *Payments) submit(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	if ok, out := p.beforePost(ctx, w); !ok {
		return out
	}
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
	return p.posts(ctx, w, rail)
}

// posts makes the POST that the row speaks of.
func (p *Payments) posts(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	// Whatever becomes of this goroutine from here on, it may have been sent.
	w.stage = stageUnsure
	w.arrived++
	return p.hear(ctx, w, rail, fromPost, p.post(ctx, rail, *w.pay))
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
		p.drop(*w.pay)
		return jobs.Done()
	}
	p.stand(w, row)
	p.live.put(w)
	return jobs.Later(troubleTime)
}

// hear has a word about a payment judged, and does what the verdict says.
func (p *Payments) hear(ctx context.Context, w *work, rail provider.Rail, from source, o provider.Outcome) jobs.Outcome {
	w.row(*w.pay, rail)
	w.recovering = p.firstOfRecovery(ctx, rail)
	var v verdict
	var reason string
	w.standing, v, reason = judge(w.standing, word{from, o, p.clock.Now()})
	if o.Class == provider.Accepted && o.UpstreamID != "" {
		w.pay.UpstreamID = o.UpstreamID
	}
	switch v {
	case verdictPaid, verdictRefund:
		return p.finish(ctx, w, final(*w.pay, v, reason, o))
	case verdictAsk:
		return p.askNow(w)
	case verdictTaken:
		return p.goOn(ctx, w)
	case verdictRepeat:
		w.answer()
		if p.mayUse(ctx, *w.pay, rail) {
			return p.repost(ctx, w, rail)
		}
	case verdictResend:
		return p.notThrough(ctx, w, rail, o)
	}
	call := v == verdictOperator || w.overdue(p.clock.Now())
	return p.hold(ctx, w, call, reason)
}

// final is the settlement that a verdict asks for. A refund on anything but the
// provider's last word is about the POSTs that are known: the row must have no
// other.
func final(pay Payment, v verdict, reason string, o provider.Outcome) settlement {
	if v == verdictPaid {
		return settlement{payment: pay, event: EventSucceeded, outcome: o}
	}
	s := settlement{payment: pay, event: EventFailed, reason: reason, outcome: o}
	if !o.Final() {
		s.posts = pay.Posts
		if o.Class == provider.Unknown {
			s.outcome.Class = provider.Rejected // as its refusal said, which the provider has confirmed
		}
	}
	return s
}

// askNow has the provider asked before the request that waits is answered. The
// question waits in the line of questions.
func (p *Payments) askNow(w *work) jobs.Outcome {
	w.nextAsk = p.clock.Now()
	w.asking.Store(true)
	w.rest()
	return jobs.Later(0)
}

// goOn follows a payment that the provider has.
func (p *Payments) goOn(ctx context.Context, w *work) jobs.Outcome {
	if w.pay.Refusal != RefusalNone {
		row := *w.pay
		row.Refusal, row.RefusalReason, row.RefusedAt = RefusalNone, "", time.Time{}
		row.Class, row.Classed = provider.Accepted, true
		if ok, out := p.mark(ctx, w, EventTaken, row, ""); !ok {
			return out
		}
	}
	w.answer()
	if w.overdue(p.clock.Now()) {
		return p.escalate(ctx, w, provider.Accepted, "")
	}
	return p.schedule(w)
}

// hold leaves the money where it is. A refusal that is not confirmed is written
// down, for whoever takes the payment over.
func (p *Payments) hold(ctx context.Context, w *work, call bool, reason string) jobs.Outcome {
	if call && w.pay.EscalatedAt.IsZero() {
		return p.escalate(ctx, w, provider.Unknown, reason)
	}
	if w.refusal != w.pay.Refusal {
		row := p.refusalOf(w)
		row.Class, row.Classed = provider.Rejected, true
		if ok, out := p.mark(ctx, w, EventRefused, row, w.refusalReason); !ok {
			return out
		}
	}
	w.answer()
	return p.schedule(w)
}

// refusalOf is the row with what is known of its POSTs and their refusal.
func (p *Payments) refusalOf(w *work) Payment {
	row := *w.pay
	row.Unsent = max(0, row.Posts-w.arrived)
	row.Refusal, row.RefusalReason, row.RefusedAt = w.refusal, w.refusalReason, w.refusedAt
	return row
}

// notThrough goes on after a POST that our socket did not write, or that was
// turned away.
func (p *Payments) notThrough(ctx context.Context, w *work, rail provider.Rail, o provider.Outcome) jobs.Outcome {
	w.resends++
	if w.since.IsZero() {
		w.since = p.clock.Now()
	}
	w.answer()
	if w.arrived == 0 {
		if out, moved := p.reroute(ctx, w, o); moved {
			return out
		}
	}
	if !w.pay.SendingAt.IsZero() && !rail.MayRepeat {
		row := *w.pay
		row.SendingAt, row.Unsent = time.Time{}, row.Posts-w.arrived
		row.Class, row.Classed = provider.NotSent, true
		if w.turnedAway {
			row.Class = provider.Barred
		}
		if ok, out := p.mark(ctx, w, EventUnsent, row, ""); !ok {
			return out
		}
	}
	return p.unsentYet(ctx, w, rail, max(pause(resendPauses, w.resends-1), o.RetryAfter))
}

// unsentYet waits for the next try of a POST that did not get through, until the
// time for that is over.
func (p *Payments) unsentYet(ctx context.Context, w *work, rail provider.Rail, wait time.Duration) jobs.Outcome {
	left := unsentTime - p.clock.Since(w.since)
	if left <= 0 {
		if ok, out := p.beforePost(ctx, w); !ok { // it may have been sent in the time that was lost
			return out
		}
		return p.hear(ctx, w, rail, fromTime, provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable})
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
		row.Rail, row.Attempt = rail.Name, row.Attempt+1 // its reference stays
		row.Posts, row.Unsent, row.SendingAt = 1, 0, time.Time{}
		old := w.pay.Rail
		if ok, out := p.mark(ctx, w, EventRerouted, row, reasonOf(o)); !ok {
			return out, true
		}
		w.tried = append(w.tried, old)
		w.resends = 0
		p.live.put(w)
		return p.submit(ctx, w, rail), true
	}
	return jobs.Outcome{}, false
}

// resend POSTs again what could not be sent before, on the same rail with the
// same reference.
func (p *Payments) resend(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	if !p.mayUse(ctx, *w.pay, rail) {
		return p.unsentYet(ctx, w, rail, pause(resendPauses, w.resends))
	}
	return p.repost(ctx, w, rail)
}

// repost raises posts, marks, and POSTs again.
func (p *Payments) repost(ctx context.Context, w *work, rail provider.Rail) jobs.Outcome {
	if ok, out := p.beforePost(ctx, w); !ok {
		return out
	}
	row := p.refusalOf(w)
	row.Posts++
	row.SendingAt = p.clock.Now()
	if ok, out := p.mark(ctx, w, EventRepeated, row, ""); !ok {
		return out
	}
	return p.posts(ctx, w, rail)
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
	for _, id := range p.questions.heard(railKindOf(*w.pay), w.pay.ID, answersSomething(o)) {
		p.jobs.Wake(id)
	}
	return p.hear(ctx, w, rail, fromQuestion, o)
}

// escalate calls the operators, once.
func (p *Payments) escalate(ctx context.Context, w *work, class provider.Class, reason string) jobs.Outcome {
	if !w.pay.EscalatedAt.IsZero() {
		return p.schedule(w)
	}
	row := p.refusalOf(w)
	row.EscalatedAt, row.Class, row.Classed, row.Reason = p.clock.Now(), class, true, reason
	ok, out := p.mark(ctx, w, EventDoubted, row, reason)
	if !ok {
		return out
	}
	w.answer()
	p.log.Warn("a payment needs an operator", "payment", w.pay.ID, "tenant", w.pay.Tenant, "kind", string(w.pay.Kind),
		"provider", w.pay.Rail, "provider_reference", w.pay.AttemptReference, "class", class.String(), "reason", reason, "posts", w.pay.Posts)
	return p.schedule(w)
}

// schedule sets the next question.
func (p *Payments) schedule(w *work) jobs.Outcome {
	now := p.clock.Now()
	if !now.Before(w.nextAsk) {
		w.nextAsk = now.Add(askPause(w.asks, w.refusal))
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
	p.drop(*w.pay)
	if !done.changed && (s.event == EventSucceeded) != (done.payment.Status == StatusSuccess) {
		p.looks.soon(done.payment) // an operator, or another node, was told otherwise
	}
	return jobs.Done()
}
