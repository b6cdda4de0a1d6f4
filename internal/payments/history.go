package payments

import (
	"context"
	"math"
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
		bad.Add("status", "must be one of "+strings.Join(statusWords, ", ")+".")
	}
	if f.Page < 1 {
		bad.Add("page", "must be at least 1.")
	}
	if f.Size < 1 || f.Size > MaxPageSize {
		bad.Add("page_size", "must be between 1 and 100.")
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.To.Before(f.From) {
		bad.Add("to", "must not be before from.")
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
	err := p.db.ReadWhole(ctx, func(tx *db.Tx) error {
		var err error
		if f.Reference != "" {
			page.Rows, page.Total, err = byReference(tx, tenant, f)
			return err
		}
		l := &list{tx: tx, key: listKey{tenant, f.Kind}}
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
	total int64 // payments in it, and the last seq
}

const (
	endTotal  = `SELECT total FROM payment_ends WHERE tenant = $1 AND kind = $2`
	dayFirst  = `SELECT first FROM payment_days WHERE tenant = $1 AND kind = $2 AND day >= $3 ORDER BY day LIMIT 1`
	historyOf = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq BETWEEN $3 AND $4 ORDER BY seq DESC`
)

// page answers a page and the total of what the filter lets through.
func (l *list) page(f Filter) ([]Payment, int64, error) {
	low, high, err := l.bounds(f)
	if err != nil || high < low {
		return nil, 0, err
	}
	if f.Status != "" {
		return l.pageByStatus(f, low, high)
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

// bounds turns the days of a filter into the first and the last seq.
func (l *list) bounds(f Filter) (low, high int64, err error) {
	var from, until *int64 // the first seq on or after From, and after To
	first := func(into **int64) func(*db.Row) error {
		return func(r *db.Row) error {
			*into = new(int64)
			return r.Scan(*into)
		}
	}
	queries := []db.Query{{SQL: endTotal, Args: []any{l.key.tenant, l.key.kind}, Each: func(r *db.Row) error { return r.Scan(&l.total) }}}
	if !f.From.IsZero() {
		queries = append(queries, db.Query{SQL: dayFirst, Args: []any{l.key.tenant, l.key.kind, day(f.From)}, Each: first(&from)})
	}
	if !f.To.IsZero() {
		queries = append(queries, db.Query{SQL: dayFirst, Args: []any{l.key.tenant, l.key.kind, day(f.To) + 1}, Each: first(&until)})
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

// pageByStatus finds the page by the blocks' counts: a payment with the status
// has a rank among those with it, counted from the list's beginning.
func (l *list) pageByStatus(f Filter, low, high int64) ([]Payment, int64, error) {
	status, ok := storedStatus(f.Kind, f.Status)
	if !ok {
		return nil, 0, nil
	}
	r := &ranks{list: l, status: status, leaves: map[int64][]block{}}
	if err := r.loadTops(); err != nil {
		return nil, 0, err
	}
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
	rows, err := r.rows(max(before, last-int64(f.Size)), last)
	return rows, total, err
}

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

// A block is a run of seq and how many payments in it have the status.
type block struct{ number, n int64 }

// ranks counts the payments of a list that have one status.
type ranks struct {
	*list
	status Status
	tops   []block           // in order
	leaves map[int64][]block // of each top that was looked into, in order
}

// finals are the counted statuses of which one count is made: one, or all of
// them when the open ones are the rest.
func (r *ranks) finals() []string {
	if !r.status.Open() {
		return []string{string(r.status)}
	}
	return []string{string(StatusSuccess), string(StatusFailed), string(StatusDeclined), string(StatusInvalid)}
}

const (
	countTops = `SELECT block, CAST(sum(n) AS INTEGER) FROM payment_counters
WHERE tenant = $1 AND kind = $2 AND level = 1 AND status IN (SELECT value FROM texts($3))
GROUP BY block ORDER BY block`

	countLeaves = `SELECT c.block, CAST(sum(c.n) AS INTEGER) FROM ints($4)
JOIN payment_counters AS c ON c.block BETWEEN ints.value * 128 AND ints.value * 128 + 127
WHERE c.tenant = $1 AND c.kind = $2 AND c.level = 0 AND c.status IN (SELECT value FROM texts($3))
GROUP BY c.block ORDER BY c.block`

	countRows = `SELECT count(*) FROM payments
WHERE tenant = $1 AND kind = $2 AND seq BETWEEN $3 AND $4 AND status IN (SELECT value FROM texts($5))`
)

func (r *ranks) loadTops() error {
	var counted []block
	err := r.tx.Query(countTops, []any{r.key.tenant, r.key.kind, r.finals()}, scanBlocks(&counted))
	if err != nil {
		return err
	}
	r.tops = r.matching(counted, 1, 0, blockOf(r.total, 1))
	return nil
}

func scanBlocks(into *[]block) func(*db.Row) error {
	return func(row *db.Row) error {
		var b block
		err := row.Scan(&b.number, &b.n)
		*into = append(*into, b)
		return err
	}
}

// matching turns counts of final payments in the blocks first to last into
// counts of those with the status.
func (r *ranks) matching(counted []block, level int, first, last int64) []block {
	if !r.status.Open() {
		return counted
	}
	open := make([]block, 0, last-first+1)
	for number := first; number <= last; number++ {
		width := min(r.total, (number+1)*blockRows[level]) - number*blockRows[level]
		for len(counted) > 0 && counted[0].number <= number {
			width -= counted[0].n
			counted = counted[1:]
		}
		open = append(open, block{number, width})
	}
	return open
}

// look loads the leaves of some tops.
func (r *ranks) look(tops []int64) error {
	tops = slices.DeleteFunc(tops, func(top int64) bool { _, loaded := r.leaves[top]; return loaded })
	if len(tops) == 0 {
		return nil
	}
	var counted []block
	err := r.tx.Query(countLeaves, []any{r.key.tenant, r.key.kind, r.finals(), tops}, scanBlocks(&counted))
	if err != nil {
		return err
	}
	const leaves = topRows / leafRows
	for _, top := range tops {
		var own []block
		for _, b := range counted {
			if b.number/leaves == top {
				own = append(own, b)
			}
		}
		r.leaves[top] = r.matching(own, 0, top*leaves, min(blockOf(r.total, 0), top*leaves+leaves-1))
	}
	return nil
}

// before counts the payments with the status and a smaller seq.
func (r *ranks) before(seq int64) (n int64, err error) {
	if seq <= 1 {
		return 0, nil
	}
	top, leaf := blockOf(seq, 1), blockOf(seq, 0)
	for _, b := range r.tops {
		if b.number < top {
			n += b.n
		}
	}
	if top*topRows+1 == seq {
		return n, nil
	}
	if seq == r.total+1 {
		for _, b := range r.tops {
			if b.number == top {
				n += b.n
			}
		}
		return n, nil
	}
	if err := r.look([]int64{top}); err != nil {
		return 0, err
	}
	for _, b := range r.leaves[top] {
		if b.number < leaf {
			n += b.n
		}
	}
	if start := leaf*leafRows + 1; start < seq {
		var part int64
		_, err = r.tx.One(countRows, []any{r.key.tenant, r.key.kind, start, seq - 1, r.stored()}, &part)
		n += part
	}
	return n, err
}

// stored are the statuses of the rows that are looked for.
func (r *ranks) stored() []string {
	if r.status.Open() {
		return []string{string(StatusWaiting), string(StatusPending)}
	}
	return []string{string(r.status)}
}

type span struct{ first, last int64 }

var spanColumns = []db.Column[span]{
	{Name: "first", Int: func(s span) int64 { return s.first }},
	{Name: "last", Int: func(s span) int64 { return s.last }},
}

const historyInSpans = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq IN (
  SELECT p.seq FROM rows($3) AS s JOIN payments AS p ON p.seq BETWEEN s.first AND s.last
  WHERE p.tenant = $1 AND p.kind = $2 AND p.status IN (SELECT value FROM texts($4))
  ORDER BY p.seq DESC LIMIT $5 OFFSET $6)
ORDER BY seq DESC`

// rows reads the payments whose ranks are above low and not above high, from
// the few blocks that hold them.
func (r *ranks) rows(low, high int64) ([]Payment, error) {
	if high <= low {
		return nil, nil
	}
	var tops []int64
	var passed, start int64 // start: the rank below the first of those tops
	for _, b := range r.tops {
		if b.n > 0 && passed < high && passed+b.n > low {
			if len(tops) == 0 {
				start = passed
			}
			tops = append(tops, b.number)
		}
		passed += b.n
	}
	if err := r.look(slices.Clone(tops)); err != nil {
		return nil, err
	}
	var spans []span
	var end int64 // the rank of the last payment in those spans
	passed = start
	for _, top := range tops {
		for _, leaf := range r.leaves[top] {
			if leaf.n > 0 && passed < high && passed+leaf.n > low {
				first := leaf.number*leafRows + 1
				if n := len(spans); n > 0 && spans[n-1].last+1 == first {
					spans[n-1].last = first + leafRows - 1
				} else {
					spans = append(spans, span{first, first + leafRows - 1})
				}
				end = passed + leaf.n
			}
			passed += leaf.n
		}
	}
	var rows []Payment
	err := r.tx.Query(historyInSpans, []any{r.key.tenant, r.key.kind, db.RowsOf(spanColumns, spans), r.stored(), high - low, end - high}, appendPayment(&rows))
	return rows, err
}
