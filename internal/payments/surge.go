package payments

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
)

// When many payouts come at once they are taken in first, and questions about
// those that were answered already wait. That lasts for a moment at most, and
// comes again only after a pause: under a load that stays, what was accepted is
// settled as fast as new requests come.
const (
	surgeFrom  = 64 // payouts whose requests wait: a surge begins
	surgeBelow = 16 // and ends when fewer do for calmTime
	calmTime   = 200 * time.Millisecond
	surgeTime  = 15 * time.Second // the longest
	surgePause = time.Minute      // from one's begin to the next's
)

// surge knows whether there is one.
type surge struct {
	clock *clock.Clock

	mu    sync.Mutex
	here  int       // payouts whose requests wait
	until time.Time // the end of the surge, if no calm ends it
	next  time.Time // none begins before
	calm  time.Time // since when fewer than surgeBelow wait; zero: they do not
}

// enter counts a request in.
func (s *surge) enter() {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here++
	if s.here == surgeBelow {
		if !s.lasts(now) {
			s.until = time.Time{}
		}
		s.calm = time.Time{}
	}
	// A time that is further off was before the clock was set back.
	if off := s.next.Sub(now); s.here >= surgeFrom && (off <= 0 || off > surgePause) {
		s.until, s.next = now.Add(surgeTime), now.Add(surgePause)
	}
}

// leave counts it out.
func (s *surge) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here--
	if s.here == surgeBelow-1 {
		s.calm = s.clock.Now()
	}
}

// on says whether there is a surge now.
func (s *surge) on() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.until.IsZero() && s.lasts(s.clock.Now())
}

func (s *surge) lasts(now time.Time) bool {
	left := s.until.Sub(now)
	return left > 0 && left <= surgeTime && (s.calm.IsZero() || now.Sub(s.calm) < calmTime)
}
