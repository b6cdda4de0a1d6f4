package batch

import (
	"context"

	"github.com/makola/makola/internal/db"
)

const badRows = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line > $2 AND state = 'bad' ORDER BY line LIMIT $3`

// BadRows lists rows that cannot be paid, after a line.
func (s *Batches) BadRows(ctx context.Context, b Batch, after, limit int) ([]Row, error) {
	return db.ReadAll(db.Bulk(ctx, b.Tenant), s.db, badRows, []any{b.ID, int64(after), int64(limit)}, (*Row).scan)
}

// Row reads one row of a batch.
func (s *Batches) Row(ctx context.Context, b Batch, line int) (Row, error) {
	return db.Get(ctx, s.db, func(tx *db.Tx) (Row, error) { return rowOf(tx, b.ID, line) })
}
