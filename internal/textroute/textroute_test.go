package textroute

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/smstest"
)

// web is a provider over HTTP whose outcomes a test decides.
type web struct {
	mu       sync.Mutex
	outcomes []provider.Outcome // the last one stays
	got      []provider.Text
	hold     chan struct{} // not nil: a request waits for it
	most, at int           // requests at the same time
}

func (w *web) SendText(_ context.Context, t provider.Text) provider.Outcome {
	w.mu.Lock()
	w.got = append(w.got, t)
	w.at++
	w.most = max(w.most, w.at)
	hold, o := w.hold, w.outcomes[0]
	if len(w.outcomes) > 1 {
		w.outcomes = w.outcomes[1:]
	}
	w.mu.Unlock()
	if hold != nil {
		<-hold
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at--
	return o
}

func (w *web) texts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got)
}

var (
	taken   = provider.Outcome{Class: provider.Accepted, UpstreamID: "7"}
	down    = provider.Outcome{Class: provider.NotSent, Message: "connection refused"}
	lost    = provider.Outcome{Class: provider.Unknown, Message: "no answer in time"}
	poor    = provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonFloat, Code: "402"}
	invalid = provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonInvalidRequest, Code: "422"}
	slower  = provider.Outcome{Class: provider.Barred, Code: "429", RetryAfter: 3 * time.Second}
)

// fixture is a table of binds and two providers over HTTP.
type fixture struct {
	*Table
	t        *testing.T
	clock    *clock.Clock
	binds    *smstest.Operator
	one, two *web
}

func open(t *testing.T, routes ...Route) *fixture {
	f := &fixture{t: t, clock: clock.NewManual(smstest.Morning), binds: smstest.NewOperator(), one: &web{outcomes: []provider.Outcome{taken}}, two: &web{outcomes: []provider.Outcome{taken}}}
	f.Table = New(Options{Binds: f.binds, Clock: f.clock, Routes: routes, Metrics: NewMetrics(), Callback: func(r provider.TextRail) string { return "https://a.example/" + r.Name },
		Rails: []provider.TextRail{{Name: "one", Window: 2, Texts: f.one}, {Name: "two", Window: 2, Texts: f.two, Senders: []string{"Kejetia"}}}})
	return f
}

const (
	mtn     = msisdn.MSISDN("233241000001")
	telecel = msisdn.MSISDN("233201000001")
)

// offer offers a message as delivery does, in whole or in segments, and waits for the outcome.
func (f *fixture) offer(from string, to msisdn.MSISDN) provider.Outcome {
	f.t.Helper()
	s := provider.Segment{From: from, To: to, Part: 1, Parts: 1}
	if f.Whole(from, to) {
		s.Text = "hello"
	}
	out := make(chan provider.Outcome, 1)
	f.Submit(f.t.Context(), s, func(o provider.Outcome) { out <- o })
	return <-out
}

func (f *fixture) want(what string, one, two, binds int) {
	f.t.Helper()
	if a, b, c := f.one.texts(), f.two.texts(), len(f.binds.All()); a != one || b != two || c != binds {
		f.t.Errorf("%s: %d over one, %d over two, %d over the binds; want %d, %d, %d", what, a, b, c, one, two, binds)
	}
}

// The most specific route counts: for a sender and a network, for a sender, for a network, for everybody, and then the default.
func TestRoute_mostParticularCounts(t *testing.T) {
	f := open(t, Route{Network: msisdn.MTN, Sender: "Kejetia", Providers: []string{"two"}}, Route{Sender: "Kejetia", Providers: []string{"one"}},
		Route{Network: msisdn.MTN, Providers: []string{SMPP}}, Route{Providers: []string{"one"}})
	f.offer("Kejetia", mtn)
	f.want("sender and network", 0, 1, 0)
	f.offer("Kejetia", telecel)
	f.want("sender", 1, 1, 0)
	f.offer("Shop", mtn)
	f.want("network", 1, 1, 1)
	f.offer("Shop", telecel)
	f.want("everybody", 2, 1, 1)
	if o := open(t).offer("Shop", mtn); o.UpstreamID != "id-000001" {
		t.Errorf("the default is not the binds: %+v", o)
	}
}

// A provider without the sender ID is skipped.
func TestRoute_senderNotRegistered(t *testing.T) {
	f := open(t, Route{Providers: []string{"two", "one"}})
	if o := f.offer("Shop", mtn); o.Class != provider.Accepted || o.UpstreamID != "one/7" {
		t.Errorf("%+v", o)
	}
	f.want("another's sender", 1, 0, 0)
	if got := f.one.got[0]; got.Body != "hello" || got.Callback != "https://a.example/one" || got.From != "Shop" || got.To != mtn {
		t.Errorf("%+v", got)
	}
}

// Only a message that the provider certainly did not accept goes to the next provider. A message without an answer goes to none.
func TestFailover_onlyWhereNothingWasTaken(t *testing.T) {
	for name, c := range map[string]struct {
		first provider.Outcome
		class provider.Class
		next  bool
	}{
		"unreachable": {down, provider.NotSent, true}, "account refused": {poor, provider.NotSent, true},
		"lost": {lost, provider.Unknown, false}, "message refused": {invalid, provider.Rejected, false}, "throttled": {slower, provider.NotSent, false},
		"undocumented refusal": {provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonFloat}, provider.Rejected, false},
	} {
		f := open(t, Route{Providers: []string{"one", "two", SMPP}})
		f.one.outcomes = []provider.Outcome{c.first}
		if o := f.offer("Kejetia", mtn); o.Class != c.class {
			t.Errorf("%s: %+v", name, o)
		}
		if !f.Whole("Kejetia", mtn) {
			t.Errorf("%s: goes to the binds", name)
		}
		if rests := f.carriers[0].ready() != nil; rests != c.next {
			t.Errorf("%s: rests %v", name, rests)
		}
		f.want(name, 1, 0, 0)
		if !c.next {
			continue
		}
		f.two.outcomes = []provider.Outcome{down}
		f.offer("Kejetia", mtn)
		f.want(name+", then two", 1, 1, 0)
		f.offer("Kejetia", mtn)
		f.want(name+", then the binds", 1, 1, 1)
		f.clock.Advance(restRefused)
		f.offer("Kejetia", mtn)
		f.want(name+", and one again", 2, 1, 1)
	}
}

// A route without the binds never uses them, even while its provider is paused.
func TestRoute_withoutBindsStaysWithout(t *testing.T) {
	f := open(t, Route{Providers: []string{"one"}})
	f.one.outcomes = []provider.Outcome{down}
	f.offer("Shop", mtn)
	if o := f.offer("Shop", mtn); o.Class != provider.NotSent || o.RetryAfter == 0 {
		t.Errorf("%+v", o)
	}
	f.want("resting", 1, 0, 0)
}

// Several lost responses in a row pause a provider, so that not all messages of a campaign become unknown.
func TestCarrier_restsAfterLostResponses(t *testing.T) {
	f := open(t, Route{Providers: []string{"one", SMPP}})
	f.one.outcomes = []provider.Outcome{lost}
	for range lostInRow + 2 {
		f.offer("Shop", mtn)
	}
	f.want("lost", lostInRow, 0, 2)
	if s := f.States(); s[0].Up || !strings.Contains(s[0].Why, "no answer") || !s[1].Up {
		t.Errorf("%+v", s)
	}
	f.clock.Advance(restLost)
	if s := f.States(); !s[0].Up || s[0].Why != "" {
		t.Errorf("%+v", s)
	}
}

// A 429 pauses the provider for its Retry-After. Its messages wait for that time, and the window limits the open requests.
func TestCarrier_windowAndPause(t *testing.T) {
	f := open(t, Route{Providers: []string{"one"}})
	f.one.outcomes = []provider.Outcome{slower, taken}
	if o := f.offer("Shop", mtn); o.Class != provider.NotSent || o.RetryAfter != 3*time.Second {
		t.Errorf("%+v", o)
	}
	f.one.hold = make(chan struct{})
	outcomes := make(chan provider.Outcome, 5)
	go func() {
		for range 5 {
			f.Submit(t.Context(), provider.Segment{From: "Shop", To: mtn, Text: "hello"}, func(o provider.Outcome) { outcomes <- o })
		}
	}()
	clocktest.Await(t, "a wait", func() bool { return f.clock.Waiting() == 1 })
	f.want("paused", 1, 0, 0)
	f.clock.Advance(3 * time.Second)
	clocktest.Await(t, "two requests", func() bool { return f.one.texts() == 3 })
	close(f.one.hold)
	for range 5 {
		if o := <-outcomes; o.Class != provider.Accepted {
			t.Errorf("%+v", o)
		}
	}
	if f.one.most > 2 {
		t.Errorf("%d requests at once", f.one.most)
	}
}

// A message that waits for the window can be given up. A request that has begun runs to its end.
func TestSubmit_givenUpWhileItWaits(t *testing.T) {
	f := open(t, Route{Providers: []string{"one"}})
	f.one.hold = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	outcomes := make(chan provider.Outcome, 3)
	go func() {
		for range 3 {
			f.Submit(ctx, provider.Segment{From: "Shop", To: mtn, Text: "hello"}, func(o provider.Outcome) { outcomes <- o })
		}
	}()
	clocktest.Await(t, "two requests", func() bool { return f.one.texts() == 2 })
	cancel()
	if o := <-outcomes; o.Class != provider.NotSent {
		t.Errorf("%+v", o)
	}
	close(f.one.hold)
	for range 2 {
		if o := <-outcomes; o.Class != provider.Accepted {
			t.Errorf("%+v", o)
		}
	}
	f.want("given up", 2, 0, 0)
}

func TestReady_anyProvider(t *testing.T) {
	f := open(t)
	f.binds.SetReady(http.ErrServerClosed)
	if err := f.Ready(""); err != nil {
		t.Error(err)
	}
	f.one.outcomes, f.two.outcomes = []provider.Outcome{down}, []provider.Outcome{down}
	f.offer("Kejetia", mtn)
	f.offer("Kejetia", mtn)
	if err := f.Ready(""); err == nil || !strings.Contains(err.Error(), "at the moment") {
		t.Errorf("%v", err)
	}
	if names := f.route("Kejetia", mtn); !slices.Equal(names, []string{SMPP, "one", "two"}) {
		t.Errorf("%v", names)
	}
}
