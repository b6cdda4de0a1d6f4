package mtnmomo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/mtnmomo"
	"github.com/makola/makola/internal/sim"
	simmtn "github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/test/providertest"
)

// bench is the adapter connected to a simulated MTN.
type bench struct {
	*providertest.Simulated
	adapter *mtnmomo.Adapter
	config  config.MTN
}

func newBench(t *testing.T, o sim.Options, habits simmtn.Options) *bench {
	t.Helper()
	b := &bench{}
	b.Simulated = providertest.Simulate(t, simmtn.Name, o, func(string) sim.Part { return simmtn.New(habits) },
		func(base string, o provider.ClientOptions) (provider.Rail, func()) {
			a := mtnmomo.New(simmtn.Config(base), o)
			if b.adapter == nil {
				b.adapter, b.config = a, simmtn.Config(base)
			}
			return a.Rail(), a.Close
		})
	b.Network = msisdn.MTN
	b.Secrets = []string{providertest.Token, b.config.CollectionAPIKey.Reveal(), b.config.DisbursementKey.Reveal(), "Bearer ", "access_token\":\"c", "KWAME"}
	return b
}

func TestMTN_conformsToEveryRole(t *testing.T) {
	for _, c := range []struct {
		name    string
		options simmtn.Options
	}{{"reason as text", simmtn.Options{}}, {"reason as object", simmtn.Options{ReasonObject: true}}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, sim.Options{}, c.options)
			t.Run("collector", func(t *testing.T) { providertest.Collector(t, b.Bench) })
			t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
			t.Run("refunder", func(t *testing.T) { providertest.Refunder(t, b.Bench) })
			t.Run("names", func(t *testing.T) { providertest.NameResolver(t, b.Bench) })
			t.Run("float", func(t *testing.T) {
				providertest.FloatReader(t, b.Bench, func() []provider.Held { return accounts(b.Sim) })
			})
		})
	}
}

// TestStatus_paidDespiteRefusal: MTN may refuse a request although it has carried it out. A status query then returns the true
// state. A refusal is clear only with a documented code in MTN's own envelope.
func TestStatus_paidDespiteRefusal(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	clear := 0
	for _, answer := range simmtn.RefusalAnswers() {
		reference := uuid.NewString()
		if err := b.Sim.Inject(sim.Fault{Provider: simmtn.Name, Operation: sim.OpCollect, Kind: sim.RefuseAfter, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		o := b.collect(reference)
		if o.Class != provider.Rejected && o.Class != provider.Unknown || o.Unposted || o.Duplicate || o.Final() {
			t.Errorf("%q: %+v", answer, o)
		}
		if o.Clear {
			clear++
		}
		if o.Clear && (strings.Contains(answer, "html") || strings.Contains(answer, "empty") || strings.Contains(answer, "9999")) {
			t.Errorf("%q is clear: %+v", answer, o)
		}
		b.Advance(time.Minute)
		if o := b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("000")}); o.State != provider.Success {
			t.Errorf("%q: in the end %+v", answer, o)
		}
	}
	if clear < 10 {
		t.Errorf("%d clear refusals", clear)
	}
}

// TestStatus_inconclusiveResponses: only the documented answer means "not known".
func TestStatus_inconclusiveResponses(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	reference := uuid.NewString()
	b.collect(reference)
	b.Advance(time.Minute)
	ask := func() provider.Outcome {
		return b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("000")})
	}
	for _, answer := range simmtn.StatusAnswers() {
		if err := b.Sim.Inject(sim.Fault{Provider: simmtn.Name, Kind: sim.StatusAnswer, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		if o := ask(); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%q: %+v", answer, o)
		}
	}
	b.Fault("collect_status", "status_other", 1)
	if o := ask(); !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 500, Party: b.Wallet("000").International()}) {
		t.Errorf("another's payment: %+v, %+v", o, o.Echo)
	}
	if o := ask(); o.State != provider.Success {
		t.Errorf("in the end %+v", o)
	}
}

func (b *bench) collect(reference string) provider.Outcome {
	return b.Rail.Collector.Collect(context.Background(), provider.CollectRequest{
		ProviderReference: reference, Reference: "ref-000000001", Amount: 500, MSISDN: b.Wallet("000"), Network: msisdn.MTN,
	})
}

// accounts returns our balances in the simulator.
func accounts(s *sim.Sim) []provider.Held {
	in, out := s.Accounts(simmtn.Name)
	return []provider.Held{{Account: provider.AccountCollection, Amount: in}, {Account: provider.AccountDisbursement, Amount: out}}
}
