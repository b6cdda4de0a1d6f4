package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

var refundFields = []Field{tenantField,
	{Name: "collection", Label: "Collection", Hint: "Reference of the collection, or its id.", Max: 64, Required: true},
	{Name: "amount", Label: "Amount (GHS)", Hint: "Enter an amount. Leave empty for the whole amount that is not refunded yet.", Max: 20}}

// fieldFee is the fee that the requester saw.
const fieldFee = "fee"

func (a *Changes) refundKind() Kind {
	return Kind{Name: KindRefund, Title: "Refund by a page", Rule: Rule{Make: roles.RequestPayouts, Check: roles.ApprovePayouts}, Check: a.checkRefund, Apply: a.approveRefund, Undone: a.disapprovePayout,
		Instead: "People of the account refund a collection on its page"}.by(a.lookRefund, append(refundFields[:len(refundFields):len(refundFields)], Field{Name: fieldFee, Label: "Fee as shown", Max: 20})...)
}

// heldRefund is the refund that would be sent. Its members and their order are hashed, so they never change.
type heldRefund struct {
	heldPayout
	Collection string         `json:"collection"`
	Way        book.RefundWay `json:"way"`
}

func heldRefundOf(p book.Payment) heldRefund { return heldRefund{heldOf(p), p.RefundOf, p.RefundWay} }

// refundRequest returns the request of a refund without its requester. It has the refund's id and no name.
func refundRequest(of, refund book.Payment) Request {
	payload, _ := json.Marshal(heldRefundOf(refund)) // texts and numbers can always be marshalled
	return Request{ID: refund.ID, Kind: KindRefund, Tenant: refund.Tenant, Place: refund.Tenant, Amount: refund.Amount, Payload: payload,
		Sentence: refundSentence(of, refund)}
}

// RefundFee returns the fee of the refund of a request.
func RefundFee(r Request) (money.Pesewas, error) {
	p, err := payloadOf[heldRefund](r)
	return p.Charges, err
}

func refundSentence(of, refund book.Payment) string {
	return fmt.Sprintf("Refund %s of the collection %s to %s, with a fee of %s", worth(refund, refund.Amount), reference(of), masked(refund), worth(refund, refund.Charges))
}

// plannedRefund returns the collection that values name, and the refund of it that would be accepted now.
func (a *Changes) plannedRefund(ctx context.Context, tenantID string, v Values) (of, planned book.Payment, err error) {
	of, found, err := a.Payments.Collection(ctx, tenantID, v["collection"])
	if err == nil && !found {
		err = problem.New(problem.NotFound, "payment_not_found", "The account has no such collection")
	}
	if err != nil {
		return of, planned, err
	}
	amount, err := v.amount("amount")
	if err == nil && v["amount"] != "" && amount < payments.MinRefund {
		err = problem.Field("amount", "must be at least "+payments.MinRefund.String())
	}
	if err != nil {
		return of, planned, err
	}
	planned, err = a.Payments.PlannedRefund(ctx, of, amount)
	return of, planned, err
}

// lookRefund drafts a refund by a page. The transaction that stores the request accepts the refund. The refund then
// waits for approval with its money on hold, or is sent at once.
func (a *Changes) lookRefund(ctx context.Context, o Order) (Draft, error) {
	if o.By.Place != o.Values[FieldTenant] || o.By.Machine != "" {
		return Draft{}, problem.New(problem.Forbidden, "person_needed", a.kinds[KindRefund].Instead)
	}
	if again, found, err := a.refundOfForm(ctx, o); err != nil || found {
		return Draft{Again: &again}, err
	}
	of, planned, err := a.plannedRefund(ctx, o.By.Place, o.Values)
	if err != nil {
		return Draft{}, err
	}
	if shown := o.Values[fieldFee]; shown != "" && shown != planned.Charges.String() {
		return Draft{}, errChanged("The fee")
	}
	facts, err := a.refundFacts(ctx, of, planned)
	r := refundRequest(of, planned)
	return Draft{Tenant: of.Tenant, Sentence: r.Sentence, Amount: r.Amount, Payload: r.Payload, Facts: facts, Changes: []audit.Change{{What: "refund", After: "is sent"}},
		Accept: func(ctx context.Context, plan Plan) (string, error) { return a.acceptRefund(ctx, o, of, planned, plan) }}, err
}

// refundOfForm finds the request of the refund that the same form made before.
func (a *Changes) refundOfForm(ctx context.Context, o Order) (r Request, found bool, err error) {
	pay, found, err := a.PayoutOf(ctx, o.By.Place, o.ID, "")
	if err != nil || !found {
		return r, false, err
	}
	of, known, err := a.Payments.Collection(ctx, o.By.Place, o.Values["collection"])
	if err == nil && (!known || pay.RefundOf != of.ID) {
		err = problem.Field("id", "belongs to another payment: open the form again")
	}
	if err == nil {
		r, err = a.accepted(ctx, KindRefund, o.By.Place, pay.ID)
	}
	return r, err == nil, err
}

// acceptRefund accepts a planned refund and submits it unless it waits for approval.
func (a *Changes) acceptRefund(ctx context.Context, o Order, of, planned book.Payment, plan Plan) (string, error) {
	gone := ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptWithin)
	defer cancel()
	caller, err := o.caller()
	if err != nil {
		return "", err
	}
	r := payments.Refund{Collection: of.ID, Amount: planned.Amount, Reference: formKey(o.ID), Reason: strings.TrimSpace(o.Reason), Gone: gone}
	r.Requester.Plan = func(ctx context.Context, refund book.Payment) (*payments.PendingApproval, error) {
		switch {
		case refund.Charges != planned.Charges:
			return nil, errChanged("The fee")
		case refund.RefundWay != planned.RefundWay:
			return nil, errChanged("The kind of the refund")
		}
		return plan.pending(ctx, refundRequest(of, refund))
	}
	r.Requester.Adopted = a.adopted(o, KindRefund)
	refund, _, err := a.Payments.Refund(ctx, caller, r)
	return refund.ID, err
}

// refundLooks is the number of earlier refunds of a collection that are read.
const refundLooks = 100

// refundFacts returns the facts of a refund for requester and approver. refund has no id before it is accepted.
func (a *Changes) refundFacts(ctx context.Context, of, refund book.Payment) ([]Fact, error) {
	sums, err := a.Payments.Refunds(ctx, of.ID)
	if err != nil {
		return nil, err
	}
	before, err := a.Payments.RefundsOf(ctx, of.ID, refundLooks)
	if err != nil {
		return nil, err
	}
	left := sums.Left(of)
	if refund.ID != "" {
		left += refund.Amount
	}
	way := "a payout to the payer's number"
	if refund.RefundWay == book.RefundByRail {
		way = "the provider's own refund"
	}
	list := []Fact{{Name: "Collection", Value: reference(of), Of: ofPayment(of.ID)}, {Name: "Status of the collection", Value: of.PublicStatus()}, {Name: "Collected", Value: worth(of, of.Amount)},
		{Name: "Left to refund", Value: worth(of, left)}, {Name: "Payer", Value: masked(of)}, {Name: "Fee", Value: worth(refund, refund.Charges)}}
	if refund.ID != "" || a.Payments.Submits() { // a command does not know the providers of the server, which accepts the refund
		list = append(list, Fact{Name: "Way", Value: way})
	}
	if !of.ContradictedAt.IsZero() {
		list = append(list, warning("The provider reports the collection as reversed."))
	}
	var earlier money.Pesewas
	for _, b := range before {
		if b.ID != refund.ID && b.Status != book.StatusFailed {
			earlier += b.Amount
		}
	}
	if earlier += sums.FoundPaid; earlier > 0 {
		list = append(list, warning(worth(of, earlier)+" of this collection was refunded before. Is this another refund?"))
	}
	return list, nil
}

// checkRefund computes the facts of a waiting refund again.
func (a *Changes) checkRefund(ctx context.Context, r Request) ([]Fact, error) {
	refund, err := a.Payments.Find(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	of, err := a.Payments.Find(ctx, refund.RefundOf)
	if err != nil {
		return nil, err
	}
	return a.refundFacts(ctx, of, refund)
}

// approveRefund releases the refund to be sent and ends the request in one transaction.
func (a *Changes) approveRefund(ctx context.Context, r *Request, finish Finish) error {
	p, err := payloadOf[heldRefund](*r)
	if err != nil {
		return err
	}
	return a.release(ctx, *r, "refund", func(row book.Payment) bool { return heldRefundOf(row) == p }, finish)
}
