// Package timekeeping watches the clock of a node. It stores steps of the machine's clock. It makes the node refuse
// money while its clock cannot be right: far from PostgreSQL's clock, or on SQLite behind the newest row. Ages that
// decide about money come from elapsed time (package clock). This guard protects everything that is stored with the
// wall clock.
package timekeeping

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const (
	// LookEvery is the interval at which the clock is checked.
	LookEvery = 5 * time.Second
	// Most is the maximum difference between a node's clock and PostgreSQL's clock, or the newest row of a SQLite
	// database.
	Most = clock.StepLeast
	// rowPause is the minimum time between two stored steps of a node. If a machine's clock is set again and again,
	// each step is logged and counted, but not stored.
	rowPause = time.Minute
	// rowsKept is how long rows are kept.
	rowsKept = 90 * 24 * time.Hour
)

// Options configure a Keeper.
type Options struct {
	Node string
	// Guard makes the node refuse money while its clock is wrong. It is off in development, where the clock is moved
	// on purpose.
	Guard bool
	// Newest returns when the newest row was made. On SQLite the clock is compared with it. Zero means that there is
	// no row.
	Newest func(context.Context) (time.Time, error)
}

// Keeper watches the clock of this node. It is safe for concurrent use.
type Keeper struct {
	db    *db.DB
	clock *clock.Clock
	log   *slog.Logger
	opts  Options

	steps   atomic.Int64
	stopped atomic.Pointer[problem.Error]

	mu      sync.Mutex
	wrote   time.Duration // when the last step was stored, by Elapsed
	unsaved *clock.Step   // sum of the steps that are not stored yet; nil: all are stored
}

// New returns a Keeper. It reads nothing.
func New(d *db.DB, c *clock.Clock, log *slog.Logger, o Options) *Keeper {
	return &Keeper{db: d, clock: c, log: log, opts: o, wrote: -rowPause}
}

// Step is a stored event: the clock of a node was set, or an operator accepted a clock.
type Step struct {
	Node   string
	At     time.Time
	By     time.Duration // 0: an acceptance
	Actor  string
	Reason string
}

const (
	insertStep = `INSERT INTO clock_steps (id, node, at, by, actor, reason, forgives) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	pruneSteps = `DELETE FROM clock_steps WHERE at < $1`
	// lastStep ignores steps in the future, which a later step has undone. With such a step, nothing would have an
	// age until that time.
	lastStep  = `SELECT at FROM clock_steps WHERE by <> 0 AND at <= $1 ORDER BY at DESC LIMIT 1`
	ownSteps  = `SELECT at, by FROM clock_steps WHERE by <> 0 AND node = $1 AND at <= $2 ORDER BY at DESC LIMIT 100`
	forgiven  = `SELECT COALESCE(max(forgives), 0) FROM clock_steps WHERE by = 0`
	listSteps = `SELECT node, at, by, actor, reason FROM clock_steps WHERE at >= $1 ORDER BY at DESC, id DESC LIMIT $2`
)

// Start reads the steps that earlier processes stored, and checks the clock for the first time.
func (k *Keeper) Start(ctx context.Context) error {
	own, err := db.ReadAll(ctx, k.db, ownSteps, []any{k.opts.Node, k.clock.Now().Add(clock.Skew)}, func(s *clock.Step, r *db.Row) error {
		var by int64
		err := r.Scan(&s.At, &by)
		s.By = time.Duration(by) * time.Microsecond
		return err
	})
	if err != nil {
		return fmt.Errorf("timekeeping: read the steps of the clock: %w", err)
	}
	for _, s := range slices.Backward(own) {
		k.clock.RecallOwn(s)
	}
	return k.Look(ctx)
}

// Watch checks the clock repeatedly until ctx ends.
func (k *Keeper) Watch(ctx context.Context) {
	for k.clock.Sleep(ctx, LookEvery) == nil {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "failed to check clock", "error", err)
		}
	}
}

// Look stores the steps since its last call, and decides whether the node may handle money.
func (k *Keeper) Look(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.clock.Steps() {
		k.steps.Add(1)
		k.log.WarnContext(ctx, "machine clock stepped", "by", s.By.Round(time.Millisecond), "to", s.At)
		if k.unsaved != nil && k.unsaved.By+s.By != 0 { // a sum of zero would be stored as an acceptance
			s.By += k.unsaved.By
		}
		k.unsaved = &s
	}
	if elapsed := k.clock.Elapsed(); k.unsaved != nil && elapsed-k.wrote >= rowPause {
		if err := k.store(ctx, *k.unsaved); err != nil {
			return err
		}
		k.unsaved, k.wrote = nil, elapsed
	}
	if err := k.recall(ctx); err != nil {
		return err
	}
	if !k.opts.Guard {
		return nil
	}
	if k.db.Engine() == db.SQLite {
		return k.againstRows(ctx)
	}
	return k.againstServer(ctx)
}

// recall passes the last step of any node to this node's clock, so that all nodes treat ages since that step alike.
func (k *Keeper) recall(ctx context.Context) error {
	var at time.Time
	_, err := k.db.ReadOne(ctx, lastStep, []any{k.clock.Now().Add(clock.Skew)}, &at)
	if err == nil {
		k.clock.Recall(at)
	}
	return err
}

func (k *Keeper) store(ctx context.Context, s clock.Step) error {
	return k.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(pruneSteps, -1, s.At.Add(-rowsKept))
		tx.Defer(insertStep, 1, newID(), k.opts.Node, s.At, s.By.Microseconds(), "", "", time.Time{})
		return nil
	})
}

// againstServer compares the clock with PostgreSQL's clock.
func (k *Keeper) againstServer(ctx context.Context) error {
	before := k.clock.Elapsed()
	theirs, err := k.db.Now(ctx)
	if err != nil {
		return err
	}
	took := k.clock.Elapsed() - before
	off := k.clock.Now().Add(-took / 2).Sub(theirs)
	if off.Abs()-took/2 <= Most {
		k.allow(ctx)
		return nil
	}
	k.stop(ctx, fmt.Sprintf("the clock of this node is %v from the database's", off.Round(time.Second)))
	return nil
}

// againstRows compares the clock with the newest row, unless an operator has accepted the difference.
func (k *Keeper) againstRows(ctx context.Context) error {
	newest, err := k.opts.Newest(ctx)
	if err != nil {
		return err
	}
	var until time.Time
	if _, err := k.db.ReadOne(ctx, forgiven, nil, &until); err != nil {
		return err
	}
	if behind := newest.Sub(k.clock.Now()); behind > Most && newest.After(until) {
		k.stop(ctx, fmt.Sprintf("the clock of this machine is %v behind the newest row", behind.Round(time.Second)))
	} else {
		k.allow(ctx)
	}
	return nil
}

// retryAfter is the Retry-After of a refusal.
const retryAfter = 30 * time.Second

func (k *Keeper) stop(ctx context.Context, why string) {
	if k.stopped.Load() == nil {
		k.log.ErrorContext(ctx, "money operations stopped, clock wrong", "why", why)
	}
	e := problem.New(problem.Unavailable, "clock_wrong", "The service is not available at the moment. Nothing was recorded; try again shortly.")
	e.RetryAfter, e.Cause = retryAfter, fmt.Errorf("timekeeping: %s", why)
	k.stopped.Store(e)
}

func (k *Keeper) allow(ctx context.Context) {
	if k.stopped.Swap(nil) != nil {
		k.log.WarnContext(ctx, "money operations resumed, clock right")
	}
}

// Check returns an error for a command if its clock is wrong, as Stopped does for a server. It stores nothing.
func Check(ctx context.Context, d *db.DB, c *clock.Clock, newest func(context.Context) (time.Time, error)) error {
	k := New(d, c, slog.New(slog.DiscardHandler), Options{Guard: true, Newest: newest})
	if err := k.Look(ctx); err != nil {
		return err
	}
	return k.Stopped()
}

// Stopped returns an error while the clock is wrong, with the reason as its cause, and nil while the clock is right.
func (k *Keeper) Stopped() error {
	if e := k.stopped.Load(); e != nil {
		return e
	}
	return nil
}

// Seen returns the number of steps that this process has seen.
func (k *Keeper) Seen() int64 { return k.steps.Load() }

// Accept stores that an operator accepts the machine's clock although the newest row is ahead of it. Servers on
// SQLite then handle money again within LookEvery.
func Accept(tx *db.Tx, now, newest time.Time, actor, reason string) {
	tx.Defer(insertStep, 1, newID(), "", now, int64(0), actor, reason, newest)
}

// List returns the newest steps and acceptances since a time, newest first, at most limit.
func List(ctx context.Context, d *db.DB, since time.Time, limit int) ([]Step, error) {
	return db.ReadAll(ctx, d, listSteps, []any{since, limit}, func(s *Step, r *db.Row) error {
		var by int64
		err := r.Scan(&s.Node, &s.At, &by, &s.Actor, &s.Reason)
		s.By = time.Duration(by) * time.Microsecond
		return err
	})
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
