package mtnmomo_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/mtnmomo"
	"github.com/makola/makola/internal/provider/providertest"
	"github.com/makola/makola/internal/sim"
)

// bench is the adapter in front of a simulated MTN.
type bench struct {
	providertest.Bench
	sim     *sim.Sim
	clock   *clock.Clock
	adapter *mtnmomo.Adapter
	config  config.MTN
}

func newBench(t *testing.T, o sim.Options) *bench {
	t.Helper()
	b := &bench{clock: clock.NewManual(time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC))}
	o.Clock = b.clock
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.sim = s
	server := httptest.NewServer(s.Handler())
	var mu sync.Mutex
	var exchanges []provider.Exchange
	var calls []provider.CallbackRequest
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, provider.CallbackRequest{Method: r.Method, Header: r.Header, Body: body})
	}))
	b.config = sim.MTNConfig(server.URL)
	options := provider.ClientOptions{Mode: "test", Clock: b.clock, Record: func(e provider.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		exchanges = append(exchanges, e)
	}}
	b.adapter = mtnmomo.New(b.config, options)
	t.Cleanup(func() {
		b.adapter.Close()
		s.Close()
		server.Close()
		back.Close()
	})
	b.Bench = providertest.Bench{
		Rail: b.adapter.Rail(), Unreachable: mtnmomo.New(sim.MTNConfig("http://"+providertest.Nowhere(t)), options).Rail(), Network: msisdn.MTN,
		Fault: func(op, fault string, count int) {
			if err := s.Inject(sim.Fault{Provider: sim.MTN, Operation: op, Kind: sim.FaultKind(fault), Count: count}); err != nil {
				t.Fatal(err)
			}
		},
		Clear: s.ClearFaults,
		Advance: func(d time.Duration) {
			b.clock.Advance(d)
			if err := s.Quiet(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		Moved: func(reference string) []providertest.Movement {
			var list []providertest.Movement
			for _, e := range s.Entries(reference) {
				list = append(list, providertest.Movement{Amount: e.Amount, Status: string(e.Status)})
			}
			return list
		},
		CallbackURL: back.URL + "/callbacks/mtn/token",
		Callbacks: func() []provider.CallbackRequest {
			mu.Lock()
			defer mu.Unlock()
			got := calls
			calls = nil
			return got
		},
		Exchanges: func() []provider.Exchange {
			mu.Lock()
			defer mu.Unlock()
			return exchanges
		},
		Secrets: []string{b.config.CollectionAPIKey.Reveal(), b.config.DisbursementKey.Reveal(), "Bearer ", "access_token\":\"c", "KWAME"},
	}
	return b
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name    string
		options sim.Options
	}{{"reason as text", sim.Options{}}, {"reason as object", sim.Options{MTNReasonObject: true}}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.options)
			t.Run("collector", func(t *testing.T) { providertest.Collector(t, b.Bench) })
			t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
			t.Run("names", func(t *testing.T) { providertest.NameResolver(t, b.Bench) })
			t.Run("float", func(t *testing.T) {
				providertest.FloatReader(t, b.Bench, func() money.Pesewas { return b.sim.Float(sim.MTN) })
			})
		})
	}
}

func (b *bench) collect(reference string) provider.Outcome {
	return b.Rail.Collector.Collect(context.Background(), provider.CollectRequest{
		ProviderReference: reference, Reference: "ref-000000001", Amount: 500, MSISDN: b.Wallet("000"), Network: msisdn.MTN,
	})
}
