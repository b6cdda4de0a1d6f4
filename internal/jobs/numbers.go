package jobs

import (
	"strings"
	"time"
)

// Counts returns the numbers of this node's queue. It does not query the database.
func (r *runner) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts
	c.InMemory, c.Ready, c.Running = r.memory.Len(), r.memory.Ready(), r.memory.Running()
	c.Peers, c.Overflowing, c.LeaseHolds = r.peers, r.overflow.on, r.owner != ownerNobody && r.lease.Lasts()
	if r.phase == started {
		c.Unmaintained = time.Since(r.lookedAt)
	}
	return c
}

// Overdue returns, for each kind except periodic work, how long its most overdue job on this node has waited to
// begin. Such a job waits for a worker, for its turn, or for the lease. Overdue does not query the database.
func (r *runner) Overdue() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := map[string]time.Duration{}
	overdue := r.memory.Overdue(r.clock.Elapsed())
	for name, k := range r.kinds {
		if !k.periodic {
			late[name] = overdue[k.lines]
		}
	}
	return late
}

// Periodics returns how long each periodic work of this node has been running or due. The time is 0 for work that is
// not due yet. Periodics does not query the database.
func (r *runner) Periodics() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, since := r.clock.Elapsed(), map[string]time.Duration{}
	for id := range r.periodics {
		e := r.memory.Find(id) // the id of a periodic job is its kind
		if e == nil {
			continue // another node has the job
		}
		late := max(0, now-e.Due)
		if e.Runs() {
			late = time.Since(e.Job.since)
		}
		since[strings.TrimPrefix(id, periodicPrefix)] = late
	}
	return since
}
