package payments

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// Voucher completes a pending collection of a tenant with the voucher that its payer generated. collection is an id
// or a reference, as in Refund. The voucher is only sent to the provider, never stored. A status query then returns
// the outcome of the collection.
func (p *Payments) Voucher(ctx context.Context, tenantID, collection, code string) (book.Payment, error) {
	pay, rail, err := p.awaitingVoucher(ctx, tenantID, collection)
	if err != nil {
		return book.Payment{}, err
	}
	if !p.vouchers.allow(pay.ID, momentOf(p.clock)) {
		e := problem.New(problem.RateLimited, "rate_limited", "A voucher of this collection was sent just now. Query its status first.")
		e.RetryAfter = hintTime
		return book.Payment{}, e
	}
	calling, cancel := detached(ctx, answerTime)
	defer cancel()
	o := rail.Vouchers.SubmitVoucher(provider.About(calling, pay.ID), provider.VoucherRequest{ProviderReference: pay.AttemptReference, Code: code,
		Reference: pay.Reference, Amount: pay.Gross(), MSISDN: pay.MSISDN(), Network: msisdn.Network(pay.Channel), Label: pay.Label})
	p.jobs.Wake(pay.ID)
	switch o.Class {
	case provider.Accepted:
		return pay, nil
	case provider.Rejected:
		return book.Payment{}, problem.Field("code", "was not accepted. Query the status: if the collection failed, send a new one")
	}
	e := problem.New(problem.Unavailable, "provider_unavailable", "The provider did not answer. Query the status before you send the voucher again.")
	e.RetryAfter = hintTime
	return book.Payment{}, e
}

// awaitingVoucher returns a collection that may take a voucher, and its rail.
func (p *Payments) awaitingVoucher(ctx context.Context, tenantID, collection string) (pay book.Payment, rail provider.Rail, err error) {
	t, err := p.tenants.Get(ctx, tenantID)
	if err != nil {
		return pay, rail, err
	}
	pay, found, err := p.Collection(ctx, tenantID, collection)
	switch {
	case err != nil:
		return pay, rail, err
	case !found:
		return pay, rail, p.recovered.unfound(ctx, "payment_not_found", "Payment not found")
	case !t.Voucher:
		return pay, rail, problem.Field("transaction_id", "takes no voucher: vouchers are switched off for the account")
	case pay.Status != book.StatusPending:
		return pay, rail, problem.Field("transaction_id", "takes no voucher: the collection is "+pay.PublicStatus())
	}
	rail, ok := p.rails.routes.Rail(pay.Rail, pay.Mode)
	if !ok || rail.Vouchers == nil || !slices.Contains(rail.Needs.Vouchers, msisdn.Network(pay.Channel)) {
		return pay, rail, problem.Field("transaction_id", "takes no voucher: the payer approves the collection on the phone")
	}
	switch {
	case observedOf(pay, rail, momentOf(p.clock)).stage == stageUnsent:
		return pay, rail, problem.Field("transaction_id", "takes no voucher yet: the collection was not sent to its provider. Query its status first")
	case rail.Needs.VoucherStarts && pay.VoucherAt.IsZero():
		return pay, rail, problem.Field("transaction_id", "takes no voucher yet: no request of its provider for one is stored. If the payer has a code, ask the operator to end the collection")
	}
	return pay, rail, nil
}
