package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// A name belongs to one node. A second process with the name is refused while the first renews its lease. After the
// first has ended, the second waits for the end of the lease.
func TestName_belongsToOneNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		options := func(beat time.Duration) Options {
			return Options{Node: "a", Shared: true, LeaseFor: time.Hour, Heartbeat: beat}
		}
		c := clock.NewManual(epochStart)
		first := start(t, newQueue(t, d, c, options(10*time.Millisecond)))
		epoch := first.Epoch()
		err := newQueue(t, d, c, options(10*time.Millisecond)).Start(t.Context())
		if !problem.Is(err, problem.InProgress) || !strings.Contains(err.Error(), "called a runs") {
			t.Errorf("under the name of a node that runs: %v", err)
		}
		if err := first.lease.Beat(t.Context()); err != nil || first.Epoch() != epoch || first.Counts().LeasesLost != 0 {
			t.Errorf("the node that runs was hurt: %v, %+v", err, first.Counts())
		}
		if err := first.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone := newQueue(t, d, c, options(time.Hour)) // nobody renews its lease
		if err := gone.lease.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Exec(t.Context(), `UPDATE job_leases SET expires_at = now_micros() + 300000 WHERE owner = $1`, gone.owner); err != nil {
			t.Fatal(err)
		}
		next := start(t, newQueue(t, d, c, options(time.Hour)))
		if next.Epoch() <= gone.Epoch() {
			t.Error("the epoch did not grow")
		}
	})
}

// A node dies, and then the database's clock is set back. Its lease does not last until the clock shows the earlier
// time again. That holds for a new node of the same name, and for nodes that adopt the jobs.
func TestLease_databaseClockSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		o := Options{Node: "gone", LeaseFor: time.Second, Heartbeat: 50 * time.Millisecond}
		var r record
		handler := r.handler("k", func(Job) Outcome { return Done() })
		gone := newQueue(t, d, c, o, handler)
		die := func() {
			t.Helper()
			if _, err := d.Exec(t.Context(), `UPDATE job_leases SET expires_at = now_micros() + 86400000000 WHERE owner = $1`, gone.owner); err != nil {
				t.Fatal(err)
			}
		}
		if err := gone.lease.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		die()
		add(t, d, gone, Job{ID: "its job", Kind: "k"})
		o.Node = "other"
		start(t, newQueue(t, d, c, o, handler))
		clocktest.Await(t, "the job of the dead node", func() bool {
			return len(r.all()) == 1
		})
		if err := gone.lease.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		die()
		o.Node, o.Shared = "gone", true
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		again := newQueue(t, d, c, o)
		if err := again.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := again.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
