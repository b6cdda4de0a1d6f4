package lookup

import (
	"log/slog"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// payer is a rail that pays out and returns names for its own bank codes.
type payer struct {
	provider.Disburser
	rail
}

// The name of a bank account comes from the rail that pays it, by that rail's bank code, in the order of the route of
// payouts. The separate route of names counts only for lookups.
func TestPayeeName_fromThePayingRail(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		c, log := clock.NewManual(morning), slog.New(slog.DiscardHandler)
		first, second, mute := &payer{}, &payer{}, &payer{}
		routes := route.New(d, c, log, []string{"hubtel", "paystack", "mtn"}, []provider.Rail{
			{Name: "mtn", Mode: "test", Disburser: mute},
			{Name: "hubtel", Mode: "test", Disburser: first, BankNames: first},
			{Name: "paystack", Mode: "test", Disburser: second, BankNames: second, Limits: []provider.Limit{{Operation: string(route.DisburseBank), Channel: route.Any, Max: 100 * money.Cedi}}},
		})
		lookups := New(d, f.tenants, routes, c)
		change := func(op route.Operation, names ...string) {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				return routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: route.Any, Operation: op, Channel: route.Any, Providers: names, Actor: "test"})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		change(route.BankName, "hubtel")
		change(route.DisburseBank, "mtn", "paystack", "hubtel")
		first.answers(accepted, "AMA BY HUBTEL")
		second.answers(accepted, "AMA BY PAYSTACK")
		name, rail, err := lookups.PayeeName(t.Context(), f.shop.ID, f.bank(bank), "1234567", money.Cedi)
		if name != "AMA BY PAYSTACK" || rail != "paystack" || err != nil || first.asked != 0 {
			t.Errorf("%q of %s, %v; the other was asked %d times", name, rail, err, first.asked)
		}
		if name, rail, err = lookups.PayeeName(t.Context(), f.shop.ID, f.bank(bank), "1234567", 101*money.Cedi); name != "AMA BY HUBTEL" || rail != "hubtel" || err != nil {
			t.Errorf("above the largest amount of the first: %q of %s, %v", name, rail, err)
		}
		second.answers(silent, "")
		if name, rail, err = lookups.PayeeName(t.Context(), f.shop.ID, f.bank(bank), "1234567", money.Cedi); name != "AMA BY HUBTEL" || rail != "hubtel" || err != nil {
			t.Errorf("while the first is silent: %q of %s, %v", name, rail, err)
		}
		second.answers(rejected, "")
		if _, _, err = lookups.PayeeName(t.Context(), f.shop.ID, f.bank(bank), "1234567", money.Cedi); !problem.Is(err, problem.Invalid) {
			t.Errorf("an account that is not known: %v", err)
		}
		change(route.DisburseBank, "paystack")
		if _, _, err = lookups.PayeeName(t.Context(), f.shop.ID, f.bank(bank), "1234567", 101*money.Cedi); problem.From(err) == nil || len(problem.From(err).Fields["amount"]) != 1 {
			t.Errorf("above the largest amount of all: %v", err)
		}
		change(route.DisburseBank, "mtn")
		if _, _, err = lookups.PayeeName(t.Context(), f.shop.ID, f.bank(bank), "1234567", money.Cedi); !problem.Is(err, problem.Invalid) {
			t.Errorf("a rail without names: %v", err)
		}
	})
}
