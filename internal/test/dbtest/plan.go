package dbtest

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
)

// PostgresPlan returns PostgreSQL's plan of a query on empty tables. It shows the parts of a plan that do not depend on statistics.
func PostgresPlan(t testing.TB, sql string, args ...any) string {
	t.Helper()
	d := Open(t, db.Postgres)
	var plan []string
	if err := d.Read(t.Context(), func(tx *db.Tx) (err error) { plan, err = tx.Texts("EXPLAIN "+sql, args...); return err }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// Plan returns SQLite's plan of a query. SQLite plans without statistics, so an empty database shows the plan of a full one.
func Plan(t testing.TB, sql string, args ...any) string {
	t.Helper()
	return PlanIn(t, Open(t, db.SQLite), sql, args...)
}

// PlanIn is Plan on a database that the test has opened.
func PlanIn(t testing.TB, d *db.DB, sql string, args ...any) string {
	t.Helper()
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

// Statements about the statistics of PostgreSQL's planner. Only a superuser can delete statistics.
const (
	forgetColumns = `DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = CAST('public' AS regnamespace))`
	forgetSizes   = `UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relnamespace = CAST('public' AS regnamespace) AND relkind IN ('r', 'i')`
)

// WithoutStatistics returns the plan of a statement on a PostgreSQL database without statistics, such as one whose tables were loaded
// just now.
func WithoutStatistics(t testing.TB, d *db.DB, sql string, args ...any) string {
	t.Helper()
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, forget := range []string{forgetColumns, forgetSizes} {
			if _, err := tx.Exec(forget); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return PlanNow(t, d, sql, args...)
}

// Analyze collects the statistics of a PostgreSQL database.
func Analyze(t testing.TB, d *db.DB) {
	t.Helper()
	if _, err := d.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
}

// PlanNow returns the plan of a statement with the statistics that a PostgreSQL database has now.
func PlanNow(t testing.TB, d *db.DB, sql string, args ...any) string {
	t.Helper()
	var plan []string
	if err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
		plan, err = tx.Texts("EXPLAIN "+sql, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}
