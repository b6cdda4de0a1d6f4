package payments

import (
	"context"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// maxHints is how many payments one callback may speak of.
const maxHints = 16

// Hint hears that a provider spoke of payments. It moves the next question about
// an open one forward and has a final one looked at again, each at most once in
// two seconds; what is unknown here, or held by another provider, is passed
// over. Nothing that the callback said is believed.
func (p *Payments) Hint(ctx context.Context, rail provider.Rail, hints []provider.Hint) error {
	for _, h := range hints[:min(len(hints), maxHints)] {
		parsed, err := uuid.Parse(h.ProviderReference) // with hyphens or without: as the provider likes it
		if err != nil {
			continue
		}
		reference := parsed.String()
		if id, ok := p.follower.live.known(reference, book.RailName{Provider: rail.Name, Mode: rail.Mode}); ok {
			p.jobs.Wake(id)
			continue
		}
		pay, found, err := p.ByProviderReference(ctx, reference)
		switch {
		case err != nil:
			return err
		case !found || pay.Rail != rail.Name || pay.Mode != rail.Mode:
		case pay.Status == book.StatusPending:
			p.jobs.Wake(pay.ID)
		case !pay.Status.Open():
			p.rechecks.soon(pay)
		}
	}
	return nil
}
