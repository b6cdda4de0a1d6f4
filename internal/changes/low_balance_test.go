package changes

import (
	"testing"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// A kind can be requested by its fields. The fields check the values, the change is applied once, and a threshold that has
// changed since is not overwritten.
func TestLowBalance_isSetByFields(t *testing.T) {
	each(t, func(f *fixture) {
		owner := f.member("owner@adom.example", f.tenant.ID, roles.Owner)
		of := func(amount string) Values { return Values{FieldTenant: f.tenant.ID, "amount": amount} }
		request, err := f.Do(t.Context(), owner, KindLowBalance, newID(), of("250.00"), "payday")
		if err != nil || request.State != Done || request.Sentence != "Set the low-balance threshold of Adom Stores (live) from none to GHS 250.00" {
			t.Fatalf("%+v, %v", request, err)
		}
		if now, err := f.Tenants.Get(t.Context(), f.tenant.ID); err != nil || now.LowBalance != 250*money.Cedi {
			t.Fatalf("%+v, %v", now, err)
		}
		for name, bad := range map[string]Values{"amount": of("much"), "tenant": {"amount": "1"}, "colour": {FieldTenant: f.tenant.ID, "amount": "1", "colour": "red"}} {
			if _, err := f.Do(t.Context(), owner, KindLowBalance, newID(), bad, "payday"); !problem.Is(err, problem.Invalid) || problem.From(err).Fields[name] == nil {
				t.Errorf("%v is answered %v", bad, err)
			}
		}
		if _, err := f.Do(t.Context(), owner, KindLowBalance, newID(), of("-1"), "payday"); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
		if _, err := f.Do(t.Context(), f.requester, KindLowBalance, newID(), of("1"), "not mine"); !problem.Is(err, problem.Forbidden) {
			t.Error(err)
		}
		if _, err := f.Do(t.Context(), owner, "wallet.spend", newID(), Values{}, "no kind"); !problem.Is(err, problem.NotFound) {
			t.Error(err)
		}
	})
}

// Every form names its fields once, and the field of its account is called tenant.
func TestForms_nameTheirFields(t *testing.T) {
	forms := Forms()
	if all := len(New(Deps{}).kinds); len(forms) != all-3 { // payouts, refunds and campaigns have pages of their own
		t.Fatalf("%d forms of %d kinds", len(forms), all)
	}
	for _, form := range forms {
		seen := map[string]bool{}
		for _, field := range form.Fields {
			if field.Name == "" || field.Label == "" || field.Max == 0 || seen[field.Name] {
				t.Errorf("%s: %+v", form.Kind, field)
			}
			seen[field.Name] = true
		}
		if form.Title == "" || form.Request == "" {
			t.Errorf("%+v", form)
		}
	}
}
