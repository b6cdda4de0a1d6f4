// Package outbound makes HTTP/1.1 requests to providers and to the receivers of webhooks. An exchange runs in its
// caller's goroutine, on a connection that no other request uses at the same time. It is therefore certain whether a
// byte of the request may have left this machine. For money this is the difference between "not sent" and "unknown".
// A request costs one write and no switch between goroutines. No request is repeated or redirected, and there are no
// cookies. net/http encodes and parses the messages.
//
// Files: outbound.go (the client), proxy.go (tunnels through an egress proxy), address.go (how addresses are
// encoded), quiet_*.go (whether an idle connection is still open).
package outbound

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// Options configure a Client. All are required unless noted.
type Options struct {
	Dial      Dial          // opens connections, such as Proxy.Dial
	TLS       *tls.Config   // for https; ServerName is set for each host
	Handshake time.Duration // maximum time of a TLS handshake
	PerHost   int           // concurrent exchanges with one host; further callers wait
	Kept      int           // maximum number of idle connections, over all hosts
	// KeptFor is how long an idle connection is kept. It should be shorter than the time for which servers keep idle
	// connections. A request on a connection that the server is closing gets no response.
	KeptFor time.Duration

	HeadBytes int64 // maximum size of a response's head
	BodyBytes int64 // maximum size of a response's body; a longer one is cut
	// BodyTime is the maximum time for reading the body after the head arrived. If it is zero, only the time of the
	// whole exchange counts.
	BodyTime time.Duration
}

// Answer is the result of an exchange.
type Answer struct {
	Status int // 0: no response
	Header http.Header
	Body   []byte // the part that arrived, up to BodyBytes
	// Written reports whether any byte of the request may have left this machine. False proves that none did and that
	// none will.
	Written bool
	// Err is the reason for a missing or incomplete response. If Status is set, the head arrived completely, and Body
	// has the bytes after it.
	Err error
}

// The reasons for a missing or incomplete response. Errors of the network and of the caller's context are possible,
// too.
var (
	ErrTimeout = errors.New("no answer in time")
	ErrClosed  = errors.New("connection closed without an answer")
	ErrTooLong = errors.New("answer too long")
)

// Client makes requests and keeps idle connections.
type Client struct {
	opts Options

	mu     sync.Mutex
	hosts  map[string]*host // by scheme and address
	kept   int              // idle connections of all hosts
	sweep  *time.Timer      // closes connections that were idle for too long; nil: none is idle
	closed bool
}

// host is one destination and its connections.
type host struct {
	slots chan struct{} // a semaphore with one entry for each running exchange
	users int           // number of running and waiting exchanges
	idle  []*conn       // the last one was used most recently
}

// New returns a Client without connections.
func New(o Options) *Client {
	return &Client{opts: o, hosts: map[string]*host{}}
}

// Close closes the idle connections. From then on none are kept.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.dropIdleLocked(time.Now().Add(time.Hour))
}

// Do sends r and waits for the response, for at most timeout and until r's context ends. It never repeats r, so r's
// body is read once.
func (c *Client) Do(r *http.Request, timeout time.Duration) Answer {
	ctx, deadline := r.Context(), time.Now().Add(timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	address, err := addressOf(r.URL)
	if err != nil {
		return Answer{Err: err}
	}
	message := messages.Get().(*bytes.Buffer)
	defer messages.Put(message)
	message.Reset()
	if err := r.Write(message); err != nil {
		return Answer{Err: fmt.Errorf("build request: %w", err)}
	}
	key := r.URL.Scheme + "://" + address
	h, err := c.enter(ctx, deadline, key)
	if err != nil {
		return Answer{Err: err}
	}
	defer c.leave(key, h)
	k := c.take(h, deadline)
	if k == nil {
		if k, err = c.connect(ctx, deadline, r.URL, address); err != nil {
			return Answer{Err: err}
		}
	}
	a, again := c.exchange(ctx, deadline, k, r, message.Bytes())
	if !again || !c.keep(h, k) {
		_ = k.Close()
	}
	return a
}

// messages is a pool of buffers for requests.
var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// enter waits for a free slot of the host.
func (c *Client) enter(ctx context.Context, deadline time.Time, key string) (*host, error) {
	c.mu.Lock()
	h := c.hosts[key]
	if h == nil {
		h = &host{slots: make(chan struct{}, c.opts.PerHost)}
		c.hosts[key] = h
	}
	h.users++
	c.mu.Unlock()
	select {
	case h.slots <- struct{}{}:
		return h, nil
	default:
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, ErrTimeout)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		return h, nil
	case <-ctx.Done():
		c.forget(key, h)
		return nil, context.Cause(ctx)
	}
}

func (c *Client) leave(key string, h *host) {
	<-h.slots
	c.forget(key, h)
}

// forget removes a host that has neither requests nor connections.
func (c *Client) forget(key string, h *host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.users--
	if h.users == 0 && len(h.idle) == 0 {
		delete(c.hosts, key)
	}
}

// take returns the connection that was used most recently, with its deadline set. It returns nil if there is none or
// the connection is not usable.
func (c *Client) take(h *host, deadline time.Time) *conn {
	for {
		c.mu.Lock()
		if len(h.idle) == 0 {
			c.mu.Unlock()
			return nil
		}
		last := len(h.idle) - 1
		k := h.idle[last]
		h.idle[last], h.idle = nil, h.idle[:last]
		c.kept--
		c.mu.Unlock()
		if time.Since(k.since) < c.opts.KeptFor && k.SetDeadline(deadline) == nil && quiet(k.socket) {
			return k
		}
		_ = k.Close()
	}
}

// keep stores an idle connection. It returns false if there is no room.
func (c *Client) keep(h *host, k *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.kept >= c.opts.Kept {
		return false
	}
	k.since = time.Now()
	h.idle = append(h.idle, k)
	c.kept++
	if c.sweep == nil {
		c.sweep = time.AfterFunc(c.opts.KeptFor, c.expire)
	}
	return true
}

// expire closes connections that were idle for too long. It runs again while any connection is idle.
func (c *Client) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropIdleLocked(time.Now().Add(-c.opts.KeptFor))
	c.sweep = nil
	if c.kept > 0 {
		c.sweep = time.AfterFunc(c.opts.KeptFor, c.expire)
	}
}

// dropIdleLocked closes the connections that have been idle since before the given time.
func (c *Client) dropIdleLocked(before time.Time) {
	for key, h := range c.hosts {
		n := 0
		for n < len(h.idle) && h.idle[n].since.Before(before) {
			_ = h.idle[n].Close()
			n++
		}
		c.kept -= n
		h.idle = slices.Delete(h.idle, 0, n)
		if h.users == 0 && len(h.idle) == 0 {
			delete(c.hosts, key)
		}
	}
}

// exchange sends the request and reads the response before k's deadline. again reports whether the connection can be
// reused.
func (c *Client) exchange(ctx context.Context, deadline time.Time, k *conn, r *http.Request, message []byte) (a Answer, again bool) {
	stop := context.AfterFunc(ctx, func() { _ = k.SetDeadline(longAgo) })
	defer func() {
		if !stop() { // ctx has ended, which may set the connection's deadline at any time
			again = false
		}
		if a.Err != nil {
			a.Err = reason(ctx, a.Err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return Answer{Err: err}, false
	}
	a.Written = true
	if _, a.Err = k.Write(message); a.Err != nil {
		return a, false
	}
	response, err := k.head(r, c.opts.HeadBytes)
	if err != nil {
		a.Err = err
		return a, false
	}
	defer func() { _ = response.Body.Close() }()
	a.Status, a.Header = response.StatusCode, response.Header
	if c.opts.BodyTime > 0 {
		if soon := time.Now().Add(c.opts.BodyTime); soon.Before(deadline) {
			_ = k.SetDeadline(soon)
		}
	}
	a.Body, a.Err = body(response, c.opts.BodyBytes)
	if a.Err != nil {
		return a, false
	}
	return a, !response.Close && a.Status != http.StatusSwitchingProtocols && k.in.Buffered() == 0
}

// body reads a response's body to its end, or up to most bytes.
func body(r *http.Response, most int64) ([]byte, error) {
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, most)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r.Body, most+1))
	if err == nil && int64(b.Len()) > most {
		err = ErrTooLong
		b.Truncate(int(most))
	}
	return b.Bytes(), err
}

// reason converts a failure to an error for the caller.
func reason(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	// A dialer may report its deadline before ctx does, with an error of its own.
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	}
	return err
}

// conn is a connection with its read buffer.
type conn struct {
	net.Conn
	socket net.Conn // the TCP connection under all TLS
	left   io.LimitedReader
	in     *bufio.Reader
	since  time.Time // idle since
}

func newConn(socket net.Conn) *conn {
	k := &conn{Conn: socket, socket: bottom(socket)}
	k.left.R = socket
	k.in = bufio.NewReader(&k.left)
	return k
}

var longAgo = time.Unix(1, 0)

// connect opens a connection and sets its deadline. It writes nothing of the request.
func (c *Client) connect(ctx context.Context, deadline time.Time, u *url.URL, address string) (*conn, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, ErrTimeout)
	defer cancel()
	socket, err := c.opts.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, reason(ctx, err)
	}
	k := newConn(socket)
	if u.Scheme == "https" {
		if k.Conn, err = c.secure(ctx, socket, u.Hostname()); err != nil {
			_ = socket.Close()
			return nil, reason(ctx, err)
		}
		k.left.R = k.Conn
	}
	return k, k.SetDeadline(deadline)
}

func (c *Client) secure(ctx context.Context, socket net.Conn, name string) (net.Conn, error) {
	config := c.opts.TLS.Clone()
	config.ServerName = name
	ctx, cancel := context.WithTimeout(ctx, c.opts.Handshake)
	defer cancel()
	t := tls.Client(socket, config)
	return t, t.HandshakeContext(ctx)
}

// notices is the maximum number of 1xx responses before the final response.
const notices = 5

// head reads the head of the response to r, up to most bytes.
func (k *conn) head(r *http.Request, most int64) (*http.Response, error) {
	k.left.N = most
	for range notices + 1 {
		response, err := http.ReadResponse(k.in, r)
		switch {
		case err != nil && k.left.N <= 0:
			return nil, ErrTooLong
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, ErrClosed
		case err != nil:
			return nil, err
		case response.StatusCode >= 200, response.StatusCode == http.StatusSwitchingProtocols:
			k.left.N = math.MaxInt64 // the body has its own limit
			return response, nil
		}
	}
	return nil, errors.New("too many 1xx responses")
}
