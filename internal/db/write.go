package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// Maximum attempts of one transaction. Conflicts are common on both engines, and lost connections are rare.
const (
	triesConflict = 12
	triesLost     = 3
)

// lookTime is how long the rows of an ambiguous COMMIT are looked for. A database that restarts is back within this
// time.
const lookTime = 15 * time.Second

// maxPause is the longest pause between two attempts, and between two checks for the rows of a COMMIT.
const maxPause = 250 * time.Millisecond

type txKey struct{}

// Write runs fn in one transaction and commits. fn runs again after a conflict (40001, 40P01, SQLITE_BUSY), and after
// the connection was lost before COMMIT was sent. fn must therefore not keep results of an earlier run. If the
// response to COMMIT is lost, Write returns ErrAmbiguous.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.write(ctx, nil, fn)
}

// WriteRecognising is Write for a transaction that can recognise its own rows. If the response to COMMIT is lost,
// landed checks in a new transaction whether the rows exist. fn runs again only if they do not exist. fn must write
// the same rows under a unique key in each run, with ids made before the first run. Then two runs can never both be
// committed.
func (d *DB) WriteRecognising(ctx context.Context, landed func(*Tx) (bool, error), fn func(*Tx) error) error {
	return d.write(ctx, landed, fn)
}

func (d *DB) write(ctx context.Context, landed func(*Tx) (bool, error), fn func(*Tx) error) (err error) {
	if ctx.Value(txKey{}) != nil {
		return errors.New("db: nested transaction")
	}
	p := purposeOf(ctx, engine.ModeWrite)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, p.Limits().Whole)
	defer cancel()
	m, conflicts, lost, doubts := engine.ModeWrite, 0, 0, 0
	if p.Priority == engine.PriorityBulk {
		m = engine.ModeAlone // the outcome of bulk work must not depend on other transactions
	}
	defer func() {
		err = overdue(caller, err)
		// The search found no rows. This proves nothing if we could not find out whether the server has
		// finished the COMMIT.
		if doubts > 0 && errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrAmbiguous) {
			err = fmt.Errorf("%w: %w", ErrAmbiguous, err)
		}
	}()
	var doubted []func() // AfterCommit functions of the last run with an ambiguous COMMIT
	for {
		after, err := d.attempt(ctx, m, p, fn)
		if err == nil {
			callAll(after)
			return nil
		}
		d.disk.note(err)
		if errors.Is(err, ErrAmbiguous) {
			doubted = after
		}
		switch {
		// After an ambiguous COMMIT, an existing key or a changed row may be the effect of our own earlier run.
		case errors.Is(err, ErrAmbiguous), doubts > 0 && (errors.Is(err, ErrUnique) || errors.Is(err, ErrGuard)):
			if landed == nil {
				return err
			}
			if doubts++; doubts > triesLost {
				return err
			}
			there, lookErr := d.ask(ctx, p, err, landed)
			if lookErr != nil {
				return fmt.Errorf("%w: the search for its rows failed: %w", ErrAmbiguous, errors.Join(err, lookErr))
			}
			if there {
				callAll(doubted)
				return nil
			}
			if !errors.Is(err, ErrAmbiguous) {
				return err // the key belongs to another transaction
			}
		case errors.Is(err, engine.ErrAlone):
			m = engine.ModeAlone
		case errors.Is(err, engine.ErrConflict):
			if conflicts++; conflicts >= triesConflict {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if err := pause(ctx, conflicts); err != nil {
				return err
			}
		case errors.Is(err, engine.ErrLost):
			if lost++; lost >= triesLost {
				return err
			}
			if err := pause(ctx, lost+2); err != nil {
				return err
			}
		default:
			return err
		}
		d.retried.Add(1)
	}
}

func callAll(fns []func()) {
	for _, fn := range fns {
		fn()
	}
}

const sqlBehind = `SELECT number FROM schema_migrations ORDER BY number LIMIT 1 FOR UPDATE`

// ask runs landed in a new transaction after the server has finished the ambiguous COMMIT. Before that, missing rows
// would prove nothing.
func (d *DB) ask(ctx context.Context, p engine.Purpose, doubt error, landed func(*Tx) (bool, error)) (there bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	var unknown *engine.UnknownCommit
	waits := errors.As(doubt, &unknown) && unknown.Busy != nil
	for try, lost := 1, 0; ; try++ {
		busy := false
		if waits {
			busy, err = unknown.Busy(ctx)
			err = d.opener.Classify(err)
		}
		if err == nil && !busy {
			_, err = d.attempt(ctx, engine.ModeAlone, p, func(t *Tx) error {
				if there, err = landed(t); err != nil || !there || d.engine == SQLite {
					return err
				}
				// The server may have stopped waiting for a standby when the connection broke. The rows are then
				// visible, but not safe on the standby. This lock is logged after the rows, and its own COMMIT waits
				// for the standby.
				_, err := t.Exec(sqlBehind)
				return err
			})
			if err == nil {
				return there, nil
			}
		}
		// The check writes nothing, so it can be repeated. Only if all checks fail does the caller get
		// ErrAmbiguous.
		again := busy || errors.Is(err, engine.ErrConflict) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAmbiguous)
		if err != nil {
			lost++
		}
		if !again || d.closed.Load() || d.faults.endsLook(lost) {
			return false, err
		}
		if pauseErr := pause(ctx, try+2); pauseErr != nil {
			return false, errors.Join(err, pauseErr)
		}
		err = nil
	}
}

// pause waits longer with each attempt. The jitter keeps two transactions that collided from colliding again.
func pause(ctx context.Context, try int) error {
	limit := min(time.Millisecond<<min(try, 10), maxPause)
	timer := time.NewTimer(limit/2 + rand.N(limit/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read runs fn on one connection without writing. On SQLite fn sees one snapshot. On PostgreSQL each statement sees
// the rows that are committed when it starts (see ReadWhole).
func (d *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, engine.ModeRead, fn)
}

// ReadSnapshot runs fn on one snapshot on both engines. It is for a few lookups that must agree with each other.
func (d *DB) ReadSnapshot(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, engine.ModeSnapshot, fn)
}

// ReadWhole runs fn on one snapshot of the whole database on both engines. It is for checks and statements of
// account, whose sums must agree. Its statements may scan whole tables.
func (d *DB) ReadWhole(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, engine.ModeWhole, fn)
}

func (d *DB) read(ctx context.Context, m engine.Mode, fn func(*Tx) error) error {
	if ctx.Value(txKey{}) != nil {
		return errors.New("db: nested transaction")
	}
	p := purposeOf(ctx, m)
	caller := ctx
	if m != engine.ModeWhole {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Limits().Whole)
		defer cancel()
	}
	for try := 1; ; try++ {
		_, err := d.attempt(ctx, m, p, fn)
		if err == nil || !errors.Is(err, engine.ErrLost) && !errors.Is(err, engine.ErrConflict) {
			return overdue(caller, err)
		}
		if try >= triesLost {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if pauseErr := pause(ctx, try); pauseErr != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err) // callers have no status for a conflict, so the database is reported as unavailable
		}
		d.retried.Add(1)
	}
}

// overdue reports the database as unavailable if the time limit of the transaction expired before the caller's
// context did.
func overdue(caller context.Context, err error) error {
	if err != nil && caller.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrAmbiguous) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// leaving gives a transaction's right to a connection back to the gate. gate is nil if the transaction needed no
// right.
type leaving struct {
	gate *gate
	pass pass
}

func (l leaving) now() {
	if l.gate != nil {
		l.gate.leave(l.pass)
	}
}

// session waits for a connection, for as long as the limits of its purpose allow.
func (d *DB) session(ctx context.Context, m engine.Mode, p engine.Purpose) (s engine.Session, l leaving, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Limits().Acquire)
	defer cancel()
	if d.engine == Postgres || !m.Writes() {
		l.gate = d.gate
		if l.pass, err = d.gate.enter(ctx, p); err != nil {
			return nil, leaving{}, err
		}
	}
	if s, err = d.opener.Session(ctx, m, p); err != nil {
		l.now()
		return nil, leaving{}, err
	}
	return s, l, nil
}

// attempt runs fn once. after has the AfterCommit functions, also if the outcome is ambiguous.
func (d *DB) attempt(ctx context.Context, m engine.Mode, p engine.Purpose, fn func(*Tx) error) (after []func(), err error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("%w: the database is closed", ErrUnavailable)
	}
	begun := time.Now()
	s, leave, err := d.session(ctx, m, p)
	d.waited.Add(int64(time.Since(begun)))
	if err != nil {
		return nil, d.opener.Classify(err)
	}
	defer leave.now()
	d.running.Add(1)
	defer d.running.Add(-1)
	t := &Tx{db: d, session: s, readOnly: !m.Writes(), commitTime: engine.CommitTime}
	if d.engine == Postgres {
		t.commitTime = p.Limits().Exchange
	}
	t.ctx = context.WithValue(ctx, txKey{}, true)
	defer func() {
		if !t.ended { // fn has panicked or failed
			t.ended = true
			if again := s.End(false); again != nil {
				after, err = nil, again
			}
		}
		callAll(t.always)
	}()
	if err := fn(t); err != nil {
		// fn may have wrapped or replaced the engine's error, which decides whether the transaction runs again.
		if t.failed != nil && !errors.Is(err, t.failed) && (errors.Is(t.failed, engine.ErrConflict) || errors.Is(t.failed, engine.ErrLost)) {
			err = t.failed
		}
		return nil, err
	}
	if t.failed != nil {
		return nil, t.failed
	}
	if t.readOnly {
		return nil, nil
	}
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	err = d.commit(t)
	return t.after, err
}

// commit sends the deferred writes and COMMIT.
func (d *DB) commit(t *Tx) error {
	fault := d.faults.next(BoundaryCommit)
	if fault == FaultBefore || fault == FaultConflict {
		t.ended = true
		_ = t.session.End(true)
		if fault == FaultConflict {
			return fault.err()
		}
		return fmt.Errorf("%w: %w", ErrAmbiguous, fault.err())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.commitTime)
	defer cancel()
	err := t.session.Commit(ctx, t.deferred)
	t.ended = true // set after Commit, so that after a panic in Commit attempt ends the session
	if err == nil && fault == FaultAfter {
		_ = t.session.End(true)
		return fmt.Errorf("%w: %w", ErrAmbiguous, fault.err())
	}
	if again := t.session.End(errors.Is(err, engine.ErrUnknownCommit)); again != nil {
		return again
	}
	if errors.Is(err, engine.ErrUnknownCommit) {
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	}
	return d.opener.Classify(err)
}
