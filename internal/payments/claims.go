package payments

import (
	"context"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
)

// claims adopts payments that a provider has according to an operator's claim. It runs with the sweep, on one node,
// and only in a recovery.
func (p *Payments) claims(ctx context.Context) error {
	s, err := p.recovered.state(ctx)
	if err != nil || !s.Lasts() || s.Closed() {
		return err
	}
	if err := p.settleConflicts(ctx, s); err != nil {
		return err
	}
	waiting, err := p.recovered.recovery.Waiting(ctx)
	for _, c := range waiting {
		if err == nil {
			err = p.claim(ctx, c)
		}
	}
	return err
}

// settleConflicts resolves conflicts whose payment was adopted by a later request of the client. A conflict about a
// payout that is pending approval stays open.
func (p *Payments) settleConflicts(ctx context.Context, s recovery.State) error {
	list, err := p.recovered.recovery.Conflicts(ctx)
	for _, c := range list {
		if err != nil {
			break
		}
		pay, found, known := p.book.ByProviderReference(ctx, c.ProviderReference)
		if err = known; err == nil && found && !pay.AwaitsApproval() && !pay.CreatedAt.Before(s.BegunAt) {
			err = p.recovered.recovery.Over(ctx, c)
		}
	}
	return err
}

// claim adopts one claimed payment, or stores the reason why it cannot be adopted. The claim stays open while a
// provider does not answer.
func (p *Payments) claim(ctx context.Context, c recovery.Claim) error {
	t, err := p.tenants.Get(ctx, c.Tenant)
	if err != nil {
		return err
	}
	pay := newPayment(idempotency.Caller{Tenant: c.Tenant}, t, book.Kind(c.Kind))
	pay.Reference, pay.Amount, pay.Channel, pay.Account, pay.BankID = c.Reference, money.Pesewas(c.Amount), c.Channel, c.Party, c.Bank
	products := map[book.Kind]tenant.Product{book.KindPayout: tenant.Payout, book.KindCollection: tenant.Collection}
	if product, charged := products[pay.Kind]; charged {
		if pay.Charges, pay.Plan, err = p.tenants.Fee(ctx, t.ID, product, pay.Channel, pay.Amount, p.clock.Now()); err != nil {
			return err
		}
	}
	_, err = p.accept(ctx, &request{Acceptance: book.Acceptance{Payment: pay}, claimed: true})
	if err == nil {
		return p.recovered.recovery.Judged(ctx, c, recovery.ClaimAdopted, "")
	}
	switch e := problem.From(err); e.Kind {
	case problem.Duplicate:
		return p.recovered.recovery.Judged(ctx, c, recovery.ClaimRefused, "it is in the books")
	case problem.NotFound, problem.Invalid:
		return p.recovered.recovery.Judged(ctx, c, recovery.ClaimRefused, e.Message)
	case problem.Unavailable: // too early, no answer, or a conflict that an operator resolves
		return nil
	}
	return err
}
