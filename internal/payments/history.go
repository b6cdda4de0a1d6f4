package payments

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Filter chooses payments of one tenant's history.
type Filter struct {
	Kind      Kind
	Status    string    // a word as customers read it (Payment.Word); empty: all
	Reference string    // exact; empty: all
	From, To  time.Time // UTC days, both inclusive; zero: open
	Page      int       // from 1; 0 means 1
	Size      int       // 1 to MaxPageSize; 0 means DefaultPageSize
}

// Page sizes of a history.
const (
	DefaultPageSize = 15
	MaxPageSize     = 100
)

// Page is one page of a history, newest first.
type Page struct {
	Rows     []Payment
	Total    int64
	Page     int
	Size     int
	LastPage int64 // at least 1
	From, To int64 // positions of the first and last row, from 1; 0 when there are none
}

// statusWords are the words that a history can be filtered by.
var statusWords = []string{"success", "submitted", "pending", "failed", "invalid", "declined"}

// check fills in the defaults and refuses what no history can answer.
func (f *Filter) check() error {
	if f.Page == 0 {
		f.Page = 1
	}
	if f.Size == 0 {
		f.Size = DefaultPageSize
	}
	var bad problem.Fields
	if f.Status != "" && !slices.Contains(statusWords, f.Status) {
		bad.Add("status", "must be one of "+strings.Join(statusWords, ", "))
	}
	if f.Page < 1 {
		bad.Add("page", "must be at least 1")
	}
	if f.Size < 1 || f.Size > MaxPageSize {
		bad.Add("page_size", "must be between 1 and 100")
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.To.Before(f.From) {
		bad.Add("to", "must not be before from")
	}
	return bad.Err()
}

// History answers one page of a tenant's payments of one kind, with the exact
// total. The first, a middle and the last page cost the same at any size.
func (p *Payments) History(ctx context.Context, tenant string, f Filter) (Page, error) {
	if err := f.check(); err != nil {
		return Page{}, err
	}
	page := Page{Page: f.Page, Size: f.Size, LastPage: 1}
	err := p.db.ReadSnapshot(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		var err error
		if f.Reference != "" {
			page.Rows, page.Total, err = byReference(tx, tenant, f)
			return err
		}
		l := &list{tx: tx, key: listKey{tenant, f.Kind}, today: day(p.clock.Now().Add(clockSkew))}
		page.Rows, page.Total, err = l.page(f)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	if page.Total > 0 {
		page.LastPage = (page.Total + int64(f.Size) - 1) / int64(f.Size)
	}
	if n := int64(len(page.Rows)); n > 0 {
		page.From = f.offset() + 1
		page.To = f.offset() + n
	}
	return page, nil
}

// offset is how many newer payments come before the page.
func (f Filter) offset() int64 {
	if int64(f.Page-1) > math.MaxInt64/MaxPageSize {
		return math.MaxInt64
	}
	return int64(f.Page-1) * int64(f.Size)
}

const historyByReference = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind = $2 AND reference = $3`

// byReference answers the at most one payment that has the reference.
func byReference(tx *db.Tx, tenant string, f Filter) ([]Payment, int64, error) {
	var rows []Payment
	err := tx.Query(historyByReference, []any{tenant, f.Kind, f.Reference}, appendPayment(&rows))
	if err != nil || len(rows) == 0 {
		return nil, 0, err
	}
	at := day(rows[0].CreatedAt)
	switch {
	case f.Status != "" && rows[0].Word() != f.Status:
		return nil, 0, nil
	case !f.From.IsZero() && at < day(f.From), !f.To.IsZero() && at > day(f.To):
		return nil, 0, nil
	case f.Page > 1:
		return nil, 1, nil
	}
	return rows, 1, nil
}

func appendPayment(rows *[]Payment) func(*db.Row) error {
	return func(r *db.Row) error {
		pay, err := scanPayment(r)
		*rows = append(*rows, pay)
		return err
	}
}

// A list is one list read inside one snapshot.
type list struct {
	tx    *db.Tx
	key   listKey
	today int64
	total int64 // payments in it, and the last seq
}

const (
	endTotal = `SELECT total FROM payment_ends WHERE tenant = $1 AND kind = $2`
	// A day to come began by a clock that ran ahead, and means nothing yet.
	dayFirst  = `SELECT first FROM payment_days WHERE tenant = $1 AND kind = $2 AND day BETWEEN $3 AND $4 ORDER BY day LIMIT 1`
	historyOf = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq BETWEEN $3 AND $4 ORDER BY seq DESC`
)

const countAll = `SELECT CAST(COALESCE(sum(total), 0) AS BIGINT) FROM payment_ends`

// Count says how many payments there are, of all tenants and kinds.
func (p *Payments) Count(ctx context.Context) (n int64, err error) {
	err = p.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(countAll, nil, &n)
		return err
	})
	return n, err
}

// page answers a page and the total of what the filter lets through.
func (l *list) page(f Filter) ([]Payment, int64, error) {
	if f.Status != "" {
		return l.pageByStatus(f)
	}
	low, high, err := l.bounds(f)
	if err != nil || high < low {
		return nil, 0, err
	}
	total := high - low + 1
	top := high - min(f.offset(), total)
	if top < low {
		return nil, total, nil
	}
	var rows []Payment
	err = l.tx.Query(historyOf, []any{l.key.tenant, l.key.kind, max(low, top-int64(f.Size)+1), top}, appendPayment(&rows))
	return rows, total, err
}

// bounds turns the days of a filter into the first and the last seq; besides it
// asks what else is needed, in the same exchange.
func (l *list) bounds(f Filter, besides ...db.Query) (low, high int64, err error) {
	var from, until *int64 // the first seq on or after From, and after To
	first := func(into **int64) func(*db.Row) error {
		return func(r *db.Row) error {
			*into = new(int64)
			return r.Scan(*into)
		}
	}
	queries := append(besides, db.Query{SQL: endTotal, Args: []any{l.key.tenant, l.key.kind}, Each: func(r *db.Row) error { return r.Scan(&l.total) }})
	if !f.From.IsZero() {
		queries = append(queries, db.Query{SQL: dayFirst, Args: []any{l.key.tenant, l.key.kind, day(f.From), l.today}, Each: first(&from)})
	}
	if !f.To.IsZero() {
		queries = append(queries, db.Query{SQL: dayFirst, Args: []any{l.key.tenant, l.key.kind, day(f.To) + 1, l.today}, Each: first(&until)})
	}
	if err := l.tx.Gather(queries...); err != nil {
		return 0, 0, err
	}
	low, high = 1, l.total
	if !f.From.IsZero() {
		low = l.total + 1
		if from != nil {
			low = *from
		}
	}
	if until != nil {
		high = *until - 1
	}
	return low, high, nil
}

// pageByStatus finds the page by the blocks' counts and bits: a payment with the
// status has a rank among those with it, from the list's beginning.
func (l *list) pageByStatus(f Filter) ([]Payment, int64, error) {
	status, ok := storedStatus(f.Kind, f.Status)
	if !ok {
		return nil, 0, nil
	}
	r := &ranks{list: l, statuses: finals(status), open: status.Open(), below: map[blockKey][]block{}}
	counts := map[int64]int64{}
	low, high, err := l.bounds(f, r.counters(topLevel, 0, math.MaxInt64, counts))
	if err != nil || high < low {
		return nil, 0, err
	}
	r.tops = r.blocks(topLevel, 0, blockOf(l.total, topLevel), counts)
	before, err := r.before(low)
	if err != nil {
		return nil, 0, err
	}
	last, err := r.before(high + 1)
	if err != nil {
		return nil, 0, err
	}
	total := last - before
	if f.offset() >= total {
		return nil, total, nil
	}
	last -= f.offset()
	seqs, err := r.between(max(before, last-int64(f.Size)), last)
	if err != nil {
		return nil, 0, err
	}
	var rows []Payment
	err = l.tx.Query(historyAt, []any{l.key.tenant, l.key.kind, seqs}, appendPayment(&rows))
	return rows, total, err
}

const historyAt = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq IN (SELECT value FROM ints($3)) ORDER BY seq DESC`

// storedStatus is the status behind a word; an open payment has one word by
// its kind. ok is false when no payment of the kind ever reads so.
func storedStatus(k Kind, word string) (s Status, ok bool) {
	open := "pending"
	if k == KindTopUp || k == KindBundle {
		open = "submitted"
	}
	switch {
	case word == open:
		return StatusPending, true
	case word == "pending" || word == "submitted":
		return "", false
	}
	return Status(word), true
}

// finals are the counted statuses that a status is made of: itself, or for an
// open one all of them, of which it is the rest.
func finals(s Status) [4]Status {
	if s.Open() {
		return [4]Status{StatusSuccess, StatusFailed, StatusDeclined, StatusInvalid}
	}
	return [4]Status{s, s, s, s}
}

// A block is a run of seq and how many payments in it have the status; which,
// where it is a leaf.
type block struct{ number, n, bits int64 }

// A blockKey names a block.
type blockKey struct {
	level  int
	number int64
}

// ranks counts the payments of a list that have one status.
type ranks struct {
	*list
	statuses [4]Status
	open     bool                 // what counts is the rest
	tops     []block              // in order; those without are left out
	below    map[blockKey][]block // the parts of each block that was looked into, alike
}

const countersOf = `SELECT block, n FROM payment_counters
WHERE tenant = $1 AND kind = $2 AND status IN ($3, $4, $5, $6) AND level = $7 AND block BETWEEN $8 AND $9`

// counters is the query for what is stored of some blocks of one level.
func (r *ranks) counters(level int, first, last int64, into map[int64]int64) db.Query {
	s := r.statuses
	return db.Query{SQL: countersOf, Args: []any{r.key.tenant, r.key.kind, s[0], s[1], s[2], s[3], level, first, last}, Each: func(row *db.Row) error {
		var number, n int64
		err := row.Scan(&number, &n)
		into[number] += n
		return err
	}}
}

// blocks makes the blocks that have payments with the status of what is stored.
func (r *ranks) blocks(level int, first, last int64, stored map[int64]int64) []block {
	var found []block
	for number := first; number <= last; number++ {
		b := block{number: number, n: stored[number]}
		width := max(0, min(r.total-number*blockRows[level], blockRows[level]))
		if level == 0 {
			if b.bits = b.n; r.open {
				b.bits = bitsBelow(width) &^ b.bits
			}
			b.n = int64(bits.OnesCount64(uint64(b.bits)))
		} else if r.open {
			b.n = width - b.n
		}
		if b.n > 0 {
			found = append(found, b)
		}
	}
	return found
}

// bitsBelow has the bits of the first n payments of a leaf.
func bitsBelow(n int64) int64 { return 1<<n - 1 }

// look loads the parts of some blocks of one level, given in order.
func (r *ranks) look(level int, numbers []int64) error {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool {
		_, loaded := r.below[blockKey{level, n}]
		return loaded
	})
	stored := map[int64]int64{}
	var queries []db.Query
	for i := 0; i < len(numbers); {
		// Blocks in a row are one query. Of a final status, which has numbers
		// only where it occurs, so are blocks far apart.
		last := i
		for last+1 < len(numbers) && (!r.open || numbers[last+1] == numbers[last]+1) {
			last++
		}
		queries = append(queries, r.counters(level-1, numbers[i]*fan, (numbers[last]+1)*fan-1, stored))
		i = last + 1
	}
	if err := r.tx.Gather(queries...); err != nil {
		return err
	}
	for _, n := range numbers {
		r.below[blockKey{level, n}] = r.blocks(level-1, n*fan, (n+1)*fan-1, stored)
	}
	return nil
}

// before counts the payments with the status and a smaller seq.
func (r *ranks) before(seq int64) (n int64, err error) {
	parts := r.tops
	for level := topLevel; ; level-- {
		at := blockOf(seq, level)
		var here block
		for _, b := range parts {
			switch {
			case b.number < at || seq > r.total:
				n += b.n
			case b.number == at:
				here = b
			}
		}
		passed := seq - 1 - at*blockRows[level] // payments of the block before seq
		switch {
		case here.n == 0 || passed == 0:
			return n, nil
		case level == 0:
			return n + int64(bits.OnesCount64(uint64(here.bits&bitsBelow(passed)))), nil
		}
		if err := r.look(level, []int64{at}); err != nil {
			return 0, err
		}
		parts = r.below[blockKey{level, at}]
	}
}

// between finds the seq of the payments whose ranks are above low and not above
// high.
func (r *ranks) between(low, high int64) ([]int64, error) {
	parts, rank := r.tops, int64(0)
	for level := topLevel; ; level-- {
		// Keep the blocks that reach into the ranks.
		var reach []block
		passed := rank
		for _, b := range parts {
			if passed < high && passed+b.n > low {
				if len(reach) == 0 {
					rank = passed
				}
				reach = append(reach, b)
			}
			passed += b.n
		}
		if level == 0 {
			return ranked(reach, rank, low, high), nil
		}
		numbers := make([]int64, len(reach))
		for i, b := range reach {
			numbers[i] = b.number
		}
		if err := r.look(level, numbers); err != nil {
			return nil, err
		}
		parts = nil
		for _, n := range numbers {
			parts = append(parts, r.below[blockKey{level, n}]...)
		}
	}
}

// ranked takes the seq of the ranks above low and not above high out of leaves,
// of which the first begins behind rank.
func ranked(leaves []block, rank, low, high int64) []int64 {
	seqs := make([]int64, 0, high-low)
	for _, leaf := range leaves {
		for is := uint64(leaf.bits); is != 0; is &= is - 1 {
			if rank++; rank > low && rank <= high {
				seqs = append(seqs, leaf.number*leafRows+int64(bits.TrailingZeros64(is))+1)
			}
		}
	}
	return seqs
}
