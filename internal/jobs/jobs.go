// Package jobs is Makola's durable queue. It uses the database of the money, because a job must commit together with
// its subject. A job's row is the record of unfinished work; the work runs from memory.
//
// Each running node has one lease. A heartbeat renews it by the database's clock, under an epoch that is never used
// again once it has lapsed. A job belongs to a node's epoch from the moment it is added, so a new job runs on its
// node without another query. When a node dies or stops, other nodes adopt its jobs in sets. Handlers therefore run
// at least once. A paused node may still run a handler when another node begins the same job, which Job.Adopted
// reports. The state of its rows must therefore guard a handler's writes.
//
// Memory is bounded. A job that does not fit stays only in the table. It is fetched when there is room, the earliest
// first.
//
// Files:
//
//	operator.go    counts of all nodes, lists, dead letters run again
//	jobs.go        the queue: start and stop, jobs added, finished, postponed, hurried
//	maintenance.go periodic work for everything that is not in memory
//	watchdog.go    overdue periodic work, in the log
//	numbers.go     this node's numbers
//	adoption.go    jobs of dead nodes, and jobs that wait for a node that runs their kind
//	overflow.go    memory kept within bounds: overflow, and its return
//	hints.go       hints for and from other nodes
//	periodic.go    rows of periodic work, on one node
//	run.go         jobs taken from memory, the handler, and its Outcome (attempts, dead letters)
//	memory.go      a node's jobs and handlers under its lock, wall times as lengths
//	store.go       the rows: added, read, finished with an error's beginning, put off
//	job.go         Job, Handler with its limits, Outcome: done, later, again or dead, and the pauses between tries
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/jobs/scheduler"
)

// Queue is this node's part of the queue. It is safe for concurrent use.
type Queue struct{ *maintainer }

// New returns a queue that runs nothing before Start. Jobs added before Start are left to any running node. Commands
// use a queue this way.
func New(d *db.DB, c *clock.Clock, log *slog.Logger, o Options) *Queue {
	if o.LeaseFor <= 0 {
		o.LeaseFor = 9 * time.Second
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 2 * time.Second
	}
	if o.MemoryMax <= 0 {
		o.MemoryMax = 100_000
	}
	if o.Node == "" {
		o.Node = uuid.NewString()
	}
	o.Node = strings.ReplaceAll(o.Node, "/", "-")
	n := &node{
		clock: c, opts: o,
		memory:    scheduler.New[held](),
		kinds:     map[string]*kind{},
		periodics: map[string]time.Duration{},
		wakes:     map[string]bool{},
		look:      make(chan struct{}, 1),
	}
	r := &runner{node: n, db: d, log: log, kick: make(chan struct{}, 1), quit: make(chan struct{})}
	r.runCtx, r.stopRun = context.WithCancel(context.Background())
	r.lease = lease.New(d, log, lease.Options{Node: o.Node, Shared: o.Shared, For: o.LeaseFor, Heartbeat: o.Heartbeat},
		lease.Callbacks{Acquired: r.leaseTaken, Lost: r.leaseLost, Renewed: r.leaseRenewed})
	r.notes = groupcommit.New(groupcommit.Options{Systemic: func(err error) bool { return errors.Is(err, db.ErrUnavailable) && !errors.Is(err, db.ErrAmbiguous) }},
		func(ctx context.Context, notes []note) ([]groupcommit.Verdict[struct{}], error) {
			return writeNotes(ctx, d, notes)
		})
	return &Queue{&maintainer{runner: r, maintainEvery: maintainEvery}}
}

// Register sets the handler of a kind of job. It is called before Start.
func (q *Queue) Register(h Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase != idle {
		panic("jobs: Register after Start")
	}
	if h.Kind == "" || h.Run == nil || q.kinds[h.Kind] != nil {
		panic(fmt.Sprintf("jobs: kind %q is registered badly or twice", h.Kind))
	}
	if h.Workers <= 0 {
		h.Workers = 8
	}
	q.kinds[h.Kind] = &kind{
		Handler:  h,
		lines:    q.memory.Kind(scheduler.Rules{PerLine: h.PerKey, PerTurn: h.PerTurn, Enter: h.Enter, Leave: h.Leave}),
		periodic: strings.HasPrefix(h.Kind, periodicPrefix),
	}
}

// Start takes a lease and begins to run jobs. It adopts the jobs of an earlier process of this node at once. ctx
// limits only the start itself.
func (q *Queue) Start(ctx context.Context) error {
	q.mu.Lock()
	if q.phase != idle {
		q.mu.Unlock()
		return errors.New("jobs: started twice")
	}
	q.mu.Unlock()
	if err := q.lease.Begin(ctx); err != nil {
		return fmt.Errorf("take a lease for node %s: %w", q.opts.Node, err)
	}
	if err := q.plantPeriodics(ctx); err != nil {
		return fmt.Errorf("plan the periodic work: %w", err)
	}
	q.mu.Lock()
	q.phase, q.lookedAt = started, time.Now()
	q.dispatchLocked()
	q.mu.Unlock()
	q.loops.Add(4)
	go q.dispatchLoop()
	go q.watchLoop()
	go func() {
		defer q.loops.Done()
		q.lease.Keep(q.quit, q.nudge)
	}()
	go q.maintainLoop()
	return nil
}

// Stop begins no more jobs, waits for running ones, and releases the lease, so that other nodes adopt the remaining
// jobs at once. If ctx ends first, Stop cancels the handlers and then waits for them. A second call does nothing.
func (q *Queue) Stop(ctx context.Context) error {
	q.mu.Lock()
	was := q.phase
	if was == started {
		q.phase = draining
		q.dismissLocked()
	}
	q.mu.Unlock()
	if was != started {
		return nil
	}
	q.lease.Drain()
	drained := make(chan struct{})
	go func() {
		q.workers.Wait()
		q.lease.Wait()
		close(drained)
	}()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = fmt.Errorf("jobs: handlers were still running: %w", context.Cause(ctx))
		q.stopRun()
		<-drained
	}
	close(q.quit)
	q.loops.Wait()
	q.stopRun()
	q.mu.Lock()
	q.phase = stopped
	q.owner = ""
	q.dropLocked()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.tellWatchersLocked()
	q.mu.Unlock()
	q.notes.Close()
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, q.lease.Release(release))
}

// Node returns the name of this node.
func (q *Queue) Node() string { return q.opts.Node }

// Epoch returns the epoch of this node's lease, or 0 without a lease. It never decreases.
func (q *Queue) Epoch() int64 { return q.lease.Epoch() }

// Hold waits until this node has the named lease, and then runs fn, as Lease.Hold does. Only one node has a named
// lease at a time.
func (q *Queue) Hold(ctx context.Context, name string, fn func(ctx context.Context)) error {
	return q.lease.Hold(ctx, name, fn)
}

// Add adds jobs in a transaction. They belong to this node, which runs them from memory as soon as the transaction is
// committed. Jobs added by a queue that does not run are adopted by the first node that finds them.
func (q *Queue) Add(tx *db.Tx, jobs ...Job) {
	if len(jobs) == 0 {
		return
	}
	now := q.clock.Now()
	q.mu.Lock()
	owner := q.owner
	rows := make([]row, len(jobs))
	for i, job := range jobs {
		if job.ID == "" {
			job.ID = newID()
		}
		if job.RunAt.IsZero() {
			job.RunAt = now
		}
		rows[i] = row{Job: job, owner: owner, created: db.Micros(now)}
		rows[i].Fresh = rows[i].fresh()
		switch k := q.kinds[job.Kind]; {
		case k == nil:
			rows[i].owner = ownerNobody // a kind that only another program runs
		case owner != ownerNobody && !k.takes():
			rows[i].owner = parked(job.Kind)
		}
	}
	q.mu.Unlock()
	insertRows(tx, rows)
	if owner != "" {
		tx.AfterCommit(func() { q.remember(owner, rows) })
	}
}

// Finish ends jobs of any owner in a transaction. It need not check the owner, because the same transaction changes
// rows whose own state guards the money.
func (q *Queue) Finish(tx *db.Tx, ids ...string) {
	if len(ids) == 0 {
		return
	}
	tx.Defer(sqlDelete, -1, ids)
	tx.AfterCommit(func() { q.forget(ids) })
}

// Postponement moves a job that failed to another time.
type Postponement struct {
	ID    string
	At    time.Time
	Error string
}

// Postpone stores in a transaction that jobs of this node failed once more, and when they run again. It has no effect
// on a job that another owner adopted.
func (q *Queue) Postpone(tx *db.Tx, jobs ...Postponement) {
	if len(jobs) == 0 {
		return
	}
	q.mu.Lock()
	owner := q.owner
	q.mu.Unlock()
	notes := make([]note, len(jobs))
	for i, p := range jobs {
		notes[i] = note{id: p.ID, owner: owner, at: p.At, err: clip(p.Error)}
	}
	tx.Defer(sqlFailedOnce, -1, db.RowsOf(noteColumns, notes))
	tx.AfterCommit(func() { q.postponed(owner, notes) })
}

// Wake runs the jobs of a subject now, because there is news about it. If this node has no such job, Wake stores a
// hint, which the job's owner reads within a second. A running job runs once more afterwards. A hint may be lost.
func (q *Queue) Wake(subject string) {
	if subject == "" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase != started {
		return
	}
	if q.memory.Wake(subject, q.clock.Elapsed()) {
		q.dispatchLocked()
		return
	}
	if (q.peers > 0 || q.overflow.on) && len(q.wakes) < maxWakes {
		q.wakes[subject] = true
		q.nudge()
	}
}

// WakeIn is Wake in a transaction, for a process that runs no jobs, such as a command. The owners of the subjects'
// jobs read the hints within two seconds of the commit.
func (q *Queue) WakeIn(tx *db.Tx, subjects ...string) {
	if len(subjects) == 0 {
		return
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	tx.Defer(sqlWake, -1, subjects)
	tx.AfterCommit(func() {
		for _, s := range subjects {
			q.Wake(s)
		}
	})
}

// Periodic runs fn repeatedly on one node, with a pause of every between two runs. The first run starts one pause
// after the work is first stored in the database. A failed run is logged, and the next run follows at its usual time.
// The transactions of fn are bulk work. Periodic must be called before Start.
func (q *Queue) Periodic(name string, every time.Duration, fn func(ctx context.Context) error) {
	kind := periodicPrefix + name
	q.Register(Handler{Kind: kind, Workers: 1, Run: func(ctx context.Context, _ Job) Outcome {
		out := Outcome{verb: verbRetry, after: every, reset: true, plain: true}
		if err := fn(db.Bulk(ctx, "")); err != nil {
			out.err, out.plain = fmt.Errorf("run periodic work %s: %w", name, err), false
		}
		return out
	}})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.periodics[kind] = every
}

// Quiet waits until no job runs and no job that may run is due. Tests and the simulation use it, and then move the
// clock to the next event.
func (q *Queue) Quiet(ctx context.Context) error {
	for {
		q.mu.Lock()
		if q.quietLocked() {
			q.mu.Unlock()
			return nil
		}
		change := make(chan struct{})
		q.watchers = append(q.watchers, change)
		q.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// newID returns an id that grows with time, so that jobs added together are stored together.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
