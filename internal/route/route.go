// Package route decides which provider serves an operation. It stores the routes: for an operation, network or bank,
// tenant and mode the providers in order. It stores a circuit breaker and an operator's pause for each provider and
// operation. It stores the catalogues of airtime networks, data services and banks, with the providers' ids. And it
// stores the redacted log of exchanges with each provider.
//
// All decisions are rows, so that all nodes agree within a second and an operator can change them while the program
// runs. The defaults are data in this package. They are written at the first start and never overwrite an edit.
// Choose returns the providers that may be tried now, in order. It does not decide after a failure. Using the next
// provider is safe only if nothing was sent, and only the caller knows that.
//
// Files, each standing on those below it alone; no two of them need each other:
//
//	build.go                 how the table is put together, started and stopped
//	catalogue_change.go      an operator's change of the catalogues, checked and stored
//	bank_list.go, status.go  our codes of banks compared with the providers' own lists; the state of each provider for operators
//	catalogue.go             networks, services and banks; the network of a number
//	switches.go, erasure.go  routes and pauses, changed by operators; a person's number and name, erased from the exchanges
//	choose.go, exchanges.go  the choice of a provider; exchanges with each provider, redacted
//	latency.go               how long providers took to answer, by hour
//	breaker.go, seeds.go     the circuit breaker of each provider and operation; the routes and catalogues of the first start
//	notknown.go              whether a provider reports "not known" as its adapter expects
//	open_breakers.go         the metrics of a node, with its open circuit breakers
//	callbacks.go             how many callbacks of a provider were verified and refused
//	route.go, switch_rows.go the table; routes and pauses as they are stored
//	breaker_memory.go        a node's memory of its breakers
//	metrics.go               a node's counts of its providers
//	operation.go             the kinds of work that a provider can be given
//	catalogue_entries.go     the entries of the catalogues
//	exchange_packing.go      how an exchange is stored
//	callback_counts.go       a node's counts of callbacks that are not stored yet
//	writer.go                the state of the work in the background
package route

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// cachedFor is the maximum age of the rows that Choose uses.
const cachedFor = time.Second

// Table has the routes with the pauses and breakers that close them. Create it with New, then call Start. Commands,
// which submit nothing, do not start it.
type Table struct {
	db    *db.DB
	clock *clock.Clock
	log   *slog.Logger
	names []string // of providers, with or without a rail
	rails []provider.Rail

	switches  *cache.Cache[struct{}, *switches]
	catalogue *cache.Cache[struct{}, *catalogue]
	known     atomic.Pointer[catalogue] // the last read catalogue, used by Rail

	breakers  breakers
	callbacks callbackCounts
	log2db    writer
	packer    *packer
	metrics   metrics
}

// CheckProvider adds an error for a name that no provider has, because a row under that name would never be used. It
// works without rails, so that commands can call it.
func (t *Table) CheckProvider(f *problem.Fields, name string) {
	if !slices.Contains(t.names, name) {
		f.Add("provider", "must be one of "+strings.Join(t.names, ", "))
	}
}

// CheckFloat adds errors for a provider that does not exist and for an account that no provider has. An empty account
// means the money that is not assigned to an account.
func (t *Table) CheckFloat(f *problem.Fields, name, account string) {
	t.CheckProvider(f, name)
	var names []string
	for _, r := range t.rails {
		if r.Name == name {
			names = append(names, r.Accounts.Names()...)
		}
	}
	if len(names) == 0 { // in commands
		names = provider.AccountNames()
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if account != "" && !slices.Contains(names, account) {
		f.Add("account", "must be one of "+strings.Join(names, ", "))
	}
}

// Rails returns all rails.
func (t *Table) Rails() []provider.Rail { return slices.Clone(t.rails) }

// Providers returns the names of all providers that have an adapter, with or without a rail.
func (t *Table) Providers() []string { return slices.Clone(t.names) }

// forget clears the cache of this node after tx has committed, so that the next Choose reads the new rows.
func (t *Table) forget(tx *db.Tx) {
	tx.AfterCommit(func() {
		t.switches.Forget(struct{}{})
		t.catalogue.Forget(struct{}{})
	})
}
