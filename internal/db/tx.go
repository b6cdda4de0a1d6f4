package db

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// Tx is one transaction, or one reading session. It must be used by one goroutine, and only inside the function that
// received it.
type Tx struct {
	ctx      context.Context
	db       *DB
	session  engine.Session
	readOnly bool
	ended    bool
	reading  bool // a callback of Query is running
	// commitTime is the maximum wait for the response to COMMIT.
	commitTime time.Duration
	failed     error
	deferred   []*engine.Statement
	after      []func()
	always     []func()
}

// Query is one reading statement for Gather.
type Query struct {
	SQL  string
	Args []any
	Each func(*Row) error // called once for each row
}

// Row is the current row of a reading statement.
type Row = engine.Row

// Context returns the context of the transaction. Opening another transaction with it is an error, because each
// request must use only one connection.
func (t *Tx) Context() context.Context { return t.ctx }

// Engine returns the kind of database of the transaction.
func (t *Tx) Engine() Engine { return t.db.engine }

// Exec sends one writing statement at once and returns the number of affected rows. Statements that were deferred
// earlier are still sent later, at the end.
func (t *Tx) Exec(sql string, args ...any) (int64, error) {
	if t.readOnly {
		return 0, errors.New("db: a reading transaction cannot write")
	}
	s, err := t.statement(sql, args)
	if err != nil {
		return 0, err
	}
	if err := t.exchange([]*engine.Statement{s}); err != nil {
		return 0, err
	}
	return s.Rows, nil
}

// Query sends one reading statement and calls each for every row. each must not send other statements.
func (t *Tx) Query(sql string, args []any, each func(*Row) error) error {
	s, err := t.statement(sql, args)
	if err != nil {
		return err
	}
	s.Each = each
	return t.exchange([]*engine.Statement{s})
}

// One sends one reading statement and scans its first row into dest. found is false if there is no row.
func (t *Tx) One(sql string, args []any, dest ...any) (found bool, err error) {
	err = t.Query(sql, args, func(r *Row) error {
		if found {
			return nil
		}
		found = true
		return r.Scan(dest...)
	})
	return found && err == nil, err
}

// Texts sends one reading statement and returns its only column.
func (t *Tx) Texts(sql string, args ...any) ([]string, error) {
	return All(t, sql, args, func(text *string, r *Row) error { return r.Scan(text) })
}

// Gather sends several reading statements and calls their Each functions in order. On PostgreSQL they are sent in one
// round trip.
func (t *Tx) Gather(queries ...Query) error {
	statements := make([]*engine.Statement, 0, len(queries))
	for _, q := range queries {
		s, err := t.statement(q.SQL, q.Args)
		if err != nil {
			return err
		}
		s.Each = q.Each
		if s.Each == nil {
			s.Each = func(*Row) error { return nil }
		}
		statements = append(statements, s)
	}
	if len(statements) == 0 {
		return nil
	}
	return t.exchange(statements)
}

// Defer stores a writing statement for the end of the transaction. All deferred statements are sent in order, in one
// round trip with COMMIT. If want >= 0, the statement must affect exactly want rows; otherwise the whole transaction
// fails with ErrGuard. Such a statement must not have a RETURNING clause.
func (t *Tx) Defer(sql string, want int64, args ...any) {
	s, err := t.db.opener.Translate(sql, want, args)
	if err != nil {
		t.fail(err) // reported at the end of the transaction
		return
	}
	t.deferred = append(t.deferred, s)
}

// insert defers the writes of a set of rows.
func (t *Tx) insert(into string, set engine.Rows) {
	statements, err := t.db.opener.Insert(into, set)
	if err != nil {
		t.fail(err)
		return
	}
	t.deferred = append(t.deferred, statements...)
}

// Flush sends the deferred statements now, for a transaction that must read its own writes.
func (t *Tx) Flush() error {
	if len(t.deferred) == 0 {
		return nil
	}
	statements := t.deferred
	t.deferred = nil
	return t.exchange(statements)
}

// AfterCommit makes Write call fn after the transaction is committed and before Write returns.
func (t *Tx) AfterCommit(fn func()) { t.after = append(t.after, fn) }

// AtEnd calls fn when this run of the transaction ends, with any outcome. Callers use it to return resources that the
// run borrowed.
func (t *Tx) AtEnd(fn func()) { t.always = append(t.always, fn) }

// ForUpdate returns the end of a SELECT that locks its rows for the rest of the transaction. The SQL text may also
// contain FOR UPDATE itself. On SQLite the words are removed, because the only writer has locked everything.
func (t *Tx) ForUpdate() string { return " FOR UPDATE" }

// statement translates an SQL text and its arguments for the engine.
func (t *Tx) statement(sql string, args []any) (*engine.Statement, error) {
	if t.ended {
		return nil, errors.New("db: the transaction has ended")
	}
	return t.db.opener.Translate(sql, -1, args)
}

// exchange sends statements now.
func (t *Tx) exchange(statements []*engine.Statement) error {
	if t.ended {
		return errors.New("db: the transaction has ended")
	}
	if t.reading {
		return errors.New("db: a statement was sent while the rows of another statement were open")
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	if fault := t.db.faults.next(BoundaryExchange); fault != FaultNone {
		_ = t.session.End(true)
		t.ended = true
		t.fail(fault.err())
		return t.failed
	}
	t.reading = true
	err := t.db.opener.Classify(t.session.Run(t.ctx, statements))
	t.reading = false
	t.fail(err)
	return err
}

// fail makes the transaction fail. After a failed statement, nothing of the transaction can be committed on either
// engine.
func (t *Tx) fail(err error) {
	if err != nil && t.failed == nil {
		t.failed = err
	}
}
