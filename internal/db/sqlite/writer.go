package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/makola/makola/internal/db/engine"
)

// SQLite has one writer, and a COMMIT waits for the disk. So transactions that wait for the writer share one COMMIT:
// a finished transaction passes the connection on with the transaction still open, and waits. The last one commits
// for all.
//
// Each member has seen the writes of the members before it, so none may have an outcome before the COMMIT. When a
// member fails after it wrote, or the COMMIT fails, the writes of all are rolled back. Each then runs again, alone.

// A group is bounded in number and time, because its first member waits for its last. The first transaction that ends
// after groupTime commits the group. Compared with such long transactions a COMMIT costs little.
const (
	groupMost = 16
	groupTime = 20 * time.Millisecond
)

// A group is one transaction of the engine that several of ours share. Only the
// session that has the connection touches it.
type group struct {
	begun   time.Time
	members int
	done    chan struct{} // closed at its end
	err     error         // nil when it is committed; set before done is closed
}

// writer is the connection that writes, and the line of those who wait for it.
type writer struct {
	mu    sync.Mutex
	idle  *connection // nil while a session has it
	line  []chan *connection
	bulk  []bulkWriter // those who come after the line
	turns int          // since bulk had one
	last  string       // the tenant that had it

	open      *group        // the open transaction; it goes with the connection
	groupTime time.Duration // groupTime, but in tests
}

// bulkWriter is one who waits with bulk work.
type bulkWriter struct {
	tenant string
	turn   chan *connection
}

// take answers the connection, or where it will come.
func (w *writer) take(p engine.Purpose) (*connection, chan *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.idle; c != nil {
		w.idle = nil
		return c, nil
	}
	turn := make(chan *connection, 1)
	switch p.Priority {
	case engine.PrioritySystem:
		w.line = slices.Insert(w.line, 0, turn)
	case engine.PriorityBulk:
		w.bulk = append(w.bulk, bulkWriter{p.Tenant, turn})
	default:
		w.line = append(w.line, turn)
	}
	return nil, turn
}

// quit leaves the line; false means that the connection has come.
func (w *writer) quit(turn chan *connection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.line, turn); i >= 0 {
		w.line = slices.Delete(w.line, i, i+1)
		return true
	}
	i := slices.IndexFunc(w.bulk, func(b bulkWriter) bool { return b.turn == turn })
	if i < 0 {
		return false
	}
	w.bulk = slices.Delete(w.bulk, i, i+1)
	return true
}

// next passes the connection to the first waiter and reports whether there is one.
func (w *writer) next(c *connection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handLocked(c)
}

// give hands the connection on or puts it back.
func (w *writer) give(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.handLocked(c) {
		w.idle = c
	}
}

// handLocked gives the money's line seven turns of eight, and bulk's tenants its own in
// turn.
func (w *writer) handLocked(c *connection) bool {
	switch {
	case len(w.line) > 0 && (len(w.bulk) == 0 || w.turns < engine.BulkTurn-1):
		w.line[0] <- c
		w.line = slices.Delete(w.line, 0, 1)
		if w.turns++; len(w.bulk) == 0 {
			w.turns = 0
		}
	case len(w.bulk) > 0:
		i := max(0, slices.IndexFunc(w.bulk, func(b bulkWriter) bool { return b.tenant != w.last }))
		w.last = w.bulk[i].tenant
		w.bulk[i].turn <- c
		w.bulk = slices.Delete(w.bulk, i, i+1)
		w.turns = 0
	default:
		return false
	}
	return true
}

// writing waits for the connection, until ctx ends or the database is closed.
func (d *DB) writing(ctx context.Context, m engine.Mode, p engine.Purpose) (*session, error) {
	c, turn := d.writer.take(p)
	if c != nil {
		return d.join(c, m), nil
	}
	var err error
	select {
	case c = <-turn:
		return d.join(c, m), nil
	case <-d.done:
		err = engine.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !d.writer.quit(turn) {
		d.decline(<-turn)
	}
	return nil, err
}

// decline passes an unused connection to the next waiter. Without one, it commits for the callers that wait for the end of
// the group, because none of them runs here.
func (d *DB) decline(c *connection) {
	if !d.writer.next(c) {
		_ = d.join(c, engine.ModeAlone).End(false)
	}
}

// last waits for the connection when everybody else has had it.
func (d *DB) last() *connection {
	c, turn := d.writer.take(engine.Purpose{Priority: engine.PriorityBulk})
	if c == nil {
		c = <-turn
	}
	return d.join(c, engine.ModeAlone).conn
}

// join makes a session, a member of the group that is open; one that shares with
// no other has the group committed first.
func (d *DB) join(c *connection, m engine.Mode) *session {
	s := &session{db: d, conn: c, mode: m}
	switch g := d.writer.open; {
	case g == nil:
	case m == engine.ModeAlone:
		_ = s.commitGroup() // commitGroup reports the error to its members
	default:
		g.members++
		s.group, s.begun = g, true
	}
	return s
}

// found begins a group of one.
func (s *session) found() {
	s.group = &group{begun: time.Now(), members: 1, done: make(chan struct{})}
	s.db.writer.open = s.group
}

// leave ends a member's part: another member commits for it, or it commits for all.
func (s *session) leave(ctx context.Context) error {
	g := s.group
	full := g.members >= groupMost || time.Since(g.begun) >= s.db.writer.groupTime
	if s.mode == engine.ModeAlone || full || !s.db.writer.next(s.conn) {
		return s.commitGroup()
	}
	s.conn = nil
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return fmt.Errorf("%w: those it shares it with are not done", engine.ErrUnknownCommit)
	}
}

func (s *session) commitGroup() error {
	_, err := s.exec(context.Background(), "COMMIT", nil)
	if err != nil {
		var lite *sqlite.Error
		switch {
		// When the disk failed under COMMIT its mark may be in the log all the same.
		case errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_IOERR:
			err = fmt.Errorf("%w: %w", engine.ErrUnknownCommit, err)
		case s.db.writer.open.members > 1: // whose fault it is is not known
			err = engine.ErrAlone
		}
		s.rollback()
	}
	s.endGroup(err)
	return err
}

func (s *session) rollback() {
	// An error means that SQLite has rolled back by itself.
	_, _ = s.exec(context.Background(), "ROLLBACK", nil)
}

func (s *session) endGroup(err error) {
	g := s.db.writer.open
	s.db.writer.open, s.begun = nil, false
	g.err = err
	close(g.done)
}

// endWriting rolls back uncommitted writes and returns the connection. The rollback includes the writes of other
// members where they share the transaction.
func (s *session) endWriting(broken bool) (again error) {
	if s.conn == nil {
		return nil // another member commits, or has
	}
	if s.begun {
		shared := s.group.members > 1
		if shared && !s.dirty && !broken {
			ctx, cancel := context.WithTimeout(context.Background(), engine.CommitTime)
			defer cancel()
			if s.leave(ctx) != nil {
				again = engine.ErrAlone
			}
		} else {
			s.rollback()
			s.endGroup(engine.ErrAlone)
			if shared {
				again = engine.ErrAlone
			}
		}
	}
	if s.conn != nil {
		s.db.boundLog(s.conn)
		s.db.writer.give(s.conn)
	}
	return again
}
