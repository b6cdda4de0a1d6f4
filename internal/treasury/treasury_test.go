package treasury

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// fixture is a treasury and a tenant whose wallet has funds.
type fixture struct {
	*Treasury
	t      *testing.T
	tenant tenant.Tenant
}

const funds = 1_000 * money.Cedi

func open(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC))
	l := ledger.New(d, c, "test")
	tenants := tenant.New(d, l, c)
	known := func(bad *problem.Fields, name, account string) {
		if name != "mtn" {
			bad.Add("provider", "must be mtn")
		}
		if account != "" && account != "disbursement" {
			bad.Add("account", "must be disbursement")
		}
	}
	f := &fixture{t: t, Treasury: New(d, l, tenants, c, slog.New(slog.DiscardHandler), known)}
	if err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
		f.tenant, err = tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Test})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.Fund(t.Context(), f.tenant.ID, funds, "paid in", "ama"); err != nil {
		t.Fatal(err)
	}
	return f
}

// holds returns the balance of an account in pesewas.
func (f *fixture) holds(id ledger.AccountID) money.Pesewas {
	f.t.Helper()
	n, err := f.ledger.Balance(f.t.Context(), ledger.Key{Asset: f.tenant.Money(), ID: id})
	if err != nil {
		f.t.Fatal(err)
	}
	return money.Pesewas(n)
}

// sound fails the test if the check of the ledger fails.
func (f *fixture) sound() {
	f.t.Helper()
	report, err := f.ledger.Check(f.t.Context())
	if err != nil || !report.OK() {
		f.t.Errorf("the ledger: %+v, %v", report, err)
	}
}

func TestWallet_neverBelowZero(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		id := f.tenant.ID
		for _, step := range []struct {
			name string
			do   func() error
			want problem.Kind
			left money.Pesewas
		}{
			{"fund", func() error { return f.Fund(t.Context(), id, 5, "paid in", "ama") }, "", funds + 5},
			{"fund nothing", func() error { return f.Fund(t.Context(), id, 0, "paid in", "ama") }, problem.Invalid, funds + 5},
			{"fund unsigned", func() error { return f.Fund(t.Context(), id, 5, "paid in", "") }, problem.Invalid, funds + 5},
			{"fund without a reason", func() error { return f.Fund(t.Context(), id, 5, "", "ama") }, problem.Invalid, funds + 5},
			{"take", func() error { return f.Adjust(t.Context(), id, -10, "a mistake", "ama") }, "", funds - 5},
			{"take too much", func() error { return f.Adjust(t.Context(), id, -funds, "a mistake", "ama") }, problem.InsufficientFunds, funds - 5},
			{"give", func() error { return f.Adjust(t.Context(), id, 5, "a mistake", "ama") }, "", funds},
			{"give nothing", func() error { return f.Adjust(t.Context(), id, 0, "a mistake", "ama") }, problem.Invalid, funds},
			{"an unknown tenant", func() error { return f.Fund(t.Context(), "unknown", 5, "paid in", "ama") }, problem.NotFound, funds},
		} {
			err := step.do()
			left := f.holds(f.tenant.Wallet().ID)
			if step.want == "" && err != nil || step.want != "" && !problem.Is(err, step.want) || left != step.left {
				t.Errorf("%s: %v, the wallet has %s, want %s", step.name, err, left, step.left)
			}
		}
		f.sound()
	})
}

// An amount above the limit of an account is refused with the limit, and nothing moves.
func TestOrder_aboveTheLimitIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		id, of := f.tenant.ID, f.tenant
		refused := func(what, want string, err error) {
			t.Helper()
			var p *problem.Error
			if !errors.As(err, &p) || p.Kind != problem.Invalid || len(p.Fields["amount"]) != 1 || p.Fields["amount"][0] != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		const limit = ", because an account holds at most test GHS 10,000,000,000,000.00"
		const rest = "must be at most test GHS 9,999,999,999,000.00" + limit
		for _, amount := range []money.Pesewas{money.Most - funds + 1, money.Most, math.MaxInt64} {
			refused("fund", rest, f.Fund(t.Context(), id, amount, "paid in", "ama"))
			refused("adjust", rest, f.Adjust(t.Context(), id, amount, "a mistake", "ama"))
			refused("an order that is asked for", rest, f.CheckAdjust(t.Context(), of, amount))
		}
		if err := f.Fund(t.Context(), id, money.Most-funds, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		refused("a full wallet", "must be at most test GHS 0.00"+limit, f.Fund(t.Context(), id, 1, "paid in", "ama"))
		if err := f.Adjust(t.Context(), id, -1, "a mistake", "ama"); err != nil {
			t.Error(err)
		}
		// The funding of all wallets is also one account.
		var other tenant.Tenant
		if err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
			other, err = f.tenants.Create(tx, tenant.Tenant{Name: "Kejetia", Mode: tenant.Test})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		refused("a second wallet", "must be at most test GHS 0.01"+limit, f.Fund(t.Context(), other.ID, 2, "paid in", "ama"))

		for _, step := range []struct {
			amount money.Pesewas
			want   string
		}{{money.Most, ""}, {1, "must be at most test GHS 0.00" + limit}, {-money.Most, ""}, {math.MaxInt64, "must be at most test GHS 10,000,000,000,000.00" + limit}, {-math.MaxInt64, "must be at most test GHS 0.01" + limit}} {
			err := f.AddFloat(t.Context(), Float{Provider: "mtn", Mode: tenant.Test}, step.amount, "paid in", "ama")
			if step.want == "" && err != nil {
				t.Errorf("float by %s: %v", step.amount, err)
			}
			if step.want != "" {
				refused("float by "+step.amount.String(), step.want, err)
				refused("float that is asked for", step.want, f.CheckAddFloat(t.Context(), Float{Provider: "mtn", Mode: tenant.Test}, step.amount))
			}
		}
		if got := f.holds(of.Wallet().ID); got != money.Most-1 {
			t.Errorf("the wallet has %s", got)
		}
		f.sound()
	})
}

func TestFloat_addedIsSubtracted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for _, step := range []struct {
			amount, at money.Pesewas
		}{{500, -500}, {-200, -300}} {
			if err := f.AddFloat(t.Context(), Float{Provider: "mtn", Mode: tenant.Test}, step.amount, "paid in", "ama"); err != nil {
				t.Fatal(err)
			}
			if got := f.holds(ledger.Float("mtn")); got != step.at {
				t.Errorf("after %s the float is %s, want %s", step.amount, got, step.at)
			}
		}
		at := Float{Provider: "mtn", Account: "disbursement", Mode: tenant.Test}
		if err := f.AddFloat(t.Context(), at, 70, "paid in", "ama"); err != nil || f.holds(ledger.Float("mtn")) != -300 || f.holds("float/mtn/disbursement") != -70 {
			t.Errorf("%s has %s, what is unassigned %s (%v)", at, f.holds("float/mtn/disbursement"), f.holds(ledger.Float("mtn")), err)
		}
		err := f.AddFloat(t.Context(), Float{Provider: "unknown", Account: "savings", Mode: tenant.Test}, 0, "paid in", "ama")
		var refused *problem.Error
		if !errors.As(err, &refused) || !slices.Equal(refused.FieldNames(), []string{"account", "amount", "provider"}) {
			t.Errorf("refused with %v", err)
		}
		f.sound()
	})
}

// If the answer to COMMIT is lost, the movement is made once, together with the caller's own writes.
func TestMove_lostCommitAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		f := open(t, d)
		for _, fault := range []db.Fault{db.FaultAfter, db.FaultBefore} {
			before, beside := f.holds(f.tenant.Wallet().ID), 0
			faults.At(db.BoundaryCommit, 1, fault)
			err := f.Fund(context.WithoutCancel(t.Context()), f.tenant.ID, 7, "paid in", "ama", func(*db.Tx) error { beside++; return nil })
			if err != nil || f.holds(f.tenant.Wallet().ID) != before+7 || beside == 0 {
				t.Errorf("fault %v: %v, the wallet went from %s to %s", fault, err, before, f.holds(f.tenant.Wallet().ID))
			}
		}
		f.sound()
	})
}

func TestRecover_upToTheBalance(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		debt := ledger.Receivable(f.tenant.ID)
		owe := Movement{Asset: f.tenant.Money(), From: debt, To: ledger.Funding, Amount: funds + 300, Kind: "reversed"}
		if err := f.Move(t.Context(), owe, "a reversal", "ama"); err != nil {
			t.Fatal(err)
		}
		var told money.Pesewas
		taken, err := f.Recover(t.Context(), f.tenant.ID, "agreed", "ama", func(_ *db.Tx, taken money.Pesewas) error { told = taken; return nil })
		if err != nil || taken != funds || told != funds || f.holds(debt) != -300 {
			t.Errorf("%s were taken, %s told, %s are owed: %v", taken, told, -f.holds(debt), err)
		}
		if _, err := f.Recover(t.Context(), f.tenant.ID, "agreed", "ama", nil); !problem.Is(err, problem.InsufficientFunds) {
			t.Errorf("from an empty wallet: %v", err)
		}
		if _, err := f.Recover(t.Context(), f.tenant.ID, "", "ama", nil); !problem.Is(err, problem.Invalid) {
			t.Errorf("without a reason: %v", err)
		}
		f.sound()
	})
}

// Each leg of a subject is booked once.
func TestMove_subjectAndLegOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		m := Movement{Asset: f.tenant.Money(), From: ledger.Suspense, To: ledger.Fees, Amount: 5, Kind: "decide", Subject: "a payment", Leg: "decided"}
		if err := f.Move(t.Context(), m, "agreed", "ama"); err != nil {
			t.Fatal(err)
		}
		m.Amount = -5
		if err := f.Move(t.Context(), m, "agreed", "ama"); err == nil {
			t.Error("the same leg was booked twice")
		}
		if got := f.holds(ledger.Fees); got != 5 {
			t.Errorf("fees have %s", got)
		}
		f.sound()
	})
}
