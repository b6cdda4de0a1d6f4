package batch

import (
	"context"

	"github.com/makola/makola/internal/db"
)

const badRows = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line > $2 AND state = 'bad' ORDER BY line LIMIT $3`

// BadRows lists rows that cannot be paid. The list begins after a line of the file.
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
