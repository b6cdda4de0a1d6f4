package sqlite

import (
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// GroupMost is the size of a full group.
const GroupMost = groupMost

// SetGroupTime sets the age at which a group commits.
func (d *DB) SetGroupTime(age time.Duration) { d.writer.groupTime = age }

// BoundLog sets the size beyond which the log is begun anew, and how long new readers wait for that.
func (d *DB) BoundLog(limit int64, pause time.Duration) {
	d.log.limit, d.log.next, d.log.pause = limit, limit, pause
}

// InLine counts those who wait for the writer.
func (d *DB) InLine() int {
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return len(d.writer.line) + len(d.writer.bulk)
}

// Members counts the members of the open group. Its caller has the writer.
func (d *DB) Members() int { return d.writer.open.members }

// Wait takes a place in the line of the writer. The connection comes over turn.
func (d *DB) Wait() (turn chan *connection) {
	_, turn = d.writer.take(engine.Purpose{})
	return turn
}

// Decline hands a connection on unused.
func (d *DB) Decline(c *connection) { d.decline(c) }
