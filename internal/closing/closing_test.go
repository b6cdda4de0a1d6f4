package closing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/treasury"
)

const asset = ledger.TestGHS

// began is a time on the day before the tests' first day.
var began = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// fixture is the books of an installation with a customer and a bank account.
type fixture struct {
	*Books
	t        *testing.T
	clock    *clock.Clock
	treasury *treasury.Treasury
	tenant   tenant.Tenant
}

func open(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	c := clock.NewManual(began)
	l := ledger.New(d, c, "test")
	tenants := tenant.New(d, l, c)
	f := &fixture{t: t, clock: c, Books: New(d, l, c), treasury: treasury.New(d, l, tenants, c, slog.New(slog.DiscardHandler), func(*problem.Fields, string, string) {})}
	b, err := treasury.CheckBank(treasury.Bank{Name: "gcb", Mode: tenant.Test, Bank: "GCB Bank", Number: "1011012345"})
	if err != nil {
		t.Fatal(err)
	}
	f.write(func(tx *db.Tx) error {
		if f.tenant, err = tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Test}); err != nil {
			return err
		}
		return f.treasury.AddBank(tx, b)
	})
	return f
}

// until advances the clock to a time.
func (f *fixture) until(at time.Time) { f.clock.Advance(at.Sub(f.clock.Now())) }

func (f *fixture) write(fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// deposit books a deposit at the bank, now.
func (f *fixture) deposit(amount money.Pesewas) {
	f.t.Helper()
	if err := f.treasury.FundFrom(f.t.Context(), f.tenant.ID, amount, "gcb", "paid in", "ama"); err != nil {
		f.t.Fatal(err)
	}
}

// dated books a transfer with a given time, like a transaction that took long.
func (f *fixture) dated(at time.Time, from, to ledger.AccountID, amount int64) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		p, err := f.ledger.Open(tx)
		if err != nil {
			return err
		}
		if err := p.Add(ledger.Transfer{Asset: asset, From: from, To: to, Amount: amount, Subject: uuid.NewString(), Leg: "test", Kind: "late one", At: at}); err != nil {
			return err
		}
		p.Post()
		return nil
	})
}

func (f *fixture) figures(day Day) Figures {
	f.t.Helper()
	got, err := f.Figures(f.t.Context(), asset, day)
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

// closeDay closes a day with its current figures.
func (f *fixture) closeDay(ctx context.Context, day Day) error {
	figures, err := f.Figures(ctx, asset, day)
	if err != nil {
		return err
	}
	return f.db.Write(ctx, func(tx *db.Tx) error { return f.Close(tx, figures, "act") })
}

func (f *fixture) closes(days ...Day) {
	f.t.Helper()
	for _, day := range days {
		if err := f.closeDay(f.t.Context(), day); err != nil {
			f.t.Fatalf("%s: %v", day, err)
		}
	}
}

// account returns the figures of an account on a day.
func (f *fixture) account(day Day, id ledger.AccountID) Account {
	f.t.Helper()
	for _, a := range f.figures(day).Accounts {
		if a.ID == id {
			return a
		}
	}
	f.t.Fatalf("%s has no account %s", day, id)
	return Account{}
}

// A transfer at the last moment of a day belongs to it, one a microsecond later to the next.
func TestDay_endsAtMidnightInAccra(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		midnight := day.End()
		if midnight.Format(time.RFC3339Nano) != "2026-11-23T00:00:00Z" || DayOf(midnight) != day+1 || DayOf(midnight.Add(-time.Microsecond)) != day {
			t.Fatal(midnight)
		}
		f.until(midnight.Add(-time.Microsecond))
		f.deposit(100)
		f.until(midnight)
		f.deposit(20)
		f.until(midnight.Add(time.Microsecond))
		f.deposit(3)
		one, two := f.account(day, "bank/gcb"), f.account(day+1, "bank/gcb")
		if one.Opening != 0 || one.In != 100 || one.Closing != 100 || two.Opening != 100 || two.In != 23 || two.Closing != 123 {
			t.Errorf("%+v, %+v", one, two)
		}
		if len(one.Moves) != 1 || one.Moves[0] != (Move{day, "fund", 100, 0, 1}) {
			t.Errorf("%+v", one.Moves)
		}
	})
}

// A day closes once, in order, and not before its lag has passed.
func TestClose_onceInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		for _, at := range []time.Time{day.End().Add(-time.Second), day.End(), day.End().Add(Lag - time.Microsecond)} {
			f.until(at)
			if err := f.closeDay(t.Context(), day); !problem.Is(err, problem.Invalid) {
				t.Errorf("at %s: %v", at, err)
			}
		}
		f.until(day.End().Add(Lag))
		f.closes(day)
		if err := f.closeDay(t.Context(), day); !problem.Is(err, problem.Duplicate) {
			t.Error("closed twice", err)
		}
		f.until((day + 5).Begin())
		for _, other := range []Day{day - 1, day + 2, day + 3} {
			if err := f.closeDay(t.Context(), other); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s out of order: %v", other, err)
			}
		}
		f.closes(day+1, day+2)
	})
}

// The schema refuses a day that is closed twice, a gap, a second first day, and the removal of a closed day that has a later one.
func TestClose_guardedBySchema(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		do := func(sql string, args ...any) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql, args...); return err })
		}
		const insert = `INSERT INTO closed_days (asset, day, previous, revision, act, closed_at) VALUES ('GHS', $1, $2, 1, 'act', 0)`
		n := func(n int64) *int64 { return &n }
		var none *int64
		for _, step := range []struct {
			name string
			err  error
			ok   bool
		}{
			{"the first day", do(insert, 10, none), true},
			{"the same day", do(insert, 10, none), false},
			{"a second first day", do(insert, 20, none), false},
			{"a gap", do(insert, 12, n(11)), false},
			{"a day behind another one than the day before", do(insert, 12, n(10)), false},
			{"the next day", do(insert, 11, n(10)), true},
			{"a day below a later one", do(`DELETE FROM closed_days WHERE day = 10`), false},
			{"the last day", do(`DELETE FROM closed_days WHERE day = 11`), true},
		} {
			if (step.err == nil) != step.ok {
				t.Errorf("%s: %v", step.name, step.err)
			}
		}
	})
}

// If several people close a day at the same moment, one of them succeeds.
func TestClose_concurrent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until((day + 3).Begin())
		for n := range Day(2) {
			figures := f.figures(day + n)
			var all sync.WaitGroup
			var mu sync.Mutex
			done := 0
			for range 5 {
				all.Go(func() {
					err := d.Write(context.WithoutCancel(t.Context()), func(tx *db.Tx) error { return f.Close(tx, figures, "act") })
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
			if done != 1 {
				t.Errorf("%s was closed by %d", day+n, done)
			}
		}
	})
}

// A balance that somebody gives while the day is closed is signed with the day, or refused.
func TestClose_whileABalanceIsGiven(t *testing.T) {
	const days = 25
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until((day + days + 1).Begin())
		f.closes(day)
		for n := day + 1; n < day+days; n++ {
			set := func(amount money.Pesewas) error {
				return d.Write(context.WithoutCancel(t.Context()), func(tx *db.Tx) error { return f.SetTheirs(tx, asset, n, []Balance{{"bank/gcb", amount}}, "ama") })
			}
			if err := set(92); err != nil {
				t.Fatal(err)
			}
			figures := f.figures(n)
			var all sync.WaitGroup
			var closed, given error
			all.Go(func() { given = set(93) })
			all.Go(func() {
				closed = d.Write(context.WithoutCancel(t.Context()), func(tx *db.Tx) error { return f.Close(tx, figures, "act") })
			})
			all.Wait()
			if (given == nil) == (closed == nil) {
				t.Fatalf("%s: given with %v, closed with %v", n, given, closed)
			}
			if closed != nil {
				f.closes(n)
			}
		}
	})
}

// Money that moves while a day is closed belongs to later days: the figures that are signed stay.
func TestClose_whileMoneyMoves(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until(day.End().Add(Lag))
		stop, moved := make(chan struct{}), make(chan int)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					moved <- n
					return
				default:
					if err := f.treasury.FundFrom(context.WithoutCancel(t.Context()), f.tenant.ID, 1, "gcb", "paid in", "ama"); err != nil {
						t.Error(err)
					}
					n++
				}
			}
		}()
		before := f.figures(day).Sign()
		f.closes(day)
		close(stop)
		n := <-moved
		if got := f.figures(day); got.Closed.Revision != 1 || got.Accounts[0].Closing != 100 || before.Accounts[0].Closing != 100 {
			t.Errorf("%+v", got)
		}
		if next := f.account(day+1, "bank/gcb"); next.Opening != 100 || next.In != money.Pesewas(n) || next.Late != 0 || next.Closing != money.Pesewas(100+n) {
			t.Errorf("after %d deposits: %+v", n, next)
		}
	})
}

// A transfer with a time in a closed day is listed once, in the next open day.
func TestClose_lateTransferIsListed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until((day + 4).Begin())
		f.closes(day, day+1)
		f.dated(day.Begin().Add(23*time.Hour), "bank/gcb", ledger.Funding, 7)
		f.dated((day + 1).Begin(), ledger.Funding, "bank/gcb", 2)
		if got := f.account(day, "bank/gcb"); got.Closing != 100 || got.In != 100 {
			t.Errorf("the closed day changed: %+v", got)
		}
		next := f.account(day+2, "bank/gcb")
		if next.Opening != 100 || next.Late != 5 || next.Closing != 105 || next.In != 0 {
			t.Errorf("%+v", next)
		}
		late := map[Day]Move{}
		for _, m := range next.Moves {
			late[m.Day] = m
		}
		if len(next.Moves) != 2 || late[day] != (Move{day, "late one", 7, 0, 1}) || late[day+1] != (Move{day + 1, "late one", 0, 2, 1}) {
			t.Errorf("%+v", next.Moves)
		}
		f.closes(day + 2)
		if after := f.account(day+3, "bank/gcb"); after.Opening != 105 || after.Late != 0 || len(after.Moves) != 0 {
			t.Errorf("listed twice: %+v", after)
		}
	})
}

// A difference is explained to the pesewa by exceptions, or shown as unexplained.
func TestDay_differenceIsExplained(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until((day + 2).Begin())
		if a := f.account(day, "bank/gcb"); a.Theirs != nil || a.Difference() != 0 {
			t.Errorf("%+v", a)
		}
		set := func(n money.Pesewas) {
			f.write(func(tx *db.Tx) error { return f.SetTheirs(tx, asset, day, []Balance{{"bank/gcb", n}}, "ama") })
		}
		explain := func(n money.Pesewas) {
			f.write(func(tx *db.Tx) error {
				return f.AddException(tx, asset, day, Exception{ID: uuid.NewString(), Account: "bank/gcb", Amount: n, Text: "a cheque", Actor: "ama"})
			})
		}
		set(93)
		explain(-5)
		if a := f.account(day, "bank/gcb"); a.Difference() != -7 || a.Explained != -5 || a.Unexplained() != -2 {
			t.Errorf("%+v", a)
		}
		figures := f.figures(day)
		explain(-2)
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.Close(tx, figures, "act") }); problem.From(err).Code != "changed_since" {
			t.Error("figures without the last exception were signed", err)
		}
		figures = f.figures(day)
		set(92)
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.Close(tx, figures, "act") }); problem.From(err).Code != "changed_since" {
			t.Error("figures with another statement were signed", err)
		}
		set(93)
		f.closes(day)
		if a := f.account(day, "bank/gcb"); a.Unexplained() != 0 || *a.Theirs != 93 || len(a.Exceptions) != 2 {
			t.Errorf("%+v", a)
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error { return f.SetTheirs(tx, asset, day, []Balance{{"bank/gcb", 1}}, "ama") })
		if !problem.Is(err, problem.Duplicate) {
			t.Error("the statement of a closed day was changed", err)
		}
	})
}

// Only the last closed day can be reopened. The reason is listed, and the day can be closed again.
func TestReopen_lastDayAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until((day + 3).Begin())
		f.closes(day, day+1)
		f.dated((day + 1).Begin(), "bank/gcb", ledger.Funding, 7)
		reopen := func(day Day, revision int64) error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				return f.Reopen(tx, asset, day, revision, "act", "the bank corrected it", "ama")
			})
		}
		for day, want := range map[Day]problem.Kind{day: problem.Invalid, day + 2: problem.Invalid} {
			if err := reopen(day, 1); !problem.Is(err, want) {
				t.Errorf("%s: %v", day, err)
			}
		}
		if err := reopen(day+1, 2); problem.From(err).Code != "changed_since" {
			t.Error("another revision", err)
		}
		if err := reopen(day+1, 1); err != nil {
			t.Fatal(err)
		}
		got := f.figures(day + 1)
		if got.Closed.Revision != 0 || len(got.Reopened) != 1 || got.Reopened[0].Reason != "the bank corrected it" || got.Accounts[0].In != 7 || got.Accounts[0].Late != 0 {
			t.Errorf("%+v", got)
		}
		f.closes(day + 1)
		if got := f.figures(day + 1); got.Closed.Revision != 2 || got.Accounts[0].Closing != 107 {
			t.Errorf("%+v", got)
		}
	})
}

// Money in transit at midnight is explained by the transfers that were in transit at that moment.
func TestDay_transitExplainsItself(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		sent := treasury.Transit{ID: "up", Asset: asset, Source: "bank/gcb", Target: "float/mtn/disbursement", Amount: 60, State: treasury.Sent}
		if err := f.treasury.Send(t.Context(), sent, "top-up", "ama"); err != nil {
			t.Fatal(err)
		}
		f.until((day + 1).Begin())
		if err := f.treasury.End(t.Context(), sent, treasury.Arrived, 1, "seen", "ama"); err != nil {
			t.Fatal(err)
		}
		f.until((day + 2).Begin())
		if a := f.account(day, ledger.Transit); a.Closing != 60 || a.Theirs == nil || a.Unexplained() != 0 {
			t.Errorf("%+v", a)
		}
		if a := f.account(day+1, ledger.Transit); a.Closing != 0 || a.Out != 60 || a.Unexplained() != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// Liabilities to customers and money at banks and providers are compared at the end of a day. Our own accounts explain the
// difference.
func TestFunds_surplusIsOurOwn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.dated(began, "float/mtn/collection", ledger.Clearing, 30)
		f.dated(began, ledger.Clearing, ledger.Fees, 4)
		f.dated(began, ledger.Reserve("shop"), ledger.Suspense, 9)
		f.until((day + 1).Begin())
		f.dated((day + 1).Begin(), "bank/gcb", ledger.Funding, 1000)
		got, err := f.Funds(t.Context(), asset, day)
		if err != nil || got.Owed != 126 || got.Held != 130 || got.Surplus() != 4 || got.Own != 4 || got.Running {
			t.Errorf("%+v, %v", got, err)
		}
		sums := map[ledger.AccountID]money.Pesewas{}
		for _, l := range got.Lines {
			sums[l.Account] = l.Amount
		}
		if sums["wallet:*"] != 100 || sums["reserve/*"] != -9 || sums[ledger.Suspense] != 9 || sums["float/mtn/collection"] != 30 || sums["bank/gcb"] != 100 {
			t.Errorf("%v", sums)
		}
		now, err := f.Funds(t.Context(), asset, day+1)
		if err != nil || !now.Running || now.Held != 1130 || now.Surplus() != now.Own {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// A shortfall is shown as a shortfall.
func TestFunds_shortfall(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		if err := f.treasury.Fund(t.Context(), f.tenant.ID, 100, "without a bank", "ama"); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Funds(t.Context(), asset, DayOf(began)); err != nil || got.Surplus() != -100 || got.Own != -100 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Debits equal credits, and the sums of the lines tie to the balances of every account.
func TestJournal_tiesToBalances(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day, random := DayOf(began), rand.New(rand.NewPCG(7, 7))
		accounts := []ledger.AccountID{"bank/gcb", "float/mtn/collection", ledger.Clearing, ledger.Fees, ledger.Suspense, ledger.Funding, ledger.Reserve("a"), ledger.Reserve("b"), ledger.ProviderFees("mtn")}
		f.write(func(tx *db.Tx) error {
			p, err := f.ledger.Open(tx)
			for n := range 2*linesAtOnce + 17 {
				from, to := random.IntN(len(accounts)), random.IntN(len(accounts)-1)
				if to >= from {
					to++
				}
				at := began.Add(time.Duration(random.IntN(3*24*60)) * time.Minute) // many transfers have the same time
				if err == nil {
					err = p.Add(ledger.Transfer{Asset: asset, From: accounts[from], To: accounts[to], Amount: int64(1 + random.IntN(900)), Subject: fmt.Sprint("s", n), Leg: "x", Kind: "test", At: at})
				}
			}
			if err == nil {
				p.Post()
			}
			return err
		})
		f.write(func(tx *db.Tx) error { _, err := f.SetCode(tx, Code{"reserve/*", "2105"}, "ama"); return err })
		f.write(func(tx *db.Tx) error { _, err := f.SetCode(tx, Code{"bank/gcb", "1001"}, "ama"); return err })
		p := Period{asset, day, day + 1}
		var debit, credit money.Pesewas
		sums, lines, last := map[ledger.AccountID]money.Pesewas{}, int64(0), time.Time{}
		err := f.Each(t.Context(), p, func(l Line) error {
			if l.At.Before(last) || l.At.Before(day.Begin()) || !l.At.Before((day + 2).Begin()) || (l.Debit == 0) == (l.Credit == 0) {
				t.Errorf("%+v", l)
			}
			if want := map[ledger.AccountID]string{"reserve/a": "2105", "reserve/b": "2105", "bank/gcb": "1001", "fees": "fees"}[l.Account]; want != "" && l.Code != want {
				t.Errorf("%s has the code %s", l.Account, l.Code)
			}
			last, lines = l.At, lines+1
			debit, credit = debit+l.Debit, credit+l.Credit
			sums[l.Account.Class()] += l.Credit - l.Debit
			return nil
		})
		size, sizeErr := f.Size(t.Context(), p)
		if err != nil || sizeErr != nil || debit != credit || debit == 0 || lines != size || lines <= 2*linesAtOnce {
			t.Errorf("%d lines of %d, debit %s, credit %s: %v, %v", lines, size, debit, credit, err, sizeErr)
		}
		totals, err := f.Totals(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range totals {
			if one.Off() != 0 || one.Credit-one.Debit != sums[one.Account] {
				t.Errorf("%+v, the lines have %s", one, sums[one.Account])
			}
		}
		if len(totals) != 8 {
			t.Errorf("%d accounts", len(totals))
		}
	})
}

// A month of closed days ties to the pesewa. If it does not, the page shows the difference.
func TestMonth_tiesOrShowsByHowMuch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.until(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC))
		first := DayOf(f.clock.Now())
		for day := first; day < first+28; day++ {
			f.until(day.Begin().Add(12 * time.Hour))
			f.deposit(money.Pesewas(100 + day - first))
			f.write(func(tx *db.Tx) error {
				return f.SetTheirs(tx, asset, day, []Balance{{"bank/gcb", f.accountIn(tx, "bank/gcb")}}, "ama")
			})
			f.until(day.End().Add(Lag))
			if day == first+27 {
				if m, err := f.MonthOf(t.Context(), asset, first); err != nil || m.Ties() || m.Closed != 27 || !m.Accounts[0].Ties() {
					t.Errorf("before the last day: %+v, %v", m, err)
				}
			}
			f.closes(day)
		}
		m, err := f.MonthOf(t.Context(), asset, first+13)
		if err != nil || !m.Ties() || !m.Whole() || len(m.Accounts) != 1 || m.Accounts[0].In != 28*100+27*14 || m.Accounts[0].Closing != m.Accounts[0].In || m.Accounts[0].Days != 28 {
			t.Errorf("%+v, %v", m, err)
		}
		f.dated((first + 3).Begin(), "bank/gcb", ledger.Funding, 5)
		if m, err = f.MonthOf(t.Context(), asset, first); err != nil || m.Ties() || m.Accounts[0].Since() != 5 {
			t.Errorf("after a late transfer: %+v, %v", m, err)
		}
	})
}

// accountIn returns the current balance of an account.
func (f *fixture) accountIn(tx *db.Tx, id ledger.AccountID) money.Pesewas {
	f.t.Helper()
	n, err := f.ledger.BalanceIn(tx, ledger.Key{Asset: asset, ID: id})
	if err != nil {
		f.t.Error(err)
	}
	return money.Pesewas(-n)
}
