package book

import (
	"cmp"
	"context"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Accept accepts a payment in the group commit of its wallet. One transaction writes the row, its place in the
// tenant's list, the hold and the job. Refusals are *problem.Error and leave no row: InsufficientFunds, Duplicate
// (Data is the existing Payment), InProgress.
func (bk *Book) Accept(ctx context.Context, a *Acceptance) (Accepted, error) {
	r, err := bk.committers.wallet(a.Payment.Tenant).Do(ctx, a.Payment.Tenant, rowsOf, &Op{Accept: a})
	if problem.Is(err, problem.InProgress) {
		if old, replayed, judged := bk.earlier(ctx, a); replayed || judged != nil {
			return Accepted{Payment: old, Replayed: replayed}, judged
		}
	}
	if r.Replayed {
		err = cmp.Or(bk.remember(ctx, r.Payment, a.Payment), err)
	}
	return Accepted{Payment: r.Payment, Replayed: r.Replayed}, err
}

// acceptOne decides one acceptance and adds its writes. The transaction has taken all locks. The balance of the
// wallet excludes the holds of earlier requests in the batch.
func (b *batch) acceptOne(a *Acceptance) (Result, error) {
	pay := a.Payment // a copy: the transaction may run again
	if old := b.byReference[referenceOf(pay)]; old != nil && old.ID == pay.ID {
		return Result{Payment: *old, Changed: true}, nil // written by an earlier run of this request
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
	if a.Refunds != nil {
		if err := b.refundable(pay); err != nil {
			return Result{}, err
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
	if a.Refunds != nil {
		if err := b.refundAccepted(pay); err != nil {
			return Result{}, err
		}
	}
	if a.Child != nil {
		child := *a.Child
		if err := b.open(&child, beside); err != nil {
			return Result{}, err
		}
	}
	if pay.Status.Open() && !pay.AwaitsApproval() {
		b.job(pay)
	}
	if a.InTx != nil {
		b.inTx = append(b.inTx, a.InTx)
	}
	return Result{Payment: pay, Changed: true}, nil
}

// open adds a new row, its place in the tenant's list and its postings.
func (b *batch) open(pay *Payment, e Event) error {
	way, ok := transitionFor(pay.Kind, "", e)
	if !ok {
		return errNoTransition(*pay, e)
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
