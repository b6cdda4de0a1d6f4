package reconcile

import (
	"context"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

const (
	approveException = `UPDATE statement_exceptions SET act = $2 WHERE id = $1 AND ended_at = 0`

	approvedExceptions = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE ended_at = 0 AND act <> '' AND id > $1 ORDER BY id LIMIT $2`

	// Lines of the attempts of a payment that moved money: those with the reference of an attempt, and those that are matched.
	movedByAttempts = `SELECT ` + lineColumns + ` FROM statement_lines WHERE status = 'success' AND id IN (
SELECT l.id FROM payments p JOIN statement_lines l ON l.reference = p.provider_reference AND l.reference <> '' WHERE p.id = $1
UNION SELECT l.id FROM payments p JOIN statement_lines l ON l.reference = p.attempt_reference AND l.reference <> '' WHERE p.id = $1
UNION SELECT l.id FROM payments p JOIN attempts a ON a.tenant = p.tenant AND a.kind = p.kind AND a.payment = p.id JOIN statement_lines l ON l.reference = a.provider_reference AND l.reference <> '' WHERE p.id = $1
UNION SELECT line FROM statement_matches WHERE payment = $1 AND payment <> '')`

	declineException = `UPDATE statement_exceptions SET act = '', note = $3 WHERE id = $1 AND act = $2 AND ended_at = 0`
)

// Evidence returns the line of an exception about a payment. It is empty if the statement does not have the payment.
// Evidence refuses a statement that shows nothing about the payment's present attempt, and a movement of another amount.
func (m *matcher) Evidence(ctx context.Context, e Exception, p book.Payment) (l Line, err error) {
	source, err := m.Source(ctx, e.Source)
	if err != nil {
		return l, err
	}
	if source.Provider != p.Rail {
		return l, problem.New(problem.Invalid, "another_provider", "The payment is not at the provider of this statement any more. Query its present provider, and put the difference into suspense when the outcome is known")
	}
	if e.Line == "" {
		return l, nil
	}
	if l, err = m.Line(ctx, e.Line); err != nil {
		return l, err
	}
	attempts, err := m.payments.ByReferences(ctx, append(mentioned(l.Text), ourReference(l.Reference)))
	if err != nil {
		return l, err
	}
	given, current := false, false
	for _, a := range attempts {
		given, current = given || a.ID == p.ID && !a.Current, current || a.ID == p.ID && a.Current
	}
	if given && !current {
		return l, problem.New(problem.Invalid, "attempt_given_up", "The line is of an attempt that was given up. Query the provider about the present attempt, and put the difference into suspense when the outcome is known")
	}
	l.net = source.net()
	o, whole := oursOf(p), l
	if source.withinFees() {
		whole.Amount += l.Fee
	}
	if l.moves() && (l.Amount < 0) != o.In && !o.has(l) && !o.has(whole) {
		return l, problem.New(problem.Invalid, "another_amount", "The line has another amount than the payment. Ask the provider about it, then resolve the payment by hand")
	}
	if fee := o.signed() - l.Amount; l.net && l.moves() && (l.Amount < 0) != o.In && fee >= 0 {
		l.Fee, l.FeeKnown = fee, true // its only record until the provider reports it
	}
	return l, nil
}

// CheckUnpaid refuses to end a payment as not paid while a line of any statement shows that one of its attempts moved
// its money.
func (s *store) CheckUnpaid(ctx context.Context, payment string) error {
	return s.db.Read(ctx, func(tx *db.Tx) error { return unpaid(tx, payment) })
}

func unpaid(tx *db.Tx, payment string) error {
	lines, err := queryLines(tx, movedByAttempts, payment)
	if err != nil {
		return err
	}
	type moved struct{ sum, fees money.Pesewas }
	sums := map[string]moved{} // by source: what one provider took back is not what another paid
	for _, l := range lines {
		if isFee(l.Type) {
			continue
		}
		m := sums[l.Source]
		if m.sum += l.Amount; l.Amount < 0 {
			m.fees += l.Fee
		}
		sums[l.Source] = m
	}
	for source, m := range sums {
		// Money of a payout went out and did not come back. A provider may keep the fee of a payout that it took back.
		if m.sum < 0 && m.sum != -m.fees {
			return problem.New(problem.Invalid, "paid_elsewhere", "The statement of "+source+" shows that an attempt of the payment was paid. Query both providers, then resolve the payment by hand")
		}
	}
	return nil
}

// Approve marks exceptions whose payments get their outcomes from the statement, each in a transaction of its own. It
// refuses if an exception differs from the digest.
func (s *store) Approve(tx *db.Tx, ids []string, digest, act string) error {
	list, err := s.lock(tx, selectExceptions, ids, digest)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Request != "" {
			return problem.New(problem.Duplicate, "exception_approved", "An exception waits for the outcome of an earlier request")
		}
		if _, err := tx.Exec(approveException, e.ID, act); err != nil {
			return err
		}
	}
	return nil
}

// Approved returns exceptions that Approve has marked and that are still open, in the order of their ids.
func (s *store) Approved(ctx context.Context, after string, limit int) ([]Exception, error) {
	return db.Get(db.Bulk(ctx, ""), s.db, func(tx *db.Tx) ([]Exception, error) {
		return queryExceptions(tx, approvedExceptions, after, int64(limit))
	})
}

// Decline removes the flag of an exception whose payment was not settled, and stores the reason as its note.
func (s *store) Decline(ctx context.Context, e Exception, why string) error {
	note := usertext.Cut(strings.TrimSpace("Not settled: "+why+" "+e.Note), maxNote)
	_, err := s.db.Exec(ctx, declineException, e.ID, e.Request, note)
	return err
}
