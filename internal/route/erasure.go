package route

import (
	"context"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
)

// erasureWindow is how many exchanges one statement looks at.
const erasureWindow = 1_000

const (
	eraseOfPayment = `UPDATE provider_exchanges SET request = '', answer = '' WHERE payment = $1`
	eraseExchange  = `UPDATE provider_exchanges SET request = '', answer = '', url = $3 WHERE at = $1 AND id = $2`
	exchangesAfter = `SELECT at, id, url, request, answer FROM provider_exchanges WHERE (at, id) > ($1, $2) ORDER BY at, id LIMIT $3`
)

// EraseExchanges empties what was said to and by providers about a payment; that something was said, when and with which status stays.
func EraseExchanges(tx *db.Tx, payment string) { tx.Defer(eraseOfPayment, -1, payment) }

// named is an exchange that names what is looked for.
type named struct {
	at      int64
	id, url string
}

// EraseWords empties the exchanges that name one of the words anywhere, such as questions about a number, and takes the words out of
// their addresses. It reads all exchanges, in bounded parts.
func (t *Table) EraseWords(ctx context.Context, instead string, words ...string) (erased int, err error) {
	has := func(text string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	var at int64
	for id, n := "", erasureWindow; n == erasureWindow; {
		var found []named
		next, nextID := at, id
		err := t.db.Read(ctx, func(tx *db.Tx) error {
			found, n = nil, 0
			return tx.Query(exchangesAfter, []any{at, id, erasureWindow}, func(r *db.Row) error {
				var url, request, answer string
				err := r.Scan(&next, &nextID, &url, &request, &answer)
				if n++; has(url) || has(request) || has(answer) {
					found = append(found, named{next, nextID, url})
				}
				return err
			})
		})
		if err != nil {
			return erased, err
		}
		at, id = next, nextID
		if len(found) == 0 {
			continue
		}
		err = t.db.Write(ctx, func(tx *db.Tx) error {
			for _, one := range found {
				for _, word := range words {
					one.url = strings.ReplaceAll(one.url, word, instead)
				}
				tx.Defer(eraseExchange, -1, one.at, one.id, one.url) // one that was pruned meanwhile is gone
			}
			return nil
		})
		if err != nil {
			return erased, err
		}
		erased += len(found)
	}
	return erased, nil
}
