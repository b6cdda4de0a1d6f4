package tenant

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
	"pgregory.net/rapid"
)

func TestRule_roundsHalfUp(t *testing.T) {
	demo := DemoPlan()[0]
	for _, c := range []struct {
		rule   Rule
		amount money.Pesewas
		want   money.Pesewas
	}{
		{demo, 50, 10}, {demo, 1_000, 10}, {demo, 1_049, 10}, {demo, 1_050, 11}, {demo, 1_149, 11}, {demo, 99_999, 1_000},
		{demo, 100_000, 1_000}, {demo, 100_050, 1_000}, {demo, 1_500_000, 1_000}, {demo, 1, 10},
		{Rule{Flat: 25, BasisPoints: 150}, 3_300, 75}, // 49.5 rounds up
		{Rule{Flat: 25, BasisPoints: 150}, 3_299, 74}, // 49.485 rounds down
		{Rule{Flat: 100}, 5, 100}, {Rule{}, 1_000_000, 0}, {Rule{BasisPoints: 10_000}, 77, 77},
		{Rule{Flat: 100, Maximum: 50}, 5, 50}, {Rule{Minimum: 30, Maximum: 30}, 5, 30},
		{Rule{Flat: 1, BasisPoints: 10_000}, math.MaxInt64, math.MaxInt64},
	} {
		if got := c.rule.Fee(c.amount); got != c.want {
			t.Errorf("%+v of %s is %s, want %s", c.rule, c.amount, got, c.want)
		}
	}
}

func TestFee_growsWithTheAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rule{
			Flat:        money.Pesewas(rapid.Int64Range(0, 5_000).Draw(t, "flat")),
			BasisPoints: rapid.Int64Range(0, maxBasisPoints).Draw(t, "points"),
			Minimum:     money.Pesewas(rapid.Int64Range(0, 500).Draw(t, "minimum")),
		}
		if rapid.Bool().Draw(t, "capped") {
			r.Maximum = r.Minimum + money.Pesewas(rapid.Int64Range(1, 5_000).Draw(t, "above"))
		}
		a := money.Pesewas(rapid.Int64Range(0, 100_000_000).Draw(t, "a"))
		b := a + money.Pesewas(rapid.Int64Range(0, 100_000).Draw(t, "more"))
		low, high := r.Fee(a), r.Fee(b)
		if low > high || low < r.Minimum || r.Maximum > 0 && high > r.Maximum {
			t.Fatalf("%+v: %s costs %s and %s costs %s", r, a, low, b, high)
		}
	})
}

// fee returns a fee and the version of its plan.
func fee(t *testing.T, s *Store, tenant string, p Product, channel string, amount money.Pesewas, at time.Time) (money.Pesewas, int64) {
	t.Helper()
	got, version, err := s.Fee(t.Context(), tenant, p, channel, amount, at)
	if err != nil {
		t.Fatal(err)
	}
	return got, version
}

func setPlan(t *testing.T, d *db.DB, s *Store, tenant string, from time.Time, rules ...Rule) (version int64) {
	t.Helper()
	write(t, d, func(tx *db.Tx) (err error) {
		version, err = s.SetFeePlan(tx, tenant, from, rules)
		return err
	})
	return version
}

func TestPlan_ofTheTenantFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		a, b := create(t, d, s, Tenant{Name: "A", Mode: Live}), create(t, d, s, Tenant{Name: "B", Mode: Live})
		if got, version := fee(t, s, a.ID, Payout, "MTN", 10_000, start); got != 0 || version != 0 {
			t.Fatalf("without any plan a payout costs %s (version %d)", got, version)
		}
		first := setPlan(t, d, s, Default, time.Time{}, DemoPlan()...)
		own := setPlan(t, d, s, b.ID, time.Time{},
			Rule{Product: Payout, Flat: 100}, Rule{Product: Payout, Channel: ChannelBank, Flat: 800}, Rule{Product: Collection, Flat: 50})
		if own <= first {
			t.Fatalf("the versions are %d and %d", first, own)
		}
		for _, c := range []struct {
			tenant  string
			product Product
			channel string
			amount  money.Pesewas
			want    money.Pesewas
			version int64
		}{
			{a.ID, Payout, "MTN", 10_000, 100, first},
			{a.ID, Payout, ChannelBank, 10_000, 100, first},
			{a.ID, Collection, "TELECEL", 10_000, 100, first},
			{b.ID, Payout, "MTN", 10_000, 100, own},
			{b.ID, Payout, ChannelBank, 10_000, 800, own},
			{b.ID, Payout, "TELECEL", 50, 100, own}, // the fee of a payout may be larger than its amount
			{b.ID, Collection, "MTN", 10_000, 50, own},
			{b.ID, Collection, "MTN", 20, 20, own}, // the fee of a collection may not
			{a.ID, Collection, "MTN", 5, 5, first},
		} {
			got, version := fee(t, s, c.tenant, c.product, c.channel, c.amount, start)
			if got != c.want || version != c.version {
				t.Errorf("%s %s %s %s costs %s (version %d), want %s (version %d)", c.tenant, c.product, c.channel, c.amount, got, version, c.want, c.version)
			}
		}
	})
}

func TestPlan_startsAtItsTime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		a := create(t, d, s, Tenant{Name: "A", Mode: Live})
		later := start.Add(time.Hour)
		flat := func(f money.Pesewas) Rule { return Rule{Product: Payout, Flat: f} }
		v1 := setPlan(t, d, s, a.ID, time.Time{}, flat(1))
		v2 := setPlan(t, d, s, a.ID, later, flat(2))
		for _, c := range []struct {
			at      time.Time
			want    money.Pesewas
			version int64
		}{
			{start.Add(-time.Microsecond), 0, 0}, {start, 1, v1}, {later.Add(-time.Microsecond), 1, v1}, {later, 2, v2}, {later.AddDate(1, 0, 0), 2, v2},
		} {
			if got, version := fee(t, s, a.ID, Payout, "MTN", 500, c.at); got != c.want || version != c.version {
				t.Errorf("at %v: %d of version %d, want %d of %d", c.at, got, version, c.want, c.version)
			}
		}
		// A plan from the same time on replaces the plan that it corrects. A plan that is set later for an earlier
		// time ends when the next plan begins.
		v3 := setPlan(t, d, s, a.ID, later, flat(3))
		v4 := setPlan(t, d, s, a.ID, start.Add(time.Minute), flat(4))
		if got, version := fee(t, s, a.ID, Payout, "MTN", 500, later); got != 3 || version != v3 {
			t.Errorf("after the correction: %d of version %d", got, version)
		}
		if got, version := fee(t, s, a.ID, Payout, "MTN", 500, start.Add(time.Minute)); got != 4 || version != v4 {
			t.Errorf("between: %d of version %d", got, version)
		}
		// A plan without rules costs nothing. It is still the tenant's own plan, so the default does not apply.
		setPlan(t, d, s, Default, time.Time{}, flat(9))
		v5 := setPlan(t, d, s, a.ID, later.Add(time.Hour))
		if got, version := fee(t, s, a.ID, Payout, "MTN", 500, later.Add(2*time.Hour)); got != 0 || version != v5 {
			t.Errorf("an empty plan costs %d of version %d", got, version)
		}
		rules, version, err := s.FeePlan(t.Context(), a.ID, start.Add(time.Minute))
		if err != nil || version != v4 || len(rules) != 1 || rules[0] != flat(4) {
			t.Errorf("the plan is %v of version %d, %v", rules, version, err)
		}
	})
}

func TestPlan_reachesNodesInASecond(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		here, _ := node(d)
		there, thereClock := node(d)
		if got, _ := fee(t, there, "t", Payout, "MTN", 500, start); got != 0 {
			t.Fatalf("without a plan a payout costs %s", got)
		}
		setPlan(t, d, here, Default, time.Time{}, Rule{Product: Payout, Flat: 7})
		if got, _ := fee(t, here, "t", Payout, "MTN", 500, start); got != 7 {
			t.Errorf("the node that set it charges %s", got)
		}
		thereClock.Advance(Freshness)
		if got, _ := fee(t, there, "t", Payout, "MTN", 500, thereClock.Now()); got != 7 {
			t.Errorf("after a second the other node charges %s", got)
		}
	})
}

func TestSetFeePlan_refusals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		for _, rules := range [][]Rule{
			{{Product: "loan"}}, {{Product: "topup"}}, {{Product: "bundle"}}, {{Product: "airtime_momo", Channel: "MTN"}},
			{{Product: Payout, Channel: "WALLET"}}, {{Product: Collection, Channel: ChannelBank}}, {{Product: Payout}, {Product: Payout}}, {{Product: Payout, Channel: "mtn"}},
			{{Product: Payout, Flat: -1}}, {{Product: Payout, BasisPoints: 10_001}}, {{Product: Payout, BasisPoints: -1}},
			{{Product: Payout, Minimum: 2, Maximum: 1}}, {{Product: Payout, Minimum: -1}}, {{Product: Payout, Maximum: -1}},
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := s.SetFeePlan(tx, Default, time.Time{}, rules); return err })
			if !problem.Is(err, problem.Invalid) {
				t.Errorf("%+v: %v", rules, err)
			}
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := s.SetFeePlan(tx, "nobody", time.Time{}, nil); return err })
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("an unknown tenant: %v", err)
		}
	})
}

func TestPlan_defaultWithoutOwn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, c := node(d)
		own, later, none := create(t, d, s, Tenant{Name: "Own", Mode: Live}), create(t, d, s, Tenant{Name: "Later", Mode: Live}), create(t, d, s, Tenant{Name: "None", Mode: Test})
		setPlan(t, d, s, own.ID, time.Time{})
		setPlan(t, d, s, later.ID, c.Now().Add(time.Hour))
		for _, at := range []struct {
			after time.Duration
			want  []string
		}{{0, []string{later.ID, none.ID}}, {time.Hour, []string{none.ID}}} {
			got, total, err := s.WithoutPlan(t.Context(), c.Now().Add(at.after), 5)
			var ids []string
			for _, tn := range got {
				ids = append(ids, tn.ID)
			}
			slices.Sort(ids)
			slices.Sort(at.want)
			if err != nil || total != len(at.want) || !slices.Equal(ids, at.want) {
				t.Errorf("after %v: %v, %d, %v", at.after, ids, total, err)
			}
		}
		if got, total, err := s.WithoutPlan(t.Context(), c.Now(), 1); err != nil || len(got) != 1 || total != 2 {
			t.Errorf("a few of them: %v, %d, %v", got, total, err)
		}
	})
}

func TestPlan_versionsAreUnique(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, _ := node(d)
		var mu sync.Mutex
		var wg sync.WaitGroup
		versions, refused := map[int64]bool{}, 0
		for range 8 {
			wg.Go(func() {
				var version int64
				err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
					version, err = s.SetFeePlan(tx, Default, time.Time{}, DemoPlan())
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && !versions[version]:
					versions[version] = true
				case problem.Is(err, problem.InProgress):
					refused++
				default:
					t.Errorf("version %d, %v", version, err)
				}
			})
		}
		wg.Wait()
		if len(versions) == 0 || len(versions)+refused != 8 {
			t.Fatalf("%d plans were set and %d refused", len(versions), refused)
		}
	})
}
