package changes

import (
	"strconv"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

func (f *fixture) holds(t tenant.Tenant) money.Pesewas {
	f.t.Helper()
	n, err := f.ledger.Balance(f.t.Context(), t.Wallet())
	if err != nil {
		f.t.Fatal(err)
	}
	return money.Pesewas(n)
}

// checked lets the first approver approve a waiting request.
func (f *fixture) checked(request Request, err error) Request {
	f.t.Helper()
	if err != nil || request.State != Waiting {
		f.t.Fatalf("%+v, %v", request, err)
	}
	done, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
	if err != nil {
		f.t.Fatal(err)
	}
	return done
}

func TestTransfer_needsTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		other := f.shop("Kejetia")
		if err := f.Treasury.Fund(t.Context(), f.tenant.ID, 1000, "before the test", "ama"); err != nil {
			t.Fatal(err)
		}
		asked := 0
		ask := func(amount money.Pesewas) (Request, error) {
			asked++ // with the same reason it would be the same request
			return f.Transfer(t.Context(), f.requester, newID(), "letter 7", f.tenant.ID, other.ID, amount, "their letter, page "+strconv.Itoa(asked))
		}
		first, err := ask(400)
		second, again := ask(400)
		if again != nil {
			t.Fatal(again)
		}
		done := f.checked(first, err)
		if done.State != Done || f.holds(f.tenant) != 600 || f.holds(other) != 400 {
			t.Errorf("%s; %s and %s", done.State, f.holds(f.tenant), f.holds(other))
		}
		if entry := f.entries()[0]; len(entry.Changes()) != 3 || entry.Changes()[0].After != "GHS 6.00" || entry.Changes()[1].After != "GHS 4.00" {
			t.Errorf("%+v", entry.Changes())
		}
		if done := f.checked(second, nil); done.State != Failed || f.holds(other) != 400 { // the reference was used already
			t.Errorf("%s: %s", done.State, done.Note)
		}
		short, err := f.Transfer(t.Context(), f.requester, newID(), "", f.tenant.ID, other.ID, 601, "too much")
		if err != nil || len(short.Facts.Warnings()) != 1 {
			t.Fatalf("%+v, %v", short.Facts, err)
		}
		if _, err := f.Approve(t.Context(), f.first, short.ID, short.Digest); !problem.Is(err, problem.InsufficientFunds) || f.holds(f.tenant) != 600 {
			t.Errorf("more than there is: %v", err)
		}
		f.is(short.ID, Waiting) // until the money is there
		renamed, err := f.Transfer(t.Context(), f.requester, newID(), "", f.tenant.ID, other.ID, 1, "their letter")
		f.tx(func(tx *db.Tx) error {
			name := "Another"
			_, _, err := f.Tenants.Set(tx, other.ID, tenant.Change{Name: &name})
			return err
		})
		if done := f.checked(renamed, err); done.State != Failed || f.holds(f.tenant) != 600 {
			t.Errorf("after a change of the name: %s: %s", done.State, done.Note)
		}
		for _, bad := range []struct{ from, to string }{{f.tenant.ID, f.tenant.ID}, {f.tenant.ID, "nobody"}, {f.tenant.ID, f.test().ID}} {
			if _, err := f.Transfer(t.Context(), f.requester, newID(), "", bad.from, bad.to, 1, "x"); !problem.Is(err, problem.Invalid) {
				t.Errorf("%v: %v", bad, err)
			}
		}
		f.sound()
	})
}

// test makes an account of test money.
func (f *fixture) test() (t tenant.Tenant) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		t, err = f.Tenants.Create(tx, tenant.Tenant{Name: "Trials", Mode: tenant.Test})
		return err
	})
	return t
}

// A recovery of a debt takes at most the debt that its requester saw.
func TestRecover_upToTheAmountSeen(t *testing.T) {
	each(t, func(f *fixture) {
		if _, err := f.Recover(t.Context(), f.requester, newID(), f.tenant.ID, "as agreed"); problem.From(err) == nil || problem.From(err).Code != "nothing_owed" {
			t.Error(err)
		}
		if err := f.Treasury.Fund(t.Context(), f.tenant.ID, 250, "before the test", "ama"); err != nil {
			t.Fatal(err)
		}
		f.owes(300)
		first, err := f.Recover(t.Context(), f.requester, newID(), f.tenant.ID, "as agreed")
		if err != nil || first.Amount != 300 {
			t.Fatal(first, err)
		}
		f.owes(1)
		if done := f.checked(first, nil); done.State != Failed || f.holds(f.tenant) != 250 {
			t.Errorf("after it grew: %s: %s", done.State, done.Note)
		}
		done := f.checked(f.Recover(t.Context(), f.requester, newID(), f.tenant.ID, "as agreed"))
		owed, err := f.ledger.Balance(t.Context(), ledger.Key{Asset: f.tenant.Money(), ID: ledger.Receivable(f.tenant.ID)})
		if err != nil || done.State != Done || f.holds(f.tenant) != 0 || owed != -51 {
			t.Errorf("%s; the wallet has %s, and %d are owed: %v", done.State, f.holds(f.tenant), -owed, err)
		}
		f.sound()
	})
}

// If a route was changed after a request, the request does not replace it.
func TestRoute_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		if err := f.routes.Seed(t.Context()); err != nil {
			t.Fatal(err)
		}
		own := route.Route{Tenant: f.tenant.ID, Mode: "live", Operation: route.DisburseWallet, Channel: "MTN", Providers: []string{"hubtel"}}
		none := own
		none.Providers = nil
		first, err := f.SetRoute(t.Context(), f.requester, newID(), own, "their fees")
		second, again := f.SetRoute(t.Context(), f.requester, newID(), none, "their fees")
		if done := f.checked(first, err); done.State != Done {
			t.Errorf("%s: %s", done.State, done.Note)
		}
		if done := f.checked(second, again); done.State != Failed {
			t.Errorf("what saw another route: %s", done.State)
		}
		if to, there, err := f.routes.LeadsTo(t.Context(), own); to != "hubtel" || !there || err != nil {
			t.Errorf("it leads to %q, %t, %v", to, there, err)
		}
		if done := f.checked(f.DropRoute(t.Context(), f.requester, newID(), own, "everybody's holds")); done.State != Done {
			t.Errorf("%s: %s", done.State, done.Note)
		}
		if _, err := f.DropRoute(t.Context(), f.requester, newID(), own, "again"); problem.From(err) == nil || problem.From(err).Code != "route_not_found" {
			t.Error(err)
		}
		bad := own
		bad.Providers = []string{"vodafone"}
		if _, err := f.SetRoute(t.Context(), f.requester, newID(), bad, "x"); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
	})
}

// One person can run a dead letter again, at once, and once.
func TestDeadLetter_rerunOnce(t *testing.T) {
	each(t, func(f *fixture) {
		job := f.deadLetter()
		request, err := f.Rerun(t.Context(), f.requester, newID(), job, "the receiver is back")
		if err != nil || request.State != Done {
			t.Fatalf("%s, %v", request.State, err)
		}
		if _, err := f.Rerun(t.Context(), f.requester, newID(), job, "again"); problem.From(err) == nil || problem.From(err).Code != "job_alive" {
			t.Error(err)
		}
	})
}

// If an entry of the catalogue was changed after a request, the request does not replace it, because its requester saw another
// entry.
func TestCatalogue_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		change := func(code string) route.CatalogueChange {
			return route.CatalogueChange{Kind: route.BankCodeEntry, Key: f.bank(), Provider: "hubtel", Value: code}
		}
		first, err := changeCatalogue(t.Context(), f.Changes, f.requester, newID(), change("300399"), "their list")
		second, again := changeCatalogue(t.Context(), f.Changes, f.requester, newID(), change("300398"), "their list")
		if done := f.checked(first, err); done.State != Done {
			t.Errorf("%s: %s", done.State, done.Note)
		}
		if done := f.checked(second, again); done.State != Failed {
			t.Errorf("what saw another code: %s", done.State)
		}
		if is, err := f.routes.EntryNow(t.Context(), change("")); is != "300399" || err != nil {
			t.Errorf("the code is %q, %v", is, err)
		}
		if _, err := changeCatalogue(t.Context(), f.Changes, f.requester, newID(), route.CatalogueChange{Kind: route.BankEntry, Key: "nowhere", Edit: route.Edit{Name: "X"}}, "x"); !problem.Is(err, problem.NotFound) {
			t.Error(err)
		}
		if _, err := changeCatalogue(t.Context(), f.Changes, f.requester, newID(), route.CatalogueChange{Kind: "colour", Key: "blue"}, "x"); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
	})
}
