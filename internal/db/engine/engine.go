// Package engine is the ground under db and its two engines: the session that SQLite and PostgreSQL both give, the statements that
// it runs, the arguments and sets of rows that these take, and the classes of errors.
//
// Files:
//
//	engine.go               an engine and its session
//	statement.go            statements, their rows, and times as the tables store them
//	words.go                the words of statements that each engine spells in its own way, and arguments
//	set.go                  sets of rows
//	priority.go             transactions are money, system or bulk; how long each may take
//	errors.go               classes of errors
package engine

import (
	"context"
	"time"
)

// Opener opens sessions of one engine, and knows how that engine spells statements and reports errors.
type Opener interface {
	// Session returns a connection, once the gate has let the caller in. A writing
	// session is the only one on SQLite, whose line it waits in.
	Session(ctx context.Context, mode Mode, p Purpose) (Session, error)
	// Translate spells a statement for the engine. With want >= 0 the statement fails with ErrGuard unless it affects exactly
	// that many rows.
	Translate(sql string, want int64, args []any) (*Statement, error)
	// Insert returns the statements that write a set of rows into a table in the engine's fastest way.
	Insert(into string, set Rows) ([]*Statement, error)
	// Classify wraps an error of the driver so that errors.Is knows its class.
	Classify(err error) error
	// Connected counts the connections to a server that were made.
	Connected() uint64
	Close() error
}

// CommitTime bounds the wait for SQLite's COMMIT. For PostgreSQL's the limit is that of an exchange. The caller's own deadline does
// not count there: giving up on a COMMIT that is under way would only make a sure outcome an ambiguous one.
const CommitTime = 30 * time.Second

// Mode is what a session is for.
type Mode int

// The modes.
const (
	ModeWrite    Mode = iota // one transaction that writes
	ModeAlone                // the same, with a COMMIT of its own
	ModeRead                 // statements that read, each on its own on PostgreSQL
	ModeSnapshot             // one snapshot for all statements
	ModeWhole                // the same, for statements that read whole tables
)

// Writes reports whether a session of the mode writes.
func (m Mode) Writes() bool { return m == ModeWrite || m == ModeAlone }

// Session is one connection with at most one transaction.
type Session interface {
	// Run sends the statements in one exchange where the engine can, after
	// beginning the transaction when it has not begun.
	Run(ctx context.Context, statements []*Statement) error
	// Commit sends the statements and COMMIT in one exchange where the engine
	// can. It returns ErrUnknownCommit (wrapped) when it cannot say whether the
	// transaction is committed.
	Commit(ctx context.Context, statements []*Statement) error
	// End gives the connection back, rolling back what is not committed;
	// broken means that the connection must not be used again. It returns
	// ErrAlone when what the session saw did not come to be: its own outcome is
	// worth nothing then, not even an error.
	End(broken bool) error
	// Script runs several statements of one text without arguments.
	Script(ctx context.Context, text string) error
}
