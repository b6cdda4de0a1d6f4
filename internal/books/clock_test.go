package books

import (
	"math"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

// next returns the time up to which the recent check has proved the books.
func (f *fixture) next() (next int64) {
	f.t.Helper()
	err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
		c, err := load(tx, recentCheck, false)
		next = c.proof.Next
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return next
}

// After a step of the clock back, the times of new transfers lie in the proven period. The recent check finds the faults of these
// transfers at once, and a full check finds the faults of accounts.
func TestRecent_clockSetBack(t *testing.T) {
	for name, by := range map[string]time.Duration{"hours": 5 * time.Hour, "little more than the overlap": proofEnds + 20*time.Second} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.loader.Clock.Advance(time.Hour)
				f.sound("before")
				f.loader.Clock.Advance(time.Second)
				f.loader.Clock.Set(-by)
				f.new = f.loader.Load(f.tenant, 10, 1, time.Second)
				f.loader.Clock.Advance(ledger.Overlap - 10*time.Second)
				f.sound("set back")
				for fault := range faults {
					f.exec(faultOf(fault).plant, f.new[0].ID)
					if f.recent().Count() == 0 {
						t.Errorf("%s: not found", fault)
					}
					f.exec(faultOf(fault).mend, f.new[0].ID)
					f.sound(fault + " mended")
				}
				f.loader.Clock.Advance(2 * ledger.Overlap)
				for range 100 {
					if err := f.Work(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if s, err := f.State(t.Context()); err != nil || s.Stage != "" || s.FullAt.After(f.loader.Clock.Now()) || s.FullAt.Before(f.new[0].CreatedAt) {
					t.Fatalf("no full check was made after the step: %+v, %v", s, err)
				}
				f.findsAccountFaults()
			})
		})
	}
}

// The clocks of two nodes may differ by up to clock.Skew. This is not a clock step: the checks continue, and no full check is
// requested.
func TestRecent_clocksDiffer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.loader.Clock.Advance(time.Hour)
		f.sound("one node")
		before, err := f.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		behind := clock.NewManual(f.loader.Clock.Now().Add(-clock.Skew))
		report, err := New(d, behind).Recent(t.Context())
		if err != nil || report.Count() > 0 {
			t.Errorf("the other node found %v, %v", report.Found, err)
		}
		if due := f.dueNow(); due {
			t.Error("a full check was requested")
		}
		if got := f.next(); got == math.MinInt64 {
			t.Error("the proof was dropped")
		}
		if s, err := f.State(t.Context()); err != nil || !s.FullAt.Equal(before.FullAt) {
			t.Errorf("%+v, %v", s, err)
		}
		behind = clock.NewManual(f.loader.Clock.Now().Add(-2*clock.Skew - time.Second))
		if _, err := New(d, behind).Recent(t.Context()); err != nil || !f.dueNow() {
			t.Errorf("a step is not seen: %v", err)
		}
	})
}

// dueNow reports whether a full check begins now.
func (f *fixture) dueNow() (due bool) {
	f.t.Helper()
	err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
		c, err := load(tx, fullCheck, false)
		due = c.due(f.loader.Clock.Now())
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return due
}

// After a step of the clock forward, a transfer with an earlier time may still be uncommitted. Until then neither check extends its
// proof.
func TestChecks_clockSetForward(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.loader.Clock.Advance(time.Hour)
		f.sound("before")
		before, at := f.next(), f.loader.Clock.Now()
		f.loader.Clock.Set(5 * time.Hour)
		f.sound("set forward")
		if got := f.next(); got != before {
			t.Errorf("the proof went on by %v", time.Duration(got-before)*time.Microsecond)
		}
		if err := f.Request(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := f.Work(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := f.State(t.Context()); err != nil || s.Stage != string(stageTransfers) {
			t.Errorf("the full check did not wait: %+v, %v", s, err)
		}
		f.post(at) // a transfer with a time from before the step commits
		f.sound("a transfer from before the step")
		f.loader.Clock.Advance(2 * ledger.Overlap)
		f.sound("later")
		if f.next() <= before {
			t.Error("the proof does not go on")
		}
		f.full()
		f.sound("after a full check")
	})
}

// A full check that is running when the clock is set back starts again.
func TestFull_clockSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.half()
		f.loader.Clock.Set(-72 * time.Hour)
		f.loader.Load(f.tenant, 10, 1, time.Second)
		f.loader.Clock.Advance(2 * ledger.Overlap)
		c, err := f.begin(t.Context())
		if err != nil || c.position != "" || c.begunAt.After(f.loader.Clock.Now()) {
			t.Errorf("%+v, %v", c, err)
		}
		f.full()
		f.sound("after it")
	})
}
