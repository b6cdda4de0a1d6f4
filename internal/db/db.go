// Package db is the one door to the database. It opens SQLite (the default,
// nothing to install) or PostgreSQL (several nodes) and runs the same SQL text
// on both: statements are written with $1 placeholders and the few words of
// engine/words.go, which are the only place where the engines' spellings differ.
//
// A transaction is a function given to Write: it may run more than once, so it
// must compute everything it hands out anew each time. Reads are sent at once
// (several in one exchange with Gather), writes whose result is not needed are
// deferred and travel together with COMMIT. On PostgreSQL BEGIN travels with
// the first reads, so that a whole group commit costs two exchanges with the
// server; on SQLite, which has one writer, those who wait for it share a COMMIT
// (sqlite/writer.go). Durability is always full: synchronous=FULL on SQLite,
// synchronous commit on PostgreSQL. When the answer to COMMIT is lost the
// outcome is not guessed: Write says ErrAmbiguous, and WriteRecognising looks
// for the rows.
//
// Files:
//
//	walk.go                        large tables in sets of rows
//	migrate.go, migrations/        how the schema is brought up to date, and its steps: one file each, by number
//	place.go                       which database this is, and on which timeline
//	snapshot.go                    copies and counts for backups
//	room.go                        whether there is room for more than money
//	rows.go                        sets of rows
//	write.go                       how a transaction is run, again and recognised
//	tx.go                          a transaction
//	db.go                          the database: settings, Open, the engine
//	faults.go                      errors on purpose, for tests
//	disk*.go                       how much room the disk has
//	gate.go                        who gets a connection next, and how many each priority may have
//	priority.go                    transactions are money, system or bulk
//	errors.go                      the errors that callers tell apart
//	lock*.go                       one server to a data folder
//
// Each engine is a package: sqlite and postgres keep the connections and spell statements; engine is what both give.
package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db/engine"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/db/sqlite"
)

// Engine says which database is behind a DB.
type Engine int

// The engines.
const (
	SQLite Engine = iota
	Postgres
)

// String names the engine as documents and logs do.
func (e Engine) String() string {
	if e == Postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

// Options say which database to open.
type Options struct {
	URL      string  // a postgres:// URL; empty means SQLite at Path
	Path     string  // the SQLite file; its folder is made
	MaxConns int     // connections at most (PostgreSQL: all, default 16; SQLite: readers, default 4 or twice the processors; two more are kept)
	Reserve  int64   // bytes of SQLite's disk that are kept for money, see Short
	Faults   *Faults // nil outside tests
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine Engine
	opener engine.Opener
	path   string // of the SQLite file
	faults *Faults
	closed atomic.Bool
	disk   *disk
	gate   *gate // before PostgreSQL's connections, and SQLite's that read

	running atomic.Int64
	waited  atomic.Int64 // nanoseconds
	retried atomic.Uint64
}

// Counts is how much this process asks of the database.
type Counts struct {
	Running int64         // transactions that have a connection now
	Waited  time.Duration // for connections, all transactions since the start together
	Retried uint64        // runs again since the start, after a conflict, a lost connection or a doubt
}

// Counts gives this process's numbers.
func (d *DB) Counts() Counts {
	return Counts{Running: d.running.Load(), Waited: time.Duration(d.waited.Load()), Retried: d.retried.Load()}
}

// Open opens the database; it neither makes nor changes tables (see Migrate).
func Open(ctx context.Context, o Options) (*DB, error) {
	d := &DB{faults: o.Faults, disk: newDisk(o.Path, o.Reserve)}
	if o.URL != "" {
		d.disk.folder = ""
	}
	var err error
	if o.URL != "" {
		d.engine = Postgres
		if o.MaxConns <= 0 {
			o.MaxConns = 16
		}
		kept := min(keptConns, o.MaxConns/4)
		d.gate = newGate(o.MaxConns-kept, kept)
		d.opener, err = postgres.Open(ctx, o.URL, o.MaxConns)
	} else {
		if o.Path == "" {
			return nil, errors.New("db: neither a database URL nor a path is given")
		}
		if o.MaxConns <= 0 {
			o.MaxConns = max(4, 2*runtime.GOMAXPROCS(0))
		}
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
			return nil, fmt.Errorf("db: make the data folder: %w", err)
		}
		d.path = o.Path
		d.gate = newGate(o.MaxConns, keptConns)
		d.opener, err = sqlite.Open(ctx, o.Path, o.MaxConns+keptConns)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Close waits for running transactions and closes the connections. Closing
// twice does nothing.
func (d *DB) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.opener.Close()
}

// Engine says which database this is.
func (d *DB) Engine() Engine { return d.engine }

// Epoch grows with every connection to a server that is made: through the connections that it had already, a process hears
// of no other server's database. It stays 0 on SQLite.
func (d *DB) Epoch() uint64 { return d.opener.Connected() }
