package providertest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim"
)

// Simulated is a Bench whose provider is part of a simulator.
type Simulated struct {
	Bench
	Sim   *sim.Sim
	Clock *clock.Clock
	Base  string // address of the simulator
}

// Token is the token of the callback address.
const Token = "0123456789abcdef0123456789abcdef"

// Simulate starts a simulator with one provider, and an adapter in front of it. part returns the provider, whose callbacks go
// to the address. adapter returns the rail of an adapter for the simulator at base, and its Close. Its first call is for the
// running simulator.
func Simulate(t *testing.T, name string, o sim.Options, part func(callbackURL string) sim.Part, adapter func(base string, o provider.ClientOptions) (provider.Rail, func())) *Simulated {
	t.Helper()
	b := &Simulated{Clock: clock.NewManual(time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC))}
	var mu sync.Mutex
	var exchanges []provider.Exchange
	var calls []provider.CallbackRequest
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, provider.CallbackRequest{Method: r.Method, Host: r.Host, Path: r.URL.Path, Header: r.Header, Body: body})
	}))
	callbackURL := back.URL + "/callbacks/" + name + "/" + Token
	o.Clock = b.Clock
	s, err := sim.New(o, part(callbackURL))
	if err != nil {
		t.Fatal(err)
	}
	tamper := &Tamper{}
	server := httptest.NewServer(tamper.Wrap(s.Handler()))
	options := provider.ClientOptions{Mode: "test", Clock: b.Clock, Record: func(e provider.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		exchanges = append(exchanges, e)
	}}
	rail, closeAdapter := adapter(server.URL, options)
	unreachable, closeUnreachable := adapter("http://"+Nowhere(t), options)
	t.Cleanup(func() {
		closeAdapter()
		closeUnreachable()
		s.Close()
		server.Close()
		back.Close()
	})
	b.Sim, b.Base = s, server.URL
	b.Bench = Bench{
		Rail: rail, Unreachable: unreachable, CallbackURL: callbackURL, Tamper: tamper,
		Fault: func(op, fault string, count int) {
			if err := s.Inject(sim.Fault{Provider: name, Operation: op, Kind: sim.FaultKind(fault), Count: count}); err != nil {
				t.Fatal(err)
			}
		},
		Clear: s.ClearFaults,
		Advance: func(d time.Duration) {
			b.Clock.Advance(d)
			if err := s.Quiet(context.Background()); err != nil {
				t.Fatal(err)
			}
		},
		Moved: func(reference string) []Movement {
			var list []Movement
			for _, e := range s.Entries(reference) {
				list = append(list, Movement{Amount: e.Amount, Status: string(e.Status)})
			}
			return list
		},
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
	}
	return b
}
