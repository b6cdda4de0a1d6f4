package app

import (
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/sim"
)

// pair is a transition that occurred under a fault.
type pair struct {
	event   book.Event
	weather string
}

const (
	// tableFrom is the number of operations from which a run must cover the table of transitions.
	tableFrom = 5_000
	// moreRounds is the maximum number of additional rounds for the missing pairs of the table.
	moreRounds = 60
	// breakersRest is enough time for a provider's breaker to allow a probe, even after many failures.
	breakersRest = 6 * time.Minute
)

// table returns every transition that a run must reach, with the fault under which it must occur.
func table() []pair {
	var all []pair
	for _, f := range append([]string{"fair", "database_lost_before", "database_lost_after", "database_conflict", unreachable}, faultNames()...) {
		all = append(all, pair{book.EventAccepted, f}, pair{book.EventSucceeded, f})
		if !slices.Contains([]string{string(sim.Outage), string(sim.Unauthorized), string(sim.Forbidden), string(sim.Throttle), unreachable}, f) {
			all = append(all, pair{book.EventFailed, f})
		}
	}
	return append(all,
		pair{book.EventRepeated, string(sim.RequestLost)}, pair{book.EventDoubted, string(sim.RequestLost)},
		pair{book.EventReversed, string(sim.Reverse)}, pair{book.EventUnsent, string(sim.Unauthorized)},
		pair{book.EventUnsent, unreachable}, pair{book.EventRerouted, unreachable},
		pair{book.EventPaidLate, string(sim.Stuck)}, pair{book.EventFoundPaid, string(sim.Stuck)})
}

func faultNames() []string {
	var names []string
	for _, f := range simFaults {
		if f != sim.RefuseOutright && f != sim.FailLater && f != sim.OffersChange {
			names = append(names, string(f))
		}
	}
	return names
}

// weatherCalled returns the weather with one fault and a name of the table.
func weatherCalled(name string) weather {
	for _, f := range databaseFaults {
		if w := (weather{database: f}); w.name() == name {
			return w
		}
	}
	if name == (weather{}).name() {
		return weather{}
	}
	if name == unreachable {
		return weather{unreachable: true}
	}
	return weather{provider: sim.FaultKind(name)}
}

// cover checks that a run has covered the table. Some pairs are rare for a seed or a fast machine. So the run continues with
// the faults of each missing pair, and fails only if the pair then still does not occur.
func (w *world) cover() {
	if w.asked < tableFrom {
		w.t.Logf("a run of %d operations is too short for the table of transitions", w.asked)
		return
	}
	for more := 0; ; {
		missing, seen := w.missing()
		if len(missing) == 0 || w.t.Failed() {
			w.t.Logf("transitions by weather: %v", seen)
			return
		}
		if more >= moreRounds {
			for _, p := range missing {
				w.t.Errorf("no payment took the transition %q in the weather %q", p.event, p.weather)
			}
			return
		}
		w.t.Logf("after %d rounds these are missing: %v", w.rounds, missing)
		var tried []string
		for _, p := range missing {
			if slices.Contains(tried, p.weather) {
				continue
			}
			tried = append(tried, p.weather)
			w.settleRoutes()
			w.pass(1, breakersRest)
			// The fault affects every request, including requests for a token, a name or a status.
			w.blow(weatherCalled(p.weather), 8*callersAtOnce)
			w.round()
			more++
		}
		w.clearUp()
	}
}

// missing returns the pairs of the table that have not occurred yet, and the pairs that have.
func (w *world) missing() (missing []pair, shown []string) {
	seen := map[pair]int{}
	rows := references(w.rows())
	for _, o := range w.orders {
		if r := rows[o.reference]; r != nil {
			for _, e := range events(r) {
				seen[pair{e, o.weather}]++
			}
		}
	}
	for p, n := range seen {
		shown = append(shown, string(p.event)+" x "+p.weather+": "+strconv.Itoa(n))
	}
	sort.Strings(shown)
	return slices.DeleteFunc(table(), func(p pair) bool { return seen[p] > 0 }), shown
}

// events returns the transitions that a row proves.
func events(r *row) []book.Event {
	all := []book.Event{book.EventAccepted}
	add := func(yes bool, e book.Event) {
		if yes {
			all = append(all, e)
		}
	}
	add(r.posts > 1, book.EventRepeated)
	add(r.attempt > 1, book.EventRerouted)
	add(r.unsent > 0, book.EventUnsent)
	add(r.note != "", book.EventDoubted) // an operator resolved it, so the payment had needed attention
	add(r.status == "success", book.EventSucceeded)
	add(r.status == "failed" || r.status == "declined" || r.status == "invalid", book.EventFailed)
	add(r.paidLate > 0, book.EventPaidLate)
	add(r.turned != nil && r.status == "success", book.EventReversed)
	add(r.turned != nil && r.status == "failed", book.EventFoundPaid)
	return all
}
