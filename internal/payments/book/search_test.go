package book

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// A search by reference uses the index of each list, so its cost does not grow with the number of payments. SQLite
// plans without statistics, so an empty database shows the plan.
func TestSearch_referenceUsesIndex(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	var plan []string
	if err := d.Read(t.Context(), func(tx *db.Tx) error {
		plan = nil
		return tx.Query("EXPLAIN QUERY PLAN "+paymentsOfReference, []any{"nothing-like-it"}, func(r *db.Row) error {
			var id, parent, unused int64
			var step string
			err := r.Scan(&id, &parent, &unused, &step)
			plan = append(plan, step)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "; "); strings.Contains(text, "SCAN payments") || !strings.Contains(text, "SEARCH payments USING INDEX") {
		t.Error(text)
	}
}
