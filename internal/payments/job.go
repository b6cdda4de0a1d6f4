package payments

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// The times of an open payment. Those of the judge are beside it.
const (
	hintTime    = 2 * time.Second  // a callback moves a question forward at most this often
	unsentTime  = 30 * time.Minute // how long a submission that does not get through is tried again
	refusedTime = time.Minute      // the longest pause between questions about a refusal
	railTime    = time.Minute      // pause of a payment whose rail is not configured
	troubleTime = 2 * time.Second  // pause after an error of our own
	leaveTime   = 30 * time.Second // how long after the row said so a submission may begin
	keptTime    = 4 * time.Second  // how long after its acceptance a payment's row is kept between runs
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
func askPause(n int, r book.Refusal) time.Duration {
	if r == book.RefusalNone {
		return pause(askPauses, n)
	}
	return min(pause(askPauses, n), refusedTime)
}

// resendPauses are the pauses between submissions that could not be sent.
var resendPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}

func pause(of []time.Duration, n int) time.Duration { return of[min(n, len(of)-1)] }

// runJob runs the job of an open payment: it submits, polls, and settles. The job
// ends in the transaction that settles; until then it comes back from memory.
func (p *Payments) runJob(ctx context.Context, job jobs.Job) jobs.Outcome {
	t, err := p.resume(ctx, job)
	if err != nil {
		p.trouble(ctx, err, "a payment could not be read", "payment", job.Subject)
		return jobs.Later(troubleTime)
	}
	if t == nil {
		return jobs.Done()
	}
	if t.unwritten != nil {
		return p.finish(ctx, t, *t.unwritten)
	}
	if wait := t.hintedTooSoon(p.clock.Now()); wait > 0 {
		return jobs.Later(wait)
	}
	row, err := p.rowOf(ctx, t)
	switch {
	case err != nil:
		p.trouble(ctx, err, "a payment could not be read", "payment", t.id)
		return jobs.Later(troubleTime)
	case row.Status != book.StatusPending:
		t.answer()
		p.drop(t.id)
		p.rechecks.soon(row) // an operator, or another node, ended it while this node followed it
		return jobs.Done()
	}
	r := &run{p: p, t: t, row: row}
	defer func() {
		r.holdProbe(ctx, nil)
		t.keep(r.row, p.clock.Now())
	}()
	rail, ok := p.routes.Rail(row.Rail, row.Mode)
	if !ok {
		t.answer()
		p.log.Error("a payment's provider is not configured", "payment", row.ID, "provider", row.Rail, "mode", row.Mode)
		return jobs.Later(railTime)
	}
	r.rail = rail
	switch {
	case t.stage == stageUnsent && t.resends == 0:
		// The accepting node has just chosen this rail; a later owner, and a run that
		// comes late, must check again.
		if (t.taken || p.clock.Since(row.CreatedAt).Abs() >= chosenTime) && !r.mayUse(ctx) {
			t.answer()
			if t.since.IsZero() {
				t.since = p.clock.Now()
			}
			return r.unsentYet(ctx, pause(resendPauses, 0))
		}
		return r.submit(ctx)
	case t.stage == stageUnsent:
		return r.resend(ctx)
	}
	return r.follow(ctx)
}

// A run is one run of an open payment's job: what the node has in memory of the
// payment, and its row as it was last read or written.
type run struct {
	p    *Payments
	t    *tracked
	row  book.Payment
	rail provider.Rail
	// probe is what the run holds of a half-open breaker, and gives back if it ends
	// without a submission.
	probe *route.Probe
}

// resume finds what is known of a job's payment: from the transaction that
// accepted it, from an earlier run, or from the row alone. nil: there is nothing
// to do.
func (p *Payments) resume(ctx context.Context, job jobs.Job) (*tracked, error) {
	if t, ok := job.Memo.(*tracked); ok {
		return t, nil
	}
	if t := p.live.byID(job.Subject); t != nil {
		return t, nil
	}
	said, err := book.PayloadOf(job)
	if err != nil {
		return nil, err
	}
	row, found, err := p.Get(ctx, said.Tenant, said.Kind, job.Subject)
	if err != nil || !found || row.Status != book.StatusPending {
		return nil, err
	}
	t := track(row)
	t.since, t.openedAt = db.FromMicros(said.At), db.FromMicros(said.At)
	t.asks = asksWithin(p.clock.Since(t.openedAt))
	p.resetFromRow(t, row)
	t.kept = &row
	if job.Fresh && row.SendingAt.IsZero() && row.Attempt == 1 && row.Posts == 1 {
		t.stage, t.arrived = stageUnsent, 0 // it had no room in memory
	}
	return p.live.enter(t), nil
}

// rowOf gives the row for a run: as the acceptance or the last run has left it, while
// that is kept, and else as the database has it. Where another process has changed the
// attempt meanwhile, what this one remembers of it is void. A kept row may be old: the
// guards of every mark and settlement find that out.
func (p *Payments) rowOf(ctx context.Context, t *tracked) (book.Payment, error) {
	if row := t.kept; row != nil {
		t.kept = nil
		if attemptStateOf(*row) == t.attempt {
			return *row, nil
		}
	}
	row, found, err := p.book.Row(ctx, t.tenant, t.id)
	if err == nil && !found {
		err = errors.New("payments: the row of an open payment is not there")
	}
	if err != nil {
		return book.Payment{}, err
	}
	if t.upstreamID != "" {
		row.UpstreamID = t.upstreamID
	}
	if row.Status == book.StatusPending && attemptStateOf(row) != t.attempt {
		p.resetFromRow(t, row)
		p.live.put(t, row)
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

// resetFromRow makes the row all that is known of an attempt. What this process
// remembered of it is void.
func (p *Payments) resetFromRow(t *tracked, row book.Payment) {
	t.attempt = attemptStateOf(row)
	opened := t.openedAt
	t.standing = standing{stage: stageUnsure, arrived: row.Posts}
	if rail, ok := p.routes.Rail(row.Rail, row.Mode); ok {
		t.standing = standingOf(row, rail)
	}
	t.openedAt, t.taken = opened, true
	if t.stage == stageUnsent && (row.Unsent > 0 || t.arrived > 0) {
		t.resends = max(t.resends, 1)
	}
}

// standingOf is what the row alone tells of an attempt. A submission that it does not
// speak of may have been made.
func standingOf(row book.Payment, rail provider.Rail) standing {
	s := standing{
		stage: stageUnsure, arrived: row.Posts - row.Unsent, openedAt: row.CreatedAt,
		lastPost: row.MayLeaveSince().Add(leaveTime + submitTime),
		refusal:  row.Refusal, refusalReason: row.RefusalReason, refusedAt: row.RefusedAt, refusedLast: row.RefusedAt,
	}
	if !rail.MayRepeat && row.SendingAt.IsZero() && row.Refusal == book.RefusalNone {
		// Every submission on such a rail is marked first, and the mark is taken back when the
		// submission has not got through.
		s.stage, s.turnedAway = stageUnsent, row.Classed && row.Class == provider.Barred
		if !s.turnedAway {
			s.arrived = 0
		}
	}
	s.row(row, rail)
	return s
}

// row fills in what the judge reads from the row and the rail alone.
func (s *standing) row(row book.Payment, rail provider.Rail) {
	s.kind, s.status, s.said, s.turned = row.Kind, row.Status, row.ProviderState(), !row.ContradictedAt.IsZero()
	s.mayRepeat, s.visibleAfter, s.unpaidAfter = rail.MayRepeat, rail.VisibleAfter, rail.UnpaidAfter
	s.sentAt, s.mayLeave, s.escalated = sentSince(row, rail), row.MayLeaveSince(), row.EscalatedAt
}

// submit hands over what certainly was not sent before.
func (r *run) submit(ctx context.Context) jobs.Outcome {
	if ok, out := r.beforePost(ctx); !ok {
		return out
	}
	if r.t.openedAt.IsZero() {
		r.t.openedAt = r.p.clock.Now()
	}
	late := r.p.clock.Since(r.row.CreatedAt).Abs() >= leaveTime // a clock may have been set back
	if late || !r.rail.MayRepeat {
		row := r.row
		row.SendingAt = r.p.clock.Now()
		if ok, out := r.mark(ctx, book.EventSending, row, ""); !ok {
			return out
		}
	}
	return r.call(ctx)
}

// call makes the submission that the row speaks of.
func (r *run) call(ctx context.Context) jobs.Outcome {
	// Whatever becomes of this goroutine from here on, it may have been sent.
	r.t.stage = stageUnsure
	r.t.arrived++
	if r.probe.Of(r.rail) {
		r.probe = nil // its report ends it
	}
	return r.apply(ctx, fromPost, r.p.submit(ctx, r.rail, r.row))
}

// mark writes a change of the attempt. Without it nothing is submitted.
func (r *run) mark(ctx context.Context, e book.Event, row book.Payment, reason string) (bool, jobs.Outcome) {
	s, err := r.p.book.Settle(ctx, book.Settlement{Payment: r.row, Event: e, Known: true, Reason: reason,
		Mark: markTo(r.row, row)})
	switch {
	case err != nil:
		r.t.answer()
		r.p.trouble(ctx, err, "an attempt could not be marked", "payment", r.row.ID, "event", string(e))
		return false, jobs.Later(troubleTime)
	case !s.Changed:
		return false, r.p.overtaken(r.t, s.Payment)
	}
	r.row = s.Payment
	r.t.attempt = attemptStateOf(r.row)
	return true, jobs.Outcome{}
}

// overtaken goes on from the row after another process has changed it.
func (p *Payments) overtaken(t *tracked, row book.Payment) jobs.Outcome {
	t.answer()
	if row.Status != book.StatusPending {
		p.drop(t.id)
		return jobs.Done()
	}
	p.resetFromRow(t, row)
	p.live.put(t, row)
	return jobs.Later(troubleTime)
}

// apply has a word about a payment judged, and does what the verdict says.
func (r *run) apply(ctx context.Context, from source, o provider.Outcome) jobs.Outcome {
	r.t.row(r.row, r.rail)
	r.t.recovering = r.p.firstOfRecovery(ctx, r.rail)
	var v verdict
	var reason string
	r.t.standing, v, reason = judge(r.t.standing, report{from, o, r.p.clock.Now()})
	if o.Class == provider.Accepted && o.UpstreamID != "" {
		r.row.UpstreamID, r.t.upstreamID = o.UpstreamID, o.UpstreamID
	}
	switch v {
	case verdictPaid, verdictRefund:
		return r.p.finish(ctx, r.t, final(r.row, v, reason, o))
	case verdictAsk:
		return r.askNow()
	case verdictTaken:
		return r.next(ctx)
	case verdictRepeat:
		r.t.answer()
		if r.mayUse(ctx) {
			return r.resubmit(ctx)
		}
	case verdictResend:
		return r.notThrough(ctx, o)
	}
	call := v == verdictOperator || r.t.overdue(r.p.clock.Now())
	return r.hold(ctx, call, reason)
}

// final is the settlement that a verdict asks for. A refund on anything but the
// provider's last word is about the submissions that are known: the row must have no
// other.
func final(pay book.Payment, v verdict, reason string, o provider.Outcome) book.Settlement {
	if v == verdictPaid {
		return book.Settlement{Payment: pay, Event: book.EventSucceeded, Outcome: o}
	}
	s := book.Settlement{Payment: pay, Event: book.EventFailed, Reason: reason, Outcome: o}
	if !o.Final() {
		s.Posts = pay.Posts
		if o.Class == provider.Unknown {
			s.Outcome.Class = provider.Rejected // as its refusal said, which the provider has confirmed
		}
	}
	return s
}

// askNow has the provider asked before the request that waits is answered. The
// question waits in the line of questions.
func (r *run) askNow() jobs.Outcome {
	r.t.nextAsk = r.p.clock.Now()
	r.t.asking.Store(true)
	return jobs.Later(0)
}

// next follows a payment that the provider has.
func (r *run) next(ctx context.Context) jobs.Outcome {
	if r.row.Refusal != book.RefusalNone {
		row := r.row
		row.Refusal, row.RefusalReason, row.RefusedAt = book.RefusalNone, "", time.Time{}
		row.Class, row.Classed = provider.Accepted, true
		if ok, out := r.mark(ctx, book.EventTaken, row, ""); !ok {
			return out
		}
	}
	r.t.answer()
	if r.t.overdue(r.p.clock.Now()) {
		return r.escalate(ctx, provider.Accepted, "")
	}
	return r.schedule()
}

// hold leaves the money where it is. A refusal that is not confirmed is written
// down, for the node that takes the payment over.
func (r *run) hold(ctx context.Context, call bool, reason string) jobs.Outcome {
	if call && r.row.EscalatedAt.IsZero() {
		return r.escalate(ctx, provider.Unknown, reason)
	}
	if r.t.refusal != r.row.Refusal {
		row := r.refusalOf()
		row.Class, row.Classed = provider.Rejected, true
		if ok, out := r.mark(ctx, book.EventRefused, row, r.t.refusalReason); !ok {
			return out
		}
	}
	r.t.answer()
	return r.schedule()
}

// refusalOf is the row with what is known of its submissions and their refusal.
func (r *run) refusalOf() book.Payment {
	row := r.row
	row.Unsent = max(0, row.Posts-r.t.arrived)
	row.Refusal, row.RefusalReason, row.RefusedAt = r.t.refusal, r.t.refusalReason, r.t.refusedAt
	return row
}

// notThrough goes on after a submission that our socket did not write, or that was
// turned away.
func (r *run) notThrough(ctx context.Context, o provider.Outcome) jobs.Outcome {
	r.t.resends++
	if r.t.since.IsZero() {
		r.t.since = r.p.clock.Now()
	}
	r.t.answer()
	if r.t.arrived == 0 {
		if out, moved := r.reroute(ctx, o); moved {
			return out
		}
	}
	if !r.row.SendingAt.IsZero() && !r.rail.MayRepeat {
		row := r.row
		row.SendingAt, row.Unsent = time.Time{}, row.Posts-r.t.arrived
		row.Class, row.Classed = provider.NotSent, true
		if r.t.turnedAway {
			row.Class = provider.Barred
		}
		if ok, out := r.mark(ctx, book.EventUnsent, row, ""); !ok {
			return out
		}
	}
	return r.unsentYet(ctx, max(pause(resendPauses, r.t.resends-1), o.RetryAfter))
}

// unsentYet waits for the next try of a submission that did not get through, until the
// time for that is over.
func (r *run) unsentYet(ctx context.Context, wait time.Duration) jobs.Outcome {
	left := unsentTime - r.p.clock.Since(r.t.since)
	if left <= 0 {
		if ok, out := r.beforePost(ctx); !ok { // it may have been sent in the time that was lost
			return out
		}
		return r.apply(ctx, fromTime, provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable})
	}
	return jobs.Later(min(wait, left))
}

// reroute gives the payment to another rail. It is asked only after submissions that
// our own socket has not sent.
func (r *run) reroute(ctx context.Context, o provider.Outcome) (jobs.Outcome, bool) {
	if r.row.Kind == book.KindBundle { // an offer is one provider's
		return jobs.Outcome{}, false
	}
	op, channel := operation(r.row)
	rails, probe, err := r.p.routes.Choose(ctx, op, channel, r.row.Tenant, r.row.Mode)
	if err != nil {
		return jobs.Outcome{}, false
	}
	r.holdProbe(ctx, probe)
	for _, rail := range rails {
		if rail.Name == r.row.Rail || slices.Contains(r.t.tried, rail.Name) {
			continue
		}
		row := r.row
		row.Rail, row.Attempt = rail.Name, row.Attempt+1 // its reference stays
		row.Posts, row.Unsent, row.SendingAt = 1, 0, time.Time{}
		old := r.row.Rail
		if ok, out := r.mark(ctx, book.EventRerouted, row, reasonOf(o)); !ok {
			return out, true
		}
		r.t.tried = append(r.t.tried, old)
		r.t.resends = 0
		r.rail = rail
		return r.submit(ctx), true
	}
	return jobs.Outcome{}, false
}

// resend submits again what could not be sent before, on the same rail with the
// same reference.
func (r *run) resend(ctx context.Context) jobs.Outcome {
	if !r.mayUse(ctx) {
		return r.unsentYet(ctx, pause(resendPauses, r.t.resends))
	}
	return r.resubmit(ctx)
}

// resubmit raises posts, marks, and submits again.
func (r *run) resubmit(ctx context.Context) jobs.Outcome {
	if ok, out := r.beforePost(ctx); !ok {
		return out
	}
	row := r.refusalOf()
	row.Posts++
	row.SendingAt = r.p.clock.Now()
	if ok, out := r.mark(ctx, book.EventRepeated, row, ""); !ok {
		return out
	}
	return r.call(ctx)
}

// mayUse says whether a rail is neither paused nor failing.
func (r *run) mayUse(ctx context.Context) bool {
	op, channel := operation(r.row)
	probe, err := r.p.routes.Admit(ctx, r.rail.Name, op, channel, r.row.Tenant, r.row.Mode)
	r.holdProbe(ctx, probe)
	return err == nil
}

// holdProbe keeps a probe until the submission or the end of the run.
func (r *run) holdProbe(ctx context.Context, probe *route.Probe) {
	r.probe.GiveBack(ctx)
	r.probe = probe
}

// follow asks for a payment that may have been sent.
func (r *run) follow(ctx context.Context) jobs.Outcome {
	o := r.p.ask(ctx, r.rail, r.row)
	for _, id := range r.p.questions.heard(railKindOf(r.row), r.row.ID, answersSomething(o)) {
		r.p.jobs.Wake(id)
	}
	return r.apply(ctx, fromQuestion, o)
}

// escalate calls the operators, once.
func (r *run) escalate(ctx context.Context, class provider.Class, reason string) jobs.Outcome {
	if !r.row.EscalatedAt.IsZero() {
		return r.schedule()
	}
	row := r.refusalOf()
	row.EscalatedAt, row.Class, row.Classed, row.Reason = r.p.clock.Now(), class, true, reason
	ok, out := r.mark(ctx, book.EventDoubted, row, reason)
	if !ok {
		return out
	}
	r.t.answer()
	r.p.log.Warn("a payment needs an operator", "payment", r.row.ID, "tenant", r.row.Tenant, "kind", string(r.row.Kind),
		"provider", r.row.Rail, "provider_reference", r.row.AttemptReference, "class", class.String(), "reason", reason, "posts", r.row.Posts)
	return r.schedule()
}

// schedule sets the next question.
func (r *run) schedule() jobs.Outcome {
	now := r.p.clock.Now()
	if !now.Before(r.t.nextAsk) {
		r.t.nextAsk = now.Add(askPause(r.t.asks, r.t.refusal))
		r.t.asks++
	}
	r.t.asking.Store(true)
	return jobs.Later(r.t.nextAsk.Sub(now))
}

// trouble logs an error of our own about a payment, which is tried again. A
// database that is away concerns all alike and says so elsewhere: a line for
// each open payment every two seconds would bury that.
func (p *Payments) trouble(ctx context.Context, err error, text string, about ...any) {
	level := slog.LevelError
	if book.Systemic(err) {
		level = slog.LevelDebug
	}
	p.log.Log(ctx, level, text, append(about, "error", err)...)
}

// finish settles. A final word that cannot be written down now is kept and
// written before anything else is done.
func (p *Payments) finish(ctx context.Context, t *tracked, s book.Settlement) jobs.Outcome {
	s.Known = true
	reply := t.reply.Load()
	if s.Event == book.EventFailed && reply != nil {
		// The request that waits is told of a refusal; one that went is not.
		s.Refused = reply.waiter.CompareAndSwap(waiterThere, waiterTold) || reply.waiter.Load() == waiterTold
	}
	done, err := p.book.Settle(ctx, s)
	if err != nil {
		p.trouble(ctx, err, "a payment could not be settled", "payment", t.id, "event", string(s.Event))
		t.unwritten = &s
		if s.Refused && !errors.Is(err, db.ErrAmbiguous) {
			// There is nothing to tell yet. The request may go, and the webhook tells.
			reply.waiter.CompareAndSwap(waiterTold, waiterThere)
		}
		return jobs.Later(troubleTime)
	}
	t.unwritten = nil
	if !done.Changed && done.Payment.Status == book.StatusPending {
		return p.overtaken(t, done.Payment)
	}
	if done.Payment.Refused && reply != nil {
		reply.refusal = &done.Payment
	}
	t.answer()
	p.drop(t.id)
	if !done.Changed && (s.Event == book.EventSucceeded) != (done.Payment.Status == book.StatusSuccess) {
		p.rechecks.soon(done.Payment) // an operator, or another node, was told otherwise
	}
	return jobs.Done()
}
