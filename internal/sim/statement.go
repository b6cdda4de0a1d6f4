package sim

import (
	"bytes"
	"encoding/csv"
	"slices"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// The amounts of planted lines and differences.
const (
	foreignAmount = 77*money.Cedi + 70
	chargeAmount  = 3*money.Cedi + 33
	feeOff        = 50
)

// lines returns the lines that a change has in the statement, by the plan of its order.
func (m move) lines() []Line {
	if m.entry == nil {
		return []Line{{Type: LineDeposit, At: m.at, Amount: m.deposit}}
	}
	e := *m.entry
	l := Line{Type: LineMovement, Entry: e, At: m.at, Amount: e.Amount + e.Plan.Off, Fee: e.Fee}
	if e.Kind != Collection {
		l.Amount = -l.Amount
	}
	if m.back {
		l = l.reversal()
	}
	switch {
	case e.Plan.Omit:
		return nil
	case m.back:
		return []Line{l}
	}
	return planted(l, FaultKind(e.Plan.Line))
}

// reversal returns the line that takes a line back, with its fee.
func (l Line) reversal() Line {
	l.Type, l.Amount, l.Fee = LineReversal, l.Fee-l.Amount, 0
	return l
}

// planted returns the line of an order as a fault changes it, with the lines that the fault adds.
func planted(l Line, fault FaultKind) []Line {
	list := []Line{l}
	first, more := &list[0], l
	more.At = l.At.Add(time.Minute)
	switch fault {
	case StatementTwice:
		return append(list, more)
	case StatementFee:
		first.Fee += feeOff
	case StatementReversed:
		return append(list, more.reversal())
	case StatementNextDay:
		first.At = l.At.Truncate(24 * time.Hour).Add(24*time.Hour + time.Minute)
	case StatementForeign:
		return append(list, Line{Type: LineForeign, At: more.At, Amount: foreignAmount})
	case StatementCharge:
		return append(list, Line{Type: LineCharge, At: more.At, Amount: -chargeAmount})
	}
	return list
}

// StatementLines returns the lines of an account at a provider in a time, with the balance after each. The balances are those of the
// listed lines: a planted fault moves them, and not the float.
func (s *Sim) StatementLines(provider, account string, from, until time.Time) (list []Line, err error) {
	p := s.providers[provider]
	if p.Statement == nil {
		return nil, problem.New(problem.NotFound, "no_statement", "The simulator has statements of mtn, hubtel, paystack and pawapay")
	}
	if account != AccountDisbursement && (account != AccountCollection || p.OneBalance) {
		return nil, problem.Field("account", "must be collection or disbursement")
	}
	s.settleDue()
	balance := money.Pesewas(0)
	if account == AccountDisbursement {
		balance = s.book.first
	}
	for _, m := range s.book.moves(provider) {
		switch {
		case s.book.accountOf(m.entry) != account:
		case m.at.IsZero(): // a deposit from a book of an older version
			balance += m.deposit
		default:
			list = append(list, m.lines()...)
		}
	}
	slices.SortStableFunc(list, func(a, b Line) int { return a.At.Compare(b.At) })
	count(list, balance)
	return slices.DeleteFunc(list, func(l Line) bool { return l.At.Before(from) || !l.At.Before(until) }), nil
}

// count numbers the lines of an account, and sets the balances.
func count(list []Line, balance money.Pesewas) {
	number, copies := int64(0), map[int64]int{}
	for i := range list {
		l := &list[i]
		if of := l.Entry.Number; of == 0 {
			number++
			l.Number = number
		} else {
			l.Copy = copies[of]
			copies[of]++
		}
		balance += l.Amount - l.Fee
		l.Balance = balance
	}
}

// StatementFile returns the statement of an account at a provider in a time, as the CSV file that the provider's portal gives.
func (s *Sim) StatementFile(provider, account string, from, until time.Time) ([]byte, error) {
	lines, err := s.StatementLines(provider, account, from, until)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	if err := w.WriteAll(s.providers[provider].Statement(lines)); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}
