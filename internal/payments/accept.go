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

// accept accepts a payment through the book. One group commit writes the payment's row, its place in the tenant's
// list, its hold and its job. Refusals are *problem.Error and leave no row: InsufficientFunds, Duplicate (Data is the
// existing Payment), InProgress, Invalid, Unavailable.
func (p *Payments) accept(ctx context.Context, a *request) (done book.Accepted, err error) {
	defer func() {
		if err != nil || done.Replayed || a.Adopted || done.Payment.AwaitsApproval() {
			a.probe.GiveBack(ctx) // this request submits nothing
		}
	}()
	for _, step := range []func(context.Context, *request) error{p.prepare, p.beforeDebit, p.requireApproval} {
		if err := step(ctx, a); err != nil {
			// A repeated request gets its answer even while no provider is available.
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
		// An earlier request with the Reference may have used an older secret, and so have another
		// ProviderReference.
		if old, replayed, known := p.book.Earlier(ctx, &a.Acceptance); known != nil || replayed {
			return book.Accepted{Payment: old, Replayed: replayed}, known
		}
	}
	if err != nil && a.reply != nil { // the commit may still succeed: the client then learns of a refusal by webhook
		a.reply.waiter.CompareAndSwap(requestWaits, requestGone)
	}
	if a.Adopted && problem.Is(err, problem.InsufficientFunds) {
		err = p.recovered.conflict(ctx, a.Payment, a.Payment.Rail, "the provider completed the payment, but the wallet does not cover it")
	}
	if a.maybeSent && problem.Is(err, problem.InsufficientFunds) {
		err = errRecovering("The service is being recovered, and a provider may have done this. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	}
	return done, err
}

// prepare sets the ids, the rail and the attempt of a request. It locks nothing.
func (p *Payments) prepare(ctx context.Context, a *request) error {
	now := p.clock.Now()
	pay := &a.Payment
	if pay.Channel == book.ChannelWallet {
		p.references.assignIDs(pay, now)
		pay.Status = book.StatusSuccess
		if c := a.Child; c != nil {
			p.references.assignIDs(c, now)
			c.Status, c.Parent = book.StatusSuccess, pay.ID
		}
		return nil
	}
	if !a.claimed { // a claimed payment stays with the rail that has it, even if the rail is paused
		var err error
		if a.probe, err = p.rails.choose(ctx, pay, a.field); err != nil {
			return err
		}
	}
	p.references.assignIDs(pay, now)
	pay.Status = book.StatusPending
	if c := a.Child; c != nil {
		probe, err := p.rails.choose(ctx, c, a.childField)
		if err != nil {
			return err
		}
		probe.GiveBack(ctx) // the child is submitted after its parent is paid
		p.references.assignIDs(c, now)
		c.Status = book.StatusWaiting
		c.Parent, pay.Child = pay.ID, c.ID
	}
	a.attempt = newAttempt(*pay, momentOf(p.clock))
	if a.awaitsSubmission {
		a.reply = a.attempt.awaited()
	}
	return nil
}

// requireApproval sets the approval that a payout needs. A payout adopted in a recovery needs none: it was approved
// before the restore.
func (p *Payments) requireApproval(ctx context.Context, a *request) error {
	var h *PendingApproval
	var err error
	switch {
	case a.requester == nil:
	case a.Adopted:
		if record := a.requester.Adopted; record != nil {
			a.InTx = all([]func(*db.Tx) error{a.InTx, func(tx *db.Tx) error { return record(tx, a.Payment) }})
		}
	case a.requester.Plan != nil:
		h, err = a.requester.Plan(ctx, a.Payment)
	case p.approval != nil:
		h, err = p.approval(ctx, *a.requester, a.Payment)
	}
	if err != nil || h == nil {
		return err
	}
	a.Payment.ApprovalDeadline, a.InTx = h.Until, all([]func(*db.Tx) error{a.InTx, h.Write})
	return nil
}

// replayed returns the result of Payout for a repeated request: the existing payment, or its refusal as an error.
func (p *Payments) replayed(old book.Payment, again bool, err error) (book.Payment, bool, error) {
	if err == nil && old.Refused {
		err = book.Refused(old)
	}
	if err != nil {
		return book.Payment{}, again, err
	}
	return old, true, nil
}

// generatedDays is the number of earlier days for which a recovery searches generated references.
const generatedDays = 7

// errUnclaimed refuses a claim that no provider has.
var errUnclaimed = problem.New(problem.NotFound, "claim_not_known", "No provider has this payment. Check the reference and the provider")

// beforeDebit searches every rail for a new request during a recovery. A payment that a rail has is adopted: it is
// debited and polled, but never sent. Refusals leave no row.
func (p *Payments) beforeDebit(ctx context.Context, a *request) error {
	s, err := p.recovered.state(ctx)
	if err != nil || !s.Lasts() || a.Payment.Channel == book.ChannelWallet {
		if err == nil && a.claimed { // without a recovery a claim would be sent as a new payment
			return errRecovering("No recovery is open. Claims are adopted only during a recovery.", recoveryPause)
		}
		return err
	}
	pay := &a.Payment
	switch {
	case s.Closed():
		return errRecovering("The service is being recovered. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	case pay.Details.Generated && pay.IdempotencyKey == "" && !s.Allows(pay.Tenant):
		return errRecovering("The service is being recovered. Until then, send the purchase with a reference or an Idempotency-Key.", recoveryPause)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*queryTimeout)
	defer cancel()
	found := p.recovered.queryAllRails(ctx, s, *pay, a.claimed)
	for day := 1; !found.known && pay.Details.Generated && pay.IdempotencyKey != "" && day <= generatedDays; day++ {
		at := p.clock.Now().AddDate(0, 0, -day)
		if !s.Since.IsZero() && at.AddDate(0, 0, 1).Before(s.Since) {
			break
		}
		earlier := *pay
		earlier.Reference = p.references.generatedReference(*pay, at)
		earlier.ProviderReference = p.references.make(earlier)
		earlier.AttemptReference = earlier.ProviderReference
		if before := p.recovered.queryAllRails(ctx, s, earlier, false); before.known || before.differs || before.silent != "" {
			found = before
			*pay = earlier
		}
	}
	switch {
	case found.known:
		pay.Rail, pay.SendingAt, pay.UpstreamID, pay.RefundWay = found.rail.Name, p.clock.Now(), found.outcome.UpstreamID, found.way
		a.Adopted = true
		if c := a.Child; c != nil { // the top-up gets the Reference of the day on which its collection was sent
			c.Reference = pay.Reference
			c.ProviderReference = p.references.make(*c)
			c.AttemptReference = c.ProviderReference
		}
		a.attempt.begins(*pay)
		a.attempt.rail, a.attempt.stage, a.attempt.arrived = pay.Rail, stageSent, 1
		now := momentOf(p.clock)
		a.attempt.openedAt, a.attempt.sentAt, a.attempt.acceptedAt, a.attempt.nextQuery = now, now, now, now
		a.attempt.queryNext.Store(true)
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
	if a.Adopted { // resolves a conflict that was recorded while the wallet did not cover the payment
		a.InTx = all([]func(*db.Tx) error{a.InTx, func(tx *db.Tx) error {
			return p.recovered.recovery.Settled(tx, pay.Tenant, string(pay.Kind), pay.Reference)
		}})
	}
	a.maybeSent = found.maybeSent
	a.attempt.searched = true
	return nil
}

// A request is a request to accept a payment on this node. The caller copies the client's fields; prepare adds ID,
// CreatedAt, Status, ProviderReference and Rail.
type request struct {
	book.Acceptance
	// field is the request field that an error names if the channel has no provider. childField is the same for
	// the child.
	field, childField string
	// awaitsSubmission is set if the request waits for the provider's answer (payouts).
	awaitsSubmission bool
	// requester is who requests a payout that may need approval.
	requester *Requester
	// claimed is set for an operator's claim. The payment is adopted if a provider has it, and is never sent.
	claimed bool
	// maybeSent is set in a recovery if the only rail may have the payment already. That rail refuses a second
	// submission.
	maybeSent bool
	probe     *route.Probe // for the chosen rail; nil unless its breaker is half-open
	attempt   *attempt     // set by prepare; nil for payments without a job
	reply     *reply       // nil if no request waits
}

// newPayment returns a payment with the fields that all kinds copy from the caller and the tenant.
func newPayment(c idempotency.Caller, t tenant.Tenant, k book.Kind) book.Payment {
	return book.Payment{
		Tenant: t.ID, Kind: k, Mode: string(t.Mode), FeeBearer: string(t.FeeBearer), Key: c.Key,
		IdempotencyKey: c.IdempotencyKey, IdempotencyHash: c.BodyHash, Details: book.Details{Trace: c.Trace},
	}
}

// all joins the functions that are not nil into one. It returns nil if there is none.
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
