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

// A request may have come before: with the same Idempotency-Key, or with the same Reference. Both are kept on the row
// of the payment that the first one made. This file finds that payment and says what the later request is answered.

// byIdempotency finds the payment that an earlier request with the same
// Idempotency-Key made within the last day.
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

// replay answers a request whose Idempotency-Key made old.
func (bk *Book) replay(old, asked Payment) (Result, error) {
	if old.Kind != asked.Kind || old.IdempotencyHash != asked.IdempotencyHash {
		return Result{}, idempotency.Mismatch()
	}
	if bk.hooks.Answering(old) {
		e := problem.New(problem.InProgress, "idempotency_in_progress", "The first request with this Idempotency-Key is still being answered")
		e.RetryAfter = time.Second
		return Result{}, e
	}
	return Result{Payment: old, Replayed: true}, nil
}

// Earlier answers a request that came before, by its Idempotency-Key or its Reference. It comes before the other checks
// of the request, because what the request names may be gone since (a package expires). accept looks again, under the
// lock.
func (bk *Book) Earlier(ctx context.Context, a *Acceptance) (old Payment, replayed bool, err error) {
	if old, replayed, err = bk.earlier(ctx, a); problem.Is(err, problem.InProgress) {
		return bk.earlier(ctx, a)
	}
	return old, replayed, err
}

// earlier looks once. InProgress may be of a row that was read before it settled, of a payment that its node has forgotten since: the
// next reading finds it settled.
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

// repeatTime is how long a repeated Reference is answered with the payment's state, for a tenant whose duplicates
// repeat.
const repeatTime = 24 * time.Hour

// again judges a request whose Reference old has; topUp is the payment that was accepted together with old, nil where
// there is none. A request that was refused outright is refused again, and the request of a tenant whose duplicates
// repeat is answered with the state of the payment, a failure as Refused; both are replayed. Every other request is
// Duplicate, as is one whose provider has contradicted itself.
func (bk *Book) again(a *Acceptance, old Payment, topUp *Payment) (Result, error) {
	told := old.Refused || a.Repeats && bk.clock.Since(old.CreatedAt).Abs() < repeatTime
	contradicted := old.Status == StatusFailed && !old.ContradictedAt.IsZero()
	switch {
	case !told, contradicted, !a.like(old, topUp):
		return Result{}, duplicate(old)
	case bk.hooks.Answering(old):
		e := problem.New(problem.InProgress, "reference_in_progress", "The first request with this reference is still being answered")
		e.RetryAfter = time.Second
		return Result{}, e
	case !old.Status.Open() && old.Status != StatusSuccess:
		return Result{Payment: old, Replayed: true}, Refused(old)
	}
	return Result{Payment: old, Replayed: true}, nil
}

// remember has old keep the Idempotency-Key of a request that was answered by its Reference, so that the key takes no other
// request. A row has one key: one that has another keeps it.
func (bk *Book) remember(ctx context.Context, old, asked Payment) error {
	if asked.IdempotencyKey == "" || old.IdempotencyKey != "" {
		return nil
	}
	err := bk.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(keyKeep, old.ID, asked.IdempotencyKey, asked.IdempotencyHash)
		return err
	})
	if errors.Is(err, db.ErrUnique) { // a payment of more than a day ago has it yet
		return nil
	}
	return err
}

// like says whether the request is the one that made old.
func (a *Acceptance) like(old Payment, topUp *Payment) bool {
	if a.Child == nil || topUp == nil {
		return a.Child == nil && old.Child == "" && a.Payment.like(old)
	}
	return a.Payment.like(old) && a.Child.like(*topUp)
}

// like says whether two payments were asked for by the same request; texts for people may differ. The price of a
// package comes from its offer, so it is not compared.
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

// Refused is the answer of a payment that failed.
func Refused(pay Payment) error {
	e := problem.New(problem.Refused, "payment_failed", "The payment failed. "+provider.Sentence(pay.Reason))
	if pay.Kind == KindPayout {
		e = problem.New(problem.Refused, "payout_failed_refunded", "The payout failed and was refunded. "+provider.Sentence(pay.Reason))
	}
	e.Data = pay
	return e
}
