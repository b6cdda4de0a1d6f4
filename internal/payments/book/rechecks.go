package book

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
)

// Times of the recheck of a final payment.
const (
	RecheckAfter = 24 * time.Hour // after acceptance or a late settlement
	RecheckSlack = time.Hour      // additional time of the regular recheck; a payment that settles later gets a separate recheck
)

// A Recheck is a recheck with its own due time. A payment gets a Recheck if it settled long after acceptance, or
// if its regular recheck failed. If both happen, it has two.
type Recheck struct {
	ID  string
	Due time.Time
}

var recheckColumns = []db.Column[Recheck]{
	{Name: "due_at", Time: func(l Recheck) time.Time { return l.Due }},
	{Name: "payment", Text: func(l Recheck) string { return l.ID }},
}

const (
	// sweepLists selects the lists that have grown since their last sweep.
	sweepLists = `SELECT e.tenant, e.kind, COALESCE(s.done_until, 0) FROM payment_ends AS e
LEFT JOIN payment_sweeps AS s ON s.name = e.tenant || '/' || e.kind
WHERE e.total > COALESCE(s.done_until, 0) ORDER BY e.tenant, e.kind`

	sweepNext = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind = $2 AND seq > $3 ORDER BY seq LIMIT $4`

	sweepDone = `INSERT INTO payment_sweeps (name, done_until) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET done_until = excluded.done_until`

	rechecksDue = `SELECT due_at, payment FROM payment_looks WHERE due_at <= $1 ORDER BY due_at, payment LIMIT $2`

	// The BETWEEN lets every query plan use the index.
	rechecksDone = `DELETE FROM payment_looks WHERE due_at BETWEEN $2 AND $3 AND (due_at, payment) IN (SELECT due_at, payment FROM rows($1) AS l)`
)

// A SweptList is a list of payments of one tenant and kind that has grown since its last sweep. Done is the last
// swept number.
type SweptList struct {
	history.List
	Done int64
}

// Unswept returns the lists that have grown since their last sweep.
func (bk *Book) Unswept(ctx context.Context) ([]SweptList, error) {
	return db.ReadAll(ctx, bk.db, sweepLists, nil, func(l *SweptList, r *db.Row) error { return r.Scan(&l.Tenant, &l.Kind, &l.Done) })
}

// After returns the next unswept payments of a list, oldest first.
func (bk *Book) After(ctx context.Context, l SweptList, limit int) ([]Payment, error) {
	return bk.list(ctx, sweepNext, l.Tenant, l.Kind, l.Done, limit)
}

// Swept stores that the sweep of a list has reached the number l.Done. It also adds rechecks for some of its payments.
func (bk *Book) Swept(ctx context.Context, l SweptList, again []Recheck) error {
	return bk.db.Write(ctx, func(tx *db.Tx) error {
		db.Insert(tx, "payment_looks", recheckColumns, again)
		_, err := tx.Exec(sweepDone, l.Tenant+"/"+l.Kind, l.Done)
		return err
	})
}

// Due returns the rechecks that are due and their payments. A payment with two due rechecks is returned once.
func (bk *Book) Due(ctx context.Context, at time.Time, limit int) (due []Recheck, rows []Payment, err error) {
	err = bk.db.Read(ctx, func(tx *db.Tx) error {
		rows = nil
		due, err = db.All(tx, rechecksDue, []any{at, limit}, func(l *Recheck, row *db.Row) error { return row.Scan(&l.Due, &l.ID) })
		if err != nil || len(due) == 0 {
			return err
		}
		ids := map[string]bool{}
		for _, l := range due {
			ids[l.ID] = true
		}
		return tx.Query(paymentsByID, []any{slices.Collect(maps.Keys(ids))}, appendPayment(&rows))
	})
	return due, rows, err
}

// Rechecked removes the rechecks in done, which must have the order in which Due returned them. It adds the rechecks
// in again.
func (bk *Book) Rechecked(ctx context.Context, done, again []Recheck) error {
	return bk.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(rechecksDone, db.RowsOf(recheckColumns, done), done[0].Due, done[len(done)-1].Due); err != nil {
			return err
		}
		db.Insert(tx, "payment_looks", recheckColumns, again)
		return nil
	})
}

// RecheckLater adds a recheck in the caller's transaction.
func (bk *Book) RecheckLater(tx *db.Tx, again Recheck) {
	db.Insert(tx, "payment_looks", recheckColumns, []Recheck{again})
}

// SettledLate reports whether the payment settled so long after its acceptance that the regular recheck is too early.
func (p Payment) SettledLate() bool {
	return !p.Status.Open() && p.SettledAt.Sub(p.CreatedAt) > RecheckSlack
}
