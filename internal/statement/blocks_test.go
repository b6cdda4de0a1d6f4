package statement

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

// many posts 2,500 movements of the account's wallet, a minute apart.
func (f *fixture) many() {
	f.t.Helper()
	wallet := f.tenant.Wallet().ID
	err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		page, err := f.ledger.Open(tx, f.tenant.Wallet())
		if err != nil {
			return err
		}
		for n := range 2500 {
			m := ledger.Transfer{From: ledger.Funding, To: wallet, Kind: "fund"}
			if n%3 == 2 {
				m = ledger.Transfer{From: wallet, To: ledger.Reserve(f.tenant.ID), Kind: "batch"}
			}
			m.Asset, m.Amount, m.At, m.Subject, m.Leg = f.tenant.Money(), int64(1000-n%7), start.Add(time.Duration(n)*time.Minute), fmt.Sprint("m", n), "leg"
			if err := page.Add(m); err != nil {
				return err
			}
		}
		page.Post()
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql, args...); return err }); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) stored() (n int) {
	f.t.Helper()
	if _, err := f.db.ReadOne(f.t.Context(), `SELECT count(*) FROM statement_blocks`, nil, &n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// sumBlocks sums all complete blocks. A call of SumBlocks has a time limit, and stores at least one block if any is left.
func (f *fixture) sumBlocks() {
	f.t.Helper()
	for before, now := -1, f.stored(); now != before; before, now = now, f.stored() {
		if err := f.SumBlocks(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
}

// A statement from stored sums has the figures of its movements, for any first and last movement, and for any part of the blocks
// that is stored.
func TestOverview_sameAsSummarize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.many()
		minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
		same := func(when string) {
			t.Helper()
			for _, bounds := range [][2]int{{0, 2500}, {0, 2000}, {1, 2000}, {999, 1000}, {1000, 2000}, {1000, 2001}, {500, 2400}, {1001, 1999}, {7, 7}} {
				s := f.open(minute(bounds[0]), minute(bounds[1]))
				got, err := f.Overview(t.Context(), s)
				if want := f.summary(s); err != nil || got.Problem != "" || !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %v: %+v, want %+v, %v", when, bounds, got, want, err)
				}
			}
		}
		same("nothing stored")
		f.sumBlocks()
		f.sumBlocks()
		if n := f.stored(); n != 2 {
			t.Fatalf("%d blocks are stored", n)
		}
		same("stored")
		f.exec(`DELETE FROM statement_blocks WHERE block = 0`)
		same("one stored")
		if err := SumAgain(context.Background(), d); err != nil || f.stored() != 0 {
			t.Errorf("%d blocks are left, %v", f.stored(), err)
		}
	})
}

// Stored sums that do not lead from one balance to the next are reported.
func TestOverview_wrongBlockIsReported(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.many()
		for name, wrong := range map[string]string{
			"a sum":     `UPDATE statement_blocks SET sums = replace(sums, '"In":', '"In":1') WHERE block = 1`,
			"a balance": `UPDATE statement_blocks SET opening = opening + 1, closing = closing + 1 WHERE block = 1`,
		} {
			f.exec(`DELETE FROM statement_blocks`)
			f.sumBlocks()
			f.exec(wrong)
			s := f.open(time.Time{}, start.Add(2200*time.Minute))
			if got, err := f.Overview(t.Context(), s); err != nil || !strings.Contains(got.Problem, "should be") {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}
