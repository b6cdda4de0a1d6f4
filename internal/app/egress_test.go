package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/webhook"
)

// Providers of live money are reached through the egress proxy. The simulator never is.
func TestEgress_isOfLiveProviders(t *testing.T) {
	t.Parallel()
	proxy := newRefusingProxy(t)
	a := &App{log: slog.New(slog.DiscardHandler), clock: clock.Real(), sim: &simulator{url: "http://sim.invalid:1"}, cfg: config.Server{
		Egress:   config.Egress{URL: config.Credential(proxy.URL), Except: []string{"trnf.hubtel.invalid"}},
		MTN:      config.MTN{URL: "https://momo.example", CollectionUser: "u", CollectionKey: "k", CollectionAPIKey: "k", DisbursementUser: "u", DisbursementKey: "k", DisbursementAPIKey: "k"},
		Hubtel:   config.Hubtel{ClientID: "id", ClientSecret: "secret", POSSales: "1", Prepaid: "2", BalanceURL: "https://trnf.hubtel.invalid"},
		Paystack: config.Paystack{SecretKey: "sk_live_x", URL: "https://paystack.example"},
		PawaPay:  config.PawaPay{Token: "x", URL: "https://pawapay.example"},
		Moolre:   config.Moolre{User: "x", URL: "https://moolre.example"},
	}}
	if err := a.buildProxy(t.Context()); err != nil {
		t.Fatal(err)
	}
	exchanges := map[string]int{}
	adapters := NewAdapters(a.cfg, a.simURL(), provider.ClientOptions{Clock: a.clock, Proxy: a.proxy, Record: func(e provider.Exchange) {
		if e.Written {
			t.Errorf("%s of %s was sent", e.Operation, e.Provider)
		}
		exchanges[e.Mode+" "+e.Provider]++
	}})
	defer adapters.Close()
	for _, rail := range adapters.Rails {
		if _, o := rail.Floats.Float(t.Context()); o.Class == provider.Accepted {
			t.Errorf("%s %s has a float", rail.Mode, rail.Name)
		}
	}
	if asked := proxy.targets(); !slices.Equal(asked, []string{"CONNECT momo.example:443", "CONNECT moolre.example:443", "CONNECT pawapay.example:443", "CONNECT paystack.example:443"}) || len(exchanges) != 10 {
		t.Errorf("the proxy was asked for %q by %v", asked, exchanges)
	}
}

// Webhooks of a server go through its egress proxy.
func TestEgress_isOfWebhooks(t *testing.T) {
	t.Parallel()
	proxy := newRefusingProxy(t)
	a, err := Start(t.Context(), config.Server{Storage: freshStorage(t, db.SQLite), Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off",
		DrainFor: time.Minute, Egress: config.Egress{URL: config.Credential(proxy.URL)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = a.db.Write(t.Context(), func(tx *db.Tx) error {
		return a.webhooks.Queue(tx, webhook.Event{ID: "event-1", Tenant: "tenant", Mode: "test", Subject: "subject-1", Kind: webhook.Payout, URL: "https://93.184.216.34/hook",
			Amount: 1000, Status: "success", Reference: "order-1", ProviderReference: "9b1f0f4e-0000-4000-8000-000000000007", First: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, "a CONNECT", func() bool { return len(proxy.targets()) > 0 })
	if asked := proxy.targets(); !slices.Equal(asked, []string{"CONNECT 93.184.216.34:443"}) {
		t.Errorf("the proxy was asked for %q", asked)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// refusingProxy is an egress proxy that opens no tunnel.
type refusingProxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newRefusingProxy(t *testing.T) *refusingProxy {
	p := &refusingProxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(p.Close)
	return p
}

// targets returns the distinct request lines so far, sorted.
func (p *refusingProxy) targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(p.asked)))
}
