package payments

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/mtnmomo"
	"github.com/makola/makola/internal/sim"
	simmtn "github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/test/dbtest"
)

// The real adapter and the simulator speak MTN's protocol, and the simulator's book agrees with ours. Callbacks
// arrive as hints.
func TestMTNProtocol_agreesWithItsBook(t *testing.T) {
	tests := []struct {
		name    string
		payee   msisdn.MSISDN
		fault   sim.FaultKind // affects the first request that moves money
		collect bool
		refused bool
		status  book.Status
		paid    int // entries in the provider's book that moved money
	}{
		{name: "paid after two seconds", payee: "233240000000", status: book.StatusSuccess, paid: 1},
		{name: "paid at once", payee: "233240000001", status: book.StatusSuccess, paid: 1},
		{name: "the callback comes twice", payee: "233240000004", status: book.StatusSuccess, paid: 1},
		{name: "no callback comes", payee: "233240000005", status: book.StatusSuccess, paid: 1},
		{name: "the answer is lost, and it was paid", payee: "233240000006", status: book.StatusSuccess, paid: 1},
		{name: "the answer is lost, and it failed", payee: "233240000007", status: book.StatusFailed},
		{name: "5xx, nothing was done", payee: "233240000001", fault: sim.ErrorBefore, status: book.StatusSuccess, paid: 1},
		{name: "5xx, it was done", payee: "233240000001", fault: sim.ErrorAfter, status: book.StatusSuccess, paid: 1},
		{name: "throttled once", payee: "233240000001", fault: sim.Throttle, status: book.StatusSuccess, paid: 1},
		{name: "refused outright", payee: "233240000030", refused: true, status: book.StatusFailed},
		{name: "the wallet is barred", payee: "233240000026", status: book.StatusFailed},
		{name: "the request is lost", payee: "233240000001", fault: sim.RequestLost, status: book.StatusSuccess, paid: 1},
		{name: "rubbish is answered", payee: "233240000001", fault: sim.Malformed, status: book.StatusSuccess, paid: 1},
		{name: "the callback comes before the answer", payee: "233240000001", fault: sim.CallbackEarly, status: book.StatusSuccess, paid: 1},
		{name: "the callback lies", payee: "233240000001", fault: sim.CallbackForged, status: book.StatusSuccess, paid: 1},
		{name: "collected", payee: "233240000001", collect: true, status: book.StatusSuccess, paid: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				simulator, base := newSimulator(t, h)
				adapter := mtnmomo.New(simmtn.Config(base), provider.ClientOptions{Mode: "test", Clock: h.clock})
				t.Cleanup(adapter.Close)
				h.rails = []provider.Rail{adapter.Rail()}
				n := h.node("a")
				h.callback = func(rail provider.Rail, r provider.CallbackRequest) {
					hints, err := rail.Callbacks.ParseCallback(r)
					if err == nil {
						err = n.Hint(context.Background(), rail, hints)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if tt.fault != "" {
					if err := simulator.Inject(sim.Fault{Provider: mtnmomo.Name, Kind: tt.fault}); err != nil {
						t.Fatal(err)
					}
				}
				settle := func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := simulator.Quiet(ctx); err != nil {
						t.Fatal(err)
					}
					n.quiet()
				}
				var pay book.Payment
				var err error
				if tt.collect {
					r := h.collect()
					r.MSISDN = tt.payee
					pay, _, err = n.Collect(t.Context(), h.caller(), r)
				} else {
					r := h.payout()
					r.MSISDN = tt.payee
					pay, _, err = n.Payout(t.Context(), h.caller(), r)
				}
				if tt.refused {
					pay = wantKind(t, err, problem.Refused).Data.(book.Payment)
				} else if err != nil {
					t.Fatal(err)
				}
				for range 40 {
					settle()
					if !n.must(pay.Kind, pay.ID).Status.Open() {
						break
					}
					n.clock.Advance(2 * time.Second)
				}
				settle()
				got := n.must(pay.Kind, pay.ID)
				if got.Status != tt.status {
					t.Errorf("%s (%q), want %s", got.Status, got.Reason, tt.status)
				}
				paid := 0
				for _, e := range simulator.Entries(pay.ProviderReference) {
					if e.Status == sim.Success {
						paid++
					}
				}
				if paid != tt.paid {
					t.Errorf("the provider's book has it %d times, want %d", paid, tt.paid)
				}
				in, out := simulator.Accounts(mtnmomo.Name)
				ours, err := n.Floats(t.Context(), mtnmomo.Name, "test")
				if out -= simulator.Opening(mtnmomo.Name); err != nil || ours["collection"] != in || ours["disbursement"] != out {
					t.Errorf("the provider's accounts moved by %s and %s, our floats by %v (%v)", in, out, ours, err)
				}
				word := []string{"success"}
				if tt.refused {
					word = nil
				} else if tt.status == book.StatusFailed {
					word = []string{"failed"}
				}
				if told := h.hooks.of(got.Reference); !slices.Equal(told, word) {
					t.Errorf("the customer was told %v", told)
				}
				if tt.collect && n.balance() != funds+10*money.Cedi-10 {
					t.Errorf("the wallet has %s", n.balance())
				}
				n.books()
			})
		})
	}
}

// newSimulator starts a simulator on loopback and returns its callback address.
func newSimulator(t *testing.T, h *fixture) (*sim.Sim, string) {
	t.Helper()
	s, err := sim.New(sim.Options{Clock: h.clock}, simmtn.New(simmtn.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	arrivals := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		for _, rail := range h.rails {
			h.callback(rail, provider.CallbackRequest{Method: r.Method, Header: r.Header, Body: body})
		}
	}))
	h.callbackURL = arrivals.URL
	t.Cleanup(func() {
		server.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		arrivals.Close()
	})
	return s, server.URL
}
