package hubtelsms

import (
	"context"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim"
	simhubtelsms "github.com/makola/makola/internal/sim/hubtelsms"
	"github.com/makola/makola/internal/test/providertest"
)

// Every sample is read as documented, and only one of grade D is a refusal, an acceptance or a state.
func TestSamples_readAsDocumented(t *testing.T) {
	for _, r := range providertest.TextSamples(t) {
		if r.Call != "state" {
			r.Check(t, sent(r.Answer()))
			continue
		}
		state := ""
		receipt, ok := stateOf(r.Answer(), "9c0d1e2f-3a4b-4c5d-8e6f-7a8b9c0d1e2f")
		if ok {
			state = strconv.Itoa(int(receipt.State))
		}
		if state != r.Want.State || ok && r.Grade != "D" {
			t.Errorf("%s %s: %+v", r.Name, r.Source, receipt)
		}
	}
}

// bench is an adapter in front of a simulated Hubtel SMS.
type bench struct {
	sim       *sim.Sim
	hub       *simhubtelsms.Hubtel
	adapter   *Adapter
	clock     *clock.Clock
	options   provider.ClientOptions
	mu        sync.Mutex
	exchanges []provider.Exchange
	tamper    providertest.Tamper
}

func newBench(t *testing.T) *bench {
	b := &bench{hub: simhubtelsms.New(), clock: clock.NewManual(clock.Real().Now())}
	s, err := sim.New(sim.Options{Clock: b.clock}, b.hub.Join)
	if err != nil {
		t.Fatal(err)
	}
	b.sim = s
	server := httptest.NewServer(b.tamper.Wrap(s.Handler()))
	b.options = provider.ClientOptions{Mode: "test", Record: func(e provider.Exchange) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.exchanges = append(b.exchanges, e)
	}}
	b.adapter = New(simhubtelsms.Config(server.URL), b.options)
	t.Cleanup(func() { b.adapter.Close(); server.Close(); s.Close() })
	return b
}

func (b *bench) send(a *Adapter) func(context.Context, msisdn.MSISDN, string) provider.Outcome {
	return func(ctx context.Context, to msisdn.MSISDN, text string) provider.Outcome {
		return a.SendText(ctx, provider.Text{From: "Kejetia", To: to, Body: text})
	}
}

func TestTextSender_conforms(t *testing.T) {
	b := newBench(t)
	nowhere := New(simhubtelsms.Config("http://"+providertest.Nowhere(t)), b.options)
	t.Cleanup(nowhere.Close)
	account := simhubtelsms.Config("")
	providertest.TextSender(t, providertest.TextBench{Tamper: &b.tamper,
		Send: b.send(b.adapter), Unreachable: b.send(nowhere), Clear: b.sim.ClearFaults, Refusals: []string{"refuse"}, Secrets: []string{account.ClientSecret.Reveal()},
		Fault: func(fault string) {
			if err := b.sim.Inject(sim.Fault{Provider: simhubtelsms.Name, Operation: sim.OpText, Kind: sim.FaultKind(fault), Count: 1}); err != nil {
				t.Fatal(err)
			}
		},
		Taken: func(to msisdn.MSISDN) (n int) {
			for _, x := range b.hub.Texts() {
				if x.To == string(to) {
					n++
				}
			}
			return n
		},
		Exchanges: func() []provider.Exchange {
			b.mu.Lock()
			defer b.mu.Unlock()
			return append([]provider.Exchange(nil), b.exchanges...)
		},
	})
}

// A message's state is polled until it is final. An unknown id has none, and no response is recorded: it repeats the text.
func TestTextState_polled(t *testing.T) {
	b := newBench(t)
	for number, want := range map[msisdn.MSISDN]provider.Delivery{"233241234567": provider.Delivered, "233240000024": provider.DeliveryFailed, "233240000026": provider.DeliveryRejected} {
		o := b.send(b.adapter)(t.Context(), number, "hello")
		if r, ok := b.adapter.TextState(t.Context(), o.UpstreamID); !ok || r.State != provider.DeliveryPending {
			t.Errorf("at first %+v %v", r, ok)
		}
		b.clock.Advance(sim.SettleSoon)
		if err := b.sim.Quiet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, ok := b.adapter.TextState(t.Context(), o.UpstreamID); !ok || r.State != want || r.To != number || r.UpstreamID != o.UpstreamID {
			t.Errorf("%s: %+v %v", number, r, ok)
		}
	}
	if r, ok := b.adapter.TextState(t.Context(), "no such/id"); ok {
		t.Errorf("%+v", r)
	}
	for _, e := range b.exchanges {
		if e.Operation == "sms_state" && e.Answer != "***" {
			t.Errorf("recorded %q", e.Answer)
		}
	}
}
