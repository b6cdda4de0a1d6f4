package payments

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// An acceptance is a request to accept a payment, as this node has it. The caller
// fills in what the request says; prepare adds to the payment its ID, CreatedAt, Status,
// ProviderReference and Rail.
type acceptance struct {
	book.Acceptance
	// field is the request's field that a channel without a provider is
	// blamed on, childField the one of the child.
	field, childField string
	// waits: the request waits for the answer to the submission (payouts).
	waits bool
	// asker is who asks for a payout that the account's own people may have to approve.
	asker *Asker
	// claimed: an operator's claim, adopted where a provider has it, and nothing else.
	claimed bool
	probe   *route.Probe // of the rail that prepare chose; nil unless its breaker is half-open
	tracked *tracked     // made by prepare; nil for what has no job
	reply   *reply       // nil where no request waits
}

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
			// What was asked before has its answer even while nothing is served.
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
		err = p.conflict(ctx, a.Payment, a.Payment.Rail, "the provider has done it, and the wallet does not cover it")
	}
	return done, err
}

// operation is what a payment asks of a provider, and the channel on which.
func operation(p book.Payment) (route.Operation, string) {
	switch {
	case p.Kind == book.KindCollection:
		return route.Collect, p.Channel
	case p.Kind == book.KindTopUp:
		return route.TopUp, p.Channel
	case p.Kind == book.KindBundle:
		return route.Bundle, p.Channel
	case p.Channel == book.ChannelBank:
		return route.DisburseBank, p.BankID
	}
	return route.DisburseWallet, p.Channel
}

// prepare makes everything about an acceptance that does not need the lock.
func (p *Payments) prepare(ctx context.Context, a *acceptance) error {
	now := p.clock.Now()
	pay := &a.Payment
	if pay.Channel == book.ChannelWallet {
		p.mint(pay, now)
		pay.Status = book.StatusSuccess
		if c := a.Child; c != nil {
			p.mint(c, now)
			c.Status, c.Parent = book.StatusSuccess, pay.ID
		}
		return nil
	}
	var err error
	if a.probe, err = p.chooseRail(ctx, pay, a.field); err != nil {
		return err
	}
	p.mint(pay, now)
	pay.Status = book.StatusPending
	if c := a.Child; c != nil {
		probe, err := p.chooseRail(ctx, c, a.childField)
		if err != nil {
			return err
		}
		probe.GiveBack(ctx) // the child is submitted once its parent is paid
		p.mint(c, now)
		c.Status = book.StatusWaiting
		c.Parent, pay.Child = pay.ID, c.ID
	}
	a.tracked = track(*pay)
	a.Memo = a.tracked
	if a.waits {
		a.reply = a.tracked.awaited()
	}
	return nil
}

// chooseRail gives a payment the best rail of now, or looks whether the one that it has may be used. The probe is of that
// rail, and must be given back unless the payment is submitted.
func (p *Payments) chooseRail(ctx context.Context, pay *book.Payment, field string) (probe *route.Probe, err error) {
	op, channel := operation(*pay)
	if pay.Rail != "" {
		probe, err = p.routes.Admit(ctx, pay.Rail, op, channel, pay.Tenant, pay.Mode)
	} else {
		var rails []provider.Rail
		if rails, probe, err = p.routes.Choose(ctx, op, channel, pay.Tenant, pay.Mode); err == nil {
			pay.Rail = rails[0].Name
		}
	}
	if err != nil && field != "" && problem.From(err).Code == "not_served" {
		err = problem.Field(field, "is not served at the moment")
	}
	return probe, err
}

// answering says whether the request that made a payment may still wait for its answer: the payment is a payout that
// is being submitted, on this node or on another.
func (p *Payments) answering(pay book.Payment) bool {
	if pay.Kind != book.KindPayout || !pay.Status.Open() || pay.Waits() {
		return false
	}
	if w := p.live.byID(pay.ID); w != nil {
		return !w.isAnswered()
	}
	return p.clock.Since(pay.CreatedAt).Abs() < answerTime
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
