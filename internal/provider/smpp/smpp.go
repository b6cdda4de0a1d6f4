// Package smpp is Makola's SMPP 3.4 client: it connects to mobile operators' message centres, submits segments within
// a window, and reads delivery receipts. When the window is full, a submit waits.
//
// It is our own code because the session is the core of an SMS gateway. The available libraries cut texts wrongly,
// lose accepted PDUs when a connection closes, or return "window full" instead of waiting.
//
// Three rules shape it. A submit is recorded before it is written, so that its response always finds it. A submit
// that was written without a response is Unknown, never failed. SMPP has no idempotency key, so only the caller may
// decide whether to send again. A receipt is acknowledged after the caller has stored it. So after a crash the
// operator sends the receipt again, and it is not lost.
//
// Section numbers refer to the SMPP 3.4 specification, issue 1.2.
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

// IDForm is the form in which an operator writes message ids in one kind of PDU. Some operators return a hexadecimal
// id for a submit and a decimal id in receipts, or the other way round.
type IDForm string

// The forms of ids.
const (
	IDText    IDForm = "text"
	IDHex     IDForm = "hex"
	IDDecimal IDForm = "decimal"
)

// Concatenation is the way in which the parts of a long message are linked.
type Concatenation string

// The ways to link parts. UDH is a user data header in the text, which every handset supports. SAR parameters are
// converted to such a header by the message centre.
const (
	UDH Concatenation = "udh"
	SAR Concatenation = "sar"
)

// BindMode is the direction of a connection: sending, receiving or both.
type BindMode string

// The bind modes. Each Transmitter needs a Receiver.
const (
	Transceiver BindMode = "transceiver"
	Transmitter BindMode = "transmitter"
	Receiver    BindMode = "receiver"
)

// Bind configures the connections to one account at one message centre. Zero values select the defaults given here.
type Bind struct {
	Name       string // for logs and metrics
	Address    string // host:port
	TLS        *tls.Config
	SystemID   string
	Password   string `json:"-"`
	SystemType string
	// Mode Transmitter also opens a second connection as Receiver.
	Mode        BindMode         // default Transceiver
	Connections int              // number of concurrent connections; default 1
	Networks    []msisdn.Network // the networks it serves; empty: all

	Window          int           // maximum number of submits without a response; default 10
	Rate            float64       // segments a second; 0: only the window limits
	AnswerTimeout   time.Duration // default 60 s; after it the outcome of a submit is Unknown
	EnquireEvery    time.Duration // default 30 s
	ReconnectWithin time.Duration // longest pause between two attempts to connect; default 30 s
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

// Options configure a Client.
type Options struct {
	Binds []Bind
	Clock *clock.Clock
	Log   *slog.Logger
	// Receipt queues a delivery receipt to be stored. It must not wait. The receipts of a connection are passed in
	// the order in which they arrived. stored waits until the receipt is stored. Several receipts can be stored at
	// once. Until stored returns nil, the receipt is not acknowledged, and the operator sends it again.
	Receipt func(context.Context, provider.Receipt) (stored func() error)
	// Incoming does the same for a text from a handset. If it is nil, such texts are acknowledged and
	// dropped.
	Incoming func(context.Context, provider.Incoming) (stored func() error)
}

// Client maintains the connections of one installation. It implements provider.SMSSender, even while it does not run
// and another node has the connections.
type Client struct {
	links   []*link
	next    atomic.Uint64
	running atomic.Bool

	mu   sync.Mutex         // protects Start and Stop
	stop context.CancelFunc // nil while the client does not run
	kept sync.WaitGroup
}

var errNoBind = errors.New("smpp: no bound connection serves this network")

// New returns a client. Start connects it.
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

// Start opens all connections and keeps them open until Stop or the end of ctx. It may be called again after Stop.
func (c *Client) Start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		panic("smpp: started twice")
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.running.Store(true) // set first, because a bound link takes submits
	for _, l := range c.links {
		l.draining.Store(false)
		c.kept.Add(1)
		go func() {
			defer c.kept.Done()
			l.keep(ctx)
		}()
	}
}

// Stop takes no more submits, waits for pending responses until ctx ends, unbinds and closes.
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

// drainFor is how long Run waits for pending responses when it ends. It must be short, because another node can
// acquire the connections' lease three seconds after this node's lease ends.
const drainFor = 2 * time.Second

// Run starts the client, and stops it when ctx ends. Only the node with the connections' lease calls it.
func (c *Client) Run(ctx context.Context) {
	beyond := context.WithoutCancel(ctx)
	c.Start(beyond)
	<-ctx.Done()
	limit, cancel := context.WithTimeout(beyond, drainFor)
	defer cancel()
	c.Stop(limit)
}

// Ready returns nil if a bound connection serves the network. While the client does not run, it returns
// provider.ErrElsewhere.
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
	Since       time.Time // time of the last change
	Why         string    // the last failure, while a connection is not bound
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

// Whole returns false, because the client submits segments.
func (c *Client) Whole(string, msisdn.MSISDN) bool { return false }

// Submit implements provider.SMSSender.
func (c *Client) Submit(ctx context.Context, s provider.Segment, done func(provider.Outcome)) {
	network, _ := s.To.LikelyNetwork()
	c.SubmitTo(ctx, network, s, done)
}

// SubmitTo is Submit for a known network. The connections that serve the network take turns.
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
