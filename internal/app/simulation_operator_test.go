package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/sim/moolre"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/pawapay"
	"github.com/makola/makola/internal/sim/paystack"
	"github.com/makola/makola/internal/tenant"
)

// operate performs actions of operators and providers between the customers' requests.
func (w *world) operate() {
	ctx := context.Background()
	if w.weather.database != db.FaultNone {
		return // an operator repeats a failed command; this test is about customers
	}
	w.letPayoutsGo()
	if w.rounds%2 == 0 {
		w.takeTurns()
	} else {
		w.rearrange()
	}
	switch w.random.IntN(12) {
	case 0: // a transfer between two customers
		from, to := w.customers[0], w.customers[2]
		amount := money.Pesewas(100 + w.random.IntN(5_000))
		if _, err := w.node().payments.Transfer(ctx, from.id, to.id, amount, "simulation", "test"); err != nil {
			w.t.Errorf("transfer: %v", err)
			return
		}
		from.given -= int64(amount)
		to.given += int64(amount)
	case 1: // a provider reverses an older success
		young := w.orders[w.lookedAt:]
		if len(young) == 0 {
			return
		}
		o := young[w.random.IntN(len(young))]
		if external := member(o.data, "ext_transaction_id"); external != "" && o.kind != "buy" {
			w.takenBack = true
			for _, name := range w.sim.Providers() {
				w.sim.ReverseEntry(name, external)
			}
		}
	case 2: // the daily recheck runs early
		w.pass(1, 30*time.Second)
	case 3: // everybody reads
		for _, c := range w.customers {
			for _, path := range []string{"/account-api/balance", "/payment-api/transfers/history?page_size=5", "/payment-api/collections/history?status=pending"} {
				if answer := call(w.node(), c.key, http.MethodGet, path, ""); answer.Code != http.StatusOK && w.weather.fair() {
					w.t.Errorf("GET %s: %d %s", path, answer.Code, answer.Body)
				}
			}
		}
	case 5, 6, 7, 8: // the clock of the nodes is set
		w.setClock()
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

// clockSteps are the lengths of clock steps: near the limits that decide about money, and far beyond them.
var clockSteps = []time.Duration{-time.Hour, -10 * time.Minute, -time.Minute, time.Minute, 10 * time.Minute, time.Hour}

// setClock sets the clock of the nodes without waiting. Each queue then looks for jobs that are due at the new time.
func (w *world) setClock() {
	w.settle()
	w.clock.Set(clockSteps[w.random.IntN(len(clockSteps))])
	w.steps++
	for _, n := range w.nodes {
		n.jobs.Wake("periodic/payments-second-look")
	}
	w.settle()
}

// letPayoutsGo allows the payouts of accounts whose payouts were stopped, as an operator does after a call with the customer.
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

// clearUp ends the faults and waits until every status query had time to finish. An operator then resolves the payments that
// queries cannot resolve.
func (w *world) clearUp() {
	w.calm()
	for _, step := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute} {
		w.pass(4, step)
	}
	w.pass(6, 10*time.Minute)
	w.pass(8, time.Hour)
	w.decide()
	// Final rows are rechecked after a day, and refused webhooks are delivered within three days.
	w.pass(3, 9*time.Hour)
	w.pass(4, 24*time.Hour)
	w.decide()
	w.pass(2, time.Minute)
	w.lookedAt = len(w.orders)
}

// decide resolves the remaining payments as an operator does. Some are resolved as unpaid too early, and then the payer
// approves after all. The others follow the provider's statement: a success in the provider's book was paid, a payment that is
// missing there was not.
func (w *world) decide() {
	w.t.Helper()
	open := map[string]bool{}
	for _, e := range w.sim.All() {
		open[e.Provider+" "+e.Reference] = e.Status == sim.Pending
	}
	for _, p := range w.stuck() {
		if hangs := slices.ContainsFunc(w.sim.Entries(p.AttemptReference), func(e sim.Entry) bool { return open[e.Provider+" "+e.Reference] }); hangs && w.random.IntN(2) == 0 {
			w.resolve(p, false, "nobody answers")
		}
	}
	for _, e := range w.sim.All() {
		if e.Status != sim.Pending { // a prompt that nobody answered, or an order without an end
			continue
		}
		if e.Number%3 == 0 {
			w.sim.Resolve(e.Provider, e.Reference, sim.Failed, sim.Expired)
		} else {
			w.sim.Resolve(e.Provider, e.Reference, sim.Success, "")
		}
	}
	w.pass(2, time.Hour)
	for _, p := range w.stuck() {
		paid := slices.ContainsFunc(w.sim.Entries(p.AttemptReference), func(e sim.Entry) bool { return e.Status == sim.Success })
		w.resolve(p, paid, "by the provider's statement")
	}
}

func (w *world) stuck() []book.Payment {
	w.t.Helper()
	stuck, err := w.node().payments.Stuck(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return stuck
}

func (w *world) resolve(p book.Payment, paid bool, reason string) {
	_, err := w.node().payments.Resolve(context.Background(), p.ID, paid, reason, "test")
	if problem.Is(err, problem.InProgress) { // it was just submitted again
		w.pass(1, problem.From(err).RetryAfter)
		_, err = w.node().payments.Resolve(context.Background(), p.ID, paid, reason, "test")
	}
	if err != nil && !problem.Is(err, problem.Duplicate) { // the provider may have reported first
		w.t.Errorf("resolve %s: %v", p.Reference, err)
	}
}

// simOrders are the orders of providers from which an operator chooses for operations that all three serve.
var simOrders = [][]string{{"mtn", "hubtel", "paystack"}, {"hubtel", "paystack", "mtn"}, {"paystack", "mtn", "hubtel"}, {"mtn", "hubtel"}, {"paystack", "hubtel"}, {"mtn"}, {"hubtel"}, {"paystack"}, {}}

// both are the operations whose routes operators change for MTN's customers.
var both = []route.Operation{route.Collect, route.DisburseWallet, route.WalletName}

// simRails are the rails that come first in the route of MTN's customers, one after the other.
var simRails = []string{mtn.Name, moolre.Name, hubtel.Name, pawapay.Name, paystack.Name}

// takeTurns puts another rail first in the route, so that every run reaches each rail.
func (w *world) takeTurns() {
	turn := w.rounds / 2 % len(simRails)
	order := slices.Concat(simRails[turn:], simRails[:turn])
	n := w.node()
	w.act(n, func(tx *db.Tx) error {
		for _, op := range both {
			can := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return op == route.WalletName && name == pawapay.Name }) // this rail has no name lookup
			if err := n.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: route.Any, Operation: op, Channel: "MTN", Providers: can, Actor: "test"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// rearrange changes routes, pauses or the catalogue on any node, as an operator does. Every node applies a change before the
// customers' next requests. Pauses are short, so that customers are served most of the time.
func (w *world) rearrange() {
	n := w.node()
	if name := w.provider(); w.random.IntN(3) > 0 {
		w.act(n, func(tx *db.Tx) error {
			_, err := n.routes.Resume(tx, "test", name, route.Any)
			return err
		})
	}
	for range w.random.IntN(3) {
		what := w.random.IntN(len(w.changes))
		w.changes[what]++
		w.act(n, w.change(n, what))
	}
}

// change makes one random change of the operators' settings.
func (w *world) change(n *App, what int) func(*db.Tx) error {
	own := w.customers[w.random.IntN(len(w.customers))].id
	network := simNetworks[w.random.IntN(len(simNetworks))]
	r := route.Route{Tenant: route.Any, Mode: route.Any, Operation: both[w.random.IntN(len(both))], Channel: "MTN",
		Providers: simOrders[w.random.IntN(len(simOrders))], Actor: "test"}
	switch what {
	case 0: // another order of providers, for all customers
		return func(tx *db.Tx) error { return n.routes.SetRoute(tx, r) }
	case 1: // for one customer
		r.Tenant, r.Mode = own, "test"
		return func(tx *db.Tx) error { return n.routes.SetRoute(tx, r) }
	case 2:
		return func(tx *db.Tx) error {
			_, err := n.routes.DropRoute(tx, own, "test", r.Operation, r.Channel)
			return err
		}
	case 3:
		all := append(route.Operations(), route.Any)
		pause := route.Pause{Mode: "test", Provider: w.provider(), Operation: all[w.random.IntN(len(all))], Reason: "simulation", Actor: "test"}
		return func(tx *db.Tx) error { return n.routes.Pause(tx, pause) }
	case 4: // a network is switched off for a while, or on again
		status := []string{route.Active, route.Active, route.Inactive}[w.random.IntN(3)]
		return func(tx *db.Tx) error {
			return n.routes.EditNetwork(tx, msisdn.Network(network), route.Edit{Status: status})
		}
	case 5: // customers use another id of the network from now on
		id := fmt.Sprintf("%s-%d", network, w.rounds)
		w.networks[network] = id
		return func(tx *db.Tx) error { return n.routes.EditNetwork(tx, msisdn.Network(network), route.Edit{ID: id}) }
	}
	// a range of numbers moves to another network
	prefix := simPrefix[simNetworks[w.random.IntN(len(simNetworks))]]
	return func(tx *db.Tx) error { return n.routes.SetPrefix(tx, prefix, msisdn.Network(network)) }
}

// settleRoutes restores the routes, pauses and catalogue, as an operator does. Operations that both providers serve may go to
// either.
func (w *world) settleRoutes() {
	n := w.node()
	w.act(n, func(tx *db.Tx) error {
		for _, name := range w.sim.Providers() {
			if _, err := n.routes.Resume(tx, "test", name, route.Any); err != nil {
				return err
			}
		}
		for _, op := range both {
			if err := n.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: route.Any, Operation: op, Channel: "MTN", Providers: simOrders[0], Actor: "test"}); err != nil {
				return err
			}
			for _, c := range w.customers {
				if _, err := n.routes.DropRoute(tx, c.id, "test", op, "MTN"); err != nil {
					return err
				}
			}
		}
		for _, network := range simNetworks {
			if err := n.routes.EditNetwork(tx, msisdn.Network(network), route.Edit{Status: route.Active}); err != nil {
				return err
			}
		}
		return nil
	})
}

// provider returns one of the providers.
func (w *world) provider() string {
	all := w.sim.Providers()
	return all[w.random.IntN(len(all))]
}

// act runs one command of an operator on a node, without faults.
func (w *world) act(n *App, do func(*db.Tx) error) {
	w.t.Helper()
	if err := n.db.Write(context.Background(), do); err != nil {
		w.t.Errorf("an operator's command: %v", err)
	}
}
