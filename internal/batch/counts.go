package batch

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Counts are the numbers of rows of a batch by their states, and the sums of the ready ones.
type Counts struct {
	Rows            map[RowState]int
	Amount, Charges money.Pesewas
}

const (
	countRows = `SELECT state, count(*), CAST(sum(amount) AS INTEGER), CAST(sum(charges) AS INTEGER) FROM batch_rows WHERE batch = $1 GROUP BY state`

	badRows = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line > $2 AND state = 'bad' ORDER BY line LIMIT $3`
)

// Count counts the rows of a batch.
func (s *Batches) Count(ctx context.Context, b Batch) (c Counts, err error) {
	err = s.db.Read(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		c = Counts{Rows: map[RowState]int{}}
		return tx.Query(countRows, []any{b.ID}, func(r *db.Row) error {
			var state RowState
			var n int
			var amount, charges money.Pesewas
			err := r.Scan(&state, &n, &amount, &charges)
			c.Rows[state] = n
			if state == RowReady {
				c.Amount, c.Charges = amount, charges
			}
			return err
		})
	})
	return c, err
}

// BadRows lists rows that cannot be paid, behind a line.
func (s *Batches) BadRows(ctx context.Context, b Batch, after, limit int) (rows []Row, err error) {
	err = s.db.Read(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		rows = nil
		return tx.Query(badRows, []any{b.ID, int64(after), int64(limit)}, func(r *db.Row) error {
			row, err := scanRow(r)
			rows = append(rows, row)
			return err
		})
	})
	return rows, err
}

// Row reads one row of a batch.
func (s *Batches) Row(ctx context.Context, b Batch, line int) (row Row, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		row, err = rowOf(tx, b.ID, line)
		return err
	})
	return row, err
}
