package history

import (
	"slices"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// Ends has the ends of the lists to which one transaction appends. The transaction adds the lists with Add, locks
// them with LockQuery, and numbers each new entry with Append. It must call Defer before it inserts the entries.
type Ends map[List]*end

type end struct {
	total  int64
	lastAt time.Time // latest time of an entry
	stored bool      // the list has a stored row
	days   []dayRow
	// past has days before the day of lastAt. They may have a row already.
	past []dayRow
}

type dayRow struct {
	List
	day, first int64
}

// Add adds a list to which the transaction appends.
func (e Ends) Add(l List) { e[l] = &end{} }

// The locks are taken in the order of the key, so that two transactions cannot deadlock.
const endsLock = `SELECT tenant, kind, total, last_at FROM payment_ends
WHERE (tenant, kind) IN (SELECT k.tenant, k.kind FROM rows($1) AS k)
ORDER BY tenant, kind FOR UPDATE`

// LockQuery returns the query that reads and locks the ends. It must run after the locks of the wallets.
func (e Ends) LockQuery() db.Query {
	return db.Query{SQL: endsLock, Args: []any{db.RowsOf(listColumns, e.lists())}, Each: func(r *db.Row) error {
		var l List
		read := end{stored: true}
		if err := r.Scan(&l.Tenant, &l.Kind, &read.total, &read.lastAt); err != nil {
			return err
		}
		e[l] = &read
		return nil
	}}
}

func (e Ends) lists() []List {
	lists := make([]List, 0, len(e))
	for l := range e {
		lists = append(lists, l)
	}
	slices.SortFunc(lists, compareLists)
	return lists
}

// Append returns the number and the time of a new entry. The time is at, but never before the time of the list's last entry.
// Requests overtake each other, and the clocks of nodes differ slightly. If the last entry is later by more than clock.Skew, some
// clock ran far ahead. The new entry then keeps its own time.
func (e Ends) Append(l List, at time.Time) (seq int64, placed time.Time) {
	end := e[l]
	if ahead := end.lastAt.Sub(at); ahead > 0 && ahead <= clock.Skew {
		at = end.lastAt
	}
	switch d, last := clock.Day(at), clock.Day(end.lastAt); {
	case end.total == 0 || d > last:
		end.days = append(end.days, dayRow{l, d, end.total + 1})
	case d < last:
		end.past = append(end.past, dayRow{l, d, end.total + 1})
	}
	end.total++
	if at.After(end.lastAt) {
		end.lastAt = at
	}
	return end.total, at
}

// An endRow is an end in its stored form.
type endRow struct {
	List
	*end
}

var endColumns = []db.Column[endRow]{
	{Name: "tenant", Text: func(r endRow) string { return r.Tenant }},
	{Name: "kind", Text: func(r endRow) string { return r.Kind }},
	{Name: "total", Int: func(r endRow) int64 { return r.total }},
	{Name: "last_at", Time: func(r endRow) time.Time { return r.lastAt }},
}

var dayColumns = []db.Column[dayRow]{
	{Name: "tenant", Text: func(r dayRow) string { return r.Tenant }},
	{Name: "kind", Text: func(r dayRow) string { return r.Kind }},
	{Name: "day", Int: func(r dayRow) int64 { return r.day }},
	{Name: "first", Int: func(r dayRow) int64 { return r.first }},
}

const (
	endsUpdate = `UPDATE payment_ends SET total = e.total, last_at = e.last_at FROM rows($1) AS e
WHERE payment_ends.tenant = e.tenant AND payment_ends.kind = e.kind`

	// Two nodes may append a list's first entry at once. The second then finds an existing row, fails its guard and
	// runs again.
	endsInsert = `INSERT INTO payment_ends (tenant, kind, total, last_at)
SELECT e.tenant, e.kind, e.total, e.last_at FROM rows($1) AS e WHERE true ON CONFLICT (tenant, kind) DO NOTHING`

	// The row of an existing day stays unchanged.
	pastDays = `INSERT INTO payment_days (tenant, kind, day, first)
SELECT d.tenant, d.kind, d.day, min(d.first) FROM rows($1) AS d WHERE true GROUP BY d.tenant, d.kind, d.day ON CONFLICT (tenant, kind, day) DO NOTHING`
)

// Defer defers the writes of the changed ends.
func (e Ends) Defer(tx *db.Tx) {
	var known, fresh []endRow
	var days, past []dayRow
	for _, l := range e.lists() {
		switch end := e[l]; {
		case end.stored:
			known = append(known, endRow{l, end})
		case end.total > 0:
			fresh = append(fresh, endRow{l, end})
		}
		days, past = append(days, e[l].days...), append(past, e[l].past...)
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
