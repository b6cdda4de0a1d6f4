package smpp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/test/clocktest"
)

// centre is a simulated message centre. It uses another codec than the client, and a clock that only the test moves.
type centre struct {
	*sim.Sim
	sms   *smsc.Centre
	t     testing.TB
	clock *clock.Clock
}

func newCentre(t testing.TB, o smsc.Options) *centre {
	t.Helper()
	c := &centre{t: t, clock: clock.NewManual(time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC))}
	if o.EnquireEvery == 0 {
		o.EnquireEvery = 24 * time.Hour
	}
	c.sms = smsc.New(o)
	var err error
	if c.Sim, err = sim.New(sim.Options{Clock: c.clock}, c.sms.Join); err != nil {
		t.Fatal(err)
	}
	c.sms.CountSegments(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.serve(l)
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *centre) serve(l net.Listener) {
	served := make(chan error, 1)
	go func() { served <- c.sms.Serve(l) }()
	c.t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil {
			c.t.Error(err)
		}
	})
	clocktest.Await(c.t, "the listener", func() bool { return c.sms.Account().Address != "" })
}

// bind returns a bind to the centre that waits long for answers and rarely sends enquiries.
func (c *centre) bind() smpp.Bind {
	a := c.sms.Account()
	return smpp.Bind{Name: "sim", Address: a.Address, SystemID: a.SystemID, Password: a.Password,
		AnswerTimeout: time.Hour, EnquireEvery: 24 * time.Hour}
}

// client is a client of the centre, with the receipts that it got.
type client struct {
	*smpp.Client
	centre *centre

	mu       sync.Mutex
	receipts []provider.Receipt
	refuse   func(provider.Receipt) error // nil: every receipt is stored
}

func (c *centre) client(binds ...smpp.Bind) *client {
	c.t.Helper()
	k := c.unboundClient(binds...)
	c.until("the bind", func() bool { return k.Ready("") == nil })
	return k
}

func (c *centre) unboundClient(binds ...smpp.Bind) *client {
	k := &client{centre: c}
	k.Client = smpp.New(smpp.Options{Binds: binds, Clock: c.clock, Log: slog.New(slog.DiscardHandler), Receipt: k.queue})
	k.Start(context.Background())
	c.t.Cleanup(k.stop)
	return k
}

func (k *client) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a test that needs the answers waits for them itself
	k.Stop(ctx)
}

func (k *client) queue(_ context.Context, r provider.Receipt) func() error {
	return func() error { return k.store(r) }
}

func (k *client) store(r provider.Receipt) error {
	k.mu.Lock()
	refuse := k.refuse
	k.mu.Unlock()
	if refuse != nil {
		if err := refuse(r); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.receipts = append(k.receipts, r)
	return nil
}

func (k *client) onReceipt(refuse func(provider.Receipt) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse = refuse
}

// states returns the stored delivery states in their order.
func (k *client) states() []provider.Delivery {
	var list []provider.Delivery
	for _, r := range k.stored() {
		list = append(list, r.State)
	}
	return list
}

func (k *client) stored() []provider.Receipt {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.receipts)
}

// outcomes collects the outcomes of submits.
type outcomes struct {
	mu   sync.Mutex
	list map[int]provider.Outcome
	n    atomic.Int64
}

func (o *outcomes) of(i int) func(provider.Outcome) {
	return func(out provider.Outcome) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.list == nil {
			o.list = map[int]provider.Outcome{}
		}
		if before, twice := o.list[i]; twice && before.Class != provider.NotSent {
			panic(fmt.Sprintf("submit %d is over twice: %+v, then %+v", i, before, out))
		}
		o.list[i] = out
		o.n.Add(1)
	}
}

func (o *outcomes) get(i int) provider.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list[i]
}

// each returns the submits that ended in a class.
func (o *outcomes) each(class provider.Class) []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []int
	for i, out := range o.list {
		if out.Class == class {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}

// send submits one segment and waits for its outcome.
func (k *client) send(to, text string) provider.Outcome {
	k.centre.t.Helper()
	var o outcomes
	k.Submit(context.Background(), segment(to, text), o.of(0))
	clocktest.Await(k.centre.t, "an outcome", func() bool { return o.n.Load() == 1 })
	return o.get(0)
}

func segment(to, text string) provider.Segment {
	m := smstext.Encode(text)
	return provider.Segment{From: "ADOM", To: msisdn.MSISDN(to), Encoding: m.Encoding, Octets: m.Segments[0], Part: 1, Parts: 1, WantsReceipt: true}
}

// pass advances the clock in small steps and lets everything that is due happen.
func (c *centre) pass(d time.Duration) {
	c.t.Helper()
	const step = time.Second
	for d > 0 {
		c.clock.Advance(min(step, d))
		c.settle()
		d -= step
	}
}

// settle waits until every receipt that is due was answered.
func (c *centre) settle() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := c.Quiet(ctx); err != nil {
		c.t.Fatal("the centre does not come to rest:", err)
	}
}

// until advances the clock in small steps until a condition is true. The clock runs faster than the machine's but
// depends on it, so that on a busy machine no time-out comes before an answer. Between two steps other goroutines
// run.
func (c *centre) until(what string, yes func() bool) {
	c.t.Helper()
	const faster, step = 20, time.Second
	begun := time.Now()
	look := time.NewTicker(100 * time.Microsecond)
	defer look.Stop()
	for last := begun; !yes(); <-look.C {
		now := time.Now()
		if now.Sub(begun) > 10*time.Minute {
			c.t.Fatal("waited in vain for", what)
		}
		c.clock.Advance(min(faster*now.Sub(last), step))
		last = now
	}
}

var errNotNow = errors.New("not now")
