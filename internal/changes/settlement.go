package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
)

// KindPair matches the line of an exception with a payment. KindEndByLine sets the outcome of the payment of an exception from the statement.
const (
	KindPair      = "statement.match"
	KindEndByLine = "statement.settle"
)

// pairing is the requested match. The digest covers its members in this order, so they never change.
type pairing struct {
	Exception string        `json:"exception"`
	Digest    string        `json:"digest"`
	Payment   string        `json:"payment"`
	Leg       reconcile.Leg `json:"leg"`
}

func (a *Changes) pairKind(rule Rule) Kind {
	return written(a, KindPair, "Match of a line with a payment", rule, func(tx *db.Tx, request Request, p pairing) ([]audit.Change, error) {
		err := a.Reconcile.Pair(tx, []reconcile.Pairing{{Exception: p.Exception, Payment: p.Payment, Leg: p.Leg}}, p.Digest, request.Actor)
		return []audit.Change{{What: "line of the statement", Before: "unmatched", After: "matched with " + p.Payment}}, err
	}).by(a.lookPair, exceptionField, paymentField).showing(a.checkPair)
}

func (a *Changes) lookPair(ctx context.Context, o Order) (Draft, error) {
	n, err := a.Reconcile.Selected(ctx, []string{o.Values["exception"]})
	if err != nil {
		return Draft{}, err
	}
	pay, err := a.Payments.Find(ctx, o.Values["payment"])
	if err != nil {
		return Draft{}, err
	}
	leg, err := a.Reconcile.CheckPair(ctx, n.List[0], pay)
	if err != nil {
		return Draft{}, err
	}
	d, err := a.draftPayment(ctx, pay, fmt.Sprintf("Match a line of %s with {payment}", cedis(n.Sum)), pairing{n.List[0].ID, n.Digest, pay.ID, leg})
	d.Amount, d.Barred = n.Sum, n.Uploaders()
	return d, err
}

// checkPair returns both sides of the match.
func (a *Changes) checkPair(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[pairing](r)
	if err != nil {
		return nil, err
	}
	n, list, err := a.exceptionsAsSeen(ctx, []string{p.Exception}, p.Digest)
	if err != nil {
		return nil, err
	}
	pay, err := a.Payments.Find(ctx, p.Payment)
	if err != nil {
		return nil, err
	}
	l, err := a.Reconcile.Line(ctx, n.List[0].Line)
	list = append(list, paymentFacts(pay)...)
	if amount := max(l.Amount, -l.Amount); amount != pay.Gross() {
		list = append(list, warning(fmt.Sprintf("The amounts differ: the line has %s, and the payment has %s.", cedis(amount), cedis(pay.Gross()))))
	}
	return list, err
}

// settlement is the requested outcome of a payment. The digest covers its members in this order, so they never change.
type settlement struct {
	Exception  string        `json:"exception"`
	Digest     string        `json:"digest"`
	Payment    seen          `json:"payment"`
	Paid       bool          `json:"paid"`
	Contradict bool          `json:"contradict"` // the change reverses an operator's resolution
	FeeKnown   bool          `json:"fee_known"`
	Fee        money.Pesewas `json:"fee"`
}

func (a *Changes) evidenceKind(rule Rule) Kind {
	return Kind{Name: KindEndByLine, Title: "Outcome of a payment from a statement", Rule: rule, Look: a.lookEndByLine, Check: a.checkEndByLine, Apply: a.endByLine, Fields: []Field{exceptionField}}
}

// settlementOf interprets an exception as evidence about its payment. A statement can end an open payment, and it
// can reverse an operator's decision that was based on another statement. It never overrules an outcome that the
// provider reported. Only the statement of the payment's present attempt counts.
func (a *Changes) settlementOf(ctx context.Context, e reconcile.Exception, pay book.Payment) (p settlement, err error) {
	p = settlement{Exception: e.ID, Payment: seenOf(pay)}
	if e.Kind != reconcile.StateOff && e.Kind != reconcile.OursOnly || e.Payment == "" {
		return p, problem.Field("exception", "must be a payment whose status differs, or a payment that is missing from the statement")
	}
	l, err := a.Reconcile.Evidence(ctx, e, pay)
	if err != nil {
		return p, err
	}
	if e.Line != "" {
		out := pay.Kind != book.KindCollection
		p.Paid = l.Status == reconcile.StatusSuccess && (l.Amount < 0) == out
		p.FeeKnown, p.Fee = p.Paid && l.FeeKnown, l.Fee
		if amount := max(l.Amount, -l.Amount); l.Status == reconcile.StatusSuccess && !p.Paid && amount != 0 && amount < pay.Gross() {
			return p, problem.New(problem.Invalid, "partly_reversed", "The provider took back a part of the payment. Put the difference into suspense")
		}
	}
	if !p.Paid {
		if err := a.Reconcile.CheckUnpaid(ctx, pay.ID); err != nil {
			return p, err
		}
	}
	if pay.Status.Open() {
		return p, a.Payments.Resolvable(pay, p.Paid)
	}
	p.Contradict = true
	switch {
	case pay.Note == "" || pay.Kind == book.KindCollection:
		err = problem.New(problem.Invalid, "provider_reported", "The provider reported the outcome of this payment itself. Query the provider again, or put the difference into suspense")
	case !pay.ContradictedAt.IsZero():
		err = payments.ErrContradicted()
	}
	return p, err
}

func (a *Changes) lookEndByLine(ctx context.Context, o Order) (Draft, error) {
	n, err := a.Reconcile.Selected(ctx, []string{o.Values["exception"]})
	if err != nil {
		return Draft{}, err
	}
	e := n.List[0]
	if e.Payment == "" {
		return Draft{}, problem.Field("exception", "has no payment: adopt its line, or match it with a payment")
	}
	pay, err := a.Payments.Find(ctx, e.Payment)
	if err != nil {
		return Draft{}, err
	}
	p, err := a.settlementOf(ctx, e, pay)
	if err != nil {
		return Draft{}, err
	}
	p.Digest = n.Digest
	sentence := fmt.Sprintf("Resolve {payment} as %s from the statement of %s: %s", paidWord(p.Paid), pay.Rail, worth(pay, pay.Amount))
	if p.Contradict {
		sentence = fmt.Sprintf("Reverse the outcome of {payment}, which was resolved as %s: %s", paidWord(!p.Paid), worth(pay, pay.Amount))
	}
	d, err := a.draftPayment(ctx, pay, sentence, p)
	d.Barred = n.Uploaders()
	return d, err
}

// checkEndByLine returns the exception with its file, and the payment with its provider's last answer.
func (a *Changes) checkEndByLine(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[settlement](r)
	if err != nil {
		return nil, err
	}
	_, list, err := a.exceptionsAsSeen(ctx, []string{p.Exception}, p.Digest)
	if err != nil {
		return nil, err
	}
	pay, err := a.asSeen(ctx, p.Payment)
	if err != nil {
		return nil, err
	}
	if list = append(list, paymentFacts(pay)...); p.FeeKnown {
		list = append(list, Fact{Name: "Fee of the provider", Value: worth(pay, p.Fee)})
	}
	if !p.Paid && pay.Held() > 0 && !p.Contradict {
		list = append(list, warning("The money goes back to the wallet and can be paid out again. If the provider did pay, it is paid twice."))
	}
	return list, nil
}

func (a *Changes) endByLine(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[settlement](*request)
	if err != nil {
		return err
	}
	return a.settleByLine(ctx, p, *request, func(tx *db.Tx) error {
		return finish(tx, []audit.Change{{What: "payment", Before: p.Payment.Status, After: paidWord(p.Paid)}})
	})
}

// settleByLine settles a payment and ends its exception in one transaction. also runs in the same transaction.
func (a *Changes) settleByLine(ctx context.Context, p settlement, request Request, then func(*db.Tx) error) (err error) {
	// A group commit returns to a caller that leaves before its batch ends.
	ctx = context.WithoutCancel(ctx)
	also := func(tx *db.Tx) error {
		if _, err := a.unchanged(tx, p.Payment); err != nil {
			return err
		}
		if err := a.Reconcile.EndSettled(tx, p.Exception, p.Digest, p.Paid, request.ID); err != nil {
			return err
		}
		return then(tx)
	}
	switch {
	case p.Contradict && p.FeeKnown:
		_, err = a.Payments.ContradictPaid(ctx, p.Payment.ID, p.Fee, 0, request.Reason, request.Actor, also)
	case p.Contradict:
		_, err = a.Payments.Contradict(ctx, p.Payment.ID, p.Paid, request.Reason, request.Actor, also)
	case p.FeeKnown:
		_, err = a.Payments.ResolvePaid(ctx, p.Payment.ID, p.Fee, 0, request.Reason, request.Actor, also)
	default:
		_, err = a.Payments.Resolve(ctx, p.Payment.ID, p.Paid, request.Reason, request.Actor, also)
	}
	return err
}
