package route

import (
	"context"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// erasureWindow is the number of exchanges that one statement scans.
const erasureWindow = 1_000

const (
	repackExchange = `UPDATE exchanges SET packed = $3 WHERE at = $1 AND id = $2`
	allOfPayment   = `SELECT at, id, payment, packed FROM exchanges WHERE payment = $1`
	exchangesAfter = `SELECT at, id, payment, packed FROM exchanges WHERE (at, id) > ($1, $2) ORDER BY at, id LIMIT $3`

	// Statements for exchanges as earlier versions stored them.
	eraseUnpackedOfPayment = `UPDATE provider_exchanges SET request = '', answer = '' WHERE payment = $1`
	eraseUnpacked          = `UPDATE provider_exchanges SET request = '', answer = '', url = $3 WHERE at = $1 AND id = $2`
	unpackedAfter          = `SELECT at, id, url, request, answer FROM provider_exchanges WHERE (at, id) > ($1, $2) ORDER BY at, id LIMIT $3`
)

// EraseExchanges deletes the bodies of exchanges about a payment. Their times and statuses stay.
func (t *Table) EraseExchanges(tx *db.Tx, payment string) error {
	err := tx.Query(allOfPayment, []any{payment}, func(r *db.Row) error {
		k, e, err := t.scanPacked(r)
		if err == nil {
			t.repack(tx, k, e, e.URL)
		}
		return err
	})
	if err != nil {
		return err
	}
	tx.Defer(eraseUnpackedOfPayment, -1, payment)
	return nil
}

// A foundExchange is an exchange that contains one of the words.
type foundExchange struct {
	exchangeKey
	provider.Exchange
}

// repack stores an exchange without its bodies. It does nothing if the exchange has been pruned.
func (t *Table) repack(tx *db.Tx, k exchangeKey, e provider.Exchange, url string) {
	e.Request, e.Answer, e.URL = "", "", url
	tx.Defer(repackExchange, -1, k.at, k.id, t.packer.pack(e))
}

// words are the texts to erase, such as the spellings of a number, and their replacement.
type words struct {
	instead string
	list    []string
}

func (w words) in(texts ...string) bool {
	return slices.ContainsFunc(w.list, func(word string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) })
	})
}

func (w words) outOf(text string) string {
	for _, word := range w.list {
		text = strings.ReplaceAll(text, word, w.instead)
	}
	return text
}

// EraseWords deletes the bodies of exchanges that contain one of the words, such as name queries for a number. It
// replaces the words in their URLs. It reads all exchanges, in limited steps.
func (t *Table) EraseWords(ctx context.Context, instead string, list ...string) (erased int, err error) {
	w := words{instead, list}
	after := func(k exchangeKey) []any { return []any{k.at, k.id} }
	scan := func(r *db.Row, k *exchangeKey) (foundExchange, bool, error) {
		key, e, err := t.scanPacked(r)
		*k = key
		return foundExchange{key, e}, w.in(e.URL, e.Request, e.Answer), err
	}
	err = db.Walk(ctx, t.db, exchangesAfter, erasureWindow, after, scan, func(found []foundExchange) error {
		erased += len(found)
		return t.db.Write(ctx, func(tx *db.Tx) error {
			for _, one := range found {
				t.repack(tx, one.exchangeKey, one.Exchange, w.outOf(one.URL))
			}
			return nil
		})
	})
	if err != nil {
		return erased, err
	}
	unpacked, err := t.eraseUnpacked(ctx, w)
	return erased + unpacked, err
}

// An unpackedPlace is the key and the URL of an exchange that an earlier version stored.
type unpackedPlace struct {
	at  int64
	id  string
	url string
}

func (t *Table) eraseUnpacked(ctx context.Context, w words) (erased int, err error) {
	after := func(p unpackedPlace) []any { return []any{p.at, p.id} }
	scan := func(r *db.Row, p *unpackedPlace) (unpackedPlace, bool, error) {
		var request, answer string
		err := r.Scan(&p.at, &p.id, &p.url, &request, &answer)
		return *p, w.in(p.url, request, answer), err
	}
	err = db.Walk(ctx, t.db, unpackedAfter, erasureWindow, after, scan, func(found []unpackedPlace) error {
		erased += len(found)
		return t.db.Write(ctx, func(tx *db.Tx) error {
			for _, one := range found {
				tx.Defer(eraseUnpacked, -1, one.at, one.id, w.outOf(one.url))
			}
			return nil
		})
	})
	return erased, err
}
