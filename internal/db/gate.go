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
	bulkPart    = 4   // bulk work has at most 1/bulkPart of the connections
	tenantConns = 2   // connections of one tenant's bulk work at once
	tenantWaits = 256 // bulk transactions of one tenant that may wait
)

// gate decides which transaction gets the next connection. It gives a transaction the right to take a connection, not
// the connection itself.
type gate struct {
	mu      sync.Mutex
	kept    int // free connections that are reserved for engine.PrioritySystem
	free    int // free connections for all priorities
	bulk    int // number of these that bulk work may take
	tenants map[string]*bulkUse
	most    int // maximum number of connections of one tenant's bulk work
	waiting [3][]*waiter
	turns   int // connections given to other work since bulk work got one
}

// bulkUse counts one tenant's bulk transactions: those with a connection, and those that wait.
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

// newGate returns a gate for conns connections for all priorities, and kept reserved ones.
func newGate(conns, kept int) *gate {
	g := &gate{kept: kept, free: conns, tenants: map[string]*bulkUse{}}
	g.bulk = min(conns, max(2, (conns+kept)/bulkPart))
	g.most = min(tenantConns, max(1, g.bulk-1)) // leaves a connection to other tenants
	return g
}

// enter waits until the caller may take a connection, or ctx ends.
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
			return pass{}, fmt.Errorf("%w: too many bulk transactions of one tenant are waiting", ErrUnavailable)
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
	return w.pass, nil // the right arrived when ctx ended
}

// leave returns a right and passes it to the next waiter.
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

// takeLocked gives p a right if p may have one now, and reports whether it did.
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

// nextLocked gives a right to one waiter and reports whether it found one.
func (g *gate) nextLocked() bool {
	order := [3]engine.Priority{engine.PrioritySystem, engine.PriorityMoney, engine.PriorityBulk}
	if g.turns >= engine.BulkTurn-1 {
		order = [3]engine.Priority{engine.PrioritySystem, engine.PriorityBulk, engine.PriorityMoney}
	}
	for _, c := range order {
		for i, w := range g.waiting[c] {
			if !g.takeLocked(&w.pass) {
				if c == engine.PriorityBulk {
					continue // a transaction of another tenant may be admitted
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
