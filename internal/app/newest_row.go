package app

import (
	"context"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments/book"
)

// NewestRow returns the creation time of the newest payment, campaign or audit entry, by the clock of the node that
// created it. It is the zero time for an empty database. Money that operators move has an entry in the audit log.
func NewestRow(ctx context.Context, d *db.DB) (newest time.Time, err error) {
	for _, of := range []func(context.Context, *db.DB) (time.Time, error){book.Newest, messaging.Newest, audit.Newest} {
		at, err := of(ctx, d)
		if err != nil {
			return time.Time{}, err
		}
		if at.After(newest) {
			newest = at
		}
	}
	return newest, nil
}
