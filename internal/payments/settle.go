package payments

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// A settlement asks for one arrow of the table: a final word, a word that
// contradicts an earlier one, or a mark on an open payment.
type settlement struct {
	payment Payment // as last read; Attempt must still be the current one
	event   Event
	reason  string           // stable code; decides between failed, declined and invalid
	outcome provider.Outcome // UpstreamID, Fee, Commission, Name
	refused bool             // payouts: the request that asked is still waiting and is told so
	note    string           // an operator's reason
	// also runs in the same transaction: an operator's audit row.
	also func(*db.Tx) error
}

// A settled is what came of a settlement.
type settled struct {
	payment Payment // the row as it is now
	changed bool    // false: it was there already, or the arrow does not start where the row is
}

// settle takes a payment along an arrow: the guarded transition, its postings,
// the customer's event, the counters, and the end of the job where the payment
// is final, in one transaction with whatever else is waiting. Arrows that post
// to a wallet go through the wallet's lane, the others through the lanes by
// payment.
func (p *Payments) settle(ctx context.Context, s settlement) (settled, error) {
	panic("payments: settle is not written yet")
}
