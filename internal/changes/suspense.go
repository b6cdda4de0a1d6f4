package changes

import (
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/tenant"
)

// Charge is the side of a difference that the provider or bank kept as its charge.
const Charge Side = "charge"

// releaseSides are the accounts that receive differences from suspense, or pay missing amounts.
var releaseSides = []string{string(Customer), string(House), string(Charge)}

// released is the requested release. The digest covers its members in this order, so they never change.
type released struct {
	selected
	For    Side   `json:"for"`
	Tenant string `json:"tenant,omitempty"` // account of the wallet; empty: the account of each payment
}

// suspenseWords has a description of the movement for each side.
var suspenseWords = map[Side]string{Customer: "the wallet of the customer", House: "our earned fees", Charge: "the costs of the provider or bank"}

func (a *Changes) lookRelease(ctx context.Context, o Order) (Draft, error) {
	n, err := a.selectExceptions(ctx, o.Values, reconcile.EndedSuspend)
	if err != nil {
		return Draft{}, err
	}
	d := draftSelected(n, "Move out of suspense")
	p := released{selected: selectedOf(n), For: Side(o.Values["for"])}
	d.Sentence += ", to " + suspenseWords[p.For]
	if id := o.Values["wallet"]; id != "" {
		if p.For != Customer {
			return Draft{}, problem.Field("wallet", "is only for a difference that goes to a customer")
		}
		t, err := a.walletOf(ctx, id, n.List)
		if err != nil {
			return Draft{}, err
		}
		title, err := a.titled(ctx, o.By.Place, t)
		if err != nil {
			return Draft{}, err
		}
		p.Tenant, d.Tenant = t.ID, t.ID
		d.Sentence = fmt.Sprintf("%s, %s", d.Sentence, title)
	}
	d.Payload = p
	_, err = a.targets(ctx, p, n.List)
	return d, err
}

// walletOf finds the account of a wallet. It refuses a wallet of another mode than the exceptions.
func (a *Changes) walletOf(ctx context.Context, id string, list []reconcile.Exception) (tenant.Tenant, error) {
	t, err := a.Tenants.Get(ctx, id)
	if problem.Is(err, problem.NotFound) {
		err = problem.Field("wallet", "must be the id of an account")
	}
	for _, e := range list {
		source, parseErr := reconcile.ParseSource(e.Source)
		if err = errors.Join(err, parseErr); err == nil && source.Mode != t.Mode {
			err = problem.Field("wallet", fmt.Sprintf("must be the wallet of a %s account, like the statement", source.Mode))
		}
	}
	return t, err
}

// targets returns the ledger account that each exception's difference moves to.
func (a *Changes) targets(ctx context.Context, p released, list []reconcile.Exception) (map[string]ledger.AccountID, error) {
	to, ids := map[string]ledger.AccountID{}, []string{}
	for _, e := range list {
		source, err := reconcile.ParseSource(e.Source)
		switch {
		case err != nil:
			return nil, err
		case p.For == House:
			to[e.ID] = ledger.Fees
		case p.For == Charge:
			to[e.ID] = source.Charges()
		case p.Tenant != "":
			to[e.ID] = ledger.Wallet(p.Tenant)
		case e.Payment == "":
			return nil, problem.Field("wallet", "is required, because an exception without a payment does not name the account")
		default:
			ids = append(ids, e.Payment)
		}
	}
	payments, err := a.Payments.ByIDs(ctx, ids)
	for _, e := range list {
		if pay, is := payments[e.Payment]; is && to[e.ID] == "" {
			to[e.ID] = ledger.Wallet(pay.Tenant)
		}
	}
	return to, err
}

// checkRelease returns the facts of the exceptions and of the account that receives the money.
func (a *Changes) checkRelease(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[released](r)
	if err != nil {
		return nil, err
	}
	n, err := a.Reconcile.Suspended(ctx, p.IDs)
	if err != nil {
		return nil, err
	}
	list, err := a.selectedFacts(ctx, n, p.Digest)
	return append(list, Fact{Name: "Moved to", Value: suspenseWords[p.For]}), err
}

func (a *Changes) releaseSuspense(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[released](*request)
	if err != nil {
		return err
	}
	n, err := a.Reconcile.Suspended(ctx, p.IDs)
	if err != nil {
		return err
	}
	to, err := a.targets(ctx, p, n.List)
	if err != nil {
		return err
	}
	return a.Store.Apply(ctx, *request, func(tx *db.Tx) error {
		if err := a.Reconcile.Release(tx, p.IDs, p.Digest, request.ID, request.Actor, func(e reconcile.Exception) (ledger.AccountID, error) { return to[e.ID], nil }); err != nil {
			return err
		}
		if p.For == Customer {
			if err := a.bookWallets(tx, *request, n.List, to); err != nil {
				return err
			}
		}
		return finish(tx, []audit.Change{{What: fmt.Sprintf("%d exceptions of %s", len(p.IDs), p.Sum), Before: "in suspense", After: suspenseWords[p.For]}})
	})
}

// bookWallets records the movements of wallets, once for each exception.
func (a *Changes) bookWallets(tx *db.Tx, request Request, list []reconcile.Exception, to map[string]ledger.AccountID) error {
	for _, e := range list {
		source, err := reconcile.ParseSource(e.Source)
		if err == nil {
			err = a.book(tx, request, e.ID, ledger.Key{Asset: source.Ledger().Asset, ID: to[e.ID]}, int64(e.Delta))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
