// Package history keeps numbered lists that only grow, and answers exact totals
// and any page of them in the same time at any size, whatever the filter. It
// knows positions and never money: what an entry is, its owner keeps beside the
// list, List, sequence number and all.
//
// A list is what one tenant has of one kind. Its entries are numbered 1, 2, 3,
// ... without a gap, under the lock of the list's end, so that a position is a
// number and the n-th page needs no counting; a row for each day says with which
// number the day begins. For a filter by status the lists are cut into blocks of
// three sizes. For each final status a smallest block has a number whose bits say
// which of its entries have the status, and a larger block has a count. The
// transactions that change a status keep them by adding: an entry gets a status
// once and loses it at most once, so that adding its bit is setting it, in
// whichever shard. An entry without a final status needs nothing: it is the rest.
// Nothing here is an index on the status, so that a change of it touches no index.
//
// Files: ends.go numbers new entries; counters.go counts final statuses; pages.go
// reads a list; blocks.go finds the entries of a status by their blocks; check.go
// compares lists and counters with the table of payments.
//
// Writes run inside a transaction of the entries' owner, which takes the locks
// with Ends.LockQuery and defers the writes with Ends.Defer and Tally.Defer.
package history

import (
	"cmp"

	"github.com/makola/makola/internal/db"
)

// A List names one list: what a tenant has of one kind.
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
