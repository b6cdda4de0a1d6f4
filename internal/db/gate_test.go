package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/makola/makola/internal/db/engine"
)

// While payments wait, bulk work still gets every eighth connection. System work waits for neither.
func TestGate_givesBulkEveryEighthTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1)
		first, err := g.enter(t.Context(), engine.Purpose{})
		if err != nil {
			t.Fatal(err)
		}
		var order []engine.Priority
		for range 10 {
			for _, c := range []engine.Priority{engine.PriorityBulk, engine.PriorityMoney} {
				go func() {
					p, err := g.enter(t.Context(), engine.Purpose{Priority: c, Tenant: "a"})
					if err != nil {
						t.Error(err)
					}
					order = append(order, c)
					g.leave(p)
				}()
			}
		}
		synctest.Wait()
		if p, err := g.enter(t.Context(), engine.Purpose{Priority: engine.PrioritySystem}); err != nil {
			t.Fatal(err)
		} else {
			g.leave(p)
		}
		if len(order) > 0 {
			t.Errorf("%d took what the system has for itself", len(order))
		}
		g.leave(first)
		synctest.Wait()
		if i := slices.Index(order, engine.PriorityBulk); i != engine.BulkTurn-1 || len(order) != 20 {
			t.Errorf("bulk's first turn is number %d of %d", i+1, len(order))
		}
	})
}

// For bulk work, one tenant gets two connections, and all tenants together a quarter of the connections.
func TestGate_boundsBulkWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(14, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var passes []pass
		var refused int
		for tenant := range 3 {
			for range 10 {
				go func() {
					p, err := g.enter(ctx, engine.Purpose{Priority: engine.PriorityBulk, Tenant: fmt.Sprint(tenant)})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused++
						return
					}
					passes = append(passes, p)
				}()
			}
			synctest.Wait()
			if want := min(tenantConns*(tenant+1), 4); len(passes) != want {
				t.Errorf("%d tenants have %d connections, want %d", tenant+1, len(passes), want)
			}
		}
		for range 10 {
			if _, err := g.enter(ctx, engine.Purpose{}); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		synctest.Wait()
		for _, p := range passes {
			g.leave(p)
		}
		if refused != 26 || g.free != 4 || g.bulk != 4 || len(g.tenants) != 0 {
			t.Errorf("%d gave up; %d free, %d of them bulk's, %d tenants known", refused, g.free, g.bulk, len(g.tenants))
		}
	})
}

// The number of waiting transactions of one tenant is limited, so that they do not slow down other tenants.
func TestGate_boundsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(14, 2)
		ctx, cancel := context.WithCancel(t.Context())
		for range tenantConns + tenantWaits {
			go func() { _, _ = g.enter(ctx, engine.Purpose{Priority: engine.PriorityBulk, Tenant: "a"}) }()
		}
		synctest.Wait()
		if _, err := g.enter(ctx, engine.Purpose{Priority: engine.PriorityBulk, Tenant: "a"}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("one too many: %v", err)
		}
		if _, err := g.enter(ctx, engine.Purpose{Priority: engine.PriorityBulk, Tenant: "b"}); err != nil {
			t.Errorf("another Tenant: %v", err)
		}
		cancel()
	})
}

// BenchmarkGate measures the cost of the gate, for a single caller, and for 64 callers of eight connections, who also
// wait for each other.
func BenchmarkGate(b *testing.B) {
	pass := func(b *testing.B, g *gate) {
		p, err := g.enter(b.Context(), engine.Purpose{})
		if err != nil {
			b.Error(err)
		}
		g.leave(p)
	}
	b.Run("alone", func(b *testing.B) {
		g := newGate(8, keptConns)
		for b.Loop() {
			pass(b, g)
		}
	})
	b.Run("crowded", func(b *testing.B) {
		g := newGate(8, keptConns)
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				pass(b, g)
			}
		})
	})
}
