package payments

import (
	"cmp"
	"time"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// repeatTime is how long the same request hears what became of it, for a tenant
// whose duplicates repeat.
const repeatTime = 24 * time.Hour

// again judges a request whose Reference old has; topUp is the payment that rides
// along with old, nil where there is none. The request that was refused outright
// hears so again, and that of a tenant whose duplicates repeat hears the state of
// the payment, a failure as Refused; both are replayed. Every other is Duplicate,
// as is one about which the provider has contradicted itself.
func (p *Payments) again(a *acceptance, old Payment, topUp *Payment) (result, error) {
	told := old.Refused || a.repeats && p.clock.Since(old.CreatedAt).Abs() < repeatTime
	contradicted := old.Status == StatusFailed && !old.TurnedAt.IsZero()
	switch {
	case !told, contradicted, !a.like(old, topUp):
		return result{}, duplicate(old)
	case p.answering(old):
		e := problem.New(problem.InProgress, "reference_in_progress", "The first request with this reference is still being answered")
		e.RetryAfter = time.Second
		return result{}, e
	case !old.Status.Open() && old.Status != StatusSuccess:
		return result{replayed: true}, refused(old)
	}
	return result{payment: old, replayed: true}, nil
}

// like says whether the request is the one that made old.
func (a *acceptance) like(old Payment, topUp *Payment) bool {
	if a.child == nil || topUp == nil {
		return a.child == nil && old.Child == "" && a.payment.like(old)
	}
	return a.payment.like(old) && a.child.like(*topUp)
}

// like says whether two payments were asked for by the same request, but for what
// is for people. The price of a package is its offer's.
func (p Payment) like(old Payment) bool {
	return p.Kind == old.Kind && p.Channel == old.Channel && p.Account == old.Account && p.BankID == old.BankID && p.CallbackURL == old.CallbackURL &&
		cmp.Or(p.Details.AccountType, AccountAgent) == cmp.Or(old.Details.AccountType, AccountAgent) &&
		p.Details.OfferID == old.Details.OfferID && (p.Amount == old.Amount || p.Kind == KindBundle)
}

func duplicate(old Payment) error {
	e := problem.New(problem.Duplicate, "duplicate_reference", "The transaction id has already been taken")
	if old.Kind == KindPayout {
		e.Message = "The client reference has already been taken"
	}
	e.Data = old
	return e
}

// refused is the answer of a payment that failed.
func refused(pay Payment) error {
	e := problem.New(problem.Refused, "payment_failed", "The payment failed. "+provider.Sentence(pay.Reason))
	if pay.Kind == KindPayout {
		e = problem.New(problem.Refused, "payout_failed_refunded", "The payout failed and was refunded. "+provider.Sentence(pay.Reason))
	}
	e.Data = pay
	return e
}

// replayed answers a request that came before from the payment that it made; again
// says that it did.
func (p *Payments) replayed(old Payment, again bool, err error) (Payment, bool, error) {
	if err == nil && old.Refused {
		err = refused(old)
	}
	if err != nil {
		return Payment{}, again, err
	}
	return old, true, nil
}
