package changes

import (
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
)

// adoption has the unmatched credits that go into a wallet. The digest covers its members in this order, so they
// never change.
type adoption struct {
	Exception string        `json:"exception"` // empty: several
	Digest    string        `json:"digest"`
	Tenant    string        `json:"tenant"`
	Amount    money.Pesewas `json:"pesewas"`
	IDs       []string      `json:"ids,omitempty"` // of several
}

func (p adoption) ids() []string {
	if p.Exception != "" {
		return []string{p.Exception}
	}
	return p.IDs
}

// selectCredits finds one exception, or all unmatched credits of an account up to an amount.
func (a *Changes) selectCredits(ctx context.Context, v Values) (reconcile.Selection, error) {
	if id := v["exception"]; id != "" {
		return a.Reconcile.Selected(ctx, []string{id})
	}
	if v["source"] == "" {
		return reconcile.Selection{}, problem.Field("source", "is required, unless you name one exception")
	}
	most, err := v.amount("most")
	if err != nil {
		return reconcile.Selection{}, err
	}
	return a.Reconcile.Select(ctx, reconcile.Filter{Source: v["source"], Kind: reconcile.TheirsOnly, Most: most, Credit: true})
}

func (a *Changes) lookAdopt(ctx context.Context, o Order) (Draft, error) {
	n, err := a.selectCredits(ctx, o.Values)
	if err != nil {
		return Draft{}, err
	}
	sum := money.Pesewas(0)
	for _, e := range n.List {
		if _, err := reconcile.CheckAdopt(e); err != nil {
			return Draft{}, err
		}
		sum += e.Delta
	}
	t, err := a.walletOf(ctx, o.Values["wallet"], n.List)
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	d := Draft{Tenant: t.ID, Amount: sum, Barred: n.Uploaders()}
	if len(n.List) == 1 {
		d.Payload = adoption{Exception: n.List[0].ID, Digest: n.Digest, Tenant: t.ID, Amount: sum}
		d.Sentence = fmt.Sprintf("Put %s of unmatched money into the wallet of %s", t.Money().Text(int64(sum)), title)
		return d, err
	}
	d.Payload = adoption{Digest: n.Digest, Tenant: t.ID, Amount: sum, IDs: selectedOf(n).IDs}
	d.Sentence = fmt.Sprintf("Put %d unmatched credits, %s in all, into the wallet of %s", len(n.List), t.Money().Text(int64(sum)), title)
	return d, err
}

// checkAdopt returns the facts of the credits and the balances of the wallet.
func (a *Changes) checkAdopt(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[adoption](r)
	if err != nil {
		return nil, err
	}
	_, list, err := a.exceptionsAsSeen(ctx, p.ids(), p.Digest)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	balances, err := a.balances(ctx, "wallet of "+t.Name, t.Wallet(), int64(p.Amount))
	return append(list, balances...), err
}

func (a *Changes) adopt(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[adoption](*request)
	if err != nil {
		return err
	}
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return err
	}
	return a.Store.Apply(ctx, *request, func(tx *db.Tx) error {
		list, err := a.Reconcile.Adopt(tx, p.ids(), p.Digest, t.Wallet(), request.ID, request.Actor)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := a.book(tx, *request, e.ID, t.Wallet(), int64(e.Delta)); err != nil {
				return err
			}
		}
		return finish(tx, []audit.Change{{What: "wallet of " + t.Name, After: "credited with " + t.Money().Text(int64(p.Amount))}})
	})
}

// KindPairAll matches the lines of several exceptions with payments.
const KindPairAll = "statement.match_all"

// maxPairs is the maximum number of matches in one request.
const maxPairs = 100

var pairsField = Field{Name: "pairs", Label: "Exceptions and payments", Hint: "Enter EXCEPTION=PAYMENT with the ids for each match, separated by spaces. At most 100.", Max: maxPairs * 80, Required: true}

// pairings has the requested matches. The digest covers its members in this order, so they never change.
type pairings struct {
	Digest string              `json:"digest"` // of all exceptions
	Sum    money.Pesewas       `json:"pesewas"`
	List   []reconcile.Pairing `json:"list"`
}

func (p pairings) ids() []string {
	ids := make([]string, len(p.List))
	for i, one := range p.List {
		ids[i] = one.Exception
	}
	return ids
}

func (a *Changes) pairAllKind(rule Rule) Kind {
	return written(a, KindPairAll, "Matches of lines with payments", rule, func(tx *db.Tx, request Request, p pairings) ([]audit.Change, error) {
		err := a.Reconcile.Pair(tx, p.List, p.Digest, request.Actor)
		return []audit.Change{{What: fmt.Sprintf("%d lines of statements, %s in all", len(p.List), p.Sum), Before: "unmatched", After: "matched"}}, err
	}).by(a.lookPairs, pairsField).showing(a.checkPairs)
}

// pairsOf reads the pairs of a request.
func pairsOf(text string) (list []reconcile.Pairing, err error) {
	seen := map[string]bool{}
	for _, pair := range strings.Fields(text) {
		exception, payment, is := strings.Cut(pair, "=")
		if !is || exception == "" || payment == "" || seen[exception] || seen["of "+payment] {
			return nil, problem.Field("pairs", "must be pairs such as EXCEPTION=PAYMENT, each exception and each payment in one pair only")
		}
		seen[exception], seen["of "+payment] = true, true
		list = append(list, reconcile.Pairing{Exception: exception, Payment: payment})
	}
	if len(list) == 0 || len(list) > maxPairs {
		err = problem.Field("pairs", fmt.Sprintf("must be 1 to %d", maxPairs))
	}
	return list, err
}

func (a *Changes) lookPairs(ctx context.Context, o Order) (Draft, error) {
	list, err := pairsOf(o.Values["pairs"])
	if err != nil {
		return Draft{}, err
	}
	p := pairings{List: list}
	n, err := a.Reconcile.Selected(ctx, p.ids())
	if err != nil {
		return Draft{}, err
	}
	by := map[string]reconcile.Exception{}
	for _, e := range n.List {
		by[e.ID] = e
	}
	for i, one := range p.List {
		e, is := by[one.Exception]
		if !is {
			return Draft{}, problem.Field("pairs", "name "+one.Exception+", which is not an open exception")
		}
		pay, err := a.Payments.Find(ctx, one.Payment)
		if err != nil {
			return Draft{}, err
		}
		if p.List[i].Leg, err = a.Reconcile.CheckPair(ctx, e, pay); err != nil {
			return Draft{}, err
		}
		p.List[i].Payment = pay.ID
	}
	p.Digest, p.Sum = n.Digest, n.Sum
	return Draft{Sentence: fmt.Sprintf("Match %d lines of statements, %s in all, with payments", len(p.List), cedis(n.Sum)), Amount: n.Sum, Payload: p, Barred: n.Uploaders()}, nil
}

// checkPairs returns both sides of each match.
func (a *Changes) checkPairs(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[pairings](r)
	if err != nil {
		return nil, err
	}
	_, list, err := a.exceptionsAsSeen(ctx, p.ids(), p.Digest)
	if err != nil {
		return nil, err
	}
	payments := make([]string, len(p.List))
	for i, one := range p.List {
		payments[i] = one.Payment
	}
	found, err := a.Payments.ByIDs(ctx, payments)
	for i, one := range p.List {
		pay := found[one.Payment]
		list = append(list, Fact{Name: fmt.Sprintf("Payment %d", i+1), Value: fmt.Sprintf("%s, %s, for the exception %s", reference(pay), worth(pay, pay.Gross()), one.Exception), Of: ofPayment(pay.ID)})
	}
	return list, err
}
