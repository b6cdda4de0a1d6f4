package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/problem"
)

// Errors that callers of db distinguish with errors.Is.
var (
	// ErrUnique is returned if a write violates a unique constraint.
	ErrUnique = errors.New("db: unique constraint violated")
	// ErrGuard is returned if a deferred statement affected another number of rows than it had to. The transaction
	// was then rolled back.
	ErrGuard = errors.New("db: a guarded write affected another number of rows")
	// ErrAmbiguous is returned if the response to COMMIT was lost. The transaction may be committed or not. Like
	// ErrUnavailable it is a *problem.Error, so that callers outside db report it correctly.
	ErrAmbiguous error = problem.New(problem.Unavailable, "outcome_unknown",
		"The service was interrupted and does not know whether the request was recorded. Ask for its status, or send it again with the same reference.")
	// ErrUnavailable is returned if the database cannot be reached or is too busy. The transaction had no effect, and
	// the caller may try again later.
	ErrUnavailable error = problem.New(problem.Unavailable, "database_unavailable",
		"The service is not available at the moment. Nothing was recorded; try again shortly.")
)

// The classes of errors by which db decides whether to run a transaction again.
var (
	ErrConflict      = errors.New("db: serialization conflict, retry")
	ErrLost          = fmt.Errorf("%w: there is no connection", ErrUnavailable)
	ErrAlone         = errors.New("db: the group commit failed, retry the transaction alone")
	ErrClosed        = fmt.Errorf("%w: the database is closed", ErrUnavailable)
	ErrUnknownCommit = errors.New("db: no answer to COMMIT")
)

// UnknownCommit is the error of a COMMIT without a response. Busy, if not nil, reports whether the server may still
// be executing it.
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

// Known reports whether an error needs no classification by a driver. That is so if err is nil, comes from the
// caller's own function, or has a class already.
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

// Classed wraps an error so that errors.Is finds the class.
func Classed(class, err error) error { return fmt.Errorf("%w: %w", class, err) }
