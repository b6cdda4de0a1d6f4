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
	return problem.New(problem.Invalid, "payment_waits", "The payout awaits approval by the account and was not sent")
}

// CodeNotWaiting is the error code for the approval or rejection of a payout that is not pending approval.
const CodeNotWaiting = "payment_not_waiting"

// waiting refuses a payout that is not pending approval. It checks the locked row.
func waiting(row book.Payment) error {
	if !row.AwaitsApproval() {
		return problem.New(problem.Invalid, CodeNotWaiting, "The payout is not pending approval. Its status is "+row.PublicStatus())
	}
	return nil
}

// Approve approves a payout that awaits its account's approval and creates its job. The function also runs in the
// same transaction, with the locked row. It returns Forbidden while the account is blocked or its payouts are
// stopped.
func (p *Payments) Approve(ctx context.Context, id string, also func(*db.Tx, book.Payment) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	row, locked := pay, book.Payment{}
	row.ApprovalDeadline = time.Time{}
	judge := func(row book.Payment) error { locked = row; return waiting(row) }
	done, err := p.book.Settle(ctx, book.Settlement{Payment: pay, Event: book.EventApproved, Change: pay.ChangeTo(row), Guard: judge, InTx: func(tx *db.Tx) error {
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

// changed returns an error if the payment was changed by another process after it was read.
func changed(done book.Settled, err error) error {
	if err == nil && !done.Changed {
		err = problem.New(problem.InProgress, "payment_changed", "The payment has changed and is now "+done.Payment.PublicStatus()+". Reload it")
	}
	return err
}

// Disapprove fails a payout that is pending approval because it was rejected, withdrawn or expired, and returns its
// hold. The function also runs in the same transaction. In a recovery Disapprove searches the rails first, because
// the payout may have been approved before the restore. If a rail has the payout, Disapprove adopts it. If a rail
// does not answer, Disapprove returns Unavailable.
func (p *Payments) Disapprove(ctx context.Context, id string, also func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	s := book.Settlement{Payment: pay, Event: book.EventFailed, Reason: provider.ReasonNotApproved, Outcome: provider.Outcome{Class: provider.NotSent},
		Guard: waiting, InTx: also}
	found, err := p.sentBefore(ctx, pay)
	if err != nil {
		return err
	}
	if found.known {
		row := pay
		row.ApprovalDeadline, row.Rail, row.SendingAt, row.UpstreamID = time.Time{}, found.rail.Name, p.clock.Now(), found.outcome.UpstreamID
		if row.Rail != pay.Rail {
			row.Attempt++
		}
		s.Event, s.Reason, s.Outcome, s.Change = book.EventAdopted, "", provider.Outcome{}, pay.ChangeTo(row)
	}
	done, err := p.book.Settle(ctx, s)
	if err = changed(done, err); err == nil && found.known {
		p.log.Warn("recovery: adopted payout pending approval, found at provider", "payment", pay.ID, "provider", found.rail.Name)
	}
	return err
}

// sentBefore searches all rails for a payout that awaits approval during a recovery.
func (p *Payments) sentBefore(ctx context.Context, pay book.Payment) (searchResult, error) {
	s, err := p.recovered.state(ctx)
	if err != nil || !s.Lasts() {
		return searchResult{}, err
	}
	const message = "The service is being recovered, and the payout may have been sent before. Try again shortly."
	if s.Closed() {
		return searchResult{}, errRecovering(message, recoveryPause)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*queryTimeout)
	defer cancel()
	switch found := p.recovered.queryAllRails(ctx, s, pay, true); {
	case found.known && found.way == pay.RefundWay:
		return found, nil
	case found.known:
		return searchResult{}, p.recovered.conflict(ctx, pay, found.rail.Name, "the provider has the refund as another kind of refund")
	case found.differs:
		return searchResult{}, p.recovered.conflict(ctx, pay, found.rail.Name, "the provider has another amount or party under the reference: "+found.outcome.Message)
	case found.silent != "":
		return searchResult{}, errRecovering(message, recoveryPause)
	case found.wait > 0:
		return searchResult{}, errRecovering(message, found.wait)
	}
	return searchResult{}, nil
}
