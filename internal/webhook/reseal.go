package webhook

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sealed"
)

const (
	sqlSealed = `SELECT tenant, secret, former, former_until FROM webhook_secrets WHERE tenant > $1 ORDER BY tenant LIMIT $2`
	sqlReseal = `UPDATE webhook_secrets SET secret = $2, former = $3 WHERE tenant = $1 AND secret = $4`
)

// Sealed describes the table of the tenants' secrets for a change of the master key. A former secret that no longer
// signs is deleted.
func (w *Webhooks) Sealed() sealed.Table {
	return sealed.Table{DB: w.db, Sealer: w.sealer, After: sqlSealed,
		Scan: func(r *db.Row) (sealed.Row, error) {
			row := sealed.Row{Texts: make([][]byte, 2)}
			until := w.clock.Now()
			err := r.Scan(&row.Key, &row.Texts[0], &row.Texts[1], &until)
			row.Lapsed = !w.clock.Now().Before(until)
			return row, err
		},
		Write: func(tx *db.Tx, was, now sealed.Row) (int64, error) {
			return tx.Exec(sqlReseal, was.Key, now.Texts[0], now.Texts[1], was.Texts[0])
		},
	}
}
