package changes

import (
	"context"
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
)

// KindSellCredits gives a tenant SMS credits that the tenant paid for outside of Makola. KindRefundCredits takes
// credits back.
const (
	KindSellCredits   = "credits.sell"
	KindRefundCredits = "credits.refund"
)

// creditWorth is the minimum value of one credit in pesewas when the policy compares amounts. So a low price cannot
// avoid an approval.
const creditWorth = 1 // pesewa

// sale is the payload of a change of SMS credits as the requester saw it. Its members and their order are hashed, so
// they never change.
type sale struct {
	Tenant  string        `json:"tenant"`
	Name    string        `json:"name"`
	Mode    string        `json:"mode"`
	Credits int64         `json:"credits"`
	Price   money.Pesewas `json:"pesewas"` // paid by the tenant, or returned to the tenant, outside of Makola
	// Reference is the requester's own reference, which can be booked once for each kind. If it is empty, the
	// request's id is booked.
	Reference string `json:"reference,omitempty"`
}

// SellCredits requests a sale of SMS credits to a tenant that paid the price outside of Makola. A price of 0 is a
// gift. id is the id of the form. Only one request with the same reference is applied.
func (a *Changes) SellCredits(ctx context.Context, by By, id, reference, tenantID string, credits int64, price money.Pesewas, reason string) (Request, error) {
	return a.Do(ctx, by, KindSellCredits, id, ofCredits(reference, tenantID, credits, price), reason)
}

// RefundCredits requests the return of SMS credits that were sold by mistake or given back, for a price that the tenant
// received outside of Makola. It never takes more credits than the tenant has.
func (a *Changes) RefundCredits(ctx context.Context, by By, id, reference, tenantID string, credits int64, price money.Pesewas, reason string) (Request, error) {
	return a.Do(ctx, by, KindRefundCredits, id, ofCredits(reference, tenantID, credits, price), reason)
}

func ofCredits(reference, tenantID string, credits int64, price money.Pesewas) Values {
	return Values{FieldTenant: tenantID, "credits": strconv.FormatInt(credits, 10), "price": price.String(), referenceField.Name: reference}
}

// lookCredits drafts a movement of a tenant's credits. sentence gets the number of credits, the tenant's name, mode
// and id, and the price.
func (a *Changes) lookCredits(sentence string) func(ctx context.Context, o Order) (Draft, error) {
	return func(ctx context.Context, o Order) (Draft, error) {
		credits, err := o.Values.whole("credits")
		if err == nil {
			err = messaging.CheckSale(credits)
		}
		if err != nil {
			return Draft{}, err
		}
		price, err := o.Values.notNegative("price")
		if err != nil {
			return Draft{}, err
		}
		t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
		if err != nil {
			return Draft{}, err
		}
		title, err := a.titled(ctx, o.By.Place, t)
		if err != nil {
			return Draft{}, err
		}
		reference := o.Values[referenceField.Name]
		return Draft{Tenant: t.ID, Amount: max(price, money.Pesewas(credits*creditWorth)), Payload: sale{t.ID, t.Name, string(t.Mode), credits, price, reference},
			Sentence: fmt.Sprintf(sentence, t.SMSCredits().Asset.Text(credits), title, ledger.GHS.Text(int64(price))) + under(reference)}, nil
	}
}

// checkCredits returns the account's credits, and warns of possible duplicates. sign is -1 for a return.
func (a *Changes) checkCredits(sign int64) func(ctx context.Context, r Request) ([]Fact, error) {
	return func(ctx context.Context, r Request) ([]Fact, error) {
		p, err := payloadOf[sale](r)
		if err != nil {
			return nil, err
		}
		t, err := a.Tenants.Get(ctx, p.Tenant)
		if err != nil {
			return nil, err
		}
		list, err := a.balances(ctx, "SMS credits of "+t.Name, t.SMSCredits(), sign*p.Credits)
		if err != nil {
			return nil, err
		}
		alike, err := a.alike(ctx, r, t.SMSCredits(), sign*p.Credits)
		return append(list, alike...), err
	}
}

// creditsKind moves credits under the request's id. sign is -1 if credits are taken back.
func (a *Changes) creditsKind(name, title, sentence string, sign int64, move func(m *messaging.Messaging, tx *db.Tx, tenantID, sale string, credits int64) (int64, error)) Kind {
	return written(a, name, title, Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney}, func(tx *db.Tx, request Request, p sale) ([]audit.Change, error) {
		after, err := move(a.Messaging, tx, p.Tenant, request.ID, p.Credits)
		if err != nil {
			return nil, err
		}
		t, err := a.Tenants.Locked(tx, p.Tenant)
		if err != nil {
			return nil, err
		}
		if t.Name != p.Name || string(t.Mode) != p.Mode {
			return nil, errChanged("The name of the account")
		}
		key := t.SMSCredits()
		if err := a.book(tx, request, p.Reference, key, sign*p.Credits); err != nil {
			return nil, err
		}
		return []audit.Change{{What: "SMS credits of " + t.Name, Before: key.Asset.Text(after - sign*p.Credits), After: key.Asset.Text(after)},
			{What: "price", After: ledger.GHS.Text(int64(p.Price))}}, nil
	}).by(a.lookCredits(sentence), tenantField, Field{Name: "credits", Label: "Credits", Hint: "A credit is one segment of a message.", Max: 12, Required: true},
		Field{Name: "price", Label: "Price", Hint: "Enter the price in cedis that was paid outside of Makola. Leave empty for no payment.", Max: 20}, referenceField).showing(a.checkCredits(sign))
}
