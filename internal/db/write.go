package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// Tries of one transaction: conflicts are the engine's business and common,
// lost connections are not.
const (
	triesConflict = 12
	triesLost     = 3
)

// maxPause is the longest time between two tries, and between two checks for the rows of a COMMIT.
const maxPause = 250 * time.Millisecond

type txKey struct{}

// Write runs fn in one transaction and commits. fn runs again after a conflict (40001, 40P01, SQLITE_BUSY), or when
// the connection is lost before COMMIT was sent. So fn must not keep results of an earlier run. When the response to
// COMMIT is lost, Write returns ErrAmbiguous.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.write(ctx, nil, fn)
}

// WriteRecognising is Write for a transaction that can recognise its own rows. When the response to COMMIT is lost,
// landed checks in a new transaction whether the rows exist. fn runs again only if they do not. fn must write the
// same rows (with ids made before the first run) under a unique key, so that two runs can never both stay.
func (d *DB) WriteRecognising(ctx context.Context, landed func(*Tx) (bool, error), fn func(*Tx) error) error {
	return d.write(ctx, landed, fn)
}

func (d *DB) write(ctx context.Context, landed func(*Tx) (bool, error), fn func(*Tx) error) (err error) {
	if ctx.Value(txKey{}) != nil {
		return errors.New("db: a transaction inside a transaction")
	}
	p := purposeOf(ctx, engine.ModeWrite)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, p.Limits().Whole)
	defer cancel()
	m, conflicts, lost, doubts := engine.ModeWrite, 0, 0, 0
	if p.Priority == engine.PriorityBulk {
		m = engine.ModeAlone // its outcome must not depend on other transactions
	}
	defer func() {
		err = overdue(caller, err)
		// "Not there" was no proof where we could not ask whether the server is done.
		if doubts > 0 && errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrAmbiguous) {
			err = fmt.Errorf("%w: %w", ErrAmbiguous, err)
		}
	}()
	var doubted []func() // AfterCommit of the last run whose COMMIT is in doubt
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
		// After a doubt a key that is taken or a row that has moved on may be our
		// own doing, seen late.
		case errors.Is(err, ErrAmbiguous), doubts > 0 && (errors.Is(err, ErrUnique) || errors.Is(err, ErrGuard)):
			if landed == nil {
				return err
			}
			if doubts++; doubts > triesLost {
				return err
			}
			there, lookErr := d.ask(ctx, p, err, landed)
			if lookErr != nil {
				return fmt.Errorf("%w: the look for its rows failed: %w", ErrAmbiguous, errors.Join(err, lookErr))
			}
			if there {
				callAll(doubted)
				return nil
			}
			if !errors.Is(err, ErrAmbiguous) {
				return err // another transaction has the key
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

// ask runs landed in a new transaction, once the server is done with the one in
// doubt: until then "not there" means nothing.
func (d *DB) ask(ctx context.Context, p engine.Purpose, doubt error, landed func(*Tx) (bool, error)) (there bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.faults.lookTime())
	defer cancel()
	var unknown *engine.UnknownCommit
	waits := errors.As(doubt, &unknown) && unknown.Busy != nil
	for try := 1; ; try++ {
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
				// A wait for a standby may have ended with the line, so that the
				// rows are seen and not yet safe. This lock is written down behind
				// them, and its own commit waits for the standby.
				_, err := t.Exec(sqlBehind)
				return err
			})
			if err == nil {
				return there, nil
			}
		}
		// Asking writes nothing, so that asking again is always right. While it is
		// asked, no caller needs to learn that the outcome was unknown.
		again := busy || errors.Is(err, engine.ErrConflict) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAmbiguous)
		if !again || d.closed.Load() {
			return false, err
		}
		if pauseErr := pause(ctx, try+2); pauseErr != nil {
			return false, errors.Join(err, pauseErr)
		}
		err = nil
	}
}

// pause waits a little longer with each try, with jitter, so that two that
// collided do not collide again.
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

// ReadSnapshot runs fn on one snapshot on both engines, for a few look-ups that
// must agree with each other.
func (d *DB) ReadSnapshot(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, engine.ModeSnapshot, fn)
}

// ReadWhole runs fn on one snapshot of the whole database on both engines, for
// checks and statements whose sums must agree. Its statements may scan whole
// tables.
func (d *DB) ReadWhole(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, engine.ModeWhole, fn)
}

func (d *DB) read(ctx context.Context, m engine.Mode, fn func(*Tx) error) error {
	if ctx.Value(txKey{}) != nil {
		return errors.New("db: a transaction inside a transaction")
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
			return fmt.Errorf("%w: %w", ErrUnavailable, err) // transports have no status for a conflict, so it is reported as unavailable
		}
		d.retried.Add(1)
	}
}

// overdue reports the database as unavailable when the time limit of a transaction expired and the caller's context
// did not.
func overdue(caller context.Context, err error) error {
	if err != nil && caller.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrAmbiguous) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// leaving returns the right to a connection to the gate. It is nil where the gate gave none.
type leaving struct {
	gate *gate
	pass pass
}

func (l leaving) now() {
	if l.gate != nil {
		l.gate.leave(l.pass)
	}
}

// session waits for a connection, as long as its purpose is worth.
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

// attempt runs fn once. after is also set when the outcome is ambiguous.
func (d *DB) attempt(ctx context.Context, m engine.Mode, p engine.Purpose, fn func(*Tx) error) (after []func(), err error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("%w: it is closed", ErrUnavailable)
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
		if !t.ended { // fn panicked, or failed
			t.ended = true
			if again := s.End(false); again != nil {
				after, err = nil, again
			}
		}
		callAll(t.always)
	}()
	if err := fn(t); err != nil {
		// fn may have wrapped or replaced the error of the engine.
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
	t.ended = true // a panic in it leaves the end to attempt
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
