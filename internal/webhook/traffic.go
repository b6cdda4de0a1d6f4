package webhook

import (
	"sync"
	"time"
)

const (
	maxPerHost   = 64 // deliveries at once to a quick receiver
	maxPerTenant = 32 // and to all those of a tenant whose receivers are quick
	leastAtOnce  = 2  // what one that does not answer keeps
)

// traffic knows how quick each receiver is, and the receivers of each tenant
// together, and gives the slow ones little.
type traffic struct {
	mu      sync.Mutex
	hosts   map[string]*pace
	tenants map[string]*pace
}

func newTraffic() traffic {
	return traffic{hosts: map[string]*pace{}, tenants: map[string]*pace{}}
}

// pace is how long attempts take.
type pace struct {
	usual time.Duration // moving average of an attempt
	last  time.Time
}

// pacesKept bounds the receivers that are remembered, and the tenants.
const pacesKept = 10_000

// limit is how many deliveries a receiver gets at once. One that is not known
// must prove itself first; one that does not answer keeps two of our slots.
func (t *traffic) limit(host string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.hosts[host]
	switch {
	case p == nil:
		return 8
	case p.usual < 250*time.Millisecond:
		return maxPerHost
	case p.usual < time.Second:
		return 16
	case p.usual < 4*time.Second:
		return 4
	}
	return leastAtOnce
}

// tenantLimit is how many deliveries a tenant gets at once, to all its receivers
// together: endless receivers that do not answer are worth what one is.
func (t *traffic) tenantLimit(tenant string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.tenants[tenant]
	switch {
	case p == nil, p.usual < 250*time.Millisecond:
		return maxPerTenant
	case p.usual < time.Second:
		return 16
	case p.usual < 4*time.Second:
		return 8
	}
	return leastAtOnce
}

// note remembers how long an attempt took.
func (t *traffic) note(tenant, host string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	notePace(t.hosts, host, took, now)
	notePace(t.tenants, tenant, took, now)
}

func notePace(paces map[string]*pace, key string, took time.Duration, now time.Time) {
	p := paces[key]
	if p == nil {
		if len(paces) >= pacesKept {
			forgetPaces(paces, now)
		}
		paces[key] = &pace{usual: took, last: now}
		return
	}
	p.usual += (took - p.usual) / 4
	p.last = now
}

// forgetPaces drops what was not used for ten minutes, or else any quarter.
func forgetPaces(paces map[string]*pace, now time.Time) {
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
