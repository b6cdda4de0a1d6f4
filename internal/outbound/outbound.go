// Package outbound makes HTTP/1.1 requests to providers and to the receivers of webhooks. An exchange runs in its
// caller's goroutine, on a connection that no other request uses at the same time. So it is certain whether a byte of
// the request may have left this machine, which for money is the difference between "not sent" and "unknown". A
// request costs one write and no switch between goroutines. Nothing is replayed, redirected or remembered. net/http
// writes and reads the messages themselves.
//
// Files: outbound.go (the client), proxy.go (tunnels through an egress proxy), address.go (how addresses are encoded),
// quiet_*.go (whether an idle connection is still open).
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
	Dial      Dial          // such as Proxy.Dial
	TLS       *tls.Config   // of https; ServerName is set for each host
	Handshake time.Duration // bounds that of TLS
	PerHost   int           // exchanges at once with one host; more callers wait
	Kept      int           // connections kept for later, over all hosts
	// KeptFor is how long one is kept. It should be shorter than the other
	// side keeps it: a request that crosses the closing gets no answer.
	KeptFor time.Duration

	HeadBytes int64 // of an answer
	BodyBytes int64 // of an answer; a longer one is cut
	// BodyTime bounds the body once the head is here; zero: the time of the
	// whole exchange does.
	BodyTime time.Duration
}

// Answer is what came back.
type Answer struct {
	Status int // 0: no answer
	Header http.Header
	Body   []byte // what of it came, up to BodyBytes
	// Written reports whether any byte of the request may have left this
	// machine. False is proof that none did, and that none will.
	Written bool
	// Err is the reason for a missing or incomplete response. With a Status the head arrived whole, and Body has the
	// bytes after it.
	Err error
}

// The reasons for a missing or incomplete response, in addition to those of the network and of the caller's context.
var (
	ErrTimeout = errors.New("no answer in time")
	ErrClosed  = errors.New("connection closed without an answer")
	ErrTooLong = errors.New("answer too long")
)

// Client holds the connections.
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
	slots chan struct{} // an exchange under way holds one
	users int           // exchanges that hold one or wait
	idle  []*conn       // the latest used last
}

// New makes a Client without connections.
func New(o Options) *Client {
	return &Client{opts: o, hosts: map[string]*host{}}
}

// Close drops the idle connections and keeps none from now on.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.dropIdleLocked(time.Now().Add(time.Hour))
}

// Do sends r and waits for the answer: at most for timeout, and no longer than
// r's context. It never replays r, so that its body is read once.
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

// messages are buffers for requests.
var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// enter waits for one of the host's slots.
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

// forget drops a host without a request or a connection.
func (c *Client) forget(key string, h *host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.users--
	if h.users == 0 && len(h.idle) == 0 {
		delete(c.hosts, key)
	}
}

// take gives the connection that was used last, its deadline set, or nil when
// none is fit for use.
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

// keep puts a connection aside, unless there is no room.
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

// expire closes connections that were idle for too long, and runs again while any is idle.
func (c *Client) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropIdleLocked(time.Now().Add(-c.opts.KeptFor))
	c.sweep = nil
	if c.kept > 0 {
		c.sweep = time.AfterFunc(c.opts.KeptFor, c.expire)
	}
}

// dropIdleLocked closes the connections that are idle since before then.
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

// exchange sends the request and reads the response within k's deadline. again reports whether the connection can be
// reused.
func (c *Client) exchange(ctx context.Context, deadline time.Time, k *conn, r *http.Request, message []byte) (a Answer, again bool) {
	stop := context.AfterFunc(ctx, func() { _ = k.SetDeadline(longAgo) })
	defer func() {
		if !stop() { // its deadline may yet strike the next request
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

// body reads an answer's body to its end, or to most bytes.
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

// reason maps a failure to an error for the caller.
func reason(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	// Dialing may see its deadline before ctx does, and has an error of its own for it.
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	}
	return err
}

// conn is a connection with its read buffer.
type conn struct {
	net.Conn
	socket net.Conn // below all TLS
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

// connect opens a connection whose deadline is set. Nothing of the request is
// written by it.
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

// notices is how many answers 1xx may come before the answer.
const notices = 5

// head reads the head of the answer to r, of at most most bytes.
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
			k.left.N = math.MaxInt64 // the body has its own bound
			return response, nil
		}
	}
	return nil, errors.New("too many answers 1xx")
}
