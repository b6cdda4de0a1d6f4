package changes

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// If a fee plan was changed after a request, the request does not replace it, because its requester saw another plan.
func TestFeePlan_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		plan := func(flat money.Pesewas) []tenant.Rule { return []tenant.Rule{{Product: tenant.Payout, Flat: flat}} }
		ask := func(owner string, flat money.Pesewas) Request {
			t.Helper()
			request, err := f.SetFees(t.Context(), f.requester, newID(), owner, plan(flat), time.Time{}, "contract 12")
			if err != nil || request.State != Waiting {
				t.Fatalf("%s, %v", request.State, err)
			}
			return request
		}
		charged := func(want money.Pesewas) {
			t.Helper()
			if fee, _, err := f.Tenants.Fee(t.Context(), f.tenant.ID, tenant.Payout, "MTN", 100*money.Cedi, f.clock.Now()); err != nil || fee != want {
				t.Errorf("a payout costs %s, %v; want %s", fee, err, want)
			}
		}
		first, second, all := ask(f.tenant.ID, 25), ask(f.tenant.ID, 99), ask(tenant.Default, 50)
		for _, request := range []Request{all, first} { // the default plan was changed
			if done, err := f.Approve(t.Context(), f.first, request.ID, request.Digest); err != nil || done.State != Done {
				t.Fatalf("%s, %v", done.State, err)
			}
			f.clock.Advance(time.Second)
		}
		charged(25)
		late, err := f.Approve(t.Context(), f.first, second.ID, second.Digest)
		if err != nil && problem.From(err).Code != "changed_since" || err == nil && late.State != Failed {
			t.Errorf("the second one is %s, %v", late.State, err)
		}
		charged(25)
		for _, bad := range [][]tenant.Rule{{{Product: "airtime", Flat: 1}}, {{Product: tenant.Payout, Flat: -1}}, {{Product: tenant.Payout}, {Product: tenant.Payout}}} {
			if _, err := f.SetFees(t.Context(), f.requester, newID(), f.tenant.ID, bad, time.Time{}, "x"); !problem.Is(err, problem.Invalid) {
				t.Errorf("%v: %v", bad, err)
			}
		}
	})
}

// One person can pause a provider, at once. The provider must exist.
func TestPause_isImmediate(t *testing.T) {
	each(t, func(f *fixture) {
		if err := f.routes.Seed(t.Context()); err != nil {
			t.Fatal(err)
		}
		request, err := f.Pause(t.Context(), f.requester, newID(), "live", "hubtel", route.Any, "their maintenance")
		if err != nil || request.State != Done {
			t.Fatalf("%s, %v", request.State, err)
		}
		if _, _, err := f.routes.Choose(t.Context(), route.DisburseWallet, "MTN", f.tenant.ID, "live"); problem.From(err).Code != "provider_unavailable" {
			t.Errorf("while it is paused: %v", err)
		}
		f.clock.Advance(time.Second)
		if request, err = f.Resume(t.Context(), f.requester, newID(), "live", "hubtel", route.Any, "it is over"); err != nil || request.State != Done {
			t.Fatalf("%s, %v", request.State, err)
		}
		if _, _, err := f.routes.Choose(t.Context(), route.DisburseWallet, "MTN", f.tenant.ID, "live"); err != nil {
			t.Errorf("after it was resumed: %v", err)
		}
		for _, bad := range [][3]string{{"real", "hubtel", route.Any}, {"live", "vodafone", route.Any}, {"live", "hubtel", "dance"}} {
			if _, err := f.Pause(t.Context(), f.requester, newID(), bad[0], bad[1], route.Operation(bad[2]), "x"); !problem.Is(err, problem.Invalid) {
				t.Errorf("%v: %v", bad, err)
			}
		}
	})
}
