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

// TopUp is a purchase of airtime for a number from the wallet.
type TopUp struct {
	MSISDN      msisdn.MSISDN
	Amount      money.Pesewas
	NetworkID   string // from the catalogue; determines the network
	Reference   string // the client's
	CallbackURL string // empty: none
}

// The limits of a top-up.
const (
	MinTopUp = 50 * money.Cedi / 100
	MaxTopUp = 100 * money.Cedi
)

// TopUp debits exactly the amount and returns before the airtime is submitted. replayed is as in Collect.
func (p *Payments) TopUp(ctx context.Context, c idempotency.Caller, r TopUp) (pay book.Payment, replayed bool, err error) {
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, false, err
	}
	var bad problem.Fields
	if r.Amount < MinTopUp || r.Amount > MaxTopUp {
		bad.Add("amount", "must be between "+MinTopUp.String()+" and "+MaxTopUp.String())
	}
	checkNumber(&bad, "phone_number", r.MSISDN)
	checkReference(&bad, "transaction_id", r.Reference)
	p.checkCallback(&bad, r.CallbackURL)
	network, found, err := p.rails.routes.Network(ctx, r.NetworkID)
	if err != nil {
		return book.Payment{}, false, err
	}
	pay = newPayment(c, t, book.KindTopUp)
	pay.Channel, pay.Account, pay.Amount = string(network.Network), string(r.MSISDN), r.Amount
	pay.Reference, pay.CallbackURL = r.Reference, r.CallbackURL
	pay.Details.NetworkID = r.NetworkID
	a := &request{Acceptance: book.Acceptance{Payment: pay, Repeats: t.Duplicates == tenant.RepeatDuplicates, Daily: c.Daily}, field: "network_id"}
	if served := found && network.Status == route.Active; !served && bad.Err() == nil {
		// A repeated request is answered even if its network was removed. If the network is available, accept finds the earlier
		// request.
		if old, again, err := p.book.Earlier(ctx, &a.Acceptance); err != nil || again {
			return old, again, err
		}
	}
	switch {
	case !found:
		bad.Add("network_id", "is not in the list of networks")
	case network.Status != route.Active:
		bad.Add("network_id", "is not served at the moment")
	}
	if err := bad.Err(); err != nil {
		return book.Payment{}, false, err
	}
	done, err := p.accept(ctx, a)
	return done.Payment, done.Replayed, err
}
