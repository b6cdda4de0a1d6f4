package jobs

import (
	"time"

	"github.com/makola/makola/internal/jobs/scheduler"
)

// kind is a handler with its lines and its workers.
type kind struct {
	Handler
	lines    *scheduler.Kind[held]
	periodic bool
	workers  int             // goroutines that run this kind
	starting int             // of these, how many have not looked for a job yet
	resting  []chan struct{} // besides these, who waits to be one again; closed: to end
}

// held is what the memory keeps with a job.
type held struct {
	Job
	kind    *kind
	created int64     // microseconds
	begun   bool      // a handler has had it
	since   time.Time // of periodic work that runs, by the machine's clock
}

// takes says whether this node can do such jobs now.
func (k *kind) takes() bool { return k.Takes == nil || k.Takes() }

// line is the line in which a job stands when it is due.
func (k *kind) line(j Job) string {
	if k.Key == nil {
		return ""
	}
	return k.Key(j)
}

// leaves tells that a job is not in memory any more.
func (k *kind) leaves(j Job) {
	if k.Left != nil {
		k.Left(j)
	}
}

// dropLocked empties the memory of an epoch that is over.
func (q *Queue) dropLocked() {
	for _, e := range q.memory.Drop() {
		e.Job.kind.leaves(e.Job.Job)
	}
}

// moment is one reading of the clock: the time on the wall, in which rows are
// written, and what has passed, in which memory counts and which nobody sets.
type moment struct {
	now    time.Time
	passed time.Duration
}

func (q *Queue) momentLocked() moment {
	now, passed := q.clock.Reading()
	return moment{now, passed}
}

// farthest bounds the times that memory counts with.
const farthest = 100 * 365 * 24 * time.Hour

// due is when a time on the wall comes, as it stands now.
func (m moment) due(at time.Time) time.Duration {
	return m.passed + min(max(at.Sub(m.now), -farthest), farthest)
}

// wall is the time on the wall of a moment in memory, as it stands now.
func (m moment) wall(due time.Duration) time.Time { return m.now.Add(due - m.passed) }
