package changes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// KindAddFloat books money that was paid in at a provider, or taken out there.
const KindAddFloat = "float.add"

// floated is what its maker asked for. Its members and their order are what is hashed: they never change.
type floated struct {
	Provider string        `json:"provider"`
	Mode     string        `json:"mode"`
	Amount   money.Pesewas `json:"pesewas"` // paid in; taken out below zero
	// Reference is its maker's, which the kind takes once; empty: the act's id stands for it.
	Reference string `json:"reference,omitempty"`
	Account   string `json:"account,omitempty"` // at the provider; empty: not assigned to one, as in acts of before
}

func (p floated) float() treasury.Float {
	return treasury.Float{Provider: p.Provider, Account: p.Account, Mode: tenant.Mode(p.Mode)}
}

// AddFloat asks for money to be booked that was paid in at a provider, or taken out there where the amount is below zero. id
// is that of the form; of all such acts under one reference that is not empty one is done.
func (a *Changes) AddFloat(ctx context.Context, by By, id, reference string, at treasury.Float, amount money.Pesewas, reason string) (Request, error) {
	if at.Mode != tenant.Live && at.Mode != tenant.Test {
		return Request{}, problem.Field("mode", "must be live or test")
	}
	if err := checkReference(reference); err != nil {
		return Request{}, err
	}
	if err := a.Treasury.CheckAddFloat(ctx, at, amount); err != nil {
		return Request{}, err
	}
	did, size := "paid in", amount
	if amount < 0 {
		did, size = "taken out", -amount
	}
	sentence := fmt.Sprintf("Book that %s (%s) were %s at %s", at.Key().Asset.Text(int64(size)), at.Mode, did, at) + under(reference)
	return a.make(ctx, by, draft{id: id, kind: KindAddFloat, reason: reason, sentence: sentence, amount: size, payload: floated{at.Provider, string(at.Mode), amount, reference, at.Account}})
}

func floatKind() kind {
	return kind{does: "Booking what was paid in at a provider", rule: Rule{Make: identity.MakeTreasury, Check: identity.CheckMoney}, do: (*Changes).doFloat}.by("Float at a provider", askFloat,
		Field{Name: "provider", Label: "Provider", Max: 40, Required: true}, Field{Name: "mode", Label: "Money", Options: []string{string(tenant.Live), string(tenant.Test)}, Max: 4, Required: true},
		Field{Name: "account", Label: "Account at the provider", Hint: "Write collection, disbursement or services. Leave empty for money in none of them.", Max: 12}, wayField, amountField, referenceField)
}

func askFloat(a *Changes, ctx context.Context, by By, id string, v Values, reason string) (Request, error) {
	amount, err := v.moved()
	if err != nil {
		return Request{}, err
	}
	at := treasury.Float{Provider: v["provider"], Account: v["account"], Mode: tenant.Mode(v["mode"])}
	return a.AddFloat(ctx, by, id, v["reference"], at, amount, reason)
}

// doFloat books the money under the act's id and ends the act in one transaction. A provider holds the negative of the
// balance of its float.
func (a *Changes) doFloat(ctx context.Context, act *Request, actor string, end finish) error {
	var p floated
	if err := json.Unmarshal(act.Payload, &p); err != nil {
		return fmt.Errorf("changes: the payload of %s: %w", act.ID, err)
	}
	at := p.float()
	key := at.Key()
	return a.Treasury.AddFloat(ctx, at, p.Amount, act.Reason, actor, func(tx *db.Tx) error {
		balance, err := a.Ledger.BalanceIn(tx, key)
		if err != nil {
			return err
		}
		if err := end(tx, []audit.Change{{What: "float at " + at.String(), Before: key.Asset.Text(-balance), After: key.Asset.Text(-balance + int64(p.Amount))}}); err != nil {
			return err
		}
		return a.book(tx, *act, p.Reference, key, int64(p.Amount))
	})
}
