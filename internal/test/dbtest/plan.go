package dbtest

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
)

// Plan returns SQLite's plan of a query. SQLite plans without statistics, so an empty database shows the plan of a full one.
func Plan(t testing.TB, sql string, args ...any) string {
	t.Helper()
	d := Open(t, db.SQLite)
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
