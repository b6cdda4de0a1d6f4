package figures

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// Open payments are looked up one by one, so that the first page of an account costs the same however many payments it has. SQLite plans
// without statistics, so an empty database shows its plan.
func TestOpenPayments_lookedUpOneByOne(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	for sql, args := range map[string][]any{heldOf: {"tenant", "unknown"}, changedOpen: {1}} {
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
		if text := strings.Join(plan, "; "); !strings.Contains(text, "SEARCH p USING INDEX sqlite_autoindex_payments_1 (tenant=? AND kind=? AND seq=?)") {
			t.Error(text)
		}
	}
}
