package batch

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

// Ended is a batch that ended.
type Ended struct {
	ID, Tenant, Name string
	Status           Status
	Ready, Accepted  int // rows
}

const endedSince = `SELECT id, tenant, name, status, ready, accepted FROM batches WHERE ended_at > $1 AND status IN ('finished', 'cancelled') ORDER BY ended_at, id LIMIT $2`

// EndedSince lists the batches that were finished or cancelled since a time, at most most.
func EndedSince(ctx context.Context, d *db.DB, since time.Time, most int) (list []Ended, err error) {
	err = d.Read(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		list = nil
		return tx.Query(endedSince, []any{since, int64(most)}, func(r *db.Row) error {
			var b Ended
			err := r.Scan(&b.ID, &b.Tenant, &b.Name, &b.Status, &b.Ready, &b.Accepted)
			list = append(list, b)
			return err
		})
	})
	return list, err
}
