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

// SQLite has one writer, and a COMMIT waits for the disk. Transactions that wait for the writer therefore share one
// COMMIT. A finished transaction passes the connection on while the SQLite transaction is still open, and waits. The
// last one commits for all.
//
// Each member has seen the writes of the members before it, so no member's outcome is known before the COMMIT. If the
// COMMIT fails, or a member fails after it wrote, the writes of all are rolled back. Each member then runs again,
// alone.

// A group has a maximum number of members and a maximum time, because its first member waits for its last. The first
// transaction that ends after groupTime commits the group. Compared with such a long transaction, a COMMIT costs
// little.
const (
	groupMost = 16
	groupTime = 20 * time.Millisecond
)

// A group is one SQLite transaction that several of our transactions share. Only the session that has the connection
// uses it.
type group struct {
	begun   time.Time
	members int
	done    chan struct{} // closed when the group has ended
	err     error         // nil if the group was committed; set before done is closed
}

// writer is the writing connection, with the sessions that wait for it.
type writer struct {
	mu    sync.Mutex
	idle  *connection // nil while a session has it
	line  []chan *connection
	bulk  []bulkWriter // bulk sessions, which come after line
	turns int          // sessions of line served since a bulk session was
	last  string       // tenant of the last bulk session

	open      *group        // the open transaction, which is passed on with the connection
	groupTime time.Duration // groupTime; tests set another value
}

// bulkWriter is a waiting session with bulk work.
type bulkWriter struct {
	tenant string
	turn   chan *connection
}

// take returns the connection if it is idle. Otherwise it returns the channel that will receive the connection.
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

// quit ends the wait of turn. It returns false if turn has already received the connection.
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

// give passes the connection to the first waiter, or keeps it as idle.
func (w *writer) give(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.handLocked(c) {
		w.idle = c
	}
}

// handLocked passes the connection to a waiting session. Bulk sessions get it at least every eighth time, and tenants
// take turns among them.
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

// decline passes an unused connection to the next waiter. If there is none, it commits the open group, because no
// other session will do so for the waiting members.
func (d *DB) decline(c *connection) {
	if !d.writer.next(c) {
		_ = d.join(c, engine.ModeAlone).End(false)
	}
}

// last waits for the connection until all other waiters have had it.
func (d *DB) last() *connection {
	c, turn := d.writer.take(engine.Purpose{Priority: engine.PriorityBulk})
	if c == nil {
		c = <-turn
	}
	return d.join(c, engine.ModeAlone).conn
}

// join returns a session that is a member of the open group. For a session in ModeAlone it commits the open group
// first.
func (d *DB) join(c *connection, m engine.Mode) *session {
	s := &session{db: d, conn: c, mode: m}
	switch g := d.writer.open; {
	case g == nil:
	case m == engine.ModeAlone:
		_ = s.commitGroup() // commitGroup reports its error to the members
	default:
		g.members++
		s.group, s.begun = g, true
	}
	return s
}

// found begins a group with this session as its only member.
func (s *session) found() {
	s.group = &group{begun: time.Now(), members: 1, done: make(chan struct{})}
	s.db.writer.open = s.group
}

// leave ends this session's part in the group. It passes the connection on and waits for another member's COMMIT, or
// commits for all.
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
		return fmt.Errorf("%w: the other transactions of the group commit have not finished", engine.ErrUnknownCommit)
	}
}

func (s *session) commitGroup() error {
	_, err := s.exec(context.Background(), "COMMIT", nil)
	if err != nil {
		var lite *sqlite.Error
		switch {
		// If the disk failed during COMMIT, the commit record may be in the log nevertheless.
		case errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_IOERR:
			err = fmt.Errorf("%w: %w", engine.ErrUnknownCommit, err)
		case s.db.writer.open.members > 1: // any member may have caused the failure
			err = engine.ErrAlone
		}
		s.rollback()
	}
	s.endGroup(err)
	return err
}

func (s *session) rollback() {
	// An error means that SQLite has already rolled back by itself.
	_, _ = s.exec(context.Background(), "ROLLBACK", nil)
}

func (s *session) endGroup(err error) {
	g := s.db.writer.open
	s.db.writer.open, s.begun = nil, false
	g.err = err
	close(g.done)
}

// endWriting rolls back uncommitted writes and returns the connection. In a shared transaction this also rolls back
// the writes of other members.
func (s *session) endWriting(broken bool) (again error) {
	if s.conn == nil {
		return nil // another member commits, or has committed
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
