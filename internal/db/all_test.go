package db_test

import (
	"slices"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// A repeated transaction returns each row once.
func TestReadAll_repeated(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		makeItems(t, d)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Defer(`INSERT INTO items (id, amount) VALUES ('a', 1), ('b', 2), ('c', 3)`, 3)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		type item struct {
			id     string
			amount int64
		}
		scan := func(i *item, r *db.Row) error { return r.Scan(&i.id, &i.amount) }
		for _, fault := range []db.Fault{db.FaultNone, db.FaultBefore, db.FaultAfter, db.FaultConflict} {
			f.At(db.BoundaryExchange, 1, fault)
			list, err := db.ReadAll(t.Context(), d, `SELECT id, amount FROM items WHERE amount > $1 ORDER BY id`, []any{1}, scan)
			if err != nil || !slices.Equal(list, []item{{"b", 2}, {"c", 3}}) {
				t.Errorf("fault %d: read %v, %v", fault, list, err)
			}
			var sum int64
			f.At(db.BoundaryExchange, 1, fault)
			found, err := d.ReadOne(t.Context(), `SELECT CAST(sum(amount) AS INTEGER) FROM items`, nil, &sum)
			if err != nil || !found || sum != 6 {
				t.Errorf("fault %d: read the sum %d, %t, %v", fault, sum, found, err)
			}
		}
	})
}
