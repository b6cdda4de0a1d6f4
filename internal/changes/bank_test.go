package changes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// account adds an open bank account for live money.
func (f *fixture) account(name string) treasury.Bank {
	f.t.Helper()
	b, err := treasury.CheckBank(treasury.Bank{Name: name, Mode: tenant.Live, Bank: "GCB Bank", Number: "10110" + name})
	if err != nil {
		f.t.Fatal(err)
	}
	f.tx(func(tx *db.Tx) error { return f.Treasury.AddBank(tx, b) })
	return b
}

// earn books fees of the installation.
func (f *fixture) earn(amount money.Pesewas) {
	f.t.Helper()
	m := treasury.Movement{Asset: ledger.GHS, From: ledger.Funding, To: ledger.Fees, Amount: amount, Kind: "earned"}
	if err := f.Treasury.Move(f.t.Context(), m, "fees", "ama"); err != nil {
		f.t.Fatal(err)
	}
}

// request requests a change of the installation by its fields.
func (x *examples) request(kind, id string, pairs ...string) (Request, error) {
	v := Values{}
	for i := 0; i < len(pairs); i += 2 {
		v[pairs[i]] = pairs[i+1]
	}
	return x.Do(x.t.Context(), x.boss, kind, id, v, "as agreed")
}

func transitKey(*examples) ledger.Key { return ledger.Key{Asset: ledger.GHS, ID: ledger.Transit} }
func fundingKey(*examples) ledger.Key { return ledger.Key{Asset: ledger.GHS, ID: ledger.Funding} }
func feesKey(*examples) ledger.Key    { return ledger.Key{Asset: ledger.GHS, ID: ledger.Fees} }

// bankExamples returns examples of the kinds about bank accounts and money in transit.
func bankExamples() map[string]example {
	fresh := func(x *examples) string { return x.account(fmt.Sprintf("bank-%d", x.n)).Name }
	return map[string]example{
		KindAddBank: {ask: func(x *examples, id string) (Request, error) {
			return x.request(KindAddBank, id, "name", fmt.Sprintf("gcb-%d", x.n), "mode", "live", "bank", "GCB Bank", "number", fmt.Sprintf("1011%06d", x.n))
		}},
		KindCloseBank: {ask: func(x *examples, id string) (Request, error) { return x.request(KindCloseBank, id, "name", fresh(x)) }},
		KindOpenBanks: {has: fundingKey, by: 100, ask: func(x *examples, id string) (Request, error) {
			return x.request(KindOpenBanks, id, "mode", "live", "balances", fresh(x)+"=1")
		}},
		KindSweep: {has: feesKey, by: -5, ask: func(x *examples, id string) (Request, error) {
			x.earn(5)
			return x.request(KindSweep, id, "bank", fresh(x), "amount", "0.05")
		}},
		KindTopUp: {has: transitKey, by: -6, ask: func(x *examples, id string) (Request, error) {
			return x.request(KindTopUp, id, "bank", fresh(x), "provider", "hubtel", "amount", "0.06")
		}},
		KindSettle: {has: transitKey, by: -7, ask: func(x *examples, id string) (Request, error) {
			return x.request(KindSettle, id, "bank", fresh(x), "provider", "hubtel", "amount", "0.07")
		}},
		KindEndTransit: {has: transitKey, by: 8, ask: func(x *examples, id string) (Request, error) {
			sent := newID()
			x.done(x.Treasury.Send(x.t.Context(), treasury.Transit{ID: sent, Asset: ledger.GHS, Source: ledger.Bank(fresh(x)), Target: ledger.Float("hubtel"), Amount: 8}, "top-up", "ama"))
			return x.request(KindEndTransit, id, "transfer", sent, "outcome", "arrived")
		}},
	}
}

// When the installation has a bank account of a mode, a deposit must name the bank account and a slip. A slip pays for one deposit.
func TestFund_namesItsBank(t *testing.T) {
	each(t, func(f *fixture) {
		deposit := func(bank, slip string) (Request, error) {
			return f.FundFrom(f.t.Context(), f.requester, newID(), Deposit{Tenant: f.tenant.ID, Amount: 500, Bank: bank, Slip: slip}, "paid in, "+bank+slip)
		}
		if request, err := deposit("", ""); err != nil || request.State != Waiting {
			f.t.Fatal(request, err)
		}
		if _, err := deposit("gcb", "1"); !problem.Is(err, problem.Invalid) {
			f.t.Error("an unknown bank account", err)
		}
		f.account("gcb")
		for _, bad := range [][2]string{{"", ""}, {"", "1"}, {"gcb", ""}, {"gcb", "--"}} {
			if _, err := deposit(bad[0], bad[1]); !problem.Is(err, problem.Invalid) {
				f.t.Errorf("%v: %v", bad, err)
			}
		}
		one, err := deposit("gcb", "SLP 7")
		if err != nil || !strings.Contains(one.Sentence, "received at gcb (GCB Bank, ••••0GCB), slip \"SLP 7\"") {
			f.t.Fatal(one.Sentence, err)
		}
		two, err := deposit("gcb", "slp-7")
		if err != nil {
			f.t.Fatal(err)
		}
		if done, err := f.Approve(f.t.Context(), f.first, one.ID, one.Digest); err != nil || done.State != Done {
			f.t.Fatal(done, err)
		}
		// The page of the second deposit shows the slip as used, and its approval moves nothing.
		seen, err := f.Review(f.t.Context(), f.second.Place, two.ID)
		if err != nil || len(seen.Now.Warnings()) == 0 || !strings.Contains(seen.Now.Warnings()[0].Value, "SLP 7") {
			f.t.Errorf("%+v, %v", seen.Now, err)
		}
		if done, err := f.Approve(f.t.Context(), f.second, two.ID, seen.Shown); err != nil || done.State != Failed || problem.From(done.Refused).Code != "slip_taken" {
			f.t.Errorf("%+v, %v", done, err)
		}
		if n, err := f.ledger.Balance(f.t.Context(), ledger.Key{Asset: ledger.GHS, ID: ledger.Bank("gcb")}); err != nil || n != -500 {
			f.t.Errorf("the bank has %d, %v", -n, err)
		}
	})
}

// A waiting deposit without a bank account is refused after a bank account was added.
func TestFund_bankAddedMeanwhile(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		f.account("gcb")
		done, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		if err != nil || done.State != Failed || problem.From(done.Refused).Code != "changed_since" {
			f.t.Fatalf("%+v, %v", done, err)
		}
		f.has(0)
	})
}

// A treasurer may request transfers of our own money. A person who may only fund wallets may not.
func TestTransit_needsTreasury(t *testing.T) {
	each(t, func(f *fixture) {
		f.account("gcb")
		x := &examples{fixture: f}
		x.boss = f.join("efua-t@example.com", roles.Treasury)
		if request, err := x.request(KindTopUp, newID(), "bank", "gcb", "provider", "hubtel", "amount", "5"); err != nil || request.Needs != 1 {
			f.t.Error(request, err)
		}
		x.boss = f.join("support@example.com", roles.Support)
		if _, err := x.request(KindTopUp, newID(), "bank", "gcb", "provider", "hubtel", "amount", "6"); !problem.Is(err, problem.Forbidden) {
			f.t.Error(err)
		}
		for _, bad := range [][]string{{"bank", "absa", "provider", "hubtel", "amount", "5"}, {"bank", "gcb", "provider", "nobody", "amount", "5"}, {"bank", "gcb", "provider", "hubtel", "amount", "0"}} {
			x.boss = f.requester
			if _, err := x.request(KindSettle, newID(), bad...); !problem.Is(err, problem.Invalid) {
				f.t.Errorf("%v: %v", bad, err)
			}
		}
	})
}
