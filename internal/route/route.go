// Package route decides which provider serves what. It holds a table of routes
// (operation, network or bank, tenant, mode) to providers in order, a circuit
// breaker and an operator's pause for each provider and operation, the
// catalogues that join our ids to theirs (airtime networks, data services,
// banks), and the redacted log of what was said to each provider.
//
// Everything that decides is rows, so that all nodes agree within a second and
// an operator can change it while the program runs; the defaults are data in
// this package, written at the first start and never over an edit. Choose names
// the providers that may be tried now, in order. It never says what to do after
// a failure: taking the next provider is safe only when nothing was sent, and
// that is for the caller to know.
//
// Files:
//
//	route.go              the table, and the choice of a provider
//	switches.go           routes and pauses, changed by operators
//	breaker.go            the circuit breaker of each provider and operation
//	catalogue.go          networks, services and banks; what a number's network is
//	catalogue_change.go   an operator's change of them, checked and stored
//	seeds.go              the routes and catalogues of the first start
//	exchanges.go          what was said to each provider, redacted
//	exchange_packing.go   how an exchange is stored
//	erasure.go            a person's number and name, erased from it
//	notknown.go           whether a provider says "not known" as its adapter expects
//	metrics.go            what a node counts of its providers
package route

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// Operation is one kind of work that a provider can be given.
type Operation string

// The operations. The names are stored and typed by operators.
const (
	Collect        Operation = "collect"
	DisburseWallet Operation = "disburse_wallet"
	DisburseBank   Operation = "disburse_bank"
	WalletName     Operation = "wallet_name"
	BankName       Operation = "bank_name"
	TopUp          Operation = "topup"
	Offers         Operation = "offers"
	Bundle         Operation = "bundle"
)

// Any stands for every tenant, mode, channel or operation.
const Any = "*"

// Operations gives every operation, in the order in which lists show them.
func Operations() []Operation {
	return []Operation{Collect, DisburseWallet, DisburseBank, WalletName, BankName, TopUp, Offers, Bundle}
}

// Can reports whether a rail has the role that an operation needs.
func Can(r provider.Rail, op Operation) bool {
	switch op {
	case Collect:
		return r.Collector != nil
	case DisburseWallet, DisburseBank:
		return r.Disburser != nil
	case WalletName:
		return r.WalletNames != nil
	case BankName:
		return r.BankNames != nil
	case TopUp:
		return r.TopUpper != nil
	case Offers, Bundle:
		return r.Bundles != nil
	default:
		return false
	}
}

// cachedFor is how old what Choose goes by may be.
const cachedFor = time.Second

// Table is the routes with everything that closes them. Make one with New,
// then Start it; the commands, which send nothing, do without Start.
type Table struct {
	db    *db.DB
	clock *clock.Clock
	log   *slog.Logger
	names []string // of providers, with a rail or without
	rails []provider.Rail

	switches  *cache.Cache[struct{}, *switches]
	catalogue *cache.Cache[struct{}, *catalogue]
	known     atomic.Pointer[catalogue] // the catalogue last read, for Rail

	breakers breakers
	log2db   writer
	packer   *packer
	metrics  metrics
}

// New makes the table over the rails that exist. names are those of all providers that there are adapters for: what
// operators may pause, route to and book money at, also before an account for it is configured. New reads nothing.
func New(d *db.DB, c *clock.Clock, log *slog.Logger, names []string, rails []provider.Rail) *Table {
	t := &Table{db: d, clock: c, log: log, names: slices.Clone(names), rails: slices.Clone(rails), metrics: newMetrics(), packer: newPacker()}
	t.switches = cache.New(c, cachedFor, 1, func(ctx context.Context, _ struct{}) (*switches, error) { return t.loadSwitches(ctx) })
	t.catalogue = cache.New(c, cachedFor, 1, func(ctx context.Context, _ struct{}) (*catalogue, error) { return t.loadCatalogue(ctx) })
	t.breakers.init()
	t.log2db.init()
	return t
}

// Start writes the defaults that are missing, reads the tables and begins to
// write the log of exchanges in the background.
func (t *Table) Start(ctx context.Context) error {
	if err := t.Seed(ctx); err != nil {
		return err
	}
	if _, err := t.catalogue.Get(ctx, struct{}{}); err != nil {
		return err
	}
	if _, err := t.switches.Get(ctx, struct{}{}); err != nil {
		return err
	}
	t.log2db.done.Add(1)
	go t.write()
	return nil
}

// Stop writes what is left of the log and ends the background work; ctx bounds
// the wait. It may be called twice.
func (t *Table) Stop(ctx context.Context) error {
	t.log2db.end.Do(func() { close(t.log2db.stop) })
	done := make(chan struct{})
	go func() { t.log2db.done.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Rail finds a rail by name and mode: statuses are asked for where the payment
// was sent, paused or not.
func (t *Table) Rail(name, mode string) (provider.Rail, bool) {
	for _, r := range t.rails {
		if r.Name == name && r.Mode == mode {
			return withBanks(r, t.known.Load()), true
		}
	}
	return provider.Rail{}, false
}

// CheckProvider adds a complaint about a name that no provider has: a row under that name would never be read. It needs no
// rail, so that commands can ask.
func (t *Table) CheckProvider(f *problem.Fields, name string) {
	if !slices.Contains(t.names, name) {
		f.Add("provider", "must be one of "+strings.Join(t.names, ", "))
	}
}

// Rails gives every rail that exists.
func (t *Table) Rails() []provider.Rail { return slices.Clone(t.rails) }

// withBanks gives the rail its codes of our banks.
func withBanks(r provider.Rail, c *catalogue) provider.Rail {
	if c != nil {
		r.Banks = c.bankCodes[r.Name]
	}
	return r
}

// Choose gives the rails that may be tried for an operation now, best first.
// channel is a network, or for banks one of our bank ids. The probe is of the
// first rail, and nil unless its breaker is half-open. The error is a problem of
// kind Unavailable: with code "not_served" when no provider of ours does this at
// all, with "provider_unavailable" and a RetryAfter when those that do are paused
// or failing. Do not call it inside a transaction.
func (t *Table) Choose(ctx context.Context, op Operation, channel, tenant, mode string) ([]provider.Rail, *Probe, error) {
	return t.choose(ctx, op, channel, tenant, mode, func(provider.Rail) bool { return true })
}

// Admit says whether one rail may be tried for an operation now, as Choose would.
// A rail that has no route to the channel any more is "not_served".
func (t *Table) Admit(ctx context.Context, rail string, op Operation, channel, tenant, mode string) (*Probe, error) {
	_, probe, err := t.choose(ctx, op, channel, tenant, mode, func(r provider.Rail) bool { return r.Name == rail })
	return probe, err
}

func (t *Table) choose(ctx context.Context, op Operation, channel, tenant, mode string, eligible func(provider.Rail) bool) ([]provider.Rail, *Probe, error) {
	sw, err := t.switches.Get(ctx, struct{}{})
	if err != nil {
		return nil, nil, err
	}
	var banks *catalogue
	if op == DisburseBank || op == BankName {
		if banks, err = t.catalogue.Get(ctx, struct{}{}); err != nil {
			return nil, nil, err
		}
	}
	var chosen []provider.Rail
	var probe *Probe
	served, wait := false, maxHold
	for _, r := range t.serving(sw, banks, op, channel, tenant, mode) {
		if !eligible(r) {
			continue
		}
		served = true
		if sw.paused(mode, r.Name, op) {
			continue
		}
		ok, taken, until := t.mayTry(ctx, breakerKey{mode, r.Name, op}, len(chosen) == 0)
		if !ok {
			wait = min(wait, until)
			continue
		}
		if taken != nil {
			probe = taken
		}
		chosen = append(chosen, r)
	}
	switch {
	case len(chosen) > 0:
		return chosen, probe, nil
	case !served:
		return nil, nil, problem.New(problem.Unavailable, "not_served", "This service is not offered at the moment")
	default:
		p := problem.New(problem.Unavailable, "provider_unavailable", "This service is not available at the moment. Nothing was sent; try again shortly.")
		p.RetryAfter = max(wait, time.Second)
		return nil, nil, p
	}
}

// serving gives the rails that do an operation at all, now or later, best first.
func (t *Table) serving(sw *switches, banks *catalogue, op Operation, channel, tenant, mode string) []provider.Rail {
	var rails []provider.Rail
	for _, name := range sw.route(op, channel, tenant, mode) {
		r, ok := t.Rail(name, mode)
		if !ok || !Can(r, op) {
			continue
		}
		if banks != nil {
			r = withBanks(r, banks)
			if r.Banks[channel] == "" {
				continue
			}
		}
		rails = append(rails, r)
	}
	return rails
}

// switches is one reading of what opens and closes routes.
type switches struct {
	routes   map[routeKey][]string
	pauses   map[breakerKey]Pause
	breakers map[breakerKey]breaker
}

type routeKey struct {
	tenant, mode string
	op           Operation
	channel      string
}

// route finds the most particular route: a tenant's own before everybody's,
// then the mode's own, then the channel's.
func (s *switches) route(op Operation, channel, tenant, mode string) []string {
	for _, t := range []string{tenant, Any} {
		for _, m := range []string{mode, Any} {
			for _, c := range []string{channel, Any} {
				if names, ok := s.routes[routeKey{t, m, op, c}]; ok {
					return names
				}
			}
		}
	}
	return nil
}

func (s *switches) paused(mode, name string, op Operation) bool {
	_, one := s.pauses[breakerKey{mode, name, op}]
	_, all := s.pauses[breakerKey{mode, name, Any}]
	return one || all
}

const (
	sqlRoutes   = `SELECT tenant, mode, operation, channel, providers, actor, changed_at FROM provider_routes ORDER BY tenant, mode, operation, channel`
	sqlPauses   = `SELECT mode, provider, operation, reason, actor, paused_at FROM provider_pauses ORDER BY mode, provider, operation`
	sqlBreakers = `SELECT mode, provider, operation, opened_at, open_until, hold, probe_until, why FROM provider_breakers`
)

// loadSwitches reads the three small tables in one exchange.
func (t *Table) loadSwitches(ctx context.Context) (*switches, error) {
	s, reading := &switches{}, t.breakers.reading()
	err := t.db.Read(ctx, func(tx *db.Tx) error {
		*s = switches{routes: map[routeKey][]string{}, pauses: map[breakerKey]Pause{}, breakers: map[breakerKey]breaker{}}
		return tx.Gather(
			db.Query{SQL: sqlRoutes, Each: func(row *db.Row) error {
				r, err := scanRoute(row)
				s.routes[routeKey{r.Tenant, r.Mode, r.Operation, r.Channel}] = r.Providers
				return err
			}},
			db.Query{SQL: sqlPauses, Each: func(row *db.Row) error {
				p, err := scanPause(row)
				s.pauses[breakerKey{p.Mode, p.Provider, p.Operation}] = p
				return err
			}},
			db.Query{SQL: sqlBreakers, Each: func(row *db.Row) error {
				k, b, err := scanBreaker(row)
				s.breakers[k] = b
				return err
			}},
		)
	})
	if err != nil {
		return nil, err
	}
	t.breakers.seen(reading, s.breakers)
	return s, nil
}

// forget makes the next Choose on this node read what a transaction wrote.
func (t *Table) forget(tx *db.Tx) {
	tx.AfterCommit(func() {
		t.switches.Forget(struct{}{})
		t.catalogue.Forget(struct{}{})
	})
}

// split reads names joined by commas.
func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// writer is the state of the background work.
type writer struct {
	exchanges chan provider.Exchange
	flush     chan chan struct{}
	publish   chan struct{} // capacity 1: a breaker changed
	stop      chan struct{}
	end       sync.Once
	done      sync.WaitGroup
}

func (w *writer) init() {
	w.exchanges = make(chan provider.Exchange, queuedExchanges)
	w.flush = make(chan chan struct{})
	w.publish = make(chan struct{}, 1)
	w.stop = make(chan struct{})
}
