package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
)

// chunkJob returns the job of a chunk that is not claimed yet.
func (d *runner) chunkJob(c Campaign, k chunk, code *otp.Code, staged bool) (jobs.Job, error) {
	kind := bulkKind(c.Mode)
	switch {
	case k.Texts != nil:
		kind = ownTextsKind(c.Mode)
	case len(k.Recipients) <= SmallSize:
		kind = smallKind(c.Mode)
	}
	job, err := k.payload().job(kind)
	if job.RunAt = c.StartsAt; !staged && c.StartsAt.IsZero() { // the recipients of large and scheduled campaigns do not wait in memory
		job.Memo = d.newWork(c, k, code)
	}
	return job, err
}

// newWork returns the work of a chunk that was just accepted. code is the code of a one-time password, or nil.
func (d *runner) newWork(c Campaign, part chunk, code *otp.Code) *work {
	w := &work{campaign: c, chunk: part, turn: c.turn}
	w.render(d.codes, code)
	return w
}

const (
	// sliceSize is the maximum number of messages of a chunk that are claimed and have no stored result. After a
	// crash at most this many are unknown.
	sliceSize = 100
	// RecoveryPause is the pause before a campaign that a recovery delays is tried again. One-time passwords are not
	// delayed, because a repeated one does no harm.
	RecoveryPause = 30 * time.Second
	// noBindPause is the pause of a chunk while no mobile operator is connected.
	noBindPause = 2 * time.Second
)

// runner runs the jobs that deliver chunks.
type runner struct {
	db        *db.DB
	jobs      *jobs.Queue
	clock     *clock.Clock
	sms       map[tenant.Mode]provider.SMSSender
	codes     *otp.Codes
	recovery  *recovery.Recovery
	owner     *chunkOwner
	submitter *submitter
	steps     *stepCommit
	claims    sendingClaims
	states    *cache.Cache[campaignKey, CampaignStatus]
	hours     config.Hours
	optedOut  func(ctx context.Context, tenant string, list []msisdn.MSISDN) (map[msisdn.MSISDN]bool, error)
}

func newRunner(d Deps, receipts *receiptBook, counters metrics) *runner {
	made := &runner{hours: d.Hours, optedOut: d.OptedOut, db: d.DB, jobs: d.Jobs, clock: d.Clock, sms: d.SMS, codes: d.Codes, recovery: d.Recovery,
		owner:     &chunkOwner{db: d.DB, resend: d.Resend, codes: d.Codes, receipts: receipts},
		submitter: newSubmitter(d, receipts, counters), steps: newStepCommit(d, receipts)}
	made.states = cache.New(d.Clock, freshness, cached, made.loadStatus)
	return made
}

// chunkTenant returns the tenant of a chunk's job. Tenants take turns in the queue.
func chunkTenant(j jobs.Job) string {
	if w, ok := j.Memo.(*work); ok {
		return w.campaign.Tenant
	}
	var payload chunkPayload
	if json.Unmarshal(j.Payload, &payload) != nil {
		return ""
	}
	return payload.Tenant
}

// deliver runs the job of one chunk.
func (d *runner) deliver(ctx context.Context, job jobs.Job) jobs.Outcome {
	w, ok := job.Memo.(*work)
	if !ok || w.stale {
		var err error
		if w, err = d.owner.resume(ctx, job); err != nil {
			return jobs.Retry(err)
		}
		if w == nil {
			return jobs.Done() // the chunk is finished
		}
	}
	if delayed, err := d.recovery.Delays(ctx, w.campaign.Tenant); w.until.IsZero() && (err != nil || delayed) {
		return jobs.Later(RecoveryPause)
	}
	w.stale = true // after a panic only the rows are correct
	wait, err := d.run(ctx, job.ID, w)
	w.stale = err != nil
	switch {
	case errors.Is(err, provider.ErrElsewhere):
		return jobs.Pass()
	case errors.Is(err, errTakenOver), errors.Is(err, groupcommit.ErrClosed):
		return jobs.Later(noBindPause)
	case err != nil:
		return jobs.Retry(err)
	case wait > 0:
		return jobs.Later(wait)
	}
	return jobs.Done()
}

// run delivers a chunk in steps until it is finished, or returns how long to wait. Each step stores the results so
// far and claims the next messages. Messages without a response stay in flight. The chunk is finished only when each
// message has a result.
func (d *runner) run(ctx context.Context, jobID string, w *work) (wait time.Duration, err error) {
	f := d.newFlight(ctx, w)
	defer f.end()
	var results []result
	job := &chunkJob{id: jobID, left: 1}
	for {
		s := &step{job: job, work: w, turn: w.turn, next: newTurn(), results: results, claimedAt: f.claimedAt(), inFlight: f.size()}
		wait, blocked := d.plan(ctx, f.sender, w, s)
		if f.optedOut, err = d.optOuts(ctx, w, s); err != nil {
			return 0, err
		}
		if !s.idle() {
			done, err := d.steps.commit(ctx, s)
			if err != nil || s.last || done.stopped {
				return 0, err
			}
			if !s.empty() {
				w.turn = s.next
			}
			w.next += len(s.claim)
			w.retry = append(w.retry[len(s.retry):], s.queued()...)
		}
		switch sent := len(s.claim) + len(s.retry); {
		case sent > 0:
			f.submit(append(append([]message(nil), s.retry...), s.claim...))
			wait = 0
		case s.inFlight == 0: // if nothing blocks the chunk, the node is stopping and the next owner continues
			return max(wait, leastRetry), blocked
		}
		if results, err = f.collect(wait); err != nil {
			return 0, err
		}
		f.checkStopWaiting()
	}
}

func (d *runner) newFlight(ctx context.Context, w *work) *flight {
	f := d.submitter.newFlight(ctx, d.sms[w.campaign.Mode], w)
	f.stopped = func() bool { return d.stopped(f.ctx, w) }
	return f
}

// plan adds the next messages to a step: first recipients without a row, then queued messages that are due. If it
// adds none, it returns the reason that blocks the chunk, or how long to wait. While messages are in flight, a wait
// of 0 means to wait for the next response.
func (d *runner) plan(ctx context.Context, sender provider.SMSSender, w *work, s *step) (wait time.Duration, blocked error) {
	room := sliceSize - s.inFlight
	if ctx.Err() != nil || room <= 0 {
		return 0, nil
	}
	fresh := w.next < len(w.chunk.Recipients)
	if !fresh && len(w.retry)+len(s.queued()) == 0 {
		s.last = s.inFlight == 0
		return 0, nil
	}
	if s.inFlight > 0 && d.stopped(ctx, w) {
		return 0, nil // the step after the last response finishes the chunk
	}
	now, passed := d.clock.Reading()
	if wait := d.opens(w.campaign, now).Sub(now); wait > 0 {
		s.checkStopped = s.inFlight == 0 && d.stopped(ctx, w)
		return wait, nil
	}
	expired := w.expired(now)
	if err := sender.Ready(""); err != nil && !expired {
		s.checkStopped = s.inFlight == 0 && d.stopped(ctx, w)
		if errors.Is(err, provider.ErrElsewhere) {
			blocked = err
		}
		return noBindPause, blocked
	}
	switch {
	case fresh:
		s.claim = w.claim(now, room)
		if s.claimedAt.IsZero() || now.Before(s.claimedAt) {
			s.claimedAt = now
		}
	case len(w.retry) > 0 && (expired || w.offerAt <= passed):
		s.retry = w.retry[:min(len(w.retry), room)]
		for i := range s.retry {
			if s.retry[i].SubmittedAt.IsZero() {
				s.retry[i].SubmittedAt = now
			}
		}
	default:
		s.checkStopped = s.inFlight == 0 && d.stopped(ctx, w)
		return max(w.offerAt-passed, leastRetry), nil
	}
	return 0, nil
}

// opens returns when messages of a campaign may go out: now, or at its begin, or when the hours of promotional texts
// begin again.
func (d *runner) opens(c Campaign, now time.Time) time.Time {
	if now.Before(c.StartsAt) {
		now = c.StartsAt
	}
	if c.Promotional {
		now = d.hours.Next(now)
	}
	return now
}

// optOuts returns the recipients of a step's messages that opted out after the campaign was accepted.
func (d *runner) optOuts(ctx context.Context, w *work, s *step) (map[msisdn.MSISDN]bool, error) {
	if d.optedOut == nil || w.campaign.Kind != KindCampaign || w.campaign.answers() || len(s.claim)+len(s.retry) == 0 {
		return nil, nil
	}
	list := make([]msisdn.MSISDN, 0, len(s.claim)+len(s.retry))
	for _, msg := range append(append([]message(nil), s.retry...), s.claim...) {
		list = append(list, msisdn.MSISDN(msg.Recipient))
	}
	return d.optedOut(ctx, w.campaign.Tenant, list)
}

// mayClaim reports whether this node claims a campaign in the transaction that charges it, and registers the claim. It
// does so only if the campaign is small and starts at once, the node has a connection and will run the job from memory,
// and few others wait.
func (d *runner) mayClaim(c Campaign, chunks []chunk) bool {
	if len(chunks) != 1 || !chunks[0].Small || !c.StartsAt.IsZero() || d.sms[c.Mode].Ready("") != nil {
		return false
	}
	queue := d.jobs.Counts()
	return queue.LeaseHolds && !queue.Overflowing && queue.Ready < claimsAtOnce && d.claims.begin(d.clock, c.ID)
}

// stopped reports whether an operator stopped the campaign. The answer may be up to freshness old.
func (d *runner) stopped(ctx context.Context, w *work) bool {
	status, err := d.states.Get(ctx, campaignKey{w.campaign.Tenant, w.campaign.ID})
	return err == nil && status == CampaignStopped
}

const selectStatus = `SELECT status FROM campaigns WHERE tenant = $1 AND id = $2`

func (d *runner) loadStatus(ctx context.Context, k campaignKey) (status CampaignStatus, err error) {
	_, err = d.db.ReadOne(ctx, selectStatus, []any{k.tenant, k.id}, &status)
	return status, err
}
