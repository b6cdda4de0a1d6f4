package sim

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// The accounts of a provider that have a statement each. A provider that pays from the balance of its collections has the second alone.
const (
	AccountCollection   = "collection"
	AccountDisbursement = "disbursement"
)

// LineType is the type of a statement's line.
type LineType string

// The types.
const (
	LineMovement LineType = "movement" // of an order
	LineReversal LineType = "reversal" // of an order that was taken back
	LineDeposit  LineType = "deposit"  // the float was changed by hand
	LineForeign  LineType = "foreign"  // of somebody who placed no order
	LineCharge   LineType = "charge"   // the provider's own, without an order
)

// Line is one line of a provider's statement.
type Line struct {
	Number  int64 // from 1, unique among the lines of the account that have no order
	Copy    int   // 0 for the first line of an order, then 1, 2, ...
	Type    LineType
	Entry   Entry // of movements and reversals
	At      time.Time
	Amount  money.Pesewas // above zero: it came in
	Fee     money.Pesewas
	Balance money.Pesewas // after it
}

// move is one change of a float, in the order in which the book has them.
type move struct {
	at       time.Time
	provider string
	entry    *Entry        // nil: a deposit
	back     bool          // takes the entry back
	deposit  money.Pesewas // without an entry
}

// The amounts of planted lines and differences.
const (
	foreignAmount = 77*money.Cedi + 70
	chargeAmount  = 3*money.Cedi + 33
	feeOff        = 50
)

// moves returns the changes of the float of a provider, by time.
func (b *book) moves(provider string) []move {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []move
	for _, m := range b.moved {
		if m.provider != provider {
			continue
		}
		if m.entry != nil {
			e := *m.entry
			m.entry = &e
		}
		list = append(list, m)
	}
	return list
}

// accountOf returns the account of a provider that an entry debits or credits.
func (b *book) accountOf(e *Entry) string {
	if e != nil && e.Kind == Collection && !b.single[e.Provider] {
		return AccountCollection
	}
	return AccountDisbursement
}

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
		return nil, problem.New(problem.NotFound, "no_statement", "The simulator has statements of mtn and hubtel")
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
		case m.at.IsZero(): // a deposit in a book of before
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

// statementFile answers a download of a statement. from and to are days, or moments; without them it is the whole time until now.
func (s *Sim) statementFile(w http.ResponseWriter, r *http.Request) {
	provider, account := r.PathValue("provider"), r.PathValue("account")
	for _, p := range s.providers {
		if p.Adapter != "" && provider == p.Adapter {
			provider = p.Name
		}
	}
	from, err := statementTime(r, "from", time.Time{}, 0)
	until, untilErr := statementTime(r, "to", s.clock.Now().Add(time.Nanosecond), 24*time.Hour)
	if err = cmp.Or(err, untilErr); err != nil {
		s.reply(w, nil, err)
		return
	}
	file, err := s.StatementFile(provider, account, from, until)
	if err != nil {
		s.reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s.csv"`, provider, account))
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(file) // a client that has gone needs none
}

// statementTime reads a day or moment of a download. A day is its beginning and behind.
func statementTime(r *http.Request, name string, none time.Time, behind time.Duration) (time.Time, error) {
	text := strings.TrimSpace(r.URL.Query().Get(name))
	if text == "" {
		return none, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Add(behind), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = problem.Field(name, "must be a day such as 2026-11-20, or a moment such as 2026-11-20T08:00:00Z")
	}
	return at, err
}
