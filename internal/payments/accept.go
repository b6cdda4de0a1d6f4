package payments

import (
	"context"
	"errors"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// accept takes a payment in through the lane of its wallet: row, place in its
// list, holds and job in one transaction with whatever else is waiting. The
// refusals are *problem.Error: InsufficientFunds, Duplicate (Data is the
// existing Payment), InProgress, Invalid, Unavailable. None of them leaves a
// row.
func (p *Payments) accept(ctx context.Context, a *request) (done book.Accepted, err error) {
	defer func() {
		if err != nil || done.Replayed || a.Adopted || done.Payment.Waits() {
			a.probe.GiveBack(ctx) // nothing is submitted
		}
	}()
	for _, step := range []func(context.Context, *request) error{p.prepare, p.beforeDebit, p.hold} {
		if err := step(ctx, a); err != nil {
			// A request that came before gets its answer even while nothing is served.
			if old, replayed, known := p.book.Earlier(ctx, &a.Acceptance); known != nil || replayed {
				return book.Accepted{Payment: old, Replayed: replayed}, known
			}
			return book.Accepted{}, err
		}
	}
	if a.attempt != nil {
		p.follower.live.expect(a.attempt)
		defer func() { p.follower.live.unexpect(a.attempt) }()
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

// prepare makes everything about a request that does not need the lock.
func (p *Payments) prepare(ctx context.Context, a *request) error {
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
	a.attempt = newAttempt(*pay, momentOf(p.clock))
	if a.waits {
		a.reply = a.attempt.awaited()
	}
	return nil
}

// hold marks a payout that must be approved. One that a provider has already, adopted in a recovery, was approved in the time
// that was lost.
func (p *Payments) hold(ctx context.Context, a *request) error {
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

// mintedDays is how many days back a minted reference is looked for.
const mintedDays = 7

// errUnclaimed refuses a claim that no provider knows.
var errUnclaimed = problem.New(problem.NotFound, "claim_not_known", "No provider has it")

// beforeDebit looks for a new request at every rail. One that a rail knows is
// adopted there: it is debited and asked about, never sent. The refusals leave no
// row.
func (p *Payments) beforeDebit(ctx context.Context, a *request) error {
	s, err := p.recovered.state(ctx)
	if err != nil || !s.Lasts() || a.Payment.Channel == book.ChannelWallet {
		if err == nil && a.claimed { // as a new payment it would be sent
			return errRecovering("No recovery lasts any more. A claim is looked for while one does.", recoveryPause)
		}
		return err
	}
	pay := &a.Payment
	switch {
	case s.Closed():
		return errRecovering("The service is being recovered. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	case pay.Details.Minted && pay.IdempotencyKey == "" && !s.Allows(pay.Tenant):
		return errRecovering("The service is being recovered. A purchase needs a reference of its own or an Idempotency-Key until that is done.", recoveryPause)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askTime)
	defer cancel()
	found := p.recovered.askAllRails(ctx, s, *pay, a.claimed)
	for day := 1; !found.known && pay.Details.Minted && pay.IdempotencyKey != "" && day <= mintedDays; day++ {
		at := p.clock.Now().AddDate(0, 0, -day)
		if !s.Since.IsZero() && at.AddDate(0, 0, 1).Before(s.Since) {
			break
		}
		earlier := *pay
		earlier.Reference = p.references.mintedOn(*pay, at)
		earlier.ProviderReference = p.references.make(earlier)
		earlier.AttemptReference = earlier.ProviderReference
		if before := p.recovered.askAllRails(ctx, s, earlier, false); before.known || before.differs || before.silent != "" {
			found = before
			*pay = earlier
		}
	}
	switch {
	case found.known:
		pay.Rail, pay.SendingAt, pay.UpstreamID, pay.RefundWay = found.rail.Name, p.clock.Now(), found.outcome.UpstreamID, found.way
		a.Adopted = true
		if c := a.Child; c != nil { // the top-up of an earlier day has that day's reference, too
			c.Reference = pay.Reference
			c.ProviderReference = p.references.make(*c)
			c.AttemptReference = c.ProviderReference
		}
		a.attempt.begins(*pay)
		a.attempt.rail, a.attempt.stage, a.attempt.arrived = pay.Rail, stageSent, 1
		now := momentOf(p.clock)
		a.attempt.openedAt, a.attempt.sentAt, a.attempt.acceptedAt, a.attempt.nextAsk = now, now, now, now
		a.attempt.asking.Store(true)
	case found.differs:
		return p.recovered.conflict(ctx, *pay, found.rail.Name, "the provider has another amount or party under the reference: "+found.outcome.Message)
	case found.silent != "":
		return errRecovering("The service is being recovered, and a provider does not answer. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	case found.wait > 0:
		return errRecovering("The service is being recovered. Nothing was sent; try again shortly, with the same reference.", found.wait)
	}
	if a.claimed && !a.Adopted {
		return errUnclaimed
	}
	if a.Adopted { // a conflict about it, from before the wallet covered it, is over
		a.Also = all([]func(*db.Tx) error{a.Also, func(tx *db.Tx) error {
			return p.recovered.recovery.Settled(tx, pay.Tenant, string(pay.Kind), pay.Reference)
		}})
	}
	a.unsure = found.unsure
	a.attempt.searched = true
	return nil
}

// A request asks to accept a payment, as this node has it. The caller
// fills in what the request says; prepare adds to the payment its ID, CreatedAt, Status,
// ProviderReference and Rail.
type request struct {
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
	// unsure: while a recovery lasts, the one rail that serves it may have it yet.
	unsure  bool
	probe   *route.Probe // of the rail that prepare chose; nil unless its breaker is half-open
	attempt *attempt     // made by prepare; nil for what has no job
	reply   *reply       // nil where no request waits
}

// asked begins a payment with what every kind takes from the request's caller.
func asked(c idempotency.Caller, t tenant.Tenant, k book.Kind) book.Payment {
	return book.Payment{
		Tenant: t.ID, Kind: k, Mode: string(t.Mode), FeeBearer: string(t.FeeBearer), Key: c.Key,
		IdempotencyKey: c.IdempotencyKey, IdempotencyHash: c.BodyHash,
	}
}

// all joins functions into one, but for those that are nil; nil when there are none.
func all(functions []func(*db.Tx) error) func(*db.Tx) error {
	functions = slices.DeleteFunc(slices.Clone(functions), func(fn func(*db.Tx) error) bool { return fn == nil })
	if len(functions) == 0 {
		return nil
	}
	return func(tx *db.Tx) error {
		for _, fn := range functions {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	}
}
