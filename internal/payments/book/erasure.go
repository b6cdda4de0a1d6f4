package book

import (
	"context"

	"github.com/makola/makola/internal/db"
)

// Erased replaces an erased number.
const Erased = "erased"

// erasureWindow is the number of rows that one statement scans. A scan is necessary because numbers have no index.
const erasureWindow = 5_000

const (
	numbersAfter = `SELECT id, account FROM payments WHERE id > $1 ORDER BY id LIMIT $2`
	eraseAddress = `UPDATE payments SET callback_url = replace(callback_url, $2, $3) WHERE id = $1 AND settled_at <> 0`
	eraseParty   = `UPDATE payments SET account = $2, account_name = '', details = $3 WHERE id = $1 AND settled_at <> 0`
)

// OfNumber calls each for every payment of a number or bank account, oldest first. It scans all payments, in steps of
// erasureWindow.
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

// EraseParty erases the number and name of the other party of a settled payment, which stays settled. Amounts stay.
// The details are rewritten too, because earlier versions stored a name there.
func EraseParty(tx *db.Tx, p Payment) { tx.Defer(eraseParty, 1, p.ID, Erased, p.Details.encode()) }

// EraseAddress erases all spellings of a number from the callback address of a settled payment, which stays settled.
// If the payment settles once more, its webhook goes to the changed address.
func EraseAddress(tx *db.Tx, id string, spellings ...string) {
	for _, s := range spellings {
		tx.Defer(eraseAddress, -1, id, s, Erased)
	}
}
