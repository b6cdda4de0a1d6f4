package reconcile

import (
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// The legs of the transfers of an exception. Each is booked once.
const (
	legFee      = "statement_fee"      // the provider took more than was booked
	legFeeBack  = "statement_fee_back" // it took less
	legSuspense = "statement_suspense"
	legAgreed   = "statement_agreed" // the money leaves suspense, because the two sides agree
	legFinal    = "statement_final"
)

// KindOfTransfers is the kind of all transfers that resolve exceptions.
const KindOfTransfers = "statement"

// transfer returns the transfer of an exception's difference between the account of its source and another account.
// Afterwards our books agree with the statement.
func transfer(e Exception, other ledger.AccountID, leg string) (ledger.Transfer, error) {
	source, err := ParseSource(e.Source)
	key := source.Ledger()
	return signed(ledger.Transfer{Asset: key.Asset, From: key.ID, To: other, Amount: int64(e.Delta), Subject: e.ID, Leg: leg, Kind: KindOfTransfers}), err
}

// signed reverses a transfer with a negative amount.
func signed(t ledger.Transfer) ledger.Transfer {
	if t.Amount < 0 {
		t.From, t.To, t.Amount = t.To, t.From, -t.Amount
	}
	return t
}

// post books transfers in tx. wallets are the wallets that they change.
func (s *store) post(tx *db.Tx, list []ledger.Transfer, wallets ...ledger.Key) error {
	page, err := s.ledger.Open(tx, wallets...)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.At = s.clock.Now()
		if err := page.Add(t); err != nil {
			if errors.Is(err, ledger.ErrInsufficient) {
				err = problem.Wrap(err, problem.InsufficientFunds, "insufficient_wallet_balance", "The wallet does not cover the amount")
			}
			return err
		}
	}
	page.Post()
	return nil
}

const insertUse = `INSERT INTO statement_matches (line, payment, leg, rule, maker, made_at, matched) VALUES ($1, '', '` + string(LegSettlement) + `', $2, $3, $4, $5)`

// use matches a line without a payment: it is a settlement, a movement of our own money, or its money is booked. The match keeps the amount
// of the line, and no rule matches the line any more. A line is used once.
func (s *store) use(tx *db.Tx, l Line, rule Rule, actor string, at time.Time) error {
	_, err := tx.Exec(insertUse, l.ID, string(rule), actor, at, int64(l.Amount))
	return err
}

// agree ends an exception whose two sides agree. Money that was moved into suspense for it is moved back.
func (s *store) agree(tx *db.Tx, e Exception) error {
	if e.EndedAt.IsZero() {
		return s.end(tx, []Exception{e}, EndedAgreed, "")
	}
	if _, err := tx.Exec(leaveSuspense, e.ID, string(EndedAgreed), e.Request); err != nil {
		return err
	}
	t, err := transfer(e, ledger.Suspense, legAgreed)
	if err != nil {
		return err
	}
	t.From, t.To = t.To, t.From
	return s.post(tx, []ledger.Transfer{t})
}

// end ends open exceptions.
func (s *store) end(tx *db.Tx, list []Exception, ending Ending, act string) error {
	for _, e := range list {
		n, err := tx.Exec(endException, e.ID, s.clock.Now(), string(ending), act)
		if err != nil {
			return err
		}
		if n != 1 {
			return problem.New(problem.Invalid, "changed_since", "An exception has ended since this was requested")
		}
	}
	return nil
}
