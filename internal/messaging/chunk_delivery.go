package messaging

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

const (
	// sliceSize is how many messages of a chunk are marked and not recorded at once, at most: a crash leaves no more of
	// them unknown.
	sliceSize = 100
	// bulkWorkers and smallWorkers are the chunks of one mode that are worked on at once. Single
	// messages have workers of their own, so that a one-time password does not wait for a campaign.
	bulkWorkers  = 16
	smallWorkers = 256
	// noBindPause is how long a chunk waits when no operator is connected.
	noBindPause = 2 * time.Second
	// resubmitFor is how long a message that no operator took is offered again, from its first time.
	resubmitFor = 30 * time.Minute
	leastRetry  = 100 * time.Millisecond
	mostRetry   = 10 * time.Second
	// stepTries is how often a step is committed again whose error is not the database's absence.
	stepTries = 5
)

// register says who works on chunks.
func (m *Messaging) register() {
	for _, mode := range []tenant.Mode{tenant.Test, tenant.Live} {
		sender := m.sms[mode]
		if sender == nil {
			continue
		}
		takes := func() bool { return !errors.Is(sender.Ready(""), provider.ErrElsewhere) }
		m.jobs.Register(jobs.Handler{Kind: bulkKind(mode), Workers: bulkWorkers, Key: chunkTenant, Run: m.deliver, Takes: takes})
		m.jobs.Register(jobs.Handler{Kind: smallKind(mode), Workers: smallWorkers, Key: chunkTenant, Run: m.deliver, Takes: takes})
		m.jobs.Register(jobs.Handler{Kind: volleyKind(mode), Workers: smallWorkers, Run: m.fire, Takes: takes})
	}
}

// chunkTenant puts the chunks of each tenant in a line of its own; the lines take turns.
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

// deliver is the handler of a chunk.
func (m *Messaging) deliver(ctx context.Context, job jobs.Job) jobs.Outcome {
	w, ok := job.Memo.(*work)
	if !ok || w.stale {
		var err error
		if w, err = m.resume(ctx, job); err != nil {
			return jobs.Retry(err)
		}
		if w == nil {
			return jobs.Done() // its chunk was ended before
		}
	}
	if held, err := m.held(ctx, w.campaign.Tenant); w.until.IsZero() && (err != nil || held) {
		return jobs.Later(recoveryPause)
	}
	w.stale = true // what a panic leaves is in the rows
	wait, err := m.run(ctx, job.ID, w)
	w.stale = err != nil
	switch {
	case errors.Is(err, provider.ErrElsewhere):
		return jobs.Pass()
	case errors.Is(err, errTakenOver), errors.Is(err, lane.ErrClosed):
		return jobs.Later(noBindPause)
	case err != nil:
		return jobs.Retry(err)
	case wait > 0:
		return jobs.Later(wait)
	}
	return jobs.Done()
}

// run takes a chunk through its steps until it is over, or says how long to wait. Each step commits the results that
// have come with the marks of what is sent next; what has no answer yet stays in flight, and the chunk does not end before
// it has one.
func (m *Messaging) run(ctx context.Context, jobID string, w *work) (wait time.Duration, err error) {
	f := m.newFlight(ctx, m.sms[w.campaign.Mode], w)
	defer f.end()
	var results []result
	job := &chunkJob{id: jobID, left: 1}
	for {
		s := &step{job: job, work: w, turn: w.turn, next: newTurn(), results: results, markedAt: f.markedAt(), inFlight: f.size()}
		wait, blocked := m.plan(ctx, f.sender, w, s)
		if !s.idle() {
			done, err := m.commit(ctx, s)
			if err != nil || s.last || done.stopped {
				return 0, err
			}
			if !s.still() {
				w.turn = s.next
			}
			w.next += len(s.claim)
			w.again = append(w.again[len(s.again):], s.queued()...)
		}
		switch sent := len(s.claim) + len(s.again); {
		case sent > 0:
			f.launch(append(append([]message(nil), s.again...), s.claim...))
			wait = 0
		case s.inFlight == 0: // where nothing blocks it the node stops: the next owner goes on
			return max(wait, leastRetry), blocked
		}
		if results, err = f.collect(wait); err != nil {
			return 0, err
		}
	}
}

// plan fills a step with what is to be sent next: recipients without a row first, then what was not
// taken before, when its time has come. Otherwise it says why not, or how long to wait; with messages in flight 0 is
// until one of them has an answer.
func (m *Messaging) plan(ctx context.Context, sender provider.SMSSender, w *work, s *step) (wait time.Duration, blocked error) {
	room := sliceSize - s.inFlight
	if ctx.Err() != nil || room <= 0 {
		return 0, nil
	}
	fresh := w.next < len(w.chunk.Recipients)
	if !fresh && len(w.again)+len(s.queued()) == 0 {
		s.last = s.inFlight == 0
		return 0, nil
	}
	if s.inFlight > 0 && m.halted(ctx, w) {
		return 0, nil // the step after the last answer ends the chunk
	}
	now, passed := m.clock.Reading()
	expired := w.expired(now)
	if err := sender.Ready(""); err != nil && !expired {
		s.look = s.inFlight == 0 && m.halted(ctx, w)
		if errors.Is(err, provider.ErrElsewhere) {
			blocked = err
		}
		return noBindPause, blocked
	}
	switch {
	case fresh:
		s.claim = w.claim(now, room)
		if s.markedAt.IsZero() || now.Before(s.markedAt) {
			s.markedAt = now
		}
	case len(w.again) > 0 && (expired || w.offerAt <= passed):
		s.again = w.again[:min(len(w.again), room)]
		for i := range s.again {
			if s.again[i].SubmittedAt.IsZero() {
				s.again[i].SubmittedAt = now
			}
		}
	default:
		s.look = s.inFlight == 0 && m.halted(ctx, w)
		return max(w.offerAt-passed, leastRetry), nil
	}
	return 0, nil
}

// commit runs a step until the database has it: what an operator answered is lost otherwise.
func (m *Messaging) commit(ctx context.Context, s *step) (stepped, error) {
	rows := 2 + 3*len(s.results) + len(s.claim) + len(s.again)
	for try := 0; ; try++ {
		done, err := m.steps.Do(context.WithoutCancel(ctx), s.work.campaign.Tenant, rows, s)
		away := errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
		if err == nil || errors.Is(err, errTakenOver) || errors.Is(err, lane.ErrClosed) || !away && try >= stepTries {
			return done, err
		}
		if try == 0 {
			if missed, ok := m.uncommitted.May(m.clock.Now()); ok {
				m.log.WarnContext(ctx, "a step of a chunk was not committed and is tried again", "campaign", s.work.campaign.ID, "error", err, "others", missed)
			}
		}
		if m.clock.Sleep(ctx, min(leastRetry<<min(try, 8), mostRetry)) != nil {
			return done, err
		}
	}
}
