package db

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

const (
	keptConns   = 2   // for prioritySystem alone
	bulkPart    = 4   // bulk work has at most one connection in so many
	tenantConns = 2   // of a tenant's bulk work at once
	tenantWaits = 256 // of a tenant's bulk transactions that may wait
	bulkTurn    = 8   // every so-manieth turn is bulk's where both wait
)

// gate decides who gets the next connection. It hands out the right to one, not
// the connection itself.
type gate struct {
	mu      sync.Mutex
	kept    int // free, for prioritySystem alone
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
	purpose
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
func (g *gate) enter(ctx context.Context, p purpose) (pass, error) {
	w := waiter{pass: pass{purpose: p}}
	g.mu.Lock()
	if g.takeLocked(&w.pass) {
		g.mu.Unlock()
		return w.pass, nil
	}
	if p.priority == priorityBulk {
		use := g.useLocked(p.tenant)
		if use.waits >= tenantWaits {
			g.mu.Unlock()
			return pass{}, fmt.Errorf("%w: too much bulk work of one tenant waits", ErrUnavailable)
		}
		use.waits++
	}
	w.ready = make(chan struct{})
	g.waiting[p.priority] = append(g.waiting[p.priority], &w)
	g.mu.Unlock()
	select {
	case <-w.ready:
		return w.pass, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting[p.priority], &w); i >= 0 {
		g.removeLocked(p.priority, i)
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
	if p.priority == priorityBulk {
		g.bulk++
		use := g.useLocked(p.tenant)
		use.conns--
		g.sweepLocked(p.tenant, use)
	}
	for g.nextLocked() {
	}
}

// takeLocked gives p a right if it may have one now. The rest runs under the lock.
func (g *gate) takeLocked(p *pass) bool {
	switch {
	case p.priority == prioritySystem && g.kept > 0:
		g.kept--
		p.kept = true
		return true
	case g.free == 0:
		return false
	case p.priority == priorityBulk:
		use := g.tenants[p.tenant]
		if g.bulk == 0 || use != nil && use.conns >= g.most {
			return false
		}
		g.useLocked(p.tenant).conns++
		g.bulk--
	}
	g.free--
	return true
}

// nextLocked lets one waiter in and says whether there may be another.
func (g *gate) nextLocked() bool {
	order := [3]priority{prioritySystem, priorityMoney, priorityBulk}
	if g.turns >= bulkTurn-1 {
		order = [3]priority{prioritySystem, priorityBulk, priorityMoney}
	}
	for _, c := range order {
		for i, w := range g.waiting[c] {
			if !g.takeLocked(&w.pass) {
				if c == priorityBulk {
					continue // another tenant's may be let in
				}
				break
			}
			g.removeLocked(c, i)
			close(w.ready)
			if c == priorityBulk {
				g.turns = 0
			} else if len(g.waiting[priorityBulk]) > 0 {
				g.turns++
			}
			return true
		}
	}
	return false
}

func (g *gate) removeLocked(c priority, i int) {
	w := g.waiting[c][i]
	g.waiting[c] = slices.Delete(g.waiting[c], i, i+1)
	if c == priorityBulk {
		use := g.useLocked(w.tenant)
		use.waits--
		g.sweepLocked(w.tenant, use)
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
