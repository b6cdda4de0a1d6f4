package book

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// PostgreSQL writes a new entry into every index of payments if an update changes a column that any index uses, also in its condition. A
// settlement changes none. An index with the status did so: a payment needed 600 bytes more.
func TestSettlement_changesNoIndexedColumn(t *testing.T) {
	same := []string{"escalated_at", "refund_open", "batch_status"} // an ordinary payment's stay as they are
	indexed := map[string]string{}
	err := dbtest.Open(t, db.Postgres).Read(t.Context(), func(tx *db.Tx) error {
		return tx.Query(`SELECT a.attname || '', i.relname || '' FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_depend d ON d.objid = x.indexrelid
JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = d.refobjsubid
WHERE x.indrelid = CAST('payments' AS regclass) AND d.refobjid = x.indrelid AND d.refobjsubid > 0
UNION SELECT a.attname || '', i.relname || '' FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey) WHERE x.indrelid = CAST('payments' AS regclass)`, nil, func(r *db.Row) error {
			var column, index string
			err := r.Scan(&column, &index)
			indexed[column] = index
			return err
		})
	})
	if err != nil || indexed["reference"] == "" || indexed["tenant"] == "" || indexed["batch"] == "" || indexed["attempt"] == "" {
		t.Fatal(indexed, err)
	}
	set, _, _ := strings.Cut(paymentsMove, "FROM rows")
	columns := regexp.MustCompile(`(?:SET|,)\s+([a-z_]+) = `).FindAllStringSubmatch(set, -1)
	if len(columns) < 10 {
		t.Fatal(set)
	}
	for _, column := range columns {
		if index := indexed[column[1]]; index != "" && !slices.Contains(same, column[1]) {
			t.Errorf("a settlement changes %s, which %s uses", column[1], index)
		}
	}
}

// The final payouts of a batch are counted by the index alone, and a row that a node of the version before wrote by its status.
func TestStatusesOfBatch_readsTheIndex(t *testing.T) {
	if plan := dbtest.Plan(t, statusesOfBatch, "b"); !strings.Contains(plan, "USING COVERING INDEX payments_batch (batch=? AND batch_status=?)") || strings.Contains(plan, "SCAN payments") {
		t.Error(plan)
	}
	if plan := dbtest.Plan(t, openOfBatch, "b", int64(10)); !strings.Contains(plan, "USING INDEX payments_batch (batch=? AND batch_status=?)") {
		t.Error(plan)
	}
}
