package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
)

// Statement is a stretch of a wallet's life: what it held before, the transfers
// of one page of it, oldest first, and what it held after.
type Statement struct {
	Opening int64 // pesewas or credits before the first transfer of the stretch
	Closing int64 // and after the last one, whatever the page
	Total   int64 // transfers in the stretch
	Lines   []Line
}

// Line is one transfer of a wallet.
type Line struct {
	Transfer
	Sequence int64 // its number in the wallet, from 1
	Change   int64 // Amount with its sign for this wallet
	Balance  int64 // after it
}

const (
	sqlLastLine = `SELECT sequence FROM wallets WHERE id = $1 AND asset = $2`
	sqlLineAt   = `SELECT at FROM transfers WHERE wallet = $1 AND sequence = $2`
	sqlBalance  = `SELECT balance FROM transfers WHERE wallet = $1 AND sequence = $2`
	sqlLines    = `SELECT sequence, balance, amount, at, asset, subject, leg, kind, from_account, to_account FROM transfers
WHERE wallet = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence`
)

// Statement reads the transfers of a wallet or credits account with
// from <= at < to; a zero time is no bound. page counts from 1, size is lines a
// page. Any page of any stretch costs some tens of look-ups, not a scan: within
// a wallet the times never go back, so that the ends are found by halving.
func (l *Ledger) Statement(ctx context.Context, key Key, from, to time.Time, page, size int) (Statement, error) {
	var s Statement
	if page < 1 || size < 1 {
		return s, fmt.Errorf("ledger: page %d of %d lines", page, size)
	}
	err := l.db.Read(ctx, func(tx *db.Tx) error {
		s = Statement{}
		var last int64
		found, err := tx.One(sqlLastLine, []any{key.ID, key.Asset}, &last)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: %s", ErrNoAccount, key.ID)
		}
		first, end := int64(1), last+1
		if !from.IsZero() {
			if first, err = firstAt(tx, key.ID, last, from); err != nil {
				return err
			}
		}
		if !to.IsZero() {
			if end, err = firstAt(tx, key.ID, last, to); err != nil {
				return err
			}
		}
		end = max(first, end)
		s.Total = end - first
		if s.Opening, err = balanceAfter(tx, key.ID, first-1); err != nil {
			return err
		}
		if s.Closing, err = balanceAfter(tx, key.ID, end-1); err != nil {
			return err
		}
		begin := first + int64(page-1)*int64(size)
		return tx.Query(sqlLines, []any{key.ID, begin, min(begin+int64(size), end) - 1}, func(r *db.Row) error {
			var n Line
			if err := r.Scan(&n.Sequence, &n.Balance, &n.Amount, &n.At, &n.Asset, &n.Subject, &n.Leg, &n.Kind, &n.From, &n.To); err != nil {
				return err
			}
			if n.Change = n.Amount; n.From == key.ID {
				n.Change = -n.Amount
			}
			s.Lines = append(s.Lines, n)
			return nil
		})
	})
	return s, err
}

// firstAt is the number of the first transfer that is not before t, one more
// than the last number where there is none.
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
func (l *Ledger) OfSubject(ctx context.Context, subject string) (list []Transfer, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(sqlSubject, []any{subject}, func(r *db.Row) error {
			var t Transfer
			if err := r.Scan(&t.Amount, &t.At, &t.Asset, &t.Subject, &t.Leg, &t.Kind, &t.From, &t.To); err != nil {
				return err
			}
			list = append(list, t)
			return nil
		})
	})
	return list, err
}
