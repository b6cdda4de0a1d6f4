package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// KindTransfer moves money between the wallets of two accounts of one mode. KindRecover takes an account's debt after a
// reversal from its wallet, up to the balance.
const (
	KindTransfer = "wallet.transfer"
	KindRecover  = "wallet.recover"
)

// transfer is the payload of a transfer between two wallets, as the requester saw it. Its members and their order are
// hashed, so they never change.
type transfer struct {
	From      string        `json:"from"`
	FromName  string        `json:"from_name"`
	To        string        `json:"to"`
	ToName    string        `json:"to_name"`
	Amount    money.Pesewas `json:"pesewas"`
	Reference string        `json:"reference,omitempty"`
}

// debt is the debt of an account as the requester saw it. Its members and their order are hashed, so they never change.
type debt struct {
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Owed   money.Pesewas `json:"pesewas"`
}

// Transfer requests a transfer between two wallets under the requester's reference.
func (a *Changes) Transfer(ctx context.Context, by By, id, reference, from, to string, amount money.Pesewas, reason string) (Request, error) {
	return a.Do(ctx, by, KindTransfer, id, Values{"from": from, "to": to, amountField.Name: amount.String(), referenceField.Name: reference}, reason)
}

func (a *Changes) transferKind() Kind {
	return Kind{Name: KindTransfer, Title: "Transfer between wallets", Rule: Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney}, Look: a.lookTransfer, Check: a.checkTransfer, Apply: a.moveBetween,
		Fields: []Field{{Name: "from", Label: "From the account", Max: 64, Required: true}, {Name: "to", Label: "To the account", Max: 64, Required: true}, amountField, referenceField}}
}

func (a *Changes) lookTransfer(ctx context.Context, o Order) (Draft, error) {
	amount, err := o.Values.amount(amountField.Name)
	if err == nil && amount <= 0 {
		err = problem.Field("amount", "must be above zero")
	}
	if err != nil {
		return Draft{}, err
	}
	giver, err := a.Tenants.Get(ctx, o.Values["from"])
	if err != nil {
		return Draft{}, err
	}
	taker, err := a.Tenants.Get(ctx, o.Values["to"])
	switch {
	case problem.Is(err, problem.NotFound):
		return Draft{}, problem.Field("to", "must be the id of an account")
	case err != nil:
		return Draft{}, err
	case giver.ID == taker.ID:
		return Draft{}, problem.Field("to", "must be another account")
	case giver.Mode != taker.Mode:
		return Draft{}, problem.Field("to", "must be an account of the same mode")
	}
	from, err := a.titled(ctx, o.By.Place, giver)
	if err != nil {
		return Draft{}, err
	}
	to, err := a.titled(ctx, o.By.Place, taker)
	if err != nil {
		return Draft{}, err
	}
	reference := o.Values[referenceField.Name]
	sentence := fmt.Sprintf("Move %s from the wallet of %s to the wallet of %s", giver.Money().Text(int64(amount)), from, to)
	return Draft{Tenant: giver.ID, Amount: amount, Sentence: sentence + under(reference), Payload: transfer{giver.ID, giver.Name, taker.ID, taker.Name, amount, reference}}, nil
}

// checkTransfer returns the balances of both wallets, and warns of possible duplicates.
func (a *Changes) checkTransfer(ctx context.Context, r Request) (list []Fact, err error) {
	p, err := payloadOf[transfer](r)
	if err != nil {
		return nil, err
	}
	for _, side := range []struct {
		id string
		by money.Pesewas
	}{{p.From, -p.Amount}, {p.To, p.Amount}} {
		t, err := a.Tenants.Get(ctx, side.id)
		if err != nil {
			return nil, err
		}
		facts, err := a.balances(ctx, "wallet of "+t.Name, t.Wallet(), int64(side.by))
		if err != nil {
			return nil, err
		}
		list = append(list, facts...)
		if side.id != p.To {
			continue
		}
		alike, err := a.alike(ctx, r, t.Wallet(), int64(p.Amount))
		if err != nil {
			return nil, err
		}
		list = append(list, alike...)
	}
	return list, nil
}

// moveBetween moves the money, books it under the request's id or the requester's reference, and ends the request in one transaction.
func (a *Changes) moveBetween(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[transfer](*request)
	if err != nil {
		return err
	}
	pay, err := a.Payments.Transfer(context.WithoutCancel(ctx), p.From, p.To, p.Amount, request.Reason, request.Actor, func(tx *db.Tx) error {
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
		if err := finish(tx, changes); err != nil {
			return err
		}
		return a.book(tx, *request, p.Reference, to.Wallet(), int64(p.Amount))
	})
	request.Made = pay.ID
	return err
}

// Recover requests the recovery of an account's debt from its wallet.
func (a *Changes) Recover(ctx context.Context, by By, id, tenantID, reason string) (Request, error) {
	return a.Do(ctx, by, KindRecover, id, Values{FieldTenant: tenantID}, reason)
}

func (a *Changes) lookRecover(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	balance, err := a.Ledger.Balance(ctx, owing(t))
	if err != nil {
		return Draft{}, err
	}
	if balance >= 0 {
		return Draft{}, problem.New(problem.Invalid, "nothing_owed", "The account owes nothing")
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	owed := money.Pesewas(-balance)
	sentence := fmt.Sprintf("Recover the debt of %s from its wallet, at most %s and at most its balance", title, t.Money().Text(int64(owed)))
	return Draft{Tenant: t.ID, Amount: owed, Sentence: sentence, Payload: debt{t.ID, t.Name, owed}}, nil
}

// checkRecover returns the account's debt and the balance of its wallet.
func (a *Changes) checkRecover(ctx context.Context, r Request) ([]Fact, error) {
	t, err := a.Tenants.Get(ctx, r.Tenant)
	if err != nil {
		return nil, err
	}
	owed, err := a.Ledger.Balance(ctx, owing(t))
	if err != nil {
		return nil, err
	}
	wallet, err := a.Ledger.Balance(ctx, t.Wallet())
	return []Fact{{Name: t.Name + " owes now", Value: t.Money().Text(-owed)}, {Name: "In the wallet now", Value: t.Money().Text(wallet)}}, err
}

// owing is the ledger account of a tenant's debt. Its balance is negative.
func owing(t tenant.Tenant) ledger.Key {
	return ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)}
}

func (a *Changes) recoverKind() Kind {
	return Kind{Name: KindRecover, Title: "Recovery of a debt", Rule: Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney}, Fields: []Field{tenantField},
		Look: a.lookRecover, Check: a.checkRecover, Apply: a.takeBack}
}

// takeBack recovers the debt and ends the request in one transaction. It refuses if the debt has grown since
// the requester saw it.
func (a *Changes) takeBack(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[debt](*request)
	if err != nil {
		return err
	}
	_, err = a.Treasury.Recover(ctx, p.Tenant, request.Reason, request.Actor, func(tx *db.Tx, taken money.Pesewas) error {
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
			return errChanged("The debt of the account")
		}
		return finish(tx, []audit.Change{{What: t.Name + " owes", Before: t.Money().Text(int64(owed)), After: t.Money().Text(int64(owed - taken))}})
	})
	return err
}
