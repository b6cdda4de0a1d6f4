package sqlite

import (
	"context"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/makola/makola/internal/db/engine"
)

func classify(err error) error {
	err, known := engine.Known(err)
	if known {
		return err
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		if class := classOf(lite); class != nil {
			return engine.Classed(class, err)
		}
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return engine.Classed(engine.ErrUnavailable, err)
	}
	return err
}

func classOf(lite *sqlite.Error) error {
	switch lite.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT:
		switch lite.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
			return engine.ErrUnique
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return engine.ErrConflict
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM:
		return engine.ErrUnavailable
	}
	return nil
}

// Full reports whether SQLite found its disk full.
func Full(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_FULL
}

// Corrupt returns SQLite's message if the file is so damaged that SQLite cannot continue, and "" for any other error.
func Corrupt(err error) (message string) {
	var lite *sqlite.Error
	if errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_CORRUPT {
		return lite.Error()
	}
	return ""
}
