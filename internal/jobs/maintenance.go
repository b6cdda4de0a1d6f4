package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// maintainEvery bounds the time between two looks by the maintainer, by the
// machine's clock: wakes of other nodes are seen within it.
const maintainEvery = time.Second

// maintainer does the periodic work for everything that is not in memory.
type maintainer struct {
	*runner
	maintainEvery time.Duration // the constant, but in tests that look themselves
	maintaining   sync.Mutex
}

// maintainLoop handles everything that is not in memory: jobs of dead owners, overflow, and hints for and from other
// nodes.
func (k *maintainer) maintainLoop() {
	defer k.loops.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-k.quit
		cancel()
	}()
	tick := time.NewTicker(min(k.maintainEvery, k.opts.Heartbeat))
	defer tick.Stop()
	var told clock.Seldom
	for {
		look := k.look
		if err := k.maintainOnce(ctx); err != nil && ctx.Err() == nil {
			look = nil // who failed calls, too: a database that takes no writes would be asked without a rest
			if missed, ok := told.May(time.Now()); ok {
				k.log.Warn("job maintenance failed, retrying", "node", k.opts.Node, "error", err, "times_since", missed)
			}
		}
		select {
		case <-look:
		case <-tick.C:
		case <-k.quit:
			return
		}
	}
}

// maintainOnce is one look: at everything once a heartbeat, else at the hints and
// the memory only.
func (k *maintainer) maintainOnce(ctx context.Context) error {
	if err := k.exchangeHints(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	whole := !k.looked || time.Since(k.lookedAt) >= k.opts.Heartbeat*3/4
	k.mu.Unlock()
	if whole {
		return k.maintain(ctx)
	}
	if err := k.takeParked(ctx); err != nil {
		return err
	}
	return k.maintainMemory(ctx)
}

const (
	// The distinct owners, by hopping from one to the next in the index.
	sqlOwners = `WITH RECURSIVE hop(owner) AS (
			SELECT min(owner) FROM jobs
			UNION ALL
			SELECT (SELECT min(jobs.owner) FROM jobs WHERE jobs.owner > hop.owner) FROM hop WHERE hop.owner IS NOT NULL)
		SELECT owner FROM hop WHERE owner IS NOT NULL`
)

// maintain buries dead leases, adopts their jobs and keeps the memory in bounds.
func (k *maintainer) maintain(ctx context.Context) error {
	k.mu.Lock()
	owner := k.owner
	k.mu.Unlock()
	if owner == ownerNobody {
		return nil
	}
	var owners []string
	var lapsed bool // or to be shortened
	alive := map[string]bool{}
	err := k.db.Read(ctx, func(tx *db.Tx) error {
		owners, lapsed = nil, false
		clear(alive)
		return tx.Gather(
			db.Query{SQL: sqlOwners, Each: func(r *db.Row) error {
				var o string
				err := r.Scan(&o)
				owners = append(owners, o)
				return err
			}},
			k.lease.Look(func(o string, lives, bury bool) {
				lapsed = lapsed || bury
				alive[o] = lives
			}))
	})
	if err != nil {
		return fmt.Errorf("look for the dead: %w", err)
	}
	if lapsed {
		err := k.db.Write(ctx, func(tx *db.Tx) error {
			k.lease.Bury(tx)
			return nil
		})
		if err != nil {
			return fmt.Errorf("bury the dead: %w", err)
		}
	}
	k.mu.Lock()
	k.peers = 0
	for o, lives := range alive {
		if lives && o != owner {
			k.peers++
		}
	}
	k.mu.Unlock()
	for _, o := range owners {
		if o == owner || o == ownerDead || alive[o] || !k.wants(o) {
			continue
		}
		if err := k.adopt(ctx, owner, o); err != nil {
			return fmt.Errorf("adopt the jobs of %q: %w", o, err)
		}
	}
	if err := k.maintainMemory(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked, k.lookedAt = true, time.Now()
	k.relaxLocked()
	return nil
}

// maintainMemory puts far-off jobs out of a memory that is too full, and fetches
// jobs from the table into one that has room.
func (k *maintainer) maintainMemory(ctx context.Context) error {
	k.maintaining.Lock() // one walk at a time
	defer k.maintaining.Unlock()
	if err := k.trim(ctx); err != nil {
		return fmt.Errorf("make room in memory: %w", err)
	}
	if err := k.findStrays(ctx); err != nil {
		return fmt.Errorf("count the jobs of this node: %w", err)
	}
	if err := k.walk(ctx); err != nil {
		return fmt.Errorf("fetch jobs into memory: %w", err)
	}
	return nil
}
