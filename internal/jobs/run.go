package jobs

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/scheduler"
)

// The pauses of Retry, before jitter.
const (
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
)

// unwrittenPause is how long a job waits whose outcome could not be written.
const unwrittenPause = 2 * time.Second

// remember takes jobs that a transaction committed for owner into memory.
func (q *Queue) remember(owner string, rows []row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owner != owner || q.phase == stopped {
		for i := range rows { // the epoch is over: the rows will be adopted
			if k := q.kinds[rows[i].Kind]; k != nil {
				k.leaves(rows[i].Job)
			}
		}
		return
	}
	m := q.momentLocked()
	for i := range rows {
		if rows[i].owner == owner {
			q.putLocked(&rows[i], m)
		}
	}
	q.dispatchLocked()
}

// putLocked takes one row of this node into memory, or notes that it did not fit.
func (q *Queue) putLocked(r *row, m moment) {
	if old := q.memory.Find(r.ID); old != nil {
		// Fetched from the table before its own commit told us. A handler that has
		// begun without the memo knows more than that by now.
		if old.Job.Memo == nil && !old.Job.begun {
			old.Job.Memo = r.Memo
		}
		return
	}
	k := q.kinds[r.Kind]
	if k == nil {
		return
	}
	if q.memory.Len() >= q.opts.MemoryMax+q.opts.MemoryMax/4 {
		q.counts.Spills++
		q.spilledLocked(r.RunAt)
		k.leaves(r.Job)
		return
	}
	e := &scheduler.Entry[held]{
		Job: held{Job: r.Job, kind: k, created: r.created},
		ID:  r.ID, Subject: r.Subject, Line: k.line(r.Job), Repeat: r.Tries > 0, Due: m.due(r.RunAt),
	}
	if k.Tenant != nil {
		e.Tenant = k.Tenant(r.Job)
	}
	if e.Due > m.passed && db.Micros(r.RunAt) == r.created {
		e.Due = m.passed // it was to run at once, by a clock that was ahead
	}
	q.memory.Put(k.lines, e, m.passed)
	if q.memory.Len() > q.opts.MemoryMax {
		q.nudge()
	}
}

// forget drops finished jobs from memory.
func (q *Queue) forget(ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		if q.spill.walked != nil {
			q.spill.walked[id] = true
		}
		q.memory.Finish(id)
	}
	q.counts.Finished += uint64(len(ids))
	q.relaxLocked()
}

// postponed moves jobs in memory as a transaction moved their rows.
func (q *Queue) postponed(owner string, notes []note) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owner != owner {
		return
	}
	m := q.momentLocked()
	for _, n := range notes {
		e := q.memory.Find(n.id)
		if e == nil {
			continue
		}
		e.Job.Tries++
		e.Job.LastError, e.Job.RunAt, e.Repeat = n.err, n.at, true
		q.memory.Move(e, m.due(n.at), m.passed)
	}
	q.counts.Retried += uint64(len(notes))
	q.dispatchLocked()
	q.relaxLocked()
}

// dispatchLocked starts workers for what is due and sets the timer for what is not.
func (q *Queue) dispatchLocked() {
	if !q.worksLocked() {
		return
	}
	q.memory.Advance(q.clock.Elapsed())
	for _, k := range q.kinds {
		q.employLocked(k)
	}
	q.armLocked()
}

// worksLocked says whether jobs may be run.
func (q *Queue) worksLocked() bool {
	return q.phase == started && q.owner != ownerNobody && q.lease.Lasts()
}

// maxResting is how many workers of a kind wait for their next job. A new
// goroutine would have to grow its stack again.
const maxResting = 64

// employLocked sets one worker to work if there is something to take, which does the
// same for the next: so no more are busy than there are jobs that may run. The worker that began to
// rest last comes first.
func (q *Queue) employLocked(k *kind) {
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
	q.workers.Add(1)
	go q.work(k)
}

// armLocked sets the timer to the time of the next job or look. A timer that is too early is left
// alone: it finds nothing due and is set again.
func (q *Queue) armLocked() {
	due, ok := q.memory.Next()
	if !ok || q.timer != nil && q.timerAt <= due {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer, q.timerAt = q.clock.TimerPassed(due), due
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// dispatchLoop waits for the timer.
func (q *Queue) dispatchLoop() {
	defer q.loops.Done()
	for {
		q.mu.Lock()
		var fires <-chan struct{}
		if q.timer != nil {
			fires = q.timer.C
		}
		q.mu.Unlock()
		select {
		case <-fires:
			q.mu.Lock()
			q.timer = nil
			q.dispatchLocked()
			q.relaxLocked()
			q.mu.Unlock()
		case <-q.kick:
		case <-q.quit:
			return
		}
	}
}

// work is a worker of one kind: it runs jobs until there are none, and rests
// until there are more or enough others rest.
func (q *Queue) work(k *kind) {
	defer q.workers.Done()
	wake := make(chan struct{}, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		q.runAll(k)
		if q.phase != started || len(k.resting) >= maxResting {
			return
		}
		k.resting = append(k.resting, wake)
		q.mu.Unlock()
		_, employed := <-wake
		q.mu.Lock()
		if !employed {
			return
		}
	}
}

// dismissLocked sends the resting workers home.
func (q *Queue) dismissLocked() {
	for _, k := range q.kinds {
		for _, wake := range k.resting {
			close(wake)
		}
		k.resting = nil
	}
}

// runAll runs jobs of one kind until there are none. It gives the lock away
// while one runs.
func (q *Queue) runAll(k *kind) {
	k.starting--
	for {
		var e *scheduler.Entry[held]
		if q.worksLocked() {
			e = q.memory.Take(k.lines)
		}
		if e == nil {
			k.workers--
			q.relaxLocked()
			return
		}
		q.employLocked(k)
		job := e.Job.Job
		job.Crowd = e.Crowd()
		e.Job.begun, e.Job.Fresh = true, false
		if k.periodic {
			e.Job.since = time.Now()
		}
		q.mu.Unlock()
		out := q.run(k, job)
		failed := q.note(e, job, &out)
		q.mu.Lock()
		q.counts.Ran++
		q.concludeLocked(e, out, failed)
	}
}

// run calls the handler, without the lock.
func (q *Queue) run(k *kind, job Job) (out Outcome) {
	defer func() {
		if r := recover(); r != nil {
			q.log.Error("a job's handler panicked", "kind", job.Kind, "job", job.ID, "panic", r, "stack", string(debug.Stack()))
			out = Retry(fmt.Errorf("panic: %v", r))
		}
	}()
	return k.Run(q.runCtx, job)
}

// note writes what an outcome must leave behind, without the lock. It settles
// the pause of a retry in out.
func (q *Queue) note(e *scheduler.Entry[held], job Job, out *Outcome) error {
	q.mu.Lock()
	skip := e.Overtaken() || out.verb == verbLater
	owner := q.owner
	q.mu.Unlock()
	if skip {
		return nil
	}
	n := note{verb: out.verb, id: job.ID, kind: job.Kind, owner: owner, tries: job.Tries + 1, at: q.clock.Now()}
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
	// The lane must hear the outcome even while handlers are told to end.
	_, err := q.notes.Do(context.WithoutCancel(q.runCtx), job.ID, 1, n)
	switch {
	case err != nil:
		q.log.Error("a job's outcome could not be written", "kind", job.Kind, "job", job.ID, "error", err)
	case out.verb == verbDead:
		q.log.Error("a job became a dead letter", "kind", job.Kind, "job", job.ID, "tries", n.tries, "error", out.err)
	case out.verb == verbRetry && !out.plain:
		q.log.Warn("a job failed and runs again", "kind", job.Kind, "job", job.ID, "tries", n.tries, "after", out.after, "error", out.err)
	}
	return err
}

// concludeLocked puts a job whose handler returned where it belongs now.
func (q *Queue) concludeLocked(e *scheduler.Entry[held], out Outcome, failed error) {
	m, job := q.momentLocked(), &e.Job
	due := m.passed + out.after
	switch standing := q.memory.Ended(e, m.passed); {
	case standing == scheduler.Finished:
		return
	case standing == scheduler.Lost:
		job.kind.leaves(job.Job)
		return
	case standing == scheduler.Inherited:
		q.dispatchLocked()
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
			q.counts.Retried++
		}
	default:
		q.memory.Forget(e)
		switch out.verb {
		case verbDead:
			q.counts.Died++
		case verbDone:
			q.counts.Finished++
		}
		if q.spill.walked != nil {
			q.spill.walked[e.ID] = true
		}
		return
	}
	e.Line, e.Repeat = job.kind.line(job.Job), job.Tries > 0 // what its run has learned may have changed its line
	q.memory.Again(e, due, m.passed)
	q.dispatchLocked()
}

// relaxLocked tells who waits for quiet, and the keeper when there is room again.
func (q *Queue) relaxLocked() {
	if q.spill.on && q.memory.Len() <= q.opts.MemoryMax/2 {
		q.nudge()
	}
	if len(q.watchers) > 0 && q.quietLocked() {
		q.tellWatchersLocked()
	}
}

// Backoff is the pause before the next try of a job that failed tries times
// before: from one second doubling to five minutes, with a fifth of jitter
// either way. The jitter follows from the id, so that a simulation repeats.
func Backoff(id string, tries int) time.Duration {
	pause := pauseMax
	if tries < 9 {
		pause = min(pauseMax, pauseMin<<max(0, tries))
	}
	return Jitter(id, tries, pause)
}

// Jitter moves a pause by up to a fifth either way, by a hash of id and n.
func Jitter(id string, n int, pause time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", id, n)
	part := int64(h.Sum64()%401) - 200 // thousandths
	return pause + time.Duration(int64(pause)/1000*part)
}
