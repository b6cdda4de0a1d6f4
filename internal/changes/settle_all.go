package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
)

// KindEndAllByLine sets the outcomes of the payments of many exceptions from the statement. The request only marks the
// exceptions: SettleApproved then sets each outcome in a transaction of its own.
const KindEndAllByLine = "statement.settle_all"

// settlements are the requested outcomes. The digest covers its members in this order, so they never change.
type settlements struct {
	Digest string        `json:"digest"` // digest of all exceptions
	Sum    money.Pesewas `json:"pesewas"`
	List   []settlement  `json:"list"`
}

func (p settlements) ids() []string {
	ids := make([]string, len(p.List))
	for i, one := range p.List {
		ids[i] = one.Exception
	}
	return ids
}

// paid counts the payments that the statement has as paid.
func (p settlements) paid() (n int) {
	for _, one := range p.List {
		if one.Paid {
			n++
		}
	}
	return n
}

func (a *Changes) endAllKind(rule Rule) Kind {
	return written(a, KindEndAllByLine, "Outcomes of payments from a statement", rule, func(tx *db.Tx, request Request, p settlements) ([]audit.Change, error) {
		change := audit.Change{What: fmt.Sprintf("%d payments of %s", len(p.List), p.Sum), Before: "unknown", After: "approved; a server sets each outcome"}
		return []audit.Change{change}, a.Reconcile.Approve(tx, p.ids(), p.Digest, request.ID)
	}).by(a.lookEndAll, sourceField, kindField, mostField).showing(a.checkEndAll)
}

// lookEndAll selects the exceptions whose payments the statement can settle. It leaves out payments whose outcome the provider
// reported itself, and payments whose submission may still be running.
func (a *Changes) lookEndAll(ctx context.Context, o Order) (Draft, error) {
	if k := reconcile.Kind(o.Values["kind"]); k != "" && k != reconcile.StateOff && k != reconcile.OursOnly {
		return Draft{}, problem.Field("kind", "must be payments whose status differs, or payments that are missing from the statement")
	}
	n, err := a.selectExceptions(ctx, o.Values, "")
	if err != nil {
		return Draft{}, err
	}
	p, err := a.settlementsOf(ctx, n)
	if err != nil {
		return Draft{}, err
	}
	if n, err = a.Reconcile.Selected(ctx, p.ids()); err != nil {
		return Draft{}, err
	}
	p.Digest = n.Digest
	sentence := fmt.Sprintf("Set the outcome of %d payments, %s in all, from the statement of %s: %d as paid, %d as not paid", len(p.List), cedis(p.Sum), o.Values["source"], p.paid(), len(p.List)-p.paid())
	return Draft{Sentence: sentence, Amount: p.Sum, Payload: p, Barred: n.Uploaders()}, nil
}

// settlementsOf returns the outcomes for the payments of a selection that the statement can settle.
func (a *Changes) settlementsOf(ctx context.Context, n reconcile.Selection) (p settlements, err error) {
	ids := []string{}
	for _, e := range n.List {
		ids = append(ids, e.Payment)
	}
	payments, err := a.Payments.ByIDs(ctx, ids)
	if err != nil {
		return p, err
	}
	var last error
	for _, e := range n.List {
		pay, known := payments[e.Payment]
		if !known || e.Request != "" || slices.ContainsFunc(p.List, func(one settlement) bool { return one.Payment.ID == pay.ID }) {
			continue
		}
		one, err := a.settlementOf(ctx, e, pay)
		switch refused := (*problem.Error)(nil); {
		case errors.As(err, &refused) && (refused.Kind == problem.InProgress || slices.Contains(refusals, refused.Kind)):
			last = err
			continue
		case err != nil:
			return p, err
		}
		one.Digest = n.DigestOf(e)
		p.List, p.Sum = append(p.List, one), p.Sum+pay.Gross()
	}
	if len(p.List) == 0 {
		if last == nil {
			last = problem.New(problem.NotFound, "exception_not_found", "The statement cannot settle any payment of these exceptions")
		}
		return p, last
	}
	return p, nil
}

// checkEndAll returns the facts about the exceptions, and warns of money that goes back.
func (a *Changes) checkEndAll(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[settlements](r)
	if err != nil {
		return nil, err
	}
	_, list, err := a.exceptionsAsSeen(ctx, p.ids(), p.Digest)
	if err != nil {
		return nil, err
	}
	list = append(list, Fact{Name: "Set as paid", Value: fmt.Sprint(p.paid())}, Fact{Name: "Set as not paid", Value: fmt.Sprint(len(p.List) - p.paid())})
	if p.paid() < len(p.List) {
		list = append(list, warning("The money of payments that are not paid goes back and can be paid out once more. If the provider did pay, it is paid twice."))
	}
	return list, nil
}

// SettleApproved sets the outcomes of payments that approved requests have named. It runs periodically, so that an end
// of the program loses none. A payment that has changed since its request keeps its exception, with the reason as a
// note. A payment that fails for another reason does not hold up the others, and the next run repeats it.
func (a *Changes) SettleApproved(ctx context.Context) (failed error) {
	const part = 100
	requests := map[string]Request{}
	for after := ""; ; {
		list, err := a.Reconcile.Approved(ctx, after, part)
		if err != nil || len(list) == 0 {
			return errors.Join(failed, err)
		}
		after = list[len(list)-1].ID
		for _, e := range list {
			if _, known := requests[e.Request]; !known {
				request, err := a.Store.Get(ctx, e.Request)
				if err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				requests[e.Request] = request
			}
			failed = errors.Join(failed, a.settleApproved(ctx, requests[e.Request], e))
		}
	}
}

// settleApproved sets the outcome of the payment of one exception.
func (a *Changes) settleApproved(ctx context.Context, request Request, e reconcile.Exception) error {
	p, err := payloadOf[settlements](request)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(p.List, func(one settlement) bool { return one.Exception == e.ID })
	if at < 0 {
		return fmt.Errorf("changes: the request %s does not name the exception %s", request.ID, e.ID)
	}
	request.Actor = request.RequesterName
	if n := len(request.Checks); n > 0 {
		request.Actor = request.Checks[n-1].Name
	}
	err = a.settleByLine(ctx, p.List[at], request, func(*db.Tx) error { return nil })
	if refused := (*problem.Error)(nil); errors.As(err, &refused) && slices.Contains(refusals, refused.Kind) {
		return a.Reconcile.Decline(ctx, e, refused.Message)
	}
	return err
}
