package identity

import (
	"encoding/base64"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sealed"
)

const (
	selectSealed = `SELECT person, sealed, pending FROM factors WHERE person > $1 ORDER BY person LIMIT $2`
	resealFactor = `UPDATE factors SET sealed = $2, pending = $3 WHERE person = $1 AND sealed = $4 AND pending = $5`
)

// Sealed describes the table of the keys of second factors for a change of the master key. Each person may have a key
// in use and a pending key.
func (i *Identity) Sealed() sealed.Table {
	return sealed.Table{DB: i.db, Sealer: i.sealer, After: selectSealed,
		Scan: func(r *db.Row) (row sealed.Row, err error) {
			var texts [2]string
			if err := r.Scan(&row.Key, &texts[0], &texts[1]); err != nil {
				return row, err
			}
			row.Texts = make([][]byte, len(texts))
			for n, text := range texts {
				if text == "" {
					continue
				}
				if row.Texts[n], err = base64.StdEncoding.DecodeString(text); err != nil {
					return row, fmt.Errorf("identity: the factor of %s cannot be read: %w", row.Key, err)
				}
			}
			return row, nil
		},
		Write: func(tx *db.Tx, was, now sealed.Row) (int64, error) {
			text := base64.StdEncoding.EncodeToString
			return tx.Exec(resealFactor, was.Key, text(now.Texts[0]), text(now.Texts[1]), text(was.Texts[0]), text(was.Texts[1]))
		},
	}
}
