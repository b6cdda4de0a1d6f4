package closing

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sheet"
)

// Side is the side of an account in the comparison of money owed to customers and money held for us.
type Side string

// The sides. Own accounts are on neither side: they explain a surplus or a shortfall.
const (
	Owed Side = "owed" // to customers
	Held Side = "held" // money that we hold: in banks, at providers, or in transit
	Own  Side = "own"
)

// SideOf returns the side of an account of money.
func SideOf(id ledger.AccountID) Side {
	switch {
	case id.IsHeld():
		return Held
	case id == ledger.Clearing, id == ledger.Suspense, strings.HasPrefix(string(id), string(ledger.Wallet(""))), strings.HasPrefix(string(id), string(ledger.Reserve(""))):
		return Owed
	}
	return Own
}

// FundsLine is one account, or a class of accounts, at the end of a day. Amounts are above zero for money that is owed, held or earned.
type FundsLine struct {
	Side    Side
	Account ledger.AccountID
	Amount  money.Pesewas
}

// Funds compares the money that we owe to customers with the money that we hold, at the end of a day, or now for the
// present day.
type Funds struct {
	Asset   ledger.Asset
	Day     Day
	At      time.Time
	Lines   []FundsLine
	Owed    money.Pesewas
	Held    money.Pesewas
	Own     money.Pesewas
	Running bool // the day has not ended
}

// Surplus returns the money that we hold less the money that we owe. A negative surplus is a shortfall. In correct
// books it is the sum of our own accounts.
func (f Funds) Surplus() money.Pesewas { return f.Held - f.Owed }

// Of returns the lines of a side.
func (f Funds) Of(side Side) []FundsLine {
	return slices.DeleteFunc(slices.Clone(f.Lines), func(l FundsLine) bool { return l.Side != side })
}

// Funds reads the comparison of a day.
func (b *Books) Funds(ctx context.Context, asset ledger.Asset, day Day) (f Funds, err error) {
	if err := (Period{asset, day, day}).Check(); err != nil {
		return f, err
	}
	err = b.db.ReadWhole(ctx, func(tx *db.Tx) error {
		balances, err := ledger.BalancesBefore(tx, asset, day.End())
		f = fundsOf(balances)
		return err
	})
	f.Asset, f.Day, f.At = asset, day, day.End()
	if now := b.clock.Now(); now.Before(f.At) {
		f.At, f.Running = now, true
	}
	return f, err
}

func fundsOf(balances map[ledger.AccountID]int64) (f Funds) {
	for id, balance := range balances {
		if balance == 0 {
			continue
		}
		l := FundsLine{Side: SideOf(id), Account: id, Amount: money.Pesewas(balance)}
		switch l.Side {
		case Held:
			l.Amount = -l.Amount
			f.Held += l.Amount
		case Owed:
			f.Owed += l.Amount
		default:
			f.Own += l.Amount
		}
		f.Lines = append(f.Lines, l)
	}
	order := []Side{Owed, Held, Own}
	slices.SortFunc(f.Lines, func(a, b FundsLine) int {
		if a.Side != b.Side {
			return slices.Index(order, a.Side) - slices.Index(order, b.Side)
		}
		return strings.Compare(string(a.Account), string(b.Account))
	})
	return f
}

// FundsColumns are the columns of a file of the comparison.
var FundsColumns = []sheet.Column[FundsLine]{
	{Head: "side", Value: func(l FundsLine) sheet.Value { return sheet.String(string(l.Side)) }},
	{Head: "account", Value: func(l FundsLine) sheet.Value { return sheet.String(string(l.Account)) }},
	{Head: "amount", Value: func(l FundsLine) sheet.Value { return sheet.Amount(int64(l.Amount)) }},
}

// Rows returns the lines of the file of the comparison, with its sums.
func (f Funds) Rows() []FundsLine {
	return append(slices.Clone(f.Lines), FundsLine{"sum", "owed", f.Owed}, FundsLine{"sum", "held", f.Held}, FundsLine{"sum", "surplus", f.Surplus()})
}
