package webhook

import (
	"sync"
	"time"
)

const (
	maxPerHost     = 64 // concurrent deliveries to a host, of all tenants
	maxPerReceiver = 32 // of one tenant to a quick host; the tenant's other deliveries keep workers if the host stops responding
	leastAtOnce    = 2  // to a receiver that is unknown or does not respond
)

// slow is the duration of an attempt from which a receiver counts as slow.
const slow = time.Second

// traffic measures the speed of each receiver and limits the connections to slow ones. A receiver is a host and a
// tenant. If another tenant's addresses at the same host are slow, this tenant's addresses need not be slow.
type traffic struct {
	mu    sync.Mutex
	paces map[receiver]*pace
}

type receiver struct{ tenant, host string }

func newTraffic() traffic { return traffic{paces: map[receiver]*pace{}} }

// pace is the usual duration of attempts at a receiver.
type pace struct {
	usual time.Duration // moving average of an attempt
	last  time.Time
}

// pacesKept is the maximum number of receivers whose pace is kept.
const pacesKept = 10_000

// limit returns the number of concurrent deliveries to a receiver. An unknown receiver starts with few.
func (t *traffic) limit(tenant, host string) int {
	usual, known := t.usual(tenant, host)
	switch {
	case !known:
		return leastAtOnce
	case usual < 250*time.Millisecond:
		return maxPerReceiver
	case usual < slow:
		return 16
	case usual < 4*time.Second:
		return 4
	}
	return leastAtOnce
}

// pool returns the pool of a receiver's deliveries.
func (t *traffic) pool(tenant, host string) int {
	usual, known := t.usual(tenant, host)
	switch {
	case !known:
		return newPool
	case usual < slow:
		return quickPool
	}
	return slowPool
}

func (t *traffic) usual(tenant, host string) (usual time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.paces[receiver{tenant, host}]
	if p == nil {
		return 0, false
	}
	return p.usual, true
}

// note stores how long an attempt took.
func (t *traffic) note(tenant, host string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	p := t.paces[receiver{tenant, host}]
	if p == nil {
		if len(t.paces) >= pacesKept {
			forgetPaces(t.paces, now)
		}
		t.paces[receiver{tenant, host}] = &pace{usual: took, last: now}
		return
	}
	p.usual += (took - p.usual) / 4
	p.last = now
}

// forgetPaces deletes the receivers that were not used for ten minutes. If that is not enough, it deletes others
// until a quarter is free.
func forgetPaces(paces map[receiver]*pace, now time.Time) {
	for key, p := range paces {
		if now.Sub(p.last) > 10*time.Minute {
			delete(paces, key)
		}
	}
	for key := range paces {
		if len(paces) <= pacesKept*3/4 {
			return
		}
		delete(paces, key)
	}
}
