package jobs

import (
	"strings"
	"time"
)

// Counts gives this node's numbers. It asks nothing of the database.
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

// Overdue returns for each kind, periodic work aside, how long its most overdue job on this node has waited to begin:
// for a worker, for the turn of its key, or for the lease. It does not query the database.
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

// Periodics returns for each periodic work of this node how long it has been running or due; 0 before its time. It
// does not query the database.
func (r *runner) Periodics() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, since := r.clock.Elapsed(), map[string]time.Duration{}
	for id := range r.periodics {
		e := r.memory.Find(id) // which is its kind
		if e == nil {
			continue // another node's
		}
		late := max(0, now-e.Due)
		if e.Runs() {
			late = time.Since(e.Job.since)
		}
		since[strings.TrimPrefix(id, periodicPrefix)] = late
	}
	return since
}
