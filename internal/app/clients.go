package app

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// moreClients are connections beyond the limit that are answered still: probes and providers' callbacks are, whatever
// customers do, and everybody else is told to come back.
const moreClients = 64

// clients are the connections of a listener: at most so many, because each takes memory and a descriptor, which the
// database and the providers need, too. Of connections beyond that, the one that was idle for the longest ends.
type clients struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]*list.Element // of idle; nil of one that has a request
	idle *list.List                 // the one that was idle for the longest first
}

func newClients(most int) *clients {
	return &clients{most: most, open: map[net.Conn]*list.Element{}, idle: list.New()}
}

// crowdedKey marks what arrives on a connection beyond the limit.
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
	c.open[conn] = c.idle.PushBack(conn) // it has said nothing yet
	return ctx
}

// changed is http.Server.ConnState.
func (c *clients) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, known := c.open[conn]
	if !known {
		return
	}
	switch state {
	case http.StateActive:
		if element != nil {
			c.idle.Remove(element)
		}
		c.open[conn] = nil
	case http.StateIdle:
		if element == nil {
			c.open[conn] = c.idle.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		if element != nil {
			c.idle.Remove(element)
		}
		delete(c.open, conn)
	}
}

// forgetLocked ends an idle connection.
func (c *clients) forgetLocked(conn net.Conn) {
	c.idle.Remove(c.open[conn])
	delete(c.open, conn)
	hangUp(conn)
}

// hangUp closes a connection without a word: TLS would wait for a peer that does not read.
func hangUp(conn net.Conn) {
	if encrypted, is := conn.(*tls.Conn); is {
		conn = encrypted.NetConn()
	}
	_ = conn.Close()
}

// crowded says whether a request came on a connection beyond the limit.
func crowded(r *http.Request) bool {
	marked, _ := r.Context().Value(crowdedKey{}).(bool)
	return marked
}
