package payments

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// pollTime is how long a status call may ask a provider before it answers what
// is stored.
const pollTime = 3 * time.Second

// Status finds a collection or payout of a tenant: by our id or the
// ProviderReference, else by the client's Reference, collections before payouts.
// A pending collection is asked for again, so that a success that it tells is in
// the wallet already.
func (p *Payments) Status(ctx context.Context, tenantID, id string) (Payment, error) {
	pay, found, err := p.lookup(ctx, tenantID, id, KindCollection, KindPayout)
	switch {
	case err != nil:
		return Payment{}, err
	case !found:
		return Payment{}, p.unfound(ctx, "payment_not_found", "Payment not found")
	case pay.Kind == KindCollection:
		return p.poll(ctx, pay)
	}
	return pay, nil
}

// StatusTopUp finds a top-up by the client's Reference, which is also the one of
// the collection that pays for it, or by an id of ours, and asks for it again
// while it is open. A failure that it tells is refunded already.
func (p *Payments) StatusTopUp(ctx context.Context, tenantID, id string) (Payment, error) {
	pay, found, err := p.lookup(ctx, tenantID, id, KindTopUp, KindTopUp)
	switch {
	case err != nil:
		return Payment{}, err
	case !found:
		return Payment{}, p.unfound(ctx, "airtime_not_found", "Airtime transaction not found")
	case pay.Status == StatusWaiting:
		return p.pollParent(ctx, pay)
	}
	return p.poll(ctx, pay)
}

// StatusBundle finds a bundle by the ProviderReference, another id of ours or
// the client's Reference, and asks for it again while it is open. A failure that
// it tells is refunded already.
func (p *Payments) StatusBundle(ctx context.Context, tenantID, id string) (Payment, error) {
	pay, found, err := p.lookup(ctx, tenantID, id, KindBundle, KindBundle)
	switch {
	case err != nil:
		return Payment{}, err
	case !found:
		return Payment{}, p.unfound(ctx, "bundle_not_found", "Data bundle transaction not found")
	}
	return p.poll(ctx, pay)
}

const (
	lookupID = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $4 AND tenant || '' = $1 AND kind || '' IN ($2, $3)`

	lookupProviderReference = `SELECT ` + paymentColumns + ` FROM payments WHERE provider_reference = $4 AND tenant || '' = $1 AND kind || '' IN ($2, $3)`

	lookupReference = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind IN ($2, $3) AND reference = $4`
)

// lookup finds a payment of one of two kinds by what a customer may call it.
func (p *Payments) lookup(ctx context.Context, tenantID, id string, first, second Kind) (Payment, bool, error) {
	var found []Payment
	ours := strings.ToLower(id) // a UUID in capitals is the same one; a Reference is not
	err := p.db.Read(ctx, func(tx *db.Tx) error {
		found = nil
		args := []any{tenantID, first, second, ours}
		return tx.Gather(
			db.Query{SQL: lookupID, Args: args, Each: appendPayment(&found)},
			db.Query{SQL: lookupProviderReference, Args: args, Each: appendPayment(&found)},
			db.Query{SQL: lookupReference, Args: []any{tenantID, first, second, id}, Each: appendPayment(&found)},
		)
	})
	if err != nil || len(found) == 0 {
		return Payment{}, false, err
	}
	best := found[0]
	for _, pay := range found {
		byOurs := pay.ID == ours || pay.ProviderReference == ours
		if !byOurs && best.ID != ours && best.ProviderReference != ours && pay.Kind == first {
			best = pay
			break
		}
	}
	return best, true, nil
}

// poll asks for an open payment again and answers what is then known. A provider
// that does not answer in time costs nothing but the time.
func (p *Payments) poll(ctx context.Context, pay Payment) (Payment, error) {
	if !pay.Status.Open() {
		return pay, nil
	}
	asking, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	now, err := p.requery(asking, pay)
	if err == nil && !now.Status.Open() {
		return now, nil
	}
	// The stored state is the answer: another process may have settled meanwhile.
	stored, found, err := p.get(ctx, pay.Tenant, pay.Kind, pay.ID)
	if err != nil || !found {
		return pay, err
	}
	return stored, nil
}

// pollParent asks for the collection that an unpaid top-up waits for.
func (p *Payments) pollParent(ctx context.Context, topUp Payment) (Payment, error) {
	parent, found, err := p.get(ctx, topUp.Tenant, KindCollection, topUp.Parent)
	if err != nil || !found {
		return topUp, err
	}
	if _, err := p.poll(ctx, parent); err != nil {
		return Payment{}, err
	}
	now, found, err := p.get(ctx, topUp.Tenant, KindTopUp, topUp.ID)
	if err != nil || !found {
		return topUp, err
	}
	return now, nil
}
