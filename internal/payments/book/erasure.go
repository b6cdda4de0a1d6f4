package book

import (
	"context"

	"github.com/makola/makola/internal/db"
)

// Erased stands in the place of a number that was erased.
const Erased = "erased"

// erasureWindow is how many rows one statement looks at that searches for a number, which no index has.
const erasureWindow = 5_000

const (
	numbersAfter = `SELECT id, account FROM payments WHERE id > $1 ORDER BY id LIMIT $2`
	eraseAddress = `UPDATE payments SET callback_url = replace(callback_url, $2, $3) WHERE id = $1 AND settled_at <> 0`
	eraseParty   = `UPDATE payments SET account = $2, account_name = '', details = $3 WHERE id = $1 AND settled_at <> 0`
)

// OfNumber gives each payment with a number or a bank account, oldest first. It reads them all, in bounded parts.
func (rd *Reader) OfNumber(ctx context.Context, number string, each func(Payment) error) error {
	return db.WalkNaming(ctx, rd.db, numbersAfter, erasureWindow, number, func(ids []string) error {
		for _, id := range ids {
			pay, err := rd.Find(ctx, id)
			if err == nil {
				err = each(pay)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// EraseParty takes the number and the name of the other party off a payment that is final: from settled, to settled. The money stays.
// The details, which are as they were at the acceptance, are written again: those of earlier versions have a name.
func EraseParty(tx *db.Tx, p Payment) { tx.Defer(eraseParty, 1, p.ID, Erased, p.Details.encode()) }

// EraseAddress takes a number, in all its spellings, out of the callback address of a payment that is final: from settled, to settled.
// Should the payment settle once more, its webhook goes to the address without the number.
func EraseAddress(tx *db.Tx, id string, spellings ...string) {
	for _, s := range spellings {
		tx.Defer(eraseAddress, -1, id, s, Erased)
	}
}
