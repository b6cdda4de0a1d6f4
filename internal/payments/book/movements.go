package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Attempted is a payment with one of its attempts.
type Attempted struct {
	Payment
	Reference string // ProviderReference of the attempt
	AtRail    string // the attempt's provider
	Current   bool   // false: the payment has left the attempt for another provider
}

// The index of each column finds the references.
const paymentsByReferences = `SELECT payments.provider_reference, CASE WHEN payments.attempt > 1 THEN '' ELSE payments.rail END, CASE WHEN payments.attempt > 1 THEN 0 ELSE 1 END, ` + paymentColumns + `
FROM payments WHERE provider_reference IN (SELECT value FROM texts($1))
UNION ALL SELECT payments.attempt_reference, payments.rail, 1, ` + paymentColumns + ` FROM payments WHERE attempt_reference IN (SELECT value FROM texts($1)) AND attempt > 1
UNION ALL SELECT attempts.provider_reference, attempts.rail, 0, ` + paymentColumns + ` FROM attempts JOIN payments ON payments.id = attempts.payment
WHERE attempts.provider_reference IN (SELECT value FROM texts($1))`

// ByReferences returns the payments with ProviderReferences, by the reference of their attempt.
func (rd *Reader) ByReferences(ctx context.Context, references []string) (map[string]Attempted, error) {
	var found map[string]Attempted
	err := rd.db.Read(ctx, func(tx *db.Tx) error {
		found = make(map[string]Attempted, len(references))
		return tx.Query(paymentsByReferences, []any{references}, func(r *db.Row) (err error) {
			var a Attempted
			if a.Payment, err = scanPayment(r, &a.Reference, &a.AtRail, &a.Current); err != nil {
				return err
			}
			if before, is := found[a.Reference]; !is || before.AtRail == "" || a.Current {
				found[a.Reference] = a // a retried payment keeps its first reference on the row, too
			}
			return nil
		})
	})
	return found, err
}

// Payments are read in the order of their ids, which is that of their acceptance.
const paymentsBetween = `SELECT ` + paymentColumns + ` FROM payments WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3`

// Between returns payments that were accepted after the one with an id and until a time, at most limit. next is the id to go on from;
// empty: there are no more.
func (rd *Reader) Between(ctx context.Context, after string, until time.Time, limit int) (list []Payment, next string, err error) {
	if list, err = rd.list(ctx, paymentsBetween, after, IDAt(until), int64(limit)); len(list) == limit {
		next = list[limit-1].ID
	}
	return list, next, err
}

// IDAt returns a text between the ids of the payments before and after a time.
func IDAt(at time.Time) string { return NewID(at)[:18] }

const providerFees = `SELECT subject, amount FROM transfers WHERE subject IN (SELECT value FROM texts($1)) AND leg = '` + LegProviderFee + `'`

// ProviderFees returns the provider's fees that were posted for payments.
func (rd *Reader) ProviderFees(ctx context.Context, ids []string) (map[string]money.Pesewas, error) {
	var fees map[string]money.Pesewas
	err := rd.db.Read(ctx, func(tx *db.Tx) error {
		fees = map[string]money.Pesewas{}
		return tx.Query(providerFees, []any{ids}, func(r *db.Row) error {
			var id string
			var fee int64
			err := r.Scan(&id, &fee)
			fees[id] = money.Pesewas(fee)
			return err
		})
	})
	return fees, err
}
