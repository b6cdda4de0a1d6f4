package jobs

import (
	"strings"
	"time"
)

const (
	// keeperLate is the time without a look by the keeper from which it is missed.
	keeperLate = 30 * time.Second
	// periodicLate is the same for a run of periodic work that has not ended.
	periodicLate = 20 * time.Minute
)

// watchLoop misses what should come again and again and does not. It asks nothing
// of the database, so that it speaks while everything else waits for that.
func (q *Queue) watchLoop() {
	defer q.loops.Done()
	tick := time.NewTicker(q.opts.Heartbeat)
	defer tick.Stop()
	missed := map[string]bool{}
	for {
		select {
		case <-tick.C:
			q.watch(missed)
		case <-q.quit:
			return
		}
	}
}

// watch says once of each that it is missed, and once that it is back.
func (q *Queue) watch(missed map[string]bool) {
	tell := func(what string, since, late time.Duration) {
		switch {
		case since >= late && !missed[what]:
			missed[what] = true
			q.log.Error("this work should have ended and has not: what waits for it goes on waiting", "node", q.opts.Node, "work", what, "since", since)
		case since < late && missed[what]:
			delete(missed, what)
			q.log.Info("this work goes on again", "node", q.opts.Node, "work", what)
		}
	}
	tell("keeper of the jobs", q.Counts().Unkept, max(keeperLate, 5*q.opts.Heartbeat))
	for name, since := range q.Periodics() {
		tell(name, since, periodicLate)
	}
}

// Periodics says of each periodic work of this node for how long it has been running,
// or due; 0 when its time has not come. It asks nothing of the database.
func (q *Queue) Periodics() map[string]time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, since := q.clock.Elapsed(), map[string]time.Duration{}
	for id := range q.periodics {
		e := q.memory.Find(id) // which is its kind
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
