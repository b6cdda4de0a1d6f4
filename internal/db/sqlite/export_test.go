package sqlite

import (
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// GroupMost is the size of a full group.
const GroupMost = groupMost

// SetGroupTime sets the age at which a group commits.
func (d *DB) SetGroupTime(age time.Duration) { d.writer.groupTime = age }

// BoundLog sets the size above which the log starts again from its beginning, and for how long new readers then wait.
func (d *DB) BoundLog(limit int64, pause time.Duration) {
	d.log.limit, d.log.next, d.log.pause = limit, limit, pause
}

// InLine returns how many transactions wait for the writer.
func (d *DB) InLine() int {
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return len(d.writer.line) + len(d.writer.bulk)
}

// Members returns the number of members of the open group. The caller must have the writer.
func (d *DB) Members() int { return d.writer.open.members }

// Wait joins the line for the writer. The connection is received from turn.
func (d *DB) Wait() (turn chan *connection) {
	_, turn = d.writer.take(engine.Purpose{})
	return turn
}

// Decline passes an unused connection to the next one in the line.
func (d *DB) Decline(c *connection) { d.decline(c) }

// Open returns how many connections are open.
func (d *DB) Open() int { return d.pool.Stats().OpenConnections }
