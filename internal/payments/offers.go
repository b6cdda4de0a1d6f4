package payments

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// offerTime is how long an offer can be bought.
const offerTime = 60 * time.Minute

// offersTime bounds one question for offers, all rails together.
const offersTime = 8 * time.Second

// Offer is a data package as it was quoted to one number.
type Offer struct {
	ID        string // ours, for 60 minutes
	Display   string
	Value     string
	Amount    money.Pesewas
	ExpiresAt time.Time
}

// An offerRow is an offer with what it was quoted for.
type offerRow struct {
	Offer
	tenant    string
	serviceID string
	number    msisdn.MSISDN
	network   msisdn.Network
	rail      string
}

// Offers asks which packages of a service a number is offered now, and for the
// name of the number's holder, which is empty where the provider does not know
// it. Each offer gets an id of ours that can be bought, again and again, for 60
// minutes.
func (p *Payments) Offers(ctx context.Context, tenantID, serviceID string, number msisdn.MSISDN) (offers []Offer, holder string, err error) {
	t, err := p.tenants.Get(ctx, tenantID)
	if err != nil {
		return nil, "", err
	}
	service, err := p.service(ctx, serviceID)
	if err != nil {
		return nil, "", err
	}
	var bad problem.Fields
	checkNumber(&bad, "phone_number", number)
	if err := bad.Err(); err != nil {
		return nil, "", err
	}
	rails, err := p.routes.Choose(ctx, route.Offers, string(service.Network), t.ID, string(t.Mode))
	if err != nil {
		return nil, "", err
	}
	asking, cancel := context.WithTimeout(ctx, offersTime)
	defer cancel()
	for _, rail := range rails {
		quoted, name, o := p.quote(asking, rail, service, number)
		switch o.Class {
		case provider.Accepted:
			offers, err = p.keepOffers(ctx, t, service, number, rail, quoted)
			return offers, name, err
		case provider.Rejected:
			return nil, "", problem.Field("phone_number", "is offered nothing by this service. "+provider.Sentence(o.Reason))
		}
	}
	return nil, "", problem.New(problem.Unavailable, "offers_unavailable", "The packages cannot be fetched at the moment. Try again shortly.")
}

func (p *Payments) service(ctx context.Context, id string) (route.Service, error) {
	s, found, err := p.routes.Service(ctx, id)
	if err == nil && (!found || s.Status != route.Active) {
		err = problem.New(problem.NotFound, "service_not_found", "Data service not found")
	}
	return s, err
}

// quote asks one rail.
func (p *Payments) quote(ctx context.Context, rail provider.Rail, s route.Service, number msisdn.MSISDN) ([]provider.Offer, string, provider.Outcome) {
	begun := time.Now()
	offers, holder, o := rail.Bundles.Offers(ctx, provider.OffersRequest{Service: s.Key, Network: s.Network, MSISDN: number})
	p.routes.Report(rail, route.Offers, o, time.Since(begun))
	return offers, holder, o
}

var offerColumns = []db.Column[offerRow]{
	{Name: "tenant", Text: func(o offerRow) string { return o.tenant }},
	{Name: "id", Text: func(o offerRow) string { return o.ID }},
	{Name: "service_id", Text: func(o offerRow) string { return o.serviceID }},
	{Name: "network", Text: func(o offerRow) string { return string(o.network) }},
	{Name: "msisdn", Text: func(o offerRow) string { return string(o.number) }},
	{Name: "rail", Text: func(o offerRow) string { return o.rail }},
	{Name: "display", Text: func(o offerRow) string { return o.Display }},
	{Name: "value", Text: func(o offerRow) string { return o.Value }},
	{Name: "amount", Int: func(o offerRow) int64 { return int64(o.Amount) }},
	{Name: "expires_at", Time: func(o offerRow) time.Time { return o.ExpiresAt }},
}

// keepOffers gives each offer its id. One without a price cannot be bought.
func (p *Payments) keepOffers(ctx context.Context, t tenant.Tenant, s route.Service, number msisdn.MSISDN, rail provider.Rail, quoted []provider.Offer) ([]Offer, error) {
	until := p.clock.Now().Add(offerTime)
	var rows []offerRow
	offers := []Offer{}
	for _, q := range quoted {
		if q.Amount <= 0 {
			continue
		}
		o := Offer{ID: uuid.NewString(), Display: q.Display, Value: q.Value, Amount: q.Amount, ExpiresAt: until}
		offers = append(offers, o)
		rows = append(rows, offerRow{Offer: o, tenant: t.ID, serviceID: s.ID, number: number, network: s.Network, rail: rail.Name})
	}
	if len(rows) == 0 {
		return offers, nil
	}
	there := func(tx *db.Tx) (found bool, err error) {
		var one int
		return tx.One(`SELECT 1 FROM offers WHERE tenant = $1 AND id = $2`, []any{t.ID, rows[0].ID}, &one)
	}
	err := p.db.WriteRecognising(ctx, there, func(tx *db.Tx) error {
		db.Insert(tx, "offers", offerColumns, rows)
		return nil
	})
	return offers, err
}

const offerByID = `SELECT tenant, id, service_id, network, msisdn, rail, display, value, amount, expires_at FROM offers WHERE tenant = $1 AND id = $2`

// offer finds an offer that can still be bought for the number.
func (p *Payments) offer(ctx context.Context, tenantID, id, serviceID string, number msisdn.MSISDN) (offerRow, error) {
	var o offerRow
	found := false
	err := p.db.Read(ctx, func(tx *db.Tx) (err error) {
		found, err = tx.One(offerByID, []any{tenantID, id},
			&o.tenant, &o.ID, &o.serviceID, (*string)(&o.network), (*string)(&o.number), &o.rail, &o.Display, &o.Value, &o.Amount, &o.ExpiresAt)
		return err
	})
	if err != nil {
		return offerRow{}, err
	}
	if !found || o.serviceID != serviceID || o.number != number || !p.clock.Now().Before(o.ExpiresAt) {
		return offerRow{}, errOfferGone()
	}
	return o, nil
}

func errOfferGone() error {
	return problem.New(problem.NotFound, "package_expired", "Invalid or expired package id")
}

// An expired offer is kept a little for the operators' eyes.
const offerKept = 24 * time.Hour

const offersPrune = `DELETE FROM offers WHERE expires_at < $1`

// pruneOffers deletes offers that expired a day ago.
func (p *Payments) pruneOffers(ctx context.Context) error {
	return p.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(offersPrune, p.clock.Now().Add(-offerKept))
		return err
	})
}
