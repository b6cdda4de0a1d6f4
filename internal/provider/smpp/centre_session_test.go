package smpp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/test/clocktest"
)

func number(i int) string { return fmt.Sprintf("2332441%05d", i) }

// TestCentre_windowBoundsSubmits: a client sends no more than its window without an answer, however slow the centre
// is.
func TestCentre_windowBoundsSubmits(t *testing.T) {
	const window, total = 10, 100
	m := newCentre(t, smsc.Options{Latency: time.Minute})
	bind := m.bind()
	bind.Window = window
	k := m.client(bind)
	var o outcomes
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		for i := range total {
			k.Submit(context.Background(), segment(number(i), "x"), o.of(i))
		}
	}()
	for done := int64(0); done < total; done += window {
		clocktest.Await(t, "a full window", func() bool { return m.sms.Totals().Submitted >= done+window })
		if got := m.sms.Totals().Submitted; got != done+window {
			t.Fatalf("%d submits after %d answers", got, done)
		}
		m.clock.Advance(time.Minute)
		clocktest.Await(t, "the answers", func() bool { return o.n.Load() >= done+window })
	}
	<-submitted
	if got := len(o.each(provider.Accepted)); got != total {
		t.Errorf("%d accepted", got)
	}
}

// TestCentre_submitGivesUp: a caller that waits for room in the window can give up. Nothing of its submit was sent.
func TestCentre_submitGivesUp(t *testing.T) {
	m := newCentre(t, smsc.Options{Latency: time.Hour})
	bind := m.bind()
	bind.Window = 1
	k := m.client(bind)
	var o outcomes
	k.Submit(t.Context(), segment(number(0), "x"), o.of(0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.Submit(ctx, segment(number(1), "x"), o.of(1))
	if out := o.get(1); out.Class != provider.NotSent {
		t.Errorf("%+v", out)
	}
	clocktest.Await(t, "the first submit", func() bool { return m.sms.Totals().Submitted == 1 })
	if list := m.sms.SegmentsTo(number(1)); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// resend submits each of total messages until it has an outcome other than NotSent, as a caller does. It waits until
// the client is bound, because otherwise each try ends at once and the clock does not move.
func (k *client) resend(total int) *outcomes { return k.resendAfter(total, func() {}) }

// resendAfter is resend, but the clock moves only after ready has returned.
func (k *client) resendAfter(total int, ready func()) *outcomes {
	var o outcomes
	for round := 0; ; round++ {
		var left []int
		for i := range total {
			if _, known := func() (provider.Outcome, bool) {
				o.mu.Lock()
				defer o.mu.Unlock()
				out, known := o.list[i]
				return out, known && out.Class != provider.NotSent
			}(); !known {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return &o
		}
		k.centre.until("a bind", func() bool { return k.Ready("") == nil })
		begun := o.n.Load()
		submitted := make(chan struct{})
		go func() {
			defer close(submitted)
			for _, i := range left {
				k.Submit(context.Background(), segment(number(i), fmt.Sprint("Message ", i)), o.of(i))
			}
		}()
		ready()
		k.centre.until("outcomes", func() bool { return o.n.Load() == begun+int64(len(left)) })
		<-submitted
	}
}

// TestCentre_throttledSubmitsArriveOnce: a submit that the centre throttles, or has no room for, is not lost and
// arrives once.
func TestCentre_throttledSubmitsArriveOnce(t *testing.T) {
	for name, o := range map[string]smsc.Options{"rate": {Rate: 40}, "queue": {Queue: 20}} {
		t.Run(name, func(t *testing.T) {
			m := newCentre(t, o)
			k := m.client(m.bind())
			out := k.resendAfter(150, func() {
				clocktest.Await(t, "a full centre", func() bool { return m.sms.Totals().Throttled > 0 })
			})
			if got := len(out.each(provider.Accepted)); got != 150 {
				t.Errorf("%d accepted", got)
			}
			clocktest.Await(t, "the last submit to be counted, which follows its answer", func() bool {
				totals := m.sms.Totals()
				return totals.Submitted == totals.Accepted+totals.Throttled
			})
			if totals := m.sms.Totals(); totals.Throttled == 0 || totals.Accepted != 150 {
				t.Errorf("%+v", totals)
			}
			if twice := m.sms.SegmentsTwice(); len(twice) > 0 {
				t.Errorf("%+v", twice)
			}
		})
	}
}

// TestCentre_droppedLineRepeatsNoMessage: a centre drops the connection at every 50th submit, before or after it
// accepted it. Answered submits were accepted, and unanswered ones may have been. The client itself sends nothing
// again.
func TestCentre_droppedLineRepeatsNoMessage(t *testing.T) {
	for _, fault := range []sim.FaultKind{sim.AnswerLost, sim.RequestLost} {
		t.Run(string(fault), func(t *testing.T) {
			m := newCentre(t, smsc.Options{})
			bind := m.bind()
			bind.Window, bind.ReconnectWithin = 20, 100*time.Millisecond
			k := m.client(bind)
			if err := m.Inject(sim.Fault{Provider: smsc.Name, Operation: sim.OpSubmit, Kind: fault, Every: 50, For: 24 * time.Hour}); err != nil {
				t.Fatal(err)
			}
			const total = 600
			o := k.resend(total)
			if twice := m.sms.SegmentsTwice(); len(twice) > 0 {
				t.Errorf("%+v", twice)
			}
			accepted, unknown := o.each(provider.Accepted), o.each(provider.Unknown)
			if len(accepted)+len(unknown) != total || len(unknown) == 0 || len(accepted) < total/2 {
				t.Errorf("%d accepted, %d unknown", len(accepted), len(unknown))
			}
			for _, i := range accepted {
				if len(m.sms.SegmentsTo(number(i))) != 1 {
					t.Errorf("%d is called accepted and never came", i)
				}
			}
			// Each cut loses at most one window, so of the 600 messages at least 400 were submitted. After the last
			// cut there may be no message left, and so no further bind.
			b := m.sms.Totals()
			if cuts := b.Submitted / 50; cuts < 8 || b.Binds < cuts || b.Binds > cuts+1 || b.PeakBound != 1 {
				t.Errorf("%+v", b)
			}
		})
	}
}

// TestCentre_cutWhileInFlight: a submit that waits for its answer when the connection breaks is unknown. Later
// submits are not sent until the client has bound again.
func TestCentre_cutWhileInFlight(t *testing.T) {
	m := newCentre(t, smsc.Options{Latency: time.Hour})
	k := m.client(m.bind())
	var o outcomes
	for i := range 5 {
		k.Submit(t.Context(), segment(number(i), "x"), o.of(i))
	}
	clocktest.Await(t, "the submits", func() bool { return m.sms.Totals().Accepted == 5 })
	m.sms.Disconnect()
	clocktest.Await(t, "outcomes", func() bool { return o.n.Load() == 5 })
	if got := o.each(provider.Unknown); len(got) != 5 {
		t.Errorf("unknown: %v", got)
	}
	clocktest.Await(t, "the end of the session", func() bool { return k.Ready("") != nil })
	if out := k.send(number(9), "x"); out.Class != provider.NotSent {
		t.Errorf("without a connection: %+v", out)
	}
	m.sms.Set(smsc.Options{EnquireEvery: 24 * time.Hour})
	m.until("a new bind", func() bool { return k.Ready("") == nil })
	if out := k.send(number(9), "x"); out.Class != provider.Accepted {
		t.Errorf("bound again: %+v", out)
	}
}

// TestCentre_refusalOfOneSegment: a refusal affects only its own segment.
func TestCentre_refusalOfOneSegment(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	k := m.client(m.bind())
	if err := m.Inject(sim.Fault{Provider: smsc.Name, Kind: sim.RefuseOutright, Every: 2, For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	o := k.resend(100)
	accepted, rejected := o.each(provider.Accepted), o.each(provider.Rejected)
	if len(accepted) != 50 || len(rejected) != 50 {
		t.Errorf("%d accepted, %d rejected", len(accepted), len(rejected))
	}
	for _, i := range rejected {
		if len(m.sms.SegmentsTo(number(i))) != 0 {
			t.Errorf("%d is called rejected and was taken", i)
		}
	}
}

// TestCentre_strangeAnswers checks the outcome of a submit for each wrong answer.
func TestCentre_strangeAnswers(t *testing.T) {
	for _, c := range []struct {
		fault sim.FaultKind
		class provider.Class
		taken int
	}{
		{sim.ErrorBefore, provider.Unknown, 0}, // a system error does not say whether the submit was accepted
		{sim.ErrorAfter, provider.Unknown, 1},
		{sim.Malformed, provider.Unknown, 1},
		{sim.Throttle, provider.NotSent, 0},
		{sim.QueueFull, provider.NotSent, 0},
		{sim.Outage, provider.Unknown, 0},
		{sim.Unbind, provider.Accepted, 1},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			m := newCentre(t, smsc.Options{})
			k := m.client(m.bind())
			if err := m.Inject(sim.Fault{Provider: smsc.Name, Kind: c.fault}); err != nil {
				t.Fatal(err)
			}
			if out := k.send(number(1), "x"); out.Class != c.class {
				t.Errorf("%+v", out)
			}
			if got := len(m.sms.SegmentsTo(number(1))); got != c.taken {
				t.Errorf("taken %d times", got)
			}
			if c.fault == sim.Unbind { // the unbind comes after the answer
				clocktest.Await(t, "the end of the session", func() bool { return k.Ready("") != nil })
			}
			if out := k.resend(1).get(0); out.Class != provider.Accepted {
				t.Errorf("afterwards: %+v", out)
			}
		})
	}
}

// TestCentre_silent: a centre that accepts everything and never answers does not block a client for ever.
func TestCentre_silent(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	bind := m.bind()
	bind.AnswerTimeout, bind.Window = 10*time.Second, 3
	k := m.client(bind)
	if err := m.Inject(sim.Fault{Provider: smsc.Name, Kind: sim.Silent, Count: 3}); err != nil {
		t.Fatal(err)
	}
	var o outcomes
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		for i := range 7 {
			k.Submit(context.Background(), segment(number(i), "x"), o.of(i))
		}
	}()
	clocktest.Await(t, "a full window", func() bool { return m.sms.Totals().Submitted == 3 })
	m.until("the end of patience", func() bool { return o.n.Load() >= 3 })
	clocktest.Await(t, "the others", func() bool { return o.n.Load() == 7 })
	<-submitted
	if unknown, accepted := o.each(provider.Unknown), o.each(provider.Accepted); len(unknown) != 3 || len(accepted) != 4 {
		t.Errorf("unknown %v, accepted %v", unknown, accepted)
	}
	if b := m.sms.Totals(); b.Binds != 1 {
		t.Errorf("%+v", b)
	}
}

// TestSession_enquireLink: each side sends an enquiry to a silent peer. The peer answers, and the connection stays.
func TestSession_enquireLink(t *testing.T) {
	for name, asks := range map[string]struct{ centre, client time.Duration }{
		"centre": {2 * time.Second, 24 * time.Hour}, "client": {24 * time.Hour, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := newCentre(t, smsc.Options{EnquireEvery: asks.centre})
			bind := m.bind()
			bind.EnquireEvery = asks.client
			k := m.unboundClient(bind)
			clocktest.Await(t, "the bind", func() bool { return k.Ready("") == nil })
			for i := range int64(5) {
				sign := func() bool { got := m.sms.Totals(); return got.Enquiries+got.Alive > i }
				if name == "client" {
					m.until("a sign of life", sign)
					continue
				}
				// The clock moves only when both sides wait for it, and stands until the answer is there. Otherwise a
				// busy machine could miss three enquiries, and the centre would end the session.
				clocktest.Await(t, "both sides to wait", func() bool { return m.clock.Waiting() == 2 })
				m.clock.Advance(asks.centre)
				clocktest.Await(t, "a sign of life", sign)
			}
			if got := m.sms.Totals(); got.Binds != 1 || got.Bound != 1 || k.Ready("") != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestCentre_bindPermissions checks who may bind, and from which connections.
func TestCentre_bindPermissions(t *testing.T) {
	t.Run("wrong password", func(t *testing.T) {
		m := newCentre(t, smsc.Options{})
		bind := m.bind()
		bind.Password = "wrong"
		bind.ReconnectWithin = time.Second
		k := m.unboundClient(bind)
		m.until("three tries", func() bool { return m.sms.Totals().NotBound >= 3 })
		if k.Ready("") == nil || m.sms.Totals().Binds != 0 {
			t.Error("was let in")
		}
	})
	t.Run("transmitter and receiver", func(t *testing.T) {
		m := newCentre(t, smsc.Options{})
		bind := m.bind()
		bind.Mode = smpp.Transmitter
		k := m.client(bind)
		m.until("both connections", func() bool { return m.sms.Totals().Bound == 2 })
		if out := k.send("233240000001", "x"); out.Class != provider.Accepted {
			t.Errorf("%+v", out)
		}
		m.settle()
		if got := k.states(); !slices.Equal(got, []provider.Delivery{provider.Delivered}) {
			t.Errorf("%v", got)
		}
	})
	t.Run("several connections", func(t *testing.T) {
		m := newCentre(t, smsc.Options{})
		bind := m.bind()
		bind.Connections = 3
		k := m.client(bind)
		m.until("all connections", func() bool { return m.sms.Totals().Bound == 3 })
		if got := len(k.resend(90).each(provider.Accepted)); got != 90 {
			t.Errorf("%d accepted", got)
		}
		m.pass(3 * time.Second)
		if got := len(k.stored()); got != 90 {
			t.Errorf("%d receipts", got)
		}
	})
	t.Run("by network", func(t *testing.T) {
		mtn, telecel := newCentre(t, smsc.Options{}), newCentre(t, smsc.Options{})
		one, other := mtn.bind(), telecel.bind()
		one.Networks, other.Networks = []msisdn.Network{msisdn.MTN}, []msisdn.Network{msisdn.Telecel}
		k := mtn.client(one, other)
		mtn.until("both binds", func() bool { return k.Ready(msisdn.MTN) == nil && k.Ready(msisdn.Telecel) == nil })
		for _, to := range []string{"233244000009", "233204000009", "233245000009"} {
			if out := k.send(to, "x"); out.Class != provider.Accepted {
				t.Errorf("%s: %+v", to, out)
			}
		}
		if a, b := mtn.sms.Totals().Accepted, telecel.sms.Totals().Accepted; a != 2 || b != 1 {
			t.Errorf("%d and %d", a, b)
		}
		if k.Ready(msisdn.AirtelTigo) == nil || k.send("233274000009", "x").Class != provider.NotSent {
			t.Error("a network that nobody serves")
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		m := newCentre(t, smsc.Options{Binds: 1})
		first := m.client(m.bind())
		second := m.unboundClient(m.bind())
		m.until("some tries", func() bool { return m.sms.Totals().NotBound >= 3 })
		if second.Ready("") == nil {
			t.Fatal("two are bound")
		}
		first.stop()
		m.until("the second", func() bool { return second.Ready("") == nil })
		if got := m.sms.Totals().PeakBound; got != 1 {
			t.Errorf("%d at once", got)
		}
	})
}

// TestCentre_certificateIsChecked: the client checks the centre's certificate.
func TestCentre_certificateIsChecked(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	keys := httptest.NewUnstartedServer(nil)
	keys.StartTLS()
	defer keys.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.serve(tls.NewListener(l, &tls.Config{Certificates: keys.TLS.Certificates}))
	roots := x509.NewCertPool()
	roots.AddCert(keys.Certificate())
	bind := m.bind()
	bind.Address, bind.TLS = l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"}
	k := m.client(bind)
	if out := k.send("233240000001", "x"); out.Class != provider.Accepted {
		t.Errorf("%+v", out)
	}
	m.settle()
	if len(k.stored()) != 1 {
		t.Errorf("%v", k.stored())
	}
	bind.TLS = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}
	stranger := m.unboundClient(bind)
	before := m.sms.Totals().Connected
	m.until("some tries", func() bool { return m.sms.Totals().Connected >= before+3 })
	if stranger.Ready("") == nil {
		t.Error("bound with a centre that it cannot trust")
	}
}

// TestCentre_clientStops: a client that stops waits for outstanding answers, accepts no new submit, and unbinds.
func TestCentre_clientStops(t *testing.T) {
	m := newCentre(t, smsc.Options{Latency: time.Second})
	k := m.client(m.bind())
	var o outcomes
	k.Submit(t.Context(), segment(number(1), "x"), o.of(0))
	clocktest.Await(t, "the submit", func() bool { return m.sms.Totals().Submitted == 1 })
	var stopped atomic.Bool
	go func() {
		k.Stop(context.Background())
		stopped.Store(true)
	}()
	m.until("the end", stopped.Load)
	if out := o.get(0); out.Class != provider.Accepted {
		t.Errorf("%+v", out)
	}
	if out := k.send(number(2), "x"); out.Class != provider.NotSent {
		t.Errorf("after the end: %+v", out)
	}
	clocktest.Await(t, "the unbind", func() bool { return m.sms.Totals().Bound == 0 })
}
