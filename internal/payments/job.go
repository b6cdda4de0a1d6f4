package payments

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

const (
	unsentTime = 30 * time.Minute // time for which failing submissions are retried
	railTime   = time.Minute      // pause of a payment whose rail is not configured
	chosenTime = 2 * time.Second  // time for which the choice of a rail is valid without a new check
)

// resendPauses are the pauses between failing submissions.
var resendPauses = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}

// runJob runs the job of an open payment: it submits, polls and settles. The transaction that settles the payment
// also ends the job. Until then the queue runs the job again from memory.
func (f *follower) runJob(ctx context.Context, job jobs.Job) jobs.Outcome {
	a, err := f.resume(ctx, job)
	if err != nil {
		f.trouble(ctx, err, "failed to read payment", "payment", job.Subject)
		return jobs.Later(troubleTime)
	}
	if a == nil {
		return jobs.Done()
	}
	if a.unwritten != nil {
		return f.finish(ctx, a, *a.unwritten)
	}
	if wait := a.hintedTooSoon(momentOf(f.clock)); wait > 0 {
		return jobs.Later(wait)
	}
	row, err := f.rowOf(ctx, a)
	switch {
	case err != nil:
		f.trouble(ctx, err, "failed to read payment", "payment", a.id)
		return jobs.Later(troubleTime)
	case row.Status != book.StatusPending:
		a.answer()
		f.drop(a.id)
		f.rechecks.soon(row) // an operator or another node made it final
		return jobs.Done()
	}
	r := &run{f: f, a: a, row: row}
	defer func() {
		r.keepProbe(ctx, nil)
		a.cacheRow(r.row, momentOf(f.clock))
	}()
	if ok, out := r.recordWaited(ctx); !ok {
		return out
	}
	if ok, out := r.recordAsked(ctx); !ok {
		return out
	}
	rail, ok := f.rails.routes.Rail(row.Rail, row.Mode)
	if !ok {
		a.answer()
		f.log.Error("provider of payment not configured", "payment", row.ID, "provider", row.Rail, "mode", row.Mode)
		return jobs.Later(railTime)
	}
	r.rail = rail
	switch {
	case a.stage == stageUnsent && a.resends == 0:
		// Acceptance has just chosen this rail. A late run, or a run after a takeover, must check the rail again.
		if (a.takenOver || !a.writtenWithin(chosenTime, momentOf(f.clock))) && !r.mayUse(ctx) {
			a.answer()
			if a.since.IsZero() {
				a.since = momentOf(f.clock)
			}
			return r.scheduleRetry(ctx, pause(resendPauses, 0))
		}
		return r.submit(ctx)
	case a.stage == stageUnsent:
		return r.resend(ctx)
	}
	return r.follow(ctx)
}

// A run is one run of an open payment's job, with the node's memory of the payment and its last row.
type run struct {
	f    *follower
	a    *attempt
	row  book.Payment
	rail provider.Rail
	// probe permits one call through a half-open breaker. The run returns the permit if it does not submit.
	probe *route.Probe
}

// submit sends a payment that was certainly not sent to this rail before.
func (r *run) submit(ctx context.Context) jobs.Outcome {
	if ok, out := r.beforeSubmission(ctx); !ok {
		return out
	}
	now := momentOf(r.f.clock)
	if r.a.openedAt.IsZero() {
		r.a.openedAt = now
	}
	if !r.a.writtenWithin(leaveTime, now) || !mayRepeat(r.rail, r.row) {
		row := r.row
		row.SendingAt = r.f.clock.Now()
		if ok, out := r.changeAttempt(ctx, book.EventSending, row, ""); !ok {
			return out
		}
		r.a.submittableAt = now
	}
	return r.call(ctx)
}

// call makes the submission that the row allows and applies its outcome.
func (r *run) call(ctx context.Context) jobs.Outcome {
	// After this line the payment may have been sent, even if this goroutine dies.
	r.a.stage, r.a.sentAt = stageMaybeSent, momentOf(r.f.clock)
	r.a.arrived++
	if r.probe.Of(r.rail) {
		r.probe = nil // the report of the call ends the probe
	}
	return r.apply(ctx, fromSubmission, r.f.rails.submit(ctx, r.rail, r.row, r.a.submittableAt))
}

// changeAttempt stores a change of the attempt. If this write fails, the run must not submit.
func (r *run) changeAttempt(ctx context.Context, e book.Event, row book.Payment, reason string) (bool, jobs.Outcome) {
	s, err := r.f.book.Settle(ctx, book.Settlement{Payment: r.row, Event: e, Known: true, Reason: reason,
		Change: r.row.ChangeTo(row)})
	switch {
	case err != nil:
		r.a.answer()
		r.f.trouble(ctx, err, "failed to change attempt", "payment", r.row.ID, "event", string(e))
		return false, jobs.Later(troubleTime)
	case !s.Changed:
		return false, r.f.overtaken(r.a, s.Payment)
	}
	if holderOf(s.Payment) != holderOf(r.row) {
		r.f.live.moved(r.a, s.Payment)
	}
	r.row = s.Payment
	r.a.saw(r.row)
	return true, jobs.Outcome{}
}

// apply passes a report to judge and acts on the verdict.
func (r *run) apply(ctx context.Context, from source, o provider.Outcome) jobs.Outcome {
	s := evidence{factsOf(r.row, r.rail), r.a.observed}
	s.recovering = r.f.recovered.firstOfRecovery(ctx, r.rail)
	s, v, reason := judge(s, report{from: from, outcome: o, at: momentOf(r.f.clock)})
	r.a.observed = s.observed
	if o.Class == provider.Accepted && o.UpstreamID != "" {
		r.row.UpstreamID, r.a.upstreamID = o.UpstreamID, o.UpstreamID
	}
	switch v {
	case verdictPaid, verdictRefund:
		return r.f.finish(ctx, r.a, final(r.row, v, reason, o))
	case verdictQuery:
		return r.queryNow()
	case verdictAcknowledged:
		r.a.voucherAsked = r.a.voucherAsked || o.AwaitsVoucher
		if ok, out := r.recordAsked(ctx); !ok {
			return out
		}
		return r.next(ctx)
	case verdictRepeat:
		r.a.answer()
		if r.mayUse(ctx) {
			return r.resubmit(ctx)
		}
	case verdictResend:
		return r.retryLater(ctx, o)
	}
	call := v == verdictOperator || r.a.overdue(momentOf(r.f.clock))
	return r.keepPending(ctx, call, reason)
}

// queryNow schedules a status query before the waiting request is answered. The query waits for its turn in the
// rail's line.
func (r *run) queryNow() jobs.Outcome {
	r.a.nextQuery = momentOf(r.f.clock)
	r.a.queryNext.Store(true)
	return jobs.Later(0)
}

// next continues after the provider acknowledged the payment.
func (r *run) next(ctx context.Context) jobs.Outcome {
	if r.row.Refusal != book.RefusalNone {
		row := r.row
		row.Refusal, row.RefusalReason, row.RefusedAt = book.RefusalNone, "", time.Time{}
		row.Class, row.Classed = provider.Accepted, true
		if ok, out := r.changeAttempt(ctx, book.EventTaken, row, ""); !ok {
			return out
		}
	}
	r.a.answer()
	if r.a.overdue(momentOf(r.f.clock)) {
		return r.escalate(ctx, provider.Accepted, "")
	}
	return r.schedule()
}

// keepPending moves no money. It stores an unconfirmed refusal, so that another process that takes over the payment
// sees it.
func (r *run) keepPending(ctx context.Context, call bool, reason string) jobs.Outcome {
	if call && r.row.EscalatedAt.IsZero() {
		return r.escalate(ctx, provider.Unknown, reason)
	}
	if r.a.refusal != r.row.Refusal {
		row := r.refusalOf()
		row.Class, row.Classed = provider.Rejected, true
		if ok, out := r.changeAttempt(ctx, book.EventRefused, row, r.a.refusalReason); !ok {
			return out
		}
	}
	r.a.answer()
	return r.schedule()
}

// refusalOf returns the row with the attempt's current refusal and number of submissions.
func (r *run) refusalOf() book.Payment {
	row := r.row
	row.Unsent = max(0, row.Submissions-r.a.arrived)
	switch {
	case r.a.refusal == book.RefusalNone:
		row.RefusedAt = time.Time{}
	case row.RefusedAt.IsZero():
		row.RefusedAt = r.f.clock.Now()
	}
	row.Refusal, row.RefusalReason = r.a.refusal, r.a.refusalReason
	return row
}

// retryLater handles a submission that never left this machine, or was answered 401, 403 or 429. It reroutes or
// schedules a retry.
func (r *run) retryLater(ctx context.Context, o provider.Outcome) jobs.Outcome {
	r.a.resends++
	if r.a.since.IsZero() {
		r.a.since = momentOf(r.f.clock)
	}
	r.a.answer()
	if r.a.arrived == 0 {
		if out, moved := r.reroute(ctx, o); moved {
			return out
		}
	}
	if !r.row.SendingAt.IsZero() && !mayRepeat(r.rail, r.row) {
		row := r.row
		row.SendingAt, row.Unsent = time.Time{}, row.Submissions-r.a.arrived
		row.Class, row.Classed = provider.NotSent, true
		if r.a.allBarred {
			row.Class = provider.Barred
		}
		if ok, out := r.changeAttempt(ctx, book.EventUnsent, row, ""); !ok {
			return out
		}
	}
	return r.scheduleRetry(ctx, max(pause(resendPauses, r.a.resends-1), o.RetryAfter))
}

// scheduleRetry schedules the next submission. After unsentTime it ends the submissions instead.
func (r *run) scheduleRetry(ctx context.Context, wait time.Duration) jobs.Outcome {
	left := unsentTime - momentOf(r.f.clock).Sub(r.a.since)
	if left <= 0 {
		if ok, out := r.beforeSubmission(ctx); !ok { // the payment may have been sent before the restore
			return out
		}
		return r.apply(ctx, fromDeadline, provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable})
	}
	return jobs.Later(min(wait, left))
}

// reroute moves the payment to another rail. It is called only if no submission left this machine.
func (r *run) reroute(ctx context.Context, o provider.Outcome) (jobs.Outcome, bool) {
	if r.row.Kind == book.KindBundle || r.row.RefundWay == book.RefundByRail { // an offer or a collection exists only at its own provider
		return jobs.Outcome{}, false
	}
	rails, probe, err := r.f.rails.best(ctx, r.row)
	if err != nil {
		return jobs.Outcome{}, false
	}
	r.keepProbe(ctx, probe)
	for _, rail := range rails {
		if rail.Name == r.row.Rail || slices.Contains(r.a.tried, rail.Name) {
			continue
		}
		if same, _ := r.f.rails.samePayee(ctx, rail, r.row); !same {
			continue
		}
		row := r.row
		row.Rail, row.Attempt = rail.Name, row.Attempt+1 // the ProviderReference stays
		row.Submissions, row.Unsent, row.SendingAt, row.VoucherAt = 1, 0, time.Time{}, time.Time{}
		old := r.row.Rail
		if !r.row.SendingAt.IsZero() { // the change clears SendingAt; SubmittableSince is then the acceptance time
			r.a.submittableAt = 0
		}
		if ok, out := r.changeAttempt(ctx, book.EventRerouted, row, reasonOf(o)); !ok {
			return out, true
		}
		r.a.tried = append(r.a.tried, old)
		r.a.resends = 0
		r.rail = rail
		return r.submit(ctx), true
	}
	return jobs.Outcome{}, false
}

// resend repeats a failed submission on the same rail with the same reference.
func (r *run) resend(ctx context.Context) jobs.Outcome {
	if !r.mayUse(ctx) {
		return r.scheduleRetry(ctx, pause(resendPauses, r.a.resends))
	}
	return r.resubmit(ctx)
}

// resubmit counts a submission, writes the change and submits again.
func (r *run) resubmit(ctx context.Context) jobs.Outcome {
	if ok, out := r.beforeSubmission(ctx); !ok {
		return out
	}
	now := momentOf(r.f.clock)
	row := r.refusalOf()
	row.Submissions++
	row.SendingAt = r.f.clock.Now()
	if ok, out := r.changeAttempt(ctx, book.EventRepeated, row, ""); !ok {
		return out
	}
	r.a.submittableAt = now
	return r.call(ctx)
}

// mayUse reports whether the rail is neither paused nor failing.
func (r *run) mayUse(ctx context.Context) bool {
	op, channel := operation(r.row)
	probe, err := r.f.rails.routes.Admit(ctx, r.rail.Name, op, channel, r.row.Tenant, r.row.Mode)
	r.keepProbe(ctx, probe)
	return err == nil
}

// keepProbe replaces the run's probe. The run returns it if it does not submit.
func (r *run) keepProbe(ctx context.Context, probe *route.Probe) {
	r.probe.GiveBack(ctx)
	r.probe = probe
}

// follow queries the status of a payment that may have been sent.
func (r *run) follow(ctx context.Context) jobs.Outcome {
	o := r.f.rails.queries.status(ctx, r.rail, r.row)
	for _, id := range r.f.rails.queries.record(railKindOf(r.row), r.row.ID, answersSomething(o)) {
		r.f.jobs.Wake(id)
	}
	return r.apply(ctx, fromQuery, o)
}

// escalate stores that operators must look at the payment and logs the alert. It does so once.
func (r *run) escalate(ctx context.Context, class provider.Class, reason string) jobs.Outcome {
	if !r.row.EscalatedAt.IsZero() {
		return r.schedule()
	}
	row := r.refusalOf()
	row.EscalatedAt, row.Class, row.Classed, row.Reason = r.f.clock.Now(), class, true, reason
	ok, out := r.changeAttempt(ctx, book.EventDoubted, row, reason)
	if !ok {
		return out
	}
	r.a.answer()
	r.f.log.Warn("payment needs attention", "payment", r.row.ID, "tenant", r.row.Tenant, "kind", string(r.row.Kind),
		"provider", r.row.Rail, "provider_reference", r.row.AttemptReference, "class", class.String(), "reason", reason, "posts", r.row.Submissions)
	return r.schedule()
}

// schedule returns the time of the next query.
func (r *run) schedule() jobs.Outcome {
	now := momentOf(r.f.clock)
	if now >= r.a.nextQuery {
		wait := queryPause(r.a.queries, r.a.refusal)
		if !r.a.unpaidAt.IsZero() { // the second Unpaid fails the payment
			wait = min(wait, unpaidApart)
		}
		r.a.nextQuery = now.Add(wait)
		r.a.queries++
	}
	r.a.queryNext.Store(true)
	wait := r.a.nextQuery.Sub(now)
	if left := max(0, onItsWay-now.Sub(r.a.sentAt)); !r.row.Waited() && wait > left+doubtTime {
		wait = left
	}
	return jobs.Later(wait)
}

// recordWaited stores that the last submission has ended, whichever process made it. From then on an operator may
// resolve the payment.
func (r *run) recordWaited(ctx context.Context) (goOn bool, out jobs.Outcome) {
	now := momentOf(r.f.clock)
	if r.a.sentAt.IsZero() {
		r.a.sentAt = now
	}
	if r.row.Waited() || now.Sub(r.a.sentAt) < onItsWay {
		return true, out
	}
	row := r.row
	row.WaitedFor = row.SubmittableSince()
	return r.changeAttempt(ctx, book.EventWaited, row, "")
}

// recordAsked stores that the provider asked for a voucher. From then on the account's client may send one.
func (r *run) recordAsked(ctx context.Context) (goOn bool, out jobs.Outcome) {
	if !r.a.voucherAsked || !r.row.VoucherAt.IsZero() {
		return true, out
	}
	row := r.row
	row.VoucherAt = r.f.clock.Now()
	return r.changeAttempt(ctx, book.EventAsked, row, "")
}

// beforeSubmission searches every rail for the payment before its first submission in a recovery. The restored row
// may be from before a reroute. goOn allows the submission; otherwise out is the job's outcome.
func (r *run) beforeSubmission(ctx context.Context) (goOn bool, out jobs.Outcome) {
	s, err := r.f.recovered.state(ctx)
	switch {
	case err != nil:
		r.a.answer()
		r.f.trouble(ctx, err, "failed to read recovery state", "payment", r.row.ID)
		return false, jobs.Later(troubleTime)
	case !s.Lasts() || r.a.searched && !s.Closed():
		return true, out
	case s.Closed():
		r.a.answer()
		return false, jobs.Later(recoveryPause)
	}
	found := r.f.recovered.queryAllRails(ctx, s, r.row, false)
	switch {
	case found.known && found.way == r.row.RefundWay:
		return false, r.adopt(ctx, found)
	case found.known, found.differs: // the way of a refund never changes
		r.a.answer()
		return false, r.escalate(ctx, provider.Unknown, provider.ReasonMismatch)
	case found.silent != "":
		r.a.answer()
		return false, jobs.Later(recoveryPause)
	case found.wait > 0:
		r.a.answer()
		return false, jobs.Later(found.wait)
	}
	r.a.searched = true
	return true, out
}

// adopt assigns an open payment to the rail that has it.
func (r *run) adopt(ctx context.Context, found searchResult) jobs.Outcome {
	row := r.row
	row.Rail, row.SendingAt, row.UpstreamID = found.rail.Name, r.f.clock.Now(), found.outcome.UpstreamID
	if row.Rail != r.row.Rail {
		row.Attempt, row.Submissions, row.Unsent, row.VoucherAt = row.Attempt+1, 1, 0, time.Time{}
	}
	if ok, out := r.changeAttempt(ctx, book.EventAdopted, row, ""); !ok {
		return out
	}
	r.f.log.Warn("recovery: adopted payment found at provider", "payment", r.row.ID, "provider", row.Rail)
	r.a.searched, r.a.stage, r.a.arrived = true, stageSent, 1
	r.a.acceptedAt, r.a.sentAt, r.a.upstreamID = momentOf(r.f.clock), momentOf(r.f.clock), row.UpstreamID
	r.rail = found.rail
	return r.apply(ctx, fromQuery, found.outcome)
}
