package book

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/webhook"
)

// Settle takes a payment along an arrow: the guarded transition, its postings,
// the customer's event, the counters, and the end of the job where the payment
// is final, in one transaction with whatever else is waiting. Arrows that post
// to a wallet go through the wallet's lane, the others through the lanes by
// payment.
func (bk *Book) Settle(ctx context.Context, s Settlement) (Settled, error) {
	if s.At.IsZero() {
		s.At = bk.clock.Now()
	}
	if s.Event == EventFailed && s.Payment.Kind == KindTopUp && s.Payment.Parent != "" && s.Refund == nil {
		var err error
		if s.Refund, err = bk.hooks.Refund(ctx, s.Payment); err != nil {
			return Settled{}, err
		}
	}
	l := bk.lanes.payment(s.Payment.ID)
	if s.byWallet() {
		l = bk.lanes.wallet(s.Payment.Tenant)
	}
	r, err := l.Do(ctx, s.Payment.Tenant, rowsOf, &Op{Settle: &s})
	if err != nil {
		return Settled{}, err
	}
	if r.NoRefund != nil {
		bk.hooks.RefundRefused(r.Payment, r.NoRefund)
	}
	return Settled{Payment: r.Payment, Changed: r.Changed}, nil
}

// settleOne judges a settlement inside the transaction and adds what it writes.
func (b *batch) settleOne(s *Settlement) (Result, error) {
	row := b.rows[s.Payment.ID]
	if row == nil {
		return Result{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	if s.Judge != nil {
		if err := s.Judge(*row); err != nil {
			return Result{}, err
		}
	}
	way, ok := arrow(row.Kind, row.Status, s.Event)
	if b.touched[row.ID] { // one change of a row in a transaction
		return Result{Payment: *row}, nil
	}
	if !ok || row.Attempt != s.Payment.Attempt || s.Posts != 0 && (row.Posts != s.Posts || !row.SendingAt.Equal(s.Payment.SendingAt)) {
		return Result{Payment: *row}, nil
	}
	var err error
	switch {
	case s.Mark != nil:
		if !s.Mark.starts(*row) {
			return Result{Payment: *row}, nil
		}
		b.markOne(row, s)
	case s.Event == EventReversed || s.Event == EventFoundPaid:
		if !row.ContradictedAt.IsZero() {
			return Result{Payment: *row}, nil
		}
		if row.Refunded > 0 {
			if !b.reversedRefunded(row, s) {
				return Result{Payment: *row}, nil
			}
			break
		}
		err = b.contradictOne(row, way, s)
	case s.Event == EventOpposite:
		if row.ContradictedAt.IsZero() || row.ProviderState() == s.Outcome.State {
			return Result{Payment: *row}, nil
		}
		b.opposeOne(row, s)
	default:
		err = b.moveOne(row, way, s)
	}
	if err != nil {
		return Result{}, err
	}
	b.touched[row.ID] = true
	if s.Also != nil {
		b.also = append(b.also, s.Also)
	}
	r := Result{Payment: *row, Changed: true}
	if s.Refund != nil {
		_, r.NoRefund = b.acceptOne(s.Refund)
		var refusal *problem.Error
		if r.NoRefund != nil && !errors.As(r.NoRefund, &refusal) {
			return Result{}, r.NoRefund
		}
	}
	return r, nil
}

// moveOne ends a payment, or revives one that had ended.
func (b *batch) moveOne(row *Payment, way Arrow, s *Settlement) error {
	was := row.Status
	to := way.To[0]
	if s.Event == EventFailed {
		to = failure(row.Kind, s.Reason)
	}
	if !slices.Contains(way.To, to) {
		return errNoArrow(*row, s.Event)
	}
	if err := b.postings(way, *row, s.At); err != nil {
		return err
	}
	if to == StatusSuccess {
		if err := b.providerCosts(*row, s); err != nil {
			return err
		}
	}
	row.Status, row.SettledAt, row.Reason = to, s.At, s.Reason
	row.Refused, row.Note, row.EscalatedAt = s.Refused, s.Note, time.Time{}
	row.Class, row.Classed = s.Outcome.Class, true
	row.Refusal, row.RefusalReason, row.RefusedAt = RefusalNone, "", time.Time{}
	held := row.HeldUntil
	row.HeldUntil = time.Time{}
	if s.Outcome.UpstreamID != "" {
		row.UpstreamID = s.Outcome.UpstreamID
	}
	if row.AccountName == "" {
		row.AccountName = s.Outcome.Name
	}
	b.moves = append(b.moves, move{row: *row, was: was, wasHeld: held, posts: s.Posts})
	b.tally.Changes(listOf(*row), row.Seq, was.counted(), to.counted())
	b.recheckLater(*row, s.At)
	if was == StatusPending {
		b.finished = append(b.finished, row.ID)
		b.closed = append(b.closed, row.ID)
	}
	if s.Event == EventPaidLate {
		b.contradicts(*row, s)
	}
	if row.RefundOf != "" && s.Event == EventFailed {
		if err := b.refundFailed(*row, s); err != nil {
			return err
		}
	}
	b.event(*row, way, was.Open())
	if row.Child != "" && was == StatusPending {
		return b.childOne(*row, s)
	}
	return nil
}

// childOne opens the top-up that a collection paid for, or ends it with the
// collection.
func (b *batch) childOne(parent Payment, s *Settlement) error {
	child := b.rows[parent.Child]
	e := childEvent(parent.Status)
	if child == nil {
		return errNoArrow(Payment{Kind: KindTopUp, Status: "missing"}, e)
	}
	way, ok := arrow(child.Kind, child.Status, e)
	if !ok {
		return errNoArrow(*child, e)
	}
	if err := b.postings(way, *child, s.At); err != nil {
		return err
	}
	was := child.Status
	child.Status = way.To[0]
	if child.Status.Open() {
		b.job(*child)
	} else {
		child.SettledAt, child.Reason = s.At, s.Reason
	}
	b.moves = append(b.moves, move{row: *child, was: was})
	b.tally.Changes(listOf(*child), child.Seq, was.counted(), child.Status.counted())
	b.event(*child, way, true)
	return nil
}

// contradictOne notes a contradiction. A debt of the tenant that a reversed collection leaves stops
// the tenant's payouts.
func (b *batch) contradictOne(row *Payment, way Arrow, s *Settlement) error {
	if err := b.postings(way, *row, s.At); err != nil {
		return err
	}
	if err := b.contradictedCosts(*row, s); err != nil {
		return err
	}
	row.ContradictedAt = s.At
	if s.Event == EventReversed {
		row.Reason = cmp.Or(s.Reason, provider.ReasonReversed)
		if row.Kind == KindCollection {
			b.stopped = append(b.stopped, row.Tenant)
		}
	}
	if s.Note != "" {
		row.Note = s.Note
	}
	b.lastWords = append(b.lastWords, lastWordChange{row: *row})
	b.contradicts(*row, s)
	return nil
}

// opposeOne keeps a word that contradicts an earlier contradiction. Money in suspense stays there.
func (b *batch) opposeOne(row *Payment, s *Settlement) {
	was := row.LastWord
	row.LastWord = s.Outcome.State.String()
	b.lastWords = append(b.lastWords, lastWordChange{row: *row, again: true, was: was})
	b.contradicts(*row, s)
}

func (b *batch) markOne(row *Payment, s *Settlement) {
	if s.Event == EventRerouted {
		b.abandoned = append(b.abandoned, abandonedAttempt{row: *row, reason: s.Reason, at: s.At})
	}
	opens := row.Waits() && !s.Mark.Row.Waits()
	*row = s.Mark.Row
	b.marks = append(b.marks, *s.Mark)
	if opens {
		b.job(*row)
	}
}

// recheckLater plans the recheck of a payment that the sweep will have passed.
func (b *batch) recheckLater(p Payment, at time.Time) {
	if p.Rail != "" && p.SettledLate() {
		b.rechecks = append(b.rechecks, Recheck{ID: p.ID, Due: at.Add(RecheckAfter)})
	}
}

// event tells the customer, where the arrow says so and the customer asked. A
// payout that was refused in its own answer is no payout to its customer: a
// webhook besides the answer would have it refunded twice in their books.
func (b *batch) event(p Payment, way Arrow, first bool) {
	url := p.CallbackURL
	if child := b.rows[p.Child]; url == "" && p.Child != "" && way.Event == EventPaidLate && child != nil {
		url = child.CallbackURL // the receiver that was told of the failed airtime hears of the money
	}
	if !way.Callback || url == "" || p.Refused {
		return
	}
	kind := webhook.Payout
	switch p.Kind {
	case KindCollection:
		kind = webhook.Collection
	case KindTopUp, KindBundle:
		kind = webhook.Airtime
	}
	status := StatusFailed
	if p.Status == StatusSuccess {
		status = StatusSuccess
	}
	b.events = append(b.events, webhook.Event{
		ID: eventID(p, status), Tenant: p.Tenant, Mode: p.Mode, Subject: p.ID, Kind: kind, URL: url,
		Amount: p.Amount, Charges: p.Charges, Status: string(status), Reference: p.Reference,
		ProviderReference: p.ProviderReference, RefundOf: p.Details.Collection, Phone: p.MSISDN().Local(), First: first,
	})
}

// eventID is the webhook-id of a payment's final word. It is made from what both
// lives of a database that went back in time know, so that a customer who was told
// in the first one recognises the second telling: one life may have heard "failed"
// before "success", the other one "success" alone. A payment has each word at most
// once, and only a success follows another word, so its first bytes sort behind.
func eventID(p Payment, status Status) string {
	number := byte(1)
	if status == StatusSuccess {
		number = 2
	}
	sum := sha256.Sum256([]byte(p.ProviderReference + "/" + string(p.Kind) + "/" + string(status)))
	id := uuid.UUID(sum[:16])
	id[0], id[1], id[2], id[3] = 0, 0, 0, number
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
