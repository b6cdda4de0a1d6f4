package tenant

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// node returns a store with a clock of its own, as each node has.
func node(d *db.DB) (*Store, *clock.Clock) {
	c := clock.NewManual(start)
	return New(d, ledger.New(d, c, "n1"), c), c
}

func write(t *testing.T, d *db.DB, fn func(tx *db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, d *db.DB, s *Store, n Tenant) (made Tenant) {
	t.Helper()
	write(t, d, func(tx *db.Tx) (err error) {
		made, err = s.Create(tx, n)
		return err
	})
	return made
}

func ptr[T any](v T) *T { return &v }

func TestCreate_opensAccounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		made := create(t, d, s, Tenant{Name: "Adom Stores", Mode: Test})
		if made.ID == "" || made.PayoutLimitWallet != 15_000*money.Cedi || made.PayoutLimitBank != 50_000*money.Cedi ||
			made.FeeBearer != Merchant || !made.CreatedAt.Equal(start) || made.CollectionsEnabled || made.Blocked {
			t.Fatalf("%+v", made)
		}
		got, err := s.Get(t.Context(), made.ID)
		if err != nil || got != made {
			t.Fatalf("Get gave %+v, %v; want %+v", got, err, made)
		}
		l := ledger.New(d, clock.NewManual(start), "n1")
		write(t, d, func(tx *db.Tx) error {
			page, err := l.Open(tx, made.Wallet(), made.SMSCredits())
			if err != nil {
				return err
			}
			for _, key := range []ledger.Key{made.Wallet(), made.SMSCredits()} {
				if !page.Exists(key) || page.Balance(key) != 0 {
					t.Errorf("the account %v was not opened", key)
				}
			}
			return nil
		})
		if made.Money() != ledger.TestGHS || made.Credits() != ledger.TestSMS {
			t.Fatal("a test tenant holds live money")
		}
		if live := (Tenant{Mode: Live}); live.Money() != ledger.GHS || live.Credits() != ledger.SMS {
			t.Fatal("a live tenant holds test money")
		}
	})
}

// Ids are short, follow the order of the forms, and are the same for a form that is sent twice.
func TestIDOf_shortAndOrdered(t *testing.T) {
	seen, before := map[string]bool{}, ""
	for step := range 2000 {
		form := formAt(time.Date(2026, 3, 6, 9, 0, 0, 0, time.UTC).Add(time.Duration(step) * time.Millisecond))
		id := IDOf(form)
		if len(id) != 12 || id <= before || seen[id] || id != IDOf(form) || strings.Trim(id, "0123456789abcdefghijklmnopqrstuv") != "" {
			t.Fatalf("%q after %q", id, before)
		}
		seen[id], before = true, id
	}
	at := time.Date(2026, 3, 6, 9, 0, 0, 0, time.UTC)
	if a, b := IDOf(formAt(at)), IDOf(formAt(at)); a == b || a[:8] != b[:8] {
		t.Errorf("two forms of one millisecond give %q and %q", a, b)
	}
	if one, other := IDOf("one"), IDOf("other"); len(one) != 12 || one == other {
		t.Errorf("other texts give %q and %q", one, other)
	}
}

// formAt returns a UUIDv7 of a time.
func formAt(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	for n, ms := 5, at.UnixMilli(); n >= 0; n, ms = n-1, ms>>8 {
		id[n] = byte(ms)
	}
	return id.String()
}

func TestCreate_needsNameAndMode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		for _, n := range []Tenant{
			{Mode: Test}, {Name: " x", Mode: Test}, {Name: "x"}, {Name: "x", Mode: "demo"}, {Name: strings.Repeat("x", 121), Mode: Live},
			{Name: "x", Mode: Live, PayoutLimitWallet: -1}, {Name: "x", Mode: Live, PayoutLimitBank: -1}, {Name: "x", Mode: Live, FeeBearer: "me"},
			{ID: "a:b", Name: "x", Mode: Live}, {ID: "a/b", Name: "x", Mode: Live}, {ID: strings.Repeat("a", 65), Name: "x", Mode: Live},
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := s.Create(tx, n); return err })
			if !problem.Is(err, problem.Invalid) {
				t.Errorf("%+v: %v", n, err)
			}
		}
		if all, err := s.List(t.Context(), "", 10); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		made := create(t, d, s, Tenant{Name: strings.Repeat("ɛ", 120), Mode: Live})
		made.Name = "Another"
		err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := s.Create(tx, made); return err })
		if !problem.Is(err, problem.Duplicate) {
			t.Errorf("an id that is taken: %v", err)
		}
	})
}

// An account's name must not look like another name. A name that an older release stored stays until it is changed.
func TestName_lookAlikesAreRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		made := create(t, d, s, Tenant{Name: "Adom", Mode: Live})
		for _, name := range []string{"Ad\u043em", "Ado\u200bm", "Ado\u202em", "Ado\nm", "Ado\u0085m"} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := s.Create(tx, Tenant{Name: name, Mode: Live}); return err }); !problem.Is(err, problem.Invalid) {
				t.Errorf("%+q: %v", name, err)
			}
			if err := d.Write(t.Context(), func(tx *db.Tx) error { _, _, err := s.Set(tx, made.ID, Change{Name: &name}); return err }); !problem.Is(err, problem.Invalid) {
				t.Errorf("%+q: %v", name, err)
			}
		}
		write(t, d, func(tx *db.Tx) error { _, err := tx.Exec(`UPDATE tenants SET name = $1`, "Ad\u043em"); return err })
		write(t, d, func(tx *db.Tx) error { _, _, err := s.Set(tx, made.ID, Change{Blocked: ptr(true)}); return err })
	})
}

func TestUpdate_reachesNodesInASecond(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		here, hereClock := node(d)
		there, thereClock := node(d)
		made := create(t, d, here, Tenant{Name: "Adom", Mode: Live})
		if got, err := there.Get(t.Context(), made.ID); err != nil || got.Blocked {
			t.Fatalf("%+v, %v", got, err)
		}
		thereClock.Advance(300 * time.Millisecond)
		hereClock.Advance(300 * time.Millisecond)
		var before, after Tenant
		write(t, d, func(tx *db.Tx) (err error) {
			before, after, err = here.Set(tx, made.ID, Change{Blocked: ptr(true), PayoutLimitBank: ptr(100 * money.Cedi), FeeBearer: ptr(Customer)})
			return err
		})
		want := made
		want.Blocked, want.PayoutLimitBank, want.FeeBearer, want.UpdatedAt = true, 100*money.Cedi, Customer, start.Add(300*time.Millisecond)
		if before != made || after != want {
			t.Fatalf("from %+v to %+v, want %+v", before, after, want)
		}
		if got, err := here.Get(t.Context(), made.ID); err != nil || got != want {
			t.Fatalf("the node that changed it reads %+v, %v", got, err)
		}
		thereClock.Advance(Freshness - 300*time.Millisecond)
		if got, err := there.Get(t.Context(), made.ID); err != nil || got != want {
			t.Fatalf("after a second the other node reads %+v, %v", got, err)
		}
	})
}

func TestUpdate_refusesInvalid(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		made := create(t, d, s, Tenant{Name: "Adom", Mode: Live})
		for _, c := range []Change{
			{Name: ptr("")}, {PayoutLimitWallet: ptr(money.Pesewas(0))}, {PayoutLimitBank: ptr(money.Pesewas(-5))}, {FeeBearer: ptr(FeeBearer("x"))},
			{Quotas: QuotaChange{Contacts: ptr(Quota(-2))}},
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error { _, _, err := s.Set(tx, made.ID, c); return err })
			if !problem.Is(err, problem.Invalid) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error { _, _, err := s.Set(tx, "nobody", Change{}); return err })
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("an unknown tenant: %v", err)
		}
		if got, err := s.Get(t.Context(), made.ID); err != nil || got != made {
			t.Errorf("%+v, %v", got, err)
		}
		for range 2 { // the second answer comes from the cache
			if _, err := s.Get(t.Context(), "nobody"); !problem.Is(err, problem.NotFound) {
				t.Errorf("an unknown tenant: %v", err)
			}
		}
	})
}

func TestQuota_tenantOverridesInstallation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		made := create(t, d, s, Tenant{Name: "Adom", Mode: Live, Quotas: Quotas{Groups: 7}})
		settings := config.Quotas{Contacts: 100, Groups: 10, Senders: 5, Campaigns: 3}
		if got, want := made.Quotas.Over(settings), (config.Quotas{Contacts: 100, Groups: 7, Senders: 5, Campaigns: 3}); got != want {
			t.Errorf("made with %+v, want %+v", got, want)
		}
		write(t, d, func(tx *db.Tx) error {
			_, _, err := s.Set(tx, made.ID, Change{Quotas: QuotaChange{Contacts: ptr(Quota(1_000)), Groups: ptr(InstallationQuota), Senders: ptr(NoQuota), Campaigns: ptr(Quota(1))}})
			return err
		})
		got, err := s.Get(t.Context(), made.ID)
		if want := (config.Quotas{Contacts: 1_000, Groups: 10, Campaigns: 1}); err != nil || got.Quotas.Over(settings) != want {
			t.Errorf("%+v, %v, want %+v", got.Quotas, err, want)
		}
		write(t, d, func(tx *db.Tx) error {
			_, _, err := s.Set(tx, made.ID, Change{Name: ptr("Adom Stores")})
			return err
		})
		if again, err := s.Get(t.Context(), made.ID); err != nil || again.Quotas != got.Quotas {
			t.Errorf("another change made %+v of %+v, %v", again.Quotas, got.Quotas, err)
		}
	})
}

func TestQuota_roundTrip(t *testing.T) {
	for text, want := range map[string]Quota{"1": 1, "1000000": 1_000_000, "none": NoQuota, "0": NoQuota, "default": InstallationQuota} {
		got, err := ParseQuota(text)
		if err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
		if again, err := ParseQuota(got.String()); err != nil || again != got {
			t.Errorf("%v is written %q, which is %v, %v", got, got, again, err)
		}
	}
	for _, text := range []string{"", "-1", "-2", "1.5", "many", "9223372036854775808"} {
		if got, err := ParseQuota(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestStopPayouts_affectsOneTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		a, b := create(t, d, s, Tenant{Name: "A", Mode: Live}), create(t, d, s, Tenant{Name: "B", Mode: Live})
		if got, err := s.Get(t.Context(), a.ID); err != nil || got.PayoutsStopped {
			t.Fatalf("%+v, %v", got, err)
		}
		for range 2 { // payouts may be stopped already
			write(t, d, func(tx *db.Tx) error { s.StopPayouts(tx, a.ID, "nobody"); return nil })
		}
		for id, want := range map[string]bool{a.ID: true, b.ID: false} {
			if got, err := s.Get(t.Context(), id); err != nil || got.PayoutsStopped != want {
				t.Errorf("%+v, %v; want stopped %v", got, err, want)
			}
		}
	})
}

func TestList_pagedInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		for n, name := range []string{"A", "B", "C"} {
			create(t, d, s, Tenant{ID: IDOf(formAt(start.Add(time.Duration(n) * time.Second))), Name: name, Mode: Test})
		}
		first, err := s.List(t.Context(), "", 2)
		if err != nil || len(first) != 2 || first[0].Name != "A" || first[1].Name != "B" {
			t.Fatalf("%+v, %v", first, err)
		}
		rest, err := s.List(t.Context(), first[1].ID, 2)
		if err != nil || len(rest) != 1 || rest[0].Name != "C" {
			t.Fatalf("%+v, %v", rest, err)
		}
	})
}

func TestUpdate_concurrentChangesBothStay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		made := create(t, d, s, Tenant{Name: "Adom", Mode: Live})
		for round := range 25 {
			on := round%2 == 0
			var wg sync.WaitGroup
			for _, c := range []Change{{Blocked: &on}, {CollectionsEnabled: &on}, {PayoutsStopped: &on}} {
				wg.Go(func() {
					if err := d.Write(t.Context(), func(tx *db.Tx) error { _, _, err := s.Set(tx, made.ID, c); return err }); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			got, err := s.Get(t.Context(), made.ID)
			if err != nil || got.Blocked != on || got.CollectionsEnabled != on || got.PayoutsStopped != on {
				t.Fatalf("round %d: one change undid another: %+v, %v", round, got, err)
			}
		}
	})
}
