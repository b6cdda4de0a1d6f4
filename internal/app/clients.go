package app

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// moreClients is the number of connections beyond the limit that still get an answer. Probes and providers' callbacks
// are handled. Other clients get a 503.
const moreClients = 64

// clients are the connections of a listener, in a limited number. Each takes memory and a descriptor, which the
// database and the providers need, too. Beyond the limit, the longest idle connection ends.
type clients struct {
	most  int
	first time.Duration // the time for a new connection's first bytes after the server began to stop
	rest  chan struct{} // signal with a capacity of one: a connection is idle, or has ended

	mu   sync.Mutex
	open map[net.Conn]client
	idle *list.List // the longest idle connection first
}

// firstRequest is the time for a first request, as in net/http.
const firstRequest = 5 * time.Second

// client is one connection.
type client struct {
	place *list.Element // element in idle; nil during a request
	came  time.Time     // zero after the first request
}

func newClients(most int) *clients {
	return &clients{most: most, first: firstRequest, rest: make(chan struct{}, 1), open: map[net.Conn]client{}, idle: list.New()}
}

// crowdedKey is the context key that marks a connection beyond the limit.
type crowdedKey struct{}

// arrive is http.Server.ConnContext: it makes room for a connection, or marks or ends it.
func (c *clients) arrive(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	for oldest := c.idle.Front(); oldest != nil && len(c.open) >= c.most; oldest = c.idle.Front() {
		c.forgetLocked(oldest.Value.(net.Conn))
	}
	switch {
	case len(c.open) >= c.most+moreClients:
		hangUp(conn)
		return ctx
	case len(c.open) >= c.most:
		ctx = context.WithValue(ctx, crowdedKey{}, true)
	}
	c.open[conn] = client{place: c.idle.PushBack(conn), came: time.Now()}
	return ctx
}

// changed is http.Server.ConnState.
func (c *clients) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known := c.open[conn]
	if !known {
		return
	}
	switch state {
	case http.StateActive:
		if one.place != nil {
			c.idle.Remove(one.place)
		}
		c.open[conn] = client{}
	case http.StateIdle:
		if one.place == nil {
			c.open[conn] = client{place: c.idle.PushBack(conn)}
		}
		c.tellLocked()
	case http.StateClosed, http.StateHijacked:
		if one.place != nil {
			c.idle.Remove(one.place)
		}
		delete(c.open, conn)
		c.tellLocked()
	}
}

// tellLocked signals the callers of answered.
func (c *clients) tellLocked() {
	select {
	case c.rest <- struct{}{}:
	default: // the signal is already pending
	}
}

// answered waits until no connection has a request, and every new connection had time for its first request. It
// also returns when ctx ends. It runs before http.Server.Shutdown, which drops a request that it has just read.
func (c *clients) answered(ctx context.Context) {
	for {
		due, more := c.due()
		if !more {
			return
		}
		timer := time.NewTimer(due)
		select {
		case <-c.rest:
		case <-timer.C:
		case <-ctx.Done():
			more = false
		}
		timer.Stop()
		if !more {
			return
		}
	}
}

// due reports whether a connection has a request or may still send its first. It also returns the time after which to
// look again if no connection becomes idle before.
func (c *clients) due() (after time.Duration, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	after = c.first
	for _, one := range c.open {
		left := c.first - time.Since(one.came)
		switch {
		case one.place == nil:
			more = true
		case !one.came.IsZero() && left > 0:
			after, more = min(after, left), true
		}
	}
	return after, more
}

// forgetLocked removes and closes an idle connection.
func (c *clients) forgetLocked(conn net.Conn) {
	c.idle.Remove(c.open[conn].place)
	delete(c.open, conn)
	hangUp(conn)
}

// hangUp closes a connection without TLS's closing message, because writing it would wait for a peer that does not
// read.
func hangUp(conn net.Conn) {
	_ = below(conn).Close()
}

// crowded reports whether a request came on a connection beyond the limit.
func crowded(r *http.Request) bool {
	marked, _ := r.Context().Value(crowdedKey{}).(bool)
	return marked
}
