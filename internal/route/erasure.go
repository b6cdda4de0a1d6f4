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

// place is where an exchange stands in the log.
type place struct {
	at int64
	id string
}

// named is an exchange that names what is looked for.
type named struct {
	place
	url string
}

// EraseWords empties the exchanges that name one of the words anywhere, such as questions about a number, and takes the words out of
// their addresses. It reads all exchanges, in bounded parts.
func (t *Table) EraseWords(ctx context.Context, instead string, words ...string) (erased int, err error) {
	has := func(text string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	after := func(p place) []any { return []any{p.at, p.id} }
	scan := func(r *db.Row, p *place) (named, bool, error) {
		var url, request, answer string
		err := r.Scan(&p.at, &p.id, &url, &request, &answer)
		return named{*p, url}, has(url) || has(request) || has(answer), err
	}
	err = db.Walk(ctx, t.db, exchangesAfter, erasureWindow, after, scan, func(found []named) error {
		erased += len(found)
		return t.db.Write(ctx, func(tx *db.Tx) error {
			for _, one := range found {
				url := one.url
				for _, word := range words {
					url = strings.ReplaceAll(url, word, instead)
				}
				tx.Defer(eraseExchange, -1, one.at, one.id, url) // one that was pruned meanwhile is gone
			}
			return nil
		})
	})
	return erased, err
}
