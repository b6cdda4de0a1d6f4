// Package db is the only access to the database. It opens SQLite (the default, without installation) or PostgreSQL (for
// several nodes). Both engines run the same SQL text with $1 placeholders. Where the engines need different SQL, a
// statement contains a keyword. engine/words.go replaces the keyword by the SQL of each engine.
//
// Write runs a transaction as a function. The function can run more than once, so each run must compute its results
// anew. Reads are sent at once, and Gather sends several in one exchange. Writes whose result nobody needs are
// deferred and sent together with COMMIT. On PostgreSQL BEGIN is sent with the first reads, so a whole group commit
// costs two exchanges with the server. SQLite has one writer, and the transactions that wait for it share one COMMIT
// (sqlite/writer.go). Durability is always full: synchronous=FULL on SQLite, synchronous commit on PostgreSQL. When
// the response to COMMIT is lost, Write returns ErrAmbiguous. WriteRecognising then checks whether the rows exist.
//
// Files:
//
//	all.go                         reads and one-statement writes in a transaction of their own
//	walk.go                        large tables, read in sets of rows
//	migrate.go, migrations/        the steps of the schema, one numbered file each, and how they are applied
//	place.go                       the identity of the database and its timeline
//	snapshot.go                    copies and counts for backups
//	room.go                        free space of the disk and of each row limit
//	rows.go                        sets of rows
//	write.go                       running, repeating and recognising a transaction
//	tx.go                          a transaction
//	db.go                          the database: settings, Open, the engine
//	faults.go                      injected errors for tests
//	disk*.go                       free space of the disk
//	gate.go                        order of connections, and their number for each priority
//	priority.go                    priorities of transactions: money, system, bulk
//	errors.go                      errors that callers distinguish
//	lock*.go                       one server for a data folder
//
// Each engine has a package, sqlite or postgres, which keeps the connections and translates statements. Package
// engine has the types that both share.
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

// Engine is the kind of database behind a DB.
type Engine int

// The engines.
const (
	SQLite Engine = iota
	Postgres
)

// String returns the name of the engine as documents and logs write it.
func (e Engine) String() string {
	if e == Postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

// Options selects and limits the database to open.
type Options struct {
	URL      string  // a postgres:// URL; empty means SQLite at Path
	Path     string  // the SQLite file; its folder is created
	MaxConns int     // maximum number of connections, plus two reserved ones (PostgreSQL: all, default 16; SQLite: readers, default 4 or twice the processors)
	Reserve  int64   // bytes of SQLite's disk that are reserved for payments, see Short
	Faults   *Faults // nil outside tests
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine Engine
	opener engine.Opener
	path   string // path of the SQLite file
	faults *Faults
	closed atomic.Bool
	disk   *disk
	gate   *gate // limits connections of PostgreSQL and reading connections of SQLite

	running atomic.Int64
	waited  atomic.Int64 // nanoseconds
	retried atomic.Uint64
}

// Counts has numbers about this process's use of the database.
type Counts struct {
	Running int64         // transactions that have a connection now
	Waited  time.Duration // total time that transactions have waited for connections since the start
	Retried uint64        // transactions that ran again since the start, after a conflict, a lost connection or an ambiguous COMMIT
}

// Counts returns this process's numbers.
func (d *DB) Counts() Counts {
	return Counts{Running: d.running.Load(), Waited: time.Duration(d.waited.Load()), Retried: d.retried.Load()}
}

// Open opens the database. It neither creates nor changes tables (see Migrate).
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

// Engine returns the kind of the database.
func (d *DB) Engine() Engine { return d.engine }

// Epoch returns the number of connections that were made to the server. If it has not grown, the process still uses
// its earlier connections, and is therefore still on the same server. It stays 0 on SQLite.
func (d *DB) Epoch() uint64 { return d.opener.Connected() }
