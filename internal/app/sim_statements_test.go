package app

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider/pawapay"
	"github.com/makola/makola/internal/provider/paystack"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/tenant"
)

// statedFaults are the faults of statements, and the kind of exception that each must become. An empty kind means no exception.
var statedFaults = []struct {
	fault sim.FaultKind
	kind  reconcile.Kind
}{
	{sim.StatementOmit, reconcile.OursOnly}, {sim.StatementOff, reconcile.AmountOff}, {sim.StatementTwice, reconcile.Twice}, {sim.StatementFee, reconcile.FeeOff},
	{sim.StatementReversed, reconcile.StateOff}, {sim.StatementForeign, reconcile.TheirsOnly}, {sim.StatementCharge, reconcile.TheirsOnly}, {sim.StatementNextDay, ""},
}

// simPayment makes a collection or a payout at MTN or Hubtel, which the simulator completes after two seconds.
func (b *browsed) simPayment(provider, account string, number int) string {
	b.t.Helper()
	network, channel, phone := "MTN", "MTN", fmt.Sprintf("02412345%02d", number)
	if provider == "hubtel" {
		network, channel, phone = "VDF", "TELECEL", fmt.Sprintf("02012345%02d", number)
	}
	reference := fmt.Sprintf("%s-%s-%06d", provider, account, number)
	if account == sim.AccountCollection {
		b.call("payment-api/momopay", fmt.Sprintf(`{"amount":%d.5,"phone_number":"%s","network":"%s","transaction_id":"%s"}`, 10+number, phone, network, reference))
	} else {
		b.call("payment-api/send/mobilemoney", fmt.Sprintf(`{"amount":"%d.50","channel":"%s","account_number":"%s","client_reference":"%s"}`, 10+number, channel, phone, reference))
	}
	if err := b.Quiet(b.t.Context()); err != nil { // the provider now has the payment, and the fault for it was used
		b.t.Fatal(err)
	}
	return reference
}

// downloads reads a statement of the simulator.
func (b *browsed) downloads(provider, account string) *sheet.File {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.ready.SimURL+"/statements/"+provider+"/"+account, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	file, err := sheet.Open(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { file.Close() })
	return file
}

// imports imports the statement of a simulated account.
func (b *browsed) imports(name, account string) reconcile.Imported {
	b.t.Helper()
	done, err := b.reconcile.Import(b.t.Context(), reconcile.Upload{Source: "test/" + name + "/" + account, FileName: "statement.csv", By: "ama", ByName: "Ama", Confirmed: true,
		Answers: reconcile.Layout{Sign: reconcile.SignIn}}, b.downloads(name, account))
	if err != nil || done.Reading != nil {
		b.t.Fatalf("%v %+v", err, done)
	}
	return done
}

// exceptionsBy matches the statements, and counts the open exceptions by a key.
func (b *browsed) exceptionsBy(key func(reconcile.Exception) string) (map[string]int, []reconcile.Exception) {
	b.t.Helper()
	if err := b.reconcile.Match(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	list, err := b.reconcile.Exceptions(b.t.Context(), reconcile.Filter{Limit: 100})
	if err != nil {
		b.t.Fatal(err)
	}
	found := map[string]int{}
	for _, e := range list {
		found[key(e)]++
	}
	return found, list
}

// Every planted fault of a simulated statement becomes the exception of its kind, and no other payment becomes an exception. The
// books of a day then differ from the statements by exactly these exceptions.
func TestSimulatedStatements_findEveryFault(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	day := closing.DayOf(b.clock.Now())
	accounts := [][2]string{{"mtn", sim.AccountCollection}, {"mtn", sim.AccountDisbursement}, {"hubtel", sim.AccountCollection}, {"hubtel", sim.AccountDisbursement}}
	want := map[string]int{}
	for _, at := range accounts {
		b.simPayment(at[0], at[1], 0)
		b.clock.Advance(time.Minute) // the statement begins before the other payments
		for i, f := range statedFaults {
			b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {at[0]}, "fault": {string(f.fault)}, "count": {"1"}})
			b.simPayment(at[0], at[1], 1+i)
			if f.kind != "" {
				want[fmt.Sprintf("test/%s/%s %s", at[0], at[1], f.kind)]++
			}
		}
	}
	b.clock.Advance(time.Minute)
	if err := b.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(72 * time.Hour)
	for _, at := range accounts { // so that the statements begin before the delay of the first day
		b.simPayment(at[0], at[1], 90)
	}
	b.clock.Advance(time.Minute)
	if err := b.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, at := range accounts {
		if done := b.imports(at[0], at[1]); !done.Statement.Chains {
			t.Fatalf("%v: %+v", at, done)
		}
	}
	found, _ := b.exceptionsBy(func(e reconcile.Exception) string { return e.Source + " " + string(e.Kind) })
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("found %v, want %v", found, want)
	}
	figures, err := b.closing.Figures(t.Context(), ledger.TestGHS, day)
	if err != nil {
		t.Fatal(err)
	}
	stated := 0
	for _, a := range figures.Accounts {
		if a.Theirs != nil {
			stated++
		}
		if n := a.Unexplained(); n != 0 {
			t.Errorf("%s differs by %s that no exception explains: %+v", a.ID, n, a)
		}
	}
	if stated != len(accounts) {
		t.Errorf("%d accounts have a balance of a statement, want %d", stated, len(accounts))
	}
}

// The statements of providers with one balance contain every planted fault, in their own formats. Paystack's ledger has amounts
// less the fees. pawaPay's rows have no balance, so no payment can be reported as missing.
func TestSimulatedStatements_ofOneBalance(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]map[sim.FaultKind]reconcile.Kind{
		paystack.Name: {sim.StatementFee: reconcile.AmountOff},
		pawapay.Name:  {sim.StatementFee: reconcile.TheirsOnly, sim.StatementOmit: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := browse(t)
			b.signIn(b.nextLink())
			(&stage{app: b.App}).routes(t, name, route.DisburseWallet, route.Collect)
			email := "accounts@example.com" // without it Paystack collects nothing
			if err := b.db.Write(t.Context(), func(tx *db.Tx) error {
				_, _, err := b.tenants.Set(tx, demoTenant, tenant.Change{Email: &email})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{}
			for at, account := range []string{sim.AccountDisbursement, sim.AccountCollection} {
				b.simPayment(name, account, 50*at)
				b.clock.Advance(time.Minute) // the statement begins before the other payments
				for i, f := range statedFaults {
					b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {name}, "fault": {string(f.fault)}, "count": {"1"}})
					b.simPayment(name, account, 50*at+1+i)
					kind, is := other[f.fault]
					if !is {
						kind = f.kind
					}
					if kind != "" {
						want[string(kind)]++
					}
				}
			}
			for _, wait := range []time.Duration{time.Minute, 72 * time.Hour} {
				b.clock.Advance(wait)
				if err := b.Quiet(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.simPayment(name, sim.AccountDisbursement, 90) // so that the statement begins before the delay of the first day
			b.clock.Advance(24 * time.Hour)
			if err := b.Quiet(t.Context()); err != nil {
				t.Fatal(err)
			}
			if done := b.imports(name, sim.AccountDisbursement); done.Statement.Chains != (name == paystack.Name) {
				t.Fatalf("%+v", done)
			}
			found, list := b.exceptionsBy(func(e reconcile.Exception) string { return string(e.Kind) })
			if fmt.Sprint(found) != fmt.Sprint(want) {
				t.Errorf("found %v, want %v: %+v", found, want, list)
			}
		})
	}
}
