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

// Settle applies one transition in a group commit. It changes the row under guards, posts, queues the customer's
// webhook, and updates counters. It ends the job of a payment that becomes final. Transitions that post to a wallet
// use the wallet's group commit; others are spread by payment.
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
	l := bk.committers.payment(s.Payment.ID)
	if s.locksWallet() {
		l = bk.committers.wallet(s.Payment.Tenant)
	}
	do := l.Do
	if s.Known && s.Payment.Batch != "" { // the job of a payout without a waiting client
		do = l.DoBulk
	}
	r, err := do(ctx, s.Payment.Tenant, rowsOf, &Op{Settle: &s})
	if err != nil {
		return Settled{}, err
	}
	if r.NoRefund != nil {
		bk.hooks.RefundRefused(r.Payment, r.NoRefund)
	}
	return Settled{Payment: r.Payment, Changed: r.Changed}, nil
}

// settleOne decides one settlement and adds its writes. The transaction has taken all locks.
func (b *batch) settleOne(s *Settlement) (Result, error) {
	row := b.rows[s.Payment.ID]
	if row == nil {
		return Result{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	if s.Guard != nil {
		if err := s.Guard(*row); err != nil {
			return Result{}, err
		}
	}
	transition, ok := transitionFor(row.Kind, row.Status, s.Event)
	if b.touched[row.ID] { // a transaction changes each row at most once
		return Result{Payment: *row}, nil
	}
	if !ok || row.Attempt != s.Payment.Attempt || s.Submissions != 0 && (row.Submissions != s.Submissions || !row.SendingAt.Equal(s.Payment.SendingAt)) {
		return Result{Payment: *row}, nil
	}
	var err error
	switch {
	case s.Change != nil:
		if !s.Change.starts(*row) {
			return Result{Payment: *row}, nil
		}
		b.changeAttempt(row, s)
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
		err = b.contradictOne(row, transition, s)
	case s.Event == EventOpposite:
		if row.ContradictedAt.IsZero() || row.ProviderState() == s.Outcome.State {
			return Result{Payment: *row}, nil
		}
		b.opposeOne(row, s)
	default:
		err = b.moveOne(row, transition, s)
	}
	if err != nil {
		return Result{}, err
	}
	b.touched[row.ID] = true
	if s.InTx != nil {
		b.inTx = append(b.inTx, s.InTx)
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

// moveOne makes a payment final, or changes a failed collection to a success.
func (b *batch) moveOne(row *Payment, transition Transition, s *Settlement) error {
	was := row.Status
	to := transition.To[0]
	if s.Event == EventFailed {
		to = failure(row.Kind, s.Reason)
	}
	if !slices.Contains(transition.To, to) {
		return errNoTransition(*row, s.Event)
	}
	if err := b.postings(transition, *row, s.At); err != nil {
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
	held := row.ApprovalDeadline
	row.ApprovalDeadline = time.Time{}
	if s.Outcome.UpstreamID != "" {
		row.UpstreamID = s.Outcome.UpstreamID
	}
	if row.AccountName == "" {
		row.AccountName = s.Outcome.Name
	}
	b.moves = append(b.moves, move{row: *row, was: was, wasDeadline: held, submissions: s.Submissions})
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
	b.event(*row, transition, was.Open())
	if row.Child != "" && was == StatusPending {
		return b.childOne(*row, s)
	}
	return nil
}

// childOne opens or fails the top-up of a collection that became final.
func (b *batch) childOne(parent Payment, s *Settlement) error {
	child := b.rows[parent.Child]
	e := childEvent(parent.Status)
	if child == nil {
		return errNoTransition(Payment{Kind: KindTopUp, Status: "missing"}, e)
	}
	transition, ok := transitionFor(child.Kind, child.Status, e)
	if !ok {
		return errNoTransition(*child, e)
	}
	if err := b.postings(transition, *child, s.At); err != nil {
		return err
	}
	was := child.Status
	child.Status = transition.To[0]
	if child.Status.Open() {
		b.job(*child)
	} else {
		child.SettledAt, child.Reason = s.At, s.Reason
	}
	b.moves = append(b.moves, move{row: *child, was: was})
	b.tally.Changes(listOf(*child), child.Seq, was.counted(), child.Status.counted())
	b.event(*child, transition, true)
	return nil
}

// contradictOne posts and stores a contradiction. It stops the tenant's payouts if a reversed collection leaves a
// debt.
func (b *batch) contradictOne(row *Payment, transition Transition, s *Settlement) error {
	if err := b.postings(transition, *row, s.At); err != nil {
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
	b.reported = append(b.reported, reportedChange{row: *row})
	b.contradicts(*row, s)
	return nil
}

// opposeOne stores that the provider contradicted its earlier contradiction. Money in suspense stays there.
func (b *batch) opposeOne(row *Payment, s *Settlement) {
	was := row.LastReported
	row.LastReported = s.Outcome.State.String()
	b.reported = append(b.reported, reportedChange{row: *row, again: true, was: was})
	b.contradicts(*row, s)
}

func (b *batch) changeAttempt(row *Payment, s *Settlement) {
	if s.Event == EventRerouted {
		b.abandoned = append(b.abandoned, abandonedAttempt{row: *row, reason: s.Reason, at: s.At})
	}
	opens := row.AwaitsApproval() && !s.Change.Row.AwaitsApproval()
	*row = s.Change.Row
	b.changes = append(b.changes, *s.Change)
	if opens {
		b.job(*row)
	}
}

// recheckLater adds a recheck for a payment that settled after its regular recheck.
func (b *batch) recheckLater(p Payment, at time.Time) {
	if p.Rail != "" && p.SettledLate() {
		b.rechecks = append(b.rechecks, Recheck{ID: p.ID, Due: at.Add(RecheckAfter)})
	}
}

// event queues the customer's webhook if the transition has one and the payment has a callback URL. A payout that was
// refused in the response to its request gets no webhook, because customers would refund it twice.
func (b *batch) event(p Payment, transition Transition, first bool) {
	url := p.CallbackURL
	if child := b.rows[p.Child]; url == "" && p.Child != "" && transition.Event == EventPaidLate && child != nil {
		url = child.CallbackURL // the webhook goes to the same URL as the webhook of the failed airtime
	}
	if !transition.Callback || url == "" || p.Refused {
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
		ProviderReference: p.ProviderReference, RefundOf: p.Details.Collection, Phone: p.MSISDN().Local(), First: first, Trace: p.Details.Trace,
	})
}

// eventID returns the webhook-id of a final status. It depends only on facts that survive a restore, so customers
// recognize a status that they received before the restore. Only the status distinguishes the ids of one payment. A
// customer may have received failed and then success before a restore, and only success after it. Each status
// occurs at most once. The id of success sorts after the id of failed by its first bytes.
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
