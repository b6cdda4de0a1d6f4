package payments

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Refund requests that a collection, or a part of it, is given back to its payer.
type Refund struct {
	Collection  string        // our id, the ProviderReference, or the client's reference
	Amount      money.Pesewas // 0: the whole amount
	Reference   string        // the client's, of the refund
	Reason      string        // shown to the payer; cut when too long
	CallbackURL string        // empty: none

	// Requester is used if the refund needs approval. Approved is set if people have approved it already: Refund then returns
	// without waiting for the provider.
	Requester Requester
	Approved  bool
	// Guard, if not nil, may refuse the refund. Its argument is the refund as it will be accepted, with its way and
	// charges.
	Guard func(refund book.Payment) error
	// InTx runs in the transaction that accepts the refund.
	InTx func(*db.Tx) error

	// Gone is closed when the client disconnects. If it is nil, the client stays connected.
	Gone <-chan struct{}
}

// Submits reports whether this process sends payments to providers. A command does not.
func (p *Payments) Submits() bool { return len(p.rails.routes.Rails()) > 0 }

// MinRefund is the least amount of a refund.
const MinRefund = MinCollection

// Refund accepts a refund and returns as Payout does. A refund is a payout to the payer of a collection. If the rail
// that collected the money supports refunds, that rail refunds it. Otherwise any rail pays the payer's number.
func (p *Payments) Refund(ctx context.Context, c idempotency.Caller, r Refund) (pay book.Payment, replayed bool, err error) {
	began := momentOf(p.clock)
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, false, err
	}
	a, err := p.refundRequest(ctx, c, t, r)
	if err == nil && t.PayoutsStopped {
		err = tenant.NoPayouts()
	}
	if err == nil && r.Guard != nil {
		err = r.Guard(a.Payment)
	}
	if err != nil {
		// A repeated request is still answered, because a replay moves no money.
		if old, again, known := p.book.Earlier(ctx, &book.Acceptance{Payment: newPayment(c, t, book.KindPayout)}); known != nil || again {
			return p.replayed(old, again, known)
		}
		return book.Payment{}, false, err
	}
	done, err := p.accept(ctx, a)
	if err != nil || done.Replayed {
		return p.replayed(done.Payment, done.Replayed, err)
	}
	if done.Payment.AwaitsApproval() || r.Approved {
		return done.Payment, false, nil
	}
	no, err := p.await(ctx, r.Gone, a.reply, answerTime-momentOf(p.clock).Sub(began))
	if no != nil {
		err = book.Refused(*no)
	}
	if err != nil {
		return book.Payment{}, false, err
	}
	return done.Payment, false, nil
}

// refundRequest returns the request of a refund. The book checks under the collection's lock whether it can be refunded.
func (p *Payments) refundRequest(ctx context.Context, c idempotency.Caller, t tenant.Tenant, r Refund) (*request, error) {
	var bad problem.Fields
	if r.Collection == "" {
		bad.Add("transaction_id", "is required")
	}
	if r.Amount != 0 && r.Amount < MinRefund {
		bad.Add("amount", "must be at least "+MinRefund.String())
	}
	checkReference(&bad, "client_reference", r.Reference)
	p.checkCallback(&bad, r.CallbackURL)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	of, found, err := p.Collection(ctx, t.ID, r.Collection)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, p.recovered.unfound(ctx, "payment_not_found", "Payment not found")
	}
	a := p.refundOf(of, c, t, r)
	a.Payment.Charges, a.Payment.Plan, err = p.tenants.Fee(ctx, t.ID, tenant.Refund, a.Payment.Channel, a.Payment.Amount, p.clock.Now())
	return a, err
}

// refundOf returns the request of a refund without its charges.
func (p *Payments) refundOf(of book.Payment, c idempotency.Caller, t tenant.Tenant, r Refund) *request {
	pay := newPayment(c, t, book.KindPayout)
	pay.Reference, pay.CallbackURL, pay.Label = r.Reference, r.CallbackURL, cut(r.Reason, labelLength)
	if pay.Amount = r.Amount; pay.Amount == 0 {
		pay.Amount = of.Amount
	}
	pay.Channel, pay.Account, pay.AccountName = of.Channel, of.Account, of.AccountName
	pay.RefundOf, pay.Details.Collection, pay.Details.Collected = of.ID, of.Reference, of.AttemptReference
	if pay.RefundWay = p.rails.refundWay(of); pay.RefundWay == book.RefundByRail {
		pay.Rail = of.Rail
	}
	a := &request{awaitsSubmission: !r.Approved, Acceptance: book.Acceptance{Payment: pay, Refunds: &of, Repeats: t.Duplicates == tenant.RepeatDuplicates, Daily: c.Daily, InTx: r.InTx}}
	if !r.Approved {
		a.requester = &r.Requester
	}
	return a
}

// PlannedRefund returns the refund that Refund would accept now, with its way and charges, or the refusal. An amount
// of 0 means the whole amount that can still be refunded.
func (p *Payments) PlannedRefund(ctx context.Context, of book.Payment, amount money.Pesewas) (refund book.Payment, err error) {
	t, err := p.tenants.Get(ctx, of.Tenant)
	if err != nil {
		return refund, err
	}
	sums, err := p.Refunds(ctx, of.ID)
	if err != nil {
		return refund, err
	}
	var topUp *book.Payment
	if of.Child != "" {
		pay, err := p.Find(ctx, of.Child)
		if err != nil {
			return refund, err
		}
		topUp = &pay
	}
	left := sums.Left(of)
	if amount == 0 {
		amount = left
	}
	switch err := book.Refundable(of, topUp, sums, amount); {
	case err != nil:
		return refund, err
	case left < MinRefund:
		return refund, problem.New(problem.Invalid, "not_refundable", left.String()+" is left of the collection: a refund is at least "+MinRefund.String())
	case amount < MinRefund:
		return refund, problem.Field("amount", "must be at least "+MinRefund.String())
	case t.Blocked:
		return refund, tenant.Blocked()
	case t.PayoutsStopped:
		return refund, tenant.NoPayouts()
	}
	refund = p.refundOf(of, idempotency.Caller{Tenant: t.ID}, t, Refund{Amount: amount}).Payment
	refund.Charges, refund.Plan, err = p.tenants.Fee(ctx, t.ID, tenant.Refund, refund.Channel, amount, p.clock.Now())
	return refund, err
}

// airtimeRefund returns the refund to the payer of failed airtime, if the account is set to refund payers. If it
// returns nil, for example because the refund cannot be accepted now, the wallet keeps the money. In a recovery
// it may return an error, which delays the failure of the top-up. The refund may then have been sent before the
// restore.
func (p *Payments) airtimeRefund(ctx context.Context, topUp book.Payment) (*book.Acceptance, error) {
	t, err := p.tenants.Get(ctx, topUp.Tenant)
	if err != nil || t.RefundAirtime != tenant.RefundToPayer {
		return nil, err
	}
	of, found, err := p.Get(ctx, topUp.Tenant, book.KindCollection, topUp.Parent)
	if err != nil || !found {
		return nil, err
	}
	r := Refund{Reference: p.references.airtimeRefund(of), CallbackURL: topUp.CallbackURL, Reason: "Airtime could not be delivered"}
	a := p.refundOf(of, idempotency.Caller{Tenant: t.ID, Key: of.Key, Trace: of.Details.Trace}, t, r)
	a.awaitsSubmission = false
	switch {
	case t.Blocked:
		err = tenant.Blocked()
	case t.PayoutsStopped:
		err = tenant.NoPayouts()
	default:
		a.Payment.Charges, a.Payment.Plan, err = p.tenants.Fee(ctx, t.ID, tenant.Refund, a.Payment.Channel, a.Payment.Amount, p.clock.Now())
	}
	for _, step := range []func(context.Context, *request) error{p.prepare, p.beforeDebit, p.requireApproval} {
		if err == nil {
			err = step(ctx, a)
		}
	}
	a.probe.GiveBack(ctx) // the refund's job chooses the rail again
	switch e := problem.From(err); {
	case err == nil:
		return &a.Acceptance, nil
	case e.Kind == problem.Internal || e.Code == codeRecovering:
		return nil, err
	}
	p.noAirtimeRefund(topUp, err)
	return nil, nil
}

func (p *Payments) noAirtimeRefund(topUp book.Payment, refusal error) {
	p.log.Warn("airtime failed and the payer is not refunded, the wallet keeps the money", "payment", topUp.ID, "tenant", topUp.Tenant, "error", refusal)
}
