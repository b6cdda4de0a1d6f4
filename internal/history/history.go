// Package history keeps numbered lists that only grow, and answers exact totals and any page at the same cost at any size.
// It knows positions and never money: the owner of an entry stores it next to List and sequence number.
//
// A list has the entries of one tenant and kind. They are numbered 1, 2, 3, ... without a gap, under the lock of the
// list's end. So a position is a number, and the n-th page needs no counting. A row for each day has the number of
// its first entry.
//
// For a filter by status the lists are cut into blocks of three sizes. For each final status, a smallest block has a
// number whose bits are the entries with that status, and a larger block has a count. An entry gets a status once and
// loses it at most once, so transactions only add: adding the bit sets it, in whichever shard. Entries without a
// final status are the rest. No index has the status, so a change of status touches no index.
//
// Files: ends.go numbers new entries; counters.go counts final statuses; pages.go reads a list; blocks.go finds the
// entries of a status by their blocks; check.go compares lists and counters with the table of payments.
//
// Writes run inside a transaction of the entries' owner. It takes the locks with Ends.LockQuery and defers the writes
// with Ends.Defer and Tally.Defer.
package history

import (
	"cmp"

	"github.com/makola/makola/internal/db"
)

// A List identifies a list: the entries of one tenant and kind.
type List struct{ Tenant, Kind string }

func compareLists(a, b List) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Kind, b.Kind))
}

var listColumns = []db.Column[List]{
	{Name: "tenant", Text: func(l List) string { return l.Tenant }},
	{Name: "kind", Text: func(l List) string { return l.Kind }},
}

// Entries in a leaf (their bits must fit an integer with its sign), and how many
// blocks of one level make one of the next.
const (
	leafRows = 60
	fan      = 24
)

// blockRows are the entries in a block of each level.
var blockRows = [...]int64{leafRows, leafRows * fan, leafRows * fan * fan}

// topLevel is the level of the largest blocks.
const topLevel = len(blockRows) - 1

func blockOf(seq int64, level int) int64 { return (seq - 1) / blockRows[level] }
