package payments

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// A provider does not answer, and more payouts are queued than it gets at once. Then an operator pauses the rail or
// its breaker opens. The queued payouts are not sent and do not become unknown.
func TestQueue_stoppedRailGetsNoRequest(t *testing.T) {
	for _, paused := range []bool{true, false} {
		t.Run(map[bool]string{true: "paused", false: "breaker"}[paused], func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				const line = 40
				const sends = sendsPerRail - sendsPerRail/spareShare // the share of one tenant
				h := newFixture(t, d)
				n := h.node("a")
				if err := n.Fund(t.Context(), h.tenant.ID, 10_000*money.Cedi, "paid in", "ama"); err != nil {
					t.Fatal(err)
				}
				leave := make(chan struct{})
				var entered sync.WaitGroup
				entered.Add(sends)
				h.second.slow = func(context.Context) provider.Outcome {
					entered.Done()
					<-leave
					return unknown
				}
				for range sends + line {
					n.crash(t, "TELECEL")
				}
				entered.Wait()
				h.second.mu.Lock()
				h.second.slow, h.second.onSubmit, h.second.onQuery = nil, always(unknown), always(notFound)
				h.second.mu.Unlock()
				if paused {
					n.pauseRail("hubtel")
				}
				n.clock.Advance(chosenTime)
				close(leave)
				clocktest.Await(t, "the first to be answered", func() bool {
					c := n.queue.Counts()
					return c.Ran >= sends+line && c.Running == 0 && c.Ready == 0
				})
				posts, _ := h.second.counts()
				// The breaker opens after some failed answers. Until then queued payouts are sent.
				if late := posts - sends; paused && late != 0 || late == line {
					t.Errorf("%d of %d were sent to a rail that is stopped", late, line)
				}
				h.second.script(always(pending), always(success))
				n.resumeRail("hubtel")
				clocktest.Await(t, "the end of all", func() bool {
					n.clock.Advance(time.Second)
					return n.jobsLeft() == 0
				})
				n.books()
			})
		})
	}
}
