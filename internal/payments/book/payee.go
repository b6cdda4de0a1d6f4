package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// PayeeWindow is the number of a tenant's newest payouts that PaidTo scans.
const PayeeWindow = 1_000

const paidTo = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind = 'payout' AND account = $2
AND seq > (SELECT COALESCE(max(seq), 0) FROM payments WHERE tenant = $1 AND kind = 'payout') - $3 ORDER BY seq DESC LIMIT $4`

// PaidTo lists a tenant's payouts to one number or bank account, newest first. account is in its stored form. PaidTo
// scans only the last PayeeWindow payouts, so that its cost is constant.
func (rd *Reader) PaidTo(ctx context.Context, tenant, account string, limit int) (rows []Payment, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		rows = nil
		return tx.Query(paidTo, []any{tenant, account, PayeeWindow, limit}, appendPayment(&rows))
	})
	return rows, err
}

// Paid is an amount paid to an account.
type Paid struct {
	Account string
	Amount  money.Pesewas
}

const paidSince = `SELECT account, amount, max(created_at) FROM payments WHERE unindexed(payments.tenant) = $1 AND kind = 'payout' AND account IN (SELECT value FROM texts($2))
AND created_at >= $3 AND status <> 'failed' GROUP BY account, amount`

// PaidSince returns the amounts of a tenant's successful and open payouts to accounts since a time. The map's values
// are the times of the last payouts.
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

const usedReferences = `SELECT reference FROM payments WHERE tenant = $1 AND kind = 'payout' AND reference IN (SELECT value FROM texts($2))`

// UsedReferences returns the references that payouts of the tenant have already.
func (rd *Reader) UsedReferences(ctx context.Context, tenant string, references []string) (taken map[string]bool, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		taken = map[string]bool{}
		return tx.Query(usedReferences, []any{tenant, references}, func(r *db.Row) error {
			var reference string
			err := r.Scan(&reference)
			taken[reference] = true
			return err
		})
	})
	return taken, err
}
