package payments

import (
	"context"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// maxHints is the maximum number of payments in one callback.
const maxHints = 16

// Hint handles the references in a provider's callback. It brings forward the next status query of an open payment,
// and rechecks a final payment. It does each of these at most once in two seconds for one payment. Hint ignores
// unknown payments and payments of other providers. It uses no other content of the callback, because only a status
// query is trusted.
func (p *Payments) Hint(ctx context.Context, rail provider.Rail, hints []provider.Hint) error {
	for _, h := range hints[:min(len(hints), maxHints)] {
		parsed, err := uuid.Parse(h.ProviderReference) // providers send it with or without hyphens
		if err != nil {
			continue
		}
		reference := parsed.String()
		if id, ok := p.follower.live.find(reference, book.RailName{Provider: rail.Name, Mode: rail.Mode}); ok && !h.OfRefund {
			p.jobs.Wake(id)
			continue
		}
		pay, found, err := p.ByProviderReference(ctx, reference)
		switch {
		case err != nil:
			return err
		case h.OfRefund:
			if found && pay.Rail == rail.Name && pay.Mode == rail.Mode {
				if err := p.hintRefund(ctx, pay); err != nil {
					return err
				}
			}
		case !found || pay.Rail != rail.Name || pay.Mode != rail.Mode:
		case pay.Status == book.StatusPending:
			p.jobs.Wake(pay.ID)
		case !pay.Status.Open():
			p.rechecks.soon(pay)
		}
	}
	return nil
}

// hintRefund brings forward the next status query of a collection's newest refund.
func (p *Payments) hintRefund(ctx context.Context, of book.Payment) error {
	refunds, err := p.RefundsOf(ctx, of.ID, 1)
	for _, r := range refunds {
		switch {
		case r.RefundWay != book.RefundByRail:
		case r.Status == book.StatusPending:
			p.jobs.Wake(r.ID)
		case !r.Status.Open():
			p.rechecks.soon(r)
		}
	}
	return err
}
