package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// classes are the prefixes of accounts that exist for each tenant. Sums over such accounts use the name of the class:
// the prefix and a star.
var classes = []string{walletPrefix, "reserve/", "receivable/"}

// Class returns the class of an account that exists for each tenant, such as wallet:*. It returns other accounts
// unchanged.
func (id AccountID) Class() AccountID {
	for _, prefix := range classes {
		if strings.HasPrefix(string(id), prefix) {
			return AccountID(prefix + "*")
		}
	}
	return id
}

// classOf returns SQL that computes Class of a column.
func classOf(column string) string {
	return `CASE WHEN substr(` + column + `, 1, 7) = 'wallet:' THEN 'wallet:*' WHEN substr(` + column + `, 1, 8) = 'reserve/' THEN 'reserve/*'
	WHEN substr(` + column + `, 1, 11) = 'receivable/' THEN 'receivable/*' ELSE ` + column + ` END`
}

// Motion is the sum of one kind of movements of an account, or of a class of accounts.
type Motion struct {
	Account AccountID
	Kind    string
	In, Out int64 // pesewas into the account and out of it
	Count   int64
}

var sqlMotions = `SELECT account, kind, CAST(sum(moved_in) AS INTEGER), CAST(sum(moved_out) AS INTEGER), count(*) FROM (
	SELECT ` + classOf("to_account") + ` AS account, kind, amount AS moved_in, 0 AS moved_out FROM transfers WHERE at >= $2 AND at < $3 AND asset = $1
	UNION ALL SELECT ` + classOf("from_account") + `, kind, 0, amount FROM transfers WHERE at >= $2 AND at < $3 AND asset = $1
) AS m GROUP BY account, kind ORDER BY account, kind`

// Motions sums the movements of an asset with from <= at < to, by account and kind. It may read many transfers, so
// call it within ReadWhole.
func Motions(tx *db.Tx, asset Asset, from, to time.Time) (list []Motion, err error) {
	err = tx.Query(sqlMotions, []any{asset, from, to}, func(r *db.Row) error {
		var m Motion
		err := r.Scan(&m.Account, &m.Kind, &m.In, &m.Out, &m.Count)
		list = append(list, m)
		return err
	})
	return list, err
}

var sqlBalancesBefore = `SELECT account, CAST(sum(balance) AS INTEGER) FROM (
	SELECT 'wallet:*' AS account, balance FROM wallets WHERE asset = $1
	UNION ALL SELECT ` + classOf("id") + `, balance FROM shards WHERE asset = $1
	UNION ALL SELECT ` + classOf("to_account") + `, -amount FROM transfers WHERE at >= $2 AND asset = $1
	UNION ALL SELECT ` + classOf("from_account") + `, amount FROM transfers WHERE at >= $2 AND asset = $1
) AS b GROUP BY account ORDER BY account`

// BalancesBefore returns the balances of an asset before a time, by account or class of accounts. It subtracts the
// transfers since then from the current balances. One statement reads both, so they agree. The asset must be money.
func BalancesBefore(tx *db.Tx, asset Asset, at time.Time) (map[AccountID]int64, error) {
	balances := map[AccountID]int64{}
	err := tx.Query(sqlBalancesBefore, []any{asset, at}, func(r *db.Row) error {
		var id AccountID
		var balance int64
		err := r.Scan(&id, &balance)
		balances[id] = balance
		return err
	})
	return balances, err
}

// Span is a part of the journal: the transfers of an asset with From <= at < To.
type Span struct {
	Asset    Asset
	From, To time.Time
	Account  AccountID // one account, or a class such as wallet:*; empty: all
}

// match returns the prefix that the accounts of the span share. size is the number of bytes of an account to compare
// with the prefix.
func (s Span) match() (beginning string, size int64) {
	text := string(s.Account)
	if class, is := strings.CutSuffix(text, "*"); is {
		return class, int64(len(class))
	}
	return text, maxAccount
}

// maxAccount is a number of bytes that no account exceeds.
const maxAccount = 1000

const (
	sqlJournal = `SELECT amount, at, asset, subject, leg, kind, from_account, to_account FROM transfers
WHERE at >= $2 AND at < $3 AND asset = $1 AND (at > $2 OR subject > $4 OR subject = $4 AND leg > $5)
	AND ($6 = '' OR substr(from_account, 1, $7) = $6 OR substr(to_account, 1, $7) = $6)
ORDER BY at, subject, leg LIMIT $8`
	sqlJournalCount = `SELECT count(*) FROM transfers WHERE at >= $2 AND at < $3 AND asset = $1`
)

// Journal reads at most limit transfers of a span in the order of time. after is the last transfer of the previous
// page, or nil for the first page.
func (l *Ledger) Journal(ctx context.Context, s Span, after *Transfer, limit int) (list []Transfer, err error) {
	from, subject, leg := s.From, "", ""
	if after != nil {
		from, subject, leg = after.At, after.Subject, after.Leg
	}
	beginning, size := s.match()
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(sqlJournal, []any{s.Asset, from, s.To, subject, leg, beginning, size, limit}, func(r *db.Row) error {
			var t Transfer
			err := r.Scan(&t.Amount, &t.At, &t.Asset, &t.Subject, &t.Leg, &t.Kind, &t.From, &t.To)
			list = append(list, t)
			return err
		})
	})
	return list, err
}

// JournalSize counts the transfers of a span. It ignores Account.
func (l *Ledger) JournalSize(ctx context.Context, s Span) (n int64, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(sqlJournalCount, []any{s.Asset, s.From, s.To}, &n)
		return err
	})
	return n, err
}
