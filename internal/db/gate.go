package db

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/makola/makola/internal/db/engine"
)

const (
	keptConns   = 2   // reserved for engine.PrioritySystem
	bulkPart    = 4   // bulk work has at most one connection in so many
	tenantConns = 2   // of a tenant's bulk work at once
	tenantWaits = 256 // of a tenant's bulk transactions that may wait
)

// gate decides who gets the next connection. It hands out the right to one, not
// the connection itself.
type gate struct {
	mu      sync.Mutex
	kept    int // free connections that are reserved for engine.PrioritySystem
	free    int // free, for everybody
	bulk    int // of these, how many bulk work may take
	tenants map[string]*bulkUse
	most    int // of one tenant's bulk work at once
	waiting [3][]*waiter
	turns   int // since bulk had one
}

// bulkUse is one tenant's part of the bulk work.
type bulkUse struct{ conns, waits int }

// A pass is the right to a connection.
type pass struct {
	engine.Purpose
	kept bool
}

type waiter struct {
	pass
	ready chan struct{}
}

// newGate makes the gate before conns connections, the kept ones aside.
func newGate(conns, kept int) *gate {
	g := &gate{kept: kept, free: conns, tenants: map[string]*bulkUse{}}
	g.bulk = min(conns, max(2, (conns+kept)/bulkPart))
	g.most = min(tenantConns, max(1, g.bulk-1)) // no tenant has all of them
	return g
}

// enter waits for a connection's right, as long as ctx lasts.
func (g *gate) enter(ctx context.Context, p engine.Purpose) (pass, error) {
	w := waiter{pass: pass{Purpose: p}}
	g.mu.Lock()
	if g.takeLocked(&w.pass) {
		g.mu.Unlock()
		return w.pass, nil
	}
	if p.Priority == engine.PriorityBulk {
		use := g.useLocked(p.Tenant)
		if use.waits >= tenantWaits {
			g.mu.Unlock()
			return pass{}, fmt.Errorf("%w: too much bulk work of one tenant waits", ErrUnavailable)
		}
		use.waits++
	}
	w.ready = make(chan struct{})
	g.waiting[p.Priority] = append(g.waiting[p.Priority], &w)
	g.mu.Unlock()
	select {
	case <-w.ready:
		return w.pass, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting[p.Priority], &w); i >= 0 {
		g.removeLocked(p.Priority, i)
		return pass{}, ctx.Err()
	}
	return w.pass, nil // it came at the same moment
}

// leave gives a right back, to the next waiter.
func (g *gate) leave(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.kept {
		g.kept++
	} else {
		g.free++
	}
	if p.Priority == engine.PriorityBulk {
		g.bulk++
		use := g.useLocked(p.Tenant)
		use.conns--
		g.sweepLocked(p.Tenant, use)
	}
	for g.nextLocked() {
	}
}

// takeLocked gives p a right if it may have one now. The rest runs under the lock.
func (g *gate) takeLocked(p *pass) bool {
	switch {
	case p.Priority == engine.PrioritySystem && g.kept > 0:
		g.kept--
		p.kept = true
		return true
	case g.free == 0:
		return false
	case p.Priority == engine.PriorityBulk:
		use := g.tenants[p.Tenant]
		if g.bulk == 0 || use != nil && use.conns >= g.most {
			return false
		}
		g.useLocked(p.Tenant).conns++
		g.bulk--
	}
	g.free--
	return true
}

// nextLocked admits one waiter and reports whether it found one.
func (g *gate) nextLocked() bool {
	order := [3]engine.Priority{engine.PrioritySystem, engine.PriorityMoney, engine.PriorityBulk}
	if g.turns >= engine.BulkTurn-1 {
		order = [3]engine.Priority{engine.PrioritySystem, engine.PriorityBulk, engine.PriorityMoney}
	}
	for _, c := range order {
		for i, w := range g.waiting[c] {
			if !g.takeLocked(&w.pass) {
				if c == engine.PriorityBulk {
					continue // another tenant's may be let in
				}
				break
			}
			g.removeLocked(c, i)
			close(w.ready)
			if c == engine.PriorityBulk {
				g.turns = 0
			} else if len(g.waiting[engine.PriorityBulk]) > 0 {
				g.turns++
			}
			return true
		}
	}
	return false
}

func (g *gate) removeLocked(c engine.Priority, i int) {
	w := g.waiting[c][i]
	g.waiting[c] = slices.Delete(g.waiting[c], i, i+1)
	if c == engine.PriorityBulk {
		use := g.useLocked(w.Tenant)
		use.waits--
		g.sweepLocked(w.Tenant, use)
	}
}

func (g *gate) useLocked(tenant string) *bulkUse {
	use := g.tenants[tenant]
	if use == nil {
		use = &bulkUse{}
		g.tenants[tenant] = use
	}
	return use
}

func (g *gate) sweepLocked(tenant string, use *bulkUse) {
	if *use == (bulkUse{}) {
		delete(g.tenants, tenant)
	}
}
