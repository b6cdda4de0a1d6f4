package figures

import (
	"maps"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
)

// allTenants is the tenant of the sums over all accounts.
const allTenants = ""

// A cell is the subject of one sum.
type cell struct {
	tenant     string
	at         int64 // beginning of the hour or day
	mode, rail string
	kind       book.Kind
	status     book.Status
}

// A sum has the number of payments and their amounts in pesewas.
type sum struct{ n, amount, charges int64 }

// cells are the differences of one table.
type cells map[cell]sum

func (c cells) add(k cell, s sum) {
	has := c[k]
	has = sum{has.n + s.n, has.amount + s.amount, has.charges + s.charges}
	if has == (sum{}) {
		delete(c, k)
		return
	}
	c[k] = has
}

// A difference has the changes of one pass.
type difference struct {
	hours, days cells
	lists       map[list]int64      // the last counted payment
	gone        map[payment]bool    // removed from the open payments, with the counted values
	opened      map[payment]bool    // added to the open payments
	unpaid      map[unpaidKey]int64 // bits that are set or cleared
	since       time.Time           // the first hour that is kept
}

func newDifference(now time.Time) *difference {
	return &difference{hours: cells{}, days: cells{}, lists: map[list]int64{}, gone: map[payment]bool{}, opened: map[payment]bool{}, unpaid: map[unpaidKey]int64{}, since: firstHour(now)}
}

// firstHour returns the first hour whose figures are kept.
func firstHour(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(-KeepHours) }

// count adds a payment if n is 1, and removes it if n is -1.
func (d *difference) count(p payment, n int64) {
	s := sum{n, n * p.amount, n * p.charges}
	for _, tenant := range []string{p.tenant, allTenants} {
		k := cell{tenant, db.Micros(p.at.Truncate(24 * time.Hour)), p.mode, p.rail, p.kind, p.status}
		d.days.add(k, s)
		if hour := p.at.Truncate(time.Hour); !hour.Before(d.since) {
			k.at = db.Micros(hour)
			d.hours.add(k, s)
		}
	}
	if p.unpaid() {
		d.unpaid[p.unpaidKey()] += n * p.bit()
	}
}

// begins counts a payment for the first time.
func (d *difference) begins(p payment) {
	d.count(p, 1)
	d.lists[p.list] = max(d.lists[p.list], p.seq)
	if p.open() {
		d.opened[p] = true
	}
}

// changes counts a payment whose status or rail has changed.
func (d *difference) changes(c change) {
	now := c.now()
	d.count(c.was, -1)
	d.count(now, 1)
	if c.was.open() {
		d.gone[c.was] = true
	}
	if now.open() {
		d.opened[now] = true
	}
}

type cellRow struct {
	cell
	sum
}

var cellColumns = []db.Column[cellRow]{
	{Name: "tenant", Text: func(r cellRow) string { return r.tenant }},
	{Name: "at", Int: func(r cellRow) int64 { return r.at }},
	{Name: "mode", Text: func(r cellRow) string { return r.mode }},
	{Name: "kind", Text: func(r cellRow) string { return string(r.kind) }},
	{Name: "status", Text: func(r cellRow) string { return string(r.status) }},
	{Name: "rail", Text: func(r cellRow) string { return r.rail }},
	{Name: "n", Int: func(r cellRow) int64 { return r.n }},
	{Name: "amount", Int: func(r cellRow) int64 { return r.amount }},
	{Name: "charges", Int: func(r cellRow) int64 { return r.charges }},
}

var paymentColumns = []db.Column[payment]{
	{Name: "tenant", Text: func(p payment) string { return p.tenant }},
	{Name: "kind", Text: func(p payment) string { return string(p.kind) }},
	{Name: "seq", Int: func(p payment) int64 { return p.seq }},
	{Name: "mode", Text: func(p payment) string { return p.mode }},
	{Name: "status", Text: func(p payment) string { return string(p.status) }},
	{Name: "rail", Text: func(p payment) string { return p.rail }},
	{Name: "amount", Int: func(p payment) int64 { return p.amount }},
	{Name: "charges", Int: func(p payment) int64 { return p.charges }},
	{Name: "created_at", Time: func(p payment) time.Time { return p.at }},
}

type unpaidRow struct {
	unpaidKey
	bits int64
}

var unpaidColumns = []db.Column[unpaidRow]{
	{Name: "tenant", Text: func(r unpaidRow) string { return r.tenant }},
	{Name: "status", Text: func(r unpaidRow) string { return string(r.status) }},
	{Name: "block", Int: func(r unpaidRow) int64 { return r.block }},
	{Name: "bits", Int: func(r unpaidRow) int64 { return r.bits }},
}

type listRow struct {
	list
	seq int64
}

var listColumns = []db.Column[listRow]{
	{Name: "tenant", Text: func(r listRow) string { return r.tenant }},
	{Name: "kind", Text: func(r listRow) string { return string(r.kind) }},
	{Name: "seq", Int: func(r listRow) int64 { return r.seq }},
}

// A row is inserted with zero and changed afterwards. A constraint forbids negative values, even in a row that ON
// CONFLICT drops.
const (
	hoursTouch = `INSERT INTO figures_hours (tenant, at, mode, kind, status, rail, n, amount, charges)
SELECT r.tenant, r.at, r.mode, r.kind, r.status, r.rail, 0, 0, 0 FROM rows($1) AS r WHERE true ON CONFLICT (tenant, at, mode, kind, status, rail) DO NOTHING`
	hoursAdd = `UPDATE figures_hours SET n = figures_hours.n + r.n, amount = figures_hours.amount + r.amount, charges = figures_hours.charges + r.charges
FROM rows($1) AS r WHERE figures_hours.tenant IN (r.tenant) AND figures_hours.at = r.at AND figures_hours.mode = r.mode AND figures_hours.kind = r.kind
AND figures_hours.status = r.status AND figures_hours.rail = r.rail`
	daysTouch = `INSERT INTO figures_days (tenant, at, mode, kind, status, rail, n, amount, charges)
SELECT r.tenant, r.at, r.mode, r.kind, r.status, r.rail, 0, 0, 0 FROM rows($1) AS r WHERE true ON CONFLICT (tenant, at, mode, kind, status, rail) DO NOTHING`
	daysAdd = `UPDATE figures_days SET n = figures_days.n + r.n, amount = figures_days.amount + r.amount, charges = figures_days.charges + r.charges
FROM rows($1) AS r WHERE figures_days.tenant IN (r.tenant) AND figures_days.at = r.at AND figures_days.mode = r.mode AND figures_days.kind = r.kind
AND figures_days.status = r.status AND figures_days.rail = r.rail`
	hoursPrune = `DELETE FROM figures_hours WHERE at < $1`

	listsCounted = `INSERT INTO figures_lists (tenant, kind, seq) SELECT r.tenant, r.kind, r.seq FROM rows($1) AS r WHERE true
ON CONFLICT (tenant, kind) DO UPDATE SET seq = excluded.seq`

	openGone = `DELETE FROM figures_open WHERE (tenant, kind, seq) IN (SELECT r.tenant, r.kind, r.seq FROM rows($1) AS r)`

	unpaidTouch = `INSERT INTO figures_unpaid (tenant, status, block, bits) SELECT r.tenant, r.status, r.block, 0 FROM rows($1) AS r WHERE true
ON CONFLICT (tenant, status, block) DO NOTHING`
	unpaidAdd = `UPDATE figures_unpaid SET bits = figures_unpaid.bits + r.bits FROM rows($1) AS r
WHERE figures_unpaid.tenant IN (r.tenant) AND figures_unpaid.status = r.status AND figures_unpaid.block = r.block`
)

// write defers the difference.
func (d *difference) write(tx *db.Tx) {
	tx.Defer(hoursPrune, -1, db.Micros(d.since))
	deferSums(tx, hoursTouch, hoursAdd, cellColumns, rowsOf(d.hours, func(k cell, s sum) cellRow { return cellRow{k, s} }))
	deferSums(tx, daysTouch, daysAdd, cellColumns, rowsOf(d.days, func(k cell, s sum) cellRow { return cellRow{k, s} }))
	maps.DeleteFunc(d.unpaid, func(_ unpaidKey, bits int64) bool { return bits == 0 })
	deferSums(tx, unpaidTouch, unpaidAdd, unpaidColumns, rowsOf(d.unpaid, func(k unpaidKey, bits int64) unpaidRow { return unpaidRow{k, bits} }))
	if lists := rowsOf(d.lists, func(l list, seq int64) listRow { return listRow{l, seq} }); len(lists) > 0 {
		tx.Defer(listsCounted, int64(len(lists)), db.RowsOf(listColumns, lists))
	}
	if gone := rowsOf(d.gone, func(p payment, _ bool) payment { return p }); len(gone) > 0 {
		tx.Defer(openGone, int64(len(gone)), db.RowsOf(paymentColumns, gone))
	}
	db.Insert(tx, "figures_open", paymentColumns, rowsOf(d.opened, func(p payment, _ bool) payment { return p }))
}

func rowsOf[K comparable, V, R any](m map[K]V, row func(K, V) R) []R {
	rows := make([]R, 0, len(m))
	for k, v := range m {
		rows = append(rows, row(k, v))
	}
	return rows
}

// deferSums makes the rows that are missing and adds the differences.
func deferSums[R any](tx *db.Tx, touch, add string, columns []db.Column[R], rows []R) {
	if len(rows) == 0 {
		return
	}
	set := db.RowsOf(columns, rows)
	tx.Defer(touch, -1, set)
	tx.Defer(add, int64(len(rows)), set)
}
