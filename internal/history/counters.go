package history

import (
	"cmp"
	"slices"

	"github.com/makola/makola/internal/db"
)

// A counterKey identifies one stored number: the bits of a leaf's entries with a final status, or the number of such
// entries in a larger block.
type counterKey struct {
	List
	status string
	level  int
	block  int64
}

// Tally collects the changes of counters in one transaction. A status that is not final must be passed as "", which
// is not counted.
type Tally map[counterKey]int64

// Begins counts a new entry.
func (t Tally) Begins(l List, seq int64, status string) { t.add(l, seq, status, 1) }

// Changes counts an entry whose status changes.
func (t Tally) Changes(l List, seq int64, from, to string) {
	t.add(l, seq, from, -1)
	t.add(l, seq, to, 1)
}

func (t Tally) add(l List, seq int64, status string, n int64) {
	if status == "" {
		return
	}
	for level := range blockRows {
		add := n
		if level == 0 {
			add *= 1 << ((seq - 1) % leafRows)
		}
		t[counterKey{l, status, level, blockOf(seq, level)}] += add
	}
}

// A counterRow is one change in its stored form.
type counterRow struct {
	counterKey
	n int64
}

var counterColumns = []db.Column[counterRow]{
	{Name: "tenant", Text: func(r counterRow) string { return r.Tenant }},
	{Name: "kind", Text: func(r counterRow) string { return r.Kind }},
	{Name: "status", Text: func(r counterRow) string { return r.status }},
	{Name: "level", Int: func(r counterRow) int64 { return int64(r.level) }},
	{Name: "block", Int: func(r counterRow) int64 { return r.block }},
	{Name: "n", Int: func(r counterRow) int64 { return r.n }},
}

const counterUpsert = `INSERT INTO payment_counters (tenant, kind, status, level, block, shard, n)
SELECT c.tenant, c.kind, c.status, c.level, c.block, CAST($2 AS BIGINT), c.n FROM rows($1) AS c WHERE true
ON CONFLICT (tenant, kind, status, level, block, shard) DO UPDATE SET n = payment_counters.n + excluded.n`

// Defer defers the changes. They are in the order of their keys, so that two transactions cannot deadlock. Each group
// commit of each node writes to its own shard. Otherwise they would compete for the counters of a busy tenant's
// newest block.
func (t Tally) Defer(tx *db.Tx, shard int) {
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
		return cmp.Or(compareLists(a.List, b.List), cmp.Compare(a.status, b.status), cmp.Compare(a.level, b.level), cmp.Compare(a.block, b.block))
	})
	tx.Defer(counterUpsert, int64(len(changes)), db.RowsOf(counterColumns, changes), shard)
}
