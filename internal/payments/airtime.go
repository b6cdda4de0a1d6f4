package payments

import (
	"context"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// AirtimeBuy is a top-up that a mobile money wallet pays for.
type AirtimeBuy struct {
	Destination msisdn.MSISDN // receives the airtime
	Payer       msisdn.MSISDN
	Network     msisdn.Network // the payer's
	Amount      money.Pesewas
	NetworkID   string // of the destination, from the catalogue
	Name        string // of the recipient, for the customer's records
	Reference   string // the client's; generated if empty
	CallbackURL string // receives the airtime's webhook; empty: none
}

// MaxAirtimeBuy is the maximum amount of airtime paid by mobile money.
const MaxAirtimeBuy = 5_000 * money.Cedi

// AirtimeBuy accepts a collection without charges and the waiting top-up that it pays for. No money is reserved for
// the top-up before the payer has paid. The transaction that makes the collection final opens or fails the top-up.
// Both payments have the same Reference.
func (p *Payments) AirtimeBuy(ctx context.Context, c idempotency.Caller, r AirtimeBuy) (pay, topUp book.Payment, replayed bool, err error) {
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, book.Payment{}, false, err
	}
	if err := mayCollect(t); err != nil {
		return book.Payment{}, book.Payment{}, false, err
	}
	var bad problem.Fields
	if r.Amount < MinTopUp || r.Amount > MaxAirtimeBuy {
		bad.Add("amount", "must be between "+MinTopUp.String()+" and "+MaxAirtimeBuy.String())
	}
	checkNumber(&bad, "destination", r.Destination)
	checkParty(&bad, "phoneNumber", r.Payer, "network", r.Network)
	if r.Reference != "" {
		checkReference(&bad, "transaction_id", r.Reference)
	}
	p.checkCallback(&bad, r.CallbackURL)
	if err := bad.Err(); err != nil {
		return book.Payment{}, book.Payment{}, false, err
	}
	network, found, err := p.rails.routes.Network(ctx, r.NetworkID)
	if err != nil {
		return book.Payment{}, book.Payment{}, false, err
	}
	pay = newPayment(c, t, book.KindCollection)
	pay.Reference, pay.Channel, pay.Account, pay.Amount = r.Reference, string(r.Network), string(r.Payer), r.Amount
	topUp = newPayment(c, t, book.KindTopUp)
	topUp.IdempotencyKey, topUp.IdempotencyHash = "", "" // the collection has the key
	topUp.Reference, topUp.CallbackURL = r.Reference, r.CallbackURL
	topUp.Channel, topUp.Account, topUp.Amount = string(network.Network), string(r.Destination), r.Amount
	topUp.AccountName, topUp.Details.NetworkID = cut(r.Name, nameLength), r.NetworkID
	child := topUp // a copy: if this request times out and clears topUp, a batch may still read the payment
	a := &request{Acceptance: book.Acceptance{Payment: pay, Child: &child, Repeats: t.Duplicates == tenant.RepeatDuplicates}, field: "network", childField: "network_id"}
	if old, replayed, err := p.book.Earlier(ctx, &a.Acceptance); err != nil || replayed {
		return p.withChild(ctx, old, replayed, err)
	}
	if !found || network.Status != route.Active {
		return book.Payment{}, book.Payment{}, false, problem.New(problem.NotFound, "invalid_plan", "Invalid plan id")
	}
	p.references.assignReference(&a.Payment, p.clock.Now())
	child.Reference, child.Details.Generated = a.Payment.Reference, a.Payment.Details.Generated
	done, err := p.accept(ctx, a)
	if err != nil || done.Replayed {
		return p.withChild(ctx, done.Payment, done.Replayed, err)
	}
	return done.Payment, child, false, nil
}

// withChild answers a repeated request with the current top-up.
func (p *Payments) withChild(ctx context.Context, pay book.Payment, again bool, err error) (book.Payment, book.Payment, bool, error) {
	if err != nil {
		return book.Payment{}, book.Payment{}, again, err
	}
	topUp, _, err := p.Get(ctx, pay.Tenant, book.KindTopUp, pay.Child)
	return pay, topUp, true, err
}
