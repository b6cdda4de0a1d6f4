package payments

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

func errWaits() error {
	return problem.New(problem.Invalid, "payment_waits", "The payout waits for the approval of the account's own people: nothing was sent")
}

// CodeNotWaiting is the code of the refusal of an approval, or of a rejection, of a payout that does not wait for one.
const CodeNotWaiting = "payment_not_waiting"

// waiting refuses a payout that does not wait for an approval. It is asked under the row's lock.
func waiting(row book.Payment) error {
	if !row.Waits() {
		return problem.New(problem.Invalid, CodeNotWaiting, "The payout does not wait for an approval: it is "+row.Word())
	}
	return nil
}

// Approve lets a payout go that waits for the approval of its account's own people: its job begins. also runs in the
// transaction, with the row as it was under its lock. It is refused with Forbidden while the account is blocked or its payouts are stopped.
func (p *Payments) Approve(ctx context.Context, id string, also func(*db.Tx, book.Payment) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	row, locked := pay, book.Payment{}
	row.HeldUntil = time.Time{}
	judge := func(row book.Payment) error { locked = row; return waiting(row) }
	done, err := p.book.Settle(ctx, book.Settlement{Payment: pay, Event: book.EventApproved, Mark: pay.MarkTo(row), Judge: judge, Also: func(tx *db.Tx) error {
		t, err := p.tenants.Locked(tx, pay.Tenant)
		switch {
		case err != nil:
			return err
		case t.Blocked:
			return problem.New(problem.Forbidden, "account_blocked", "The account is blocked")
		case t.PayoutsStopped:
			return tenant.NoPayouts()
		}
		return also(tx, locked)
	}})
	return changed(done, err)
}

// changed refuses a settlement that found the payment otherwise than it was read.
func changed(done book.Settled, err error) error {
	if err == nil && !done.Changed {
		err = problem.New(problem.InProgress, "payment_changed", "The payment changed meanwhile, it is "+done.Payment.Word()+": look again")
	}
	return err
}

// Disapprove ends a payout that waits, because it was rejected, was withdrawn or has waited for too long: nothing was sent, and
// what was held goes back. also runs in the transaction. In a recovery the rails are asked first, as the payout may have been
// approved in the time that was lost: one that a rail has goes on there, and one that cannot be asked about is refused
// with Unavailable.
func (p *Payments) Disapprove(ctx context.Context, id string, also func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	s := book.Settlement{Payment: pay, Event: book.EventFailed, Reason: provider.ReasonNotApproved, Outcome: provider.Outcome{Class: provider.NotSent},
		Judge: waiting, Also: also}
	found, err := p.sentBefore(ctx, pay)
	if err != nil {
		return err
	}
	if found.known {
		row := pay
		row.HeldUntil, row.Rail, row.SendingAt, row.UpstreamID = time.Time{}, found.rail.Name, p.clock.Now(), found.outcome.UpstreamID
		if row.Rail != pay.Rail {
			row.Attempt++
		}
		s.Event, s.Reason, s.Outcome, s.Mark = book.EventAdopted, "", provider.Outcome{}, pay.MarkTo(row)
	}
	done, err := p.book.Settle(ctx, s)
	if err = changed(done, err); err == nil && found.known {
		p.log.Warn("recovery: adopted payout pending approval, found at provider", "payment", pay.ID, "provider", found.rail.Name)
	}
	return err
}

// sentBefore looks, while a recovery lasts, for a payout that waits at every rail.
func (p *Payments) sentBefore(ctx context.Context, pay book.Payment) (searchResult, error) {
	s, err := p.recovered.state(ctx)
	if err != nil || !s.Lasts() {
		return searchResult{}, err
	}
	const message = "The service is being recovered, and the payout may have been sent before. Try again shortly."
	if s.Closed() {
		return searchResult{}, errRecovering(message, recoveryPause)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askTime)
	defer cancel()
	switch found := p.recovered.askAllRails(ctx, s, pay, true); {
	case found.known && found.way == pay.RefundWay:
		return found, nil
	case found.known:
		return searchResult{}, p.recovered.conflict(ctx, pay, found.rail.Name, "the provider has the refund by another way")
	case found.differs:
		return searchResult{}, p.recovered.conflict(ctx, pay, found.rail.Name, "the provider has another amount or party under the reference: "+found.outcome.Message)
	case found.silent != "":
		return searchResult{}, errRecovering(message, recoveryPause)
	case found.wait > 0:
		return searchResult{}, errRecovering(message, found.wait)
	}
	return searchResult{}, nil
}
