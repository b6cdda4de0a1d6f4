package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// PayeeWindow is how many of a tenant's newest payouts PaidTo looks at.
const PayeeWindow = 1_000

const paidTo = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind = 'payout' AND account = $2
AND seq > (SELECT COALESCE(max(seq), 0) FROM payments WHERE tenant = $1 AND kind = 'payout') - $3 ORDER BY seq DESC LIMIT $4`

// PaidTo gives a tenant's newest payouts to one number or bank account as it is stored, newest first and at most limit.
// It looks at the last PayeeWindow payouts, so that it costs the same however many there are.
func (rd *Reader) PaidTo(ctx context.Context, tenant, account string, limit int) (rows []Payment, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		rows = nil
		return tx.Query(paidTo, []any{tenant, account, PayeeWindow, limit}, appendPayment(&rows))
	})
	return rows, err
}

// Paid is an amount that was paid to an account.
type Paid struct {
	Account string
	Amount  money.Pesewas
}

const paidSince = `SELECT account, amount, max(created_at) FROM payments WHERE tenant = $1 AND kind = 'payout' AND account IN (SELECT value FROM texts($2))
AND created_at >= $3 AND status <> 'failed' GROUP BY account, amount`

// PaidSince finds what a tenant's payouts since a time paid to accounts, or may pay yet, with the time of the last of each.
func (rd *Reader) PaidSince(ctx context.Context, tenant string, accounts []string, since time.Time) (paid map[Paid]time.Time, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		paid = map[Paid]time.Time{}
		return tx.Query(paidSince, []any{tenant, accounts, db.Micros(since)}, func(r *db.Row) error {
			var p Paid
			var at time.Time
			err := r.Scan(&p.Account, &p.Amount, &at)
			paid[p] = at
			return err
		})
	})
	return paid, err
}

const takenReferences = `SELECT reference FROM payments WHERE tenant = $1 AND kind = 'payout' AND reference IN (SELECT value FROM texts($2))`

// TakenReferences finds the references that payouts of a tenant have.
func (rd *Reader) TakenReferences(ctx context.Context, tenant string, references []string) (taken map[string]bool, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		taken = map[string]bool{}
		return tx.Query(takenReferences, []any{tenant, references}, func(r *db.Row) error {
			var reference string
			err := r.Scan(&reference)
			taken[reference] = true
			return err
		})
	})
	return taken, err
}
