package statement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// fixture is an account with a ledger.
type fixture struct {
	*Reader
	t      *testing.T
	db     *db.DB
	tenant tenant.Tenant
}

func open(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	c := clock.NewManual(start)
	l := ledger.New(d, c, "test")
	tenants := tenant.New(d, l, c)
	f := &fixture{Reader: New(d, l, book.NewReader(d, l, c), tenants), t: t, db: d}
	if err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
		f.tenant, err = tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Test})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

// move posts transfers of the account's wallet, one each hour.
func (f *fixture) move(transfers ...ledger.Transfer) {
	f.t.Helper()
	for i, m := range transfers {
		m.Asset, m.At = f.tenant.Money(), start.Add(time.Duration(i)*time.Hour)
		if m.Subject == "" {
			m.Subject, m.Leg = fmt.Sprint("s", i), "leg"
		}
		if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
			page, err := f.ledger.Open(tx, f.tenant.Wallet())
			if err != nil {
				return err
			}
			if err := page.Add(m); err != nil {
				return err
			}
			page.Post()
			return nil
		}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) open(from, to time.Time) Statement {
	f.t.Helper()
	s, err := f.Open(f.t.Context(), f.tenant, false, from, to)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) summary(s Statement) Summary {
	f.t.Helper()
	sum, err := f.Summarize(f.t.Context(), s)
	if err != nil {
		f.t.Fatal(err)
	}
	return sum
}

// year posts one movement of each type that belongs to no payment.
func (f *fixture) year() {
	wallet, reserve := f.tenant.Wallet().ID, ledger.Reserve(f.tenant.ID)
	f.move(
		ledger.Transfer{From: ledger.Funding, To: wallet, Amount: 10_000, Kind: "fund"},
		ledger.Transfer{From: ledger.Funding, To: wallet, Amount: 500, Kind: "adjust"},
		ledger.Transfer{From: wallet, To: ledger.Funding, Amount: 200, Kind: "adjust"},
		ledger.Transfer{From: wallet, To: reserve, Amount: 3_000, Kind: "batch", Subject: "batch", Leg: "reserve"},
		ledger.Transfer{From: reserve, To: wallet, Amount: 1_000, Kind: "batch", Subject: "batch", Leg: "rest"},
		ledger.Transfer{From: wallet, To: ledger.Receivable(f.tenant.ID), Amount: 50, Kind: "recover"},
		ledger.Transfer{From: ledger.Suspense, To: wallet, Amount: 7, Kind: "decide"},
	)
}

// Each movement has a type. The totals add up to the difference between the opening and the closing balance.
func TestStatement_everyTypeAddsUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.year()
		s := f.open(time.Time{}, time.Time{})
		sum := f.summary(s)
		want := []Total{{Type: BatchReserve, Count: 1, Out: 3_000}, {Type: BatchReturn, Count: 1, In: 1_000}, {Type: Funding, Count: 1, In: 10_000},
			{Type: Correction, Count: 2, In: 500, Out: 200}, {Type: Debt, Count: 1, Out: 50}, {Type: Other, Count: 1, In: 7}}
		if fmt.Sprint(sum.Totals) != fmt.Sprint(want) {
			t.Errorf("totals: %v, want %v", sum.Totals, want)
		}
		if sum.Problem != "" || sum.In-sum.Out != s.Closing-s.Opening || s.Closing != 8_257 {
			t.Errorf("%+v of %+v", sum, s)
		}
	})
}

// A period includes its first moment and excludes its last. Each period of a year opens with the closing balance of
// the previous one.
func TestStatement_periodsTie(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.year()
		before, after := f.open(time.Time{}, start.Add(3*time.Hour)), f.open(start.Add(3*time.Hour), time.Time{})
		if before.Total() != 3 || after.Total() != 4 || before.Closing != after.Opening || after.Opening != 10_300 {
			t.Errorf("%+v and %+v", before.Stretch, after.Stretch)
		}
		if empty := f.open(start.Add(time.Minute), start.Add(time.Hour)); empty.Total() != 0 || empty.Opening != empty.Closing || f.summary(empty).Problem != "" {
			t.Errorf("an empty period: %+v", empty.Stretch)
		}
		page, err := f.Page(t.Context(), after, 1, 2)
		if err != nil || len(page) != 2 || page[0].Number != 5 || page[1].Number != 6 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

// If somebody changed a balance in the database, the statement reports it. The next balance does not hide it.
func TestStatement_contradictionIsReported(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.year()
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Exec(`UPDATE transfers SET balance = balance + 1 WHERE wallet = $1 AND sequence = 4`, f.tenant.Wallet().ID)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if sum := f.summary(f.open(time.Time{}, time.Time{})); !strings.Contains(sum.Problem, "movement 4") {
			t.Errorf("reported: %q", sum.Problem)
		}
		if f.Faults() != 1 {
			t.Errorf("%d faults are counted", f.Faults())
		}
	})
}

// Every type has a title and appears among the totals.
func TestTypes_haveTitles(t *testing.T) {
	t.Parallel()
	for _, one := range types {
		if one.Title() == "" {
			t.Errorf("%s has no title", one)
		}
	}
	if len(titles) != len(types)+2 { // the opening and closing balances are not movements
		t.Errorf("%d titles of %d types", len(titles), len(types))
	}
}

// Refunds and payouts are different types.
func TestEntry_refund(t *testing.T) {
	r := &Reader{}
	for _, tt := range []struct {
		pay  book.Payment
		want Type
	}{{book.Payment{Kind: book.KindPayout}, Payout}, {book.Payment{Kind: book.KindPayout, RefundOf: "c"}, Refund}} {
		e, err := r.ofPayment(t.Context(), Entry{}, ledger.Line{Transfer: ledger.Transfer{Leg: book.LegHold}}, tt.pay)
		if err != nil || e.Type != tt.want {
			t.Errorf("%+v: %s, %v", tt.pay, e.Type, err)
		}
	}
}
