package payments

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// BuyBundle is the purchase of a data package from the wallet for the number of its offer.
type BuyBundle struct {
	MSISDN    msisdn.MSISDN
	ServiceID string
	OfferID   string
	Network   msisdn.Network
	Name      string // of the recipient, for the customer's records
	Reference string // the client's; generated if empty
}

// BuyBundle checks the package and its price with the provider, debits exactly the price and returns before the
// purchase is submitted. It returns NotFound for an offer that is unknown or expired, that belongs to another tenant
// or number, or whose price changed. replayed is as in Collect.
func (p *Payments) BuyBundle(ctx context.Context, c idempotency.Caller, r BuyBundle) (pay book.Payment, replayed bool, err error) {
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, false, err
	}
	var bad problem.Fields
	checkParty(&bad, "phone_number", r.MSISDN, "network", r.Network)
	if r.Reference != "" {
		checkReference(&bad, "client_reference", r.Reference)
	}
	if err := bad.Err(); err != nil {
		return book.Payment{}, false, err
	}
	pay = newPayment(c, t, book.KindBundle)
	pay.Reference, pay.Channel, pay.Account, pay.Details.OfferID = r.Reference, string(r.Network), string(r.MSISDN), r.OfferID
	a := &request{Acceptance: book.Acceptance{Payment: pay, Repeats: t.Duplicates == tenant.RepeatDuplicates, Daily: c.Daily}, field: "service_id"}
	if old, replayed, err := p.book.Earlier(ctx, &a.Acceptance); err != nil || replayed {
		return old, replayed, err
	}
	service, err := p.lookups.Service(ctx, r.ServiceID)
	if err != nil {
		return book.Payment{}, false, err
	}
	if service.Network != r.Network {
		return book.Payment{}, false, problem.Field("network", "is not the network of the service")
	}
	p.references.assignReference(&pay, p.clock.Now())
	o, err := p.lookups.Offer(ctx, t.ID, r.OfferID, r.ServiceID, r.MSISDN)
	if err != nil {
		return book.Payment{}, false, p.offerForgotten(ctx, pay, err)
	}
	pay.Channel, pay.Account, pay.AccountName, pay.Amount, pay.Rail = string(o.Network), string(o.MSISDN), cut(r.Name, nameLength), o.Amount, o.Rail
	pay.Details = book.Details{
		Trace:     pay.Details.Trace,
		ServiceID: service.ID, Service: service.Key, OfferID: o.ID, Display: o.Display, Value: o.Value,
		Generated: pay.Details.Generated,
	}
	probe, err := p.rails.choose(ctx, &pay, "")
	probe.GiveBack(ctx) // accept chooses the rail again
	if err == nil {
		err = p.lookups.StillOffered(ctx, pay.Mode, service, o)
	}
	if err != nil {
		return book.Payment{}, false, p.offerForgotten(ctx, pay, err)
	}
	a.Payment = pay
	done, err := p.accept(ctx, a)
	return done.Payment, done.Replayed, err
}

// offerForgotten returns the refusal of a purchase whose offer is unknown. In a recovery the purchase may have been
// made before the restore. In this case it is refused only if no rail knows the reference. If a rail has the
// purchase, it becomes a conflict for operators, because its price is unknown.
func (p *Payments) offerForgotten(ctx context.Context, pay book.Payment, gone error) error {
	s, err := p.recovered.state(ctx)
	if err != nil {
		return err
	}
	if !s.Lasts() || !problem.Is(gone, problem.NotFound) {
		return gone
	}
	p.references.assignIDs(&pay, p.clock.Now())
	a := &request{Acceptance: book.Acceptance{Payment: pay}, claimed: true, attempt: newAttempt(pay, momentOf(p.clock))}
	switch err := p.beforeDebit(ctx, a); {
	case errors.Is(err, errUnclaimed):
		return gone
	case err == nil:
		return p.recovered.conflict(ctx, a.Payment, a.Payment.Rail, "the provider completed the purchase, but the database does not know the package")
	default:
		return err
	}
}
