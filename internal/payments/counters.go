package payments

import (
	"cmp"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
)

// The histories answer exact totals and any page in the same time at any size,
// whatever the filter. They can because each tenant's payments of one kind are
// a list that only grows: acceptance numbers them (seq 1, 2, 3, ...) under the
// lock of the list's end, so that a position is a number and the n-th page
// needs no counting. For a filter by status the lists are cut into blocks of
// three sizes: for each final status the smallest have a number whose bits say
// which of its payments have it, the others a count. The transactions that
// settle keep them by adding: a payment gets a status once and loses it at most
// once, so that adding its bit is setting it, in whichever shard. What is open
// needs nothing: it is the rest. Nothing here is an index on the status, so that
// settling a payment touches no index.

// Payments in a leaf (their bits must fit an integer with its sign), and how many
// blocks of one level make one of the next.
const (
	leafRows = 60
	fan      = 24
)

// blockRows are the payments in a block of each level.
var blockRows = [...]int64{leafRows, leafRows * fan, leafRows * fan * fan}

// topLevel is the level of the largest blocks.
const topLevel = len(blockRows) - 1

func blockOf(seq int64, level int) int64 { return (seq - 1) / blockRows[level] }

// A listKey names one list: the payments of a tenant of one kind.
type listKey struct {
	tenant string
	kind   Kind
}

func compareLists(a, b listKey) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.kind, b.kind))
}

// day is the UTC day of a moment, in days since 1970.
func day(at time.Time) int64 { return db.Micros(at) / (24 * time.Hour).Microseconds() }

// ends are the newest ends of the lists that one transaction appends to. The
// transaction locks them with query, gives every new payment its place, and
// posts them before it inserts the payments.
type ends map[listKey]*end

type end struct {
	total  int64
	lastAt time.Time // the latest CreatedAt in it
	stored bool      // there is a row to update
	days   []dayRow
	// past are days before that of lastAt, which may have their row.
	past []dayRow
}

type dayRow struct {
	listKey
	day, first int64
}

// endsOf names the lists of payments to come.
func endsOf(payments ...Payment) ends {
	e := ends{}
	for i := range payments {
		e.add(payments[i])
	}
	return e
}

func (e ends) add(p Payment) { e[listKey{p.Tenant, p.Kind}] = &end{} }

var listColumns = []db.Column[listKey]{
	{Name: "tenant", Text: func(k listKey) string { return k.tenant }},
	{Name: "kind", Text: func(k listKey) string { return string(k.kind) }},
}

// The locks are taken in the order of the key: two batches never wait for each
// other crosswise.
const endsLock = `SELECT tenant, kind, total, last_at FROM payment_ends
WHERE (tenant, kind) IN (SELECT k.tenant, k.kind FROM rows($1) AS k)
ORDER BY tenant, kind FOR UPDATE`

// query reads and locks the ends. It comes after the wallets' locks.
func (e ends) query() db.Query {
	return db.Query{SQL: endsLock, Args: []any{db.RowsOf(listColumns, e.keys())}, Each: func(r *db.Row) error {
		var k listKey
		read := end{stored: true}
		if err := r.Scan(&k.tenant, &k.kind, &read.total, &read.lastAt); err != nil {
			return err
		}
		e[k] = &read
		return nil
	}}
}

func (e ends) keys() []listKey {
	keys := make([]listKey, 0, len(e))
	for k := range e {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareLists)
	return keys
}

// place appends a payment to its list: it gets its Seq, and a CreatedAt that is
// not before the list's last, because two requests may meet in another order
// than they came and clocks of two nodes differ a little. Where they differ by
// more, one clock ran far ahead: the list does not follow it.
func (e ends) place(p *Payment) {
	k := listKey{p.Tenant, p.Kind}
	at := e[k]
	if ahead := at.lastAt.Sub(p.CreatedAt); ahead > 0 && ahead <= clockSkew {
		p.CreatedAt = at.lastAt
	}
	switch d, last := day(p.CreatedAt), day(at.lastAt); {
	case at.total == 0 || d > last:
		at.days = append(at.days, dayRow{k, d, at.total + 1})
	case d < last:
		at.past = append(at.past, dayRow{k, d, at.total + 1})
	}
	at.total++
	if p.CreatedAt.After(at.lastAt) {
		at.lastAt = p.CreatedAt
	}
	p.Seq = at.total
}

// An endRow is an end as it is written.
type endRow struct {
	listKey
	*end
}

var endColumns = []db.Column[endRow]{
	{Name: "tenant", Text: func(r endRow) string { return r.tenant }},
	{Name: "kind", Text: func(r endRow) string { return string(r.kind) }},
	{Name: "total", Int: func(r endRow) int64 { return r.total }},
	{Name: "last_at", Time: func(r endRow) time.Time { return r.lastAt }},
}

var dayColumns = []db.Column[dayRow]{
	{Name: "tenant", Text: func(r dayRow) string { return r.tenant }},
	{Name: "kind", Text: func(r dayRow) string { return string(r.kind) }},
	{Name: "day", Int: func(r dayRow) int64 { return r.day }},
	{Name: "first", Int: func(r dayRow) int64 { return r.first }},
}

const (
	endsUpdate = `UPDATE payment_ends SET total = e.total, last_at = e.last_at FROM rows($1) AS e
WHERE payment_ends.tenant = e.tenant AND payment_ends.kind = e.kind`

	// Two nodes may make a list's first payment at once. The second finds the
	// row, misses its guard and runs again.
	endsInsert = `INSERT INTO payment_ends (tenant, kind, total, last_at)
SELECT e.tenant, e.kind, e.total, e.last_at FROM rows($1) AS e WHERE true ON CONFLICT (tenant, kind) DO NOTHING`

	// A day that has its row keeps it.
	pastDays = `INSERT INTO payment_days (tenant, kind, day, first)
SELECT d.tenant, d.kind, d.day, min(d.first) FROM rows($1) AS d WHERE true GROUP BY d.tenant, d.kind, d.day ON CONFLICT (tenant, kind, day) DO NOTHING`
)

// post defers what has changed of the ends.
func (e ends) post(tx *db.Tx) {
	var known, fresh []endRow
	var days, past []dayRow
	for _, k := range e.keys() {
		switch at := e[k]; {
		case at.stored:
			known = append(known, endRow{k, at})
		case at.total > 0:
			fresh = append(fresh, endRow{k, at})
		}
		days, past = append(days, e[k].days...), append(past, e[k].past...)
	}
	if len(fresh) > 0 {
		tx.Defer(endsInsert, int64(len(fresh)), db.RowsOf(endColumns, fresh))
	}
	if len(known) > 0 {
		tx.Defer(endsUpdate, int64(len(known)), db.RowsOf(endColumns, known))
	}
	db.Insert(tx, "payment_days", dayColumns, days)
	if len(past) > 0 {
		tx.Defer(pastDays, -1, db.RowsOf(dayColumns, past))
	}
}

// A counterKey names one number of the histories: which payments of a leaf, or
// how many of a larger block, have a final status.
type counterKey struct {
	listKey
	status Status
	level  int
	block  int64
}

// tally gathers what one transaction changes in the counters.
type tally map[counterKey]int64

// opened counts a new payment.
func (t tally) opened(p Payment) { t.add(p, p.Status, 1) }

// turned counts a payment that went from one status to another.
func (t tally) turned(p Payment, from, to Status) {
	t.add(p, from, -1)
	t.add(p, to, 1)
}

func (t tally) add(p Payment, s Status, n int64) {
	if s.Open() {
		return
	}
	for level := range blockRows {
		add := n
		if level == 0 {
			add *= 1 << ((p.Seq - 1) % leafRows)
		}
		t[counterKey{listKey{p.Tenant, p.Kind}, s, level, blockOf(p.Seq, level)}] += add
	}
}

// A counterRow is one change as it is written.
type counterRow struct {
	counterKey
	n int64
}

var counterColumns = []db.Column[counterRow]{
	{Name: "tenant", Text: func(r counterRow) string { return r.tenant }},
	{Name: "kind", Text: func(r counterRow) string { return string(r.kind) }},
	{Name: "status", Text: func(r counterRow) string { return string(r.status) }},
	{Name: "level", Int: func(r counterRow) int64 { return int64(r.level) }},
	{Name: "block", Int: func(r counterRow) int64 { return r.block }},
	{Name: "n", Int: func(r counterRow) int64 { return r.n }},
}

const counterUpsert = `INSERT INTO payment_counters (tenant, kind, status, level, block, shard, n)
SELECT c.tenant, c.kind, c.status, c.level, c.block, CAST($2 AS BIGINT), c.n FROM rows($1) AS c WHERE true
ON CONFLICT (tenant, kind, status, level, block, shard) DO UPDATE SET n = payment_counters.n + excluded.n`

// post defers the changes, in the order of the key so that two transactions
// never wait for each other crosswise. Each lane of each node adds to a shard
// of its own: the number of a busy tenant's newest block is hot for nobody.
func (t tally) post(tx *db.Tx, shard int) {
	changes := make([]counterRow, 0, len(t))
	for k, n := range t {
		if n != 0 {
			changes = append(changes, counterRow{k, n})
		}
	}
	if len(changes) == 0 {
		return
	}
	slices.SortFunc(changes, func(a, b counterRow) int {
		return cmp.Or(compareLists(a.listKey, b.listKey), cmp.Compare(a.status, b.status), cmp.Compare(a.level, b.level), cmp.Compare(a.block, b.block))
	})
	tx.Defer(counterUpsert, int64(len(changes)), db.RowsOf(counterColumns, changes), shard)
}
