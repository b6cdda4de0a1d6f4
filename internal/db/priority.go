package db

import (
	"context"

	"github.com/makola/makola/internal/db/engine"
)

type purposeKey struct{}

// System marks work that keeps a node alive, such as its leases and probes. Two connections are reserved for it.
// Unmarked work has the priority of money.
func System(ctx context.Context) context.Context {
	return context.WithValue(ctx, purposeKey{}, engine.Purpose{Priority: engine.PrioritySystem})
}

// Bulk marks work that can wait, such as lists, contacts and checks. Bulk work has at most a quarter of the
// connections, one tenant at most two, and SQLite's writer after the money. tenant is the owner of the work; empty is
// the installation. A transaction that takes too long, or finds too many of its tenant waiting, fails with
// ErrUnavailable.
func Bulk(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, purposeKey{}, engine.Purpose{Priority: engine.PriorityBulk, Tenant: tenant})
}

// purposeOf reads the mark of ctx. A look at the whole database is bulk work
// for every caller.
func purposeOf(ctx context.Context, m engine.Mode) engine.Purpose {
	p, _ := ctx.Value(purposeKey{}).(engine.Purpose)
	if m == engine.ModeWhole && p.Priority != engine.PriorityBulk {
		p = engine.Purpose{Priority: engine.PriorityBulk}
	}
	return p
}
