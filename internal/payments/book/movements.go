package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Attempted is a payment together with one of its attempts. The payment has only the members that movementColumns
// names.
type Attempted struct {
	Payment
	Reference string // ProviderReference of the attempt
	AtRail    string // the attempt's provider
	Current   bool   // false: the payment was rerouted to another provider
}

// movementColumns are a third of the columns of a payment, and are read for each line of a statement.
const movementColumns = `payments.id, payments.kind, payments.mode, payments.rail, payments.account, payments.amount, payments.charges, payments.fee_bearer, payments.status,
payments.created_at, payments.settled_at, payments.sending_at, payments.upstream_id, payments.turned_at, payments.last_word`

func scanMovement(r *db.Row, a *Attempted) error {
	p := &a.Payment
	return r.Scan(&a.Reference, &a.AtRail, &a.Current, &p.ID, &p.Kind, &p.Mode, &p.Rail, &p.Account, &p.Amount, &p.Charges, &p.FeeBearer, &p.Status,
		&p.CreatedAt, &p.SettledAt, &p.SendingAt, &p.UpstreamID, &p.ContradictedAt, &p.LastReported)
}

// The statement has one SELECT for each column with references, because each column has an index of its own.
const paymentsByReferences = `SELECT payments.provider_reference, CASE WHEN payments.attempt > 1 THEN '' ELSE payments.rail END, CASE WHEN payments.attempt > 1 THEN 0 ELSE 1 END, ` + movementColumns + `
FROM payments WHERE provider_reference IN (SELECT value FROM texts($1))
UNION ALL SELECT payments.attempt_reference, payments.rail, 1, ` + movementColumns + ` FROM payments WHERE attempt_reference IN (SELECT value FROM texts($1)) AND attempt > 1
UNION ALL SELECT attempts.provider_reference, attempts.rail, 0, ` + movementColumns + ` FROM attempts JOIN payments ON payments.id = attempts.payment
WHERE attempts.provider_reference IN (SELECT value FROM texts($1))`

// ByReferences returns the payments that have one of these ProviderReferences, by the reference of the matching
// attempt.
func (rd *Reader) ByReferences(ctx context.Context, references []string) (map[string]Attempted, error) {
	var found map[string]Attempted
	err := rd.db.Read(ctx, func(tx *db.Tx) error {
		found = make(map[string]Attempted, len(references))
		return tx.Query(paymentsByReferences, []any{references}, func(r *db.Row) error {
			var a Attempted
			if err := scanMovement(r, &a); err != nil {
				return err
			}
			if before, is := found[a.Reference]; !is || before.AtRail == "" || a.Current {
				found[a.Reference] = a // the row of a rerouted payment also has its first reference
			}
			return nil
		})
	})
	return found, err
}

// Outline is the part of a payment that a line of a statement may share. Reading it costs a fraction of the payment.
type Outline struct {
	ID, Rail, Mode string
	Kind           Kind
	Account        string
	UpstreamID     string
	Gross          money.Pesewas
}

// The order of ids is the order of acceptance.
const outlinesBetween = `SELECT id, kind, account, upstream_id, amount, charges, fee_bearer FROM payments
WHERE id > $1 AND id <= $2 AND rail = $3 AND mode = $4 ORDER BY id LIMIT $5`

// OutlinesBetween returns at most limit payments of a provider and mode that were accepted after the payment with the
// id after and until a time. next is the id for the next call. An empty next means that there are no more.
func (rd *Reader) OutlinesBetween(ctx context.Context, rail, mode, after string, until time.Time, limit int) (list []Outline, next string, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		list = make([]Outline, 0, limit)
		return tx.Query(outlinesBetween, []any{after, IDAt(until), rail, mode, int64(limit)}, func(r *db.Row) error {
			var p Payment
			err := r.Scan(&p.ID, &p.Kind, &p.Account, &p.UpstreamID, &p.Amount, &p.Charges, &p.FeeBearer)
			list = append(list, Outline{ID: p.ID, Rail: rail, Mode: mode, Kind: p.Kind, Account: p.Account, UpstreamID: p.UpstreamID, Gross: p.Gross()})
			return err
		})
	})
	if err == nil && len(list) == limit {
		next = list[limit-1].ID
	}
	return list, next, err
}

// IDAt returns a text that sorts after the ids of earlier times and before the ids of at and later times.
func IDAt(at time.Time) string { return NewID(at)[:18] }

const providerFees = `SELECT subject, amount FROM transfers WHERE subject IN (SELECT value FROM texts($1)) AND leg = '` + LegProviderFee + `'`

// ProviderFees returns the posted fees of providers, by payment.
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
