package api

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/makola/makola/internal/problem"
)

// Sizes of the request bodies that a node has in memory at once. A body of at most moneyBody bytes is small, whatever
// its endpoint, so that a payout never waits for uploads of contacts.
const (
	smallRoom  = 16 << 20      // total bytes of small bodies
	smallShare = smallRoom / 4 // bytes of one tenant's small bodies: about 10,000 ordinary requests
	largeRoom  = 64 << 20      // total bytes of larger bodies
	largeShare = 2 * bulkBody  // bytes of one tenant's larger bodies: two bodies
	roomWithin = 2 * time.Second
)

// room limits the memory of request bodies, in bytes. Each tenant may use at most its share.
type room struct {
	share   int64
	mu      sync.Mutex
	free    int64
	of      map[string]int64
	changed chan struct{} // closed when bytes are returned; nil if nobody waits
}

func newRoom(size, share int64) *room {
	return &room{share: share, free: size, of: map[string]int64{}}
}

// try reserves n bytes for a tenant and returns nil. If there is no room, it returns a channel that is closed when
// bytes are returned.
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

// take reserves n bytes for a tenant. It waits until ctx ends, for at most roomWithin.
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

// give returns n bytes of a tenant.
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

// scans limits the scanning of large bodies to half of the processors. A running scan does not yield its processor.
// Scans on all processors would delay each step of a payout by 10 ms. The large room limits the number of scans
// that wait.
type scans chan struct{}

func newScans() scans { return make(scans, max(1, runtime.GOMAXPROCS(0)/2)) }

// do runs the scan of a body of size bytes. The scan of a large body first waits for a free slot.
func (s scans) do(size int, scan func()) {
	if size > moneyBody {
		s <- struct{}{}
		defer func() { <-s }()
	}
	scan()
}

// held is the memory that a call has reserved in a room.
type held struct {
	room  *room
	of    string
	bytes int64
}

// The maximum sizes of bodies, in bytes. Each endpoint has one of them.
const (
	moneyBody = 64 << 10
	bulkBody  = 4 << 20
)
