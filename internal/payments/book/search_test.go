package book

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// planOf returns the plan of a query. SQLite plans without statistics, so an empty database shows its plan.
func planOf(t *testing.T, sql string, args ...any) string {
	t.Helper()
	d := dbtest.Open(t, db.SQLite)
	var plan []string
	if err := d.Read(t.Context(), func(tx *db.Tx) error {
		plan = nil
		return tx.Query("EXPLAIN QUERY PLAN "+sql, args, func(r *db.Row) error {
			var id, parent, unused int64
			var step string
			err := r.Scan(&id, &parent, &unused, &step)
			plan = append(plan, step)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "; ")
}

// A search for a reference uses the index of each list, so its cost does not grow with the payments.
func TestSearch_referenceUsesIndex(t *testing.T) {
	if text := planOf(t, paymentsOfReference, "nothing-like-it"); strings.Contains(text, "SCAN payments") || !strings.Contains(text, "SEARCH payments USING INDEX") {
		t.Error(text)
	}
}

// The payouts to accounts of a draft are found by account and time, and the latest to one account within the last numbers of the tenant.
func TestPaid_usesIndex(t *testing.T) {
	if text := planOf(t, paidSince, "tenant", []string{"233241234567"}, 1); !strings.Contains(text, "USING INDEX payments_payee (account=? AND created_at>?)") {
		t.Error(text)
	}
	if text := planOf(t, paidTo, "tenant", "233241234567", PayeeWindow, 3); !strings.Contains(text, "(tenant=? AND kind=? AND seq>?)") {
		t.Error(text)
	}
}
