package route

import (
	"context"
	"log/slog"
	"slices"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// New returns the table of the configured rails. names are all providers that have an adapter. Operators may pause
// them, route to them and book money at them before an account is configured. New reads nothing.
func New(d *db.DB, c *clock.Clock, log *slog.Logger, names []string, rails []provider.Rail) *Table {
	t := &Table{db: d, clock: c, log: log, names: slices.Clone(names), rails: slices.Clone(rails), metrics: newMetrics(), packer: newPacker()}
	t.switches = cache.New(c, cachedFor, 1, func(ctx context.Context, _ struct{}) (*switches, error) { return t.loadSwitches(ctx) })
	t.catalogue = cache.New(c, cachedFor, 1, func(ctx context.Context, _ struct{}) (*catalogue, error) { return t.loadCatalogue(ctx) })
	t.breakers.init()
	t.callbacks.init()
	t.log2db.init()
	return t
}

// Start stores missing defaults, reads the tables, and starts the background work that writes the log of exchanges.
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

// Stop writes the rest of the log and ends the background work. It waits at most until ctx ends. It may be called
// twice.
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
