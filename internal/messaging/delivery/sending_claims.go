package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
)

const (
	// claimsAtOnce is the maximum number of small campaigns that are claimed in the transaction of their charge and
	// not submitted yet. It equals the number of workers. The limit bounds how many campaigns a crash leaves unknown.
	claimsAtOnce = smallWorkers
	// claimLife is the age after which a claim is ignored, because this node has lost its job.
	claimLife = time.Minute
	// drainFor limits the wait for claimed campaigns when the node stops.
	drainFor = 10 * time.Second
)

// sendingClaims has the campaigns that were claimed in the transaction of their charge and that this node has not
// submitted yet.
type sendingClaims struct {
	mu     sync.Mutex
	at     map[string]time.Duration // start of the claim by campaign, from Elapsed
	closed bool
	empty  chan struct{} // closed when the last claim ends
}

// begin adds a campaign, or returns false if the limit is reached.
func (s *sendingClaims) begin(c *clock.Clock, campaign string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.Elapsed()
	if len(s.at) >= claimsAtOnce {
		s.forgetLocked(now)
	}
	if s.closed || len(s.at) >= claimsAtOnce {
		return false
	}
	if s.at == nil {
		s.at = map[string]time.Duration{}
	}
	s.at[campaign] = now
	return true
}

// forgetLocked removes claims whose jobs this node has lost.
func (s *sendingClaims) forgetLocked(now time.Duration) {
	for id, at := range s.at {
		if now-at > claimLife {
			delete(s.at, id)
		}
	}
}

func (s *sendingClaims) end(campaign string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, campaign)
	s.signalLocked()
}

// signalLocked ends the wait of drain if no claim is left.
func (s *sendingClaims) signalLocked() {
	if s.closed && len(s.at) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// drain refuses further claims and waits until the last one ends.
func (s *sendingClaims) drain(ctx context.Context, c *clock.Clock) {
	s.mu.Lock()
	s.closed = true
	s.forgetLocked(c.Elapsed())
	s.signalLocked()
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
