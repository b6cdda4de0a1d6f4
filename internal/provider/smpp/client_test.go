package smpp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"runtime"
	"strings"
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

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestSubmit_fieldsOfBind(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.SystemType, b.ServiceType = "VMA", "CMT"
	c, _ := run(t, make(receipts, 9).store, b)
	ready(t, c)
	if o := hand(t, c, segment("Hello @ £1")); o.Class != provider.Accepted || o.UpstreamID != "m1" {
		t.Errorf("%+v", o)
	}
	numeric := segment("ɛyɛ")
	numeric.From, numeric.WantsReceipt, numeric.Validity = "233302123456", false, 25*time.Hour+2*time.Minute+3*time.Second
	hand(t, c, numeric)
	bind := sc.bound()[0]
	if bind.SystemID != "makola" || bind.Password != "secret" || bind.SystemType != "VMA" || bind.CommandID != data.BIND_TRANSCEIVER || bind.InterfaceVersion != 0x34 {
		t.Errorf("bound as %+v", bind)
	}
	got := sc.received()
	one, two := got[0], got[1]
	if one.ServiceType != "CMT" || one.SourceAddr.Address() != "Kejetia" || one.SourceAddr.Ton() != 5 || one.SourceAddr.Npi() != 0 ||
		one.DestAddr.Address() != "233241234567" || one.DestAddr.Ton() != 1 || one.DestAddr.Npi() != 1 || one.RegisteredDelivery != 1 || one.EsmClass != 0 {
		t.Errorf("submitted %+v", one)
	}
	if one.ValidityPeriod != "" || two.ValidityPeriod != "000001010203000R" {
		t.Errorf("valid for %q and %q", one.ValidityPeriod, two.ValidityPeriod)
	}
	if text, err := one.Message.GetMessageData(); err != nil || string(text) != "Hello \x00 \x011" || one.Message.Encoding().DataCoding() != 0 {
		t.Errorf("text %q, coding %d, %v", text, one.Message.Encoding().DataCoding(), err)
	}
	if text, err := two.Message.GetMessageWithEncoding(data.UCS2); err != nil || text != "ɛyɛ" || two.Message.Encoding().DataCoding() != 8 {
		t.Errorf("text %q, coding %d, %v", text, two.Message.Encoding().DataCoding(), err)
	}
	if two.SourceAddr.Ton() != 1 || two.SourceAddr.Npi() != 1 || two.RegisteredDelivery != 0 {
		t.Errorf("submitted %+v", two)
	}
}

func TestSubmit_concatenation(t *testing.T) {
	texts := map[string]string{"gsm7": strings.Repeat("abc€ ", 70), "ucs2": strings.Repeat("ɛyɛ 🙂", 40)}
	for _, way := range []Concatenation{UDH, SAR} {
		for name, text := range texts {
			t.Run(string(way)+" "+name, func(t *testing.T) {
				sc := newCentre(t, nil)
				b := sc.bind()
				b.Concatenation = way
				c, _ := run(t, make(receipts, 9).store, b)
				ready(t, c)
				m := smstext.Encode(text)
				for i, octets := range m.Segments {
					hand(t, c, provider.Segment{From: "Kejetia", To: "233241234567", Encoding: m.Encoding, Octets: octets, Part: i + 1, Parts: len(m.Segments), Group: 0x1234})
				}
				var whole []byte
				for i, got := range sc.received() {
					octets, _ := got.Message.GetMessageData()
					whole = append(whole, octets...)
					if way == SAR {
						tlv := func(tag gosmpp.Tag) []byte { return got.OptionalParameters[tag].Data }
						if binary.BigEndian.Uint16(tlv(gosmpp.TagSarMsgRefNum)) != 0x1234 || tlv(gosmpp.TagSarTotalSegments)[0] != byte(len(m.Segments)) || tlv(gosmpp.TagSarSegmentSeqnum)[0] != byte(i+1) || got.EsmClass != 0 {
							t.Errorf("part %d: %+v", i, got.OptionalParameters)
						}
						continue
					}
					total, part, reference, found := got.Message.UDH().GetConcatInfo()
					if !found || int(total) != len(m.Segments) || int(part) != i+1 || reference != 0x34 || got.EsmClass != 0x40 {
						t.Errorf("part %d: %d of %d, reference %x, class %x", i+1, part, total, reference, got.EsmClass)
					}
				}
				if decoded := smstext.Decode(whole, m.Encoding); decoded != text {
					t.Errorf("%q arrives as %q", text, decoded)
				}
			})
		}
	}
}

func TestSubmit_cutsLongFields(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.SystemID, b.Password, b.SystemType, b.ServiceType = strings.Repeat("s", 40), strings.Repeat("p", 40), strings.Repeat("t", 40), strings.Repeat("v", 40)
	c, _ := run(t, make(receipts, 9).store, b)
	ready(t, c)
	s := segment("hello")
	s.From = strings.Repeat("f", 40) + "\x00x"
	hand(t, c, s)
	bind, m := sc.bound()[0], sc.received()[0]
	if len(bind.SystemID) != 15 || len(bind.Password) != 8 || len(bind.SystemType) != 12 || len(m.ServiceType) != 5 || len(m.SourceAddr.Address()) != 20 {
		t.Errorf("%d %d %d %d %d", len(bind.SystemID), len(bind.Password), len(bind.SystemType), len(m.ServiceType), len(m.SourceAddr.Address()))
	}
}

// TestWindow_blocks holds back answers until the window is full, repeatedly, and finds the maximum number of
// unanswered submits.
func TestWindow_blocks(t *testing.T) {
	const window, submits = 7, 700
	sc := newCentre(t, nil)
	b := sc.bind()
	b.Window = window
	c, _ := run(t, make(receipts, 9).store, b)
	ready(t, c)
	var mu sync.Mutex
	var open []*gosmpp.SubmitSM
	most, seen := 0, 0
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		mu.Lock()
		defer mu.Unlock()
		seen++
		open = append(open, m)
		most = max(most, len(open))
		if len(open) == window || seen > submits-window {
			for _, one := range open {
				l.accept(one, fmt.Sprint(one.SequenceNumber))
			}
			open = nil
		}
	})
	var wait, callers sync.WaitGroup
	for range 20 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for range submits / 20 {
				wait.Add(1)
				c.Submit(t.Context(), segment("hello"), func(o provider.Outcome) {
					if o.Class != provider.Accepted {
						t.Errorf("%+v", o)
					}
					wait.Done()
				})
			}
		}()
	}
	callers.Wait()
	wait.Wait()
	if most != window || seen != submits {
		t.Errorf("%d submits were without an answer at once, the window is %d; %d came", most, window, seen)
	}
}

func TestSubmit_throttledIsNotSent(t *testing.T) {
	for status, want := range map[data.CommandStatusType]provider.Class{
		data.ESME_RTHROTTLED: provider.NotSent, data.ESME_RMSGQFUL: provider.NotSent, data.ESME_RX_T_APPN: provider.NotSent,
		data.ESME_RINVDSTADR: provider.Rejected, data.ESME_RSUBMITFAIL: provider.Rejected, data.ESME_RINVSRCADR: provider.Rejected,
		data.ESME_RSYSERR: provider.Unknown, data.ESME_RUNKNOWNERR: provider.Unknown,
	} {
		sc := newCentre(t, nil)
		c, _ := run(t, make(receipts, 9).store, sc.bind())
		ready(t, c)
		sc.script(func(l *line, m *gosmpp.SubmitSM) { l.refuse(m, status) })
		o := hand(t, c, segment("hello"))
		if o.Class != want || o.Class == provider.NotSent && o.RetryAfter <= 0 || o.Code != fmt.Sprintf("0x%08x", uint32(status)) {
			t.Errorf("%v is %+v, expected %s", status, o, want)
		}
		slowed := c.links[0].rate.now != 0
		if slowed != (status == data.ESME_RTHROTTLED || status == data.ESME_RMSGQFUL) {
			t.Errorf("%v: the rate in force is %v", status, c.links[0].rate.now)
		}
	}
}

func TestRate_fallsAndRecovers(t *testing.T) {
	now := clock.NewManual(noon)
	b := newBucket(now, 100)
	for range 20 {
		b.slow() // counts as one slowdown for a whole window of submits
	}
	if b.now != 50 || b.blocked <= now.Elapsed() {
		t.Errorf("after one word the rate is %v", b.now)
	}
	now.Advance(2 * afterThrottle)
	b.slow()
	if b.now != 25 {
		t.Errorf("after two words the rate is %v", b.now)
	}
	b.recover()
	if b.now != 25 {
		t.Error("the rate comes back at once")
	}
	for range 8 {
		now.Advance(2 * time.Second)
		b.recover()
	}
	if b.now != 100 {
		t.Errorf("after eight good seconds the rate is %v", b.now)
	}
	for range 30 {
		now.Advance(time.Second)
		b.slow()
	}
	if b.now < 1 {
		t.Errorf("the rate fell to %v", b.now)
	}
	// A rate defines the interval between two turns. It does not allow a burst.
	b = newBucket(clock.Real(), 1_000)
	begun := time.Now()
	for range 30 {
		if _, err := b.wait(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took < 29*time.Millisecond {
		t.Errorf("30 turns at 1000 a second took %v", took)
	}
	b = newBucket(clock.Real(), 0.001)
	_, _ = b.wait(t.Context(), nil)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.wait(over, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone waits: %v", err)
	}
	dead := make(chan struct{})
	close(dead)
	if _, err := b.wait(t.Context(), dead); !errors.Is(err, errSessionLost) {
		t.Errorf("a turn on a connection that is gone: %v", err)
	}
}

// TestSubmit_oneOutcomeWhenLineDrops cuts the connection at every 50th submit. Every submit has exactly one final
// outcome, and the centre never got a submit with the outcome NotSent.
func TestSubmit_oneOutcomeWhenLineDrops(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.Window = 20
	c, _ := run(t, make(receipts, 9).store, b)
	ready(t, c)
	var mu sync.Mutex
	n := 0
	came := map[string]int{}
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		text, _ := m.Message.GetMessageData()
		mu.Lock()
		n++
		cut := n%50 == 0
		came[string(text)]++
		mu.Unlock()
		if cut {
			_ = l.Close()
			return
		}
		l.accept(m, string(text))
	})
	outcomes := map[string][]provider.Outcome{}
	var callers sync.WaitGroup
	for w := range 8 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for i := range 60 {
				text := fmt.Sprintf("w%d i%d", w, i)
				for {
					o := hand(t, c, segment(text))
					mu.Lock()
					outcomes[text] = append(outcomes[text], o)
					mu.Unlock()
					if o.Class != provider.NotSent {
						break
					}
					runtime.Gosched() // lets the client bind again
				}
			}
		}()
	}
	callers.Wait()
	mu.Lock() // the centre may still process what it read before it cut the connection
	defer mu.Unlock()
	if len(outcomes) != 480 {
		t.Errorf("%d of 480 messages have an outcome", len(outcomes))
	}
	unknown := 0
	for text, list := range outcomes {
		last := list[len(list)-1]
		switch {
		case last.Class == provider.Accepted && (came[text] != 1 || last.UpstreamID != text):
			t.Errorf("%s was accepted as %q and came %d times", text, last.UpstreamID, came[text])
		case last.Class == provider.Unknown:
			if unknown++; came[text] > 1 {
				t.Errorf("%s is unknown and came %d times", text, came[text])
			}
		case last.Class != provider.Accepted:
			t.Errorf("%s: %+v", text, last)
		}
	}
	if unknown == 0 {
		t.Error("no submit was ever lost on the way: the test cut nothing")
	}
}

func TestSubmit_unansweredIsUnknown(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.Window, b.EnquireEvery = 2, 100_000*time.Hour
	sc.script(func(*line, *gosmpp.SubmitSM) {})
	now := clock.NewManual(noon)
	c, _ := runAt(t, now, make(receipts, 9).store, b)
	ready(t, c)
	for range 6 { // more than the window, so a submit that gives up must free its place
		if o := sc.giveUp(c, now, segment("hello")); o.Class != provider.Unknown {
			t.Errorf("%+v", o)
		}
	}
	if n := len(sc.received()); n != 6 {
		t.Errorf("%d of 6 came", n)
	}
}

func TestSubmit_lateAnswer(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.EnquireEvery = 100_000 * time.Hour
	var first *gosmpp.SubmitSM
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		if first == nil {
			first = m
			return
		}
		l.accept(first, "late")
		l.accept(m, "in time")
	})
	now := clock.NewManual(noon)
	c, _ := runAt(t, now, make(receipts, 9).store, b)
	ready(t, c)
	if o := sc.giveUp(c, now, segment("one")); o.Class != provider.Unknown {
		t.Errorf("%+v", o)
	}
	if o := hand(t, c, segment("two")); o.Class != provider.Accepted || o.UpstreamID != "in time" {
		t.Errorf("%+v", o)
	}
}

func TestSession_centreUnbinds(t *testing.T) {
	sc := newCentre(t, nil)
	c, _ := run(t, make(receipts, 9).store, sc.bind())
	ready(t, c)
	sc.wait("bind")
	sc.first().send(gosmpp.NewUnbind())
	sc.wait("unbind answered")
	sc.wait("bind")
	ready(t, c)
	if o := hand(t, c, segment("hello")); o.Class != provider.Accepted {
		t.Errorf("%+v", o)
	}
}

// TestStop_waitsForAnswers stops a client with unanswered submits. The client waits for their answers, sends no later
// submit, and ends the connection with an unbind.
func TestStop_waitsForAnswers(t *testing.T) {
	sc := newCentre(t, nil)
	c := New(Options{Binds: []Bind{sc.bind()}, Clock: clock.Real(), Log: slog.New(slog.DiscardHandler)})
	c.Start(t.Context())
	ready(t, c)
	at := make(chan struct{}, 9)
	goOn := make(chan struct{})
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		at <- struct{}{}
		go func() {
			<-goOn
			l.accept(m, "kept")
		}()
	})
	outcome := make(chan provider.Outcome, 1)
	c.Submit(t.Context(), segment("hello"), func(o provider.Outcome) { outcome <- o })
	<-at
	ended := make(chan struct{})
	go func() {
		c.Stop(t.Context()) // it waits as long as necessary; Run waits for the answers only for a moment
		close(ended)
	}()
	clocktest.Await(t, "a client that ends says so", func() bool { return errors.Is(c.Ready(""), provider.ErrElsewhere) })
	if o := hand(t, c, segment("too late")); o.Class != provider.NotSent {
		t.Errorf("%+v", o)
	}
	close(goOn)
	if o := <-outcome; o.Class != provider.Accepted || o.UpstreamID != "kept" {
		t.Errorf("%+v", o)
	}
	<-ended
	sc.wait("unbind")
	if n := len(sc.received()); n != 1 {
		t.Errorf("%d submits came, expected 1", n)
	}
	// The client may run again, because another node returned the connection.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	ready(t, c)
	sc.script(nil)
	if o := hand(t, c, segment("again")); o.Class != provider.Accepted {
		t.Errorf("%+v", o)
	}
	cancel()
	<-done
}

func TestStop_withoutAnswers(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.Window = 1
	c, stop := run(t, make(receipts, 9).store, b)
	ready(t, c)
	at := make(chan struct{}, 9)
	sc.script(func(*line, *gosmpp.SubmitSM) { at <- struct{}{} })
	outcomes := make(chan provider.Outcome, 2)
	for range 2 { // the second submit waits for room in the window
		go c.Submit(t.Context(), segment("hello"), func(o provider.Outcome) { outcomes <- o })
	}
	<-at
	stop()
	one, two := <-outcomes, <-outcomes
	if one.Class == provider.NotSent {
		one, two = two, one
	}
	if one.Class != provider.Unknown || two.Class != provider.NotSent {
		t.Errorf("%+v, %+v", one, two)
	}
}

func TestSession_enquireLink(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.EnquireEvery = 20 * time.Millisecond
	c, _ := run(t, make(receipts, 9).store, b)
	ready(t, c)
	sc.wait("enquire")
	sc.wait("enquire")
	if len(sc.bound()) != 1 {
		t.Errorf("%d binds although the centre answers", len(sc.bound()))
	}
}

func TestSession_silentCentre(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	seen := make(chan string, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for { // it answers only binds
					p, err := readPDU(conn)
					if err != nil {
						seen <- "left"
						return
					}
					if p.id == bindTransceiver {
						_, _ = conn.Write(pdu{id: p.id | answerBit, sequence: p.sequence, body: []byte("x\x00")}.appendTo(nil))
					}
				}
			}()
		}
	}()
	b := Bind{Name: "silent", Address: listener.Addr().String(), EnquireEvery: 20 * time.Millisecond, AnswerTimeout: 200 * time.Millisecond, ReconnectWithin: 50 * time.Millisecond}
	run(t, make(receipts, 9).store, b)
	for range 2 {
		select {
		case <-seen:
		case <-time.After(patience):
			t.Fatal("a silent centre is never left")
		}
	}
}

func TestBind_refusedIsRetried(t *testing.T) {
	sc := newCentre(t, nil)
	sc.refusal = data.ESME_RINVPASWD
	c, _ := run(t, make(receipts, 9).store, sc.bind())
	for range 3 {
		sc.wait("bind")
	}
	if err := c.Ready(""); err == nil || errors.Is(err, provider.ErrElsewhere) {
		t.Errorf("ready: %v", err)
	}
	if o := hand(t, c, segment("hello")); o.Class != provider.NotSent || o.RetryAfter <= 0 {
		t.Errorf("%+v", o)
	}
	if s := c.States(); len(s) != 1 || s[0].Connections != 1 || s[0].Bound != 0 || s[0].Since.IsZero() ||
		!strings.Contains(s[0].Why, "0x0000000e, ESME_RINVPASWD: invalid password") {
		t.Errorf("the refused bind is %+v", s)
	}
	sc.mu.Lock()
	sc.refusal = data.ESME_ROK
	sc.mu.Unlock()
	ready(t, c)
	if s := c.States(); s[0].Bound != 1 || s[0].Why != "" {
		t.Errorf("the bind is %+v", s)
	}
}

func TestBind_foreignCertificate(t *testing.T) {
	certificate, pool := selfSigned(t)
	sc := newCentre(t, &tls.Config{Certificates: []tls.Certificate{certificate}})
	b := sc.bind()
	b.TLS = &tls.Config{RootCAs: pool, ServerName: "smsc.test"}
	c, _ := run(t, make(receipts, 9).store, b)
	ready(t, c)
	if o := hand(t, c, segment("hello")); o.Class != provider.Accepted {
		t.Errorf("%+v", o)
	}
	// A certificate for another name is refused.
	b.TLS = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "smsc.test"}
	l := newLink(b.withDefaults(), Transceiver, Options{Clock: clock.Real()})
	if _, err := open(t.Context(), l); err == nil {
		t.Error("bound with a stranger")
	}
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "smsc.test"}, DNSNames: []string{"smsc.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestBind_transmitterAndReceiver(t *testing.T) {
	sc := newCentre(t, nil)
	b := sc.bind()
	b.Mode = Transmitter
	got := make(receipts, 9)
	c, _ := run(t, got.store, b)
	ready(t, c)
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		if l.mode != data.BIND_TRANSMITTER {
			t.Errorf("submitted on %v", l.mode)
		}
		l.accept(m, "x")
		sc.mu.Lock()
		defer sc.mu.Unlock()
		for _, other := range sc.lines {
			if other.mode == data.BIND_RECEIVER {
				other.report(1, "233241234567", "id:x stat:EXPIRED err:017")
			}
		}
	})
	hand(t, c, segment("hello"))
	if r := got.next(t); r.State != provider.DeliveryExpired || r.Code != "017" {
		t.Errorf("%+v", r)
	}
}

func TestBind_byNetwork(t *testing.T) {
	mtn, rest := newCentre(t, nil), newCentre(t, nil)
	one, two := mtn.bind(), rest.bind()
	one.Networks, two.Networks, two.Connections = []msisdn.Network{msisdn.MTN}, []msisdn.Network{msisdn.Telecel, msisdn.AirtelTigo}, 2
	c, _ := run(t, make(receipts, 9).store, one, two)
	ready(t, c)
	for to, n := range map[msisdn.MSISDN]int{"233241234567": 3, "233201234567": 2, "233261234567": 2, "233231234567": 1} {
		for range n {
			s := segment("hello")
			s.To = to
			hand(t, c, s)
		}
	}
	a, b := len(mtn.received()), len(rest.received())
	if a < 3 || b < 4 || a+b != 8 { // a number without a network may go to either
		t.Errorf("%d and %d", a, b)
	}
	if len(rest.bound()) != 2 {
		t.Errorf("%d connections instead of 2", len(rest.bound()))
	}
	_ = mtn.listener.Close() // closed before the cut, because the client reconnects afterwards
	mtn.cut()
	clocktest.Await(t, "a network without a connection is not ready", func() bool { return c.Ready(msisdn.MTN) != nil })
	if err := c.Ready(msisdn.Telecel); err != nil {
		t.Error(err)
	}
	if o := hand(t, c, segment("hello")); o.Class != provider.NotSent {
		t.Errorf("sent to a network without a connection: %+v", o)
	}
}
