package payments

import (
	"context"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/provider"
)

// maxHints is how many payments one callback may speak of.
const maxHints = 16

// Hint takes a provider's callback for what it is: somebody says that something happened. It moves the
// next question about an open payment forward, and asks about a final one again; at most once in two
// seconds for each, and it settles nothing by itself. A reference that nobody knows writes nothing.
func (p *Payments) Hint(ctx context.Context, rail provider.Rail, hints []provider.Hint) error {
	for _, h := range hints[:min(len(hints), maxHints)] {
		parsed, err := uuid.Parse(h.ProviderReference) // with hyphens or without: as the provider likes it
		if err != nil {
			continue
		}
		reference := parsed.String()
		if id, ok := p.live.known(reference); ok {
			p.jobs.Wake(id)
			continue
		}
		pay, found, err := p.byProviderReference(ctx, reference)
		if err != nil {
			return err
		}
		if !found || pay.Rail != rail.Name || pay.Mode != rail.Mode {
			continue
		}
		if pay.Status.Open() {
			p.jobs.Wake(pay.ID) // its owner is another node
			continue
		}
		if !p.live.mayAsk(pay.ID, p.clock.Now()) {
			continue
		}
		asking, cancel := detached(ctx, askTime)
		_, err = p.lookAgain(asking, pay)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
