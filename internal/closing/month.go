package closing

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
)

// MonthAccount is a float, a bank account or the money in transit over the closed days of a month.
type MonthAccount struct {
	ID          ledger.AccountID
	Opening     money.Pesewas
	In, Out     money.Pesewas
	Late        money.Pesewas
	Closing     money.Pesewas
	Theirs      *money.Pesewas // closing balance of the statement on the last closed day
	Explained   money.Pesewas  // explained difference on the last closed day
	Books       money.Pesewas  // present balance of our books at the end of the last closed day
	Days        int
	Gaps        int // days whose opening balance is not the closing balance of the day before
	lastClosing money.Pesewas
}

// Off returns the closing balance less the opening balance and the movements of the month. It is zero in correct
// books.
func (a MonthAccount) Off() money.Pesewas { return a.Closing - (a.Opening + a.In - a.Out + a.Late) }

// Since returns the amount that was booked into the closed days after they were signed and that no later day of the
// month lists.
func (a MonthAccount) Since() money.Pesewas { return a.Books - a.Closing }

// Unexplained returns the part of the difference to the last statement that no exception explains.
func (a MonthAccount) Unexplained() money.Pesewas {
	if a.Theirs == nil {
		return 0
	}
	return *a.Theirs - a.Closing - a.Explained
}

// Ties reports whether the account ties to the pesewa: with itself from day to day, with our books, and with the statement.
func (a MonthAccount) Ties() bool {
	return a.Off() == 0 && a.Gaps == 0 && a.Since() == 0 && a.Theirs != nil && a.Unexplained() == 0
}

// Month is a month of closed days.
type Month struct {
	Asset       ledger.Asset
	First, Last Day
	Closed      int // days of the month that are closed
	Accounts    []MonthAccount
}

// Days returns how many days the month has.
func (m Month) Days() int { return int(m.Last-m.First) + 1 }

// Whole reports whether every day of the month is closed.
func (m Month) Whole() bool { return m.Closed == m.Days() }

// Ties reports whether the month is whole and every account ties.
func (m Month) Ties() bool {
	for _, a := range m.Accounts {
		if !a.Ties() {
			return false
		}
	}
	return m.Whole()
}

const (
	selectMonth = `SELECT d.day, a.account, a.opening, a.moved_in, a.moved_out, a.late, a.closing, a.theirs, a.explained FROM closed_days d
	JOIN closed_accounts a ON a.asset = d.asset AND a.day = d.day AND a.revision = d.revision WHERE d.asset = $1 AND d.day BETWEEN $2 AND $3 ORDER BY a.account, d.day`
	selectMonthDays = `SELECT count(*), COALESCE(max(day), 0) FROM closed_days WHERE asset = $1 AND day BETWEEN $2 AND $3`
)

// MonthOf reads the month in which a day is.
func (b *Books) MonthOf(ctx context.Context, asset ledger.Asset, day Day) (m Month, err error) {
	if err := (Period{asset, day, day}).Check(); err != nil {
		return m, err
	}
	begin := day.Begin()
	begin = time.Date(begin.Year(), begin.Month(), 1, 0, 0, 0, 0, time.UTC)
	first, last := DayOf(begin), DayOf(begin.AddDate(0, 1, 0))-1
	err = b.db.ReadWhole(ctx, func(tx *db.Tx) error {
		m = Month{Asset: asset, First: first, Last: last}
		var newest Day
		if _, err := tx.One(selectMonthDays, []any{asset, int64(first), int64(last)}, &m.Closed, &newest); err != nil || m.Closed == 0 {
			return err
		}
		if err := m.read(tx); err != nil {
			return err
		}
		books, err := ledger.BalancesBefore(tx, asset, newest.End())
		for i := range m.Accounts {
			m.Accounts[i].Books = money.Pesewas(-books[m.Accounts[i].ID])
		}
		return err
	})
	return m, err
}

// read adds up the accounts of the closed days.
func (m *Month) read(tx *db.Tx) error {
	return tx.Query(selectMonth, []any{m.Asset, int64(m.First), int64(m.Last)}, func(r *db.Row) error {
		var day Day
		var a MonthAccount
		var theirs *int64
		if err := r.Scan(&day, &a.ID, &a.Opening, &a.In, &a.Out, &a.Late, &a.Closing, &theirs, &a.Explained); err != nil {
			return err
		}
		if theirs != nil {
			n := money.Pesewas(*theirs)
			a.Theirs = &n
		}
		n := len(m.Accounts)
		if n == 0 || m.Accounts[n-1].ID != a.ID {
			a.Days, a.lastClosing = 1, a.Closing
			m.Accounts = append(m.Accounts, a)
			return nil
		}
		sum := &m.Accounts[n-1]
		if a.Opening != sum.lastClosing {
			sum.Gaps++
		}
		sum.In, sum.Out, sum.Late, sum.Days = sum.In+a.In, sum.Out+a.Out, sum.Late+a.Late, sum.Days+1
		sum.Closing, sum.Theirs, sum.Explained, sum.lastClosing = a.Closing, a.Theirs, a.Explained, a.Closing
		return nil
	})
}
