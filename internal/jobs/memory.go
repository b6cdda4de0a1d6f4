package jobs

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/scheduler"
)

// kind is a handler with its lines and its workers.
type kind struct {
	Handler
	lines    *scheduler.Kind[held]
	periodic bool
	workers  int             // goroutines that run this kind
	starting int             // number of these that have not taken a job yet
	resting  []chan struct{} // idle workers; a signal gives one work, closing ends it
}

// held is a job in memory, with the queue's own data about the job.
type held struct {
	Job
	kind    *kind
	created int64     // microseconds
	begun   bool      // a handler has run or runs the job
	since   time.Time // start of the running periodic work, by the machine's clock
}

// node is the state of this process's queue, under one lock.
type node struct {
	clock *clock.Clock
	opts  Options

	mu        sync.Mutex
	phase     phase
	owner     string // owner of the jobs in memory; "" when this node has no lease
	memory    *scheduler.Scheduler[held]
	kinds     map[string]*kind
	periodics map[string]time.Duration // by kind
	overflow  overflow
	wakes     map[string]bool // subjects whose hints must be stored for other nodes; true: woken again since the last write
	peers     int             // other nodes that were alive in the last whole round
	looked    bool            // a complete round has ended since the epoch began
	lookedAt  time.Time       // by the machine's clock
	counts    Counts
	watchers  []chan struct{} // waiting calls of Quiet
	look      chan struct{}   // starts a round of the maintainer
}

// takes reports whether this node can run such jobs now.
func (k *kind) takes() bool { return k.Takes == nil || k.Takes() }

// line returns the line of a job once it is due.
func (k *kind) line(j Job) string {
	if k.Key == nil {
		return ""
	}
	return k.Key(j)
}

// leaves tells the handler that a job left the memory unfinished.
func (k *kind) leaves(j Job) {
	if k.Left != nil {
		k.Left(j)
	}
}

// dropLocked empties the memory of an epoch that is over.
func (n *node) dropLocked() {
	for _, e := range n.memory.Drop() {
		e.Job.kind.leaves(e.Job.Job)
	}
}

// moment is one reading of the clock. Rows use the wall time. Memory uses the elapsed time, which does not change
// when the clock is set.
type moment struct {
	now    time.Time
	passed time.Duration
}

func (n *node) momentLocked() moment {
	now, passed := n.clock.Reading()
	return moment{now, passed}
}

// farthest limits the elapsed times in memory, so that sums cannot overflow.
const farthest = 100 * 365 * 24 * time.Hour

// due converts a wall time to an elapsed time, by the current difference between the two.
func (m moment) due(at time.Time) time.Duration {
	return m.passed + min(max(at.Sub(m.now), -farthest), farthest)
}

// wall converts an elapsed time to a wall time, by the current difference between the two.
func (m moment) wall(due time.Duration) time.Time { return m.now.Add(due - m.passed) }

// phase is the state of a queue between its start and its stop.
type phase uint8

const (
	idle     phase = iota // not started: added jobs are left to running nodes
	started               // runs jobs
	draining              // finishes running jobs
	stopped
)

// Counts has numbers of this node's queue: counts since its start, and the current state.
type Counts struct {
	InMemory, Ready, Running int
	Ran, Finished            uint64
	Retried, Died            uint64
	Adopted, LeasesLost      uint64
	Overflows                uint64 // jobs without room in memory, which are fetched from the table later, without their Memos
	Peers                    int    // other nodes that were alive in the last whole round
	Overflowing              bool   // some jobs of this node are only in the table
	LeaseHolds               bool   // jobs may begin
	// Unmaintained is the time since the maintainer ended its last whole round.
	Unmaintained time.Duration
}

// overflow is the state of the queue while some of this node's jobs are only in the table.
type overflow struct {
	on     bool
	from   time.Time       // no job outside the memory is due earlier
	strays time.Time       // time of the last search for jobs that are not in memory, by the machine's clock
	times  uint64          // number of overflows; a walk compares it to detect new overflows
	walked map[string]bool // ids of jobs that were finished while a walk reads the table
}

func (n *node) overflowedLocked(at time.Time) {
	if !n.overflow.on || at.Before(n.overflow.from) {
		n.overflow.from = at
	}
	n.overflow.on = true
	n.overflow.times++
	n.nudge()
}

// nudge starts a round of the maintainer.
func (n *node) nudge() {
	select {
	case n.look <- struct{}{}:
	default:
	}
}

// putLocked adds the job of a row to memory. If there is no room, it records an overflow.
func (n *node) putLocked(r *row, m moment) {
	if old := n.memory.Find(r.ID); old != nil {
		// A walk may read a new job from the table before its transaction reports the commit with the memo. If the
		// handler has already begun, it no longer needs the memo.
		if old.Job.Memo == nil && !old.Job.begun {
			old.Job.Memo = r.Memo
		}
		return
	}
	k := n.kinds[r.Kind]
	if k == nil {
		return
	}
	if n.memory.Len() >= n.opts.MemoryMax+n.opts.MemoryMax/4 {
		n.counts.Overflows++
		n.overflowedLocked(r.RunAt)
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
		e.Due = m.passed // a clock that was ahead had planned the job to run at once
	}
	n.memory.Put(k.lines, e, m.passed)
	if n.memory.Len() > n.opts.MemoryMax {
		n.nudge()
	}
}

// relaxLocked ends calls of Quiet when the queue is quiet, and starts a round of the maintainer when memory has room
// again.
func (n *node) relaxLocked() {
	if n.overflow.on && n.memory.Len() <= n.opts.MemoryMax/2 {
		n.nudge()
	}
	if len(n.watchers) > 0 && n.quietLocked() {
		n.tellWatchersLocked()
	}
}

// quietLocked reports whether the condition of Quiet is true.
func (n *node) quietLocked() bool {
	if n.phase != started {
		return true
	}
	now, passed := n.clock.Reading()
	at, next := n.memory.Next()
	next = next && at <= passed
	overflowing := n.overflow.on && !n.overflow.from.After(now)
	return n.looked && n.memory.Idle() && !next && !overflowing && len(n.wakes) == 0
}

func (n *node) tellWatchersLocked() {
	for _, w := range n.watchers {
		close(w)
	}
	n.watchers = nil
}
