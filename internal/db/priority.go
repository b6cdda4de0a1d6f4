package db

import (
	"context"

	"github.com/makola/makola/internal/db/engine"
)

type purposeKey struct{}

// System marks work that keeps a node running, such as its leases and probes. Two connections are reserved for it.
// Work without a mark has the priority of money.
func System(ctx context.Context) context.Context {
	return context.WithValue(ctx, purposeKey{}, engine.Purpose{Priority: engine.PrioritySystem})
}

// Bulk marks work that can wait, such as lists, contacts and checks. Bulk work has at most a quarter of the
// connections, and one tenant at most two. On SQLite it gets the writer after work of other priorities. tenant is the
// owner of the work; empty is the installation. A transaction fails with ErrUnavailable if it takes too long or if
// too many of its tenant wait.
func Bulk(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, purposeKey{}, engine.Purpose{Priority: engine.PriorityBulk, Tenant: tenant})
}

// migrating marks a migration. A new index on a large table takes minutes, in which other work would have given up.
func migrating(ctx context.Context) context.Context {
	return context.WithValue(ctx, purposeKey{}, engine.Purpose{Priority: engine.PriorityBulk, Long: true})
}

// purposeOf returns the purpose with which ctx was marked. ReadWhole is always bulk work.
func purposeOf(ctx context.Context, m engine.Mode) engine.Purpose {
	p, _ := ctx.Value(purposeKey{}).(engine.Purpose)
	if m == engine.ModeWhole && p.Priority != engine.PriorityBulk {
		p = engine.Purpose{Priority: engine.PriorityBulk}
	}
	return p
}
