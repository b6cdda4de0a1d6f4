package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/problem"
)

// Errors that callers of db distinguish with errors.Is.
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

// The classes by which db decides how to go on.
var (
	ErrConflict      = errors.New("db: conflict, run again")
	ErrLost          = fmt.Errorf("%w: there is no connection", ErrUnavailable)
	ErrAlone         = errors.New("db: the transaction's group failed, run again alone")
	ErrClosed        = fmt.Errorf("%w: the database is closed", ErrUnavailable)
	ErrUnknownCommit = errors.New("db: no answer to COMMIT")
)

// UnknownCommit is a COMMIT without an answer. Busy, where it is known, reports
// whether the server may still be at it.
type UnknownCommit struct {
	Busy  func(ctx context.Context) (bool, error)
	Cause error
}

// Error implements error.
func (e *UnknownCommit) Error() string { return ErrUnknownCommit.Error() + ": " + e.Cause.Error() }

// Unwrap returns the class and the cause.
func (e *UnknownCommit) Unwrap() []error { return []error{ErrUnknownCommit, e.Cause} }

// OwnError is an error that the caller's own function returned about a row. It is returned unchanged and never
// classified as an error of the database.
type OwnError struct{ Err error }

// Error implements error.
func (e *OwnError) Error() string { return e.Err.Error() }

// Known returns an error that needs no class of a driver any more: none, a caller's own, or one that has its class.
func Known(err error) (classified error, known bool) {
	if err == nil {
		return nil, true
	}
	var own *OwnError
	if errors.As(err, &own) {
		return own.Err, true
	}
	for _, class := range []error{ErrUnique, ErrGuard, ErrAmbiguous, ErrUnavailable, ErrConflict, ErrAlone, context.Canceled} {
		if errors.Is(err, class) {
			return err, true
		}
	}
	return err, false
}

// Classed wraps an error in a class.
func Classed(class, err error) error { return fmt.Errorf("%w: %w", class, err) }
