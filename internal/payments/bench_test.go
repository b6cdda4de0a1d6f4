package payments

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkPayout runs whole payouts without HTTP. It has 256 callers, one wallet and a provider that answers at
// once.
func BenchmarkPayout(b *testing.B) {
	slog.SetLogLoggerLevel(slog.LevelError)
	for _, e := range dbtest.Engines() {
		b.Run(e.String(), func(b *testing.B) {
			h := &fixture{t: b, db: dbtest.Open(b, e), clock: clock.Real(), first: newScripted(), second: newScripted()}
			n := h.node("a")
			h.first.script(always(pending), always(success))
			t := n.newTenant(1 << 40)
			c := idempotency.Caller{Tenant: t.ID}
			var next atomic.Int64
			b.ResetTimer()
			begun := time.Now()
			var callers sync.WaitGroup
			for range 256 {
				callers.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						_, _, err := n.Payout(b.Context(), c, Payout{Amount: money.Cedi, Reference: fmt.Sprintf("bench-%012d", i), MSISDN: "233241234567", Network: "MTN"})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "accepted/s")
			// The last queries are due after a second or more of real time.
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for n.jobsLeft() > 0 {
				<-look.C
			}
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "settled/s")
		})
	}
}
