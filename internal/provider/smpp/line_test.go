package smpp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/data"
	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/test/clocktest"
)

// patience bounds each wait of a test. Only a failing test reaches it.
const patience = 3 * time.Minute

// centre is a message centre. The test decides its every answer, also answers that the simulator never gives. It uses
// another codec than the client, so that the two cannot share a mistake.
type centre struct {
	t        *testing.T
	listener net.Listener

	mu       sync.Mutex
	onSubmit func(c *line, m *gosmpp.SubmitSM) // called without a lock; nil: accept
	refusal  data.CommandStatusType            // answer to binds
	binds    []*gosmpp.BindRequest
	submits  []*gosmpp.SubmitSM
	lines    []*line
	last     int
	acks     chan ack // acknowledgements of our receipts
	events   chan string
}

// ack is the client's answer to a deliver_sm.
type ack struct {
	sequence int32
	status   data.CommandStatusType
}

// line is one connection of the client.
type line struct {
	net.Conn
	centre *centre
	wmu    sync.Mutex
	mode   data.CommandIDType
}

func newCentre(t *testing.T, config *tls.Config) *centre {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	c := &centre{t: t, listener: l, acks: make(chan ack, 10_000), events: make(chan string, 10_000)}
	var serving sync.WaitGroup
	serving.Add(1)
	go func() {
		defer serving.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			one := &line{Conn: conn, centre: c}
			c.mu.Lock()
			c.lines = append(c.lines, one)
			c.mu.Unlock()
			serving.Add(1)
			go func() {
				defer serving.Done()
				one.serve()
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		serving.Wait()
	})
	return c
}

// cut closes every connection without an unbind.
func (c *centre) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		_ = l.Close()
	}
}

// first returns the connection that was opened first.
func (c *centre) first() *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[0]
}

func (c *centre) script(fn func(*line, *gosmpp.SubmitSM)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onSubmit = fn
}

func (c *centre) received() []*gosmpp.SubmitSM {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*gosmpp.SubmitSM(nil), c.submits...)
}

func (c *centre) bound() []*gosmpp.BindRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*gosmpp.BindRequest(nil), c.binds...)
}

// id makes a message id.
func (c *centre) id() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return fmt.Sprintf("m%d", c.last)
}

func (l *line) serve() {
	defer func() { l.centre.events <- "closed" }()
	defer l.Close()
	r := bufio.NewReader(l)
	for {
		if _, err := r.Peek(1); err != nil {
			return
		}
		p, err := gosmpp.Parse(r)
		var network net.Error
		switch {
		case err == nil:
			l.take(p)
		case errors.As(err, &network):
			return
		default:
			l.centre.t.Errorf("the client wrote what the other codec does not read: %v", err)
			return
		}
	}
}

func (l *line) take(p gosmpp.PDU) {
	c := l.centre
	switch p := p.(type) {
	case *gosmpp.BindRequest:
		c.mu.Lock()
		c.binds = append(c.binds, p)
		refusal := c.refusal
		l.mode = p.CommandID
		c.mu.Unlock()
		answer := p.GetResponse().(*gosmpp.BindResp)
		answer.CommandStatus = refusal
		answer.SystemID = "centre"
		l.send(answer)
		c.events <- "bind"
	case *gosmpp.SubmitSM:
		c.mu.Lock()
		c.submits = append(c.submits, p)
		answer := c.onSubmit
		c.mu.Unlock()
		if answer == nil {
			l.accept(p, c.id())
			return
		}
		answer(l, p)
	case *gosmpp.DeliverSMResp:
		c.acks <- ack{p.SequenceNumber, p.CommandStatus}
	case *gosmpp.EnquireLink:
		c.events <- "enquire"
		l.send(p.GetResponse())
	case *gosmpp.Unbind:
		c.events <- "unbind"
		l.send(p.GetResponse())
		_ = l.Close()
	case *gosmpp.EnquireLinkResp:
		c.events <- "enquire answered"
	case *gosmpp.UnbindResp:
		c.events <- "unbind answered"
	case *gosmpp.GenericNack:
		c.events <- "nack"
	default:
		c.t.Errorf("the client sent %T", p)
	}
}

// send writes a unit.
func (l *line) send(p gosmpp.PDU) {
	b := gosmpp.NewBuffer(nil)
	p.Marshal(b)
	l.raw(b.Bytes())
}

func (l *line) raw(octets []byte) {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	_, _ = l.Write(octets) // an error means that the client is gone, which the test checks itself
}

func (l *line) accept(m *gosmpp.SubmitSM, id string) {
	answer := m.GetResponse().(*gosmpp.SubmitSMResp)
	answer.MessageID = id
	l.send(answer)
}

func (l *line) refuse(m *gosmpp.SubmitSM, status data.CommandStatusType) {
	answer := m.GetResponse().(*gosmpp.SubmitSMResp)
	answer.CommandStatus = status
	l.send(answer)
}

// report sends a receipt to the client.
func (l *line) report(sequence int32, from, text string, more ...gosmpp.Field) {
	l.send(deliver(sequence, from, text, esmReceipt, more...))
}

func deliver(sequence int32, from, text string, esm byte, more ...gosmpp.Field) *gosmpp.DeliverSM {
	p := gosmpp.NewDeliverSM().(*gosmpp.DeliverSM)
	p.SequenceNumber, p.EsmClass = sequence, esm
	_ = p.SourceAddr.SetAddress(from)
	_ = p.DestAddr.SetAddress("Kejetia")
	_ = p.Message.SetMessageWithEncoding(text, data.LATIN1)
	for _, f := range more {
		p.RegisterOptionalParam(f)
	}
	return p
}

// wait waits until the centre has seen an event.
func (c *centre) wait(event string) {
	c.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-c.events:
			if e == event {
				return
			}
		case <-limit:
			c.t.Fatalf("no %s ever came", event)
		}
	}
}

func (c *centre) nextAck() ack {
	c.t.Helper()
	select {
	case a := <-c.acks:
		return a
	case <-time.After(patience):
		c.t.Error("a receipt was never acknowledged")
		return ack{}
	}
}

// bind returns a bind to this centre.
func (c *centre) bind() Bind {
	return Bind{Name: "test", Address: c.listener.Addr().String(), SystemID: "makola", Password: "secret", ReconnectWithin: 50 * time.Millisecond}
}

// receipts collects what the client reports.
type receipts chan provider.Receipt

func (r receipts) store(_ context.Context, one provider.Receipt) error {
	r <- one
	return nil
}

func (r receipts) next(t *testing.T) provider.Receipt {
	t.Helper()
	select {
	case one := <-r:
		return one
	case <-time.After(patience):
		t.Fatal("no receipt ever came")
		return provider.Receipt{}
	}
}

// run starts a client with the real clock.
func run(t *testing.T, store func(context.Context, provider.Receipt) error, binds ...Bind) (c *Client, stop func()) {
	t.Helper()
	return runAt(t, clock.Real(), store, binds...)
}

// runAt starts a client with a given clock.
func runAt(t *testing.T, now *clock.Clock, store func(context.Context, provider.Receipt) error, binds ...Bind) (c *Client, stop func()) {
	t.Helper()
	queue := func(ctx context.Context, r provider.Receipt) func() error {
		return func() error { return store(ctx, r) }
	}
	return serve(t, Options{Binds: binds, Clock: now, Log: slog.New(slog.DiscardHandler), Receipt: queue})
}

// serve runs a client until the end of the test.
func serve(t *testing.T, o Options) (c *Client, stop func()) {
	t.Helper()
	c = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	var once sync.Once
	stop = func() {
		once.Do(cancel)
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the client never ended")
		}
	}
	t.Cleanup(stop)
	return c, stop
}

// ready waits until every link is bound and those that may submit accept submits.
func ready(t *testing.T, c *Client) {
	t.Helper()
	clocktest.Await(t, "a bound client", func() bool {
		for _, l := range c.links {
			if l.current.Load() == nil || l.mode != Receiver && l.session.Load() == nil {
				return false
			}
		}
		return true
	})
}

// hand submits one segment and waits for its outcome.
func hand(t *testing.T, c *Client, s provider.Segment) provider.Outcome {
	t.Helper()
	got := make(chan provider.Outcome, 2)
	c.Submit(context.Background(), s, func(o provider.Outcome) { got <- o })
	select {
	case o := <-got:
		return o
	case <-time.After(patience):
		t.Error("no outcome ever came")
		return provider.Outcome{}
	}
}

// giveUp submits one segment, which the centre receives but does not answer. The clock moves until the client gives
// up the segment.
func (c *centre) giveUp(k *Client, now *clock.Clock, s provider.Segment) provider.Outcome {
	c.t.Helper()
	before := len(c.received())
	got := make(chan provider.Outcome, 2)
	k.Submit(context.Background(), s, func(o provider.Outcome) { got <- o })
	clocktest.Await(c.t, "a submit at the centre", func() bool { return len(c.received()) > before })
	clocktest.Await(c.t, "an outcome", func() bool { now.Advance(time.Minute); return len(got) > 0 })
	return <-got
}

func segment(text string) provider.Segment {
	m := smstext.Encode(text)
	return provider.Segment{From: "Kejetia", To: msisdn.MSISDN("233241234567"), Encoding: m.Encoding, Octets: m.Segments[0], Part: 1, Parts: 1, WantsReceipt: true}
}
