package mtnmomo_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim"
	simmtn "github.com/makola/makola/internal/sim/mtn"
)

// TestRandomFaults_agreeWithMTNsBook sends a few thousand payments with random faults, eight at a time. It compares
// every outcome and the float with the provider's book.
func TestRandomFaults_agreeWithMTNsBook(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b := newBench(t, sim.Options{Dir: t.TempDir()}, simmtn.Options{})
	codes := []string{"000", "000", "001", "004", "006", "007", "008", "020", "024", "030", "032"}
	kinds := sim.FaultKinds()
	type payment struct {
		reference string
		amount    money.Pesewas
		to        msisdn.MSISDN
		out       bool
		o         provider.Outcome
	}
	const workers, each = 8, 250
	sent := make([][]payment, workers)
	var wg sync.WaitGroup
	for w := range workers {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for range each {
				p := payment{uuid.NewString(), money.Pesewas(1 + rnd.IntN(100_000)), b.Wallet(codes[rnd.IntN(len(codes))]), rnd.IntN(2) == 0, provider.Outcome{}}
				if rnd.IntN(4) == 0 {
					k := kinds[rnd.IntN(len(kinds))]
					if k == sim.Slow || k == sim.RefuseAfter { // these need the clock to move; they have tests of their own
						continue
					}
					b.Sim.Inject(sim.Fault{Provider: simmtn.Name, Kind: k, Count: 1 + rnd.IntN(2)})
				}
				if rnd.IntN(20) == 0 {
					b.Clock.Advance(time.Duration(rnd.IntN(3000)) * time.Second)
				}
				for post := range 1 + rnd.IntN(2) {
					if p.out {
						p.o = b.Rail.Disburser.Disburse(context.Background(), provider.DisburseRequest{
							ProviderReference: p.reference, Amount: p.amount, MSISDN: p.to, CallbackURL: b.CallbackURL})
					} else {
						p.o = b.Rail.Collector.Collect(context.Background(), provider.CollectRequest{
							ProviderReference: p.reference, Amount: p.amount, MSISDN: p.to, CallbackURL: b.CallbackURL})
					}
					n := len(b.Sim.Entries(p.reference))
					switch {
					case p.o.Class == provider.Accepted && n != 1,
						p.o.Class == provider.NotSent && post == 0 && n > 0,
						n > 1:
						t.Errorf("%+v, but the book has %d", p.o, n)
					}
					if p.o.Class == provider.Rejected && n > 0 {
						t.Errorf("rejected, and the book has it: %+v", p.o)
					}
				}
				sent[w] = append(sent[w], p)
			}
		})
	}
	wg.Wait()
	b.Sim.ClearFaults()
	b.Advance(time.Hour)
	b.Advance(time.Hour)
	want := b.Sim.Opening(simmtn.Name)
	known := map[string]int{}
	for _, list := range sent {
		for _, p := range list {
			r := provider.StatusRequest{ProviderReference: p.reference, Amount: p.amount, MSISDN: p.to}
			ask := b.Rail.Collector.CollectStatus
			if p.out {
				ask = b.Rail.Disburser.DisburseStatus
			}
			o := ask(context.Background(), r)
			if provider.Mismatch(o, provider.Expect{Reference: p.reference, Amount: p.amount, Party: string(p.to)}) {
				t.Errorf("%+v %+v is about another payment", o, o.Echo)
			}
			entries := b.Sim.Entries(p.reference)
			if o.NotFound != (len(entries) == 0) || o.Class == provider.Accepted && string(entries[0].Status) != o.State.String() {
				t.Errorf("%+v, the book has %+v", o, entries)
			}
			known[o.State.String()]++
			if o.Class == provider.Accepted && o.State == provider.Success {
				if p.out {
					want -= p.amount
				} else {
					want += p.amount
				}
			}
		}
	}
	if got := b.Sim.Float(simmtn.Name); got != want {
		t.Errorf("float %v, by the adapter's answers %v", got, want)
	}
	if known["success"] < 100 || known["failed"] < 100 {
		t.Errorf("too little happened: %v", known)
	}
}
