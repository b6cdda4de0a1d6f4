package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/makola/makola/internal/problem"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The errors that callers tell apart with errors.Is.
var (
	// ErrUnique is a unique key that is taken.
	ErrUnique = errors.New("db: the key is taken")
	// ErrGuard is a deferred statement that affected another number of rows
	// than it had to; nothing of its transaction happened.
	ErrGuard = errors.New("db: a guarded write did not find its rows")
	// ErrAmbiguous is a COMMIT whose answer was lost: the transaction may be
	// committed or not. Like ErrUnavailable it is a problem already, so that a
	// transport that knows no database answers it rightly.
	ErrAmbiguous error = problem.New(problem.Unavailable, "outcome_unknown",
		"The service was interrupted and does not know whether the request was recorded. Ask for its status, or send it again with the same reference.")
	// ErrUnavailable is a database that cannot be reached or is too busy:
	// nothing happened, and trying later is right.
	ErrUnavailable error = problem.New(problem.Unavailable, "database_unavailable",
		"The service is not available at the moment. Nothing was recorded; try again shortly.")
)

// Inner classes: what Write does about an error.
var (
	errConflict      = errors.New("db: conflict, run again")
	errLost          = fmt.Errorf("%w: there is no connection", ErrUnavailable)
	errAlone         = errors.New("db: the transaction's group failed, run again alone")
	errClosed        = fmt.Errorf("%w: the database is closed", ErrUnavailable)
	errUnknownCommit = errors.New("db: no answer to COMMIT")
)

// unknownCommit is a COMMIT without an answer; busy, where it is known, says
// whether the server may still be at it.
type unknownCommit struct {
	busy  func(ctx context.Context) (bool, error)
	cause error
}

func (e *unknownCommit) Error() string   { return errUnknownCommit.Error() + ": " + e.cause.Error() }
func (e *unknownCommit) Unwrap() []error { return []error{errUnknownCommit, e.cause} }

// ownError is what a caller's own function said about a row: it is handed back
// as it is, and never taken for an error of the database.
type ownError struct{ error }

// classify wraps an error of a driver so that errors.Is knows its class.
func classify(err error) error {
	if err == nil {
		return nil
	}
	var own *ownError
	if errors.As(err, &own) {
		return own.error
	}
	for _, known := range []error{ErrUnique, ErrGuard, ErrAmbiguous, ErrUnavailable, errConflict, errAlone, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	refused := errors.As(err, &pg)
	if errors.As(err, &connect) && !(refused && tooMany(pg)) { // whatever the server refused it for, nothing has run
		return fmt.Errorf("%w: %w", errLost, err)
	}
	if refused {
		return classifyPostgres(err, pg)
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return classifySQLite(err, lite)
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "closed pool") {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed") || pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// tooMany says whether the server lacks resources, connections among them.
func tooMany(pg *pgconn.PgError) bool { return strings.HasPrefix(pg.Code, "53") }

func classifyPostgres(err error, pg *pgconn.PgError) error {
	switch {
	case pg.Code == "23505",
		pg.Code == "42P07", pg.Code == "42710": // a table or its type that another node has made meanwhile
		return fmt.Errorf("%w: %w", ErrUnique, err)
	case pg.Code == "22P02" && strings.Contains(pg.Message, guardMark):
		return fmt.Errorf("%w: %s", ErrGuard, pg.Message)
	case pg.Code == "40001", pg.Code == "40P01",
		pg.Code == "0A000" && strings.Contains(pg.Message, "cached plan"): // a migration ran meanwhile
		return fmt.Errorf("%w: %w", errConflict, err)
	case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57P"), // connection, shutdown
		pg.Code == "25006",                     // a standby: the primary is elsewhere now
		pg.Code == "25P03", pg.Code == "25P04": // idle too long in a transaction
		return fmt.Errorf("%w: %w", errLost, err)
	case tooMany(pg), pg.Code == "55P03", pg.Code == "57014": // resources, lock wait, statement time
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func classifySQLite(err error, lite *sqlite.Error) error {
	switch lite.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT:
		switch lite.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
			return fmt.Errorf("%w: %w", ErrUnique, err)
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", errConflict, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// Unreachable reports whether an error of Open says that the server does not answer yet: nothing listens, it is starting up
// or shutting down. A server that refuses the URL's database, user or password will refuse it a minute later, too.
func Unreachable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P") || tooMany(pg)
	}
	return errors.Is(err, ErrUnavailable)
}
