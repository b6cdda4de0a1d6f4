package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// KindLowBalance sets the wallet balance below which an account gets a warning.
const KindLowBalance = "tenant.low_balance"

// lowBalance is the payload of a change of a wallet's low-balance threshold, as the requester saw it. Its members and
// their order are hashed, so they never change.
type lowBalance struct {
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Before money.Pesewas `json:"before"`
	After  money.Pesewas `json:"after"`
}

// lowBalanceKind needs no approver, because it moves no money.
func (a *Changes) lowBalanceKind() Kind {
	apply := func(tx *db.Tx, _ Request, p lowBalance) ([]audit.Change, error) {
		before, after, err := a.Tenants.Set(tx, p.Tenant, tenant.Change{LowBalance: &p.After})
		switch {
		case err != nil:
			return nil, err
		case before.Name != p.Name:
			return nil, errChanged("The name of the account")
		case before.LowBalance != p.Before:
			return nil, errChanged("The low-balance threshold")
		}
		return []audit.Change{{What: "low-balance threshold", Before: Threshold(before), After: Threshold(after)}}, nil
	}
	return written(a, KindLowBalance, "Low-balance threshold", Rule{Make: roles.ChangeSettings, Check: roles.ApproveAccess, Light: true}, apply).by(a.lookLowBalance, tenantField,
		Field{Name: "amount", Label: "Warn below (GHS)", Hint: "Enter 0 for no warning.", Max: 20, Required: true}).showing(a.checkLowBalance)
}

func (a *Changes) lookLowBalance(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	after, err := o.Values.amount("amount")
	if err != nil {
		return Draft{}, err
	}
	if after < 0 {
		return Draft{}, problem.Field("amount", "must not be below zero")
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	now := t
	t.LowBalance = after
	sentence := fmt.Sprintf("Set the low-balance threshold of %s from %s to %s", title, Threshold(now), Threshold(t))
	return Draft{Tenant: t.ID, Sentence: sentence, Payload: lowBalance{t.ID, t.Name, now.LowBalance, after}}, nil
}

// Threshold formats an account's low-balance threshold for people.
func Threshold(t tenant.Tenant) string {
	if t.LowBalance == 0 {
		return "none"
	}
	return t.Money().Text(int64(t.LowBalance))
}

// checkLowBalance returns the threshold before and after, and the wallet's balance.
func (a *Changes) checkLowBalance(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[lowBalance](r)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	if t.LowBalance != p.Before {
		return nil, errChanged("The low-balance threshold")
	}
	has, err := a.Ledger.Balance(ctx, t.Wallet())
	then := t
	then.LowBalance = p.After
	return append(becomes("Threshold", Threshold(t), Threshold(then)), Fact{Name: "In the wallet now", Value: t.Money().Text(has)}), err
}
