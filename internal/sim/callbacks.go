package sim

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/makola/makola/internal/outbound"
)

// Callback is one request from a simulated provider to Makola.
type Callback struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

const (
	callbackWorkers = 16 // number of callbacks that are sent at once
	callbackTime    = 10 * time.Second
)

// callbacks sends the providers' callbacks. Like the real providers, it sends each once and never repeats it,
// whatever the response is.
type callbacks struct {
	log    *slog.Logger
	client *outbound.Client
	mu     sync.Mutex
	work   *sync.Cond
	empty  *sync.Cond
	queue  []queuedCallback
	busy   int
	closed bool
	wg     sync.WaitGroup
}

type queuedCallback struct {
	Callback
	sent chan struct{} // not nil: closed when the callback was sent or given up
}

func newCallbacks(log *slog.Logger) *callbacks {
	c := &callbacks{log: log, client: outbound.New(outbound.Options{
		Dial:      (&net.Dialer{Timeout: callbackTime}).DialContext,
		TLS:       &tls.Config{MinVersion: tls.VersionTLS12},
		Handshake: callbackTime,
		PerHost:   callbackWorkers,
		Kept:      callbackWorkers,
		KeptFor:   30 * time.Second,
		HeadBytes: 64 << 10,
		BodyBytes: 64 << 10,
	})}
	c.work, c.empty = sync.NewCond(&c.mu), sync.NewCond(&c.mu)
	for range callbackWorkers {
		c.wg.Add(1)
		go c.run()
	}
	return c
}

// send queues a callback. It ignores a callback without an address, because some providers report only successes.
func (c *callbacks) send(b Callback) {
	if b.URL != "" {
		c.push(queuedCallback{Callback: b})
	}
}

// sendNow sends a callback. It returns when the callback was sent or given up, or ctx ends.
func (c *callbacks) sendNow(ctx context.Context, b Callback) {
	if b.URL == "" {
		return
	}
	q := queuedCallback{b, make(chan struct{})}
	c.push(q)
	select {
	case <-q.sent:
	case <-ctx.Done():
	}
}

func (c *callbacks) push(q queuedCallback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		if q.sent != nil {
			close(q.sent)
		}
		return
	}
	c.queue = append(c.queue, q)
	c.work.Signal()
}

func (c *callbacks) run() {
	defer c.wg.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.queue) == 0 && !c.closed {
			c.work.Wait()
		}
		if c.closed {
			return
		}
		q := c.queue[0]
		c.queue[0] = queuedCallback{}
		c.queue = c.queue[1:]
		c.busy++
		c.mu.Unlock()
		c.post(q.Callback)
		if q.sent != nil {
			close(q.sent)
		}
		c.mu.Lock()
		c.busy--
		if c.busy == 0 && len(c.queue) == 0 {
			c.empty.Broadcast()
		}
	}
}

func (c *callbacks) post(b Callback) {
	address, err := outbound.EncodeURL(b.URL)
	if err != nil {
		c.log.Info("simulator failed to send callback", "error", err)
		return
	}
	req, err := http.NewRequest(b.Method, address, bytes.NewReader(b.Body))
	if err != nil {
		c.log.Info("simulator failed to send callback", "error", err)
		return
	}
	if b.Header != nil {
		req.Header = b.Header
	}
	if a := c.client.Do(req, callbackTime); a.Status == 0 {
		c.log.Info("simulator callback got no response", "error", a.Err)
	}
}

// Idle reports whether every callback was sent or given up.
func (c *callbacks) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy == 0 && len(c.queue) == 0
}

// Quiet waits until every callback was sent or given up.
func (c *callbacks) Quiet(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.empty.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.busy > 0 || len(c.queue) > 0) && !c.closed && ctx.Err() == nil {
		c.empty.Wait()
	}
	return ctx.Err()
}

// Close drops the callbacks that are still queued.
func (c *callbacks) Close() {
	c.mu.Lock()
	c.closed = true
	c.queue = nil
	c.work.Broadcast()
	c.empty.Broadcast()
	c.mu.Unlock()
	c.wg.Wait()
	c.client.Close()
}
