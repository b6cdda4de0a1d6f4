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

// Opener opens sessions of one engine. It translates statements and classifies errors for that engine.
type Opener interface {
	// Session returns a connection after the gate has admitted the caller. On SQLite there is one writing session at
	// a time, and Session waits for it.
	Session(ctx context.Context, mode Mode, p Purpose) (Session, error)
	// Translate translates a statement for the engine. If want >= 0, the statement fails with ErrGuard unless it
	// affects exactly want rows.
	Translate(sql string, want int64, args []any) (*Statement, error)
	// Insert returns the statements with which the engine inserts a set of rows fastest.
	Insert(into string, set Rows) ([]*Statement, error)
	// Classify wraps an error of the driver so that errors.Is finds its class.
	Classify(err error) error
	// Connected returns the number of connections that were made to a server.
	Connected() uint64
	Close() error
}

// CommitTime is the maximum wait for SQLite's COMMIT. PostgreSQL's COMMIT has the time limit of one exchange. The
// caller's own deadline does not apply to a COMMIT, because the outcome of an abandoned COMMIT is unknown.
const CommitTime = 30 * time.Second

// Mode is the purpose of a session.
type Mode int

// The modes.
const (
	ModeWrite    Mode = iota // one transaction that writes
	ModeAlone                // like ModeWrite, with a COMMIT that no other transaction shares
	ModeRead                 // reading statements; on PostgreSQL each sees its own snapshot
	ModeSnapshot             // one snapshot for all statements
	ModeWhole                // like ModeSnapshot, for statements that read whole tables
)

// Writes reports whether a session of the mode writes.
func (m Mode) Writes() bool { return m == ModeWrite || m == ModeAlone }

// Session is one connection, with at most one transaction at a time.
type Session interface {
	// Run begins the transaction if necessary and sends the statements, in one round trip if the engine can.
	Run(ctx context.Context, statements []*Statement) error
	// Commit sends the statements and COMMIT, in one round trip if the engine can. If the outcome is unknown, it
	// returns an error that wraps ErrUnknownCommit.
	Commit(ctx context.Context, statements []*Statement) error
	// End rolls back uncommitted writes and returns the connection. broken means that the connection must not be used
	// again. End returns ErrAlone if the session has seen writes of other transactions that were rolled back. The
	// caller must then discard its result, even if the result is an error.
	End(broken bool) error
	// Script runs a text of several statements without arguments.
	Script(ctx context.Context, text string) error
}
