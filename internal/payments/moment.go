package payments

import (
	"time"

	"github.com/makola/makola/internal/clock"
)

// A moment is a time on this process's monotonic clock. Setting the machine's clock does not change it. It is
// meaningless in another process or after a restart. The zero moment is unset.
type moment time.Duration

// momentOf returns the current moment.
func momentOf(c *clock.Clock) moment {
	_, now := readingOf(c)
	return now
}

// readingOf returns the wall clock's time and the moment of one reading. A clock begins one nanosecond after the zero
// moment.
func readingOf(c *clock.Clock) (time.Time, moment) {
	wall, passed := c.Reading()
	return wall, moment(passed) + 1
}

// IsZero reports whether the moment is unset.
func (m moment) IsZero() bool { return m == 0 }

// Sub returns the duration from then to m.
func (m moment) Sub(then moment) time.Duration { return time.Duration(m - then) }

// Add returns the moment d later.
func (m moment) Add(d time.Duration) moment { return m + moment(d) }

// elapsed returns the Elapsed of the clock at m.
func (m moment) elapsed() time.Duration { return time.Duration(m) - 1 }
