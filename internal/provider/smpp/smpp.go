// Package smpp is Makola's SMPP 3.4 client: it keeps binds with mobile operators' message centres, submits segments
// through a window that blocks instead of overflowing, and reads delivery receipts.
//
// It is our own code because the session is the core of an SMS gateway. The available libraries cut texts wrongly,
// lose accepted PDUs when a connection closes, or return "window full" instead of waiting.
//
// Three rules shape it. A submit is recorded before it is written, so that no response is unexpected. A submit that
// was written without a response is Unknown, never "failed": SMPP has no idempotency key, and only the caller may
// decide whether to send again. A receipt is acknowledged after the caller has stored it, so that a crash repeats a
// receipt instead of losing it.
//
// Wire facts are from the SMPP 3.4 specification, issue 1.2; section numbers refer to it.
package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// IDForm is an operator's notation of message ids in one kind of PDU. Some operators return a hexadecimal id for a
// submit and a decimal id in receipts, or the other way round.
type IDForm string

// The forms of ids.
const (
	IDText    IDForm = "text"
	IDHex     IDForm = "hex"
	IDDecimal IDForm = "decimal"
)

// Concatenation is the way in which the parts of a long message are joined.
type Concatenation string

// The ways to join parts: a user data header in the text (every handset), or the SAR parameters, which
// the message centre turns into one.
const (
	UDH Concatenation = "udh"
	SAR Concatenation = "sar"
)

// BindMode is the direction of a connection: sending, receiving or both.
type BindMode string

// The bind modes. Transmitter and Receiver come in pairs.
const (
	Transceiver BindMode = "transceiver"
	Transmitter BindMode = "transmitter"
	Receiver    BindMode = "receiver"
)

// Bind is one account with one message centre. Zero values take the defaults named here.
type Bind struct {
	Name       string // for logs and metrics
	Address    string // host:port
	TLS        *tls.Config
	SystemID   string
	Password   string `json:"-"`
	SystemType string
	// Mode Transmitter also opens a second connection as Receiver.
	Mode        BindMode         // default Transceiver
	Connections int              // how many connections at once; default 1
	Networks    []msisdn.Network // the networks it serves; empty: all

	Window          int           // submits without an answer; default 10
	Rate            float64       // segments a second; 0: no limit but the window
	AnswerTimeout   time.Duration // default 60 s; after it a submit is Unknown
	EnquireEvery    time.Duration // default 30 s
	ReconnectWithin time.Duration // longest pause between two tries; default 30 s
	SubmitIDs       IDForm        // default IDText
	ReceiptIDs      IDForm        // default IDText
	Concatenation   Concatenation // default UDH
	ServiceType     string
}

func (b Bind) withDefaults() Bind {
	set := func(to *time.Duration, value time.Duration) {
		if *to == 0 {
			*to = value
		}
	}
	set(&b.AnswerTimeout, time.Minute)
	set(&b.EnquireEvery, 30*time.Second)
	set(&b.ReconnectWithin, 30*time.Second)
	if b.Mode == "" {
		b.Mode = Transceiver
	}
	b.Connections = max(b.Connections, 1)
	if b.Window == 0 {
		b.Window = 10
	}
	if b.SubmitIDs == "" {
		b.SubmitIDs = IDText
	}
	if b.ReceiptIDs == "" {
		b.ReceiptIDs = IDText
	}
	if b.Concatenation == "" {
		b.Concatenation = UDH
	}
	return b
}

// Options shape a Client.
type Options struct {
	Binds []Bind
	Clock *clock.Clock
	Log   *slog.Logger
	// Receipt queues a delivery receipt to be stored, without waiting. A connection's receipts are given in
	// the order in which they came. Until stored returns nil the receipt is not acknowledged, and the operator
	// sends it again; stored waits for several receipts at once.
	Receipt func(context.Context, provider.Receipt) (stored func() error)
}

// Client keeps the binds of one installation. It is a provider.SMSSender, also while it does not run:
// then another node has the connections.
type Client struct {
	links   []*link
	next    atomic.Uint64
	running atomic.Bool

	mu   sync.Mutex         // of Start and Stop
	stop context.CancelFunc // nil while it does not run
	kept sync.WaitGroup
}

var errNoBind = errors.New("smpp: no bound connection serves this network")

// New makes a client; Start connects it.
func New(o Options) *Client {
	c := &Client{}
	for _, b := range o.Binds {
		b = b.withDefaults()
		mode := b.Mode
		for range b.Connections {
			c.links = append(c.links, newLink(b, mode, o))
			if mode == Transmitter {
				c.links = append(c.links, newLink(b, Receiver, o))
			}
		}
	}
	return c
}

// Start connects every bind and keeps it connected until Stop or the end of ctx. It may be started again
// after Stop.
func (c *Client) Start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		panic("smpp: started twice")
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.running.Store(true) // first: a link that is bound takes submits
	for _, l := range c.links {
		l.draining.Store(false)
		c.kept.Add(1)
		go func() {
			defer c.kept.Done()
			l.keep(ctx)
		}()
	}
}

// Stop takes no more submits, waits for the answers that are due until ctx ends, unbinds and closes.
func (c *Client) Stop(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running.Store(false)
	if c.stop == nil {
		return
	}
	var drained sync.WaitGroup
	for _, l := range c.links {
		drained.Add(1)
		go func() {
			defer drained.Done()
			l.drain(ctx)
		}()
	}
	drained.Wait()
	c.stop()
	c.kept.Wait()
	c.stop = nil
}

// drainFor is the time for which Run waits for pending responses when it ends. The lease of the connections ends
// three seconds before another node can acquire it.
const drainFor = 2 * time.Second

// Run is Start, and Stop as soon as ctx ends: the work of a node that holds the connections.
func (c *Client) Run(ctx context.Context) {
	beyond := context.WithoutCancel(ctx)
	c.Start(beyond)
	<-ctx.Done()
	limit, cancel := context.WithTimeout(beyond, drainFor)
	defer cancel()
	c.Stop(limit)
}

// Ready is nil when a bound connection serves the network, and provider.ErrElsewhere while the client
// does not run.
func (c *Client) Ready(n msisdn.Network) error {
	if !c.running.Load() {
		return provider.ErrElsewhere
	}
	for _, l := range c.links {
		if l.serves(n) && l.session.Load() != nil {
			return nil
		}
	}
	return errNoBind
}

// State is the state of one bind.
type State struct {
	Name        string
	Connections int
	Bound       int
	Since       time.Time // of the last change
	Why         string    // of the last failure, while some connection is not bound
}

// States returns the state of each bind, in the order of the options.
func (c *Client) States() []State {
	var all []State
	for _, l := range c.links {
		if len(all) == 0 || all[len(all)-1].Name != l.bind.Name {
			all = append(all, State{Name: l.bind.Name})
		}
		s := &all[len(all)-1]
		s.Connections++
		l.mu.Lock()
		if l.since.After(s.Since) {
			s.Since = l.since
		}
		if l.bound {
			s.Bound++
		} else if l.why != nil {
			s.Why = l.why.Error()
		}
		l.mu.Unlock()
	}
	return all
}

// Whole is false: the binds take segments.
func (c *Client) Whole(string, msisdn.MSISDN) bool { return false }

// Submit implements provider.SMSSender.
func (c *Client) Submit(ctx context.Context, s provider.Segment, done func(provider.Outcome)) {
	network, _ := s.To.LikelyNetwork()
	c.SubmitTo(ctx, network, s, done)
}

// SubmitTo is Submit for a known network. Connections that serve it take turns.
func (c *Client) SubmitTo(ctx context.Context, network msisdn.Network, s provider.Segment, done func(provider.Outcome)) {
	from := int(c.next.Add(1))
	for i := range c.links {
		l := c.links[(from+i)%len(c.links)]
		if current := l.session.Load(); current != nil && l.serves(network) && c.running.Load() {
			current.submit(ctx, s, done)
			return
		}
	}
	done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable,
		Message: errNoBind.Error(), RetryAfter: time.Second})
}
