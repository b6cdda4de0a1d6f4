package closing

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// Period is a span of days of one kind of money.
type Period struct {
	Asset       ledger.Asset
	First, Last Day
}

// Check refuses an impossible period.
func (p Period) Check() error {
	var bad problem.Fields
	if p.Asset != ledger.GHS && p.Asset != ledger.TestGHS {
		bad.Add("mode", "must be live or test")
	}
	if p.Last < p.First || p.Last-p.First >= mostDays {
		bad.Add("to", "must be at or after the first day, and within 366 days")
	}
	return bad.Err()
}

// mostDays bounds a period.
const mostDays = 366

func (p Period) span() ledger.Span {
	return ledger.Span{Asset: p.Asset, From: p.First.Begin(), To: p.Last.End()}
}

// Line is one line of the journal. A transfer is two lines: a debit and a credit of the same amount.
type Line struct {
	At        time.Time
	Code      string // the accountant's
	Account   ledger.AccountID
	Debit     money.Pesewas
	Credit    money.Pesewas
	Reference string // id of the payment or change that the transfer is about
	Kind      string
	Leg       string
}

// LineColumns are the columns of a file of the journal.
var LineColumns = []sheet.Column[Line]{
	{Head: "date", Value: func(l Line) sheet.Value { return sheet.Time(l.At) }},
	{Head: "account_code", Value: func(l Line) sheet.Value { return sheet.String(l.Code) }},
	{Head: "account", Value: func(l Line) sheet.Value { return sheet.String(string(l.Account)) }},
	{Head: "debit", Value: func(l Line) sheet.Value { return amountOrNone(l.Debit) }},
	{Head: "credit", Value: func(l Line) sheet.Value { return amountOrNone(l.Credit) }},
	{Head: "reference", Value: func(l Line) sheet.Value { return sheet.String(l.Reference) }},
	{Head: "kind", Value: func(l Line) sheet.Value { return sheet.String(l.Kind) }},
	{Head: "leg", Value: func(l Line) sheet.Value { return sheet.String(l.Leg) }},
}

// amountOrNone returns an empty text for the side that a line does not have.
func amountOrNone(n money.Pesewas) sheet.Value {
	if n == 0 {
		return sheet.String("")
	}
	return sheet.Amount(int64(n))
}

// linesAtOnce is how many transfers are read at once, which bounds the memory of an export.
const linesAtOnce = 1000

// MostInWorkbook is how many lines a workbook holds, with its heading.
const MostInWorkbook = 1_048_575

// Size counts the lines of the journal of a period.
func (b *Books) Size(ctx context.Context, p Period) (int64, error) {
	n, err := b.ledger.JournalSize(ctx, p.span())
	return 2 * n, err
}

// Each calls each for every line of the journal of a period, in the order of time, the debit of a transfer before its credit. It holds
// linesAtOnce transfers in memory.
func (b *Books) Each(ctx context.Context, p Period, each func(Line) error) error {
	if err := p.Check(); err != nil {
		return err
	}
	codes, err := b.Codes(ctx)
	if err != nil {
		return err
	}
	var after *ledger.Transfer
	for {
		list, err := b.ledger.Journal(ctx, p.span(), after, linesAtOnce)
		if err != nil {
			return err
		}
		for _, t := range list {
			l := Line{At: t.At, Reference: t.Subject, Kind: t.Kind, Leg: t.Leg}
			debit, credit := l, l
			debit.Account, debit.Code, debit.Debit = t.From, codes.Of(t.From), money.Pesewas(t.Amount)
			credit.Account, credit.Code, credit.Credit = t.To, codes.Of(t.To), money.Pesewas(t.Amount)
			if err := each(debit); err != nil {
				return err
			}
			if err := each(credit); err != nil {
				return err
			}
		}
		if len(list) < linesAtOnce {
			return nil
		}
		after = &list[len(list)-1]
	}
}

// Rows reads one page of the transfers of an account on the days of a period. after is the last transfer of the page
// before, or nil for the first page.
func (b *Books) Rows(ctx context.Context, p Period, account ledger.AccountID, after *ledger.Transfer, limit int) ([]ledger.Transfer, error) {
	s := p.span()
	s.Account = account
	return b.ledger.Journal(ctx, s, after, limit)
}

// Total is one account, or a class of accounts, in a period. Balances are credits less debits.
type Total struct {
	Account                         ledger.AccountID
	Code                            string
	Opening, Debit, Credit, Closing money.Pesewas
}

// Off returns the error of the account: its closing balance less opening balance, credits and debits. It is zero in
// correct books.
func (t Total) Off() money.Pesewas { return t.Closing - (t.Opening + t.Credit - t.Debit) }

// Totals returns the balances and sums of every account in a period, on one snapshot. Debits equal credits, and each account ties.
func (b *Books) Totals(ctx context.Context, p Period) (list []Total, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	codes, err := b.Codes(ctx)
	if err != nil {
		return nil, err
	}
	err = b.db.ReadWhole(ctx, func(tx *db.Tx) error {
		opening, err := ledger.BalancesBefore(tx, p.Asset, p.First.Begin())
		if err != nil {
			return err
		}
		closing, err := ledger.BalancesBefore(tx, p.Asset, p.Last.End())
		if err != nil {
			return err
		}
		motions, err := ledger.Motions(tx, p.Asset, p.First.Begin(), p.Last.End())
		if err != nil {
			return err
		}
		totals := map[ledger.AccountID]*Total{}
		at := func(id ledger.AccountID) *Total {
			if totals[id] == nil {
				totals[id] = &Total{Account: id, Code: codes.Of(id)}
			}
			return totals[id]
		}
		for id, n := range opening {
			at(id).Opening = money.Pesewas(n)
		}
		for id, n := range closing {
			at(id).Closing = money.Pesewas(n)
		}
		for _, m := range motions {
			t := at(m.Account)
			t.Credit += money.Pesewas(m.In)
			t.Debit += money.Pesewas(m.Out)
		}
		list = nil
		for _, id := range slices.Sorted(maps.Keys(totals)) {
			if t := *totals[id]; t != (Total{Account: id, Code: t.Code}) {
				list = append(list, t)
			}
		}
		return nil
	})
	return list, err
}
