package batch

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Named is a row that names a person.
type Named struct {
	Tenant, Batch, BatchName string
	Line                     int
	Name                     string
	Amount                   money.Pesewas
	Status                   Status // of the batch
	At                       time.Time
}

// erasedRow removes the payee from a row. The amounts stay.
const erasedRow = `account = '', account_name = '', registered = '', note = '', given = '{}'`

const (
	rowsOfNumber = `SELECT b.tenant, b.id, b.name, r.line, r.account_name, r.amount, b.status, b.created_at FROM batch_rows r JOIN batches b ON b.id = r.batch
WHERE r.account = $1 ORDER BY b.id, r.line`

	// Frozen rows that are not yet decided are still needed unchanged.
	eraseRow = `UPDATE batch_rows SET state = CASE WHEN state = 'ready' THEN 'dropped' ELSE state END, ` + erasedRow + ` WHERE batch = $1 AND line = $2
AND batch IN (SELECT id FROM batches WHERE id = $1 AND (status = 'draft' OR ended_at <> 0))`

	touchDraft = `UPDATE batches SET version = version + 1, tally = '' WHERE id = $1 AND status = 'draft'`
)

// OfNumber returns each row with a number. It reads all rows.
func OfNumber(ctx context.Context, d *db.DB, number string, each func(Named) error) error {
	var list []Named
	err := d.ReadWhole(ctx, func(tx *db.Tx) (err error) {
		list, err = db.All(tx, rowsOfNumber, []any{number}, func(n *Named, r *db.Row) error {
			return r.Scan(&n.Tenant, &n.Batch, &n.BatchName, &n.Line, &n.Name, &n.Amount, &n.Status, &n.At)
		})
		return err
	})
	for _, n := range list {
		if err == nil {
			err = each(n)
		}
	}
	return err
}

// Erase removes the person from a row of a draft, which is then dropped, or of a batch that has ended. It leaves a
// row of another batch as it is: erased is false, and the erasure is repeated later.
func Erase(ctx context.Context, d *db.DB, n Named) (erased bool, err error) {
	err = d.Write(db.Bulk(ctx, n.Tenant), func(tx *db.Tx) error {
		if _, err := tx.Exec(touchDraft, n.Batch); err != nil { // a request that is reading the rows begins again
			return err
		}
		rows, err := tx.Exec(eraseRow, n.Batch, int64(n.Line))
		erased = rows == 1
		return err
	})
	return erased, err
}
