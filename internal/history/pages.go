package history

import (
	"math"
	"slices"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// Filter selects entries of one list, and a page of them.
type Filter struct {
	From, To time.Time // UTC days, both inclusive; zero: open
	Status   Status
	Offset   int64 // number of newer entries before the page
	Size     int64
}

// Status selects entries by their final status. The zero Status selects all.
type Status struct {
	Finals []string // at most four
	Rest   bool     // select the entries that have none of Finals
}

// A Reader reads one list in one snapshot.
type Reader struct {
	tx    *db.Tx
	list  List
	today int64
	total int64 // number of entries in the list, which is also the last sequence number; set by Bounds
}

// Read returns a reader of a list in tx. It ignores days after now.
func Read(tx *db.Tx, l List, now time.Time) *Reader {
	return &Reader{tx: tx, list: l, today: clock.Day(now.Add(clock.Skew))}
}

const (
	endTotal = `SELECT total FROM payment_ends WHERE tenant = $1 AND kind = $2`
	// A day in the future was begun by a clock that ran ahead. It is ignored until then.
	dayFirst = `SELECT first FROM payment_days WHERE tenant = $1 AND kind = $2 AND day BETWEEN $3 AND $4 ORDER BY day LIMIT 1`
	countAll = `SELECT CAST(COALESCE(sum(total), 0) AS BIGINT) FROM payment_ends`
)

// CountAll returns the number of entries of all lists.
func CountAll(tx *db.Tx) (n int64, err error) {
	_, err = tx.One(countAll, nil, &n)
	return n, err
}

// Total returns the number of entries of a list.
func Total(tx *db.Tx, l List) (n int64, err error) {
	_, err = tx.One(endTotal, []any{l.Tenant, l.Kind}, &n)
	return n, err
}

// Page returns the sequence numbers of a page, newest first, and the number of entries that match the filter. The
// first, a middle and the last page cost the same for any size of the list.
func (r *Reader) Page(f Filter) (seqs []int64, total int64, err error) {
	if len(f.Status.Finals) > 0 {
		return r.pageByStatus(f)
	}
	low, high, err := r.Bounds(f.From, f.To)
	if err != nil || high < low {
		return nil, 0, err
	}
	total = high - low + 1
	top := high - min(f.Offset, total)
	for seq := top; seq >= low && seq > top-f.Size; seq-- {
		seqs = append(seqs, seq)
	}
	return seqs, total, nil
}

// Bounds returns the first and the last sequence number in a range of days. Both days are inclusive, and a zero day
// means no limit. The last number is smaller than the first if there is no entry.
func (r *Reader) Bounds(from, to time.Time) (low, high int64, err error) {
	return r.boundsAnd(from, to)
}

// boundsAnd is Bounds with further queries in the same round trip.
func (r *Reader) boundsAnd(from, to time.Time, besides ...db.Query) (low, high int64, err error) {
	var since, until *int64 // the first sequence number on or after from, and after to
	first := func(into **int64) func(*db.Row) error {
		return func(row *db.Row) error {
			*into = new(int64)
			return row.Scan(*into)
		}
	}
	queries := append(besides, db.Query{SQL: endTotal, Args: []any{r.list.Tenant, r.list.Kind}, Each: func(row *db.Row) error { return row.Scan(&r.total) }})
	if !from.IsZero() {
		queries = append(queries, db.Query{SQL: dayFirst, Args: []any{r.list.Tenant, r.list.Kind, clock.Day(from), r.today}, Each: first(&since)})
	}
	if !to.IsZero() {
		queries = append(queries, db.Query{SQL: dayFirst, Args: []any{r.list.Tenant, r.list.Kind, clock.Day(to) + 1, r.today}, Each: first(&until)})
	}
	if err := r.tx.Gather(queries...); err != nil {
		return 0, 0, err
	}
	low, high = 1, r.total
	if !from.IsZero() {
		low = r.total + 1
		if since != nil {
			low = *since
		}
	}
	if until != nil {
		high = *until - 1
	}
	return low, high, nil
}

// pageByStatus finds the page with the blocks' counts and bits. An entry's rank is its position among the matching
// entries.
func (r *Reader) pageByStatus(f Filter) ([]int64, int64, error) {
	b := &ranks{Reader: r, rest: f.Status.Rest, below: map[blockKey][]block{}}
	for i := range b.finals { // the statement has four parameters for them
		b.finals[i] = f.Status.Finals[min(i, len(f.Status.Finals)-1)]
	}
	counts := map[int64]int64{}
	low, high, err := r.boundsAnd(f.From, f.To, b.counters(topLevel, 0, math.MaxInt64, counts))
	if err != nil || high < low {
		return nil, 0, err
	}
	b.tops = b.blocks(topLevel, 0, blockOf(r.total, topLevel), counts)
	before, err := b.before(low)
	if err != nil {
		return nil, 0, err
	}
	last, err := b.before(high + 1)
	if err != nil {
		return nil, 0, err
	}
	total := last - before
	if f.Offset >= total {
		return nil, total, nil
	}
	last -= f.Offset
	seqs, err := b.between(max(before, last-f.Size), last)
	slices.Reverse(seqs)
	return seqs, total, err
}
