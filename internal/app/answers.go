package app

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/makola/makola/internal/access"
)

// Limits of answers that their clients have not read yet. Each answer costs a goroutine, the state of its stream and
// its buffers, which answerCost counts, and the bytes of its text.
const (
	answerCost     = 16 << 10
	keylessCost    = 192 << 10 // bytes of an answer, with the requests that wait after it on the same connection
	nodeAnswers    = 32 << 20
	addressAnswers = 8 << 20
	connAnswers    = 4 << 20
	keylessAnswers = 8        // maximum number of answers at once on a connection without a key
	smallAnswer    = 4 << 10  // size up to which a client with a key may have any number of answers
	answerChunk    = 16 << 10 // bytes that a client must read in answerTime
	answerTime     = 10 * time.Second
	answerRest     = time.Second // number after which a newer answer of the same connection or address ends an older one
	sendBuffer     = 64 << 10    // buffer of a connection in the kernel, whose default is up to 4 MB
)

// answers are the answers in progress. If there are too many, the answer whose client last read longest ago ends. So
// clients that read are never refused. A trusted proxy carries many clients over one connection. So it has no limit
// for each connection, and an answer counts for the client's address. Only the answer ends, not the connection.
type answers struct {
	trusted []netip.Prefix
	time    time.Duration // time in which a client must take a chunk of its answer
	ended   func()        // counts an answer that ended unread

	mu        sync.Mutex
	node      pile
	addresses map[netip.Addr]*pile
	conns     map[net.Conn]*pile
}

// pile is a set of unread answers, ordered by the time at which their clients last read, oldest first.
type pile struct {
	waiting list.List
	bytes   int
}

func newAnswers(trusted []netip.Prefix, time time.Duration, ended func()) *answers {
	return &answers{trusted: trusted, time: time, ended: ended, addresses: map[netip.Addr]*pile{}, conns: map[net.Conn]*pile{}}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// serve answers a request within the limits of unread answers.
func (a *answers) serve(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if c, takes := below(conn).(*turnConn); takes {
		leave, comes := c.begin(r.Context())
		if !comes {
			return
		}
		defer leave()
	}
	one := &answer{ResponseWriter: w, all: a, control: http.NewResponseController(w), conn: conn, many: r.ProtoMajor > 1}
	if access.FromProxy(r.RemoteAddr, a.trusted) {
		one.conn = nil
	}
	one.from = access.ClientIP(r.RemoteAddr, r.Header.Values("X-Forwarded-For"), a.trusted)
	defer one.over()
	handler.ServeHTTP(one, r)
	one.finish()
}

// answer is the answer to one request.
type answer struct {
	http.ResponseWriter
	all     *answers
	control *http.ResponseController
	conn    net.Conn // nil for a trusted proxy
	from    netip.Addr
	many    bool // the connection carries many answers at once
	known   bool // the request had a valid key
	wrote   int
	counted bool // counted by the limits; other answers need no lock, which a flood would hold

	// The fields below are guarded by all.mu.
	cost   int
	at     time.Time // when the client last read a part of it
	places [3]*list.Element

	mu     sync.Mutex
	closed bool // the answer is complete, or was ended
}

// Known marks the answer as an answer to a request with a key. Small answers then have no cost, and the connection
// needs no further turns.
func (o *answer) Known() {
	o.known = true
	if c, takes := below(o.conn).(*turnConn); takes {
		c.know()
	}
}

// Unwrap returns the underlying writer for http.ResponseController.
func (o *answer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Write passes text on in chunks. The client has a time limit for each chunk.
func (o *answer) Write(text []byte) (n int, err error) {
	if !o.known || len(text) > smallAnswer {
		cost := keylessCost
		if o.known {
			cost = answerCost + len(text) // all answers share one copy of a public text
		}
		o.counted = true
		o.all.enter(o, cost)
	}
	for len(text) > 0 && err == nil {
		chunk := text[:min(len(text), answerChunk)]
		text = text[len(chunk):]
		o.within(o.all.time)
		var wrote int
		wrote, err = o.ResponseWriter.Write(chunk)
		n += wrote
		if o.counted {
			o.all.taken(o)
		}
	}
	o.wrote += n
	if err == nil {
		o.within(writeTimeout) // no time limit applies to the handler's next part
	}
	return n, err
}

// finish waits while the client reads the rest of the answer. On a connection with many answers the rest is
// still in a buffer of its stream, and counts until the client reads it.
func (o *answer) finish() {
	if o.wrote == 0 {
		return
	}
	o.within(o.all.time)
	if o.many {
		_ = o.control.Flush() // the client has disconnected and needs no answer
	}
}

// within sets the time within which the client must read some of the answer, unless the answer was ended.
func (o *answer) within(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		_ = o.control.SetWriteDeadline(time.Now().Add(d)) // only the writers of tests have no deadlines
	}
}

// over removes the answer from the limits. After that nothing ends the connection, because it may carry another
// request.
func (o *answer) over() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	if !o.counted {
		return
	}
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.all.leaveLocked(o)
}

// end ends an answer that its client does not read, and the client's connection.
func (o *answer) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	o.all.ended()
	if o.conn != nil {
		hangUp(o.conn)
		return
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(-time.Second)) // its write has failed already
}

// pilesLocked returns the piles of an answer.
func (a *answers) pilesLocked(o *answer) [3]*pile {
	piles := [3]*pile{&a.node, a.addresses[o.from], nil}
	if piles[1] == nil {
		piles[1] = &pile{}
		a.addresses[o.from] = piles[1]
	}
	if o.conn != nil {
		if piles[2] = a.conns[o.conn]; piles[2] == nil {
			piles[2] = &pile{}
			a.conns[o.conn] = piles[2]
		}
	}
	return piles
}

// enter counts an answer, or more bytes of it, and ends others if there are too many.
func (a *answers) enter(o *answer, cost int) {
	a.mu.Lock()
	var ends []*answer
	piles := a.pilesLocked(o)
	for i, p := range piles {
		if p == nil {
			continue
		}
		if o.places[i] == nil {
			o.places[i] = p.waiting.PushBack(o)
		}
		p.bytes += max(cost-o.cost, 0)
	}
	o.cost, o.at = max(cost, o.cost), time.Now()
	most := [3]int{nodeAnswers, addressAnswers, connAnswers}
	for i, p := range piles {
		for p != nil && p.bytes > most[i] {
			oldest := p.waiting.Front().Value.(*answer)
			if oldest == o || i > 0 && o.at.Sub(oldest.at) < answerRest {
				break
			}
			a.leaveLocked(oldest)
			ends = append(ends, oldest)
		}
	}
	a.mu.Unlock()
	for _, e := range ends {
		e.end()
	}
}

// taken records that the client read some of the answer.
func (a *answers) taken(o *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.places[0] == nil {
		return
	}
	o.at = time.Now()
	for i, p := range a.pilesLocked(o) {
		if o.places[i] != nil {
			p.waiting.MoveToBack(o.places[i])
		}
	}
}

func (a *answers) leaveLocked(o *answer) {
	if o.places[0] == nil {
		return
	}
	for i, p := range a.pilesLocked(o) {
		if o.places[i] != nil {
			p.waiting.Remove(o.places[i])
			p.bytes -= o.cost
			o.places[i] = nil
		}
	}
	o.cost = 0
	if p := a.addresses[o.from]; p.waiting.Len() == 0 {
		delete(a.addresses, o.from)
	}
	if p := a.conns[o.conn]; p != nil && p.waiting.Len() == 0 {
		delete(a.conns, o.conn)
	}
}

// withConn stores a connection in the context of its requests, and bounds the bytes that the kernel buffers for it.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	plain := below(conn)
	if c, takes := plain.(*turnConn); takes {
		plain = c.Conn
	}
	if tcp, is := plain.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(sendBuffer) // otherwise it keeps the kernel's default
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// below returns the connection under a TLS connection, or the connection itself.
func below(conn net.Conn) net.Conn {
	if encrypted, is := conn.(*tls.Conn); is {
		return encrypted.NetConn()
	}
	return conn
}
