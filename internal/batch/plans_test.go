package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// PostgreSQL finds the rows of a set by their key, even without statistics or with those of an earlier small batch. Otherwise it
// would compare each row of a set with every row of the batch.
func TestPlans_rowsByKey(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	n := newFixture(t, d).node("a")
	small := n.requested("Small", fileFrom(1, 1))
	if err := n.start(small); err != nil {
		t.Fatal(err)
	}
	n.pass(time.Minute)
	dbtest.Analyze(t, d)
	large, err := n.upload("Large", fileFrom(2, 5000))
	if err != nil {
		t.Fatal(err)
	}
	set := make([]storedRow, 100)
	for i := range set {
		set[i] = storedRow{batch: large.ID, Row: Row{Line: i + 1, State: RowRefused, Reason: "such"}}
	}
	statements := map[string]db.Rows{updateDecided: db.RowsOf(decidedColumns, set), updateRows: db.RowsOf(insertColumns, set), updateCharges: db.RowsOf(chargeColumns, set),
		updateNames: db.RowsOf(nameColumns, set), dropLines: db.RowsOf(lineColumns, set), selectLines: db.RowsOf(foundColumns, set)}
	for _, plan := range []func(testing.TB, *db.DB, string, ...any) string{dbtest.PlanNow, dbtest.WithoutStatistics} {
		for sql, rows := range statements {
			text := plan(t, d, sql, rows)
			if !strings.Contains(text, "batch_rows_pkey") || !strings.Contains(text, "Index Cond: ((batch = ANY (ARRAY[u.") || !strings.Contains(text, "AND (line = u.") || strings.Contains(text, "Join Filter") {
				t.Errorf("%s\n%s", sql, text)
			}
		}
		if text := plan(t, d, openReferences, large.ID, int64(1), int64(blockRows)); !strings.Contains(text, "batch_rows_reference") || strings.Contains(text, "Seq Scan on batch_rows") {
			t.Error(text)
		}
	}
}
