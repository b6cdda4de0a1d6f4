package app

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/makola/makola/internal/access"
)

// turnTime is the longest turn. Longer work waits for something other than a processor.
const turnTime = 20 * time.Millisecond

// turns limit the work for unknown connections, which have not yet carried a request with a key or of a session. A
// turn begins with arriving bytes, such as a TLS handshake or a hundred requests. It ends when the connection reads
// or writes again. There are as many turns at once as processors, and the addresses of clients take them in rotation.
// Without turns, thousands of handshakes would delay the requests of customers in Go's run queue.
type turns struct {
	trusted      []netip.Prefix // trusted proxies, whose connections need no turns
	unidentified *unidentified

	mu      sync.Mutex
	free    int
	waiting map[netip.Addr]*list.List // elements are chan struct{}, closed when the turn begins
	next    list.List                 // the addresses in waiting, the next one first
}

func newTurns(trusted []netip.Prefix) *turns {
	return &turns{trusted: trusted, unidentified: newUnidentified(mostUnidentified), free: runtime.GOMAXPROCS(0), waiting: map[netip.Addr]*list.List{}}
}

// take waits for a turn.
func (t *turns) take(from netip.Addr) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	queue := t.waiting[from]
	if queue == nil {
		queue = list.New()
		t.waiting[from] = queue
		t.next.PushBack(from)
	}
	begins := make(chan struct{})
	queue.PushBack(begins)
	t.mu.Unlock()
	<-begins
}

// give passes a turn to the next address, or returns it.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.next.Front()
	if first == nil {
		t.free++
		return
	}
	from := first.Value.(netip.Addr)
	queue := t.waiting[from]
	close(queue.Remove(queue.Front()).(chan struct{}))
	if queue.Len() > 0 {
		t.next.MoveToBack(first)
		return
	}
	t.next.Remove(first)
	delete(t.waiting, from)
}

// turnListener is a listener whose connections take turns.
type turnListener struct {
	net.Listener
	turns *turns
}

// Accept implements net.Listener.
func (l turnListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from := conn.RemoteAddr().String()
	if access.FromProxy(from, l.turns.trusted) {
		return conn, nil
	}
	limited := newTurnConn(conn, l.turns, access.ClientIP(from, nil, nil))
	if oldest := l.turns.unidentified.arrive(limited); oldest != nil {
		_ = oldest.Conn.Close() // its server notices the end at its next read or write
	}
	return limited, nil
}

// turnConn is a connection that takes turns and works on few requests at once, until it is known.
type turnConn struct {
	net.Conn
	turns  *turns
	from   netip.Addr
	known  chan struct{} // closed when it has carried a request with a key or of a session
	places chan struct{} // semaphore of concurrent requests until then

	knowOnce sync.Once
	place    *list.Element // in unidentified, whose mutex guards it and number
	number   uint64        // in the order of arrival

	mu   sync.Mutex
	over *time.Timer // ends the current turn; nil without a turn
}

func newTurnConn(conn net.Conn, t *turns, from netip.Addr) *turnConn {
	return &turnConn{Conn: conn, turns: t, from: from, known: make(chan struct{}), places: make(chan struct{}, keylessAnswers)}
}

// Read implements net.Conn. The bytes that it returns begin a turn.
func (c *turnConn) Read(b []byte) (int, error) {
	c.leave()
	n, err := c.Conn.Read(b)
	if n == 0 || c.isKnown() {
		return n, err
	}
	c.turns.take(c.from)
	c.mu.Lock()
	c.over = time.AfterFunc(turnTime, c.leave)
	c.mu.Unlock()
	return n, err
}

// Write implements net.Conn.
func (c *turnConn) Write(b []byte) (int, error) {
	c.leave()
	return c.Conn.Write(b)
}

// CloseWrite closes the sending half of the connection, as *net.TCPConn does. net/http needs it to refuse a request
// that it has not read.
func (c *turnConn) CloseWrite() error {
	if tcp, is := c.Conn.(*net.TCPConn); is {
		return tcp.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *turnConn) Close() error {
	c.leave()
	c.turns.unidentified.leave(c)
	return c.Conn.Close()
}

// begin waits until a request may be processed, at most until ctx ends. leave ends the processing.
func (c *turnConn) begin(ctx context.Context) (leave func(), begun bool) {
	select {
	case c.places <- struct{}{}:
		return func() { <-c.places }, true
	case <-c.known:
		return func() {}, true
	case <-ctx.Done():
		return nil, false
	}
}

// know ends the limits of a connection that carried a request with a key or of a session.
func (c *turnConn) know() {
	c.knowOnce.Do(func() {
		close(c.known)
		c.turns.unidentified.leave(c)
	})
}

func (c *turnConn) isKnown() bool {
	select {
	case <-c.known:
		return true
	default:
		return false
	}
}

// leave ends the turn that the connection has.
func (c *turnConn) leave() {
	c.mu.Lock()
	over := c.over
	c.over = nil
	c.mu.Unlock()
	if over != nil {
		over.Stop()
		c.turns.give()
	}
}
