package frame

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/treasury"
)

// Checked is the outcome of all checks.
type Checked struct {
	Ledger   ledger.Report
	Payments book.Report
	Messages messaging.Report
	Batches  batch.Report
	Transit  ledger.Findings // our own money on its way
}

// Problems lists the faults of all checks.
func (c Checked) Problems() []string {
	return slices.Concat(c.Ledger.Problems, c.Payments.Problems, c.Messages.Problems, c.Batches.Problems, c.Transit.Problems)
}

// Check makes all checks.
func (o *Opened) Check(ctx context.Context, p *payments.Payments) (found Checked, err error) {
	if found.Ledger, err = o.Ledger.Check(ctx); err != nil {
		return found, err
	}
	if found.Payments, err = p.Check(ctx); err != nil {
		return found, err
	}
	m := o.Messaging()
	defer m.Close()
	if found.Messages, err = m.Check(ctx); err != nil {
		return found, err
	}
	if found.Batches, err = batch.Check(ctx, o.DB); err != nil {
		return found, err
	}
	found.Transit, err = treasury.Check(ctx, o.DB)
	return found, err
}
