package payments

import (
	"context"

	"github.com/makola/makola/internal/provider"
)

// post sends a payment to its rail for the first time or again.
func (p *Payments) post(ctx context.Context, rail provider.Rail, pay Payment) provider.Outcome {
	panic("payments: post is not written yet")
}

// ask asks the payment's rail what became of it. An answer that speaks of
// another payment comes back as Unknown with ReasonMismatch.
func (p *Payments) ask(ctx context.Context, rail provider.Rail, pay Payment) provider.Outcome {
	panic("payments: ask is not written yet")
}

// requery asks for an open payment on behalf of somebody who waits (checkstatus),
// at most once in two seconds for one payment, and settles what is final. It
// answers the row as it is afterwards.
func (p *Payments) requery(ctx context.Context, pay Payment) (Payment, error) {
	panic("payments: requery is not written yet")
}
