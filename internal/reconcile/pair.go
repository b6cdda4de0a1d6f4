package reconcile

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// CheckPair refuses a payment that cannot be the movement of the exception's line.
func (m *matcher) CheckPair(ctx context.Context, e Exception, p book.Payment) (Leg, error) {
	source, err := ParseSource(e.Source)
	switch {
	case err != nil:
		return "", err
	case e.Kind != TheirsOnly:
		return "", problem.Field("exception", "must be a line that matches no payment of ours")
	case !m.of(source, p):
		return "", problem.Field("payment", "must be a payment from the account of the statement")
	}
	l, err := m.Line(ctx, e.Line)
	if err != nil {
		return "", err
	}
	leg := oursOf(p).leg(l)
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		taken, err := queryMatches(tx, matchesOfPayments, []string{p.ID})
		for _, one := range taken {
			if one.leg == leg {
				return problem.Field("payment", "is matched with another line already")
			}
		}
		return err
	})
	return leg, err
}

// Pairing is the line of an exception with its payment.
type Pairing struct {
	Exception, Payment string
	Leg                Leg
}

// Pair matches the line of an exception with a payment on a person's request. It moves only money that was in
// suspense for the line. It refuses if the exception differs from the digest.
func (s *store) Pair(tx *db.Tx, pairs []Pairing, digest, actor string) error {
	ids, by := make([]string, len(pairs)), map[string]Pairing{}
	for i, p := range pairs {
		ids[i], by[p.Exception] = p.Exception, p
	}
	list, err := s.lock(tx, selectExceptions, ids, digest)
	if err != nil {
		return err
	}
	lines, payments := make([]string, len(list)), make([]string, len(list))
	for i, e := range list {
		p := by[e.ID]
		lines[i], payments[i] = e.Line, p.Payment
		if _, err := tx.Exec(insertMatch, e.Line, p.Payment, string(p.Leg), string(RulePerson), actor, s.clock.Now()); err != nil {
			if errors.Is(err, db.ErrUnique) {
				err = problem.Wrap(err, problem.Duplicate, "line_matched", "The line or the payment is matched already")
			}
			return err
		}
		if err := s.agree(tx, e); err != nil {
			return err
		}
	}
	if err := judgeAround(tx, payments); err != nil {
		return err
	}
	_, err = tx.Exec(judgeAgain, lines)
	return err
}
