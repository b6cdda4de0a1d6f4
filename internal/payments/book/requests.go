package book

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// An Acceptance is one request to accept a payment. Everything in it is made
// before the first try, ids included, so that a second run after a lost answer
// to COMMIT recognises its own rows.
type Acceptance struct {
	// Payment is the row to be, with its ids.
	Payment Payment
	// Child is a second payment that rides along: unpaid (EventReserved), the
	// top-up of airtime paid by mobile money; or the side of a transfer between
	// wallets that is in the taker's list (EventReceived). Nil for every other.
	Child *Payment
	// Refunds is the collection that a refund gives back, as it was read before; nil for every other payment.
	Refunds *Payment
	// Repeats: the same request hears what became of it (tenant.RepeatDuplicates).
	Repeats bool
	// Daily is what its key may spend in a day; 0: all that is there.
	Daily money.Pesewas
	// Adopted: in a recovery a provider has it already, it is not sent.
	Adopted bool
	// Also runs in the same transaction: an operator's audit row.
	Also func(*db.Tx) error
}

// An Accepted is the answer to an acceptance.
type Accepted struct {
	Payment  Payment
	Replayed bool // an earlier request made it; with an error: was refused so
}

// Shortfall is the Data of an InsufficientFunds refusal.
type Shortfall struct {
	Balance money.Pesewas
	Amount  money.Pesewas
	Charges money.Pesewas
}

// limited says whether an acceptance counts. A payment that a provider has already made, in a life
// of the database that was lost, is taken over whatever the limit.
func (a *Acceptance) limited() bool { return a.Daily > 0 && !a.Adopted && a.Payment.debit() > 0 }

// A Drawing accepts payouts that the reserve of a batch pays instead of the wallet. One transaction accepts all of them.
type Drawing struct {
	Batch    string
	Payments []Payment // of the batch and of one tenant, with their ids
	// Lock locks the row of the batch, and returns the rest of its reserve. A *problem.Error refuses the drawing, and no other
	// request of the transaction.
	Lock func(tx *db.Tx) (rest money.Pesewas, err error)
	// Write stores, in the same transaction, what became of each payment, in their order.
	Write func(tx *db.Tx, drawn []Drawn) error
}

// Drawn is what became of a payment of a drawing.
type Drawn struct {
	Payment Payment // as it was accepted
	Refused error   // Duplicate, with the payment that has the Reference as Data; nil: it was accepted
}

// A Settlement asks for one arrow of the table: a final word, a word that
// contradicts an earlier one, or a mark on an open payment.
type Settlement struct {
	Payment Payment // as last read; Attempt must still be the current one
	Event   Event
	At      time.Time // made by settle when zero
	// Known: payment is what this process itself last wrote or read as the
	// owner of its job, so that it may be tried without reading again.
	Known   bool
	Reason  string           // stable code; decides between failed, declined and invalid
	Outcome provider.Outcome // UpstreamID, Fee, Commission, Name
	Refused bool             // payouts: the request that asked is still waiting and is told so
	Note    string           // an operator's reason
	Mark    *Mark            // for the arrows that stay on pending
	// Posts, if it is not 0, must equal the row's count of submissions, and the mark of Payment that
	// of the row: the word is about these submissions, and another node that took the payment over may
	// have sent one more, or the first.
	Posts int
	// Refund is accepted in the same transaction; made by Settle.
	Refund *Acceptance
	// Judge, where it is not nil, may refuse the row as it is under its lock.
	Judge func(Payment) error
	// Also runs in the same transaction: an operator's audit row.
	Also func(*db.Tx) error
}

// byWallet says whether an arrow of the event can lock a wallet.
func (s *Settlement) byWallet() bool {
	switch s.Event {
	case EventSucceeded:
		return s.Payment.Kind == KindCollection
	case EventFailed:
		return s.Payment.Kind != KindCollection
	case EventPaidLate:
		return true
	case EventReversed:
		return s.Payment.Kind == KindCollection
	}
	return false
}

// A Settled is what came of a settlement.
type Settled struct {
	Payment Payment // the row as it is now
	Changed bool    // false: another process was first, or the arrow does not start where the row is
}

// A Mark changes the attempt of an open payment; row is what becomes of it.
type Mark struct {
	Row                  Payment
	WasAttempt, WasPosts int
	WasSending, WasHeld  time.Time
}

// MarkTo is the mark by which an open payment as it was read becomes row.
func (p Payment) MarkTo(row Payment) *Mark {
	return &Mark{Row: row, WasAttempt: p.Attempt, WasPosts: p.Posts, WasSending: p.SendingAt, WasHeld: p.HeldUntil}
}

// starts says whether a row is where a mark begins.
func (m *Mark) starts(row Payment) bool {
	return row.Attempt == m.WasAttempt && row.Posts == m.WasPosts && row.SendingAt.Equal(m.WasSending) && row.HeldUntil.Equal(m.WasHeld)
}

// An Op is one request to a lane: one of the three is set.
type Op struct {
	Accept *Acceptance
	Draw   *Drawing
	Settle *Settlement
}

// A Result answers an op.
type Result struct {
	Payment  Payment
	Replayed bool // accept: an earlier request made it
	Changed  bool // settle: this request moved it
	// NoRefund is why the refund of the settlement was refused.
	NoRefund error
}
