package webhook

import (
	"strings"

	"github.com/makola/makola/internal/db"
)

const (
	eventsOf   = `SELECT id, url, body, state FROM webhook_events WHERE tenant = $1 AND subject = $2 ORDER BY id`
	eraseEvent = `UPDATE webhook_events SET url = $4, body = $5, erased = 1
		WHERE tenant = $1 AND subject = $2 AND id = $3 AND state <> 'pending'`
	emptyAnswers = `UPDATE webhook_attempts SET answer = '' WHERE tenant = $1 AND event IN (SELECT value FROM texts($2)) AND answer <> ''`
)

const (
	pendingOf  = `SELECT 1 FROM webhook_events WHERE tenant = $1 AND subject = $2 AND state = 'pending' LIMIT 1`
	emptyOf    = `UPDATE webhook_events SET body = '{}', erased = 1 WHERE tenant = $1 AND subject = $2 AND state <> 'pending'`
	emptyTried = `UPDATE webhook_attempts SET answer = '' WHERE tenant = $1 AND answer <> ''
		AND event IN (SELECT id FROM webhook_events WHERE tenant = $1 AND subject = $2)`
)

// EmptyEvents empties the bodies of a subject's events, whose data is no longer kept, and the receivers' responses. An
// emptied event is not sent again. If an event is not delivered yet, EmptyEvents changes nothing and returns true.
func EmptyEvents(tx *db.Tx, tenant, subject string) (pending bool, err error) {
	var one int64
	if pending, err = tx.One(pendingOf, []any{tenant, subject}, &one); err != nil || pending {
		return pending, err
	}
	tx.Defer(emptyOf, -1, tenant, subject)
	tx.Defer(emptyTried, -1, tenant, subject)
	return false, nil
}

// eventTexts has the body and the address of an event.
type eventTexts struct{ id, url, body string }

// EraseTexts replaces words, such as the spellings of a number, in the addresses and bodies of a subject's events. It
// deletes the receivers' responses, which may contain a number or a name in any form. A changed event is not sent
// again. If an event is not delivered yet, EraseTexts changes nothing and returns true.
func EraseTexts(tx *db.Tx, tenant, subject, instead string, words ...string) (pending bool, err error) {
	var pairs []string
	for _, word := range words {
		pairs = append(pairs, word, instead)
	}
	replace := strings.NewReplacer(pairs...)
	var all []string
	var changed []eventTexts
	err = tx.Query(eventsOf, []any{tenant, subject}, func(r *db.Row) error {
		var e eventTexts
		var state State
		err := r.Scan(&e.id, &e.url, &e.body, &state)
		if state == Pending {
			pending = true
		}
		all = append(all, e.id)
		if now := (eventTexts{e.id, replace.Replace(e.url), replace.Replace(e.body)}); now != e {
			changed = append(changed, now)
		}
		return err
	})
	if err != nil || pending || len(all) == 0 {
		return pending, err
	}
	for _, e := range changed {
		tx.Defer(eraseEvent, 1, tenant, subject, e.id, e.url, e.body)
	}
	tx.Defer(emptyAnswers, -1, tenant, all)
	return false, nil
}
