package history

import "github.com/makola/makola/internal/db"

const (
	nextEnd     = `SELECT tenant, kind FROM payment_ends WHERE (tenant, kind) > ($1, $2) ORDER BY tenant, kind LIMIT 1`
	nextDay     = `SELECT tenant, kind FROM payment_days WHERE (tenant, kind) > ($1, $2) ORDER BY tenant, kind LIMIT 1`
	nextCounter = `SELECT tenant, kind FROM payment_counters WHERE (tenant, kind) > ($1, $2) ORDER BY tenant, kind LIMIT 1`
)

// NextList returns the list that follows another list. It finds lists that have an end, a day or a counter. The
// zero list precedes the first.
func NextList(tx *db.Tx, after List) (next List, found bool, err error) {
	for _, sql := range []string{nextEnd, nextDay, nextCounter} {
		var l List
		is, err := tx.One(sql, []any{after.Tenant, after.Kind}, &l.Tenant, &l.Kind)
		if err != nil {
			return next, false, err
		}
		if is && (!found || compareLists(l, next) < 0) {
			next, found = l, true
		}
	}
	return next, found, nil
}

const endOf = `SELECT total, last_at FROM payment_ends WHERE tenant = $1 AND kind = $2`

// CheckBlock compares one of the largest blocks of a list with its payments: their number, days and counters. For the
// last block it also compares the end of the list, and whole is true.
func CheckBlock(tx *db.Tx, l List, block int64, report func(format string, args ...any)) (whole bool, err error) {
	var total, lastAt int64
	if _, err := tx.One(endOf, []any{l.Tenant, l.Kind}, &total, &lastAt); err != nil {
		return false, err
	}
	c := comparison{tx, l, total, report}
	first := block*blockRows[topLevel] + 1
	last := first + blockRows[topLevel] - 1
	if err := c.rows(first, last, topLevel); err != nil || last < total {
		return false, err
	}
	return true, c.end(lastAt, last)
}

// CheckSince compares a list with its payments from the number first on. It compares only the counters of the
// smallest blocks.
func CheckSince(tx *db.Tx, l List, first int64, report func(format string, args ...any)) error {
	var total, lastAt int64
	if _, err := tx.One(endOf, []any{l.Tenant, l.Kind}, &total, &lastAt); err != nil {
		return err
	}
	c := comparison{tx, l, total, report}
	if err := c.rows(blockOf(first, 0)*leafRows+1, total, 0); err != nil {
		return err
	}
	return c.last(lastAt)
}

// A comparison compares one list with its payments.
type comparison struct {
	tx     *db.Tx
	list   List
	total  int64
	report func(format string, args ...any)
}

const rowsBetween = `SELECT count(*) FROM payments WHERE tenant = $1 AND kind IN ($2) AND seq BETWEEN $3 AND $4`

// rows compares the payments from first to last with the end of the list, the days, and the counters of the
// levels up to top. first must be the first entry of a block of level top.
func (c *comparison) rows(first, last int64, top int) error {
	var n int64
	if _, err := c.tx.One(rowsBetween, []any{c.list.Tenant, c.list.Kind, first, last}, &n); err != nil {
		return err
	}
	if want := max(0, min(c.total, last)-first+1); n != want {
		c.report("the list of %s of %s ends at %d: from number %d to %d it has %d payments, not %d", c.list.Kind, c.list.Tenant, c.total, first, last, n, want)
	}
	if err := c.days(first, last); err != nil {
		return err
	}
	for level := 0; level <= top; level++ {
		if err := c.counters(first, last, level); err != nil {
			return err
		}
	}
	return nil
}

// A day with a payment in this part must have a row. The row's first payment is in this part or before it. A row
// whose first payment is in this part must belong to the payment's day.
const wrongDays = `SELECT x.day, CAST(sum(x.first) AS INTEGER), CAST(sum(x.seq) AS INTEGER) FROM (
	SELECT day, first, 0 AS seq FROM payment_days WHERE tenant = $1 AND kind = $2 AND first BETWEEN $3 AND $4
	UNION ALL SELECT created_at / 86400000000, 0, min(seq) FROM payments WHERE tenant = $1 AND kind IN ($2) AND seq BETWEEN $3 AND $4 GROUP BY created_at / 86400000000
) AS x GROUP BY x.day HAVING sum(x.first) <> sum(x.seq)
	AND (sum(x.first) <> 0 OR NOT EXISTS (SELECT 1 FROM payment_days d WHERE d.tenant = $1 AND d.kind = $2 AND d.day = x.day AND d.first < $3)) ORDER BY x.day LIMIT 100`

func (c *comparison) days(first, last int64) error {
	return c.tx.Query(wrongDays, []any{c.list.Tenant, c.list.Kind, first, last}, func(r *db.Row) error {
		var day, begins, seq int64
		err := r.Scan(&day, &begins, &seq)
		c.report("day %d of the list of %s of %s begins at %d, its payments at %d", day, c.list.Kind, c.list.Tenant, begins, seq)
		return err
	})
}

// The counter of a leaf has a bit for each payment. The counter of a larger block is their number.
const (
	wrongLeaves = `SELECT status, block, CAST(sum(n) AS INTEGER) FROM (
	SELECT status, block, n FROM payment_counters WHERE tenant = $1 AND kind = $2 AND status IN ('success', 'failed', 'declined', 'invalid') AND level = 0
		AND block BETWEEN $5 AND $6
	UNION ALL SELECT status, (seq - 1) / 60, -(CAST(1 AS BIGINT) << CAST((seq - 1) % 60 AS INT)) FROM payments
		WHERE tenant = $1 AND kind IN ($2) AND seq BETWEEN $3 AND $4 AND settled_at <> 0
) AS x GROUP BY status, block HAVING sum(n) <> 0 ORDER BY block, status LIMIT 100`
	wrongBlocks = `SELECT status, block, CAST(sum(n) AS INTEGER) FROM (
	SELECT status, block, n FROM payment_counters WHERE tenant = $1 AND kind = $2 AND status IN ('success', 'failed', 'declined', 'invalid') AND block BETWEEN $5 AND $6 AND level = $7
	UNION ALL SELECT status, (seq - 1) / CAST($8 AS BIGINT), -1 FROM payments WHERE tenant = $1 AND kind IN ($2) AND seq BETWEEN $3 AND $4 AND settled_at <> 0
) AS x GROUP BY status, block HAVING sum(n) <> 0 ORDER BY block, status LIMIT 100`
)

func (c *comparison) counters(first, last int64, level int) error {
	sql, args := wrongLeaves, []any{c.list.Tenant, c.list.Kind, first, last, blockOf(first, level), blockOf(last, level)}
	if level > 0 {
		sql, args = wrongBlocks, append(args, level, blockRows[level])
	}
	return c.tx.Query(sql, args, func(r *db.Row) error {
		var status string
		var block, gap int64
		err := r.Scan(&status, &block, &gap)
		c.report("the counter of %s %s of %s in block %d of level %d is off by %d", status, c.list.Kind, c.list.Tenant, block, level, gap)
		return err
	})
}

const (
	// strayCounters selects counters of other statuses, and counters after the checked blocks.
	strayCounters = `SELECT status, level, block FROM payment_counters WHERE tenant = $1 AND kind = $2 AND n <> 0 AND (status NOT IN ('success', 'failed', 'declined', 'invalid')
	OR level NOT IN (0, 1, 2) OR block < 0 OR block > (CAST($3 AS BIGINT) - 1) / CASE level WHEN 0 THEN 60 WHEN 1 THEN 1440 ELSE 34560 END) ORDER BY status, level, block LIMIT 100`
	strayDays = `SELECT day, first FROM payment_days WHERE tenant = $1 AND kind = $2 AND (first < 1 OR first > $3) ORDER BY day LIMIT 100`
)

// end compares the end of the list. It reports counters and days after the payment with the number checked.
func (c *comparison) end(lastAt, checked int64) error {
	if err := c.last(lastAt); err != nil {
		return err
	}
	of := []any{c.list.Tenant, c.list.Kind, checked}
	err := c.tx.Query(strayCounters, of, func(r *db.Row) error {
		var status string
		var level, block int64
		err := r.Scan(&status, &level, &block)
		c.report("the counter of %s %s of %s in block %d of level %d counts no payment", status, c.list.Kind, c.list.Tenant, block, level)
		return err
	})
	if err != nil {
		return err
	}
	return c.tx.Query(strayDays, of, func(r *db.Row) error {
		var day, first int64
		err := r.Scan(&day, &first)
		c.report("day %d of the list of %s of %s begins at %d, where it has no payment", day, c.list.Kind, c.list.Tenant, first)
		return err
	})
}

const (
	lastRow   = `SELECT seq, created_at FROM payments WHERE tenant = $1 AND kind IN ($2) ORDER BY seq DESC LIMIT 1`
	latestRow = `SELECT COALESCE(max(created_at), 0) FROM payments WHERE tenant = $1 AND kind IN ($2)`
)

// last compares the end of the list with its last payment. If a clock ran far ahead, the payment with the latest time
// is not the last one.
func (c *comparison) last(lastAt int64) error {
	of := []any{c.list.Tenant, c.list.Kind}
	var seq, latest int64
	if _, err := c.tx.One(lastRow, of, &seq, &latest); err != nil {
		return err
	}
	if latest != lastAt {
		if _, err := c.tx.One(latestRow, of, &latest); err != nil {
			return err
		}
	}
	if seq != c.total || latest != lastAt {
		c.report("the list of %s of %s ends at %d (%d), its last payment is number %d (%d)", c.list.Kind, c.list.Tenant, c.total, lastAt, seq, latest)
	}
	return nil
}
