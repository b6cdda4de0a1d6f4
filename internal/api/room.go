package api

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/makola/makola/internal/problem"
)

// Request bodies that are in memory at once on a node. A body of at most moneyBody bytes is small, whatever its
// endpoint, so that a payout never waits for contacts.
const (
	smallRoom  = 16 << 20      // bytes of small bodies
	smallShare = smallRoom / 4 // of them one tenant's: about 10,000 ordinary requests
	largeRoom  = 64 << 20      // bytes of larger bodies
	largeShare = 2 * bulkBody  // two bodies a tenant
	roomWithin = 2 * time.Second
)

// room is memory for request bodies, in bytes. A tenant has at most its share of it.
type room struct {
	share   int64
	mu      sync.Mutex
	free    int64
	of      map[string]int64
	changed chan struct{} // closed when bytes come back; nil without waiters
}

func newRoom(size, share int64) *room {
	return &room{share: share, free: size, of: map[string]int64{}}
}

// try takes n bytes for a tenant, or gives what to wait for.
func (r *room) try(tenant string, n int64) (wait <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free >= n && r.of[tenant]+n <= r.share {
		r.free -= n
		r.of[tenant] += n
		return nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// take waits for n bytes until ctx ends, for at most roomWithin.
func (r *room) take(ctx context.Context, tenant string, n int64) error {
	wait := r.try(tenant, n)
	if wait == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	for ; wait != nil; wait = r.try(tenant, n) {
		select {
		case <-wait:
		case <-ctx.Done():
			return problem.New(problem.Unavailable, "server_busy", "Too many requests are being read at once. Try again shortly")
		}
	}
	return nil
}

// give takes n bytes of a tenant back.
func (r *room) give(tenant string, n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += n
	if r.of[tenant] -= n; r.of[tenant] == 0 {
		delete(r.of, tenant)
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// scans limits the scanning of large bodies to half of the processors. A scan never waits. Scans on all processors
// would delay every step of payouts, providers and the database by 10 ms. The large room bounds the number of waiting
// scans.
type scans chan struct{}

func newScans() scans { return make(scans, max(1, runtime.GOMAXPROCS(0)/2)) }

// do runs the scan of a body of size bytes, a large one in its turn.
func (s scans) do(size int, scan func()) {
	if size > moneyBody {
		s <- struct{}{}
		defer func() { <-s }()
	}
	scan()
}

// held is the part of a room that a call has taken.
type held struct {
	room  *room
	of    string
	bytes int64
}

// The largest bodies, in bytes. A limit belongs to an endpoint.
const (
	moneyBody = 64 << 10
	bulkBody  = 4 << 20
)
