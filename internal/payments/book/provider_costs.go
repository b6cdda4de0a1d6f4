package book

import (
	"context"
	"errors"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// Legs of a reversal that undo the provider's fee and commission.
const (
	LegContradictedProviderFee = "turned_provider_fee"
	LegContradictedCommission  = "turned_commission"
)

// providerCosts posts the provider's fee and our commission if the provider reported them.
func (b *batch) providerCosts(p Payment, s *Settlement) error {
	if !s.Outcome.FeeKnown {
		return nil
	}
	return b.addCosts(p, s,
		cost{LegProviderFee, ledger.ProviderFees(p.Rail), b.float(p), s.Outcome.Fee},
		cost{LegCommission, b.float(p), ledger.Commission(p.Rail), s.Outcome.Commission})
}

// A cost is one posting of a provider's fee or commission.
type cost struct {
	leg      string
	from, to ledger.AccountID
	amount   money.Pesewas
}

// addCosts posts the costs above zero.
func (b *batch) addCosts(p Payment, s *Settlement, costs ...cost) error {
	var transfers []ledger.Transfer
	for _, c := range costs {
		if c.amount > 0 {
			transfers = append(transfers, transfer(p, s.Event, c.leg, c.from, c.to, int64(c.amount), s.At))
		}
	}
	return b.add(p, transfers...)
}

// contradictedCosts posts the provider's costs of a contradiction, so that the float agrees with the provider's
// balance. A reversal undoes the costs, and a failure that is found paid posts them.
func (b *batch) contradictedCosts(p Payment, s *Settlement) error {
	if s.Event != EventReversed {
		return b.providerCosts(p, s)
	}
	return b.addCosts(p, s,
		cost{LegContradictedProviderFee, b.float(p), ledger.ProviderFees(p.Rail), s.Outcome.Fee},
		cost{LegContradictedCommission, ledger.Commission(p.Rail), b.float(p), s.Outcome.Commission})
}

// Costs returns the provider's fee and commission that were posted for a payment.
func (bk *Book) Costs(ctx context.Context, pay Payment) (fee, commission money.Pesewas, err error) {
	transfers, err := bk.ledger.OfSubject(ctx, pay.ID)
	for _, t := range transfers {
		switch t.Leg {
		case LegProviderFee:
			fee = money.Pesewas(t.Amount)
		case LegCommission:
			commission = money.Pesewas(t.Amount)
		}
	}
	return fee, commission, err
}

// ContradictionPosted reports whether the first contradiction of a payment moved money.
func (bk *Book) ContradictionPosted(ctx context.Context, pay Payment) (bool, error) {
	transfers, err := bk.ledger.OfSubject(ctx, pay.ID)
	return slices.ContainsFunc(transfers, func(t ledger.Transfer) bool {
		return t.Leg == LegContradicted || t.Leg == LegContradictedRest || t.Leg == LegContradictedFee
	}), err
}

// FloatOf returns the float account that the payment's next posting uses.
func (bk *Book) FloatOf(ctx context.Context, p Payment) (id ledger.AccountID, err error) {
	err = bk.db.Read(ctx, func(tx *db.Tx) error {
		split, err := bk.floats.read(tx, bk.clock.Now())
		id = bk.floatOf(p, split)
		return err
	})
	return id, err
}

const paymentLocked = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $1 FOR UPDATE`

// BookCosts posts the provider's fee and commission of a successful payment, unless they are posted already. They may
// be missing because an operator who resolved the payment did not know them.
func (bk *Book) BookCosts(ctx context.Context, pay Payment, fee, commission money.Pesewas) error {
	if fee <= 0 && commission <= 0 {
		return nil
	}
	there, gave, err := bk.Costs(ctx, pay)
	if err != nil || there > 0 || gave > 0 {
		return err
	}
	at := bk.clock.Now()
	err = bk.db.Write(ctx, func(tx *db.Tx) error {
		var rows []Payment
		if err := tx.Query(paymentLocked, []any{pay.ID}, appendPayment(&rows)); err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].Status != StatusSuccess || !rows[0].ContradictedAt.IsZero() {
			return nil
		}
		page, err := bk.ledger.Open(tx)
		if err != nil {
			return err
		}
		b := &batch{book: bk, page: page}
		if b.split, err = bk.floats.read(tx, at); err != nil {
			return err
		}
		s := Settlement{Event: EventSucceeded, At: at, Outcome: provider.Outcome{Fee: fee, Commission: commission, FeeKnown: true}}
		if err := b.providerCosts(rows[0], &s); err != nil {
			return err
		}
		page.Post()
		return nil
	})
	if errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrAmbiguous) {
		return nil // posted already, or the next recheck will post it
	}
	return err
}
