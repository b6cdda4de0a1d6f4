package payments

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// accept takes a payment in through the lane of its wallet: row, place in its
// list, holds and job in one transaction with whatever else is waiting. The
// refusals are *problem.Error: InsufficientFunds, Duplicate (Data is the
// existing Payment), InProgress, Invalid, Unavailable. None of them leaves a
// row.
func (p *Payments) accept(ctx context.Context, a *acceptance) (done book.Accepted, err error) {
	defer func() {
		if err != nil || done.Replayed || a.Adopted || done.Payment.Waits() {
			a.probe.GiveBack(ctx) // nothing is submitted
		}
	}()
	for _, step := range []func(context.Context, *acceptance) error{p.prepare, p.beforeDebit, p.hold} {
		if err := step(ctx, a); err != nil {
			// A request that came before gets its answer even while nothing is served.
			if old, replayed, known := p.book.Earlier(ctx, &a.Acceptance); known != nil || replayed {
				return book.Accepted{Payment: old, Replayed: replayed}, known
			}
			return book.Accepted{}, err
		}
	}
	done, err = p.book.Accept(ctx, &a.Acceptance)
	if errors.Is(err, db.ErrUnique) {
		// The same Reference under another secret, which makes another
		// ProviderReference of it.
		if old, replayed, known := p.book.Earlier(ctx, &a.Acceptance); known != nil || replayed {
			return book.Accepted{Payment: old, Replayed: replayed}, known
		}
	}
	if err != nil && a.reply != nil { // it may be accepted yet: then a refusal is told by webhook
		a.reply.waiter.CompareAndSwap(waiterThere, waiterGone)
	}
	if a.Adopted && problem.Is(err, problem.InsufficientFunds) {
		err = p.recovered.conflict(ctx, a.Payment, a.Payment.Rail, "the provider has done it, and the wallet does not cover it")
	}
	if a.unsure && problem.Is(err, problem.InsufficientFunds) {
		err = errRecovering("The service is being recovered, and a provider may have done this. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	}
	return done, err
}

// prepare makes everything about an acceptance that does not need the lock.
func (p *Payments) prepare(ctx context.Context, a *acceptance) error {
	now := p.clock.Now()
	pay := &a.Payment
	if pay.Channel == book.ChannelWallet {
		p.references.mint(pay, now)
		pay.Status = book.StatusSuccess
		if c := a.Child; c != nil {
			p.references.mint(c, now)
			c.Status, c.Parent = book.StatusSuccess, pay.ID
		}
		return nil
	}
	if !a.claimed { // a claim goes to the rail that has it, whatever may be sent there now
		var err error
		if a.probe, err = p.rails.choose(ctx, pay, a.field); err != nil {
			return err
		}
	}
	p.references.mint(pay, now)
	pay.Status = book.StatusPending
	if c := a.Child; c != nil {
		probe, err := p.rails.choose(ctx, c, a.childField)
		if err != nil {
			return err
		}
		probe.GiveBack(ctx) // the child is submitted once its parent is paid
		p.references.mint(c, now)
		c.Status = book.StatusWaiting
		c.Parent, pay.Child = pay.ID, c.ID
	}
	a.tracked = track(*pay, momentOf(p.clock))
	a.Memo = a.tracked
	if a.waits {
		a.reply = a.tracked.awaited()
	}
	return nil
}

// hold marks a payout that must be approved. One that a provider has already, adopted in a recovery, was approved in the time
// that was lost.
func (p *Payments) hold(ctx context.Context, a *acceptance) error {
	if p.holds == nil || a.asker == nil || a.Adopted {
		return nil
	}
	h, err := p.holds(ctx, *a.asker, a.Payment)
	if err != nil || h == nil {
		return err
	}
	a.Payment.HeldUntil, a.Also = h.Until, h.Write
	return nil
}

// replayed is Payout's answer to a request that came before: the payment that it made, or its refusal. again is handed
// back.
func (p *Payments) replayed(old book.Payment, again bool, err error) (book.Payment, bool, error) {
	if err == nil && old.Refused {
		err = book.Refused(old)
	}
	if err != nil {
		return book.Payment{}, again, err
	}
	return old, true, nil
}
