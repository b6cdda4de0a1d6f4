package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// A lease is alive while expires_at lies ahead by the database's clock. One
// that has lapsed is made dead for good (expires_at 0) by a guarded UPDATE,
// which a heartbeat under way either beats or loses to; only then are its jobs
// and holds taken. So a dead epoch never comes back to life.
const (
	sqlLastEpoch = `SELECT now_micros(), coalesce(max(epoch), 0) FROM job_leases WHERE node = $1`
	sqlLease     = `INSERT INTO job_leases (owner, node, epoch, expires_at, level) VALUES ($1, $2, $3, now_micros() + $4, $5)`
	sqlRetire    = `UPDATE job_leases SET expires_at = 0 WHERE node = $1 AND owner <> $2 AND expires_at > 0`
	sqlNamesake  = `SELECT expires_at, expires_at - now_micros() FROM job_leases
		WHERE node = $1 AND owner <> $2 AND expires_at > now_micros() ORDER BY expires_at DESC LIMIT 1`
	sqlRenew     = `UPDATE job_leases SET expires_at = now_micros() + $2 WHERE owner = $1 AND expires_at > now_micros()`
	sqlRelease   = `UPDATE job_leases SET expires_at = 0 WHERE owner = $1`
	sqlExpire    = `UPDATE job_leases SET expires_at = 0 WHERE expires_at > 0 AND expires_at <= now_micros()`
	sqlPruneDead = `DELETE FROM job_leases WHERE expires_at = 0 AND epoch < now_micros() - $1`
)

// sqlCap shortens the leases that last longer than any node takes one for: the database's clock was set back since, and the
// jobs of a node that died would wait until then. A node that lives renews its lease long before the shortened one lapses.
const sqlCap = `UPDATE job_leases SET expires_at = now_micros() + $1 WHERE expires_at > now_micros() + $1`

// longestLease is the longest that a lease may last, with room for nodes that take theirs for longer.
func (q *Queue) longestLease() int64 { return 2 * q.opts.LeaseFor.Microseconds() }

const sqlEndLeases = `UPDATE job_leases SET expires_at = 0 WHERE expires_at > 0`

// EndLeases ends the lease of every node, for a database that went back in time: what
// the nodes remember of their jobs is of another past. Jobs that they finished are there
// again, and jobs that they run may not be. Each node begins a new epoch with its next
// heartbeat, and takes the jobs from their rows.
func EndLeases(tx *db.Tx) { tx.Defer(sqlEndLeases, -1) }

// leaseKept is how long the row of a dead lease stays to be looked at, counted
// from its start. A lease without a row is as dead.
const leaseKept = 7 * 24 * time.Hour

// namesake looks for the lease of another process under this node's name: until when it lasts, and for how long.
func (q *Queue) namesake(tx *db.Tx, owner string) (expires int64, left time.Duration, err error) {
	var micros int64
	_, err = tx.One(sqlNamesake, []any{q.opts.Node, owner}, &expires, &micros)
	return expires, time.Duration(micros) * time.Microsecond, err
}

func (q *Queue) nameTaken() error {
	return problem.New(problem.InProgress, "node_name_taken", "A node that is called "+q.opts.Node+" runs on this database: give this one another name")
}

// awaitName waits for the end of a lease that stands under this node's name. That of a process which was killed lapses;
// one that is renewed meanwhile belongs to a node that runs, and its name is refused.
func (q *Queue) awaitName(ctx context.Context) error {
	if err := q.db.Write(db.System(ctx), func(tx *db.Tx) error {
		tx.Defer(sqlCap, -1, q.longestLease())
		return nil
	}); err != nil {
		return err
	}
	for before := int64(0); ; {
		var expires int64
		var left time.Duration
		if err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			expires, left, err = q.namesake(tx, "")
			return err
		}); err != nil || expires == 0 {
			return err
		}
		if before != 0 && expires > before {
			return q.nameTaken()
		}
		if before == 0 {
			q.log.Info("waiting for the end of the lease of an earlier process of this name", "node", q.opts.Node, "at_most", left)
		}
		before = expires
		wait := time.NewTimer(min(left, q.opts.Heartbeat))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
}

// takeName takes the first lease under a name that another process may have. Of two that start at once each may see the
// other, and then both are refused.
func (q *Queue) takeName(ctx context.Context) error {
	if err := q.awaitName(ctx); err != nil {
		return err
	}
	if err := q.takeLease(ctx, true); err != nil {
		return err
	}
	var expires int64
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		expires, _, err = q.namesake(tx, q.owner)
		return err
	})
	if err == nil && expires > 0 {
		err = q.nameTaken()
	}
	if err != nil {
		return errors.Join(err, q.endLease(context.WithoutCancel(ctx), q.owner))
	}
	return nil
}

// takeLease begins a new epoch. At the start of the program the earlier ones of
// the same node end with it, unless the name is shared: their process is gone,
// or it is a namesake, which then goes on under a new epoch of its own.
func (q *Queue) takeLease(ctx context.Context, first bool) error {
	var owner string
	var epoch int64
	var sent time.Time
	err := q.db.Write(db.System(ctx), func(tx *db.Tx) error {
		sent = time.Now()
		var now, last int64
		if _, err := tx.One(sqlLastEpoch, []any{q.opts.Node}, &now, &last); err != nil {
			return err
		}
		epoch = max(now, last+1)
		owner = q.opts.Node + "/" + strconv.FormatInt(epoch, 10)
		tx.Defer(sqlLease, 1, owner, q.opts.Node, epoch, q.opts.LeaseFor.Microseconds(), level)
		if first && !q.opts.Shared {
			tx.Defer(sqlRetire, -1, q.opts.Node, owner)
		}
		return nil
	})
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner, q.epoch, q.beatAt = owner, epoch, sent
	q.freeHold, q.dropHold = context.WithCancel(context.Background())
	if q.phase == draining {
		q.dropHold()
	}
	return nil
}

// endLease gives the lease back.
func (q *Queue) endLease(ctx context.Context, owner string) error {
	if owner == ownerNobody {
		return nil
	}
	err := q.db.Write(db.System(ctx), func(tx *db.Tx) error {
		tx.Defer(sqlRelease, -1, owner)
		return nil
	})
	if err != nil {
		return fmt.Errorf("jobs: give the lease of %s back: %w", owner, err)
	}
	return nil
}

// leaseHoldsLocked says whether this node may begin a job: its last heartbeat is
// younger than two thirds of the lease, by both of the machine's clocks, since
// one of them stands still while the machine sleeps.
func (q *Queue) leaseHoldsLocked() bool {
	if q.owner == ownerNobody {
		return false
	}
	now := time.Now()
	age := max(now.Sub(q.beatAt), now.Round(0).Sub(q.beatAt.Round(0)))
	return age < q.holdFor()
}

func (q *Queue) holdFor() time.Duration { return q.opts.LeaseFor * 2 / 3 }

// beatLoop renews the lease by the machine's clock, never by the queue's: a
// simulated hour must not cost a node its lease.
func (q *Queue) beatLoop() {
	defer q.loops.Done()
	tick := time.NewTicker(q.opts.Heartbeat)
	defer tick.Stop()
	// Holds end before the lease can be anybody else's.
	q.mu.Lock()
	watchdog := time.AfterFunc(q.holdFor()-time.Since(q.beatAt), q.dropHolds)
	q.mu.Unlock()
	defer watchdog.Stop()
	healthy := true
	for {
		select {
		case <-tick.C:
		case <-q.quit:
			return
		}
		q.mu.Lock()
		if !q.leaseHoldsLocked() { // the watchdog may have slept with the machine
			q.dropHold()
		}
		q.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), q.opts.LeaseFor)
		sent := time.Now()
		err := q.beat(ctx)
		cancel()
		switch {
		case err != nil && healthy:
			q.log.Error("the heartbeat failed: no job begins until it is back", "node", q.opts.Node, "error", err)
		case err == nil && !healthy:
			q.log.Info("the heartbeat is back", "node", q.opts.Node)
		}
		if healthy = err == nil; healthy {
			watchdog.Reset(q.holdFor() - time.Since(sent))
			q.nudge()
		}
	}
}

// beat renews the lease. When it was lost, the memory goes with it and a new
// epoch begins.
func (q *Queue) beat(ctx context.Context) error {
	q.mu.Lock()
	owner := q.owner
	q.mu.Unlock()
	var sent time.Time
	var renewed int64
	if owner != ownerNobody {
		err := q.db.Write(db.System(ctx), func(tx *db.Tx) (err error) {
			sent = time.Now()
			renewed, err = tx.Exec(sqlRenew, owner, q.opts.LeaseFor.Microseconds())
			return err
		})
		// An ambiguous COMMIT may or may not have renewed it: the next tells.
		if err != nil {
			return err
		}
	}
	if renewed == 0 {
		if owner != ownerNobody {
			q.log.Warn("this node's lease was lost: it goes on under a new epoch", "node", q.opts.Node)
			q.loseLease()
		}
		if err := q.takeLease(ctx, false); err != nil {
			return fmt.Errorf("take a new lease: %w", err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if renewed > 0 {
		q.beatAt = sent
		if q.freeHold.Err() != nil && q.phase == started { // the watchdog was quicker
			q.freeHold, q.dropHold = context.WithCancel(context.Background())
		}
	}
	close(q.beats)
	q.beats = make(chan struct{})
	q.dispatchLocked()
	return nil
}

// loseLease drops everything that belonged to the epoch.
func (q *Queue) loseLease() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = ownerNobody
	q.dropHold()
	q.memory.drop()
	q.spill = spill{}
	q.looked = false
	q.counts.LeasesLost++
}

func (q *Queue) dropHolds() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropHold()
}

const (
	sqlHold = `INSERT INTO job_holds (name, owner)
		SELECT CAST($1 AS TEXT), owner FROM job_leases WHERE owner = $2 AND expires_at > now_micros()
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner
		WHERE job_holds.owner IN ('', excluded.owner) OR NOT EXISTS (
			SELECT 1 FROM job_leases WHERE job_leases.owner = job_holds.owner AND job_leases.expires_at > 0)`
	sqlHolder = `SELECT owner FROM job_holds WHERE name = $1`
	sqlLetGo  = `UPDATE job_holds SET owner = '' WHERE name = $1 AND owner = $2`
)

// Hold waits until this node alone holds name, across all nodes, and then runs
// fn. fn's context ends when the lease may be lost, before anybody else can
// have the name; Hold then waits for it again. Only on a machine that slept it
// ends late, within a heartbeat of its waking. Hold returns nil when fn returns
// of its own accord, and ctx's error when ctx ends first.
func (q *Queue) Hold(ctx context.Context, name string, fn func(ctx context.Context)) error {
	q.mu.Lock()
	if q.phase != started || q.held[name] {
		q.mu.Unlock()
		return fmt.Errorf("jobs: %s cannot be held: the queue does not run, or it is held here already", name)
	}
	q.held[name] = true
	q.holds.Add(1)
	q.mu.Unlock()
	defer q.holds.Done()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.held, name)
	}()
	for {
		q.mu.Lock()
		owner, free, next, over := q.owner, q.freeHold, q.beats, q.phase != started
		q.mu.Unlock()
		if over {
			return errStopped
		}
		if owner != ownerNobody && free.Err() == nil {
			mine, err := q.grasp(ctx, name, owner)
			if err != nil && ctx.Err() == nil {
				q.log.Warn("a hold could not be asked for", "name", name, "error", err)
			}
			if mine {
				if ended := q.holding(ctx, free, name, owner, fn); ended {
					return ctx.Err()
				}
				continue
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-q.drain:
			return errStopped
		}
	}
}

var errStopped = errors.New("jobs: the queue was stopped")

// grasp tries to take a name.
func (q *Queue) grasp(ctx context.Context, name, owner string) (mine bool, err error) {
	err = q.db.Write(db.System(ctx), func(tx *db.Tx) error {
		// Looking first spares a row lock each heartbeat of each waiting node.
		var holder string
		if found, err := tx.One(sqlHolder, []any{name}, &holder); err != nil || found && holder == owner {
			mine = found && err == nil
			return err
		}
		n, err := tx.Exec(sqlHold, name, owner)
		mine = n == 1
		return err
	})
	return mine && err == nil, err
}

// holding runs fn until it returns, and gives the name back. It says whether
// the hold is over for good.
func (q *Queue) holding(ctx, free context.Context, name, owner string, fn func(context.Context)) bool {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(free, cancel)
	defer stop()
	q.log.Info("a hold was taken", "name", name, "node", q.opts.Node)
	fn(held)
	lost := held.Err() != nil && ctx.Err() == nil
	release, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	err := q.db.Write(db.System(release), func(tx *db.Tx) error {
		tx.Defer(sqlLetGo, -1, name, owner)
		return nil
	})
	if err != nil {
		q.log.Warn("a hold could not be given back", "name", name, "error", err)
	}
	return !lost
}

const sqlAlive = `SELECT DISTINCT node FROM job_leases WHERE expires_at > now_micros() ORDER BY node`

// AliveNodes lists the nodes whose lease has not lapsed, for callers that must not touch the database of a running server.
func AliveNodes(tx *db.Tx) (nodes []string, err error) {
	err = tx.Query(sqlAlive, nil, func(r *db.Row) error {
		var node string
		err := r.Scan(&node)
		nodes = append(nodes, node)
		return err
	})
	return nodes, err
}

// level is stored with each lease of this program. It grows by one with each change that every living node must know before it
// begins: 1 keys the links of the audit chain. The release before has level 0.
const level = 1

const sqlOlder = `SELECT 1 FROM job_leases WHERE expires_at > now_micros() AND level < $1 LIMIT 1`

// OlderLives reports whether a node of an older program has a lease that has not lapsed.
func OlderLives(tx *db.Tx) (bool, error) {
	var one int64
	return tx.One(sqlOlder, []any{level}, &one)
}
