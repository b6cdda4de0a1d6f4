package book

import (
	"maps"
	"slices"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// refundable refuses a refund under the locks of the collection and of its top-up.
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

// refundChanges are the changes of collections, apart by their direction and in the order of the key.
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

// refund adds an amount to what is refunded of a collection; below zero it is given back.
func (b *batch) refund(refund Payment, amount money.Pesewas) error {
	of := b.rows[refund.RefundOf]
	if of == nil {
		return errNoArrow(Payment{Kind: KindCollection, Status: "missing"}, "refunded")
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

// refundAccepted notes an accepted refund: it takes its amount out of the collection, which has an open refund now.
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

// refundFailed gives the amount of a refund back to its collection. The provider is asked about the collection again: a reversal that the
// refund explained is not explained any more.
func (b *batch) refundFailed(refund Payment, s *Settlement) error {
	if sums := b.refunds[refund.RefundOf]; sums != nil && refund.RefundWay == RefundByRail {
		sums.ByRail -= refund.Amount
	}
	b.rechecks = append(b.rechecks, Recheck{ID: refund.RefundOf, Due: s.At})
	return b.refund(refund, -refund.Amount)
}

// reversedRefunded judges a collection that its provider reports as reversed while refunds of it are open or done. Refunds of the whole by
// the rail itself are what the provider reports. Everything else posts nothing: money would leave twice. An operator decides.
func (b *batch) reversedRefunded(row *Payment, s *Settlement) (changed bool) {
	if sums := b.refunds[row.ID]; sums != nil && sums.ByRail == row.Gross() {
		return false
	}
	disputed := *s
	disputed.Event = EventDisputed
	row.ContradictedAt, row.LastWord = s.At, s.Outcome.State.String()
	b.lastWords = append(b.lastWords, lastWordChange{row: *row})
	b.contradicts(*row, &disputed)
	return true
}
