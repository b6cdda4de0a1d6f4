// Package history numbers lists that only grow, so that exact totals and any page cost the same for any size. It
// stores only positions. The owner of an entry stores the entry itself, with its List and sequence number.
//
// A list has the entries of one tenant and kind. They are numbered 1, 2, 3, ... without a gap, under the lock of the
// list's end. So a number is a position, and the n-th page needs no counting. For each day a row stores the number
// of its first entry.
//
// For filters by status, lists are divided into blocks of three sizes. For each final status, the smallest blocks
// store a number whose bits are the entries with that status, and larger blocks store a count. An entry gets a status
// once and loses it at most once. Transactions therefore only add numbers: adding a bit sets it, in any shard.
// Entries without a final status are the remaining ones. No index contains the status, so a change of status changes
// no index.
//
// Files: ends.go numbers new entries; counters.go counts final statuses; pages.go reads a list; blocks.go finds the
// entries of a status by their blocks; check.go compares lists and counters with the table of payments.
//
// Writes run inside a transaction of the entries' owner. It locks with Ends.LockQuery and defers the writes with
// Ends.Defer and Tally.Defer.
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

// The number of entries in a leaf and of blocks in a block of the next level. The bits of a leaf must fit in a signed
// integer.
const (
	leafRows = 60
	fan      = 24
)

// blockRows is the number of entries in a block of each level.
var blockRows = [...]int64{leafRows, leafRows * fan, leafRows * fan * fan}

// topLevel is the level of the largest blocks.
const topLevel = len(blockRows) - 1

func blockOf(seq int64, level int) int64 { return (seq - 1) / blockRows[level] }
