package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// KindAddFloat books money that was paid into a provider's account, or taken out of it.
const KindAddFloat = "float.add"

// floated is the payload of a change of the float at a provider. Its members and their order are hashed, so they never
// change.
type floated struct {
	Provider string        `json:"provider"`
	Mode     string        `json:"mode"`
	Amount   money.Pesewas `json:"pesewas"` // paid in; negative: taken out
	// Reference is the requester's own reference, which can be booked once for each kind. If it is empty, the
	// request's id is booked.
	Reference string `json:"reference,omitempty"`
	Account   string `json:"account,omitempty"` // account at the provider; empty: not assigned to an account, as in older requests
}

func (p floated) float() treasury.Float {
	return treasury.Float{Provider: p.Provider, Account: p.Account, Mode: tenant.Mode(p.Mode)}
}

// AddFloat requests a booking of money that was paid into a provider's account, or taken out if the amount is
// negative. id is the id of the form. Only one request with the same reference is applied.
func (a *Changes) AddFloat(ctx context.Context, by By, id, reference string, at treasury.Float, amount money.Pesewas, reason string) (Request, error) {
	v := Values{"provider": at.Provider, "mode": string(at.Mode), "account": at.Account, referenceField.Name: reference}
	return a.Do(ctx, by, KindAddFloat, id, moving(v, amount), reason)
}

func (a *Changes) floatKind() Kind {
	return Kind{Name: KindAddFloat, Title: "Float at a provider", Rule: Rule{Make: roles.ChangeTreasury, Check: roles.ApproveMoney}, Look: a.lookFloat, Check: a.checkFloat, Apply: a.doFloat,
		Fields: []Field{{Name: "provider", Label: "Provider", Max: 40, Required: true},
			{Name: "mode", Label: "Money", Options: []string{string(tenant.Live), string(tenant.Test)}, Max: 4, Required: true},
			{Name: "account", Label: "Account at the provider", Hint: "Enter collection, disbursement or services. Leave empty for unassigned money.", Max: 12},
			wayField, amountField, referenceField}}
}

func (a *Changes) lookFloat(ctx context.Context, o Order) (Draft, error) {
	amount, err := o.Values.moved()
	if err != nil {
		return Draft{}, err
	}
	at := treasury.Float{Provider: o.Values["provider"], Account: o.Values["account"], Mode: tenant.Mode(o.Values["mode"])}
	if err := a.Treasury.CheckAddFloat(ctx, at, amount); err != nil {
		return Draft{}, err
	}
	did, size, reference := "paid in", max(amount, -amount), o.Values[referenceField.Name]
	if amount < 0 {
		did = "taken out"
	}
	sentence := fmt.Sprintf("Book that %s (%s) was %s at %s", at.Key().Asset.Text(int64(size)), at.Mode, did, at) + under(reference)
	return Draft{Sentence: sentence, Amount: size, Payload: floated{at.Provider, string(at.Mode), amount, reference, at.Account}}, nil
}

// checkFloat returns the float in our books, and warns of possible duplicates.
func (a *Changes) checkFloat(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[floated](r)
	if err != nil {
		return nil, err
	}
	key := p.float().Key()
	list, err := a.balances(ctx, "float at "+p.float().String(), key, int64(p.Amount))
	if err != nil {
		return nil, err
	}
	alike, err := a.alike(ctx, r, key, int64(p.Amount))
	return append(list, alike...), err
}

// doFloat books the money under the request's id and ends the request in one transaction. The float's balance is
// negative while the provider holds our money.
func (a *Changes) doFloat(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[floated](*request)
	if err != nil {
		return err
	}
	at := p.float()
	key := at.Key()
	return a.Treasury.AddFloat(ctx, at, p.Amount, request.Reason, request.Actor, func(tx *db.Tx) error {
		balance, err := a.Ledger.BalanceIn(tx, key)
		if err != nil {
			return err
		}
		if err := finish(tx, []audit.Change{{What: "float at " + at.String(), Before: key.Asset.Text(-balance), After: key.Asset.Text(-balance + int64(p.Amount))}}); err != nil {
			return err
		}
		return a.book(tx, *request, p.Reference, key, int64(p.Amount))
	})
}
