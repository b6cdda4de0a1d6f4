package notice

import (
	"encoding/base64"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sealed"
)

const (
	selectSealed = `SELECT id, body FROM notice_messages WHERE secret = 1 AND body <> '' AND id > $1 ORDER BY id LIMIT $2`
	resealBody   = `UPDATE notice_messages SET body = $2 WHERE id = $1 AND body = $3`
)

// sealLabel names the use of the master key under which texts with a link are sealed.
const sealLabel = "notice/body"

// Sealer returns the cipher that seals the texts with a link.
func Sealer(ring config.Secret) *config.Sealer { return ring.Sealer(sealLabel) }

// Sealed returns the table of the texts with a link that are not delivered yet.
func Sealed(d *db.DB, ring config.Secret) sealed.Table {
	text := base64.StdEncoding.EncodeToString
	return sealed.Table{DB: d, Sealer: Sealer(ring), After: selectSealed,
		Scan: func(r *db.Row) (row sealed.Row, err error) {
			var body string
			if err = r.Scan(&row.Key, &body); err != nil {
				return row, err
			}
			raw, err := base64.StdEncoding.DecodeString(body)
			row.Texts = [][]byte{raw}
			return row, err
		},
		Write: func(tx *db.Tx, was, now sealed.Row) (int64, error) {
			return tx.Exec(resealBody, was.Key, text(now.Texts[0]), text(was.Texts[0]))
		},
	}
}
