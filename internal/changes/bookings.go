package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// book records the requester's reference in tx, or the request's id if there is none. A reference can be used once
// for each kind.
func (a *Changes) book(tx *db.Tx, request Request, reference string, key ledger.Key, amount int64) error {
	err := a.Ledger.Book(tx, ledger.Booking{Kind: request.Kind, Reference: cmp.Or(reference, request.ID), Account: key, Amount: amount, Request: request.ID})
	if taken := (*ledger.TakenError)(nil); errors.As(err, &taken) {
		return problem.Wrap(err, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: the reference %s was used before, at %s", taken.By.Reference, taken.By.At.UTC().Format(time.RFC3339)))
	}
	return err
}

// under returns the part of a request's sentence that names its reference.
func under(reference string) string {
	if reference == "" {
		return ""
	}
	return fmt.Sprintf(", reference %q", reference)
}

// alikeFor is how long after a booking a similar booking causes a warning: one of the same kind, account and
// amount.
const alikeFor = 24 * time.Hour

// at formats a time for a fact.
func at(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 UTC") }

// balances returns the balances of an account before and after. The account of a float or a bank has a negative
// balance while the provider or bank holds our money.
func (a *Changes) balances(ctx context.Context, name string, key ledger.Key, amount int64) ([]Fact, error) {
	now, err := a.Ledger.Balance(ctx, key)
	if err != nil {
		return nil, err
	}
	if key.ID.IsHeld() {
		now = -now
	}
	list := []Fact{{Name: "In the " + name + " now", Value: key.Asset.Text(now)}, {Name: "In the " + name + " then", Value: key.Asset.Text(now + amount)}}
	if key.ID.Floored() && now+amount < 0 {
		list = append(list, warning("The "+name+" has only "+key.Asset.Text(now)+"."))
	}
	return list, nil
}

// alike warns of earlier bookings and waiting requests that have the same kind, account and amount.
func (a *Changes) alike(ctx context.Context, r Request, key ledger.Key, amount int64) (list []Fact, err error) {
	if reference := r.reference(); reference != "" {
		by, taken, err := a.Ledger.Booked(ctx, r.Kind, reference)
		if err != nil {
			return nil, err
		}
		if taken {
			list = append(list, warning(fmt.Sprintf("The reference %q was used before, for %s at %s.", reference, by.Account.Asset.Text(max(by.Amount, -by.Amount)), at(by.At))))
		}
	}
	before, found, err := a.Ledger.BookedAlike(ctx, ledger.Booking{Kind: r.Kind, Account: key, Amount: amount}, a.Store.clock.Now().Add(-alikeFor))
	if err != nil {
		return nil, err
	}
	if found {
		list = append(list, warning("The same amount was booked at "+at(before.At)+". Check that this is not a repetition."))
	}
	waiting, err := a.Store.List(ctx, Filter{Tenant: r.Tenant, State: Waiting, Place: r.Place, Limit: waitingAtOnce})
	for _, other := range waiting {
		switch {
		case other.ID == r.ID || other.Kind != r.Kind:
		case other.reference() != "" && other.reference() == r.reference():
			list = append(list, warning(fmt.Sprintf("Another request under the reference %q waits, made by %s at %s.", r.reference(), other.RequesterName, at(other.MadeAt))))
		case other.Amount == r.Amount && other.Tenant == r.Tenant:
			list = append(list, warning(fmt.Sprintf("Another request for the same amount waits, made by %s at %s.", other.RequesterName, at(other.MadeAt))))
		}
	}
	return list, err
}

// waitingAtOnce is the number of waiting requests that are searched for a reference.
const waitingAtOnce = 1000

// WaitingUnder finds the waiting request with a reference, for a kind and a tenant.
func (a *Changes) WaitingUnder(ctx context.Context, kind, tenantID, reference string) (request Request, found bool, err error) {
	list, err := a.Store.List(ctx, Filter{Tenant: tenantID, State: Waiting, Limit: waitingAtOnce})
	for _, request := range list {
		if request.Kind == kind && request.reference() == reference {
			return request, true, nil
		}
	}
	return Request{}, false, err
}
