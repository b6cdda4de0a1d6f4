package timekeeping

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func keeper(t *testing.T, d *db.DB, c *clock.Clock, o Options) *Keeper {
	t.Helper()
	k := New(d, c, slog.New(slog.DiscardHandler), o)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

func look(t *testing.T, k *Keeper) {
	t.Helper()
	if err := k.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A step of the clock is stored once as a row. A process that starts later takes it into account.
func TestLook_storesSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		k := keeper(t, d, c, Options{Node: "one"})
		c.Set(26 * time.Hour)
		look(t, k)
		look(t, k)
		list, err := List(t.Context(), d, morning, 10)
		if err != nil || len(list) != 1 || list[0].Node != "one" || list[0].By != 26*time.Hour || !list[0].At.Equal(morning.Add(26*time.Hour)) || k.Seen() != 1 {
			t.Fatalf("%+v, %v, %d seen", list, err, k.Seen())
		}
		c.Advance(time.Hour)
		later := clock.NewManual(c.Now())
		keeper(t, d, later, Options{Node: "two"})
		if age := later.Age(morning); age != time.Hour {
			t.Errorf("for a later process a row from before the step is %v old", age)
		}
		for range 100 { // a clock that is set all the time must not fill the table
			c.Set(time.Hour)
			c.Advance(LookEvery)
			look(t, k)
		}
		if list, err = List(t.Context(), d, morning, 1_000); err != nil || len(list) > 12 || k.Seen() != 101 {
			t.Errorf("%d rows, %v, %d seen", len(list), err, k.Seen())
		}
	})
}

// If a step follows another one at once, or its row could not be written, it is stored by a later check.
func TestLook_storesAStepLater(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		k := keeper(t, d, c, Options{Node: "one"})
		rows := func() []Step {
			t.Helper()
			list, err := List(t.Context(), d, morning, 10)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		c.Set(time.Hour)
		look(t, k)
		c.Set(2 * time.Hour)
		look(t, k)
		if list := rows(); len(list) != 1 {
			t.Fatalf("within the pause there are %+v", list)
		}
		c.Advance(rowPause)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := k.Look(cancelled); err == nil {
			t.Fatal("it was stored without a database")
		}
		look(t, k)
		look(t, k)
		if list := rows(); len(list) != 2 || list[0].By != 2*time.Hour {
			t.Errorf("later there are %+v", list)
		}
	})
}

// A node whose clock differs much from PostgreSQL's accepts no money until the clock is right again.
func TestGuard_farFromTheServer(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.Postgres)
	now, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		c := clock.NewManual(now)
		k := keeper(t, d, c, Options{Guard: true})
		if err := k.Stopped(); err != nil {
			t.Fatalf("with the right clock: %v", err)
		}
		c.Set(off)
		look(t, k)
		if e := problem.From(k.Stopped()); k.Stopped() == nil || e.Code != "clock_wrong" || e.Kind != problem.Unavailable || e.RetryAfter <= 0 {
			t.Errorf("%v off: %v", off, k.Stopped())
		}
		c.Set(-off)
		look(t, k)
		if err := k.Stopped(); err != nil {
			t.Errorf("back at the right time: %v", err)
		}
	}
}

// TestGuard_behindTheNewestRow: on SQLite a clock behind the newest row stops money until it has caught up, or an
// operator accepts it. That holds if the clock was set back before the start or while the server runs. An acceptance
// is still valid after a restart, but only for rows from before it.
func TestGuard_behindTheNewestRow(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, d *db.DB, o Options) (*clock.Clock, *Keeper){
		"before the start": func(t *testing.T, d *db.DB, o Options) (*clock.Clock, *Keeper) {
			c := clock.NewManual(morning.Add(-time.Hour))
			return c, keeper(t, d, c, o)
		},
		"while it runs": func(t *testing.T, d *db.DB, o Options) (*clock.Clock, *Keeper) {
			c := clock.NewManual(morning)
			k := keeper(t, d, c, o)
			c.Set(-time.Hour)
			look(t, k)
			return c, k
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, newest := dbtest.Open(t, db.SQLite), morning
			o := Options{Guard: true, Newest: func(context.Context) (time.Time, error) { return newest, nil }}
			c, k := begin(t, d, o)
			if k.Stopped() == nil {
				t.Fatal("money goes on")
			}
			c.Advance(time.Hour - Most)
			look(t, k)
			if err := k.Stopped(); err != nil {
				t.Errorf("when it has caught up: %v", err)
			}
			c.Set(-time.Hour)
			look(t, k)
			if k.Stopped() == nil {
				t.Fatal("money goes on after the second step")
			}
			if err := d.Write(t.Context(), func(tx *db.Tx) error { Accept(tx, c.Now(), newest, "ama", "the clock ran fast"); return nil }); err != nil {
				t.Fatal(err)
			}
			look(t, k)
			if err := k.Stopped(); err != nil {
				t.Errorf("when it was accepted: %v", err)
			}
			if err := keeper(t, d, c, o).Stopped(); err != nil {
				t.Errorf("after a restart: %v", err)
			}
			newest = newest.Add(time.Hour)
			look(t, k)
			if k.Stopped() == nil {
				t.Error("money goes on behind a row that nobody has accepted")
			}
		})
	}
}

// TestGuard_aStepWithoutRows: on SQLite a clock was set forward and back again. It stops money only if rows were
// written in between.
func TestGuard_aStepWithoutRows(t *testing.T) {
	t.Parallel()
	d, c, newest := dbtest.Open(t, db.SQLite), clock.NewManual(morning), morning
	k := keeper(t, d, c, Options{Guard: true, Newest: func(context.Context) (time.Time, error) { return newest, nil }})
	forwardAndBack := func() {
		t.Helper()
		c.Set(time.Hour)
		look(t, k)
		if err := k.Stopped(); err != nil {
			t.Errorf("set forward: %v", err)
		}
		c.Set(-time.Hour)
		look(t, k)
	}
	forwardAndBack()
	if err := k.Stopped(); err != nil {
		t.Errorf("set back, without a row: %v", err)
	}
	newest = morning.Add(time.Hour)
	forwardAndBack()
	if k.Stopped() == nil {
		t.Error("money goes on behind a row")
	}
}

// TestLook_stepsOfOthers: a node takes into account a step that another node stores while it runs. If one node still
// answers an idempotency key as a repeat, no other node has forgotten the key.
func TestLook_stepsOfOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		one, two := clock.NewManual(morning), clock.NewManual(morning)
		k, other := keeper(t, d, one, Options{Node: "one"}), keeper(t, d, two, Options{Node: "two"})
		one.Set(-time.Hour)
		look(t, k)
		two.Advance(25 * time.Hour)
		one.Advance(25 * time.Hour)
		look(t, other)
		if mine, theirs := one.Age(morning.Add(-2*time.Hour)), two.Age(morning.Add(-2*time.Hour)); mine != 25*time.Hour || theirs != 26*time.Hour {
			t.Errorf("from before the step a row is %v and %v old", mine, theirs)
		}
		if passed := two.Passed(morning); passed != 25*time.Hour {
			t.Errorf("of its own time %v have passed", passed)
		}
	})
}

// TestStart_ownSteps: after a restart a node knows by how much its clock was set forward, even if one row stores
// several steps.
func TestStart_ownSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		k := keeper(t, d, c, Options{Node: "one"})
		for range 3 {
			c.Set(10 * time.Hour)
			look(t, k)
			c.Advance(rowPause / 2)
		}
		c.Advance(rowPause)
		look(t, k)
		c.Advance(time.Hour)
		for node, want := range map[string]time.Duration{"one": time.Hour + 5*rowPause/2, "two": 31*time.Hour + 5*rowPause/2} {
			later := clock.NewManual(c.Now())
			keeper(t, d, later, Options{Node: node})
			if passed := later.Passed(morning); passed != want {
				t.Errorf("for node %s %v have passed, want %v", node, passed, want)
			}
		}
	})
}

// TestCheck_refusesACommand: a command checks the clock once, as a server does all the time.
func TestCheck_refusesACommand(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		right := morning
		if d.Engine() == db.Postgres {
			var err error
			if right, err = d.Now(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		newest := func(context.Context) (time.Time, error) { return right, nil }
		check := func(off time.Duration) error { return Check(t.Context(), d, clock.NewManual(right.Add(off)), newest) }
		if err := check(0); err != nil {
			t.Errorf("with the right clock: %v", err)
		}
		if err := check(-time.Hour); err == nil || problem.From(err).Code != "clock_wrong" {
			t.Errorf("an hour behind: %v", err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			Accept(tx, right.Add(-time.Hour), right, "ama", "the clock ran fast")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := check(-time.Hour); (err == nil) != (d.Engine() == db.SQLite) {
			t.Errorf("accepted: %v", err)
		}
	})
}

// In development the clock is moved on purpose, so it never stops money.
func TestGuard_notInDevelopment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		k := keeper(t, d, c, Options{})
		c.Set(-48 * time.Hour)
		look(t, k)
		if err := k.Stopped(); err != nil {
			t.Error(err)
		}
	})
}

// A step forward that was undone does not count for a later process until the clock reaches its time. Otherwise
// idempotency keys would never end before that.
func TestStart_undoneStep(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		k := keeper(t, d, c, Options{Node: "one"})
		for _, by := range []time.Duration{1000 * time.Hour, -1000 * time.Hour} {
			c.Set(by)
			c.Advance(rowPause)
			look(t, k)
		}
		c.Advance(25 * time.Hour)
		later := clock.NewManual(c.Now())
		keeper(t, d, later, Options{Node: "two"})
		if age := later.Age(morning); age < 24*time.Hour || age > 26*time.Hour {
			t.Errorf("a row from before both steps is %v old", age)
		}
	})
}
