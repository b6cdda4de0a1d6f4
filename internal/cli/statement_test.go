package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
)

// A history has every kind of payment. The statement of each of its accounts ties to the ledger, knows the type of every movement,
// and counts the same charges as the payments.
func TestStatement_sampleTies(t *testing.T) {
	t.Parallel()
	w := aSample(t)
	c := clock.Real()
	l := ledger.New(w.db, c, "test")
	tenants := tenant.New(w.db, l, c)
	r := statement.New(w.db, l, book.NewReader(w.db, l, c), tenants)
	all, err := tenants.List(t.Context(), "", 100)
	if err != nil || len(all) < 2 {
		t.Fatalf("%d accounts, %v", len(all), err)
	}
	seen := map[statement.Type]bool{}
	for _, of := range all {
		for _, credits := range []bool{false, true} {
			s, err := r.Open(t.Context(), of, credits, time.Time{}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			sum, err := r.Summarize(t.Context(), s)
			if err != nil || sum.Problem != "" || sum.In-sum.Out != s.Closing {
				t.Errorf("%s: %+v, %v; it holds %d", of.Name, sum, err, s.Closing)
			}
			for _, total := range sum.Totals {
				if seen[total.Type] = true; total.Type == statement.Other {
					t.Errorf("%s has %d movements of no type", of.Name, total.Count)
				}
			}
			if got := charges(t, w, of.ID); !credits && sum.Fees() != got {
				t.Errorf("%s: fees of %v, the payments have %v", of.Name, sum.Fees(), got)
			}
			var file bytes.Buffer
			to, err := sheet.NewWriter(&file, sheet.CSV, s.Columns())
			if err == nil {
				err = r.Each(t.Context(), s, to.Write)
			}
			if err != nil || to.Close() != nil || int64(bytes.Count(file.Bytes(), []byte("\r\n"))) != s.Total()+1 {
				t.Errorf("%s: a file of %d lines for %d movements, %v", of.Name, bytes.Count(file.Bytes(), []byte("\r\n")), s.Total(), err)
			}
		}
	}
	for _, one := range []statement.Type{statement.Collection, statement.Payout, statement.Airtime, statement.Data, statement.Charges, statement.Return, statement.Funding, statement.Messages, statement.CreditSale} {
		if !seen[one] {
			t.Errorf("no movement is a %s", one)
		}
	}
}

// charges sums the charges of an account's payments: of payouts that did not fail, and of paid collections whose merchant pays the
// charges.
func charges(t *testing.T, w where, id string) (sum money.Pesewas) {
	t.Helper()
	const sql = `SELECT CAST(coalesce(sum(charges), 0) AS INTEGER) FROM payments WHERE tenant = $1 AND channel <> 'WALLET'
AND (kind = 'payout' AND status IN ('pending', 'success') OR kind = 'collection' AND status = 'success' AND fee_bearer = 'merchant')`
	if _, err := w.db.ReadOne(t.Context(), sql, []any{id}, &sum); err != nil {
		t.Fatal(err)
	}
	return sum
}
