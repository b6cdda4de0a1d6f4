// Package sqlite keeps the connections of a SQLite file: one for writing and several for reading.
//
// Files:
//
//	clean.go                copying and rewriting the file, emptying its log
//	sqlite.go, writer.go    the connections and their sessions; the one writer and its group commit
//	dialect.go              statements and sets of rows in SQLite's spelling
//	errors.go               classes of the driver's errors
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/makola/makola/internal/db/engine"
)

// busyTimeout sets how long a statement waits for a writer of another process.
const busyTimeout = "PRAGMA busy_timeout = 5000"

// pragmas apply to every connection. FULL makes COMMIT wait for the disk. A checkpoint waits for the disk, too, so it
// runs every 16 MB instead of every 4 MB. A cached page takes about twice its size, because the driver allocates in
// powers of two. So 10 MB here use 22 MB.
//
// Sorts of readers, and pages that do not fit into their caches, go to temporary files in SQLITE_TMPDIR, TMPDIR,
// /var/tmp or /tmp. The checks of the books sort all transfers. SQLite overwrites deleted and changed data, so that
// nobody can read the data of an erased person in free space.
var pragmas = []string{
	busyTimeout,
	"PRAGMA journal_mode = WAL",
	"PRAGMA synchronous = FULL",
	"PRAGMA foreign_keys = ON",
	"PRAGMA wal_autocheckpoint = 4000",
	"PRAGMA journal_size_limit = 67108864",
	"PRAGMA cache_size = -10240",
	"PRAGMA temp_store = MEMORY",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA secure_delete = ON",
}

// statementsKept is the number of prepared statements that a connection keeps.
const statementsKept = 400

// DB has one connection that writes and several that read. A session takes a reading connection from a channel and
// returns it there. On a new connection SQLite parses the whole schema, so a session opens one only if no open one is
// idle.
type DB struct {
	texts    engine.Texts
	pool     *sql.DB
	writer   writer
	readers  chan *connection // idle reading connections
	unopened chan *connection // a nil for each reading connection that was not needed so far
	done     chan struct{}
	conns    int
	close1   sync.Once
	log      writeAheadLog
}

// writeAheadLog limits the size of SQLite's write-ahead log. SQLite copies the log into the file by itself, but
// restarts the log only while nobody reads. With constant readers that moment never comes. Only the writer's session
// uses writeAheadLog.
type writeAheadLog struct {
	path    string
	limit   int64         // bytes; a larger log makes readers pause
	next    int64         // size at which readers pause the next time, after a pause without success
	pause   time.Duration // pauseReads; tests set another value
	commits int
}

const (
	logLimit   = 128 << 20
	logLook    = 16                     // commits between two checks of the size
	pauseReads = 500 * time.Millisecond // maximum time for which new readers wait for running ones
)

// connection is a database connection with its prepared statements.
type connection struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

// Open opens a SQLite file with the given number of reading connections. It creates a missing file.
func Open(ctx context.Context, path string, readers int) (*DB, error) {
	// The file is created with narrow permissions first, because SQLite would create it with wide ones.
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		_ = f.Close()
	}
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("db: open %s: %w", path, err)
	}
	d := &DB{
		pool: pool, conns: readers,
		readers: make(chan *connection, readers), unopened: make(chan *connection, readers), done: make(chan struct{}),
		log: writeAheadLog{path: path + "-wal", limit: logLimit, next: logLimit, pause: pauseReads},
	}
	pool.SetMaxOpenConns(readers + 1)
	writer, err := d.connect(ctx, false)
	if err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("db: open %s: %w", path, classify(err))
	}
	d.writer.idle, d.writer.groupTime = writer, groupTime
	for range readers {
		d.give(nil)
	}
	return d, nil
}

func (d *DB) connect(ctx context.Context, readOnly bool) (*connection, error) {
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	pragmas := pragmas
	if readOnly {
		pragmas = append(append([]string(nil), pragmas...), "PRAGMA cache_size = -4096", "PRAGMA temp_store = FILE", "PRAGMA query_only = ON")
	}
	for _, p := range pragmas {
		if _, err := conn.ExecContext(ctx, p); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	return &connection{conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

// Classify implements engine.Opener.
func (d *DB) Classify(err error) error { return classify(err) }

// Connected implements engine.Opener. SQLite has no server.
func (d *DB) Connected() uint64 { return 0 }

// Close waits until all connections are returned, and closes them.
func (d *DB) Close() (err error) {
	d.close1.Do(func() {
		close(d.done)
		for range d.conns {
			select {
			case c := <-d.readers:
				c.close()
			case <-d.unopened:
			}
		}
		d.last().close()
		err = d.pool.Close()
	})
	return err
}

func (c *connection) close() {
	if c == nil {
		return
	}
	c.forget()
	_ = c.conn.Close()
}

func (c *connection) forget() {
	for _, st := range c.prepared {
		_ = st.Close()
	}
	clear(c.prepared)
}

func (c *connection) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if st, ok := c.prepared[text]; ok {
		return st, nil
	}
	if len(c.prepared) >= statementsKept {
		c.forget()
	}
	st, err := c.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, text)
	}
	c.prepared[text] = st
	return st, nil
}

// Session implements engine.Opener.
func (d *DB) Session(ctx context.Context, m engine.Mode, p engine.Purpose) (engine.Session, error) {
	select {
	case <-d.done:
		return nil, engine.ErrClosed
	default:
	}
	if m.Writes() {
		return d.writing(ctx, m, p)
	}
	c, err := d.take(ctx)
	if err != nil {
		return nil, err
	}
	if c == nil {
		if c, err = d.connect(ctx, true); err != nil {
			d.give(nil)
			return nil, err
		}
	}
	return &session{db: d, conn: c, mode: m}, nil
}

// take waits for a reading connection. It returns nil for one that the caller has to open.
func (d *DB) take(ctx context.Context) (*connection, error) {
	select {
	case c := <-d.readers:
		return c, nil
	default:
	}
	select {
	case c := <-d.readers:
		return c, nil
	case <-d.unopened:
		return nil, nil
	case <-d.done:
		return nil, engine.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give returns what take has taken.
func (d *DB) give(c *connection) {
	if c == nil {
		d.unopened <- nil
		return
	}
	d.readers <- c
}

type session struct {
	db    *DB
	conn  *connection // nil after it was passed on
	mode  engine.Mode
	begun bool
	dirty bool   // there are writes to roll back, or SQLite has rolled them back by itself
	group *group // the transactions that share the COMMIT; nil before BEGIN and for a reading session
}

// context returns the context with which statements run. The driver starts a goroutine for each statement that can be
// cancelled, so only long reads can be.
func (s *session) context(ctx context.Context) context.Context {
	if s.mode == engine.ModeWhole {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// Run implements engine.Session.
func (s *session) Run(ctx context.Context, statements []*engine.Statement) error {
	ctx = s.context(ctx)
	if !s.begun {
		begin := "BEGIN"
		if s.mode.Writes() {
			begin = "BEGIN IMMEDIATE"
		}
		if _, err := s.exec(ctx, begin, nil); err != nil {
			return err
		}
		if s.begun = true; s.mode.Writes() {
			s.found()
		}
	}
	for _, st := range statements {
		s.dirty = s.dirty || st.Each == nil || !strings.HasPrefix(st.SQL, "SELECT")
		if err := s.statement(ctx, st); err != nil {
			s.dirty = true
			return err
		}
	}
	return nil
}

func (s *session) statement(ctx context.Context, st *engine.Statement) error {
	switch {
	case st.Repeat != nil:
		for i := 0; ; i++ {
			args := st.Repeat(i)
			if args == nil {
				return nil
			}
			n, err := s.exec(ctx, st.SQL, args)
			if err != nil {
				return err
			}
			st.Rows += n
		}
	case st.Each != nil:
		return s.query(ctx, st)
	}
	n, err := s.exec(ctx, st.SQL, st.Args)
	if err != nil {
		return err
	}
	if st.Rows = n; st.Want >= 0 && n != st.Want {
		return fmt.Errorf("%w: %d rows instead of %d", engine.ErrGuard, n, st.Want)
	}
	return nil
}

func (s *session) exec(ctx context.Context, text string, args []any) (int64, error) {
	st, err := s.conn.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	result, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s *session) query(ctx context.Context, st *engine.Statement) error {
	prepared, err := s.conn.prepare(ctx, st.SQL)
	if err != nil {
		return err
	}
	rows, err := prepared.QueryContext(ctx, st.Args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	row := engine.NewRow(rows, nil)
	for rows.Next() {
		if err := st.Each(row); err != nil {
			return &engine.OwnError{Err: err}
		}
	}
	return rows.Err()
}

// Commit implements engine.Session.
func (s *session) Commit(ctx context.Context, statements []*engine.Statement) error {
	if !s.begun && len(statements) == 0 {
		return nil
	}
	if err := s.Run(ctx, statements); err != nil {
		return err
	}
	return s.leave(ctx)
}

// End implements engine.Session.
func (s *session) End(broken bool) error {
	if s.mode.Writes() {
		return s.endWriting(broken)
	}
	if s.begun {
		s.rollback()
	}
	s.db.give(s.conn)
	return nil
}

// boundLog truncates a log that has grown too long. It first takes all reading connections, so that new readers wait.
// If a running reader does not end in time, boundLog returns the connections and tries again when the log has
// doubled.
func (d *DB) boundLog(writer *connection) {
	w := &d.log
	if w.commits++; w.commits < logLook {
		return
	}
	w.commits = 0
	info, err := os.Stat(w.path)
	if err != nil || info.Size() < w.next {
		if err == nil && info.Size() < w.limit {
			w.next = w.limit
		}
		return
	}
	w.next = 2 * info.Size()
	taken := make([]*connection, 0, d.conns)
	defer func() {
		for _, c := range taken {
			d.give(c)
		}
	}()
	timer := time.NewTimer(w.pause)
	defer timer.Stop()
	for range d.conns {
		select {
		case c := <-d.readers:
			taken = append(taken, c)
		case c := <-d.unopened:
			taken = append(taken, c)
		case <-d.done:
			return
		case <-timer.C:
			return
		}
	}
	// Other processes (commands) may read, too. They get only a short time to finish.
	ctx := context.Background()
	_, _ = writer.conn.ExecContext(ctx, "PRAGMA busy_timeout = 200")
	if _, err := writer.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err == nil {
		if info, err := os.Stat(w.path); err == nil && info.Size() < w.limit {
			w.next = w.limit
		}
	}
	_, _ = writer.conn.ExecContext(ctx, busyTimeout)
}

// Script implements engine.Session.
func (s *session) Script(ctx context.Context, text string) error {
	if err := s.Run(ctx, nil); err != nil {
		return err
	}
	s.dirty = true
	_, err := s.conn.conn.ExecContext(context.WithoutCancel(ctx), text)
	return err
}
