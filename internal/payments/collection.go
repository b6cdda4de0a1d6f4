package payments

import (
	"context"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Collect is a request for money from a payer's mobile money wallet.
type Collect struct {
	Amount      money.Pesewas
	MSISDN      msisdn.MSISDN
	Network     msisdn.Network
	Reference   string // the client's
	Label       string // shown to the payer; shortened if too long
	CallbackURL string // empty: none
}

// The limits of a collection.
const (
	MinCollection = 10 * money.Cedi / 100
	MaxCollection = 15_000 * money.Cedi
)

// Collect accepts a collection and returns; the provider prompts the payer afterwards. replayed reports that an
// earlier request created it, with the same Idempotency-Key. For tenants that repeat duplicates, it may also have the
// same Reference.
func (p *Payments) Collect(ctx context.Context, c idempotency.Caller, r Collect) (pay book.Payment, replayed bool, err error) {
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, false, err
	}
	if err := mayCollect(t); err != nil {
		return book.Payment{}, false, err
	}
	var bad problem.Fields
	if r.Amount < MinCollection || r.Amount > MaxCollection {
		bad.Add("amount", "must be between "+MinCollection.String()+" and "+MaxCollection.String())
	}
	checkParty(&bad, "phone_number", r.MSISDN, "network", r.Network)
	checkReference(&bad, "transaction_id", r.Reference)
	p.checkCallback(&bad, r.CallbackURL)
	if err := bad.Err(); err != nil {
		return book.Payment{}, false, err
	}
	charges, plan, err := p.tenants.Fee(ctx, t.ID, tenant.Collection, string(r.Network), r.Amount, p.clock.Now())
	if err != nil {
		return book.Payment{}, false, err
	}
	pay = newPayment(c, t, book.KindCollection)
	pay.Channel, pay.Reference, pay.Account = string(r.Network), r.Reference, string(r.MSISDN)
	pay.Amount, pay.Charges, pay.Plan = r.Amount, charges, plan
	pay.Label, pay.CallbackURL = cut(r.Label, labelLength), r.CallbackURL
	done, err := p.accept(ctx, &request{Acceptance: book.Acceptance{Payment: pay, Repeats: t.Duplicates == tenant.RepeatDuplicates}, field: "network"})
	return done.Payment, done.Replayed, err
}
