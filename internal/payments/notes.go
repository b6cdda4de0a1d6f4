package payments

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
)

// AddNote stores an operator's note about a payment.
func (p *Payments) AddNote(ctx context.Context, n book.Note, also func(*db.Tx) error) error {
	return p.book.AddNote(ctx, n, also)
}

// Take makes a person the owner of a payment that needs attention.
func (p *Payments) Take(ctx context.Context, id string, o book.Owner, also func(*db.Tx) error) error {
	return p.book.Take(ctx, id, o, also)
}

// Release takes a payment from the person who owns it.
func (p *Payments) Release(ctx context.Context, id, person string, also func(*db.Tx) error) error {
	return p.book.Release(ctx, id, person, also)
}
