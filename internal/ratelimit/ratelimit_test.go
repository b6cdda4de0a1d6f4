package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// other returns a second node on the same database, with a clock of its own.
func other(d *db.DB, at time.Time) (*Limiter, *clock.Clock) {
	c := clock.NewManual(at)
	return New(d, c), c
}

// allowed makes n requests and returns how many of them were allowed.
func allowed(t *testing.T, a *Limiter, tenant string, l Limit, n int) (yes int) {
	t.Helper()
	for range n {
		d, err := a.Take(context.Background(), tenant, l)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			yes++
		}
	}
	return yes
}

func TestAllow_exactLimitOverAllNodes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const nodes, callers, each = 4, 3, 15
		limit := AirtimeBuyLimit()
		if nodes*callers*each < 2*int(limit.Max) {
			t.Fatal("too few requests to try the limit")
		}
		c := clock.NewManual(start)
		var yes atomic.Int64
		var wg sync.WaitGroup
		for range nodes {
			a := New(d, c)
			for range callers {
				wg.Go(func() {
					for range each {
						decision, err := a.Take(t.Context(), "t", limit)
						if err != nil {
							t.Error(err)
							return
						}
						if decision.Allowed {
							yes.Add(1)
						}
					}
				})
			}
		}
		wg.Wait()
		if yes.Load() != limit.Max {
			t.Fatalf("%d requests were allowed, want exactly %d", yes.Load(), limit.Max)
		}
	})
}

func TestAllow_returnsRemaining(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start.Add(15*time.Second))
		limit := Limit{Name: "x", Max: 3, Window: time.Minute}
		for i, want := range []Decision{
			{Allowed: true, Remaining: 2}, {Allowed: true, Remaining: 1}, {Allowed: true}, {}, {},
		} {
			want.Max, want.Window, want.ResetAfter = 3, time.Minute, 45*time.Second
			if got, err := a.Take(t.Context(), "t", limit); err != nil || got != want {
				t.Fatalf("request %d: %+v, %v; want %+v", i+1, got, err, want)
			}
		}
		// Each tenant and each limit have a separate counter.
		if got := allowed(t, a, "t2", limit, 4); got != 3 {
			t.Errorf("the other tenant got %d", got)
		}
		limit.Name = "y"
		if got := allowed(t, a, "t", limit, 4); got != 3 {
			t.Errorf("the other limit allowed %d", got)
		}
		limit.Name = "x"
		c.Advance(45*time.Second - time.Microsecond)
		if got := allowed(t, a, "t", limit, 1); got != 0 {
			t.Error("the window ended a microsecond early")
		}
		c.Advance(time.Microsecond)
		if got := allowed(t, a, "t", limit, 4); got != 3 {
			t.Errorf("the next window allowed %d", got)
		}
	})
}

func TestRemaining_countsNoRequest(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start.Add(15*time.Second))
		b := New(d, c)
		want := func(a *Limiter, l Limit, left int64, reset time.Duration) {
			t.Helper()
			for range 2 {
				got, err := a.Left(t.Context(), "t", l)
				if is := (Decision{Allowed: left > 0, Max: l.Max, Window: l.Window, Remaining: left, ResetAfter: reset}); err != nil || got != is {
					t.Fatalf("%+v, %v; want %+v", got, err, is)
				}
			}
		}
		exact := Limit{Name: "x", Max: 3, Window: time.Minute}
		want(a, exact, 3, 45*time.Second)
		allowed(t, a, "t", exact, 2)
		want(a, exact, 1, 45*time.Second)
		want(b, exact, 1, 45*time.Second)
		allowed(t, b, "t", exact, 2)
		want(a, exact, 0, 45*time.Second)
		drawn := Limit{Name: "y", Max: 30, Window: time.Minute, Block: 10}
		allowed(t, a, "t", drawn, 1)
		want(a, drawn, 29, 45*time.Second)
		want(b, drawn, 20, 45*time.Second) // the block that a has drawn counts as used for b
		c.Advance(45 * time.Second)
		want(a, exact, 3, time.Minute)
		want(a, drawn, 30, time.Minute)
		if got, err := a.Left(t.Context(), "t", Limit{Name: "none"}); err != nil || got != (Decision{Allowed: true}) {
			t.Errorf("no limit leaves %+v, %v", got, err)
		}
	})
}

func TestAllow_exhaustedWindowWritesNoRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, _ := other(d, start)
		limit := Limit{Name: "x", Max: 2, Window: time.Minute}
		allowed(t, a, "t", limit, 50)
		var used int64
		read(t, d, `SELECT used FROM rate_counters WHERE tenant = 't' AND name = 'x'`, &used)
		if used != 2 {
			t.Fatalf("%d requests were written, want 2", used)
		}
	})
}

func read(t *testing.T, d *db.DB, sql string, dest ...any) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		found, err := tx.One(sql, nil, dest...)
		if !found && err == nil {
			t.Errorf("%s found nothing", sql)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAllow_slowClockReopensNoWindow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		limit := Limit{Name: "x", Max: 3, Window: time.Minute}
		ahead, _ := other(d, start)
		behind, _ := other(d, start.Add(-time.Second))
		yes := allowed(t, ahead, "t", limit, 1) + allowed(t, behind, "t", limit, 5) + allowed(t, ahead, "t", limit, 5)
		if yes != 3 {
			t.Fatalf("%d were allowed, want 3", yes)
		}
		// The answer is about the window that the other node has begun.
		if got, err := behind.Take(t.Context(), "t", limit); err != nil || got.Allowed || got.ResetAfter != time.Minute {
			t.Fatalf("the node behind says %+v, %v", got, err)
		}
	})
}

// TestAllow_recoversFromFutureClock: for a moment the clock of one node shows next year. The next node that counts
// forgets the counters of that time.
func TestAllow_recoversFromFutureClock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		limit := AirtimeStatusLimit()
		right, c := other(d, start)
		wrong, _ := other(d, start.AddDate(1, 0, 0))
		allowed(t, right, "t", limit, 1)
		allowed(t, wrong, "t", limit, int(limit.Max))
		c.Advance(time.Minute)
		if left, err := right.Left(t.Context(), "t", limit); err != nil || left.Remaining != limit.Max {
			t.Errorf("%+v is left, %v", left, err)
		}
		if got := allowed(t, right, "t", limit, 100); int64(got) != limit.Max {
			t.Fatalf("%d were allowed, want %d", got, limit.Max)
		}
	})
}

// A limit is used up when the clock is set back. The endpoint stays closed for at most the window.
func TestTake_clockSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		limit := AirtimeBuyLimit()
		for _, step := range []time.Duration{-10 * time.Minute, -3 * time.Hour, -48 * time.Hour} {
			a, c := other(d, start.Add(500*24*time.Hour+step*10)) // later than anything that the other nodes stored
			allowed(t, a, "t", limit, int(limit.Max)+1)
			c.Set(step)
			c.Advance(limit.Window + 10*time.Minute)
			if got := allowed(t, a, "t", limit, 2*int(limit.Max)); int64(got) != limit.Max {
				t.Errorf("set back by %v: %d were allowed, want %d", -step, got, limit.Max)
			}
		}
	})
}

func TestAllow_drawsInBlocks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		limit := GeneralLimit(500)
		if limit.Block != 10 {
			t.Fatalf("the block is %d", limit.Block)
		}
		a, _ := other(d, start)
		b, bClock := other(d, start)
		if got := allowed(t, a, "t", limit, 11); got != 11 {
			t.Fatalf("the first node got %d of 11", got)
		}
		var used int64
		read(t, d, `SELECT used FROM rate_counters WHERE tenant = 't'`, &used)
		if used != 20 {
			t.Fatalf("11 requests drew %d, want two blocks of 10", used)
		}
		// The block that the first node has drawn is not available to the second. Together they never allow too many
		// requests.
		if got := allowed(t, b, "t", limit, 600); got != 480 {
			t.Fatalf("the second node got %d, want what the first had not drawn", got)
		}
		if got := allowed(t, a, "t", limit, 600); got != 9 {
			t.Fatalf("the first node got %d more, want the rest of its block", got)
		}
		bClock.Advance(time.Minute)
		if got := allowed(t, b, "t", limit, 600); got != 500 {
			t.Fatalf("the next window gave %d", got)
		}
	})
}

func TestAllow_unlimitedCostsNoQuery(t *testing.T) {
	a := New(nil, clock.NewManual(start)) // a query would panic
	if got := allowed(t, a, "t", GeneralLimit(0), 1000); got != 1000 {
		t.Fatalf("no limit allowed %d of 1000", got)
	}
}

func TestSweep_removesEndedWindows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		limit := AirtimeBuyLimit()
		allowed(t, a, "old", limit, 5)
		c.Advance(keepCounters)
		allowed(t, a, "new", limit, 5)
		if n, err := a.Prune(t.Context()); err != nil || n != 0 {
			t.Fatalf("%d rows went too early, %v", n, err)
		}
		c.Advance(time.Microsecond)
		if n, err := a.Prune(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d rows went, %v", n, err)
		}
		if len(a.drawn) != 1 {
			t.Fatalf("the node remembers %d counters", len(a.drawn))
		}
		if d, err := a.Take(t.Context(), "new", limit); err != nil || d.Remaining != limit.Max-6 {
			t.Fatalf("a counter in use was touched: %+v, %v", d, err)
		}
	})
}

func TestLimits_ofTheContract(t *testing.T) {
	names := map[string]bool{}
	for _, c := range []struct {
		limit  Limit
		window time.Duration
	}{{AirtimeBuyLimit(), time.Hour}, {SenderIDLimit(), time.Hour}, {AirtimeStatusLimit(), time.Minute}, {BundleStatusLimit(), time.Minute}} {
		if c.limit.Max != 60 || c.limit.Window != c.window || c.limit.Block > 1 || names[c.limit.Name] {
			t.Errorf("%+v", c.limit)
		}
		names[c.limit.Name] = true
	}
}
