package tenant

import (
	"context"

	"github.com/makola/makola/internal/db"
)

const anyLive = `SELECT EXISTS (SELECT 1 FROM tenants WHERE mode = 'live')`

// AnyLive reports whether a database has a tenant with live money. It works with older schemas, too.
func AnyLive(ctx context.Context, d *db.DB) (live bool, err error) {
	_, err = d.ReadOne(ctx, anyLive, nil, &live)
	return live, err
}
