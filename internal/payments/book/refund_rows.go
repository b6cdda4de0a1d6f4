package book

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// RefundSums has sums over the refunds of one collection.
type RefundSums struct {
	Open      bool          // a refund is open
	ByRail    money.Pesewas // amount of open or successful refunds made by the rail
	FoundPaid money.Pesewas // refunds that failed and were found paid later
}

// Left returns the amount of a collection that can still be refunded.
func (s RefundSums) Left(of Payment) money.Pesewas { return max(0, of.Amount-of.Refunded-s.FoundPaid) }

const refundSums = `SELECT refund_of, CAST(sum(CASE WHEN refund_open <> 0 THEN 1 ELSE 0 END) AS INTEGER),
CAST(sum(CASE WHEN status <> 'failed' AND refund_way = 'rail' THEN amount ELSE 0 END) AS INTEGER),
CAST(sum(CASE WHEN status = 'failed' AND turned_at IS NOT NULL AND last_word <> 'failed' THEN amount ELSE 0 END) AS INTEGER)
FROM payments WHERE refund_of <> '' AND refund_of IN (SELECT value FROM texts($1)) GROUP BY refund_of`

// refundQuery reads the refunds of collections.
func refundQuery(collections []string, sums map[string]*RefundSums) db.Query {
	return db.Query{SQL: refundSums, Args: []any{collections}, Each: func(r *db.Row) error {
		var id string
		var open int64
		var s RefundSums
		err := r.Scan(&id, &open, &s.ByRail, &s.FoundPaid)
		s.Open = open > 0
		sums[id] = &s
		return err
	}}
}

// Refunds reads the sums of a collection's refunds. Pages show these sums before a person decides about
// another refund.
func (rd *Reader) Refunds(ctx context.Context, collection string) (s RefundSums, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		sums := map[string]*RefundSums{}
		err := tx.Gather(refundQuery([]string{collection}, sums))
		if one := sums[collection]; one != nil {
			s = *one
		}
		return err
	})
	return s, err
}

const refundsOf = `SELECT ` + paymentColumns + ` FROM payments WHERE refund_of <> '' AND refund_of = $1 ORDER BY id DESC LIMIT $2`

// RefundsOf lists the newest refunds of a collection.
func (rd *Reader) RefundsOf(ctx context.Context, collection string, limit int) ([]Payment, error) {
	return rd.list(ctx, refundsOf, collection, limit)
}

// Refundable returns the reason why a collection cannot be refunded by amount, or nil. topUp is the top-up that the
// collection paid for, or nil.
func Refundable(of Payment, topUp *Payment, sums RefundSums, amount money.Pesewas) error {
	refuse := func(text string) error { return problem.New(problem.Invalid, "not_refundable", text) }
	left := sums.Left(of)
	switch {
	case of.Kind != KindCollection || of.Status != StatusSuccess:
		return refuse("The collection is " + of.PublicStatus() + ": only a successful one can be refunded")
	case !of.ContradictedAt.IsZero():
		return refuse("The provider reports the collection as reversed: an operator decides about its money")
	case of.Child != "" && (topUp == nil || topUp.Status != StatusFailed || !topUp.ContradictedAt.IsZero()):
		return refuse("The collection paid for airtime that did not fail")
	case of.Account == Erased:
		return refuse("The payer's number was erased")
	case sums.Open:
		return problem.New(problem.InProgress, "refund_in_progress", "Another refund of the collection is still open")
	case amount > left:
		return problem.Field("amount", "must be at most "+left.String()+", which is left of the collection")
	}
	return nil
}

// A refundChange changes the refunded amount of a collection.
type refundChange struct {
	id       string
	was, now money.Pesewas
}

var refundColumns = []db.Column[refundChange]{
	{Name: "id", Text: func(c refundChange) string { return c.id }},
	{Name: "was", Int: func(c refundChange) int64 { return int64(c.was) }},
	{Name: "now", Int: func(c refundChange) int64 { return int64(c.now) }},
}

const paymentsRefunded = `UPDATE payments SET refunded = c.now FROM rows($1) AS c
WHERE payments.id IN (c.id) AND payments.kind = 'collection' AND payments.refunded = c.was`

func deferRefunds(tx *db.Tx, changes []refundChange) {
	if len(changes) > 0 {
		tx.Defer(paymentsRefunded, int64(len(changes)), db.RowsOf(refundColumns, changes))
	}
}
