package route

import (
	"sync"
	"time"
)

// Callbacks counts the callbacks of a provider since the installation began.
type Callbacks struct {
	Verified, Refused     int64
	VerifiedAt, RefusedAt time.Time // the last; zero: none
}

// railKey names a rail.
type railKey struct{ provider, mode string }

// callbackCounts are the counts of a node that are not stored yet.
type callbackCounts struct {
	mu   sync.Mutex
	open map[railKey]Callbacks
	new  chan struct{} // capacity 1: something is to be done
}

func (c *callbackCounts) init() {
	c.open, c.new = map[railKey]Callbacks{}, make(chan struct{}, 1)
}

// take returns the counts and resets them.
func (c *callbackCounts) take() map[railKey]Callbacks {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.open
	c.open = map[railKey]Callbacks{}
	return taken
}
