package history

import "github.com/makola/makola/internal/db"

// Check compares the lists and the counters with the rows of payments, and reports
// what differs. It reads every payment.
func Check(tx *db.Tx, report func(format string, args ...any)) error {
	if err := checkLists(tx, report); err != nil {
		return err
	}
	return checkCounters(tx, report)
}

const (
	wrongEnds = `SELECT tenant, kind, CAST(sum(total) AS INTEGER), CAST(sum(n) AS INTEGER), CAST(sum(last) AS INTEGER) FROM (
	SELECT tenant, kind, total, 0 AS n, 0 AS last, last_at, 0 AS at FROM payment_ends
	UNION ALL SELECT tenant, kind, 0, count(*), max(seq), 0, max(created_at) FROM payments GROUP BY tenant, kind
) AS x GROUP BY tenant, kind HAVING sum(total) <> sum(n) OR sum(n) <> sum(last) OR sum(last_at) <> sum(at) ORDER BY tenant, kind LIMIT 100`

	// The first payment of each day, and a payment that is older than the one
	// before it.
	wrongDays = `SELECT tenant, kind, day, CAST(sum(first) AS INTEGER), CAST(sum(seq) AS INTEGER) FROM (
	SELECT tenant, kind, day, first, 0 AS seq FROM payment_days
	UNION ALL SELECT tenant, kind, created_at / 86400000000, 0, min(seq) FROM payments GROUP BY tenant, kind, created_at / 86400000000
) AS x GROUP BY tenant, kind, day HAVING sum(first) <> sum(seq) ORDER BY tenant, kind, day LIMIT 100`
)

// checkLists compares the lists' ends and days with their payments.
func checkLists(tx *db.Tx, report func(format string, args ...any)) error {
	err := tx.Query(wrongEnds, nil, func(r *db.Row) error {
		var tenant, kind string
		var total, n, last int64
		err := r.Scan(&tenant, &kind, &total, &n, &last)
		report("the list of %s of %s ends at %d, its %d payments at %d", kind, tenant, total, n, last)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Query(wrongDays, nil, func(r *db.Row) error {
		var tenant, kind string
		var day, first, seq int64
		err := r.Scan(&tenant, &kind, &day, &first, &seq)
		report("day %d of the list of %s of %s begins at %d, its payments at %d", day, kind, tenant, first, seq)
		return err
	})
}

// The numbers in the text are blockRows: a test holds them to each other.
const wrongCounters = `SELECT tenant, kind, status, level, block, CAST(sum(n) AS INTEGER) FROM (
	SELECT tenant, kind, status, level, block, n FROM payment_counters
	UNION ALL SELECT tenant, kind, status, 0, (seq - 1) / 60, -(CAST(1 AS BIGINT) << CAST((seq - 1) % 60 AS INT)) FROM payments WHERE settled_at <> 0
	UNION ALL SELECT tenant, kind, status, 1, (seq - 1) / 1440, -1 FROM payments WHERE settled_at <> 0
	UNION ALL SELECT tenant, kind, status, 2, (seq - 1) / 34560, -1 FROM payments WHERE settled_at <> 0
) AS x GROUP BY tenant, kind, status, level, block HAVING sum(n) <> 0 ORDER BY tenant, kind, level, block, status LIMIT 100`

// checkCounters compares the counters with the payments.
func checkCounters(tx *db.Tx, report func(format string, args ...any)) error {
	return tx.Query(wrongCounters, nil, func(r *db.Row) error {
		var tenant, kind, status string
		var level, block, gap int64
		err := r.Scan(&tenant, &kind, &status, &level, &block, &gap)
		report("the counter of %s %s of %s in block %d of level %d is off by %d", status, kind, tenant, block, level, gap)
		return err
	})
}
