package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
)

const (
	// marksAtOnce is how many small campaigns may be marked with their charge and not yet submitted: as many as have
	// a worker. A crash leaves no more of them unknown than of campaigns that a worker marks.
	marksAtOnce = smallWorkers
	// marksKept is the age from which a mark counts no more: this node has lost its job.
	marksKept = time.Minute
	// drainFor bounds the wait for marked campaigns when the node stops.
	drainFor = 10 * time.Second
)

// sendingMarks are the campaigns that are marked with their charge and that this node has not submitted yet.
type sendingMarks struct {
	mu     sync.Mutex
	at     map[string]time.Duration // by campaign; read from Elapsed
	closed bool
	empty  chan struct{} // closed when the last mark ends
}

// begin adds a campaign, or returns false when there is no room.
func (s *sendingMarks) begin(c *clock.Clock, campaign string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.Elapsed()
	if len(s.at) >= marksAtOnce {
		s.forgetLocked(now)
	}
	if s.closed || len(s.at) >= marksAtOnce {
		return false
	}
	if s.at == nil {
		s.at = map[string]time.Duration{}
	}
	s.at[campaign] = now
	return true
}

// forgetLocked drops marks whose jobs this node has lost: nothing ends them.
func (s *sendingMarks) forgetLocked(now time.Duration) {
	for id, at := range s.at {
		if now-at > marksKept {
			delete(s.at, id)
		}
	}
}

func (s *sendingMarks) end(campaign string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, campaign)
	s.tellLocked()
}

// tellLocked ends the wait of drain when no mark is left.
func (s *sendingMarks) tellLocked() {
	if s.closed && len(s.at) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// drain refuses further marks and waits until the last ends.
func (s *sendingMarks) drain(ctx context.Context, c *clock.Clock) {
	s.mu.Lock()
	s.closed = true
	s.forgetLocked(c.Elapsed())
	s.tellLocked()
	if len(s.at) > 0 && s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	if empty == nil {
		return
	}
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
