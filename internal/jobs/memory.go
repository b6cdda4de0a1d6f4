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
	starting int             // of these, how many have not looked for a job yet
	resting  []chan struct{} // waiters that want to be one again; closed: to end
}

// held is the handler's data about a job in memory.
type held struct {
	Job
	kind    *kind
	created int64     // microseconds
	begun   bool      // a handler has had it
	since   time.Time // of periodic work that runs, by the machine's clock
}

// node is what this process knows of its jobs, under one lock.
type node struct {
	clock *clock.Clock
	opts  Options

	mu        sync.Mutex
	phase     phase
	owner     string // of what is in memory; "" when this node has no lease
	memory    *scheduler.Scheduler[held]
	kinds     map[string]*kind
	periodics map[string]time.Duration // by kind
	overflow  overflow
	wakes     map[string]bool // subjects to wake on other nodes; true: news since the last write
	peers     int             // other nodes that were alive at the last look
	looked    bool            // whether the dead were looked for since the epoch began
	lookedAt  time.Time       // by the machine's clock
	counts    Counts
	watchers  []chan struct{} // Quiet
	look      chan struct{}   // the maintainer has something to do
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

// leaves reports that a job is no longer in memory.
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

// moment is one reading of the clock: the wall time, for rows, and the elapsed time, for memory, which nobody can
// set.
type moment struct {
	now    time.Time
	passed time.Duration
}

func (n *node) momentLocked() moment {
	now, passed := n.clock.Reading()
	return moment{now, passed}
}

// farthest bounds the times that memory counts with.
const farthest = 100 * 365 * 24 * time.Hour

// due converts a wall time to elapsed time, by the present difference.
func (m moment) due(at time.Time) time.Duration {
	return m.passed + min(max(at.Sub(m.now), -farthest), farthest)
}

// wall converts an elapsed time to wall time, by the present difference.
func (m moment) wall(due time.Duration) time.Time { return m.now.Add(due - m.passed) }

// phase is where a queue is in its life.
type phase uint8

const (
	idle     phase = iota // not started: jobs are added for the nodes that run
	started               // runs jobs
	draining              // finishes running jobs
	stopped
)

// Counts has the numbers of this node's queue: since its start, and now.
type Counts struct {
	InMemory, Ready, Running int
	Ran, Finished            uint64
	Retried, Died            uint64
	Adopted, LeasesLost      uint64
	Overflows                uint64 // jobs without room in memory, which come from the table later, without their Memos
	Peers                    int    // other nodes that were alive at the last look
	Overflowing              bool   // some jobs of this node are only in the table
	LeaseHolds               bool   // jobs may begin
	// Unmaintained is for how long the maintainer has not ended a look at everything.
	Unmaintained time.Duration
}

// overflow is the state of overflow: some jobs of this node are only in the table.
type overflow struct {
	on     bool
	from   time.Time       // the earliest of them is due not before this
	strays time.Time       // when those that no memory knows were looked for, by the machine's clock
	times  uint64          // number of overflows, so that a walk notices new ones
	walked map[string]bool // finished while a walk reads the table
}

func (n *node) overflowedLocked(at time.Time) {
	if !n.overflow.on || at.Before(n.overflow.from) {
		n.overflow.from = at
	}
	n.overflow.on = true
	n.overflow.times++
	n.nudge()
}

// nudge calls the maintainer.
func (n *node) nudge() {
	select {
	case n.look <- struct{}{}:
	default:
	}
}

// putLocked takes one row of this node into memory, or notes that it did not fit.
func (n *node) putLocked(r *row, m moment) {
	if old := n.memory.Find(r.ID); old != nil {
		// The job was fetched from the table before its own commit was reported. A handler that began without the
		// memo knows more than the memo by now.
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
		e.Due = m.passed // it was to run at once, by a clock that was ahead
	}
	n.memory.Put(k.lines, e, m.passed)
	if n.memory.Len() > n.opts.MemoryMax {
		n.nudge()
	}
}

// relaxLocked wakes callers of Quiet, and the maintainer when there is room again.
func (n *node) relaxLocked() {
	if n.overflow.on && n.memory.Len() <= n.opts.MemoryMax/2 {
		n.nudge()
	}
	if len(n.watchers) > 0 && n.quietLocked() {
		n.tellWatchersLocked()
	}
}

// quietLocked is asked under the lock.
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
