package payments

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
)

// An acceptance is one request to accept a payment. Everything in it is made
// before the first try, ids included, so that a second run after a lost answer
// to COMMIT recognises its own rows.
type acceptance struct {
	// payment is the row to be. The caller fills in what the request says; prepare
	// adds ID, CreatedAt, Status, ProviderReference and Rail.
	payment Payment
	// child is a second payment that rides along: unpaid (EventReserved), the
	// top-up of airtime paid by mobile money; or the side of a transfer between
	// wallets that is in the taker's list (EventReceived). Nil for every other.
	child *Payment
	// field is the request's field that a channel without a provider is
	// blamed on, childField the one of the child.
	field, childField string
	// waits: the request waits for the answer to the submission (payouts).
	waits bool
	// repeats: the same request hears what became of it (tenant.RepeatDuplicates).
	repeats bool
	// daily is what its key may spend in a day; 0: all that is there.
	daily money.Pesewas
	// also runs in the same transaction: an operator's audit row.
	also func(*db.Tx) error

	adopted bool     // in a recovery: a provider has it already, it is not sent
	claimed bool     // an operator\'s claim: adopted where a provider has it, and nothing else
	tracked *tracked // made by prepare; nil for what has no job
	reply   *reply   // nil where no request waits
}

// An accepted is the answer to an acceptance.
type accepted struct {
	payment  Payment
	replayed bool // an earlier request made it; with an error: was refused so
}

// Shortfall is the Data of an InsufficientFunds refusal.
type Shortfall struct {
	Balance money.Pesewas
	Amount  money.Pesewas
	Charges money.Pesewas
}

// accept takes a payment in through the lane of its wallet: row, place in its
// list, holds and job in one transaction with whatever else is waiting. The
// refusals are *problem.Error: InsufficientFunds, Duplicate (Data is the
// existing Payment), InProgress, Invalid, Unavailable. None of them leaves a
// row.
func (p *Payments) accept(ctx context.Context, a *acceptance) (accepted, error) {
	if err := p.prepare(ctx, a); err != nil {
		// What was asked before has its answer even while nothing is served.
		if old, replayed, known := p.earlier(ctx, a); known != nil || replayed {
			return accepted{payment: old, replayed: replayed}, known
		}
		return accepted{}, err
	}
	if err := p.beforeDebit(ctx, a); err != nil {
		if old, replayed, known := p.earlier(ctx, a); known != nil || replayed {
			return accepted{payment: old, replayed: replayed}, known
		}
		return accepted{}, err
	}
	r, err := p.lanes.wallet(a.payment.Tenant).Do(ctx, a.payment.Tenant, rowsOf, &op{accept: a})
	if errors.Is(err, db.ErrUnique) {
		// The same Reference under another secret, which makes another
		// ProviderReference of it.
		if old, replayed, known := p.earlier(ctx, a); known != nil || replayed {
			return accepted{payment: old, replayed: replayed}, known
		}
	}
	if err != nil && a.reply != nil { // it may be accepted yet: then a refusal is told by webhook
		a.reply.waiter.CompareAndSwap(waiterThere, waiterGone)
	}
	if a.adopted && problem.Is(err, problem.InsufficientFunds) {
		err = p.conflict(ctx, a.payment, a.payment.Rail, "the provider has done it, and the wallet does not cover it")
	}
	return accepted{payment: r.payment, replayed: r.replayed}, err
}

// rowsOf is about how many rows one request writes.
const rowsOf = 4

// operation is what a payment asks of a provider, and the channel on which.
func operation(p Payment) (route.Operation, string) {
	switch {
	case p.Kind == KindCollection:
		return route.Collect, p.Channel
	case p.Kind == KindTopUp:
		return route.TopUp, p.Channel
	case p.Kind == KindBundle:
		return route.Bundle, p.Channel
	case p.Channel == ChannelBank:
		return route.DisburseBank, p.BankID
	}
	return route.DisburseWallet, p.Channel
}

// prepare makes everything about an acceptance that does not need the lock.
func (p *Payments) prepare(ctx context.Context, a *acceptance) error {
	now := p.clock.Now()
	pay := &a.payment
	if pay.Channel == ChannelWallet {
		p.mint(pay, now)
		pay.Status = StatusSuccess
		if c := a.child; c != nil {
			p.mint(c, now)
			c.Status, c.Parent = StatusSuccess, pay.ID
		}
		return nil
	}
	if err := p.chooseRail(ctx, pay, a.field); err != nil {
		return err
	}
	p.mint(pay, now)
	pay.Status = StatusPending
	if c := a.child; c != nil {
		if err := p.chooseRail(ctx, c, a.childField); err != nil {
			return err
		}
		p.mint(c, now)
		c.Status = StatusWaiting
		c.Parent, pay.Child = pay.ID, c.ID
	}
	a.tracked = track(*pay)
	if a.waits {
		a.reply = a.tracked.awaited()
	}
	return nil
}

func (p *Payments) chooseRail(ctx context.Context, pay *Payment, field string) error {
	op, channel := operation(*pay)
	rails, err := p.routes.Choose(ctx, op, channel, pay.Tenant, pay.Mode)
	if err != nil {
		if e := problem.From(err); e.Code == "not_served" && field != "" {
			return problem.Field(field, "is not served at the moment")
		}
		return err
	}
	if pay.Rail == "" {
		pay.Rail = rails[0].Name
		return nil
	}
	for _, r := range rails {
		if r.Name == pay.Rail {
			return nil
		}
	}
	return problem.New(problem.Unavailable, "provider_unavailable", "This service is not available at the moment. Nothing was sent; try again shortly.")
}

// acceptOne judges an acceptance inside the transaction, under the locks, and
// adds what it writes. The verdict counts in what the requests before it in the
// batch leave of the wallet.
func (b *batch) acceptOne(a *acceptance) (result, error) {
	pay := a.payment // the row of this run; another run begins anew
	if old := b.byReference[referenceOf(pay)]; old != nil && old.ID == pay.ID {
		if a.tracked != nil {
			a.tracked.begins(*old)
		}
		return result{payment: *old, changed: true}, nil // an earlier run of ours
	}
	if old := b.byIdempotency(pay); old != nil {
		return b.p.replay(*old, pay)
	}
	if old := b.byReference[referenceOf(pay)]; old != nil {
		var topUp *Payment
		if a.child != nil {
			topUp = b.byReference[referenceOf(*a.child)]
		}
		return b.p.again(a, *old, topUp)
	}
	if a.child != nil {
		if old := b.byReference[referenceOf(*a.child)]; old != nil {
			return result{}, duplicate(*old)
		}
	}
	wallet := walletOf(pay)
	if held := pay.debit(); held > 0 && !b.page.Covers(wallet, int64(held)) {
		e := problem.New(problem.InsufficientFunds, "insufficient_wallet_balance", "Insufficient wallet balance")
		e.Data = Shortfall{Balance: money.Pesewas(b.page.Balance(wallet)), Amount: pay.Amount, Charges: pay.Charges}
		return result{}, e
	}
	if a.limited() {
		if err := b.spending.take(a, pay.debit()); err != nil {
			return result{}, err
		}
	}
	event, beside := EventAccepted, EventReserved
	if pay.Channel == ChannelWallet {
		event, beside = EventMoved, EventReceived
	}
	if err := b.open(&pay, event); err != nil {
		return result{}, err
	}
	if a.child != nil {
		child := *a.child
		if err := b.open(&child, beside); err != nil {
			return result{}, err
		}
	}
	if a.tracked != nil {
		a.tracked.begins(pay)
		b.job(a.tracked, pay)
	}
	if a.also != nil {
		b.also = append(b.also, a.also)
	}
	return result{payment: pay, changed: true}, nil
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

// debit is what acceptance takes out of the wallet.
func (p Payment) debit() money.Pesewas {
	switch {
	case p.Status == StatusWaiting || p.Received():
		return 0
	case p.Channel == ChannelWallet:
		return p.Amount
	}
	return p.Held()
}

// asset is the money of a mode.
func asset(mode string) ledger.Asset {
	if mode == "live" {
		return ledger.GHS
	}
	return ledger.TestGHS
}

func walletOf(p Payment) ledger.Key {
	return ledger.Key{Asset: asset(p.Mode), ID: ledger.Wallet(p.Tenant)}
}
