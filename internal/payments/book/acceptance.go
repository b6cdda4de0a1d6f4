package book

import (
	"cmp"
	"context"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Accept takes a payment in through the lane of its wallet: row, place in its
// list, holds and job in one transaction with whatever else is waiting. The
// refusals are *problem.Error: InsufficientFunds, Duplicate (Data is the existing
// Payment), InProgress. None of them leaves a row.
func (bk *Book) Accept(ctx context.Context, a *Acceptance) (Accepted, error) {
	r, err := bk.lanes.wallet(a.Payment.Tenant).Do(ctx, a.Payment.Tenant, rowsOf, &Op{Accept: a})
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
	if pay.Status.Open() && !pay.Waits() {
		b.job(pay)
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
