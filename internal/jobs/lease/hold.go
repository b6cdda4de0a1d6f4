package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	sqlHold = `INSERT INTO job_holds (name, owner)
		SELECT CAST($1 AS TEXT), owner FROM job_leases WHERE owner = $2 AND expires_at > now_micros()
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner
		WHERE job_holds.owner IN ('', excluded.owner) OR NOT EXISTS (
			SELECT 1 FROM job_leases WHERE job_leases.owner = job_holds.owner AND job_leases.expires_at > 0)`
	sqlHolder = `SELECT owner FROM job_holds WHERE name = $1`
	sqlLetGo  = `UPDATE job_holds SET owner = '' WHERE name = $1 AND owner = $2`
)

// Hold waits until this node has the lease called name, and then runs fn. Only one node has the lease at a time. The
// context of fn ends when the lease may be lost, before another node can acquire it. Hold then waits for the lease
// again. On a machine that slept, the context ends late, within a heartbeat after the machine wakes up. Hold returns
// nil when fn returns by itself, and the error of ctx when ctx ends first.
func (l *Lease) Hold(ctx context.Context, name string, fn func(ctx context.Context)) error {
	if err := l.enlist(name); err != nil {
		return err
	}
	defer l.holds.Done()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, name)
	}()
	for {
		l.mu.Lock()
		owner, free, next := l.owner, l.freeHold, l.beats
		l.mu.Unlock()
		if l.isDrained() {
			return errStopped
		}
		if owner != "" && free.Err() == nil {
			mine, err := l.grasp(ctx, name, owner)
			if err != nil && ctx.Err() == nil {
				l.log.Warn("failed to request lease", "name", name, "error", err)
			}
			if mine {
				if ended := l.holding(ctx, free, name, owner, fn); ended {
					return ctx.Err()
				}
				continue
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.drained:
			return errStopped
		}
	}
}

// enlist records that this node has or waits for the named lease.
func (l *Lease) enlist(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == 0 || l.isDrained() || l.held[name] {
		return fmt.Errorf("jobs: the lease %s cannot be requested: the queue does not run, or this node has the lease already", name)
	}
	l.held[name] = true
	l.holds.Add(1)
	return nil
}

var errStopped = errors.New("jobs: the queue was stopped")

// grasp tries to acquire the named lease.
func (l *Lease) grasp(ctx context.Context, name, owner string) (mine bool, err error) {
	err = l.db.Write(db.System(ctx), func(tx *db.Tx) error {
		// Reading the holder first saves a row lock on each heartbeat of each waiting node.
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

// holding runs fn until it returns, and then releases the lease. It returns false if fn ended because the lease may
// be lost.
func (l *Lease) holding(ctx, free context.Context, name, owner string, fn func(context.Context)) bool {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(free, cancel)
	defer stop()
	l.log.Info("acquired lease", "name", name, "node", l.opts.Node)
	fn(held)
	lost := held.Err() != nil && ctx.Err() == nil
	release, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	err := l.db.Write(db.System(release), func(tx *db.Tx) error {
		tx.Defer(sqlLetGo, -1, name, owner)
		return nil
	})
	if err != nil {
		l.log.Warn("failed to release lease", "name", name, "error", err)
	}
	return !lost
}
