package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/jobs/scheduler"
)

// unwrittenPause is the pause before a job runs again if its outcome could not be stored.
const unwrittenPause = 2 * time.Second

// runner runs the jobs in memory when they are due.
type runner struct {
	*node
	db    *db.DB
	log   *slog.Logger
	lease *lease.Lease
	notes *groupcommit.Committer[note, struct{}]

	timer   *clock.Timer
	timerAt time.Duration
	kick    chan struct{} // the timer was replaced
	quit    chan struct{} // closed to end the loops
	loops   sync.WaitGroup
	workers sync.WaitGroup
	runCtx  context.Context // of the handlers
	stopRun context.CancelFunc
}

// leaseTaken begins a new epoch. The memory is empty then.
func (r *runner) leaseTaken(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = owner
}

// leaseLost deletes everything that belonged to the epoch from memory.
func (r *runner) leaseLost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = ownerNobody
	r.dropLocked()
	r.overflow = overflow{}
	r.looked = false
	r.counts.LeasesLost++
}

// leaseRenewed starts the jobs that waited for the lease.
func (r *runner) leaseRenewed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dispatchLocked()
}

// remember adds jobs to memory that a transaction has committed for owner.
func (r *runner) remember(owner string, rows []row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner != owner || r.phase == stopped {
		for i := range rows { // the epoch is over: the rows will be adopted
			if k := r.kinds[rows[i].Kind]; k != nil {
				k.leaves(rows[i].Job)
			}
		}
		return
	}
	m := r.momentLocked()
	for i := range rows {
		if rows[i].owner == owner {
			r.putLocked(&rows[i], m)
		}
	}
	r.dispatchLocked()
}

// forget removes finished jobs from memory.
func (r *runner) forget(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if r.overflow.walked != nil {
			r.overflow.walked[id] = true
		}
		r.memory.Finish(id)
	}
	r.counts.Finished += uint64(len(ids))
	r.relaxLocked()
}

// postponed gives jobs in memory the times to which a transaction has postponed them.
func (r *runner) postponed(owner string, notes []note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner != owner {
		return
	}
	m := r.momentLocked()
	for _, n := range notes {
		e := r.memory.Find(n.id)
		if e == nil {
			continue
		}
		e.Job.Tries++
		e.Job.LastError, e.Job.RunAt, e.Repeat = n.err, n.at, true
		r.memory.Move(e, m.due(n.at), m.passed)
	}
	r.counts.Retried += uint64(len(notes))
	r.dispatchLocked()
	r.relaxLocked()
}

// dispatchLocked starts workers for due jobs, and sets the timer for the next job.
func (r *runner) dispatchLocked() {
	if !r.worksLocked() {
		return
	}
	r.memory.Advance(r.clock.Elapsed())
	for _, k := range r.kinds {
		r.employLocked(k)
	}
	r.armLocked()
}

// worksLocked reports whether jobs may start.
func (r *runner) worksLocked() bool {
	return r.phase == started && r.owner != ownerNobody && r.lease.Lasts()
}

// maxResting is the maximum number of idle workers of a kind. They are kept because a new goroutine must grow its
// stack again.
const maxResting = 64

// employLocked starts one worker if there is a job to take. That worker starts the next worker, so that no more
// workers are busy than jobs may run. The worker that became idle last is used first.
func (r *runner) employLocked(k *kind) {
	if !k.lines.Offers() || k.starting > 0 || k.workers >= k.Workers {
		return
	}
	k.workers++
	k.starting++
	if last := len(k.resting) - 1; last >= 0 {
		k.resting[last] <- struct{}{}
		k.resting = k.resting[:last]
		return
	}
	r.workers.Add(1)
	go r.work(k)
}

// armLocked sets the timer to the time at which the next job is due. It leaves an earlier timer: when that fires,
// nothing is due and the timer is set again.
func (r *runner) armLocked() {
	due, ok := r.memory.Next()
	if !ok || r.timer != nil && r.timerAt <= due {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer, r.timerAt = r.clock.TimerPassed(due), due
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// dispatchLoop starts jobs when the timer fires.
func (r *runner) dispatchLoop() {
	defer r.loops.Done()
	for {
		r.mu.Lock()
		var fires <-chan struct{}
		if r.timer != nil {
			fires = r.timer.C
		}
		r.mu.Unlock()
		select {
		case <-fires:
			r.mu.Lock()
			r.timer = nil
			r.dispatchLocked()
			r.relaxLocked()
			r.mu.Unlock()
		case <-r.kick:
		case <-r.quit:
			return
		}
	}
}

// work is the goroutine of a worker of one kind. It runs jobs until there are none, and then waits for more. It ends
// if enough other workers are idle.
func (r *runner) work(k *kind) {
	defer r.workers.Done()
	wake := make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		r.runAll(k)
		if r.phase != started || len(k.resting) >= maxResting {
			return
		}
		k.resting = append(k.resting, wake)
		r.mu.Unlock()
		_, employed := <-wake
		r.mu.Lock()
		if !employed {
			return
		}
	}
}

// dismissLocked ends the idle workers.
func (r *runner) dismissLocked() {
	for _, k := range r.kinds {
		for _, wake := range k.resting {
			close(wake)
		}
		k.resting = nil
	}
}

// runAll runs jobs of one kind until there are none. It releases the lock while a job runs.
func (r *runner) runAll(k *kind) {
	k.starting--
	for {
		var e *scheduler.Entry[held]
		if r.worksLocked() {
			e = r.memory.Take(k.lines)
		}
		if e == nil {
			k.workers--
			r.relaxLocked()
			return
		}
		r.employLocked(k)
		job := e.Job.Job
		job.Siblings = e.Siblings()
		e.Job.begun, e.Job.Fresh = true, false
		if k.periodic {
			e.Job.since = time.Now()
		}
		r.mu.Unlock()
		out := r.run(k, job)
		failed := r.note(e, job, &out)
		r.mu.Lock()
		r.counts.Ran++
		r.concludeLocked(e, out, failed)
	}
}

// run calls the handler, without the lock. It converts a panic to a Retry.
func (r *runner) run(k *kind, job Job) (out Outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			r.log.Error("job handler panicked", "kind", job.Kind, "job", job.ID, "panic", cause, "stack", string(debug.Stack()))
			out = Retry(fmt.Errorf("panic: %v", cause))
		}
	}()
	return k.Run(r.runCtx, job)
}

// note stores an outcome. It runs without the lock. For a retry it sets the pause in out.
func (r *runner) note(e *scheduler.Entry[held], job Job, out *Outcome) error {
	r.mu.Lock()
	skip := e.Overtaken() || out.verb == verbLater
	owner := r.owner
	r.mu.Unlock()
	if skip {
		return nil
	}
	n := note{verb: out.verb, id: job.ID, kind: job.Kind, owner: owner, tries: job.Tries + 1, at: r.clock.Now()}
	if out.err == nil && out.verb != verbDone && out.verb != verbPass && !out.plain {
		out.err = errors.New("no reason given")
	}
	if out.err != nil {
		n.err = clip(out.err.Error())
	}
	if out.verb == verbRetry {
		if most := e.Job.kind.MaxTries; most > 0 && n.tries >= most {
			n.verb, out.verb = verbDead, verbDead
		} else {
			if out.after < 0 {
				out.after = Backoff(job.ID, job.Tries)
			}
			n.at = n.at.Add(out.after)
		}
	}
	if out.reset {
		n.tries = 0
	}
	// The outcome must be stored even if the handlers' context has been cancelled.
	_, err := r.notes.Do(context.WithoutCancel(r.runCtx), job.ID, 1, n)
	switch {
	case err != nil:
		r.log.Error("failed to record job outcome", "kind", job.Kind, "job", job.ID, "error", err)
	case out.verb == verbDead:
		r.log.Error("job moved to dead letters", "kind", job.Kind, "job", job.ID, "tries", n.tries, "error", out.err)
	case out.verb == verbRetry && !out.plain:
		r.log.Warn("job failed, retrying", "kind", job.Kind, "job", job.ID, "tries", n.tries, "after", out.after, "error", out.err)
	}
	return err
}

// concludeLocked schedules or removes a job whose handler has returned.
func (r *runner) concludeLocked(e *scheduler.Entry[held], out Outcome, failed error) {
	m, job := r.momentLocked(), &e.Job
	due := m.passed + out.after
	switch standing := r.memory.Ended(e, m.passed); {
	case standing == scheduler.Finished:
		return
	case standing == scheduler.Lost:
		job.kind.leaves(job.Job)
		return
	case standing == scheduler.Inherited:
		r.dispatchLocked()
		return
	case standing == scheduler.Settled:
		due = e.Due
	case failed != nil:
		due = m.passed + unwrittenPause
	case out.verb == verbLater:
	case out.verb == verbRetry:
		job.RunAt, job.Tries, job.LastError = m.now.Add(out.after), job.Tries+1, ""
		if out.reset {
			job.Tries = 0
		}
		if !out.plain {
			job.LastError = clip(out.err.Error())
			r.counts.Retried++
		}
	default:
		r.memory.Forget(e)
		switch out.verb {
		case verbDead:
			r.counts.Died++
		case verbDone:
			r.counts.Finished++
		}
		if r.overflow.walked != nil {
			r.overflow.walked[e.ID] = true
		}
		return
	}
	e.Line, e.Repeat = job.kind.line(job.Job), job.Tries > 0 // the run may have changed the line of the job
	r.memory.Again(e, due, m.passed)
	r.dispatchLocked()
}
