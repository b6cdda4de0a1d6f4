// Package engine holds the types that db shares with its two engines: the session and its statements, their arguments
// and sets of rows, and the classes of errors.
//
// Files:
//
//	engine.go               an engine and its session
//	statement.go            statements, their rows, and times in stored form
//	words.go                keywords that each engine spells in its own way, and arguments
//	set.go                  sets of rows
//	priority.go             priorities of transactions (money, system, bulk) and their time limits
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

// CommitTime bounds the wait for SQLite's COMMIT. PostgreSQL's COMMIT has the limit of an exchange. The caller's own
// deadline does not apply there: abandoning a COMMIT would turn a known outcome into an unknown one.
const CommitTime = 30 * time.Second

// Mode is the purpose of a session.
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
	// Commit sends the statements and COMMIT, in one exchange where the engine can. It returns a wrapped
	// ErrUnknownCommit when it cannot know whether the transaction is committed.
	Commit(ctx context.Context, statements []*Statement) error
	// End returns the connection and rolls back uncommitted writes. broken means that the connection must not be used
	// again. End returns ErrAlone when the writes that the session saw were rolled back. The caller must then discard
	// its outcome, even an error.
	End(broken bool) error
	// Script runs several statements of one text without arguments.
	Script(ctx context.Context, text string) error
}
