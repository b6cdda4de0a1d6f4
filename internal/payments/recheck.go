package payments

import (
	"context"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A provider's final word is not always its last. Every final payment is asked
// about once more when it is a day old, and whenever a callback speaks of it.
// What contradicts the stored word never changes it silently: money that comes
// late to a collection is credited, and everything else goes through suspense to
// an operator.

// recheck asks about a final payment and acts on a contradiction. asked is
// false when the provider could not be asked.
func (p *Payments) recheck(ctx context.Context, pay book.Payment) (asked bool, err error) {
	if pay.Status.Open() || pay.Rail == "" {
		return true, nil
	}
	rail, ok := p.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return true, nil
	}
	o := p.ask(ctx, rail, pay)
	_, v, _ := judge(standingOf(pay, rail), report{fromQuestion, o, p.clock.Now()})
	e, contradicts := contradictions[v]
	if !contradicts {
		if pay.Status == book.StatusSuccess && pay.ContradictedAt.IsZero() && o.Final() && o.State == provider.Success && o.FeeKnown {
			err = p.book.BookCosts(ctx, pay, o.Fee, o.Commission)
		}
		return answersSomething(o), err
	}
	s := book.Settlement{Payment: pay, Event: e, Outcome: o}
	if s.Event == book.EventReversed {
		// The provider takes its own part back, too.
		if s.Outcome.Fee, s.Outcome.Commission, err = p.book.Costs(ctx, pay); err != nil {
			return true, err
		}
		s.Outcome.FeeKnown = true
	}
	done, err := p.book.Settle(ctx, s)
	if err != nil || !done.Changed {
		return true, err
	}
	p.log.Error("a provider contradicts its own final word", "payment", pay.ID, "tenant", pay.Tenant, "kind", string(pay.Kind),
		"provider", pay.Rail, "provider_reference", pay.AttemptReference, "was", string(pay.Status), "event", string(s.Event))
	p.metrics.contradicted(pay, s.Event)
	return true, nil
}

// contradictions are the events of the verdicts about final payments.
var contradictions = map[verdict]book.Event{
	verdictReversed: book.EventReversed, verdictPaidLate: book.EventPaidLate, verdictFoundPaid: book.EventFoundPaid, verdictOpposite: book.EventOpposite,
}
