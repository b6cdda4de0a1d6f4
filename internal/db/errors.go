package db

import "github.com/makola/makola/internal/db/engine"

// Errors that callers distinguish with errors.Is.
var (
	// ErrUnique is a unique key that is taken.
	ErrUnique = engine.ErrUnique
	// ErrGuard is a deferred statement that affected another number of rows
	// than it had to; nothing of its transaction happened.
	ErrGuard = engine.ErrGuard
	// ErrAmbiguous is a COMMIT whose answer was lost: the transaction may be
	// committed or not.
	ErrAmbiguous = engine.ErrAmbiguous
	// ErrUnavailable is a database that cannot be reached or is too busy:
	// nothing happened, and trying later is right.
	ErrUnavailable = engine.ErrUnavailable
)
