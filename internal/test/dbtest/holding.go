package dbtest

import (
	"fmt"
	"testing"

	"github.com/makola/makola/internal/db"
)

// fewestColumns is below the number of columns of the schema. A search of fewer is a fault of the search.
const fewestColumns = 100

// Holding lists the columns, as table.column, with a value that contains a text.
func Holding(t testing.TB, d *db.DB, text string) (found []string) {
	t.Helper()
	tables := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	columns := `SELECT name FROM pragma_table_info('%s')`
	if d.Engine() == db.Postgres {
		tables = `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`
		columns = `SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '%s'`
	}
	searched := 0
	err := d.ReadWhole(t.Context(), func(tx *db.Tx) error {
		found, searched = nil, 0
		list := func(sql string, args ...any) (all []string, err error) {
			err = tx.Query(sql, args, func(r *db.Row) error {
				var s string
				err := r.Scan(&s)
				all = append(all, s)
				return err
			})
			return all, err
		}
		names, err := list(tables)
		for _, table := range names {
			if err != nil {
				return err
			}
			var of []string
			of, err = list(fmt.Sprintf(columns, table))
			for _, column := range of {
				searched++
				var hits []string
				if hits, err = list(fmt.Sprintf(`SELECT '' FROM %s WHERE CAST(%s AS TEXT) LIKE '%%' || $1 || '%%' LIMIT 1`, table, column), text); err != nil {
					return err
				}
				if len(hits) > 0 {
					found = append(found, table+"."+column)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if searched < fewestColumns {
		t.Fatalf("only %d columns were searched", searched)
	}
	return found
}
