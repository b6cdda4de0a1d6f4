package arkesel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim"
	simarkesel "github.com/makola/makola/internal/sim/arkesel"
	"github.com/makola/makola/internal/test/providertest"
)

// Every sample is read as documented, and only one of grade D is a refusal or an acceptance.
func TestSamples_readAsDocumented(t *testing.T) {
	for _, r := range providertest.TextSamples(t) {
		r.Check(t, sent(r.Answer(), msisdn.MSISDN(r.To)))
	}
}

func TestTextSender_conforms(t *testing.T) {
	ark := simarkesel.New()
	s, err := sim.New(sim.Options{Clock: clock.Real()}, ark.Join)
	if err != nil {
		t.Fatal(err)
	}
	tamper := &providertest.Tamper{}
	server := httptest.NewServer(tamper.Wrap(s.Handler()))
	var mu sync.Mutex
	var exchanges []provider.Exchange
	o := provider.ClientOptions{Mode: "test", Record: func(e provider.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		exchanges = append(exchanges, e)
	}}
	account := simarkesel.Config(server.URL)
	a, nowhere := New(account, o), New(simarkesel.Config("http://"+providertest.Nowhere(t)), o)
	t.Cleanup(func() { a.Close(); nowhere.Close(); server.Close(); s.Close() })
	send := func(a *Adapter) func(context.Context, msisdn.MSISDN, string) provider.Outcome {
		return func(ctx context.Context, to msisdn.MSISDN, text string) provider.Outcome {
			return a.SendText(ctx, provider.Text{From: "Kejetia", To: to, Body: text})
		}
	}
	providertest.TextSender(t, providertest.TextBench{Tamper: tamper,
		Send: send(a), Unreachable: send(nowhere), Clear: s.ClearFaults, Refusals: []string{"401", "402", "403"}, Secrets: []string{account.APIKey.Reveal()},
		Fault: func(fault string) {
			f := sim.Fault{Provider: simarkesel.Name, Operation: sim.OpText, Kind: sim.FaultKind(fault), Count: 1}
			if len(fault) == 3 {
				f.Kind, f.Answer = sim.RefuseOutright, fault+":x"
			}
			if err := s.Inject(f); err != nil {
				t.Fatal(err)
			}
		},
		Taken: func(to msisdn.MSISDN) (n int) {
			for _, x := range ark.Texts() {
				if x.To == string(to) {
					n++
				}
			}
			return n
		},
		Exchanges: func() []provider.Exchange {
			mu.Lock()
			defer mu.Unlock()
			return append([]provider.Exchange(nil), exchanges...)
		},
	})
}

// A report with a documented state is read. Anything else that reaches the address is refused.
func TestReport_readAsDocumented(t *testing.T) {
	a := &Adapter{}
	for status, want := range map[string]provider.Delivery{"DELIVERED": provider.Delivered, "SUBMITTED": provider.DeliveryPending, "QUEUED": provider.DeliveryPending,
		"NOT_DELIVERED": provider.DeliveryFailed, "EXPIRED": provider.DeliveryExpired, "PROHIBITED": provider.DeliveryRejected} {
		if r, err := a.ReadReport(url.Values{"sms_id": {"id-1"}, "status": {status}}); err != nil || r.State != want || r.UpstreamID != "id-1" {
			t.Errorf("%s: %+v %v", status, r, err)
		}
	}
	long := make([]byte, longestID+1)
	for i := range long {
		long[i] = 'a'
	}
	for _, q := range []url.Values{{}, {"sms_id": {"id"}}, {"status": {"DELIVERED"}}, {"sms_id": {"id"}, "status": {"GONE"}}, {"sms_id": {"a b"}, "status": {"DELIVERED"}},
		{"sms_id": {"a\x00"}, "status": {"DELIVERED"}}, {"sms_id": {string(long)}, "status": {"DELIVERED"}}} {
		if r, err := a.ReadReport(q); err == nil {
			t.Errorf("%v reads %+v", q, r)
		}
	}
}

// The adapter sends the documented request.
func TestSendText_asDocumented(t *testing.T) {
	var got map[string]any
	var key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&got)
		key = r.Header.Get("api-key") + " " + r.Method + " " + r.URL.Path
	}))
	defer server.Close()
	account := simarkesel.Config(server.URL)
	account.URL = server.URL + "/"
	a := New(account, provider.ClientOptions{})
	defer a.Close()
	a.SendText(t.Context(), provider.Text{From: "Kejetia", To: "233241000001", Body: "Hi", Callback: "https://a.example/r"})
	want := map[string]any{"sender": "Kejetia", "message": "Hi", "recipients": []any{"233241000001"}, "callback_url": "https://a.example/r"}
	if x, _ := json.Marshal(got); string(x) != string(must(json.Marshal(want))) || key != account.APIKey.Reveal()+" POST /api/v2/sms/send" {
		t.Errorf("%s %s", x, key)
	}
}

func must(out []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return out
}
