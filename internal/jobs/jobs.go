// Package jobs is Makola's durable queue, on the same database as the money,
// because a job must commit with what it is about. A job is a row that says
// what is not finished; the row is the recovery record, and the work runs from
// memory.
//
// Each running node holds one lease, renewed by a heartbeat on the database's
// clock, under an epoch that is never used again once it has lapsed. A job is
// owned by a node's epoch from the moment it is added, so that a fresh job
// runs on the node that accepted it without another question to the database.
// When a node dies or stops, the others adopt its jobs in sets. Handlers
// therefore run at least once: a node that was paused may still be in one when
// another begins (Job.Adopted says so), and what it writes must be guarded by
// the state of its own rows.
//
// Memory is bounded. A job that does not fit stays in the table alone and is fetched when there is
// room, the nearest first.
//
// Files:
//
//	jobs.go        Job, Handler with its limits, Outcome: done, later, again or dead; the queue and how it starts
//	store.go       the rows: added, read, finished with an error's beginning, put off
//	run.go         jobs taken from memory, the handler, and what comes of its Outcome (attempts, dead letters)
//	memory.go      what is kept with a job in memory, and times on the wall as lengths
//	adoption.go    jobs of dead nodes, jobs that did not fit, hints from other nodes; memory kept within bounds
//	periodic.go    work that comes again by the clock, on one node
//	watchdog.go    what should come again and does not, in the log
//	operator.go    counts, lists, dead letters run again
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/jobs/scheduler"
)

// Job is one piece of work that is not finished.
type Job struct {
	ID   string // unique; made when empty. Callers that may run again make it beforehand
	Kind string // permanent: rows outlive programs
	// Subject is what Wake calls it by, such as a payment's id. ID is the Subject, or
	// begins with it and "/" and a number: so it is found in the table. Without a
	// Subject it is called by its ID.
	Subject string
	// Payload is the handler's own, versioned by it.
	Payload   json.RawMessage
	RunAt     time.Time // zero: at once
	Tries     int       // failures that were written so far
	LastError string
	// Adopted says that this job had another owner before, who may have begun
	// it, or may even still be in it.
	Adopted bool
	// Fresh says that no node has begun with this job: its row is as it
	// was added. A job that ran and leaves the memory has another time in its row, and
	// one that changes its owner was adopted.
	Fresh bool
	// Memo comes with a job from the transaction that added it on this node
	// and is not stored: what the handler would otherwise have to read. It is
	// nil for a job that was adopted or did not fit into memory.
	Memo any
	// Crowd is how many jobs of its kind and tenant were in this node's memory when it began.
	Crowd int
}

// Outcome is what a handler says about the job that it ran. A handler whose
// own transaction finished or postponed the job (Finish, Postpone) may return
// anything: the transaction counts.
type Outcome struct {
	verb  verb
	after time.Duration
	err   error
	reset bool // retry: the failures begin anew
	plain bool // retry: an ordinary event, no failure
}

type verb uint8

const (
	verbDone verb = iota
	verbLater
	verbRetry
	verbDead
	verbPass
)

// Done ends the job.
func Done() Outcome { return Outcome{verb: verbDone} }

// Later runs the job again after d. Nothing is written: another owner would
// begin it at once.
func Later(d time.Duration) Outcome { return Outcome{verb: verbLater, after: max(0, d)} }

// Retry runs the job again after a pause that doubles from one second to five
// minutes, and writes down why. A job that fails too often becomes a dead
// letter (Handler.MaxTries).
func Retry(err error) Outcome { return Outcome{verb: verbRetry, after: -1, err: err} }

// RetryAfter is Retry with a pause of the handler's own.
func RetryAfter(d time.Duration, err error) Outcome {
	return Outcome{verb: verbRetry, after: max(0, d), err: err}
}

// Dead gives the job up. It stays as a dead letter, which an operator sees and
// can run again.
func Dead(err error) Outcome { return Outcome{verb: verbDead, err: err} }

// Pass gives the job to whichever node takes its kind (Handler.Takes), within
// about a second, or to the first that will. Its Memo is lost.
func Pass() Outcome { return Outcome{verb: verbPass} }

// Handler runs the jobs of one kind.
type Handler struct {
	Kind     string
	Workers  int // handlers of this kind that run at once on a node; default 8
	MaxTries int // failures after which a job becomes a dead letter; 0: never
	// Key sorts jobs into lines that take turns, so that a long line does not
	// hold up a short one. It is asked when a job comes and after each of its
	// runs, and must not block. nil: one line.
	Key func(Job) string
	// PerKey is how many jobs of one key may run at once, at least one. nil: as
	// many as there are workers. It is asked often and must not block.
	PerKey func(key string) int
	// Tenant says whose a job is. Tenants take turns within a line. It is asked
	// when a job comes and must not block. nil: all are one tenant's.
	Tenant func(Job) string
	// PerTurn is how many jobs of one tenant may run at once in the line of a key, one at least, so
	// that a tenant who has all of its places leaves some to who comes. nil: as PerKey. It is asked often
	// and must not block.
	PerTurn func(tenant, key string) int
	// Enter and Leave let the package of a handler give its workers away by rules of its own. Enter is asked for a place before
	// a job of a tenant begins in the line of a key; where it says no, the tenant's jobs there wait until Leave offers them.
	// Leave is called when such a job has ended, or has not begun after all, and offers who may enter now; offer says whether
	// a job can use the place at once. They are called one at a time and must not block. nil: there is always a place.
	Enter func(tenant, key string) bool
	Leave func(tenant, key string, offer func(tenant, key string) (begins bool))
	// Takes says whether this node can do such jobs at the moment, for work
	// that needs something only one node has (Hold). While it says no, jobs
	// that are added here are for another node and none are adopted. nil:
	// always. It is asked often and must not block.
	Takes func() bool
	// Left is told of each job that leaves this node's memory unfinished, because it
	// has no room or another epoch owns it: what the handler keeps beside it is of no
	// more use. It must not block. nil: there is none.
	Left func(Job)
	// Run does the work. ctx ends only when the node stops and the time for
	// stopping is over.
	Run func(ctx context.Context, job Job) Outcome
}

// Options shape a Queue. Zero values take the defaults named here.
type Options struct {
	Node      string        // name of this node among those on one database, without "/"
	Shared    bool          // another process may have the same name; else a lease that is left belongs to a process that is gone
	LeaseFor  time.Duration // silence after which others take the jobs of this node; default 9 s
	Heartbeat time.Duration // how often the lease is renewed; default 2 s
	MemoryMax int           // jobs in memory; default 100,000
}

// phase is where a queue is in its life.
type phase uint8

const (
	idle     phase = iota // not started: jobs are added for the nodes that run
	started               // runs jobs
	draining              // finishes what it has begun
	stopped
)

// Queue is this node's part of the queue. It is safe for concurrent use.
type Queue struct {
	db    *db.DB
	clock *clock.Clock
	log   *slog.Logger
	opts  Options
	lease *lease.Lease
	notes *groupcommit.Committer[note, struct{}]

	mu        sync.Mutex
	phase     phase
	memory    *scheduler.Scheduler[held]
	kinds     map[string]*kind
	owner     string    // of what is in memory; "" when this node has no lease
	peers     int       // other nodes that were alive at the last look
	looked    bool      // whether the dead were looked for since the epoch began
	lookedAt  time.Time // by the machine's clock
	strayLook time.Time
	spill     spill
	wakes     map[string]bool // subjects to wake on other nodes; true: heard of since it was last written
	timer     *clock.Timer
	timerAt   time.Duration
	counts    Counts
	watchers  []chan struct{} // Quiet

	lookEvery time.Duration // the constant, but in tests that look themselves
	keeping   sync.Mutex
	periodics map[string]time.Duration // by kind
	kick      chan struct{}            // the timer changed
	look      chan struct{}            // the keeper has something to do
	quit      chan struct{}            // closed when the loops shall end
	loops     sync.WaitGroup
	workers   sync.WaitGroup
	runCtx    context.Context // of the handlers
	stopRun   context.CancelFunc
}

// New makes a queue. Until Start it runs nothing, and the jobs that are added
// are for any node that does: that is what a command needs.
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
	q := &Queue{
		db: d, clock: c, log: log, opts: o, lookEvery: lookEvery,
		memory:    scheduler.New[held](),
		kinds:     map[string]*kind{},
		wakes:     map[string]bool{},
		periodics: map[string]time.Duration{},
		kick:      make(chan struct{}, 1),
		look:      make(chan struct{}, 1),
		quit:      make(chan struct{}),
	}
	q.lease = lease.New(d, log, lease.Options{Node: o.Node, Shared: o.Shared, For: o.LeaseFor, Heartbeat: o.Heartbeat},
		lease.Told{Taken: q.leaseTaken, Lost: q.leaseLost, Renewed: q.leaseRenewed})
	q.runCtx, q.stopRun = context.WithCancel(context.Background())
	q.notes = groupcommit.New(groupcommit.Options{Systemic: func(err error) bool { return errors.Is(err, db.ErrUnavailable) && !errors.Is(err, db.ErrAmbiguous) }}, q.writeNotes)
	return q
}

// Register says who runs a kind of job. It is called before Start.
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

// Start takes a lease and begins to run jobs. The jobs that an earlier run of
// this node left behind are adopted at once. ctx is for the start alone.
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
	go q.keepLoop()
	return nil
}

// Stop begins no more jobs, waits for those that run, and gives the lease back
// so that the others adopt what is left at once. When ctx is done first, the
// handlers are told to end and then waited for. Stopping twice does nothing.
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

// Node is the name of this node.
func (q *Queue) Node() string { return q.opts.Node }

// Epoch is the epoch of this node's lease, 0 without one. It only grows.
func (q *Queue) Epoch() int64 { return q.lease.Epoch() }

// Hold waits until this node alone holds name, across all nodes, and then runs fn, as Lease.Hold does.
func (q *Queue) Hold(ctx context.Context, name string, fn func(ctx context.Context)) error {
	return q.lease.Hold(ctx, name, fn)
}

// leaseTaken begins an epoch with an empty memory.
func (q *Queue) leaseTaken(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = owner
}

// leaseLost drops everything that belonged to the epoch.
func (q *Queue) leaseLost() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = ownerNobody
	q.dropLocked()
	q.spill = spill{}
	q.looked = false
	q.counts.LeasesLost++
}

// leaseRenewed begins what waited for the lease.
func (q *Queue) leaseRenewed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dispatchLocked()
}

// Add adds jobs in a transaction. They belong to this node, which runs them
// from memory as soon as the transaction is committed; added by a queue that
// does not run they are for the first node that looks.
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
			rows[i].owner = ownerNobody // another program's
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

// Finish ends jobs in a transaction, of any owner. The money is guarded by the state of its own
// rows, which the same transaction changes.
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

// Postpone writes in a transaction that jobs of this node failed once more and
// when they run again. It does nothing to a job that another owner adopted.
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

// Wake runs the jobs of a subject now, because something was heard about it.
// It is a hint: it costs nothing when this node has the job, else a row that
// its owner sees within a second. A job that is running runs once more.
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
	if (q.peers > 0 || q.spill.on) && len(q.wakes) < maxWakes {
		q.wakes[subject] = true
		q.nudge()
	}
}

// WakeIn is Wake in a transaction, for a process that runs no jobs, such as a command: the
// owners of the subjects' jobs see it within two seconds of the commit.
func (q *Queue) WakeIn(tx *db.Tx, subjects ...string) {
	if len(subjects) == 0 {
		return
	}
	slices.Sort(subjects)
	tx.Defer(sqlWake, -1, slices.Compact(subjects))
	tx.AfterCommit(func() {
		for _, s := range subjects {
			q.Wake(s)
		}
	})
}

// Quiet waits until nothing runs and nothing that may run is due. It is for
// tests and for the simulation, which then moves the clock to the next thing
// that happens.
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

// quietLocked is asked under the lock.
func (q *Queue) quietLocked() bool {
	if q.phase != started {
		return true
	}
	now, passed := q.clock.Reading()
	at, next := q.memory.Next()
	next = next && at <= passed
	spilled := q.spill.on && !q.spill.from.After(now)
	return q.looked && q.memory.Idle() && !next && !spilled && len(q.wakes) == 0
}

func (q *Queue) tellWatchersLocked() {
	for _, w := range q.watchers {
		close(w)
	}
	q.watchers = nil
}

// newID makes an id that grows with time, so that rows of one time lie together.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
