package book

import (
	"maps"
	"slices"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// refundable returns the reason why a refund must be refused. The transaction has locked the collection and its
// top-up.
func (b *batch) refundable(refund Payment) error {
	of := b.rows[refund.RefundOf]
	if of == nil || of.Tenant != refund.Tenant || of.Mode != refund.Mode {
		return problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	var sums RefundSums
	if s := b.refunds[of.ID]; s != nil {
		sums = *s
	}
	return Refundable(*of, b.rows[of.Child], sums, refund.Amount)
}

// refundChanges returns the changes that lower and the changes that raise a refunded amount, each sorted by id.
func (b *batch) refundChanges() (lowered, raised []refundChange) {
	for _, id := range slices.Sorted(maps.Keys(b.refunded)) {
		switch c := *b.refunded[id]; {
		case c.now < c.was:
			lowered = append(lowered, c)
		case c.now > c.was:
			raised = append(raised, c)
		}
	}
	return lowered, raised
}

// refund adds an amount to the refunded amount of a collection. A negative amount lowers it.
func (b *batch) refund(refund Payment, amount money.Pesewas) error {
	of := b.rows[refund.RefundOf]
	if of == nil {
		return errNoTransition(Payment{Kind: KindCollection, Status: "missing"}, "refunded")
	}
	c := b.refunded[of.ID]
	if c == nil {
		c = &refundChange{id: of.ID, was: of.Refunded}
		b.refunded[of.ID] = c
	}
	of.Refunded += amount
	c.now = of.Refunded
	return nil
}

// refundAccepted adds an accepted refund to the refunded amount of its collection. The collection then has an open
// refund.
func (b *batch) refundAccepted(refund Payment) error {
	if b.refunds[refund.RefundOf] == nil {
		b.refunds[refund.RefundOf] = &RefundSums{}
	}
	s := b.refunds[refund.RefundOf]
	s.Open = true
	if refund.RefundWay == RefundByRail {
		s.ByRail += refund.Amount
	}
	return b.refund(refund, refund.Amount)
}

// refundFailed subtracts a failed refund from the refunded amount of its collection. It schedules a status query of
// the collection, because the refund no longer explains a reversal by the provider.
func (b *batch) refundFailed(refund Payment, s *Settlement) error {
	if sums := b.refunds[refund.RefundOf]; sums != nil && refund.RefundWay == RefundByRail {
		sums.ByRail -= refund.Amount
	}
	b.rechecks = append(b.rechecks, Recheck{ID: refund.RefundOf, Due: s.At})
	return b.refund(refund, -refund.Amount)
}

// reversedRefunded handles a collection that its provider reports as reversed while it has open or successful
// refunds. If the rail refunded the whole amount, the refunds explain the report, and the function does
// nothing. Otherwise it stores the contradiction for an operator. It posts nothing, because the refunds have
// debited the wallet already.
func (b *batch) reversedRefunded(row *Payment, s *Settlement) (changed bool) {
	if sums := b.refunds[row.ID]; sums != nil && sums.ByRail == row.Gross() {
		return false
	}
	disputed := *s
	disputed.Event = EventDisputed
	row.ContradictedAt, row.LastReported = s.At, s.Outcome.State.String()
	b.reported = append(b.reported, reportedChange{row: *row})
	b.contradicts(*row, &disputed)
	return true
}
