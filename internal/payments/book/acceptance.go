package book

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// An Acceptance is one request to accept a payment. Everything in it is made
// before the first try, ids included, so that a second run after a lost answer
// to COMMIT recognises its own rows.
type Acceptance struct {
	// payment is the row to be, with its ids.
	Payment Payment
	// child is a second payment that rides along: unpaid (EventReserved), the
	// top-up of airtime paid by mobile money; or the side of a transfer between
	// wallets that is in the taker's list (EventReceived). Nil for every other.
	Child *Payment
	// memo is the memory of the payment's job (jobs.Job.Memo), where it is open.
	Memo any
	// repeats: the same request hears what became of it (tenant.RepeatDuplicates).
	Repeats bool
	// daily is what its key may spend in a day; 0: all that is there.
	Daily money.Pesewas
	// adopted: in a recovery a provider has it already, it is not sent.
	Adopted bool
	// also runs in the same transaction: an operator's audit row.
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

// acceptOne judges an acceptance inside the transaction, under the locks, and
// adds what it writes. The verdict counts in what the requests before it in the
// batch leave of the wallet.
func (b *batch) acceptOne(a *Acceptance) (Result, error) {
	pay := a.Payment // the row of this run; another run begins anew
	if old := b.byReference[referenceOf(pay)]; old != nil && old.ID == pay.ID {
		return Result{Payment: *old, Changed: true}, nil // an earlier run of ours
	}
	if old := b.byIdempotency(pay); old != nil {
		return b.book.replay(*old, pay)
	}
	if old := b.byReference[referenceOf(pay)]; old != nil {
		var topUp *Payment
		if a.Child != nil {
			topUp = b.byReference[referenceOf(*a.Child)]
		}
		return b.book.again(a, *old, topUp)
	}
	if a.Child != nil {
		if old := b.byReference[referenceOf(*a.Child)]; old != nil {
			return Result{}, duplicate(*old)
		}
	}
	wallet := walletOf(pay)
	if held := pay.debit(); held > 0 && !b.page.Covers(wallet, int64(held)) {
		e := problem.New(problem.InsufficientFunds, "insufficient_wallet_balance", "Insufficient wallet balance")
		e.Data = Shortfall{Balance: money.Pesewas(b.page.Balance(wallet)), Amount: pay.Amount, Charges: pay.Charges}
		return Result{}, e
	}
	if a.limited() {
		if err := b.spending.take(a, pay.debit()); err != nil {
			return Result{}, err
		}
	}
	event, beside := EventAccepted, EventReserved
	if pay.Channel == ChannelWallet {
		event, beside = EventMoved, EventReceived
	}
	if err := b.open(&pay, event); err != nil {
		return Result{}, err
	}
	if a.Child != nil {
		child := *a.Child
		if err := b.open(&child, beside); err != nil {
			return Result{}, err
		}
	}
	if pay.Status.Open() && !pay.Waits() {
		b.job(a.Memo, pay)
	}
	if a.Also != nil {
		b.also = append(b.also, a.Also)
	}
	return Result{Payment: pay, Changed: true}, nil
}

// open adds a new row with its place and its postings.
func (b *batch) open(pay *Payment, e Event) error {
	way, ok := arrow(pay.Kind, "", e)
	if !ok {
		return errNoArrow(*pay, e)
	}
	if err := b.postings(way, *pay, pay.CreatedAt); err != nil {
		return err
	}
	pay.Seq, pay.CreatedAt = b.ends.Append(listOf(*pay), pay.CreatedAt)
	if !pay.Status.Open() {
		pay.SettledAt = pay.CreatedAt
	}
	b.tally.Begins(listOf(*pay), pay.Seq, pay.Status.counted())
	b.inserts = append(b.inserts, pay)
	b.byReference[referenceOf(*pay)] = pay
	if pay.IdempotencyKey != "" {
		b.byKey[idempotencyOf(*pay)] = pay
	}
	return nil
}
