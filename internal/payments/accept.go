package payments

import (
	"context"

	"github.com/makola/makola/internal/db"
)

// An acceptance is one request to accept a payment. Everything in it is made
// before the first try, ids included, so that a second run after a lost answer
// to COMMIT recognises its own rows.
type acceptance struct {
	// payment is the row to be, complete but for what mint and plan fill in:
	// ID, CreatedAt, ProviderReference, Rail (see prepare).
	payment Payment
	// child is a second payment that rides along unpaid (EventReserved): the
	// top-up of airtime paid by mobile money. Nil for every other kind.
	child *Payment
	// also runs in the same transaction: an operator's audit row.
	also func(*db.Tx) error
}

// An accepted is the answer to an acceptance.
type accepted struct {
	payment  Payment
	replayed bool // an earlier request with the same Idempotency-Key made it
}

// accept takes a payment in through the lane of its wallet: row, holds, job
// and counter in one transaction with whatever else is waiting. Inside it the
// lists' ends (counters.go) are locked after the wallets, ends.place gives each
// row its Seq and final CreatedAt, and ends.post goes before the rows. The refusals
// are *problem.Error: InsufficientFunds, Duplicate (Data is the existing
// Payment), InProgress, Invalid.
func (p *Payments) accept(ctx context.Context, a acceptance) (accepted, error) {
	panic("payments: accept is not written yet")
}
