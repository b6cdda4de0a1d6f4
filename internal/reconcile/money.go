package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// CheckFees refuses exceptions whose difference is not a fee that can be booked.
func CheckFees(list []Exception) error {
	for _, e := range list {
		if e.Kind != FeeOff {
			return problem.Field("kind", "must be a fee difference: choose another resolution for this exception")
		}
		if e.Delta == 0 {
			return problem.Field("exception", "is of a payment that is not marked as paid: set the outcome of the payment first")
		}
	}
	return nil
}

// BookFees books the part of the provider's fee that exceeds the booked fee, or the part that it did not charge. It
// refuses if an exception differs from the digest.
func (s *store) BookFees(tx *db.Tx, ids []string, digest, act string) error {
	list, err := s.lock(tx, selectExceptions, ids, digest)
	if err == nil {
		err = CheckFees(list)
	}
	if err != nil {
		return err
	}
	moves := make([]ledger.Transfer, len(list))
	for i, e := range list {
		source, err := ParseSource(e.Source)
		if err != nil {
			return err
		}
		leg := legFeeBack
		if e.Delta < 0 {
			leg = legFee
		}
		if moves[i], err = transfer(e, source.Charges(), leg); err != nil {
			return err
		}
	}
	if err := s.end(tx, list, EndedBooked, act); err != nil {
		return err
	}
	return s.post(tx, moves)
}

// CheckSuspend refuses exceptions whose difference cannot be moved into suspense. An open payment is ended instead,
// which moves its money.
func (m *matcher) CheckSuspend(ctx context.Context, list []Exception) error {
	var ids []string
	for _, e := range list {
		switch {
		case e.Kind == FeeOff:
			return problem.Field("kind", "must not be a fee difference: book the fee instead")
		case e.Delta == 0:
			return problem.Field("exception", "has no money to put into suspense: set the payment's outcome from the statement")
		case e.Payment != "" && e.Kind != Twice:
			ids = append(ids, e.Payment)
		}
	}
	payments, err := m.payments.ByIDs(ctx, ids)
	if err != nil {
		return err
	}
	for _, p := range payments {
		if p.Status.Open() {
			return problem.Field("exception", fmt.Sprintf("is of the payment %s, whose outcome is unknown: set its outcome from the statement", p.ID))
		}
	}
	return nil
}

// Suspend moves the differences of exceptions into suspense, or out of it, so that our books agree with the
// statement. It refuses if an exception differs from the digest.
func (s *store) Suspend(tx *db.Tx, ids []string, digest, act string) error {
	list, err := s.lock(tx, selectExceptions, ids, digest)
	if err != nil {
		return err
	}
	moves := make([]ledger.Transfer, len(list))
	for i, e := range list {
		if moves[i], err = transfer(e, ledger.Suspense, legSuspense); err != nil {
			return err
		}
	}
	if err := s.end(tx, list, EndedSuspend, act); err != nil {
		return onceBooked(err)
	}
	return s.post(tx, moves)
}

// onceBooked names the refusal of a line whose money is booked already.
func onceBooked(err error) error {
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "line_booked", "The money of the line is booked already")
	}
	return err
}

// Release moves the money of suspended exceptions to an account of the ledger, or takes missing money from it. to
// returns the account of each exception. It refuses if an exception differs from the digest.
func (s *store) Release(tx *db.Tx, ids []string, digest, act, actor string, to func(Exception) (ledger.AccountID, error)) error {
	list, err := s.lock(tx, selectSuspended, ids, digest)
	if err != nil {
		return err
	}
	var wallets []ledger.Key
	moves := make([]ledger.Transfer, len(list))
	for i, e := range list {
		source, err := ParseSource(e.Source)
		if err != nil {
			return err
		}
		target, err := to(e)
		if err != nil {
			return err
		}
		key := ledger.Key{Asset: source.Ledger().Asset, ID: target}
		moves[i] = signed(ledger.Transfer{Asset: key.Asset, From: ledger.Suspense, To: target, Amount: int64(e.Delta), Subject: e.ID, Leg: legFinal, Kind: KindOfTransfers})
		wallets = append(wallets, key)
		if n, err := tx.Exec(leaveSuspense, e.ID, string(EndedReleased), act); err != nil || n != 1 {
			return errors.Join(err, problem.New(problem.Invalid, "changed_since", "The money has left suspense since this was requested"))
		}
		if e.Kind == TheirsOnly {
			if err := s.book(tx, e.Line, actor); err != nil {
				return err
			}
		}
	}
	return s.post(tx, moves, wallets...)
}

// book marks a line whose money a person has booked for good.
func (s *store) book(tx *db.Tx, line, actor string) error {
	list, err := queryLines(tx, selectLine, line)
	if err != nil || len(list) == 0 {
		return err
	}
	return onceBooked(s.use(tx, list[0], RulePerson, actor, s.clock.Now()))
}

// CheckAdopt refuses an exception that is not an unmatched credit at a provider.
func CheckAdopt(e Exception) (Source, error) {
	source, err := ParseSource(e.Source)
	switch {
	case err != nil:
	case e.Kind != TheirsOnly || e.Delta <= 0:
		err = problem.Field("exception", "must be money that came in and matches no payment of ours")
	case source.Bank():
		err = problem.Field("exception", "is a credit at a bank: request a deposit to a wallet that names its line")
	}
	return source, err
}

// Adopt credits a wallet with the money of an unmatched credit at a provider. It refuses if the exception differs
// from the digest.
func (s *store) Adopt(tx *db.Tx, ids []string, digest string, wallet ledger.Key, act, actor string) ([]Exception, error) {
	list, err := s.lock(tx, selectExceptions, ids, digest)
	if err != nil {
		return nil, err
	}
	moves := make([]ledger.Transfer, len(list))
	for i, e := range list {
		if _, err := CheckAdopt(e); err != nil {
			return nil, err
		}
		if moves[i], err = transfer(e, wallet.ID, legFinal); err != nil {
			return nil, err
		}
		if moves[i].Asset != wallet.Asset {
			return nil, problem.Field("tenant", "must be an account of the statement's mode")
		}
	}
	if err := s.end(tx, list, EndedAdopted, act); err != nil {
		return nil, onceBooked(err)
	}
	for _, e := range list {
		if err := s.book(tx, e.Line, actor); err != nil {
			return nil, err
		}
	}
	return list, s.post(tx, moves, wallet)
}

// EndSettled ends an exception in the transaction that sets its payment's outcome from the statement. Matching then
// decides about its line again. EndSettled refuses like CheckUnpaid if the payment ends as not paid.
func (s *store) EndSettled(tx *db.Tx, id, digest string, paid bool, act string) error {
	list, err := s.lock(tx, selectExceptions, []string{id}, digest)
	if err == nil && !paid {
		err = unpaid(tx, list[0].Payment)
	}
	if err != nil {
		return err
	}
	if err := s.end(tx, list, EndedSettled, act); err != nil || list[0].Line == "" {
		return err
	}
	_, err = tx.Exec(judgeAgain, []string{list[0].Line})
	return err
}
