package batch

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// overlapTime is how far back earlier batches and payouts to the same account are searched.
const overlapTime = 30 * 24 * time.Hour

// Overlap counts the rows of a draft that an earlier batch has paid or is about to pay.
type Overlap struct {
	ID, Name  string
	StartedAt time.Time // zero: the batch waits for an approval
	Rows      int
	Amount    money.Pesewas
}

const (
	// A row counts as paid before if another batch has a row with the same account and amount that is paid or may
	// still be paid. A failed payout does not count.
	paidBefore = ` FROM batch_rows r
JOIN batch_rows o ON o.tenant = r.tenant AND o.account = r.account AND o.bank = r.bank AND o.amount = r.amount AND o.batch <> r.batch AND o.state IN ('ready', 'accepted')
JOIN batches b ON b.id = o.batch AND b.requested_at >= $2
LEFT JOIN payments p ON p.id = o.payment
WHERE r.batch = $1 AND r.state = 'ready' AND (o.state = 'ready' AND b.status IN ('requested', 'running', 'paused') OR o.state = 'accepted' AND p.status <> 'failed')`

	selectOverlaps = `SELECT x.id, x.name, x.started_at, count(*), CAST(sum(x.amount) AS INTEGER) FROM (
	SELECT DISTINCT b.id, b.name, b.started_at, r.line, r.amount` + paidBefore + `) AS x GROUP BY x.id, x.name, x.started_at ORDER BY x.id DESC LIMIT 20`

	countOverlap = `SELECT count(*), CAST(COALESCE(sum(x.amount), 0) AS INTEGER) FROM (SELECT DISTINCT r.line, r.amount` + paidBefore + `) AS x`

	overlapLines = `SELECT DISTINCT r.line` + paidBefore + ` ORDER BY r.line`

	dropLines = `UPDATE batch_rows SET state = 'dropped' FROM rows($1) AS r
WHERE batch_rows.batch IN (r.batch) AND batch_rows.line = r.line AND unindexed(batch_rows.state) = 'ready'`
)

// sentSince lists the batches whose rows may be paid before those of another batch. A row becomes a candidate only by
// a request, and this list contains requests.
const sentSince = `SELECT id, requested_at FROM batches WHERE tenant = $1 AND id <> $2 AND requested_at >= $3 AND status IN ('requested', 'running', 'paused', 'finished', 'cancelled')
ORDER BY id`

const sentStates = `SELECT id, status FROM batches WHERE tenant = $1 AND id <> $2 AND requested_at >= $3 AND status IN ('requested', 'running', 'paused', 'finished', 'cancelled')
ORDER BY id`

// overlapKey identifies the state of a batch and of the earlier batches that may have paid its rows.
type overlapKey struct{ tenant, id, others string }

// overlapAge is how long a list of overlaps is cached while the batches are unchanged. A payout that fails changes
// the list.
const overlapAge = 30 * time.Second

// Overlaps lists earlier batches of the last 30 days that have rows of this one, the newest first, at most 20. The list is for people:
// requests and approvals compare the rows again.
func (s *Batches) Overlaps(ctx context.Context, tenant, id string) (list []Overlap, err error) {
	key := overlapKey{tenant: tenant, id: id}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		b, err := one(tx, selectBatch, tenant, id)
		if err != nil {
			return err
		}
		key.others = strconv.FormatInt(b.version, 10)
		return tx.Query(sentStates, []any{tenant, id, s.overlapSince()}, func(r *db.Row) error {
			var other, status string
			err := r.Scan(&other, &status)
			key.others += "\n" + other + " " + status
			return err
		})
	})
	if err != nil || !strings.Contains(key.others, "\n") {
		return nil, err
	}
	list, err = s.overlaps.Get(ctx, key)
	return slices.Clone(list), err
}

// loadOverlaps compares the rows of a batch with those of earlier ones.
func (s *Batches) loadOverlaps(ctx context.Context, key overlapKey) ([]Overlap, error) {
	return db.ReadAll(db.Bulk(ctx, key.tenant), s.db, selectOverlaps, []any{key.id, s.overlapSince()}, func(o *Overlap, r *db.Row) error {
		return r.Scan(&o.ID, &o.Name, &o.StartedAt, &o.Rows, &o.Amount)
	})
}

func (s *Batches) overlapSince() int64 { return db.Micros(s.clock.Now().Add(-overlapTime)) }

// overlap counts the rows of a batch that earlier batches paid, and lists the batches that were read.
type overlap struct {
	rows   int
	amount money.Pesewas
	since  int64
	sent   map[string]int64 // time of the request by the id of the batch
}

// overlapOf counts the rows of a batch that earlier ones paid. It reads without a lock; the transaction that uses the
// result must call repeats to verify it.
func (s *Batches) overlapOf(ctx context.Context, b Batch) (o overlap, err error) {
	err = s.db.ReadWhole(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		o = overlap{since: s.overlapSince()}
		if o.sent, err = sentBatches(tx, b, o.since); err != nil || len(o.sent) == 0 {
			return err
		}
		_, err := tx.One(countOverlap, []any{b.ID, o.since}, &o.rows, &o.amount)
		return err
	})
	return o, err
}

func sentBatches(tx *db.Tx, b Batch, since int64) (map[string]int64, error) {
	sent := map[string]int64{}
	err := tx.Query(sentSince, []any{b.Tenant, b.ID, since}, func(r *db.Row) error {
		var id string
		var at int64
		err := r.Scan(&id, &at)
		sent[id] = at
		return err
	})
	return sent, err
}

// errOverlapMoved is returned if another batch was requested after an overlap was read.
var errOverlapMoved = problem.New(problem.InProgress, "batch_moved", "Another batch of the account was requested at the same time: try again")

// unmoved refuses an overlap that was read before another batch was requested.
func (o overlap) unmoved(tx *db.Tx, b Batch) error {
	now, err := sentBatches(tx, b, o.since)
	if err != nil {
		return err
	}
	for id, at := range now {
		if o.sent[id] != at {
			return errOverlapMoved
		}
	}
	return nil
}

// overlapTries is the number of reads of an overlap while other batches are requested.
const overlapTries = 5

// withOverlap reads the overlap of a batch and passes it to a function.
func (s *Batches) withOverlap(ctx context.Context, b Batch, do func(overlap) error) error {
	for try := 1; ; try++ {
		o, err := s.overlapOf(ctx, b)
		if err == nil {
			err = do(o)
		}
		if !errors.Is(err, errOverlapMoved) || try == overlapTries {
			return err
		}
	}
}

// Warning is a point to check before a row is paid.
type Warning struct {
	Line  int
	Field string
	Text  string
}

const twiceInBatch = `SELECT r.line, min(o.line) FROM batch_rows r
JOIN batch_rows o ON o.tenant = r.tenant AND o.account = r.account AND o.bank = r.bank AND o.amount = r.amount AND o.batch = r.batch AND o.line < r.line AND o.state = 'ready'
WHERE r.batch = $1 AND r.line BETWEEN $2 AND $3 AND r.state = 'ready' GROUP BY r.line ORDER BY r.line`

// A reference of two open batches belongs to one payout: the other batch's row will be refused.
const openReferences = `SELECT r.line, o.line, b.name FROM batch_rows r
JOIN batch_rows o ON o.tenant = r.tenant AND o.reference = r.reference AND o.reference <> '' AND o.batch <> r.batch AND o.state = 'ready'
JOIN batches b ON b.id = o.batch AND b.status IN ('draft', 'requested', 'running', 'paused')
WHERE r.batch = $1 AND r.line BETWEEN $2 AND $3 AND r.state = 'ready' AND r.reference <> '' ORDER BY r.line, b.id, o.line`

// Warnings checks up to 1,000 rows from a line on. It finds rows that are in the batch twice, payouts of the same
// amount to the same account in the last 30 days, existing references, references that two of these rows have, and
// references of other open batches.
func (s *Batches) Warnings(ctx context.Context, tenant, id string, from int) (list []Warning, err error) {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, b, from)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		list = nil
		return tx.Query(twiceInBatch, []any{id, int64(from), int64(from + blockRows - 1)}, func(r *db.Row) error {
			w := Warning{Field: fieldNumber}
			var first int
			err := r.Scan(&w.Line, &first)
			w.Text = "is also in row " + strconv.Itoa(first) + ", with the same amount"
			list = append(list, w)
			return err
		})
	})
	if err == nil {
		list, err = s.warnOfReferences(ctx, b, from, list)
	}
	if err != nil {
		return nil, err
	}
	return s.warnOfPayouts(ctx, b, ready(rows), list)
}

// warnOfReferences adds the warnings about references of other open batches, one for each row.
func (s *Batches) warnOfReferences(ctx context.Context, b Batch, from int, list []Warning) ([]Warning, error) {
	known := len(list)
	err := s.db.Read(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		list = list[:known]
		return tx.Query(openReferences, []any{b.ID, int64(from), int64(from + blockRows - 1)}, func(r *db.Row) error {
			w := Warning{Field: fieldReference}
			var other int
			var name string
			err := r.Scan(&w.Line, &other, &name)
			w.Text = "is the reference of row " + strconv.Itoa(other) + " of the batch " + name + ", too: only one of them is paid"
			if last := len(list) - 1; last < known || list[last].Line != w.Line {
				list = append(list, w)
			}
			return err
		})
	})
	return list, err
}

// warnOfPayouts adds the warnings about earlier payouts of the tenant.
func (s *Batches) warnOfPayouts(ctx context.Context, b Batch, rows []Row, list []Warning) ([]Warning, error) {
	accounts, references := make([]string, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		accounts[i], references[i] = r.Account, ReferenceOf(b.Code, r)
	}
	ctx = db.Bulk(ctx, b.Tenant)
	paid, err := s.payments.PaidSince(ctx, b.Tenant, accounts, s.clock.Now().Add(-overlapTime))
	if err != nil {
		return nil, err
	}
	taken, err := s.payments.UsedReferences(ctx, b.Tenant, references)
	if err != nil {
		return nil, err
	}
	first := map[string]int{} // the row of each reference of its own
	for i, r := range rows {
		if line, twice := first[r.Reference]; twice {
			list = append(list, Warning{r.Line, fieldReference, "is the reference of row " + strconv.Itoa(line) + ", too: only one of them is paid"})
		} else if r.Reference != "" {
			first[r.Reference] = r.Line
		}
		if at, was := paid[book.Paid{Account: r.Account, Amount: r.Amount}]; was {
			list = append(list, Warning{r.Line, fieldNumber, "was paid the same amount on " + at.UTC().Format(time.DateOnly)})
		}
		if taken[references[i]] {
			list = append(list, Warning{r.Line, fieldReference, "is the reference of an earlier payout"})
		}
	}
	return list, nil
}
