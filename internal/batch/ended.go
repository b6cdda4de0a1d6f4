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
func EndedSince(ctx context.Context, d *db.DB, since time.Time, most int) ([]Ended, error) {
	return db.ReadAll(db.Bulk(ctx, ""), d, endedSince, []any{since, int64(most)}, func(b *Ended, r *db.Row) error {
		return r.Scan(&b.ID, &b.Tenant, &b.Name, &b.Status, &b.Ready, &b.Accepted)
	})
}
