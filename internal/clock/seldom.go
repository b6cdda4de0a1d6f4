package clock

import (
	"sync"
	"time"
)

// Seldom lets the first of many alike through, and after that one in each
// interval: an outage is a line of the log a minute. The zero value lets one
// through a minute.
type Seldom struct {
	mu   sync.Mutex
	last time.Time
	held int
}

// seldomTime is the interval.
const seldomTime = time.Minute

// May reports whether this call may proceed, and returns how many were stopped since the last one that could.
func (s *Seldom) May(now time.Time) (missed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && now.Sub(s.last).Abs() < seldomTime {
		s.held++
		return 0, false
	}
	missed, s.held, s.last = s.held, 0, now
	return missed, true
}
