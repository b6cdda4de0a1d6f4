package ledger

import (
	"cmp"
	"context"
	"math"
	"slices"
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

// sqlMovements has the movements of a divided period: its transfers, a row for each side, and the sums of its whole hours.
var sqlMovements = movedBetween("$2", "$3") + ` UNION ALL ` + movedBetween("$4", "$5") + `
	UNION ALL SELECT account, kind, moved_in, moved_out, n FROM ledger_hours WHERE asset = $1 AND at >= $3 AND at < $4`

func movedBetween(from, to string) string {
	const where = ` FROM transfers WHERE asset = $1 AND at >= `
	return `SELECT ` + classOf("to_account") + ` AS account, kind, amount AS moved_in, 0 AS moved_out, 1 AS n` + where + from + ` AND at < ` + to + `
	UNION ALL SELECT ` + classOf("from_account") + `, kind, 0, amount, 1` + where + from + ` AND at < ` + to
}

var sqlMotions = `SELECT account, kind, CAST(sum(moved_in) AS INTEGER), CAST(sum(moved_out) AS INTEGER), CAST(sum(n) AS INTEGER) FROM (` + sqlMovements + `) AS m
GROUP BY account, kind ORDER BY account, kind`

// Motions sums the movements of an asset with from <= at < to, by account and kind. It reads the sums of whole hours and the transfers of
// the rest: call it within ReadWhole.
func Motions(tx *db.Tx, asset Asset, from, to time.Time) (list []Motion, err error) {
	d, err := divide(tx, db.Micros(from), db.Micros(to))
	if err != nil {
		return nil, err
	}
	return motions(tx, asset, d)
}

func motions(tx *db.Tx, asset Asset, d divided) ([]Motion, error) {
	return db.All(tx, sqlMotions, d.args(asset), func(m *Motion, r *db.Row) error { return r.Scan(&m.Account, &m.Kind, &m.In, &m.Out, &m.Count) })
}

var sqlBalancesBefore = `SELECT account, CAST(sum(balance) AS INTEGER) FROM (
	SELECT 'wallet:*' AS account, balance FROM wallets WHERE asset = $1
	UNION ALL SELECT ` + classOf("id") + `, balance FROM shards WHERE asset = $1
	UNION ALL SELECT account, moved_out - moved_in FROM (` + sqlMovements + `) AS m
) AS b GROUP BY account ORDER BY account`

// BalancesBefore returns the balances of an asset before a time, by account or class of accounts. It subtracts the later movements from
// the current balances. Call it within ReadWhole. The asset must be money.
func BalancesBefore(tx *db.Tx, asset Asset, at time.Time) (map[AccountID]int64, error) {
	d, err := divide(tx, db.Micros(at), math.MaxInt64)
	if err != nil {
		return nil, err
	}
	balances := map[AccountID]int64{}
	err = tx.Query(sqlBalancesBefore, d.args(asset), func(r *db.Row) error {
		var id AccountID
		var balance int64
		err := r.Scan(&id, &balance)
		balances[id] = balance
		return err
	})
	return balances, err
}

const (
	sqlFirstHour = `SELECT at FROM ledger_hours WHERE asset = $1 AND at < $2 ORDER BY at LIMIT 1`

	sqlFirstSince = `SELECT at FROM transfers WHERE asset = $1 AND at >= $2 ORDER BY at LIMIT 1`
)

// FirstMovement returns the hour of the first transfer of an asset, or a later time of the last hours. It is zero if
// there is no transfer. The asset must be money.
func FirstMovement(tx *db.Tx, asset Asset) (at time.Time, err error) {
	h, _, err := hoursIn(tx)
	if err != nil {
		return at, err
	}
	found, err := tx.One(sqlFirstHour, []any{asset, h.until}, &at)
	if err == nil && !found {
		_, err = tx.One(sqlFirstSince, []any{asset, h.until}, &at)
	}
	return at, err
}

// Span is a part of the journal: the transfers of an asset with From <= at < To.
type Span struct {
	Asset    Asset
	From, To time.Time
	Account  AccountID // one account, or a class such as wallet:*; empty: all
}

// match returns the prefix that the accounts of the span share. size is the number of bytes of an account to compare
// with the prefix.
func (s Span) match() (beginning string, size int64) { return matching(s.Account) }

func matching(id AccountID) (beginning string, size int64) {
	text := string(id)
	if class, is := strings.CutSuffix(text, "*"); is {
		return class, int64(len(class))
	}
	return text, maxAccount
}

// maxAccount is the maximum length of an account in bytes.
const maxAccount = 1000

const sqlJournal = `SELECT amount, at, asset, subject, leg, kind, from_account, to_account FROM transfers
WHERE at >= $2 AND at < $3 AND asset = $1 AND (at > $2 OR subject > $4 OR subject = $4 AND leg > $5)
	AND ($6 = '' OR substr(from_account, 1, $7) = $6 OR substr(to_account, 1, $7) = $6)
ORDER BY at, subject, leg LIMIT $8`

var sqlJournalSize = `SELECT CAST(COALESCE(sum(n), 0) AS INTEGER) FROM (` + sqlMovements + `) AS m`

// Journal reads at most limit transfers of a span in the order of time. after is the last transfer of the page before; nil begins. For
// one account or class it reads only the hours in which the account has transfers.
func (l *Ledger) Journal(ctx context.Context, s Span, after *Transfer, limit int) (list []Transfer, err error) {
	from := Transfer{At: s.From}
	if after != nil {
		from = *after
	}
	err = l.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
		if s.Account.Floored() && !strings.HasSuffix(string(s.Account), "*") {
			list, err = journalOfWallet(tx, s, from, limit)
			return err
		}
		parts, err := s.parts(tx, db.Micros(from.At))
		list = nil
		for _, part := range parts {
			if err != nil || len(list) == limit {
				break
			}
			cursor := Transfer{}
			if part[0] == db.Micros(from.At) {
				cursor = from
			}
			err = s.between(tx, part, cursor, limit-len(list), &list)
		}
		return err
	})
	return list, err
}

// between reads transfers of a part of the span. after is zero, or has the time at which the part begins.
func (s Span) between(tx *db.Tx, part [2]int64, after Transfer, limit int, list *[]Transfer) error {
	beginning, size := s.match()
	return tx.Query(sqlJournal, []any{s.Asset, part[0], part[1], after.Subject, after.Leg, beginning, size, limit}, appendTransfer(list))
}

func appendTransfer(list *[]Transfer) func(*db.Row) error {
	return func(r *db.Row) error {
		var t Transfer
		err := r.Scan(&t.Amount, &t.At, &t.Asset, &t.Subject, &t.Leg, &t.Kind, &t.From, &t.To)
		*list = append(*list, t)
		return err
	}
}

// parts returns the parts of the span after a time in which the span's account has transfers.
func (s Span) parts(tx *db.Tx, from int64) (parts [][2]int64, err error) {
	d, err := divide(tx, from, db.Micros(s.To))
	if err != nil || s.Account == "" || d.first == d.last {
		return [][2]int64{{d.from, d.to}}, err
	}
	beginning, size := matching(s.Account.Class())
	if strings.HasSuffix(string(s.Account), "*") {
		beginning, size = s.match()
	}
	parts = append(parts, [2]int64{d.from, d.first})
	err = tx.Query(sqlHoursOf, []any{s.Asset, d.first, d.last, beginning, size}, func(r *db.Row) error {
		var hour int64
		err := r.Scan(&hour)
		parts = append(parts, [2]int64{hour, hour + hourLong})
		return err
	})
	return append(parts, [2]int64{d.last, d.to}), err
}

const sqlWalletJournal = `SELECT amount, at, asset, subject, leg, kind, from_account, to_account FROM transfers WHERE wallet = $1 AND sequence >= $2 AND sequence < $3`

// journalOfWallet reads the journal of one wallet by the numbers of its transfers, whose times never go back.
func journalOfWallet(tx *db.Tx, s Span, after Transfer, limit int) ([]Transfer, error) {
	var last int64
	found, err := tx.One(sqlLastLine, []any{s.Account, s.Asset}, &last)
	if err != nil || !found {
		return nil, err
	}
	first, err := firstAt(tx, s.Account, last, after.At)
	if err != nil {
		return nil, err
	}
	end, err := firstAt(tx, s.Account, last, s.To)
	if err != nil {
		return nil, err
	}
	// The numbers of transfers with the same time do not follow the journal's order. So the function reads on
	// until it has all transfers of the last time.
	for size := int64(limit); ; size *= 2 {
		var list []Transfer
		until := min(end, first+size)
		if err := tx.Query(sqlWalletJournal, []any{s.Account, first, until}, appendTransfer(&list)); err != nil {
			return nil, err
		}
		slices.SortFunc(list, Transfer.compare)
		if until < end && len(list) > 0 {
			newest := list[len(list)-1].At
			list = slices.DeleteFunc(list, func(t Transfer) bool { return t.At.Equal(newest) })
		}
		list = slices.DeleteFunc(list, func(t Transfer) bool { return after.Subject != "" && t.compare(after) <= 0 })
		if len(list) >= limit || until >= end {
			return list[:min(limit, len(list))], nil
		}
	}
}

// compare orders transfers as the journal does.
func (t Transfer) compare(other Transfer) int {
	return cmp.Or(t.At.Compare(other.At), cmp.Compare(t.Subject, other.Subject), cmp.Compare(t.Leg, other.Leg))
}

// JournalSize counts the transfers of a span. It ignores Account.
func (l *Ledger) JournalSize(ctx context.Context, s Span) (n int64, err error) {
	err = l.db.ReadSnapshot(ctx, func(tx *db.Tx) error {
		d, err := divide(tx, db.Micros(s.From), db.Micros(s.To))
		if err != nil {
			return err
		}
		_, err = tx.One(sqlJournalSize, d.args(s.Asset), &n)
		return err
	})
	return n / 2, err // each transfer has two sides
}
