package recovery

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// TestRecovery_closedOpenEnded: a recovery is closed, then open, then ended. A permission to send a payment is valid for one
// recovery only.
func TestRecovery_closedOpenEnded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		r := New(d, c, slog.New(slog.NewTextHandler(t.Output(), nil)))
		is := func(phase Phase) State {
			t.Helper()
			s, err := r.State(t.Context())
			if err != nil || s.Phase != phase {
				t.Fatalf("phase %q, %v, want %q", s.Phase, err, phase)
			}
			return s
		}
		refused := func(err error) {
			t.Helper()
			if !problem.Is(err, problem.Invalid) {
				t.Errorf("got %v", err)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		if is(PhaseNone).Lasts() {
			t.Error("a recovery is in progress before the first one")
		}
		refused(r.Open(t.Context(), "why", "ama"))
		refused(r.End(t.Context(), "why", "ama"))
		refused(r.Skip(t.Context(), "mtn", "live", "why", "ama"))
		must(r.Begin(t.Context(), "restored", morning.Add(-time.Hour), "", "node a"))
		if s := is(PhaseClosed); !s.Lasts() || !s.Closed() || !s.BegunAt.Equal(morning) || !s.Since.Equal(morning.Add(-time.Hour)) {
			t.Errorf("%+v", s)
		}
		must(r.Skip(t.Context(), "hubtel", "live", "closed for good", "ama"))
		must(r.Allow(t.Context(), "tenant-1", "looked at the statement", "ama"))
		if s := is(PhaseClosed); !s.Skips("hubtel", "live") || s.Skips("hubtel", "test") || !s.Allows("tenant-1") || s.Allows("tenant-2") {
			t.Errorf("%+v", s)
		}
		must(r.Open(t.Context(), "redone", "ama"))
		if is(PhaseOpen).Closed() {
			t.Error("it is closed still")
		}
		// A restore is found again during a recovery. The recovery starts again, with the earlier of the two moments.
		c.Advance(time.Hour)
		must(r.Begin(t.Context(), "promoted", morning, "", "node b"))
		if s := is(PhaseClosed); s.Skips("hubtel", "live") || s.Allows("tenant-1") || !s.Since.Equal(morning.Add(-time.Hour)) || !s.BegunAt.Equal(c.Now()) {
			t.Errorf("%+v", s)
		}
		must(r.Open(t.Context(), "redone", "ama"))
		must(r.End(t.Context(), "floats agree", "ama"))
		if is(PhaseEnded).Lasts() {
			t.Error("it lasts after its end")
		}
		must(r.Begin(t.Context(), "restored again", morning.Add(2*time.Hour), "", "node a"))
		if s := is(PhaseClosed); !s.Since.Equal(morning.Add(2 * time.Hour)) {
			t.Errorf("since %v", s.Since)
		}
	})
}

func TestConflicts_listedUntilSettled(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := New(d, clock.NewManual(morning), slog.New(slog.NewTextHandler(t.Output(), nil)))
		one := Conflict{Tenant: "t", Kind: "payout", Reference: "order-000001", ProviderReference: "p", Rail: "mtn", Amount: 1000, Why: "not covered"}
		for range 2 {
			if err := r.Note(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		list, err := r.Conflicts(t.Context())
		one.At = morning
		if err != nil || len(list) != 1 || list[0] != one {
			t.Fatalf("%+v, %v", list, err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return r.Settled(tx, "t", "payout", "order-000001") }); err != nil {
			t.Fatal(err)
		}
		if list, err := r.Conflicts(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestAccounts_everUsed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := New(d, clock.NewManual(morning), slog.New(slog.NewTextHandler(t.Output(), nil)))
		old, new := Account{Rail: "hubtel", Mode: "live", Fingerprint: Fingerprint("a", "b")}, Account{Rail: "hubtel", Mode: "live", Fingerprint: Fingerprint("ab")}
		for _, has := range [][]Account{{old}, {old}, {new}} {
			if err := r.Use(t.Context(), has); err != nil {
				t.Fatal(err)
			}
		}
		old.SeenAt, new.SeenAt = morning, morning
		used, err := r.Accounts(t.Context())
		if err != nil || len(used) != 2 || !slices.Contains(used, old) || !slices.Contains(used, new) {
			t.Errorf("%+v, %v", used, err)
		}
	})
}

// TestAge_countsMonotonicTime: the age of a recovery is the time since this process first saw it, even if the wall
// clock is set. A recovery that starts again has a new age.
func TestAge_countsMonotonicTime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		r, other := New(d, c, log), New(d, c, log)
		age := func(of *Recovery, want time.Duration) {
			t.Helper()
			s, err := of.State(t.Context())
			if is := of.Age(s); err != nil || is != want {
				t.Errorf("its age is %v, %v, want %v", is, err, want)
			}
		}
		begin := func() {
			t.Helper()
			if err := r.Begin(t.Context(), "restored", time.Time{}, "", "node a"); err != nil {
				t.Fatal(err)
			}
		}
		begin()
		age(r, 0)
		c.Advance(time.Minute)
		c.Set(time.Hour)
		age(r, time.Minute)
		c.Set(-48 * time.Hour)
		age(other, 0)
		c.Advance(time.Minute)
		age(r, 2*time.Minute)
		age(other, time.Minute)
		begin()
		age(r, 0)
	})
}

// TestClockStepped_accountsAndOpenWork: when a recovery begins, every account counts as unseen, even if a clock that
// was ahead wrote its row. A server that has the account makes it seen, even with a clock that was set back. A
// payment from before counts as open work, whatever its date is.
func TestClockStepped_accountsAndOpenWork(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(morning)
		r := New(d, c, slog.New(slog.NewTextHandler(t.Output(), nil)))
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		list := []Account{{Rail: "mtn", Mode: "live", Fingerprint: "f"}}
		c.Set(24 * time.Hour)
		must(r.Use(t.Context(), list))
		must(d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO payments (tenant, kind, id, seq, mode, channel, reference, provider_reference, amount, charges, fee_bearer, plan, account, account_name, bank_id, label,
callback_url, access_key, idempotency_hash, parent, child, details, status, rail, created_at, settled_at) VALUES ('t', 'payout', 'p', 1, 'live', 'MTN', 'r', 'pr', 100, 0, 'merchant', 0, '', '', '', '', '', '', '', '', '', '', 'pending', 'mtn', $1, 0)`, db.Micros(c.Now()))
			return err
		}))
		c.Set(-24 * time.Hour)
		must(r.Begin(t.Context(), "restored", time.Time{}, "", "node a"))
		gone := func(want int) {
			t.Helper()
			r.state.Forget(struct{}{})
			s, err := r.State(t.Context())
			must(err)
			if n := len(s.Gone("live")); n != want {
				t.Errorf("%d accounts are gone, want %d", n, want)
			}
			if n, err := r.Unsettled(t.Context(), s); err != nil || n != 1 {
				t.Errorf("%d payments are unsettled, %v", n, err)
			}
		}
		gone(1)
		c.Set(-time.Hour)
		must(r.Use(t.Context(), list))
		gone(0)
	})
}
