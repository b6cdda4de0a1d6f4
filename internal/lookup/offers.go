package lookup

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// OfferTime is how long an offer can be bought.
const OfferTime = 60 * time.Minute

// offersTime is the maximum time of one query for offers, over all rails.
const offersTime = 8 * time.Second

// Offer is a data package that one rail offered for one number.
type Offer struct {
	ID        string // our id
	Tenant    string // id
	ServiceID string // of the catalogue
	MSISDN    msisdn.MSISDN
	Network   msisdn.Network
	Rail      string        // the only rail at which the offer can be bought
	Display   string        // the package's name for people
	Value     string        // the provider's name of the package
	Amount    money.Pesewas // its price
	ExpiresAt time.Time
}

// Offers returns the packages of a service that a number can buy now, and the name of the number's holder if the
// provider knows it. Each offer gets an id of ours, with which it can be bought repeatedly within OfferTime.
func (e *Lookups) Offers(ctx context.Context, tenantID, serviceID string, number msisdn.MSISDN) (offers []Offer, holder string, err error) {
	t, err := e.tenants.Get(ctx, tenantID)
	if err != nil {
		return nil, "", err
	}
	service, err := e.Service(ctx, serviceID)
	if err != nil {
		return nil, "", err
	}
	if m, err := msisdn.Parse(string(number)); err != nil || m != number {
		return nil, "", problem.Field("phone_number", msisdn.ErrNumber.Error())
	}
	rails, _, err := e.routes.Choose(ctx, route.Offers, string(service.Network), t.ID, string(t.Mode))
	if err != nil {
		return nil, "", err
	}
	asking, cancel := context.WithTimeout(ctx, offersTime)
	defer cancel()
	for _, rail := range rails {
		quoted, name, o := e.quote(asking, rail, service, number)
		switch o.Class {
		case provider.Accepted:
			offers, err = e.keep(ctx, t, service, number, rail, quoted)
			return offers, name, err
		case provider.Rejected:
			return nil, "", problem.Field("phone_number", "has no packages of this service. "+provider.Sentence(o.Reason))
		}
	}
	return nil, "", problem.New(problem.Unavailable, "offers_unavailable", "The packages cannot be fetched at the moment. Try again shortly.")
}

// Service returns an active data service of the catalogue. For any other it returns NotFound.
func (e *Lookups) Service(ctx context.Context, id string) (route.Service, error) {
	s, found, err := e.routes.Service(ctx, id)
	if err == nil && (!found || s.Status != route.Active) {
		err = problem.New(problem.NotFound, "service_not_found", "Data service not found")
	}
	return s, err
}

// quote queries one rail for the packages of a service for a number.
func (e *Lookups) quote(ctx context.Context, rail provider.Rail, s route.Service, number msisdn.MSISDN) ([]provider.Offer, string, provider.Outcome) {
	begun := e.clock.Now()
	offers, holder, o := rail.Bundles.Offers(ctx, provider.OffersRequest{Service: s.Key, Network: s.Network, MSISDN: number})
	e.routes.Report(rail, route.Offers, o, e.clock.Since(begun))
	return offers, holder, o
}

var offerColumns = []db.Column[Offer]{
	{Name: "tenant", Text: func(o Offer) string { return o.Tenant }},
	{Name: "id", Text: func(o Offer) string { return o.ID }},
	{Name: "service_id", Text: func(o Offer) string { return o.ServiceID }},
	{Name: "network", Text: func(o Offer) string { return string(o.Network) }},
	{Name: "msisdn", Text: func(o Offer) string { return string(o.MSISDN) }},
	{Name: "rail", Text: func(o Offer) string { return o.Rail }},
	{Name: "display", Text: func(o Offer) string { return o.Display }},
	{Name: "value", Text: func(o Offer) string { return o.Value }},
	{Name: "amount", Int: func(o Offer) int64 { return int64(o.Amount) }},
	{Name: "expires_at", Time: func(o Offer) time.Time { return o.ExpiresAt }},
}

// keep stores a rail's packages as offers and returns them with their ids. It leaves out packages without a price,
// which cannot be bought.
func (e *Lookups) keep(ctx context.Context, t tenant.Tenant, s route.Service, number msisdn.MSISDN, rail provider.Rail, quoted []provider.Offer) ([]Offer, error) {
	until := e.clock.Now().Add(OfferTime)
	offers := []Offer{}
	for _, q := range quoted {
		if q.Amount <= 0 {
			continue
		}
		offers = append(offers, Offer{
			ID: uuid.NewString(), Tenant: t.ID, ServiceID: s.ID, MSISDN: number, Network: s.Network, Rail: rail.Name,
			Display: q.Display, Value: q.Value, Amount: q.Amount, ExpiresAt: until,
		})
	}
	if len(offers) == 0 {
		return offers, nil
	}
	there := func(tx *db.Tx) (found bool, err error) {
		var one int
		return tx.One(`SELECT 1 FROM offers WHERE tenant = $1 AND id = $2`, []any{t.ID, offers[0].ID}, &one)
	}
	err := e.db.WriteRecognising(ctx, there, func(tx *db.Tx) error {
		db.Insert(tx, "offers", offerColumns, offers)
		return nil
	})
	return offers, err
}

// lasts reports whether an offer is still valid. An offer that expires too far in the future dates from before the
// clock was set back, and is not valid.
func (e *Lookups) lasts(o Offer) bool {
	left := o.ExpiresAt.Sub(e.clock.Now())
	return left > 0 && left <= OfferTime+clock.Skew
}

const offerByID = `SELECT tenant, id, service_id, network, msisdn, rail, display, value, amount, expires_at FROM offers WHERE tenant = $1 AND id = $2`

// Offer returns an offer of a service that the number can still buy. It returns NotFound for an offer that is unknown
// or expired, or that belongs to another tenant or number.
func (e *Lookups) Offer(ctx context.Context, tenantID, id, serviceID string, number msisdn.MSISDN) (Offer, error) {
	var o Offer
	found := false
	err := e.db.Read(ctx, func(tx *db.Tx) (err error) {
		found, err = tx.One(offerByID, []any{tenantID, id},
			&o.Tenant, &o.ID, &o.ServiceID, (*string)(&o.Network), (*string)(&o.MSISDN), &o.Rail, &o.Display, &o.Value, &o.Amount, &o.ExpiresAt)
		return err
	})
	if err != nil {
		return Offer{}, err
	}
	if !found || o.ServiceID != serviceID || o.MSISDN != number || !e.lasts(o) {
		return Offer{}, errGone()
	}
	return o, nil
}

// StillOffered queries the rail of an offer whether it still sells the package to the number at that price. It
// returns NotFound if the rail does not, and Unavailable if the rail did not answer. mode is the tenant's mode, and s
// the offer's service.
func (e *Lookups) StillOffered(ctx context.Context, mode string, s route.Service, o Offer) error {
	rail, ok := e.routes.Rail(o.Rail, mode)
	if !ok || rail.Bundles == nil {
		return errGone() // the rail is no longer configured
	}
	asking, cancel := context.WithTimeout(ctx, offersTime)
	defer cancel()
	quoted, _, answer := e.quote(asking, rail, s, o.MSISDN)
	switch answer.Class {
	case provider.Accepted:
		for _, q := range quoted {
			if q.Value == o.Value && q.Amount == o.Amount {
				return nil
			}
		}
		return errGone()
	case provider.Rejected:
		return errGone()
	}
	return problem.New(problem.Unavailable, "offers_unavailable", "The package cannot be checked at the moment. Nothing was bought; try again shortly.")
}

func errGone() error {
	return problem.New(problem.NotFound, "package_expired", "Invalid or expired package id")
}

const (
	// offerKept is how long an expired offer is kept for operators.
	offerKept = 24 * time.Hour
	// pruneAtOnce is the maximum number of rows that one transaction deletes.
	pruneAtOnce = 1_000

	pruneOffers = `DELETE FROM offers WHERE (tenant, id) IN
		(SELECT tenant, id FROM offers WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)`
)

// Prune deletes the offers that expired more than a day ago, in small transactions.
func (e *Lookups) Prune(ctx context.Context) error {
	return db.Prune(ctx, e.db, pruneOffers, pruneAtOnce, e.clock.Now().Add(-offerKept))
}
