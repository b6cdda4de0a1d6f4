package changes

import (
	"context"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sealed"
)

// NewSealer makes the cipher that seals the secrets of requests until their requesters are shown them.
func NewSealer(master config.Secret) *config.Sealer {
	return master.Sealer("secrets of acts")
}

// Reveal returns a secret of an applied request, such as the text of a key, to its recipient. It is shown once. The
// same session can read it again for one minute, because the first page may have been lost.
func (a *Changes) Reveal(ctx context.Context, by By, part Part, id string) (string, error) {
	request, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return "", err
	}
	k, known := a.kinds[request.Kind]
	if !known || a.Seal == nil {
		return "", ErrShown()
	}
	sealed, err := a.Store.Reveal(ctx, by, k.Rule, part, request)
	if err != nil {
		return "", err
	}
	text, err := a.Seal.Open(sealed, []byte(part.Of(request)))
	if err != nil {
		return "", problem.Wrap(err, problem.Unavailable, "secret_unreadable", "The secret was sealed with another master key and cannot be shown. Create a new one.")
	}
	return string(text), nil
}

const (
	sealedSecrets = `SELECT act, sealed FROM act_secrets WHERE act > $1 ORDER BY act LIMIT $2`
	resealSecret  = `UPDATE act_secrets SET sealed = $2 WHERE act = $1 AND sealed = $3`
)

// Sealed returns the table of the sealed secrets.
func (a *Changes) Sealed() sealed.Table {
	return sealed.Table{DB: a.Store.db, Sealer: a.Seal, After: sealedSecrets,
		Scan: func(r *db.Row) (sealed.Row, error) {
			row := sealed.Row{Texts: make([][]byte, 1)}
			err := r.Scan(&row.Key, &row.Texts[0])
			return row, err
		},
		Write: func(tx *db.Tx, was, now sealed.Row) (int64, error) {
			return tx.Exec(resealSecret, was.Key, now.Texts[0], was.Texts[0])
		},
	}
}
