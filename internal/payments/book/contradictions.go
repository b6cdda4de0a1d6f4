package book

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// A Contradiction is one word of a provider against the last one about a final
// payment: a success taken back, a failure found paid, or the opposite of an
// earlier contradiction.
type Contradiction struct {
	Payment Payment // as it is now
	Event   Event   // reversed, paid_late, found_paid or opposite
	Said    provider.State
	Code    string // the provider's own words
	Message string
	At      time.Time
}

// contradicts keeps a word against the last one.
func (b *batch) contradicts(row Payment, s *Settlement) {
	b.contradictions = append(b.contradictions, contradicted{NewID(s.At), Contradiction{
		Payment: row, Event: s.Event, Said: s.Outcome.State, Code: s.Outcome.Code, Message: s.Outcome.Message, At: s.At}})
}

var contradictionColumns = []db.Column[contradicted]{
	{Name: "id", Text: func(c contradicted) string { return c.id }},
	{Name: "payment", Text: func(c contradicted) string { return c.Payment.ID }},
	{Name: "tenant", Text: func(c contradicted) string { return c.Payment.Tenant }},
	{Name: "kind", Text: func(c contradicted) string { return string(c.Payment.Kind) }},
	{Name: "event", Text: func(c contradicted) string { return string(c.Event) }},
	{Name: "said", Text: func(c contradicted) string { return c.Said.String() }},
	{Name: "code", Text: func(c contradicted) string { return c.Code }},
	{Name: "message", Text: func(c contradicted) string { return c.Message }},
	{Name: "at", Time: func(c contradicted) time.Time { return c.At }},
}

const contradictedPayments = `SELECT c.event, c.said, c.code, c.message, c.at, ` + paymentColumns + `
FROM (SELECT * FROM payment_contradictions ORDER BY at DESC, id DESC LIMIT $1) AS c
JOIN payments ON payments.id = c.payment ORDER BY c.at DESC, c.id DESC`

// Contradictions lists what providers said against their own final words, newest
// first: payments reversed or found paid, which hang in suspense until an
// operator decides (Decide), collections that were paid late, and every further
// word about them.
func (rd *Reader) Contradictions(ctx context.Context) (list []Contradiction, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(contradictedPayments, []any{MaxStuck}, func(r *db.Row) error {
			var c Contradiction
			var said string
			pay, err := scanPayment(r, &c.Event, &said, &c.Code, &c.Message, &c.At)
			c.Payment, c.Said = pay, provider.Failed
			if said == provider.Success.String() {
				c.Said = provider.Success
			}
			list = append(list, c)
			return err
		})
	})
	return list, err
}

// The legs by which a reversal takes back what the provider took or gave.
const (
	LegTurnedProviderFee = "turned_provider_fee"
	LegTurnedCommission  = "turned_commission"
)

// contradictedCosts posts the provider's own part of a contradiction, so that the
// float agrees with the provider's book: taken back with a reversal, booked with
// what is found paid.
func (b *batch) contradictedCosts(p Payment, s *Settlement) error {
	if s.Event != EventReversed {
		return b.providerCosts(p, s)
	}
	var transfers []ledger.Transfer
	add := func(leg string, from, to ledger.AccountID, amount money.Pesewas) {
		if amount > 0 {
			transfers = append(transfers, transfer(p, s.Event, leg, from, to, int64(amount), s.At))
		}
	}
	add(LegTurnedProviderFee, ledger.Float(p.Rail), ledger.ProviderFees(p.Rail), s.Outcome.Fee)
	add(LegTurnedCommission, ledger.Commission(p.Rail), ledger.Float(p.Rail), s.Outcome.Commission)
	return b.add(p, transfers...)
}

// costs reads what a provider took and gave for a payment, as it is booked.
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

const paymentLocked = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $1 FOR UPDATE`

// bookCosts books a provider's fee and commission of a success where that is
// not done yet: an operator who resolves a payment may not know them.
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
		s := Settlement{Event: EventSucceeded, At: at, Outcome: provider.Outcome{Fee: fee, Commission: commission, FeeKnown: true}}
		if err := b.providerCosts(rows[0], &s); err != nil {
			return err
		}
		page.Post()
		return nil
	})
	if errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrAmbiguous) {
		return nil // booked before, or the next look books it
	}
	return err
}

type contradicted struct {
	id string
	Contradiction
}
