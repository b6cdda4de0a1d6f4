package jobs

import (
	"time"
)

const (
	// maintenanceLate is the time since the last whole round of the maintainer after which it is logged as overdue.
	maintenanceLate = 30 * time.Second
	// periodicLate is the time after which due or running periodic work is logged as overdue.
	periodicLate = 20 * time.Minute
)

// watchLoop detects overdue periodic work. It does not query the database, so it works even while everything else
// waits for the database.
func (r *runner) watchLoop() {
	defer r.loops.Done()
	tick := time.NewTicker(r.opts.Heartbeat)
	defer tick.Stop()
	missed := map[string]bool{}
	for {
		select {
		case <-tick.C:
			r.watch(missed)
		case <-r.quit:
			return
		}
	}
}

// watch logs once that a periodic work is overdue, and once that it has recovered.
func (r *runner) watch(missed map[string]bool) {
	tell := func(what string, since, late time.Duration) {
		switch {
		case since >= late && !missed[what]:
			missed[what] = true
			r.log.Error("periodic work overdue, dependent work is waiting", "node", r.opts.Node, "work", what, "since", since)
		case since < late && missed[what]:
			delete(missed, what)
			r.log.Info("periodic work recovered", "node", r.opts.Node, "work", what)
		}
	}
	tell("job maintenance", r.Counts().Unmaintained, max(maintenanceLate, 5*r.opts.Heartbeat))
	for name, since := range r.Periodics() {
		tell(name, since, periodicLate)
	}
}
