// Package db is the one door to the database. It opens SQLite (the default,
// nothing to install) or PostgreSQL (several nodes) and runs the same SQL text
// on both: statements are written with $1 placeholders and the few words of
// dialect.go, which are the only place where the engines' spellings differ.
//
// A transaction is a function given to Write: it may run more than once, so it
// must compute everything it hands out anew each time. Reads are sent at once
// (several in one exchange with Gather), writes whose result is not needed are
// deferred and travel together with COMMIT. On PostgreSQL BEGIN travels with
// the first reads, so that a whole group commit costs two exchanges with the
// server; on SQLite, which has one writer, those who wait for it share a COMMIT
// (sqlite_writer.go). Durability is always full: synchronous=FULL on SQLite,
// synchronous commit on PostgreSQL. When the answer to COMMIT is lost the
// outcome is not guessed: Write says ErrAmbiguous, and WriteRecognising looks
// for the rows.
//
// Files:
//
//	db.go                          the database: settings, Open, the engine
//	tx.go, write.go                a transaction; how it is run, again and recognised
//	dialect.go, rows.go, arrays.go the words of statements, sets of rows, arrays on the wire
//	postgres.go, pooler.go         connections of PostgreSQL; what a pooler must keep
//	sqlite.go, sqlite_writer.go    connections of SQLite; its one writer and group commit
//	priority.go                    transactions are money, system or bulk; how long bulk may run
//	gate.go                        who gets a connection next, and how many each priority may have
//	errors.go, faults.go           classes of the drivers' errors, a full disk among them; errors on purpose, for tests
//	migrate.go, migrations/        how the schema is brought up to date, and its steps: one file each, by number
//	disk*.go, room.go              how much room the disk has; what PostgreSQL has left
//	lock*.go                       one server to a data folder
//	place.go                       which database this is, and on which timeline
//	snapshot.go                    copies and counts for backups
//	clean.go                       rewriting SQLite's file and emptying its log
//	client.go                      PostgreSQL's own programs, and the databases in which backups are tried
//	walk.go                        large tables in sets of rows
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
	opener opener
	path   string // of the SQLite file
	faults *Faults
	texts  texts
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

// An opener makes sessions of one engine; there is one for each engine.
type opener interface {
	// session gives a connection, once the gate has let the caller in. A writing
	// session is the only one on SQLite, whose line it waits in.
	session(ctx context.Context, mode mode, p purpose) (session, error)
	// connected counts the connections to a server that were made.
	connected() uint64
	close() error
}

// A mode is what a session is for.
type mode int

const (
	modeWrite    mode = iota // one transaction that writes
	modeAlone                // the same, with a COMMIT of its own
	modeRead                 // statements that read, each on its own on PostgreSQL
	modeSnapshot             // one snapshot for all statements
	modeWhole                // the same, for statements that read whole tables
)

func (m mode) writes() bool { return m == modeWrite || m == modeAlone }

// A session is one connection with at most one transaction.
type session interface {
	// run sends the statements in one exchange where the engine can, after
	// beginning the transaction when it has not begun.
	run(ctx context.Context, statements []*statement) error
	// commit sends the statements and COMMIT in one exchange where the engine
	// can. It answers errUnknownCommit (wrapped) when it cannot say whether the
	// transaction is committed.
	commit(ctx context.Context, statements []*statement) error
	// end gives the connection back, rolling back what is not committed;
	// broken means that the connection must not be used again. It answers
	// errAlone when what the session saw did not come to be: its own outcome is
	// worth nothing then, not even an error.
	end(broken bool) error
	// script runs several statements of one text without arguments.
	script(ctx context.Context, text string) error
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
		d.opener, err = openPostgres(ctx, o.URL, o.MaxConns)
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
		d.opener, err = openSQLite(ctx, o.Path, o.MaxConns+keptConns)
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
	return d.opener.close()
}

// Engine says which database this is.
func (d *DB) Engine() Engine { return d.engine }

// Epoch grows with every connection to a server that is made: through the connections that it had already, a process hears
// of no other server's database. It stays 0 on SQLite.
func (d *DB) Epoch() uint64 { return d.opener.connected() }

// Ping asks the database for a sign of life. It does not wait for other work.
func (d *DB) Ping(ctx context.Context) error {
	return d.Read(System(ctx), func(tx *Tx) error {
		var one int64
		_, err := tx.One("SELECT 1", nil, &one)
		return err
	})
}

// Micros turns a time into what the tables store: microseconds since 1970 in
// UTC. The zero time is 0, which every table reads as "never".
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros turns stored microseconds back into a time in UTC; 0 is the zero
// time.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
