package delivery

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

// restarts runs a test on databases that become unreachable for a second, by simulated faults and by a cut
// connection.
func restarts(t *testing.T, run func(t *testing.T, d *db.DB, restart func())) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			o := dbtest.Options(t, e)
			o.Faults = &db.Faults{}
			run(t, dbtest.OpenWith(t, o), func() {
				var first sync.Once
				o.Faults.Decide(func(b db.Boundary) db.Fault {
					fault := db.FaultBefore
					if b == db.BoundaryCommit {
						first.Do(func() { fault = db.FaultAfter }) // for one COMMIT only the answer is lost
					}
					return fault
				})
				time.AfterFunc(time.Second, func() { o.Faults.Decide(nil) })
			})
		})
	}
	t.Run("PostgreSQL, a line that is cut", func(t *testing.T) {
		t.Parallel()
		way, freezer := dbtest.Freezable(t)
		run(t, dbtest.OpenWith(t, db.Options{URL: way, MaxConns: 8}), func() {
			freezer.Cut()
			time.AfterFunc(time.Second, freezer.Thaw)
		})
	})
}

// The node that claimed a message before the outage also submits it and records its answer. No message becomes
// unknown before its submit, and none is submitted twice.
func TestDatabaseRestart_nothingUnknown(t *testing.T) {
	restarts(t, func(t *testing.T, d *db.DB, restart func()) {
		h := open(t, d, options{credits: 10_000, at: clock.Real()})
		gone := make(chan struct{})
		h.operator.At(700, func() { restart(); close(gone) })
		big, err := h.send("a campaign", smstest.Numbers(2_500)...)
		if err != nil {
			t.Fatal(err)
		}
		<-gone
		// Single messages are accepted, or refused without leaving a row. The client repeats a refused request with
		// the same key.
		var clients sync.WaitGroup
		small := make([]Campaign, 40)
		for i := range small {
			clients.Go(func() {
				for {
					o := h.order("hello", fmt.Sprintf("23320%07d", i))
					o.Campaign.IdempotencyKey, o.Campaign.IdempotencyHash = fmt.Sprint("key ", i), "body"
					c, _, err := h.Accept(t.Context(), o)
					if err == nil {
						small[i] = c
						return
					}
					if !problem.Is(err, problem.Unavailable) {
						t.Errorf("message %d: %v", i, err)
						return
					}
				}
			})
		}
		clients.Wait()
		clocktest.Await(t, "every message to be recorded", func() bool {
			return h.Count(`SELECT count(*) FROM messages WHERE status NOT IN ('queued', 'sending')`) == 2_540
		})
		h.Quiet()
		h.wantStatus(big, "2500 submitted")
		for _, c := range small {
			h.wantStatus(c, "1 submitted")
		}
		wantOnce(t, 2_540, h.operator)
		h.WantBalance(10_000 - 2_540)
		h.sound()
	})
}
