package payments

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// Row is a payout of a batch. Its fee and name are those that the approver of the batch saw.
type Row struct {
	Payout
	Charges money.Pesewas
	Plan    int64 // version of the fee plan that set Charges
	// Rail returned the registered name of a bank account. Another rail makes the payout only if it returns the same
	// name. Empty: any rail does.
	Rail string
}

// Rows is a request for payouts of a batch, paid from its reserve.
type Rows struct {
	Caller idempotency.Caller // sender of the batch; its Idempotency-Key and daily limit are ignored
	Batch  string
	Rows   []Row
	// Lock locks the row of the batch and returns the remaining reserve. It may refuse with a *problem.Error.
	Lock func(tx *db.Tx) (rest money.Pesewas, err error)
	// Write stores the results in the order of Rows, in the transaction that accepts the payouts. If a row could not
	// be accepted now, it and the rows after it have no result.
	Write func(tx *db.Tx, results []RowResult) error
}

// RowResult is the result of a row: an accepted Payment, or Refused with a permanent reason.
type RowResult struct {
	Payment book.Payment
	Refused *problem.Error // Invalid, NotFound, or Duplicate whose Data is the payment with the Reference
}

// A RowCause is a lasting reason why rows cannot be accepted. Package batch stores it, so values never change.
type RowCause string

// The causes.
const (
	CauseBlocked     RowCause = "account_blocked"
	CauseStopped     RowCause = "payouts_stopped"
	CauseNoRoute     RowCause = "no_route"        // no provider serves the channel, or its bank is switched off
	CausePaused      RowCause = "provider_paused" // an operator paused every provider of the channel
	CauseCircuitOpen RowCause = "circuit_open"
	CauseRecovering  RowCause = "recovering"
)

// shortOutage is the longest RetryAfter of an open circuit breaker that is not a RowCause, because the breaker's next
// probe is near.
const shortOutage = 30 * time.Second

// rowCause returns the cause of an error, or "" if the rows should be tried again.
func rowCause(err error) RowCause {
	e := problem.From(err)
	switch {
	case e.Code == "recovering":
		return CauseRecovering
	case e.Code == "not_served":
		return CauseNoRoute
	case errors.Is(err, route.ErrPaused):
		return CausePaused
	case errors.Is(err, route.ErrCircuitOpen) && e.RetryAfter > shortOutage:
		return CauseCircuitOpen
	}
	return ""
}

// PayRows accepts payouts of a batch in one transaction and in their order. It stops before the first payout that
// cannot be accepted now. It does not wait for providers. done is the number of rows with a result. cause is the
// lasting reason why the next row has no result. After any other err, the caller may try the rows without a result
// again.
func (p *Payments) PayRows(ctx context.Context, r Rows) (done int, cause RowCause, err error) {
	t, err := p.tenants.Get(ctx, r.Caller.Tenant)
	switch {
	case err != nil:
		return 0, "", err
	case t.Blocked:
		return 0, CauseBlocked, nil
	case t.PayoutsStopped:
		return 0, CauseStopped, nil
	}
	var requests []*request
	results := make([]RowResult, 0, len(r.Rows))
	silent := map[string]bool{}
	for _, row := range r.Rows {
		a, refused, notNow := p.prepareRow(ctx, t, r, row, silent)
		if notNow != nil {
			if cause = rowCause(notNow); cause == "" && len(results) == 0 {
				return 0, "", notNow
			}
			break
		}
		results = append(results, RowResult{Refused: refused})
		if refused == nil {
			results[len(results)-1].Payment = a.Payment
			requests = append(requests, a)
		}
	}
	if len(results) == 0 && len(r.Rows) > 0 {
		return 0, cause, nil
	}
	if err := p.draw(ctx, r, requests, results); err != nil {
		return 0, "", err
	}
	return len(results), cause, nil
}

// CheckRow refuses a payout of a batch that can never be accepted, for example if no provider of its channel accepts the
// amount.
func (p *Payments) CheckRow(ctx context.Context, t tenant.Tenant, r Payout) error {
	if err := p.checkPayout(ctx, t, r); err != nil {
		return err
	}
	if err := p.wouldServe(ctx, t, r); route.AmountNotServed(err) {
		return route.OnAmount(err)
	}
	return nil // a channel without a provider now may get one later
}

// CircuitOpen reports whether a payout of a batch waits for a failing provider. It also returns true for short
// failures.
func (p *Payments) CircuitOpen(ctx context.Context, t tenant.Tenant, r Payout) bool {
	return errors.Is(p.wouldServe(ctx, t, r), route.ErrCircuitOpen)
}

// wouldServe returns the error with which the choice of a rail for a payout would fail now, or nil.
func (p *Payments) wouldServe(ctx context.Context, t tenant.Tenant, r Payout) error {
	pay := newPayment(idempotency.Caller{Tenant: t.ID}, t, book.KindPayout)
	r.fill(&pay)
	op, channel := operation(pay)
	return p.rails.routes.WouldServe(ctx, route.Work{Operation: op, Channel: channel, Tenant: pay.Tenant, Mode: pay.Mode, Amount: pay.Gross()})
}

// SpendToday adds the total of a batch to the amount that its access key has spent today, or refuses the batch. The
// caller must have locked the wallet.
func (p *Payments) SpendToday(tx *db.Tx, c idempotency.Caller, amount money.Pesewas) error {
	if c.Daily == 0 {
		return nil
	}
	return p.book.SpendToday(tx, c.Tenant, c.Key, c.Daily, amount)
}

// prepareRow prepares one row without taking a lock. refused is a permanent refusal. After err the row may be tried
// again. silent has the rails that did not answer a lookup for an earlier row.
func (p *Payments) prepareRow(ctx context.Context, t tenant.Tenant, r Rows, row Row, silent map[string]bool) (a *request, refused *problem.Error, err error) {
	if row.BankID != "" {
		if err := p.lookups.BankServed(ctx, row.BankID); err != nil {
			return nil, nil, err
		}
	}
	if err := p.checkPayout(ctx, t, row.Payout); err != nil {
		return finalOrNot(err)
	}
	pay := newPayment(idempotency.Caller{Tenant: t.ID, Key: r.Caller.Key}, t, book.KindPayout)
	row.fill(&pay)
	pay.Batch, pay.Charges, pay.Plan, pay.Rail = r.Batch, row.Charges, row.Plan, row.Rail
	if err := p.rails.keepPayee(ctx, &pay, silent); err != nil {
		return nil, nil, err
	}
	a = &request{Acceptance: book.Acceptance{Payment: pay}}
	for _, step := range []func(context.Context, *request) error{p.prepare, p.beforeDebit} {
		if err := step(ctx, a); err != nil {
			a.probe.GiveBack(ctx)
			return finalOrNot(err)
		}
	}
	return a, nil, nil
}

// finalOrNot divides an error into the two error results of prepareRow. Invalid and NotFound refuse the row for good.
// After any other error the row may be tried again.
func finalOrNot(err error) (a *request, refused *problem.Error, notNow error) {
	if e := problem.From(err); e != nil && (e.Kind == problem.Invalid || e.Kind == problem.NotFound) {
		return nil, e, nil
	}
	return nil, nil, err
}

// draw accepts the prepared rows and stores all results.
func (p *Payments) draw(ctx context.Context, r Rows, requests []*request, results []RowResult) (err error) {
	d := &book.Drawing{Batch: r.Batch, Lock: r.Lock}
	for _, a := range requests {
		d.Payments = append(d.Payments, a.Payment)
		p.follower.live.expect(a.attempt)
	}
	var drawn []book.Drawn
	d.Write = func(tx *db.Tx, of []book.Drawn) error {
		drawn = of
		for _, a := range requests {
			if a.InTx != nil {
				if err := a.InTx(tx); err != nil {
					return err
				}
			}
		}
		return r.Write(tx, completed(results, of))
	}
	err = p.book.Draw(ctx, r.Caller.Tenant, d)
	for i, a := range requests {
		p.follower.live.unexpect(a.attempt)
		if err != nil || a.Adopted || drawn[i].Refused != nil {
			a.probe.GiveBack(ctx) // this request submits nothing
		}
	}
	return err
}

// completed returns a copy of results that includes the results of the prepared rows. It changes no argument, because
// the transaction may run again.
func completed(results []RowResult, drawn []book.Drawn) []RowResult {
	results = slices.Clone(results)
	next := 0
	for i := range results {
		if results[i].Refused != nil {
			continue
		}
		results[i] = RowResult{Payment: drawn[next].Payment, Refused: problem.From(drawn[next].Refused)}
		next++
	}
	return results
}
