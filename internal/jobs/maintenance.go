package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// maintainEvery is the maximum time between two rounds of the maintainer, by the machine's clock. Hints of other
// nodes are read within it.
const maintainEvery = time.Second

// maintainer does the periodic work of the queue that involves the table: adoption, overflow and hints.
type maintainer struct {
	*runner
	maintainEvery time.Duration // tests that start rounds themselves set another value
	maintaining   sync.Mutex
}

// maintainLoop runs the maintainer's rounds until the queue stops.
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
			look = nil // a failed round signals look itself, so without this pause a database that refuses writes would be queried all the time
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

// maintainOnce runs one round. Once a heartbeat it checks everything, otherwise only hints, waiting jobs and the
// memory.
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
	// sqlOwners lists the distinct owners. It jumps from each owner to the next in the index.
	sqlOwners = `WITH RECURSIVE hop(owner) AS (
			SELECT min(owner) FROM jobs
			UNION ALL
			SELECT (SELECT min(jobs.owner) FROM jobs WHERE jobs.owner > hop.owner) FROM hop WHERE hop.owner IS NOT NULL)
		SELECT owner FROM hop WHERE owner IS NOT NULL`
)

// maintain ends lapsed leases, adopts their jobs and keeps the memory within its limit.
func (k *maintainer) maintain(ctx context.Context) error {
	k.mu.Lock()
	owner := k.owner
	k.mu.Unlock()
	if owner == ownerNobody {
		return nil
	}
	var owners []string
	var lapsed bool // a lease has lapsed or lasts too long
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
			k.lease.Look(func(o string, lives, expired bool) {
				lapsed = lapsed || expired
				alive[o] = lives
			}))
	})
	if err != nil {
		return fmt.Errorf("look for dead nodes: %w", err)
	}
	if lapsed {
		err := k.db.Write(ctx, func(tx *db.Tx) error {
			k.lease.Expire(tx)
			return nil
		})
		if err != nil {
			return fmt.Errorf("expire lapsed leases: %w", err)
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

// maintainMemory removes jobs that are due late from a full memory, and fetches jobs from the table if there is room.
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
