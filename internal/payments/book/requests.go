package book

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// An Acceptance is one request to accept a payment. The caller sets all fields, ids included, before the first run.
// If the response to COMMIT is lost, a second run then recognizes its own rows.
type Acceptance struct {
	// Payment is the new row with its ids.
	Payment Payment
	// Child is a second payment that is accepted in the same transaction, or nil. For airtime paid by mobile money it
	// is the unpaid top-up (EventReserved). For a transfer between wallets it is the receiver's side (EventReceived).
	Child *Payment
	// Refunds is the collection that the refund returns, as read before the transaction. It is nil for all other
	// payments.
	Refunds *Payment
	// Repeats lets a repeated request return the payment's state (tenant.RepeatDuplicates).
	Repeats bool
	// Daily is the daily spending limit of the access key. 0 means no limit.
	Daily money.Pesewas
	// Adopted is set in a recovery for a payment that a provider has already. It is not sent.
	Adopted bool
	// InTx runs in the same transaction, such as for an operator's audit row.
	InTx func(*db.Tx) error
}

// An Accepted is the result of an acceptance.
type Accepted struct {
	Payment  Payment
	Replayed bool // an earlier request created the payment; with an error: the earlier request was refused too
}

// Shortfall is the Data of an InsufficientFunds refusal.
type Shortfall struct {
	Balance money.Pesewas
	Amount  money.Pesewas
	Charges money.Pesewas
}

// limited reports whether the daily limit applies. It does not apply to payments adopted in a recovery, because the
// provider paid them before the restore.
func (a *Acceptance) limited() bool { return a.Daily > 0 && !a.Adopted && a.Payment.debit() > 0 }

// A Drawing accepts payouts of a batch in one transaction. The batch's reserve pays them instead of the wallet.
type Drawing struct {
	Batch    string
	Payments []Payment // of the batch and one tenant, with their ids
	// Lock locks the row of the batch and returns the remaining reserve. A *problem.Error refuses this drawing only.
	Lock func(tx *db.Tx) (rest money.Pesewas, err error)
	// Write runs in the same transaction and stores the result of each payment, in the order of Payments.
	Write func(tx *db.Tx, drawn []Drawn) error
}

// Drawn is the result for one payment of a drawing.
type Drawn struct {
	Payment Payment // as accepted
	Refused error   // Duplicate, whose Data is the payment with the Reference; nil if accepted
}

// A Settlement requests one transition: a final state, a contradiction of a final state, or a change of an open
// payment's attempt.
type Settlement struct {
	Payment Payment // as last read; Attempt must still be current
	Event   Event
	At      time.Time // zero: now
	// Known means that this process owns the payment's job and was the last to write or read Payment. The settlement
	// is then first tried without reading the row.
	Known   bool
	Reason  string           // stable code; selects failed, declined or invalid
	Outcome provider.Outcome // UpstreamID, Fee, Commission, Name
	Refused bool             // payouts: the waiting request returns the refusal, so no webhook is sent
	Note    string           // an operator's reason
	Change  *AttemptChange   // for transitions that leave the payment pending
	// Submissions, if not 0, must equal the row's count, and SendingAt must match. The outcome is only about these
	// submissions: another node may have taken over the payment and submitted it again.
	Submissions int
	// Refund is accepted in the same transaction. Settle sets it.
	Refund *Acceptance
	// Guard, if not nil, may refuse the locked row.
	Guard func(Payment) error
	// InTx runs in the same transaction, such as for an operator's audit row.
	InTx func(*db.Tx) error
}

// locksWallet reports whether a transition of the event can lock a wallet.
func (s *Settlement) locksWallet() bool {
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

// A Settled is the result of a settlement.
type Settled struct {
	Payment Payment // current row
	Changed bool    // false: another process settled first, or the row's status has no such transition
}

// An AttemptChange replaces the attempt fields of an open payment with the fields of Row. The row must still have the
// values of the Was fields.
type AttemptChange struct {
	Row                        Payment
	WasAttempt, WasSubmissions int
	WasSending, WasDeadline    time.Time
}

// ChangeTo returns the change from the read row p to row.
func (p Payment) ChangeTo(row Payment) *AttemptChange {
	return &AttemptChange{Row: row, WasAttempt: p.Attempt, WasSubmissions: p.Submissions, WasSending: p.SendingAt, WasDeadline: p.ApprovalDeadline}
}

// starts reports whether the row still has the values from which the change starts.
func (m *AttemptChange) starts(row Payment) bool {
	return row.Attempt == m.WasAttempt && row.Submissions == m.WasSubmissions && row.SendingAt.Equal(m.WasSending) && row.ApprovalDeadline.Equal(m.WasDeadline)
}

// An Op is one request to a group commit. Exactly one field is set.
type Op struct {
	Accept *Acceptance
	Draw   *Drawing
	Settle *Settlement
}

// A Result is the result of an Op.
type Result struct {
	Payment  Payment
	Replayed bool // accept: an earlier request created it
	Changed  bool // settle: this request changed the payment
	// NoRefund is the refusal of the settlement's Refund.
	NoRefund error
}
