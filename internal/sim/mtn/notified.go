package mtn

import (
	"sync"
	"time"
)

// MTN documents that it refuses a delivery notification that comes too late (410), or too soon after the previous one
// (429). It documents no times, so these are ours.
const (
	notifyFor   = 24 * time.Hour // time after the movement succeeded
	notifyEvery = time.Minute    // minimum interval for one movement through one product
)

// notified stores when each movement last had a delivery notification.
type notified struct {
	mu   sync.Mutex
	last map[string]time.Time // by product, account and reference
}

// claim reports whether a movement may have a notification now, and records it. It deletes older records, so that the
// map has only one minute of notifications.
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
