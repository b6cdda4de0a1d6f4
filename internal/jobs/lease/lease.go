// Package lease keeps the right of a node to its jobs, and named leases that one node has at a time.
//
// A lease is alive while expires_at is in the future by the database's clock. A guarded UPDATE marks a lapsed lease
// as dead for good (expires_at 0). Either this UPDATE or a concurrent heartbeat succeeds, never both. Only after
// the UPDATE do other nodes take the lease's jobs and named leases. So a dead epoch never becomes alive again.
//
// Files:
//
//	hold.go    named leases, which one node has at a time
//	lease.go   the lease of a node: taken, renewed by a heartbeat, lost, released; dead ones buried
//	rows.go    the leases of all nodes, for callers that have none: which are alive, which are older, the end of all
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Options configure a Lease. All fields except Shared are required.
type Options struct {
	Node      string        // name of this node among those on one database
	Shared    bool          // another process may have the same name; otherwise a remaining lease belongs to an ended process
	For       time.Duration // time without a heartbeat after which other nodes take the jobs of this node
	Heartbeat time.Duration // how often the lease is renewed
}

// Callbacks are the calls to the owner of a Lease. The Lease calls them while it is not locked.
type Callbacks struct {
	Acquired func(owner string) // a new epoch has begun
	Lost     func()             // the epoch is over: its jobs belong to other nodes
	Renewed  func()             // a heartbeat succeeded, including one that began a new epoch
}

// Lease is the lease of this node. It is safe for concurrent use.
type Lease struct {
	db   *db.DB
	log  *slog.Logger
	opts Options
	call Callbacks

	mu       sync.Mutex
	owner    string // "" without a lease
	epoch    int64
	beatAt   time.Time       // when the last successful heartbeat was sent, by the machine's clock
	beats    chan struct{}   // closed at each heartbeat
	held     map[string]bool // named leases that this node has or waits for
	freeHold context.Context // ends when the named leases of this epoch end
	dropHold context.CancelFunc
	holds    sync.WaitGroup
	drained  chan struct{} // closed by Drain
}

// New returns a lease that is not acquired yet.
func New(d *db.DB, log *slog.Logger, o Options, call Callbacks) *Lease {
	l := &Lease{
		db: d, log: log, opts: o, call: call,
		beats: make(chan struct{}), held: map[string]bool{}, drained: make(chan struct{}),
	}
	l.freeHold, l.dropHold = context.WithCancel(context.Background())
	l.dropHold()
	return l
}

// Epoch returns the epoch of this node's lease, or 0 before the first lease. It never decreases.
func (l *Lease) Epoch() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// current returns the owner of the jobs that this node may run.
func (l *Lease) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner
}

// Lasts reports whether this node may begin a job. Its last heartbeat must be younger than two thirds of the lease.
// The age is measured by the monotonic clock and by the wall clock, and the larger value counts. One of the clocks
// stops while the machine sleeps.
func (l *Lease) Lasts() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastsLocked()
}

func (l *Lease) lastsLocked() bool {
	if l.owner == "" {
		return false
	}
	now := time.Now()
	age := max(now.Sub(l.beatAt), now.Round(0).Sub(l.beatAt.Round(0)))
	return age < l.holdFor()
}

func (l *Lease) holdFor() time.Duration { return l.opts.For * 2 / 3 }

// Begin acquires the first lease of this process.
func (l *Lease) Begin(ctx context.Context) error {
	if !l.opts.Shared {
		return l.take(ctx, true)
	}
	return l.takeName(ctx)
}

const (
	sqlLastEpoch = `SELECT now_micros(), coalesce(max(epoch), 0) FROM job_leases WHERE node = $1`
	sqlLease     = `INSERT INTO job_leases (owner, node, epoch, expires_at, level) VALUES ($1, $2, $3, now_micros() + $4, $5)`
	sqlRetire    = `UPDATE job_leases SET expires_at = 0 WHERE node = $1 AND owner <> $2 AND expires_at > 0`
	sqlNamesake  = `SELECT expires_at, expires_at - now_micros() FROM job_leases
		WHERE node = $1 AND owner <> $2 AND expires_at > now_micros() ORDER BY expires_at DESC LIMIT 1`
	sqlRenew   = `UPDATE job_leases SET expires_at = now_micros() + $2 WHERE owner = $1 AND expires_at > now_micros()`
	sqlRelease = `UPDATE job_leases SET expires_at = 0 WHERE owner = $1`
)

// take begins a new epoch. When the program starts, it also ends the earlier epochs of the same node, because their
// process has ended. It does not do so for a shared name, because another process may be using that.
func (l *Lease) take(ctx context.Context, first bool) error {
	var owner string
	var epoch int64
	var sent time.Time
	err := l.db.Write(db.System(ctx), func(tx *db.Tx) error {
		sent = time.Now()
		var now, last int64
		if _, err := tx.One(sqlLastEpoch, []any{l.opts.Node}, &now, &last); err != nil {
			return err
		}
		epoch = max(now, last+1)
		owner = l.opts.Node + "/" + strconv.FormatInt(epoch, 10)
		tx.Defer(sqlLease, 1, owner, l.opts.Node, epoch, l.opts.For.Microseconds(), level)
		if first && !l.opts.Shared {
			tx.Defer(sqlRetire, -1, l.opts.Node, owner)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.owner, l.epoch, l.beatAt = owner, epoch, sent
	l.freeHold, l.dropHold = context.WithCancel(context.Background())
	if l.isDrained() {
		l.dropHold()
	}
	l.mu.Unlock()
	l.call.Acquired(owner)
	return nil
}

// takeName acquires the first lease under a name that another process may have. If two processes start at once, both
// may be refused, because each may see the other.
func (l *Lease) takeName(ctx context.Context) error {
	if err := l.awaitName(ctx); err != nil {
		return err
	}
	if err := l.take(ctx, true); err != nil {
		return err
	}
	var expires int64
	err := l.db.Read(ctx, func(tx *db.Tx) (err error) {
		expires, _, err = l.namesake(tx, l.current())
		return err
	})
	if err == nil && expires > 0 {
		err = l.nameTaken()
	}
	if err != nil {
		return errors.Join(err, l.end(context.WithoutCancel(ctx), l.current()))
	}
	return nil
}

// awaitName waits until no other process has a lease with this node's name. The lease of a killed process lapses. A
// lease that is renewed belongs to a running node, and awaitName then returns an error.
func (l *Lease) awaitName(ctx context.Context) error {
	if err := l.db.Write(db.System(ctx), func(tx *db.Tx) error {
		tx.Defer(sqlCap, -1, l.longest())
		return nil
	}); err != nil {
		return err
	}
	for before := int64(0); ; {
		var expires int64
		var left time.Duration
		if err := l.db.Read(ctx, func(tx *db.Tx) (err error) {
			expires, left, err = l.namesake(tx, "")
			return err
		}); err != nil || expires == 0 {
			return err
		}
		if before != 0 && expires > before {
			return l.nameTaken()
		}
		if before == 0 {
			l.log.Info("waiting for node lease of previous process to expire", "node", l.opts.Node, "at_most", left)
		}
		before = expires
		wait := time.NewTimer(min(left, l.opts.Heartbeat))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
}

// namesake returns when the lease of another process under this node's name expires, and how much time is left.
// expires is 0 if there is no such lease.
func (l *Lease) namesake(tx *db.Tx, owner string) (expires int64, left time.Duration, err error) {
	var micros int64
	_, err = tx.One(sqlNamesake, []any{l.opts.Node, owner}, &expires, &micros)
	return expires, time.Duration(micros) * time.Microsecond, err
}

func (l *Lease) nameTaken() error {
	return problem.New(problem.InProgress, "node_name_taken", "A node that is called "+l.opts.Node+" runs on this database: give this one another name")
}

// Keep renews the lease until quit is closed. It uses the machine's clock, so that a simulated hour does not cost a
// node its lease. It calls renewed after each successful heartbeat.
func (l *Lease) Keep(quit <-chan struct{}, renewed func()) {
	tick := time.NewTicker(l.opts.Heartbeat)
	defer tick.Stop()
	// The watchdog ends the named leases before another node can acquire them.
	l.mu.Lock()
	watchdog := time.AfterFunc(l.holdFor()-time.Since(l.beatAt), l.dropHolds)
	l.mu.Unlock()
	defer watchdog.Stop()
	healthy := true
	for {
		select {
		case <-tick.C:
		case <-quit:
			return
		}
		l.mu.Lock()
		if !l.lastsLocked() { // the machine may have slept, and the watchdog with it
			l.dropHold()
		}
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), l.opts.For)
		sent := time.Now()
		err := l.Beat(ctx)
		cancel()
		switch {
		case err != nil && healthy:
			l.log.Error("heartbeat failed, no job starts until it recovers", "node", l.opts.Node, "error", err)
		case err == nil && !healthy:
			l.log.Info("heartbeat recovered", "node", l.opts.Node)
		}
		if healthy = err == nil; healthy {
			watchdog.Reset(l.holdFor() - time.Since(sent))
			renewed()
		}
	}
}

// Beat renews the lease. If the lease was lost, Beat begins a new epoch.
func (l *Lease) Beat(ctx context.Context) error {
	owner := l.current()
	var sent time.Time
	var renewed int64
	if owner != "" {
		err := l.db.Write(db.System(ctx), func(tx *db.Tx) (err error) {
			sent = time.Now()
			renewed, err = tx.Exec(sqlRenew, owner, l.opts.For.Microseconds())
			return err
		})
		// If the COMMIT is ambiguous, the lease may have been renewed. The next heartbeat shows that.
		if err != nil {
			return err
		}
	}
	if renewed == 0 {
		if owner != "" {
			l.log.Warn("node lease lost, continuing under new epoch", "node", l.opts.Node)
			l.lose()
		}
		if err := l.take(ctx, false); err != nil {
			return fmt.Errorf("take a new lease: %w", err)
		}
	}
	l.mu.Lock()
	if renewed > 0 {
		l.beatAt = sent
		if l.freeHold.Err() != nil && !l.isDrained() { // the watchdog fired before this heartbeat succeeded
			l.freeHold, l.dropHold = context.WithCancel(context.Background())
		}
	}
	close(l.beats)
	l.beats = make(chan struct{})
	l.mu.Unlock()
	l.call.Renewed()
	return nil
}

// lose ends this node's use of an epoch that the database has ended.
func (l *Lease) lose() {
	l.mu.Lock()
	l.owner = ""
	l.dropHold()
	l.mu.Unlock()
	l.call.Lost()
}

const (
	sqlLeases = `SELECT owner, CASE WHEN expires_at <= now_micros() THEN 1 ELSE 0 END, CASE WHEN expires_at > now_micros() + $1 THEN 1 ELSE 0 END
		FROM job_leases WHERE expires_at > 0`
	sqlExpire    = `UPDATE job_leases SET expires_at = 0 WHERE expires_at > 0 AND expires_at <= now_micros()`
	sqlPruneDead = `DELETE FROM job_leases WHERE expires_at = 0 AND epoch < now_micros() - $1`
	// sqlCap shortens leases that last longer than any node asks for. The database's clock was set back after such
	// a lease was made. If its node is dead, its jobs would wait for the lease. A living node renews its lease long
	// before the shortened one lapses.
	sqlCap = `UPDATE job_leases SET expires_at = now_micros() + $1 WHERE expires_at > now_micros() + $1`
)

// kept is how long the row of a dead lease is kept for operators, counted from the lease's start. A lease without
// a row is dead, too.
const kept = 7 * 24 * time.Hour

// longest returns the maximum duration of a lease in microseconds. It leaves room for nodes that are configured with
// longer leases.
func (l *Lease) longest() int64 { return 2 * l.opts.For.Microseconds() }

// Look returns the query for leases that are not dead. It calls each with the owner, whether the lease is alive, and
// whether Expire must change it.
func (l *Lease) Look(each func(owner string, alive, lapsed bool)) db.Query {
	return db.Query{SQL: sqlLeases, Args: []any{l.longest()}, Each: func(r *db.Row) error {
		var owner string
		var over, far bool
		err := r.Scan(&owner, &over, &far)
		each(owner, !over, over || far)
		return err
	}}
}

// Expire marks lapsed leases as dead, shortens leases that last too long, and deletes old rows.
func (l *Lease) Expire(tx *db.Tx) {
	tx.Defer(sqlExpire, -1)
	tx.Defer(sqlCap, -1, l.longest())
	tx.Defer(sqlPruneDead, -1, kept.Microseconds())
}

// Release ends the lease, so that other nodes need not wait until it lapses.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	owner := l.owner
	l.owner = ""
	l.mu.Unlock()
	return l.end(ctx, owner)
}

func (l *Lease) end(ctx context.Context, owner string) error {
	if owner == "" {
		return nil
	}
	err := l.db.Write(db.System(ctx), func(tx *db.Tx) error {
		tx.Defer(sqlRelease, -1, owner)
		return nil
	})
	if err != nil {
		return fmt.Errorf("jobs: release the lease of %s: %w", owner, err)
	}
	return nil
}

// Drain ends the named leases of this node and allows no new ones. Wait waits until they have ended.
func (l *Lease) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.drained)
	l.dropHold()
}

// Wait waits until this node has no named lease.
func (l *Lease) Wait() { l.holds.Wait() }

func (l *Lease) isDrained() bool {
	select {
	case <-l.drained:
		return true
	default:
		return false
	}
}

func (l *Lease) dropHolds() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropHold()
}
