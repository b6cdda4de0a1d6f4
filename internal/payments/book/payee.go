package book

import (
	"context"

	"github.com/makola/makola/internal/db"
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
