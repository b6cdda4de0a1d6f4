package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
)

// Stretch is the transfers of a wallet between two times. Transfers that are added later do not change it.
type Stretch struct {
	Key
	First, End int64 // numbers of its transfers in the wallet: First <= number < End
	Opening    int64 // pesewas or credits before the first transfer
	Closing    int64 // pesewas or credits after the last transfer
}

// Total returns the number of transfers in the stretch.
func (s Stretch) Total() int64 { return s.End - s.First }

// Line is one transfer of a wallet.
type Line struct {
	Transfer
	Sequence int64 // its number in the wallet, from 1
	Change   int64 // Amount with its sign for this wallet
	Balance  int64 // balance after the transfer
}

const (
	sqlLastLine = `SELECT sequence FROM wallets WHERE id = $1 AND asset = $2`
	sqlLineAt   = `SELECT at FROM transfers WHERE wallet = $1 AND sequence = $2`
	sqlBalance  = `SELECT balance FROM transfers WHERE wallet = $1 AND sequence = $2`
	sqlLines    = `SELECT sequence, balance, amount, at, asset, subject, leg, kind, from_account, to_account FROM transfers
WHERE wallet = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence`
)

// Stretch returns the transfers of a wallet or credits account with from <= at < to. A zero time means no limit. It
// finds the ends by binary search, because times within a wallet never go back. This costs some tens of lookups
// instead of a scan.
func (l *Ledger) Stretch(ctx context.Context, key Key, from, to time.Time) (s Stretch, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		var last int64
		found, err := tx.One(sqlLastLine, []any{key.ID, key.Asset}, &last)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: %s", ErrNoAccount, key.ID)
		}
		s = Stretch{Key: key, First: 1, End: last + 1}
		if !from.IsZero() {
			if s.First, err = firstAt(tx, key.ID, last, from); err != nil {
				return err
			}
		}
		if !to.IsZero() {
			if s.End, err = firstAt(tx, key.ID, last, to); err != nil {
				return err
			}
		}
		s.End = max(s.First, s.End)
		if s.Opening, err = balanceAfter(tx, key.ID, s.First-1); err != nil {
			return err
		}
		s.Closing, err = balanceAfter(tx, key.ID, s.End-1)
		return err
	})
	return s, err
}

// StretchOf is the stretch of the transfers first <= number < end, which must exist.
func (l *Ledger) StretchOf(ctx context.Context, key Key, first, end int64) (s Stretch, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) (err error) {
		s = Stretch{Key: key, First: first, End: end}
		if s.Opening, err = balanceAfter(tx, key.ID, first-1); err == nil {
			s.Closing, err = balanceAfter(tx, key.ID, end-1)
		}
		return err
	})
	return s, err
}

// Lines reads size transfers of a stretch after the first skip, oldest first.
func (l *Ledger) Lines(ctx context.Context, s Stretch, skip int64, size int) (lines []Line, err error) {
	first := s.First + skip
	return db.ReadAll(ctx, l.db, sqlLines, []any{s.ID, first, min(first+int64(size), s.End) - 1}, func(n *Line, r *db.Row) error {
		if err := r.Scan(&n.Sequence, &n.Balance, &n.Amount, &n.At, &n.Asset, &n.Subject, &n.Leg, &n.Kind, &n.From, &n.To); err != nil {
			return err
		}
		if n.Change = n.Amount; n.From == s.ID {
			n.Change = -n.Amount
		}
		return nil
	})
}

// firstAt returns the number of the first transfer at or after t. If there is none, it returns the last number plus
// one.
func firstAt(tx *db.Tx, wallet AccountID, last int64, t time.Time) (int64, error) {
	low, high := int64(1), last+1
	for low < high {
		middle := low + (high-low)/2
		var at time.Time
		found, err := tx.One(sqlLineAt, []any{wallet, middle}, &at)
		if err != nil {
			return 0, err
		}
		if !found {
			return 0, fmt.Errorf("ledger: %s has no transfer number %d", wallet, middle)
		}
		if at.Before(t) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

func balanceAfter(tx *db.Tx, wallet AccountID, sequence int64) (balance int64, err error) {
	if sequence == 0 {
		return 0, nil
	}
	found, err := tx.One(sqlBalance, []any{wallet, sequence}, &balance)
	if err == nil && !found {
		err = fmt.Errorf("ledger: %s has no transfer number %d", wallet, sequence)
	}
	return balance, err
}

const sqlSubject = `SELECT amount, at, asset, subject, leg, kind, from_account, to_account FROM transfers WHERE subject = $1 ORDER BY at, leg`

// OfSubject lists all transfers about one subject, oldest first.
func (l *Ledger) OfSubject(ctx context.Context, subject string) ([]Transfer, error) {
	return db.ReadAll(ctx, l.db, sqlSubject, []any{subject}, func(t *Transfer, r *db.Row) error {
		return r.Scan(&t.Amount, &t.At, &t.Asset, &t.Subject, &t.Leg, &t.Kind, &t.From, &t.To)
	})
}
