package mtn

import (
	"sync"
	"time"
)

// MTN documents that a delivery notification is refused too late (410) and too
// soon after the one before (429), but no times. These are ours.
const (
	notifyFor   = 24 * time.Hour // after the movement succeeded
	notifyEvery = time.Minute    // for one movement, through one product
)

// notified keeps when each movement last had a delivery notification.
type notified struct {
	mu   sync.Mutex
	last map[string]time.Time // by product, account and reference
}

// claim reports whether a movement may have a notification at now, and records it. It forgets older ones, so that the
// map holds one minute of notifications.
func (n *notified) claim(movement string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, at := range n.last {
		if now.Sub(at) >= notifyEvery {
			delete(n.last, key)
		}
	}
	if _, recent := n.last[movement]; recent {
		return false
	}
	n.last[movement] = now
	return true
}
