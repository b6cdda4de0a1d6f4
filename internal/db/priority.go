package db

import (
	"context"

	"github.com/makola/makola/internal/db/engine"
)

type purposeKey struct{}

// System marks the work that keeps a node alive, its leases and its probes. Two
// connections are for it alone. Work that is not marked is the money's.
func System(ctx context.Context) context.Context {
	return context.WithValue(ctx, purposeKey{}, engine.Purpose{Priority: engine.PrioritySystem})
}

// Bulk marks work that can wait, such as lists, contacts and checks: it has at most
// a quarter of the connections, a tenant two of them, and SQLite's writer after the
// money. tenant is whose it is, empty the installation's own. A call that takes too long or finds
// too many of its tenant waiting fails with ErrUnavailable.
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
