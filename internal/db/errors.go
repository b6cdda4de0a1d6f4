package db

import "github.com/makola/makola/internal/db/engine"

// Errors that callers distinguish with errors.Is.
var (
	// ErrUnique is returned if a write violates a unique constraint.
	ErrUnique = engine.ErrUnique
	// ErrGuard is returned if a deferred statement affected another number of rows than it had to. The transaction
	// was then rolled back.
	ErrGuard = engine.ErrGuard
	// ErrAmbiguous is returned if the response to COMMIT was lost. The transaction may be committed or not.
	ErrAmbiguous = engine.ErrAmbiguous
	// ErrUnavailable is returned if the database cannot be reached or is too busy. The transaction had no effect, and
	// the caller may try again later.
	ErrUnavailable = engine.ErrUnavailable
)
