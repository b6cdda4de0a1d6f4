package payments

import (
	"context"
	"time"

	"github.com/makola/makola/internal/payments/book"
)

// pollTime is how long a client's status request waits for a provider before it returns the stored status.
const pollTime = 3 * time.Second

// Status returns a collection or payout of a tenant. id is our id or the ProviderReference, or else the
// client's Reference. A collection is found before other payments. Status queries the provider about a pending collection.
// It returns a reported success only after the wallet is credited.
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

// StatusTopUp returns a top-up by its id or ProviderReference, or by the client's Reference, which its collection
// shares. It queries the provider about an open top-up. It returns a reported failure only after the refund.
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

// StatusBundle returns a bundle by its id or ProviderReference, or by the client's Reference. It queries the provider
// about an open bundle. It returns a reported failure only after the refund.
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

// Ask queries the provider of an open payment now and returns the row afterwards. One payment is queried at most once
// in two seconds. A provider that does not respond within three seconds changes nothing.
func (p *Payments) Ask(ctx context.Context, pay book.Payment) (book.Payment, error) {
	if pay.AwaitsApproval() {
		return pay, nil
	}
	return p.poll(ctx, pay)
}

// poll queries the provider of an open payment and returns the row afterwards. If the provider does not answer, poll
// returns the stored row after pollTime.
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
	if err != nil && asking.Err() == nil { // the stored row is returned; the job queries again
		p.follower.trouble(ctx, err, "failed to settle polled payment", "payment", pay.ID)
	}
	// Another process may have settled the payment.
	stored, found, err := p.Get(ctx, pay.Tenant, pay.Kind, pay.ID)
	if err != nil || !found {
		return pay, err
	}
	return stored, nil
}

// requery queries an open payment for a waiting client (checkstatus), at most once in two seconds for one payment. It
// settles the payment if the verdict is final. It returns the row after that, or the unchanged row.
func (p *Payments) requery(ctx context.Context, pay book.Payment) (book.Payment, error) {
	if pay.Status != book.StatusPending || !p.clientQueries.allow(pay.ID, momentOf(p.clock)) {
		return pay, nil
	}
	rail, ok := p.rails.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return pay, nil
	}
	o := p.rails.queries.status(ctx, rail, pay)
	now := momentOf(p.clock)
	s := evidenceOf(pay, rail, now) // only the process that follows the payment measures ages
	s.recovering = p.recovered.firstOfRecovery(ctx, rail)
	_, v, reason := judge(s, report{from: fromQuery, outcome: o, at: now})
	if v != verdictPaid && v != verdictRefund {
		return pay, nil
	}
	done, err := p.book.Settle(ctx, final(pay, v, reason, o))
	if err != nil {
		return pay, err
	}
	return done.Payment, nil
}

// pollParent queries the collection of a top-up that is not paid yet.
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

// NextQuery estimates the time of the next status query of an open payment from its age. It returns zero for a
// payment that is final or waits for its payer. Callbacks, clients and operators may cause earlier queries.
func (p *Payments) NextQuery(pay book.Payment) time.Time {
	if pay.Status != book.StatusPending {
		return time.Time{}
	}
	next, now := pay.CreatedAt, p.clock.Now()
	for n := 0; !next.After(now); n++ {
		next = next.Add(queryPause(n, pay.Refusal))
	}
	return next
}
