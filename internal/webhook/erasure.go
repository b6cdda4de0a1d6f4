package webhook

import (
	"strings"

	"github.com/makola/makola/internal/db"
)

const (
	bodiesOf  = `SELECT id, body, state FROM webhook_events WHERE tenant = $1 AND subject = $2 ORDER BY id`
	eraseBody = `UPDATE webhook_events SET body = $4 WHERE tenant = $1 AND subject = $2 AND id = $3 AND state <> 'pending'`
)

// EraseWords replaces words, such as the spellings of a number, in the bodies of a subject's events. It does nothing where one is not
// delivered yet, and says so.
func EraseWords(tx *db.Tx, tenant, subject, instead string, words ...string) (pending bool, err error) {
	var pairs []string
	for _, word := range words {
		pairs = append(pairs, word, instead)
	}
	replace := strings.NewReplacer(pairs...)
	changed := map[string]string{}
	err = tx.Query(bodiesOf, []any{tenant, subject}, func(r *db.Row) error {
		var id, body, state string
		err := r.Scan(&id, &body, &state)
		if state == "pending" {
			pending = true
		}
		if now := replace.Replace(body); now != body {
			changed[id] = now
		}
		return err
	})
	if err != nil || pending {
		return pending, err
	}
	for id, body := range changed {
		tx.Defer(eraseBody, 1, tenant, subject, id, body)
	}
	return false, nil
}
