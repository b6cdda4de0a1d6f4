package payments

import (
	"context"
	"time"

	"github.com/makola/makola/internal/payments/book"
)

// pollTime is how long a status call may ask a provider before it answers what
// is stored.
const pollTime = 3 * time.Second

// Status finds a collection or payout of a tenant: by our id or the
// ProviderReference, else by the client's Reference, collections before payouts.
// A pending collection is asked for again, so that a success that it tells is in
// the wallet already.
func (p *Payments) Status(ctx context.Context, tenantID, id string) (book.Payment, error) {
	pay, found, err := p.Lookup(ctx, tenantID, id, book.KindCollection, book.KindPayout)
	switch {
	case err != nil:
		return book.Payment{}, err
	case !found:
		return book.Payment{}, p.recovered.unfound(ctx, "payment_not_found", "Payment not found")
	case pay.Kind == book.KindCollection:
		return p.poll(ctx, pay)
	}
	return pay, nil
}

// StatusTopUp finds a top-up by the client's Reference, which is also the one of
// the collection that pays for it, or by an id of ours, and asks for it again
// while it is open. A failure that it tells is refunded already.
func (p *Payments) StatusTopUp(ctx context.Context, tenantID, id string) (book.Payment, error) {
	pay, found, err := p.Lookup(ctx, tenantID, id, book.KindTopUp, book.KindTopUp)
	switch {
	case err != nil:
		return book.Payment{}, err
	case !found:
		return book.Payment{}, p.recovered.unfound(ctx, "airtime_not_found", "Airtime transaction not found")
	case pay.Status == book.StatusWaiting:
		return p.pollParent(ctx, pay)
	}
	return p.poll(ctx, pay)
}

// StatusBundle finds a bundle by the ProviderReference, another id of ours or
// the client's Reference, and asks for it again while it is open. A failure that
// it tells is refunded already.
func (p *Payments) StatusBundle(ctx context.Context, tenantID, id string) (book.Payment, error) {
	pay, found, err := p.Lookup(ctx, tenantID, id, book.KindBundle, book.KindBundle)
	switch {
	case err != nil:
		return book.Payment{}, err
	case !found:
		return book.Payment{}, p.recovered.unfound(ctx, "bundle_not_found", "Data bundle transaction not found")
	}
	return p.poll(ctx, pay)
}

// Ask queries the provider of an open payment now and returns the payment as it is then. One payment is asked about at most
// once in two seconds. A provider that does not respond within three seconds changes nothing.
func (p *Payments) Ask(ctx context.Context, pay book.Payment) (book.Payment, error) {
	if pay.Waits() {
		return pay, nil
	}
	return p.poll(ctx, pay)
}

// poll asks for an open payment again and answers what is then known. A provider
// that does not answer in time costs nothing but the time.
func (p *Payments) poll(ctx context.Context, pay book.Payment) (book.Payment, error) {
	if !pay.Status.Open() {
		return pay, nil
	}
	asking, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	now, err := p.requery(asking, pay)
	if err == nil && !now.Status.Open() {
		return now, nil
	}
	if err != nil && asking.Err() == nil { // the answer is what is stored; the job asks again
		p.follower.trouble(ctx, err, "a payment that its customer asked for could not be settled", "payment", pay.ID)
	}
	// The stored state is the answer: another process may have settled meanwhile.
	stored, found, err := p.Get(ctx, pay.Tenant, pay.Kind, pay.ID)
	if err != nil || !found {
		return pay, err
	}
	return stored, nil
}

// requery asks for an open payment on behalf of a client that waits (checkstatus),
// at most once in two seconds for one payment and within ctx, and settles what
// the judge says is final. It answers the row as it is afterwards, or as it was.
func (p *Payments) requery(ctx context.Context, pay book.Payment) (book.Payment, error) {
	if pay.Status != book.StatusPending || !p.asked.may(pay.ID, momentOf(p.clock)) {
		return pay, nil
	}
	rail, ok := p.rails.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return pay, nil
	}
	o := p.rails.questions.ask(ctx, rail, pay)
	now := momentOf(p.clock)
	s := standingOf(pay, rail, now) // ages are for the process that follows the payment
	s.recovering = p.recovered.firstOfRecovery(ctx, rail)
	_, v, reason := judge(s, report{from: fromQuestion, outcome: o, at: now})
	if v != verdictPaid && v != verdictRefund {
		return pay, nil
	}
	done, err := p.book.Settle(ctx, final(pay, v, reason, o))
	if err != nil {
		return pay, err
	}
	return done.Payment, nil
}

// pollParent asks for the collection that an unpaid top-up waits for.
func (p *Payments) pollParent(ctx context.Context, topUp book.Payment) (book.Payment, error) {
	parent, found, err := p.Get(ctx, topUp.Tenant, book.KindCollection, topUp.Parent)
	if err != nil || !found {
		return topUp, err
	}
	if _, err := p.poll(ctx, parent); err != nil {
		return book.Payment{}, err
	}
	now, found, err := p.Get(ctx, topUp.Tenant, book.KindTopUp, topUp.ID)
	if err != nil || !found {
		return topUp, err
	}
	return now, nil
}

// NextQuestion is about when an open payment is asked about next, going by its
// age; zero for one that is final or waits for its payer. The node that has it asks
// sooner where a callback, a customer or an operator makes it.
func (p *Payments) NextQuestion(pay book.Payment) time.Time {
	if pay.Status != book.StatusPending {
		return time.Time{}
	}
	next, now := pay.CreatedAt, p.clock.Now()
	for n := 0; !next.After(now); n++ {
		next = next.Add(askPause(n, pay.Refusal))
	}
	return next
}
