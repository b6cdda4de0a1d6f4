package clock

import (
	"sync"
	"time"
)

// Seldom limits repeated events, such as log lines about an outage. It allows the first event, and then one
// event in each interval. The interval of the zero value is a minute.
type Seldom struct {
	mu   sync.Mutex
	last time.Time
	held int
}

// seldomTime is the interval of the zero value.
const seldomTime = time.Minute

// May reports whether this event is allowed, and returns the number of events that were suppressed since the
// last allowed one.
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
