// Package smsc is the simulated message centre of a mobile operator. It implements SMPP 3.4 on a listener of its own.
// Sessions accept submits, and each submit gets receipts by the plan of its number. Receipts go out through any
// connection that may receive.
//
// Files, from the top down; each needs only files below it:
//
//	smsc.go      the message centre, joined to a simulator and served
//	control.go, session.go  its part of /sim/v1; the conversation with one client
//	centre.go    accepting a message, and the behaviour of the centre
//	outbox.go    receipts on their way out, and waiting ones
//	moments.go, link.go, receipt.go  later events; one connection; the content of a receipt
//	count.go     segments counted
//	text.go, options.go  joined parts of a message; options and counts
package smsc

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/makola/makola/internal/sim"
)

var errClosed = errors.New("the simulator's message centre is closed")

// New returns a message centre. It works only in a simulator that was opened with its Join as a part.
func New(o Options) *Centre {
	c := &Centre{parts: newAssembly(), scripts: map[string]sim.Plan{}}
	o = o.withDefaults()
	c.options.Store(&o)
	return c
}

// Join adds the message centre to a simulator. It is a sim.Part.
func (c *Centre) Join(s *sim.Sim) sim.Provider {
	c.s = s
	c.moments = &moments{s: s, slots: map[int64][]func(){}}
	c.outbox = newOutbox(&c.options, c.moments, &c.tally)
	// Ids begin at a value that an earlier run of the message centre cannot have reached.
	c.lastID.Store(uint64(s.Clock().Now().UnixMilli()) << 12)
	return sim.Provider{Name: Name, Adapter: "smpp", Messages: true, Control: c.control(), Worker: c}
}

// firstAcceptPause is the pause after an accept failed, such as for lack of file descriptors. Each further failure
// doubles it.
const firstAcceptPause = 5 * time.Millisecond

// Announce stores the address of the message centre before anybody can request its account. Serve runs concurrently
// with the interface that returns the account.
func (c *Centre) Announce(l net.Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.address == "" {
		c.address = l.Addr().String()
	}
}

// Serve accepts connections of SMPP clients until the simulator or the listener is closed. Clients bind with the
// credentials of Account.
func (c *Centre) Serve(l net.Listener) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errors.Join(errClosed, l.Close())
	}
	c.listeners = append(c.listeners, l)
	c.mu.Unlock()
	c.Announce(l)
	for pause := firstAcceptPause; ; {
		conn, err := l.Accept()
		if err == nil {
			pause = firstAcceptPause
			newSession(c, conn).run()
			continue
		}
		c.mu.Lock()
		closed := c.closed
		c.mu.Unlock()
		if closed || errors.Is(err, net.ErrClosed) {
			return nil
		}
		c.s.Log().Warn("message centre failed to accept connection", "error", err)
		time.Sleep(pause)
		pause = min(2*pause, time.Second)
	}
}

// Idle reports whether no receipt is in progress.
func (c *Centre) Idle() bool { return c.outbox.idle() }

// Quiet waits until no receipt is in progress.
func (c *Centre) Quiet(ctx context.Context) error { return c.outbox.quiet(ctx) }

// Close unbinds all connections and waits until they have ended.
func (c *Centre) Close() {
	c.mu.Lock()
	c.closed = true
	for _, l := range c.listeners {
		l.Close()
	}
	clients := slices.Clone(c.clients)
	c.mu.Unlock()
	c.outbox.close()
	for _, by := range clients {
		by.link.unbind()
	}
	c.running.Wait()
}
