package book

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// A repeated request has the Idempotency-Key or the Reference of an earlier request. Both are stored on the row of
// the payment that the first request created. This file finds that payment and decides the answer to the repeated
// request.

// byIdempotency returns the payment of an earlier request with the same Idempotency-Key within the last day.
func (b *batch) byIdempotency(p Payment) *Payment {
	if p.IdempotencyKey == "" {
		return nil
	}
	k := idempotencyOf(p)
	old := b.byKey[k]
	if old == nil {
		return nil
	}
	if b.book.clock.Age(old.CreatedAt) >= idempotency.Window {
		b.released = append(b.released, old)
		delete(b.byKey, k)
		return nil
	}
	return old
}

// replay answers a request that repeats the Idempotency-Key of old.
func (bk *Book) replay(old, asked Payment) (Result, error) {
	if old.Kind != asked.Kind || old.IdempotencyHash != asked.IdempotencyHash {
		return Result{}, idempotency.Mismatch()
	}
	if bk.hooks.RequestOpen(old) {
		return Result{}, requestOpen(old, "idempotency_in_progress", "The first request with this Idempotency-Key is still being answered")
	}
	return Result{Payment: old, Replayed: true}, nil
}

// An OpenRequest is the cause of an InProgress refusal: the request that created Payment may still be running.
type OpenRequest struct{ Payment Payment }

// Error returns a text with the payment's id.
func (o *OpenRequest) Error() string {
	return "the first request of payment " + o.Payment.ID + " may still wait"
}

// requestOpen returns the refusal of a request that repeats one that may still be running. old is the payment of the
// first request.
func requestOpen(old Payment, code, message string) error {
	e := problem.Wrap(&OpenRequest{old}, problem.InProgress, code, message)
	e.RetryAfter = time.Second
	return e
}

// Earlier answers a request that repeats an Idempotency-Key or a Reference. It must run before other checks of the
// request, because an offer in the request may have expired since. Accept checks again in its transaction.
func (bk *Book) Earlier(ctx context.Context, a *Acceptance) (old Payment, replayed bool, err error) {
	if old, replayed, err = bk.earlier(ctx, a); problem.Is(err, problem.InProgress) {
		return bk.earlier(ctx, a)
	}
	return old, replayed, err
}

// earlier is one attempt of Earlier. It returns InProgress if the payment settled just after earlier read the row.
// The next attempt then reads the settled row.
func (bk *Book) earlier(ctx context.Context, a *Acceptance) (old Payment, replayed bool, err error) {
	var byKey, byReference, topUp *Payment
	pay, b := a.Payment, &batch{book: bk}
	err = bk.db.Read(ctx, func(tx *db.Tx) error {
		byKey, byReference, topUp = nil, nil, nil
		var queries []db.Query
		if pay.IdempotencyKey != "" {
			queries = append(queries, db.Query{SQL: paymentsByKey, Args: []any{db.RowsOf(idempotencyColumns, []idempotencyKey{idempotencyOf(pay)})},
				Each: b.scan(func(p *Payment) { byKey = p })})
		}
		if pay.Reference != "" {
			queries = append(queries, db.Query{SQL: paymentsByReference, Args: []any{db.RowsOf(referenceColumns, []referenceKey{referenceOf(pay)})},
				Each: b.scan(func(p *Payment) { byReference = p })})
		}
		if a.Child != nil && pay.Reference != "" {
			queries = append(queries, db.Query{SQL: paymentsByReference, Args: []any{db.RowsOf(referenceColumns, []referenceKey{referenceOf(*a.Child)})},
				Each: b.scan(func(p *Payment) { topUp = p })})
		}
		return tx.Gather(queries...)
	})
	switch {
	case err != nil:
		return Payment{}, false, err
	case byKey != nil && bk.clock.Age(byKey.CreatedAt) < idempotency.Window:
		r, err := bk.replay(*byKey, pay)
		return r.Payment, r.Replayed, err
	case byReference != nil:
		r, err := bk.again(a, *byReference, topUp)
		if r.Replayed {
			err = cmp.Or(bk.remember(ctx, r.Payment, pay), err)
		}
		return r.Payment, r.Replayed, err
	}
	return Payment{}, false, nil
}

// repeatTime is how long after acceptance a request with the same Reference is answered with the payment's state. It
// applies to tenants that repeat duplicates.
const repeatTime = 24 * time.Hour

// again answers a request with the Reference of old. topUp is the payment that was accepted together with old, or
// nil. A request that was refused is refused again. For a tenant that repeats duplicates, again returns the payment,
// and for a failed payment also the error Refused. Both results count as replayed. Every other request is a
// Duplicate, as is every request after a contradiction.
func (bk *Book) again(a *Acceptance, old Payment, topUp *Payment) (Result, error) {
	answerable := old.Refused || a.Repeats && bk.clock.Since(old.CreatedAt).Abs() < repeatTime
	contradicted := old.Status == StatusFailed && !old.ContradictedAt.IsZero()
	switch {
	case !answerable, contradicted, !a.like(old, topUp):
		return Result{}, duplicate(old)
	case bk.hooks.RequestOpen(old):
		return Result{}, requestOpen(old, "reference_in_progress", "The first request with this reference is still being answered")
	case !old.Status.Open() && old.Status != StatusSuccess:
		return Result{Payment: old, Replayed: true}, Refused(old)
	}
	return Result{Payment: old, Replayed: true}, nil
}

// remember stores the Idempotency-Key of a repeated request that was found by its Reference. The row of old then
// identifies this request by the key. A row with another key keeps its key.
func (bk *Book) remember(ctx context.Context, old, asked Payment) error {
	if asked.IdempotencyKey == "" || old.IdempotencyKey != "" {
		return nil
	}
	_, err := bk.db.Exec(ctx, keySet, old.ID, asked.IdempotencyKey, asked.IdempotencyHash)
	if errors.Is(err, db.ErrUnique) { // the row of a payment older than a day still has the key
		return nil
	}
	return err
}

// like reports whether the request equals the request that created old and topUp.
func (a *Acceptance) like(old Payment, topUp *Payment) bool {
	if a.Child == nil || topUp == nil {
		return a.Child == nil && old.Child == "" && a.Payment.like(old)
	}
	return a.Payment.like(old) && a.Child.like(*topUp)
}

// like reports whether two payments come from equal requests. It ignores texts for people. It also ignores the price
// of a bundle, which comes from the offer.
func (p Payment) like(old Payment) bool {
	return p.Kind == old.Kind && p.Channel == old.Channel && p.Account == old.Account && p.BankID == old.BankID && p.CallbackURL == old.CallbackURL && p.RefundOf == old.RefundOf &&
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

// Refused returns the error that answers a request whose payment failed.
func Refused(pay Payment) error {
	e := problem.New(problem.Refused, "payment_failed", "The payment failed. "+provider.Sentence(pay.Reason))
	if pay.Kind == KindPayout {
		e = problem.New(problem.Refused, "payout_failed_refunded", "The payout failed and was refunded. "+provider.Sentence(pay.Reason))
	}
	e.Data = pay
	return e
}
