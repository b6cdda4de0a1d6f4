package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

// RailName names a rail: a provider in one mode.
type RailName struct{ Provider, Mode string }

// Unknown has the totals of a rail's open payments that need an operator.
type Unknown struct {
	Count  int64
	Cedis  float64   // amounts and charges together
	Oldest time.Time // acceptance of the oldest; zero if there is none
}

const unknownByRail = `SELECT rail, mode, count(*), CAST(sum(amount + charges) AS INTEGER), min(created_at) FROM payments
WHERE escalated_at IS NOT NULL GROUP BY rail, mode`

// Unknown returns the totals by rail. A rail without such payments is absent.
func (rd *Reader) Unknown(ctx context.Context) (all map[RailName]Unknown, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		all = map[RailName]Unknown{}
		return tx.Query(unknownByRail, nil, func(r *db.Row) error {
			var rail RailName
			var pesewas int64
			var u Unknown
			err := r.Scan(&rail.Provider, &rail.Mode, &u.Count, &pesewas, &u.Oldest)
			u.Cedis = float64(pesewas) / 100
			all[rail] = u
			return err
		})
	})
	return all, err
}
