package treasury

import (
	"context"
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// bank adds a bank account for test money.
func (f *fixture) bank(name string) Bank {
	f.t.Helper()
	b, err := CheckBank(Bank{Name: name, Mode: tenant.Test, Bank: "GCB Bank", Number: "10110" + name})
	if err == nil {
		err = f.db.Write(f.t.Context(), func(tx *db.Tx) error { return f.AddBank(tx, b) })
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// deposit funds the tenant's wallet from a slip of a bank account.
func (f *fixture) deposit(ctx context.Context, bank, slip string, amount money.Pesewas) error {
	return f.FundFrom(ctx, f.tenant.ID, amount, bank, "paid in", "ama", func(tx *db.Tx) error {
		return f.UseSlip(tx, Slip{Bank: bank, Number: slip, Amount: amount, Request: "act"})
	})
}

// transitSound fails the test unless the money in transit equals the sum of the transfers in transit.
func (f *fixture) transitSound() {
	f.t.Helper()
	if found, err := Check(f.t.Context(), f.db); err != nil || !found.OK() {
		f.t.Errorf("transit: %v, %v", found.Problems, err)
	}
	f.sound()
}

// A slip of a bank account pays for one deposit, in any spelling of its number. Each bank account has its own numbers.
func TestSlip_paysOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.bank("gcb")
		f.bank("ecobank")
		if err := f.deposit(t.Context(), "gcb", "SLP-00 12", 500); err != nil {
			t.Fatal(err)
		}
		for _, again := range []string{"SLP-00 12", "slp0012", "SLP 0012", " SLP.00-12"} {
			if err := f.deposit(t.Context(), "gcb", again, 500); !problem.Is(err, problem.Duplicate) || problem.From(err).Code != "slip_taken" {
				t.Errorf("the slip %q paid twice: %v", again, err)
			}
		}
		if err := f.deposit(t.Context(), "ecobank", "SLP-00 12", 70); err != nil {
			t.Error(err)
		}
		for _, empty := range []string{"", " - ", "000"} {
			if err := f.deposit(t.Context(), "gcb", empty, 1); !problem.Is(err, problem.Invalid) {
				t.Errorf("the slip %q identifies nothing: %v", empty, err)
			}
		}
		if wallet, gcb, eco := f.holds(f.tenant.Wallet().ID), f.holds("bank/gcb"), f.holds("bank/ecobank"); wallet != funds+570 || gcb != -500 || eco != -70 || f.holds(ledger.Funding) != -funds {
			t.Errorf("the wallet has %s, the banks %s and %s", wallet, gcb, eco)
		}
		f.sound()
	})
}

// If several deposits use one slip at the same moment, one of them is booked.
func TestSlip_concurrentDeposits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.bank("gcb")
		var all sync.WaitGroup
		var mu sync.Mutex
		done := 0
		for range 6 {
			all.Go(func() {
				err := f.deposit(context.WithoutCancel(t.Context()), "gcb", "77123", 500)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					done++
				} else if !problem.Is(err, problem.Duplicate) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if has := f.holds("bank/gcb"); done != 1 || has != -500 {
			t.Errorf("%d deposits were booked, the bank has %s", done, -has)
		}
		f.sound()
	})
}

// The schema refuses a second row for a slip.
func TestSlip_uniqueBySchema(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		insert := func(request string) error {
			_, err := d.Exec(t.Context(), `INSERT INTO bank_slips (bank, slip, given, amount, act, at) VALUES ('gcb', '1', '1', 1, $1, 0)`, request)
			return err
		}
		if err := insert("one"); err != nil {
			t.Fatal(err)
		}
		if err := insert("two"); err == nil {
			t.Error("the slip is there twice")
		}
	})
}

// A top-up leaves the bank account, is in transit, and arrives at the float once. A settlement goes the other way, less a fee.
func TestTransit_endsOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.bank("gcb")
		if err := f.Open(t.Context(), ledger.TestGHS, []Opening{{"gcb", 1000}}, "opening", "books begin", "ama"); err != nil {
			t.Fatal(err)
		}
		at := func(step string, bank, transit, float money.Pesewas) {
			t.Helper()
			if b, m, p := -f.holds("bank/gcb"), -f.holds(ledger.Transit), -f.holds("float/mtn/disbursement"); b != bank || m != transit || p != float {
				t.Errorf("%s: bank %s, transit %s, float %s", step, b, m, p)
			}
			f.transitSound()
		}
		at("opening", 1000, 0, 0)
		up := Transit{ID: "up", Asset: ledger.TestGHS, Source: ledger.Bank("gcb"), Target: "float/mtn/disbursement", Amount: 600}
		if err := f.Send(t.Context(), up, "top-up", "ama"); err != nil {
			t.Fatal(err)
		}
		at("sent", 400, 600, 0)
		up.State = Sent
		if err := f.End(t.Context(), up, Arrived, 0, "seen", "ama"); err != nil {
			t.Fatal(err)
		}
		at("arrived", 400, 0, 600)
		for _, to := range []TransitState{Arrived, Returned} {
			if err := f.End(t.Context(), up, to, 0, "again", "ama"); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s after the end: %v", to, err)
			}
		}
		back := Transit{ID: "back", Asset: ledger.TestGHS, Source: "float/mtn/disbursement", Target: ledger.Bank("gcb"), Amount: 100, State: Sent}
		if err := f.Send(t.Context(), back, "settle", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := f.End(t.Context(), back, Arrived, 100, "all fee", "ama"); !problem.Is(err, problem.Invalid) {
			t.Error("a fee of all that was sent", err)
		}
		if err := f.End(t.Context(), back, Arrived, 3, "seen", "ama"); err != nil {
			t.Fatal(err)
		}
		at("settled", 497, 0, 500)
		if fee := f.holds(ledger.ProviderFees("mtn")); fee != -3 {
			t.Errorf("the fee on the way is %s", fee)
		}
		lost := Transit{ID: "lost", Asset: ledger.TestGHS, Source: ledger.Bank("gcb"), Target: "float/mtn/disbursement", Amount: 50, State: Sent}
		if err := f.Send(t.Context(), lost, "top-up", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := f.End(t.Context(), lost, Returned, 1, "bounced", "ama"); err != nil {
			t.Fatal(err)
		}
		at("returned", 496, 0, 500)
	})
}

// The check reports books whose money in transit differs from the transfers in transit.
func TestTransit_checkFindsStrayMoney(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		if err := f.Move(t.Context(), Movement{Asset: ledger.TestGHS, From: ledger.Transit, To: ledger.Funding, Amount: 5, Kind: "stray"}, "a fault", "ama"); err != nil {
			t.Fatal(err)
		}
		if found, err := Check(t.Context(), d); err != nil || len(found.Problems) != 1 {
			t.Errorf("%v, %v", found.Problems, err)
		}
	})
}

// Opening entries are booked once for each bank account, all or none, and change no wallet.
func TestOpen_once(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.bank("gcb")
		f.bank("ecobank")
		if err := f.Open(t.Context(), ledger.TestGHS, []Opening{{"ecobank", -40}, {"gcb", 1000}}, "one", "books begin", "ama"); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]Opening{{{"gcb", 5}}, {{"absa", 5}}, nil} {
			if err := f.Open(t.Context(), ledger.TestGHS, list, "two", "again", "ama"); err == nil {
				t.Errorf("%v was booked", list)
			}
		}
		if gcb, eco, funding, wallet := f.holds("bank/gcb"), f.holds("bank/ecobank"), f.holds(ledger.Funding), f.holds(f.tenant.Wallet().ID); gcb != -1000 || eco != 40 || funding != 960-funds || wallet != funds {
			t.Errorf("gcb %s, ecobank %s, funding %s, wallet %s", gcb, eco, funding, wallet)
		}
		f.sound()
	})
}

// Earned fees are withdrawn from a bank account once, and never more than were earned.
func TestSweep_neverMoreThanEarned(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		b := f.bank("gcb")
		if err := f.Move(t.Context(), Movement{Asset: ledger.TestGHS, From: ledger.Funding, To: ledger.Fees, Amount: 100, Kind: "earned"}, "fees", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := f.Sweep(t.Context(), b, 101, "swept", "ama"); !problem.Is(err, problem.Invalid) {
			t.Error("more than was earned", err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = f.Sweep(context.WithoutCancel(t.Context()), b, 60, "swept", "ama") })
		}
		all.Wait()
		if fees, has := f.holds(ledger.Fees), f.holds(b.Key().ID); fees != 40 || has != 60 {
			t.Errorf("fees %s, bank %s", fees, has)
		}
		f.sound()
	})
}

// A bank account can be closed only without money. Afterwards it accepts no bookings.
func TestCloseBank_withMoney(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.bank("gcb")
		shut := func() error {
			return d.Write(t.Context(), func(tx *db.Tx) error { _, err := f.CloseBank(tx, "gcb"); return err })
		}
		if err := f.deposit(t.Context(), "gcb", "1", 5); err != nil {
			t.Fatal(err)
		}
		if err := shut(); !problem.Is(err, problem.Invalid) {
			t.Error("closed with money", err)
		}
		send := Transit{ID: "up", Asset: ledger.TestGHS, Source: ledger.Bank("gcb"), Target: "float/mtn", Amount: 5, State: Sent}
		if err := f.Send(t.Context(), send, "top-up", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := shut(); !problem.Is(err, problem.Invalid) {
			t.Error("closed with money on its way", err)
		}
		if err := f.End(t.Context(), send, Arrived, 0, "seen", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := shut(); err != nil {
			t.Fatal(err)
		}
		if err := f.deposit(t.Context(), "gcb", "2", 5); !problem.Is(err, problem.Invalid) {
			t.Error("a closed account took a deposit", err)
		}
		if needs, err := f.NeedsBank(t.Context(), tenant.Test); err != nil || needs {
			t.Error("a closed account is asked for", err)
		}
	})
}

// Pages mask the number of a bank account. Each name and number can be used once.
func TestBank_details(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		b := f.bank("gcb")
		if b.Number != "10110GCB" || b.Ending() != "••••0GCB" {
			t.Errorf("%q, %q", b.Number, b.Ending())
		}
		for _, other := range []Bank{{Name: "gcb", Number: "9999999", Bank: "GCB Bank"}, {Name: "gcb-2", Number: "10110-gcb", Bank: "GCB  Bank"}, {Name: "G", Number: "99999999", Bank: "x"}, {Name: "gcb-3", Number: "1", Bank: "x"}} {
			other.Mode = tenant.Test
			checked, err := CheckBank(other)
			if err == nil {
				err = f.CheckNewBank(t.Context(), checked)
			}
			if !problem.Is(err, problem.Invalid) {
				t.Errorf("%+v: %v", other, err)
			}
		}
	})
}
