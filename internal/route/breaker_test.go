package route_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

var (
	unreachable = provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "connection refused"}
	lost        = provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnavailable}
	accepted    = provider.Outcome{Class: provider.Accepted}
)

func report(table *route.Table, n int, o provider.Outcome) {
	for range n {
		table.Report(provider.Rail{Name: "mtn", Mode: "test"}, route.Collect, o, time.Millisecond)
	}
}

func TestBreaker_opensOnConsecutiveFailures(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a, b := node(t, d, c), node(t, d, c)
		report(a, 9, unreachable)
		report(a, 1, accepted)
		report(a, 9, lost)
		report(a, 1, provider.Outcome{Class: provider.Rejected, Clear: true})
		report(a, 9, provider.Outcome{NotFound: true})
		report(a, 9, provider.Outcome{Reason: provider.ReasonMismatch})
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Fatalf("before ten in a row: %s", got)
		}
		report(a, 5, lost)
		report(a, 20, provider.Outcome{Class: provider.Rejected}) // refusals of a gateway count neither as success nor as failure
		report(a, 5, unreachable)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("this node at once: %s", got)
		}
		if got := names(t, a, route.DisburseWallet, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("another operation: %s", got)
		}
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		if got := names(t, b, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("the other node a second later: %s", got)
		}

		// A success that began before the breaker opened does not close it, and a later failure does not change it.
		a.Report(provider.Rail{Name: "mtn", Mode: "test"}, route.Collect, accepted, 2*time.Second)
		report(b, 9, lost)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("after an old success: %s", got)
		}

		// A half-open breaker allows one request for all nodes together.
		c.Advance(15 * time.Second)
		probes := 0
		for range 5 {
			for _, n := range []*route.Table{a, b} {
				if names(t, n, route.Collect, "MTN", "t1") == "mtn,hubtel" {
					probes++
				}
			}
		}
		if probes != 1 {
			t.Errorf("%d probes, want 1", probes)
		}
		report(b, 1, lost)
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(16 * time.Second)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("a failed probe doubles the time: %s", got)
		}
		list, err := a.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(s route.Status) bool { return s.Provider == "mtn" && s.Operation == route.Collect })
		if list[i].Breaker != "open" || list[i].Why == "" || !list[i].Until.Equal(start.Add(46*time.Second)) {
			t.Errorf("listed as %+v", list[i])
		}

		c.Advance(15 * time.Second)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("the second probe: %s", got)
		}
		report(a, 1, accepted)
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		report(a, 9, lost)
		for _, n := range []*route.Table{a, b} {
			for range 3 {
				if got := names(t, n, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
					t.Errorf("closed again: %s", got)
				}
			}
		}
	})
}

// If the clock is set back by a day, an open breaker still allows its probe in time, not a day later.
func TestBreaker_clockSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a := node(t, d, c)
		report(a, 10, lost)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Fatalf("the breaker is not open: %s", got)
		}
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Set(-24 * time.Hour)
		c.Advance(15 * time.Second)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("after its time: %s", got)
		}
	})
}

func TestBreaker_resumeClosesIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		report(table, 10, lost)
		if err := table.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, d, func(tx *db.Tx) error {
			_, err := table.Resume(tx, "test", "mtn", route.Collect)
			return err
		})
		report(table, 9, lost)
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("nine failures after resuming: %s", got)
		}
		report(table, 1, lost)
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("ten: %s", got)
		}
	})
}

func TestBreaker_oneProbeAtATime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a, b := node(t, d, c), node(t, d, c)
		report(a, 10, lost)
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(16 * time.Second)
		var wg sync.WaitGroup
		var mu sync.Mutex
		probes := 0
		for i := range 80 { // ten times the number of connections
			wg.Go(func() {
				chosen, _, err := []*route.Table{a, b}[i%2].Choose(t.Context(), route.Collect, "MTN", "t1", "test")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if chosen[0].Name == "mtn" {
					probes++
				}
			})
		}
		wg.Wait()
		if probes != 1 {
			t.Errorf("%d probes, want 1", probes)
		}
		// If nobody reports, the probe expires and the next request becomes the probe.
		c.Advance(31 * time.Second)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "mtn,hubtel" {
			t.Errorf("after a probe without a report: %s", got)
		}
	})
}

// choose returns the first rail for a collection, and its probe if there is one.
func choose(t *testing.T, table *route.Table) (string, *route.Probe) {
	t.Helper()
	rails, probe, err := table.Choose(t.Context(), route.Collect, "MTN", "t1", "test")
	if err != nil {
		t.Fatal(err)
	}
	return rails[0].Name, probe
}

func TestBreaker_returnedProbeGoesToTheNext(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a, b := node(t, d, c), node(t, d, c)
		report(a, 10, lost)
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(16 * time.Second)
		name, probe := choose(t, a)
		if name != "mtn" || probe == nil {
			t.Fatalf("the first request has %s, %v", name, probe)
		}
		if name, other := choose(t, a); name != "hubtel" || other != nil {
			t.Fatalf("the second one has %s, %v", name, other)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		probe.GiveBack(gone)
		c.Advance(time.Second) // until the other node's cache has expired
		name, next := choose(t, b)
		if name != "mtn" || next == nil {
			t.Fatalf("after it was given back another node has %s, %v", name, next)
		}
		probe.GiveBack(t.Context()) // a second return has no effect, because the current probe is another request's
		c.Advance(time.Second)
		if name, _ := choose(t, a); name != "hubtel" {
			t.Errorf("beside the other node's probe there is one of %s", name)
		}
		if _, err := a.Admit(t.Context(), "mtn", route.Collect, "MTN", "t1", "test"); !problem.Is(err, problem.Unavailable) {
			t.Errorf("beside the other node's probe mtn is admitted: %v", err)
		}
	})
}

func TestBreaker_unwrittenProbeIsReturned(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(start)
		a := node(t, d, c)
		f.Decide(func(b db.Boundary) db.Fault {
			if b == db.BoundaryCommit {
				return db.FaultBefore
			}
			return db.FaultNone
		})
		report(a, 10, lost)
		c.Advance(16 * time.Second)
		_, probe := choose(t, a)
		if name, _ := choose(t, a); probe == nil || name != "hubtel" {
			t.Fatalf("%v; beside the probe: %s", probe, name)
		}
		probe.GiveBack(t.Context())
		if name, next := choose(t, a); name != "mtn" || next == nil {
			t.Errorf("after it was given back: %s, %v", name, next)
		}
	})
}

// A payment may be at the second rail of its route. The breaker of that rail must get its probe although new requests
// go to the first rail.
func TestBreaker_probesTheSecondRail(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a := node(t, d, c)
		second, _ := a.Rail("hubtel", "test")
		for range 10 {
			a.Report(second, route.Collect, lost, 0)
		}
		c.Advance(16 * time.Second)
		if got := names(t, a, route.Collect, "MTN", "t1"); got != "mtn" {
			t.Fatalf("the route is %s", got)
		}
		probe, err := a.Admit(t.Context(), "hubtel", route.Collect, "MTN", "t1", "test")
		if err != nil || !probe.Of(second) {
			t.Fatalf("%v, %v", probe, err)
		}
		if _, err := a.Admit(t.Context(), "hubtel", route.Collect, "MTN", "t1", "test"); problem.From(err).Code != "provider_unavailable" {
			t.Errorf("a second probe: %v", err)
		}
		if _, err := a.Admit(t.Context(), "unused", route.Collect, "MTN", "t1", "test"); problem.From(err).Code != "not_served" {
			t.Errorf("a rail without a route: %v", err)
		}
	})
}

func TestBreaker_withoutDatabase(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		_ = names(t, table, route.Collect, "MTN", "t1")
		f.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
		report(table, 10, lost)
		if got := names(t, table, route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("the node's own word: %s", got)
		}
		f.Decide(nil)
		if err := table.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := names(t, node(t, d, c), route.Collect, "MTN", "t1"); got != "hubtel" {
			t.Errorf("another node, once the database is back: %s", got)
		}
	})
}
