package payments

import (
	"context"
	"log/slog"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A provider's final word is not always its last. Every final payment is asked
// about once more when it is a day old, and whenever a callback speaks of it.
// An answer that contradicts the stored word never changes it silently: money that comes
// late to a collection is credited, and everything else goes through suspense to
// an operator.

// A rechecker asks about final payments.
type rechecker struct {
	book    *book.Book
	rails   *rails
	clock   *clock.Clock
	log     *slog.Logger
	metrics metrics
}

// recheck asks about a final payment and acts on a contradiction. asked is
// false when the provider could not be asked.
func (c *rechecker) recheck(ctx context.Context, pay book.Payment) (asked bool, err error) {
	if pay.Status.Open() || pay.Rail == "" {
		return true, nil
	}
	rail, ok := c.rails.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return true, nil
	}
	o := c.rails.ask(ctx, rail, pay)
	now := momentOf(c.clock)
	_, v, _ := judge(standingOf(pay, rail, now), report{from: fromQuestion, outcome: o, at: now})
	e, contradicts := contradictions[v]
	if !contradicts {
		if pay.Status == book.StatusSuccess && pay.ContradictedAt.IsZero() && o.Final() && o.State == provider.Success && o.FeeKnown {
			err = c.book.BookCosts(ctx, pay, o.Fee, o.Commission)
		}
		return answersSomething(o), err
	}
	s := book.Settlement{Payment: pay, Event: e, Outcome: o}
	if s.Event == book.EventReversed {
		// The provider takes its own part back, too.
		if s.Outcome.Fee, s.Outcome.Commission, err = c.book.Costs(ctx, pay); err != nil {
			return true, err
		}
		s.Outcome.FeeKnown = true
	}
	done, err := c.book.Settle(ctx, s)
	if err != nil || !done.Changed {
		return true, err
	}
	c.log.Error("a provider contradicts its own final word", "payment", pay.ID, "tenant", pay.Tenant, "kind", string(pay.Kind),
		"provider", pay.Rail, "provider_reference", pay.AttemptReference, "was", string(pay.Status), "event", string(s.Event))
	c.metrics.contradicted(pay, s.Event)
	return true, nil
}

// recheckNow is recheck for the queue: an error is logged.
func (c *rechecker) recheckNow(ctx context.Context, pay book.Payment) {
	if _, err := c.recheck(ctx, pay); err != nil && ctx.Err() == nil {
		c.log.Error("a final payment could not be rechecked", "payment", pay.ID, "error", err)
	}
}

// contradictions are the events of the verdicts about final payments.
var contradictions = map[verdict]book.Event{
	verdictReversed: book.EventReversed, verdictPaidLate: book.EventPaidLate, verdictFoundPaid: book.EventFoundPaid, verdictOpposite: book.EventOpposite,
}
