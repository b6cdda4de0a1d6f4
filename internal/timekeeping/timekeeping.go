// Package timekeeping watches the clock of a node. It stores steps of the machine's clock. It stops the node from
// taking money while its clock cannot be right: far from PostgreSQL's clock, or on SQLite behind the newest row. Ages
// that decide about money come from elapsed time (package clock). This guard protects everything that is stored with
// the wall clock.
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
	// LookEvery is the pause between two looks at the clock.
	LookEvery = 5 * time.Second
	// Most is how far a clock may be from PostgreSQL's, or behind the newest row of a SQLite database.
	Most = clock.StepLeast
	// rowPause is the shortest time between two rows of a node. A machine whose clock is set again and again is logged
	// each time, and counted.
	rowPause = time.Minute
	// rowsKept is how long rows are kept.
	rowsKept = 90 * 24 * time.Hour
)

// Options configure a Keeper.
type Options struct {
	Node string
	// Guard stops the node while its clock is wrong. In development it is off: there the clock is moved on purpose.
	Guard bool
	// Newest returns when the newest row was made, by which the clock is checked on SQLite; the zero time: there is none.
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
	wrote   time.Duration // when the last row was written, by Elapsed
	unsaved *clock.Step   // the last step, with the sum of those that have no row yet; nil: all have one
}

// New makes a Keeper. It reads nothing.
func New(d *db.DB, c *clock.Clock, log *slog.Logger, o Options) *Keeper {
	return &Keeper{db: d, clock: c, log: log, opts: o, wrote: -rowPause}
}

// Step is a row: the clock of a node was set, or an operator accepted a clock.
type Step struct {
	Node   string
	At     time.Time
	By     time.Duration // 0: accepted
	Actor  string
	Reason string
}

const (
	insertStep = `INSERT INTO clock_steps (id, node, at, by, actor, reason, forgives) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	pruneSteps = `DELETE FROM clock_steps WHERE at < $1`
	// A later step undid a step into the future. By the clock of that time, nothing would have an age until then.
	lastStep  = `SELECT at FROM clock_steps WHERE by <> 0 AND at <= $1 ORDER BY at DESC LIMIT 1`
	ownSteps  = `SELECT at, by FROM clock_steps WHERE by <> 0 AND node = $1 AND at <= $2 ORDER BY at DESC LIMIT 100`
	forgiven  = `SELECT COALESCE(max(forgives), 0) FROM clock_steps WHERE by = 0`
	listSteps = `SELECT node, at, by, actor, reason FROM clock_steps WHERE at >= $1 ORDER BY at DESC, id DESC LIMIT $2`
)

// Start reads what earlier processes saw, and looks at the clock for the first time.
func (k *Keeper) Start(ctx context.Context) error {
	var own []clock.Step // newest first
	err := k.db.Read(ctx, func(tx *db.Tx) error {
		own = nil
		return tx.Query(ownSteps, []any{k.opts.Node, k.clock.Now().Add(clock.Skew)}, func(r *db.Row) error {
			var s clock.Step
			var by int64
			err := r.Scan(&s.At, &by)
			s.By = time.Duration(by) * time.Microsecond
			own = append(own, s)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("timekeeping: read the steps of the clock: %w", err)
	}
	for _, s := range slices.Backward(own) {
		k.clock.RecallOwn(s)
	}
	return k.Look(ctx)
}

// Watch looks at the clock until ctx ends.
func (k *Keeper) Watch(ctx context.Context) {
	for k.clock.Sleep(ctx, LookEvery) == nil {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "failed to check clock", "error", err)
		}
	}
}

// Look stores the steps that were seen since it was last called, and decides whether the node may take money.
func (k *Keeper) Look(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.clock.Steps() {
		k.steps.Add(1)
		k.log.WarnContext(ctx, "machine clock stepped", "by", s.By.Round(time.Millisecond), "to", s.At)
		if k.unsaved != nil && k.unsaved.By+s.By != 0 { // a row without a length would be an acceptance
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

// recall makes the clock respect the last step of any node: what one of them keeps since its step the others keep, too.
func (k *Keeper) recall(ctx context.Context) error {
	var at time.Time
	err := k.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(lastStep, []any{k.clock.Now().Add(clock.Skew)}, &at)
		return err
	})
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

// againstServer compares the clock with PostgreSQL's.
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

// againstRows compares the clock with the newest row that no operator has forgiven.
func (k *Keeper) againstRows(ctx context.Context) error {
	newest, err := k.opts.Newest(ctx)
	if err != nil {
		return err
	}
	var until time.Time
	if err := k.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(forgiven, nil, &until)
		return err
	}); err != nil {
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

// Check refuses money to a command whose clock is wrong, as Stopped does to a server. It stores nothing.
func Check(ctx context.Context, d *db.DB, c *clock.Clock, newest func(context.Context) (time.Time, error)) error {
	k := New(d, c, slog.New(slog.DiscardHandler), Options{Guard: true, Newest: newest})
	if err := k.Look(ctx); err != nil {
		return err
	}
	return k.Stopped()
}

// Stopped returns the refusal of money while the clock is wrong, with the reason as its cause. It is nil while the
// clock is right.
func (k *Keeper) Stopped() error {
	if e := k.stopped.Load(); e != nil {
		return e
	}
	return nil
}

// Seen returns how many steps this process has seen.
func (k *Keeper) Seen() int64 { return k.steps.Load() }

// Accept stores that an operator accepts the clock of the machine as it is, although the newest row is ahead of it. Servers on
// SQLite take money again within LookEvery.
func Accept(tx *db.Tx, now, newest time.Time, actor, reason string) {
	tx.Defer(insertStep, 1, newID(), "", now, int64(0), actor, reason, newest)
}

// List returns the newest steps and acceptances since a time, newest first, at most limit.
func List(ctx context.Context, d *db.DB, since time.Time, limit int) (list []Step, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(listSteps, []any{since, limit}, func(r *db.Row) error {
			var s Step
			var by int64
			err := r.Scan(&s.Node, &s.At, &by, &s.Actor, &s.Reason)
			s.By = time.Duration(by) * time.Microsecond
			list = append(list, s)
			return err
		})
	})
	return list, err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
