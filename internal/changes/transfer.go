package changes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// KindTransfer moves money between the wallets of two accounts of one mode. KindRecover takes back what an account owes since
// a reversal, as far as its wallet covers it.
const (
	KindTransfer = "wallet.transfer"
	KindRecover  = "wallet.recover"
)

// transfer is what its maker asked for and saw. Its members and their order are what is hashed: they never change.
type transfer struct {
	From      string        `json:"from"`
	FromName  string        `json:"from_name"`
	To        string        `json:"to"`
	ToName    string        `json:"to_name"`
	Amount    money.Pesewas `json:"pesewas"`
	Reference string        `json:"reference,omitempty"`
}

// debt is what its maker saw that an account owes. Its members and their order are what is hashed: they never change.
type debt struct {
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Owed   money.Pesewas `json:"pesewas"`
}

// Transfer asks for money to be moved between two wallets, under a reference of its maker's.
func (a *Changes) Transfer(ctx context.Context, by By, id, reference, from, to string, amount money.Pesewas, reason string) (Request, error) {
	if amount <= 0 {
		return Request{}, problem.Field("amount", "must be above zero")
	}
	if err := checkReference(reference); err != nil {
		return Request{}, err
	}
	giver, err := a.Tenants.Get(ctx, from)
	if err != nil {
		return Request{}, err
	}
	taker, err := a.Tenants.Get(ctx, to)
	switch {
	case problem.Is(err, problem.NotFound):
		return Request{}, problem.Field("to", "must be the id of an account")
	case err != nil:
		return Request{}, err
	case giver.ID == taker.ID:
		return Request{}, problem.Field("to", "must be another account")
	case giver.Mode != taker.Mode:
		return Request{}, problem.Field("to", "must be an account of the same mode")
	}
	sentence := fmt.Sprintf("Move %s from the wallet of %s (%s, %s) to the wallet of %s (%s, %s)", giver.Money().Text(int64(amount)), giver.Name, giver.Mode, giver.ID, taker.Name, taker.Mode, taker.ID)
	return a.make(ctx, by, draft{id: id, kind: KindTransfer, tenant: giver.ID, reason: reason, amount: amount, sentence: sentence + under(reference),
		payload: transfer{giver.ID, giver.Name, taker.ID, taker.Name, amount, reference}})
}

func transferKind() kind {
	return kind{does: "Moving money between two wallets", rule: Rule{Make: identity.MakeMoney, Check: identity.CheckMoney}, do: (*Changes).moveBetween}.by("Transfer between wallets", askTransfer,
		Field{Name: "from", Label: "From the account", Max: 64, Required: true}, Field{Name: "to", Label: "To the account", Max: 64, Required: true}, amountField, referenceField)
}

func askTransfer(a *Changes, ctx context.Context, by By, id string, v Values, reason string) (Request, error) {
	amount, err := v.amount(amountField.Name)
	if err != nil {
		return Request{}, err
	}
	return a.Transfer(ctx, by, id, v[referenceField.Name], v["from"], v["to"], amount, reason)
}

// moveBetween moves the money, books it under the act's id or the maker's reference, and ends the act in one transaction.
func (a *Changes) moveBetween(ctx context.Context, act *Request, actor string, end finish) error {
	var p transfer
	if err := json.Unmarshal(act.Payload, &p); err != nil {
		return fmt.Errorf("changes: the payload of %s: %w", act.ID, err)
	}
	pay, err := a.Payments.Transfer(context.WithoutCancel(ctx), p.From, p.To, p.Amount, act.Reason, actor, func(tx *db.Tx) error {
		var changes []audit.Change
		var to tenant.Tenant
		for _, side := range []struct {
			id, name string
			by       money.Pesewas
		}{{p.From, p.FromName, -p.Amount}, {p.To, p.ToName, p.Amount}} {
			t, err := a.Tenants.Locked(tx, side.id)
			if err != nil {
				return err
			}
			if t.Name != side.name {
				return errChanged("The name of " + side.name)
			}
			before, err := a.Ledger.BalanceIn(tx, t.Wallet())
			if err != nil {
				return err
			}
			changes, to = append(changes, audit.Change{What: "wallet of " + t.Name, Before: t.Money().Text(before), After: t.Money().Text(before + int64(side.by))}), t
		}
		if err := end(tx, changes); err != nil {
			return err
		}
		return a.book(tx, *act, p.Reference, to.Wallet(), int64(p.Amount))
	})
	act.Made = pay.ID
	return err
}

// Recover asks for what an account owes to be taken back.
func (a *Changes) Recover(ctx context.Context, by By, id, tenantID, reason string) (Request, error) {
	t, err := a.Tenants.Get(ctx, tenantID)
	if err != nil {
		return Request{}, err
	}
	balance, err := a.Ledger.Balance(ctx, owing(t))
	if err != nil {
		return Request{}, err
	}
	if balance >= 0 {
		return Request{}, problem.New(problem.Invalid, "nothing_owed", "The account owes nothing")
	}
	owed := money.Pesewas(-balance)
	sentence := fmt.Sprintf("Take back what %s (%s, %s) owes since a reversal, at most %s, as far as its wallet covers it", t.Name, t.Mode, t.ID, t.Money().Text(int64(owed)))
	return a.make(ctx, by, draft{id: id, kind: KindRecover, tenant: t.ID, reason: reason, amount: owed, sentence: sentence, payload: debt{t.ID, t.Name, owed}})
}

// owing is the account of what a tenant owes, which is below zero.
func owing(t tenant.Tenant) ledger.Key {
	return ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)}
}

func recoverKind() kind {
	return kind{does: "Taking back what an account owes", rule: Rule{Make: identity.MakeMoney, Check: identity.CheckMoney}, do: (*Changes).takeBack}.by("Recovery of a debt", func(a *Changes, ctx context.Context, by By, id string, v Values, reason string) (Request, error) {
		return a.Recover(ctx, by, id, v[FieldTenant], reason)
	}, tenantField)
}

// takeBack takes what is owed, if that is not more than its maker saw, and ends the act in one transaction.
func (a *Changes) takeBack(ctx context.Context, act *Request, actor string, end finish) error {
	var p debt
	if err := json.Unmarshal(act.Payload, &p); err != nil {
		return fmt.Errorf("changes: the payload of %s: %w", act.ID, err)
	}
	_, err := a.Treasury.Recover(ctx, p.Tenant, act.Reason, actor, func(tx *db.Tx, taken money.Pesewas) error {
		t, err := a.Tenants.Locked(tx, p.Tenant)
		if err != nil {
			return err
		}
		balance, err := a.Ledger.BalanceIn(tx, owing(t))
		if err != nil {
			return err
		}
		owed := money.Pesewas(-balance)
		if t.Name != p.Name || owed > p.Owed {
			return errChanged("What the account owes")
		}
		return end(tx, []audit.Change{{What: t.Name + " owes", Before: t.Money().Text(int64(owed)), After: t.Money().Text(int64(owed - taken))}})
	})
	return err
}
