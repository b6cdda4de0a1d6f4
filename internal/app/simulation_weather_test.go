package app

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/tenant"
)

// weather is what goes wrong during one round: at most one thing at the providers and one at the
// database, so that what was seen can be put down to it.
type weather struct {
	provider sim.FaultKind // empty: nothing
	database db.Fault
}

func (w weather) fair() bool { return w.provider == "" && w.database == db.FaultNone }

// name is what the coverage table calls it; a provider's fault comes first.
func (w weather) name() string {
	switch {
	case w.provider != "":
		return string(w.provider)
	case w.database == db.FaultBefore:
		return "database_lost_before"
	case w.database == db.FaultAfter:
		return "database_lost_after"
	case w.database == db.FaultConflict:
		return "database_conflict"
	}
	return "fair"
}

// simFaults are the providers' faults of the simulation. What answers slowly is left to the process
// tests: it waits for real time.
var simFaults = []sim.FaultKind{
	sim.AnswerLost, sim.RequestLost, sim.ErrorBefore, sim.ErrorAfter, sim.Malformed, sim.Outage, sim.Throttle, sim.Unauthorized, sim.Forbidden,
	sim.CallbackDuplicate, sim.CallbackEarly, sim.CallbackLate, sim.CallbackMissing, sim.CallbackForged, sim.CallbackStale,
	sim.Reverse, sim.FailLater, sim.RefuseOutright, sim.StatusNotFound, sim.StatusWrongAmount, sim.OffersChange,
}

var databaseFaults = []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}

// changeWeather draws the round's weather. The providers' faults come in turn, so that every one comes.
func (w *world) changeWeather() {
	var next weather
	switch w.rounds % 5 {
	case 0: // fair
	case 1, 2:
		next.provider = w.nextFault()
	case 3:
		next.database = databaseFaults[w.rounds/5%len(databaseFaults)]
	case 4:
		next.provider = w.nextFault()
		next.database = databaseFaults[w.random.IntN(len(databaseFaults))]
	}
	w.blow(next, 1+w.random.IntN(callersAtOnce/2))
}

// blow makes a weather; so many requests meet the providers' fault.
func (w *world) blow(next weather, requests int) {
	w.calm()
	w.weather = next
	w.takenBack = w.takenBack || next.provider == sim.Reverse
	if next.provider != "" {
		if err := w.sim.Inject(sim.Fault{Kind: next.provider, Count: requests}); err != nil {
			w.t.Fatal(err)
		}
	}
	if fault := next.database; fault != db.FaultNone {
		dice := rand.New(rand.NewPCG(w.random.Uint64(), 1))
		var broken atomic.Int64
		w.faults.Decide(func(db.Boundary) db.Fault {
			if dice.IntN(6) != 0 || broken.Add(1) > 12 {
				return db.FaultNone
			}
			return fault
		})
	}
}

func (w *world) nextFault() sim.FaultKind {
	w.storms++
	return simFaults[w.storms%len(simFaults)]
}

func (w *world) calm() {
	w.weather = weather{}
	w.faults.Decide(nil)
	w.sim.ClearFaults()
}

// operate is what operators and providers do between the customers' requests.
func (w *world) operate() {
	ctx := context.Background()
	if w.weather.database != db.FaultNone {
		return // an operator whose command fails runs it again; customers are who is tested here
	}
	w.letPayoutsGo()
	switch w.random.IntN(12) {
	case 0: // money between two customers
		from, to := w.customers[0], w.customers[2]
		amount := money.Pesewas(100 + w.random.IntN(5_000))
		if _, err := w.node().payments.Transfer(ctx, from.id, to.id, amount, "simulation", "test"); err != nil {
			w.t.Errorf("transfer: %v", err)
			return
		}
		from.given -= int64(amount)
		to.given += int64(amount)
	case 1: // a provider takes an older success back
		if len(w.orders) == 0 {
			return
		}
		o := w.orders[w.random.IntN(len(w.orders))]
		if external := member(o.data, "ext_transaction_id"); external != "" && o.kind != "buy" {
			w.takenBack = true
			for _, name := range w.sim.Providers() {
				w.sim.ReverseEntry(name, external)
			}
		}
	case 2: // the daily look comes early
		w.pass(1, 30*time.Second)
	case 3: // everybody reads
		for _, c := range w.customers {
			for _, path := range []string{"/account-api/balance", "/payment-api/transfers/history?page_size=5", "/payment-api/collections/history?status=pending"} {
				if answer := call(w.node(), c.key, http.MethodGet, path, ""); answer.Code != http.StatusOK && w.weather.fair() {
					w.t.Errorf("GET %s: %d %s", path, answer.Code, answer.Body)
				}
			}
		}
	case 4: // somebody polls
		if len(w.orders) > 0 {
			o := w.orders[w.random.IntN(len(w.orders))]
			path := map[string]string{"topup": "/airtime-api/checkstatus/", "bundle": "/databundle-api-v2/checkstatus/"}[o.kind]
			if path == "" {
				path = "/payment-api/checkstatus/"
			}
			call(w.node(), o.customer.key, http.MethodGet, path+o.reference, "")
		}
	}
}

// letPayoutsGo is the operator who has talked to the customers whose payouts were stopped.
func (w *world) letPayoutsGo() {
	ctx := context.Background()
	for _, c := range w.customers {
		t, err := w.nodes[0].tenants.Get(ctx, c.id)
		if err != nil {
			w.t.Fatal(err)
		}
		if !t.PayoutsStopped {
			continue
		}
		off := false
		if err := w.nodes[0].db.Write(ctx, func(tx *db.Tx) error {
			_, _, err := w.nodes[0].tenants.Set(tx, c.id, tenant.Change{PayoutsStopped: &off})
			return err
		}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// clearUp ends the bad year: no more faults, time enough for every question, and an operator for what
// no question can answer.
func (w *world) clearUp() {
	w.calm()
	for _, step := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute} {
		w.pass(4, step)
	}
	w.pass(6, 10*time.Minute)
	w.pass(8, time.Hour)
	w.decide()
	// The second look at final rows comes after a day; webhooks that were refused come within three.
	w.pass(3, 9*time.Hour)
	w.pass(4, 24*time.Hour)
	w.decide()
	w.pass(2, time.Minute)
}

// decide is the operator with the provider's statement: what the book has as a success was done, what
// it does not have was not.
func (w *world) decide() {
	ctx := context.Background()
	for _, e := range w.sim.All() {
		if e.Status == sim.Pending { // a handset that nobody answered, or a stuck order
			w.sim.Resolve(e.Provider, e.Reference, sim.Failed, sim.Expired)
		}
	}
	w.pass(2, time.Hour)
	stuck, err := w.node().payments.Stuck(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range stuck {
		paid := false
		for _, e := range w.sim.Entries(p.AttemptReference) {
			paid = paid || e.Status == sim.Success
		}
		if _, err := w.node().payments.Resolve(ctx, p.ID, paid, "by the provider's statement", "test"); err != nil {
			w.t.Errorf("resolve %s: %v", p.Reference, err)
		}
	}
}
