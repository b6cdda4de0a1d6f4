package changes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// KindOperatorRefund is a refund of a collection that an operator requests for the account. No money is on hold before the last
// approval.
const KindOperatorRefund = "payment.refund_by_operator"

// operatorRefund is the payload of an operator's request to refund a collection, as the requester saw it. Its members
// and their order are hashed, so they never change.
type operatorRefund struct {
	Tenant     string        `json:"tenant"`
	Collection string        `json:"collection"` // its id
	Amount     money.Pesewas `json:"pesewas"`
	Charges    money.Pesewas `json:"charges"`
	Refunded   money.Pesewas `json:"refunded"`  // refunded amount of the collection before
	Reference  string        `json:"reference"` // of the refund
}

func (a *Changes) operatorRefundKind() Kind {
	return Kind{Name: KindOperatorRefund, Title: "Refund by an operator", Rule: Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney}, Served: true,
		Check: a.checkOperatorRefund, Apply: a.refundForAccount}.by(a.lookOperatorRefund, append(refundFields[:len(refundFields):len(refundFields)],
		Field{Name: referenceField.Name, Label: "Reference", Hint: "Enter a reference of the refund with 12 to 36 characters. Leave empty for a generated reference.", Max: 36})...)
}

// RefundIn returns the account of a refund by an operator, and the reference of its payment.
func RefundIn(r Request) (tenantID, reference string, err error) {
	p, err := payloadOf[operatorRefund](r)
	return p.Tenant, p.Reference, err
}

func (a *Changes) lookOperatorRefund(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	of, planned, err := a.plannedRefund(ctx, t.ID, o.Values)
	if err != nil {
		return Draft{}, err
	}
	reference := o.Values[referenceField.Name]
	if reference != "" {
		if err := payments.CheckReference(referenceField.Name, reference); err != nil {
			return Draft{}, err
		}
	}
	reference = cmp.Or(reference, "operator-"+strings.TrimPrefix(formKey(o.ID), "console-"))
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	return Draft{Tenant: t.ID, Amount: planned.Amount, Payload: operatorRefund{t.ID, of.ID, planned.Amount, planned.Charges, of.Refunded, reference},
		Sentence: fmt.Sprintf("For %s: %s", title, refundSentence(of, planned))}, nil
}

// checkOperatorRefund returns the facts of a refund that would be accepted now, and the balances of the wallet.
func (a *Changes) checkOperatorRefund(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[operatorRefund](r)
	if err != nil {
		return nil, err
	}
	of, err := a.Payments.Find(ctx, p.Collection)
	if err != nil {
		return nil, err
	}
	planned, err := a.Payments.PlannedRefund(ctx, of, p.Amount)
	if err != nil {
		return nil, err
	}
	list, err := a.refundFacts(ctx, of, planned)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	balances, err := a.balances(ctx, "wallet of "+t.Name, t.Wallet(), -int64(planned.Held()))
	return append(append(list, Fact{Name: "Reference", Value: p.Reference}), balances...), err
}

// refundForAccount accepts the refund and ends the request in one transaction.
func (a *Changes) refundForAccount(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[operatorRefund](*request)
	if err != nil {
		return err
	}
	of, err := a.Payments.Find(ctx, p.Collection)
	switch {
	case err != nil:
		return err
	case of.Tenant != p.Tenant:
		return problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	case of.Refunded != p.Refunded:
		return errChanged("The refunded amount of the collection")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptWithin)
	defer cancel()
	caller := idempotency.Caller{Tenant: p.Tenant, IdempotencyKey: formKey(request.ID), BodyHash: request.Digest[:32]}
	refund, _, err := a.Payments.Refund(ctx, caller, payments.Refund{Collection: p.Collection, Amount: p.Amount, Reference: p.Reference, Reason: strings.TrimSpace(request.Reason), Approved: true,
		Guard: func(refund book.Payment) error {
			if refund.Charges != p.Charges {
				return errChanged("The fee")
			}
			return nil
		},
		InTx: func(tx *db.Tx) error {
			return finish(tx, []audit.Change{{What: "refund of " + reference(of), Before: worth(of, p.Refunded), After: worth(of, p.Refunded+p.Amount)}})
		}})
	request.Made = refund.ID
	return err
}
