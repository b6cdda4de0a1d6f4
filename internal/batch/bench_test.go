package batch

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkDraft reads and checks a file of 100,000 rows, freezes it, starts it while an earlier batch of the same account
// runs, and accepts a thousand rows. It reports the time of each step.
func BenchmarkDraft(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				f := newFixture(b, dbtest.Open(b, engine))
				n := f.stopped("a")
				var text strings.Builder
				text.WriteString("number,network,amount\n")
				for i := range MaxRows {
					fmt.Fprintf(&text, "024%07d,MTN,1\n", i)
				}
				lap := time.Now()
				report := func(what string) {
					b.ReportMetric(time.Since(lap).Seconds(), what)
					lap = time.Now()
				}
				made, _, err := n.ReadFile(b.Context(), Upload{Tenant: f.tenant.ID, Name: "Salaries", Requester: "ama"}, strings.NewReader(text.String()), sheet.Options{})
				if err != nil {
					b.Fatal(err)
				}
				report("s/check")
				if made, err = n.Request(b.Context(), made.Tenant, made.ID, ""); err != nil {
					b.Fatal(err)
				}
				report("s/request")
				if err := n.Start(b.Context(), Order{Tenant: made.Tenant, ID: made.ID, Digest: made.Digest, Reason: "salaries", Actor: "kofi"}, nil); err != nil {
					b.Fatal(err)
				}
				report("s/start")
				for range 10 {
					n.run(b.Context(), made.Tenant, made.ID)
				}
				report("s/1000rows")
			}
		})
	}
}

// BenchmarkBatch reads a file of 100,000 rows and reports the memory above idle. It accepts rows while another account makes payouts,
// and reports the rows per second, the p99 of those payouts in times of the one without the batch, and the time of the counts for the
// page.
func BenchmarkBatch(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				f := newFixture(b, dbtest.Open(b, engine))
				n := f.node("a")
				n.runSets, n.pace.time = blockRows, setTime
				other := n.newTenant(n.treasury)
				var text strings.Builder
				text.WriteString("number,network,amount\n")
				for i := range MaxRows {
					fmt.Fprintf(&text, "024%07d,MTN,1\n", i)
				}
				var made Batch
				b.ReportMetric(memoryOf(func() {
					var err error
					if made, _, err = n.ReadFile(b.Context(), Upload{Tenant: f.tenant.ID, Name: "Salaries", Requester: "ama"}, strings.NewReader(text.String()), sheet.Options{}); err != nil {
						b.Fatal(err)
					}
				}), "MB-above-idle")
				made, err := n.Request(b.Context(), made.Tenant, made.ID, "")
				if err != nil {
					b.Fatal(err)
				}
				if err := n.start(made); err != nil {
					b.Fatal(err)
				}
				quiet, busy, rate := n.besideBatch(other, made)
				b.ReportMetric(rate, "rows/s")
				b.ReportMetric(float64(busy)/float64(quiet), "times-of-quiet-p99")
				b.ReportMetric(float64(busy.Microseconds())/1000, "ms-neighbour-p99")
				begun := time.Now()
				if _, err := n.Numbers(b.Context(), n.is(made.ID)); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms/counts")
			}
		})
	}
}

// memoryOf returns the largest growth of the heap, in megabytes, while a function runs.
func memoryOf(do func()) float64 {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	idle, stop, done := heap(), make(chan struct{}), make(chan struct{})
	var most atomic.Uint64
	go func() {
		defer close(done)
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticks.C:
				most.Store(max(most.Load(), heap()))
			}
		}
	}()
	do()
	close(stop)
	<-done
	return float64(max(most.Load(), idle)-idle) / (1 << 20)
}

// Payouts of the neighbour: pairs of a turn without and a turn with the batch, which see the same load of the machine.
const (
	neighbourPairs = 6
	payoutsOfTurn  = 100
)

// besideBatch accepts rows of a batch in every other turn of payouts of another account. It returns the p99 of the payouts
// without and with the batch, and the rows accepted a second.
func (n *node) besideBatch(other tenant.Tenant, of Batch) (quiet, busy time.Duration, rate float64) {
	var without, with []time.Duration
	var ran time.Duration
	for pair := range neighbourPairs {
		without = append(without, n.payouts(other, 2*pair)...)
		stop, done, begun := make(chan struct{}), make(chan struct{}), time.Now()
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					n.run(n.f.t.Context(), of.Tenant, of.ID)
				}
			}
		}()
		with = append(with, n.payouts(other, 2*pair+1)...)
		close(stop)
		<-done
		ran += time.Since(begun)
	}
	return p99(without), p99(with), float64(n.is(of.ID).Accepted) / ran.Seconds()
}

// p99 returns the time within which 99 of 100 payouts were answered.
func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100]
}

// payouts makes payouts of an account, one after the other, and returns their times.
func (n *node) payouts(of tenant.Tenant, round int) []time.Duration {
	n.f.t.Helper()
	took := make([]time.Duration, payoutsOfTurn)
	for i := range took {
		begun := time.Now()
		_, _, err := n.payments.Payout(n.f.t.Context(), idempotency.Caller{Tenant: of.ID}, payments.Payout{Amount: money.Cedi, MSISDN: "233240000001", Network: "MTN",
			Reference: fmt.Sprintf("neighbour-%d-%05d", round, i)})
		if err != nil {
			n.f.t.Fatal(err)
		}
		took[i] = time.Since(begun)
	}
	return took
}
