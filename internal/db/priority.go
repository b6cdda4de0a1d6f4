package db

import (
	"context"
	"time"
)

// A priority says how much a transaction matters to others: it decides when it gets
// a connection, and how long it may take.
type priority uint8

const (
	priorityMoney  priority = iota // payments and messages under way, and questions about them
	prioritySystem                 // what keeps a node alive
	priorityBulk                   // what can wait
)

// A purpose is whose work a transaction is.
type purpose struct {
	priority priority
	tenant   string // of bulk work; empty: the installation's own
}

type purposeKey struct{}

// System marks the work that keeps a node alive, its leases and its probes. Two
// connections are for it alone. Work that is not marked is the money's.
func System(ctx context.Context) context.Context {
	return context.WithValue(ctx, purposeKey{}, purpose{priority: prioritySystem})
}

// Bulk marks work that can wait, such as lists, contacts and checks: it has at most
// a quarter of the connections, a tenant two of them, and SQLite's writer after the
// money. tenant is whose it is, empty the installation's own. A call that takes too long or finds
// too many of its tenant waiting fails with ErrUnavailable.
func Bulk(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, purposeKey{}, purpose{priority: priorityBulk, tenant: tenant})
}

// purposeOf reads the mark of ctx. A look at the whole database is bulk work
// for every caller.
func purposeOf(ctx context.Context, m mode) purpose {
	p, _ := ctx.Value(purposeKey{}).(purpose)
	if m == modeWhole && p.priority != priorityBulk {
		p = purpose{priority: priorityBulk}
	}
	return p
}

// limits are the longest times of a transaction. Correctness does not rest on
// them: what is cut is lost before COMMIT, or looked up after it.
type limits struct {
	acquire  time.Duration // the wait for a connection
	exchange time.Duration // the wait for one answer of PostgreSQL, that to COMMIT included
	whole    time.Duration // all tries together, COMMIT and the look for its rows aside
}

func (p purpose) limits() limits {
	switch {
	case p.priority == prioritySystem:
		return limits{acquire: 2 * time.Second, exchange: 3 * time.Second, whole: 5 * time.Second}
	case p.priority == priorityBulk && p.tenant == "":
		return limits{acquire: time.Minute, exchange: time.Minute, whole: 3 * time.Minute}
	case p.priority == priorityBulk:
		return limits{acquire: 5 * time.Second, exchange: 12 * time.Second, whole: 20 * time.Second}
	}
	return limits{acquire: 3 * time.Second, exchange: 5 * time.Second, whole: 8 * time.Second}
}

// serverLimits tells PostgreSQL to end a tenant's bulk statement by itself, before
// we stop waiting for it: else it would go on without a reader.
const serverLimits = "select set_config('statement_timeout', '10000', true), set_config('lock_timeout', '2000', true)"
