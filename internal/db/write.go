package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Tries of one transaction: conflicts are the engine's business and common,
// lost connections are not.
const (
	triesConflict = 12
	triesLost     = 3
)

const (
	// commitTime bounds the wait for SQLite's COMMIT, and that for PostgreSQL's is
	// that for an exchange. The caller's own deadline does not count there: giving
	// up on a COMMIT that is under way would only make a sure outcome an ambiguous
	// one.
	commitTime = 30 * time.Second
	// lookTime is how long the rows of a COMMIT without an answer are looked for: a
	// database that restarts is back by then.
	lookTime  = 15 * time.Second
	lookPause = 250 * time.Millisecond // between two looks, at most
)

type txKey struct{}

// Write runs fn in one transaction and commits. fn runs again when the engine
// reports a conflict (40001, 40P01, SQLITE_BUSY) or the connection is lost
// before COMMIT was sent, so it must not keep results of an earlier run. When
// the answer to COMMIT is lost the error is ErrAmbiguous.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.write(ctx, nil, fn)
}

// WriteRecognising is Write for a transaction that can recognise its own rows:
// when the answer to COMMIT is lost, landed asks in a new transaction whether
// they are there, and fn runs again only when they are not. fn must write the
// same rows (ids made before the first run) under a unique key, so that two
// runs can never both stay.
func (d *DB) WriteRecognising(ctx context.Context, landed func(*Tx) (bool, error), fn func(*Tx) error) error {
	return d.write(ctx, landed, fn)
}

func (d *DB) write(ctx context.Context, landed func(*Tx) (bool, error), fn func(*Tx) error) (err error) {
	if ctx.Value(txKey{}) != nil {
		return errors.New("db: a transaction inside a transaction")
	}
	p := purposeOf(ctx, modeWrite)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, p.limits().whole)
	defer cancel()
	m, conflicts, lost, doubts := modeWrite, 0, 0, 0
	if p.priority == priorityBulk {
		m = modeAlone // its outcome must not depend on other transactions
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
		case errors.Is(err, errAlone):
			m = modeAlone
		case errors.Is(err, errConflict):
			if conflicts++; conflicts >= triesConflict {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if err := pause(ctx, conflicts); err != nil {
				return err
			}
		case errors.Is(err, errLost):
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
func (d *DB) ask(ctx context.Context, p purpose, doubt error, landed func(*Tx) (bool, error)) (there bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.faults.lookTime())
	defer cancel()
	var unknown *unknownCommit
	waits := errors.As(doubt, &unknown) && unknown.busy != nil
	for try := 1; ; try++ {
		busy := false
		if waits {
			busy, err = unknown.busy(ctx)
			err = classify(err)
		}
		if err == nil && !busy {
			_, err = d.attempt(ctx, modeAlone, p, func(t *Tx) error {
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
		again := busy || errors.Is(err, errConflict) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAmbiguous)
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
	limit := min(time.Millisecond<<min(try, 10), lookPause)
	timer := time.NewTimer(limit/2 + rand.N(limit/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read runs fn on one connection without writing. On SQLite fn sees one
// snapshot; on PostgreSQL each statement sees what is committed when it starts
// (see ReadWhole).
func (d *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, modeRead, fn)
}

// ReadSnapshot runs fn on one snapshot on both engines, for a few look-ups that
// must agree with each other.
func (d *DB) ReadSnapshot(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, modeSnapshot, fn)
}

// ReadWhole runs fn on one snapshot of the whole database on both engines, for
// checks and statements whose sums must agree. Its statements may scan whole
// tables.
func (d *DB) ReadWhole(ctx context.Context, fn func(*Tx) error) error {
	return d.read(ctx, modeWhole, fn)
}

func (d *DB) read(ctx context.Context, m mode, fn func(*Tx) error) error {
	if ctx.Value(txKey{}) != nil {
		return errors.New("db: a transaction inside a transaction")
	}
	p := purposeOf(ctx, m)
	caller := ctx
	if m != modeWhole {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.limits().whole)
		defer cancel()
	}
	for try := 1; ; try++ {
		_, err := d.attempt(ctx, m, p, fn)
		if err == nil || !errors.Is(err, errLost) && !errors.Is(err, errConflict) {
			return overdue(caller, err)
		}
		if try >= triesLost {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if pauseErr := pause(ctx, try); pauseErr != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err) // a conflict alone is no problem that a transport knows
		}
		d.retried.Add(1)
	}
}

// overdue says that the database is away where the time of a transaction is over, and not its caller's.
func overdue(caller context.Context, err error) error {
	if err != nil && caller.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrAmbiguous) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// A leaving gives back what the gate gave, nil where it did not.
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
func (d *DB) session(ctx context.Context, m mode, p purpose) (s session, l leaving, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits().acquire)
	defer cancel()
	if d.engine == Postgres || !m.writes() {
		l.gate = d.gate
		if l.pass, err = d.gate.enter(ctx, p); err != nil {
			return nil, leaving{}, err
		}
	}
	if s, err = d.opener.session(ctx, m, p); err != nil {
		l.now()
		return nil, leaving{}, err
	}
	return s, l, nil
}

// attempt runs fn once. after is also set when the outcome is ambiguous.
func (d *DB) attempt(ctx context.Context, m mode, p purpose, fn func(*Tx) error) (after []func(), err error) {
	if d.closed.Load() {
		return nil, fmt.Errorf("%w: it is closed", ErrUnavailable)
	}
	begun := time.Now()
	s, leave, err := d.session(ctx, m, p)
	d.waited.Add(int64(time.Since(begun)))
	if err != nil {
		return nil, classify(err)
	}
	defer leave.now()
	d.running.Add(1)
	defer d.running.Add(-1)
	t := &Tx{db: d, session: s, readOnly: !m.writes(), commitTime: commitTime}
	if d.engine == Postgres {
		t.commitTime = p.limits().exchange
	}
	t.ctx = context.WithValue(ctx, txKey{}, true)
	defer func() {
		if !t.ended { // fn panicked, or failed
			t.ended = true
			if again := s.end(false); again != nil {
				after, err = nil, again
			}
		}
		callAll(t.always)
	}()
	if err := fn(t); err != nil {
		// fn may have wrapped or replaced what the engine said.
		if t.failed != nil && !errors.Is(err, t.failed) && (errors.Is(t.failed, errConflict) || errors.Is(t.failed, errLost)) {
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
		_ = t.session.end(true)
		if fault == FaultConflict {
			return fault.err()
		}
		return fmt.Errorf("%w: %w", ErrAmbiguous, fault.err())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.commitTime)
	defer cancel()
	err := t.session.commit(ctx, t.deferred)
	t.ended = true // a panic in it leaves the end to attempt
	if err == nil && fault == FaultAfter {
		_ = t.session.end(true)
		return fmt.Errorf("%w: %w", ErrAmbiguous, fault.err())
	}
	if again := t.session.end(errors.Is(err, errUnknownCommit)); again != nil {
		return again
	}
	if errors.Is(err, errUnknownCommit) {
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	}
	return classify(err)
}
