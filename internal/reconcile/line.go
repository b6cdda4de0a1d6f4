package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

// Line is one movement of a statement.
type Line struct {
	ID         string // UUIDv7
	Source     string
	Statement  string // id of the statement that contained the line
	Row        int    // in that file
	Version    int    // 1, 2, ...: the provider changed its status or amount
	Identity   string // identity among the lines of its source
	At         time.Time
	Amount     money.Pesewas // above zero: it came in
	Fee        money.Pesewas
	FeeKnown   bool
	Balance    money.Pesewas // after it
	Balanced   bool          // the balance is known
	TheirID    string
	Reference  string // our ProviderReference, or the text in the file
	Settlement string
	Status     Status
	Type       string
	Party      string // mobile number as 233XXXXXXXXX
	Text       string

	within bool // the amount includes the fee: see Layout
	net    bool // the amount is less the fee, which the file does not have: see Profile
}

// Day returns the day of the line, in Accra's time.
func (l Line) Day() time.Time { return l.At.Truncate(24 * time.Hour) }

// moves reports whether the line moved money.
func (l Line) moves() bool { return l.Status == StatusSuccess }

// change returns the amount by which the line changed the balance of its account.
func (l Line) change() money.Pesewas {
	if l.within {
		return l.Amount
	}
	return l.Amount - l.Fee
}

// Limits of the texts of a line, in characters.
const (
	maxText = 200
	maxID   = 64
)

// refused returns the refusal of a file because of one of its cells.
func refused(row int, heading, why string) error {
	if heading == "" {
		return problem.Field("file", fmt.Sprintf("row %d %s", row, why))
	}
	return problem.Field("file", fmt.Sprintf("row %d, column %s: %s", row, heading, why))
}

// entry is a parsed row whose amounts have no direction yet.
type entry struct {
	Line
	amount, debit, credit money.Pesewas
	from, to              string
	line                  bool // false: the row has nothing but a balance
}

// cells are a row with the names of its columns.
type cells struct {
	raw     sheet.Raw
	layout  Layout
	heading []sheet.Cell
	mark    rune // before decimals
	minor   bool // amounts are whole pesewas
}

func (c cells) at(field Field) (cell sheet.Cell, place int) {
	place, has := c.layout.Columns[field]
	if !has || place >= len(c.raw.Cells) {
		return sheet.Cell{}, -1
	}
	return c.raw.Cells[place], place
}

func (c cells) text(field Field) string {
	cell, _ := c.at(field)
	return cell.Text
}

// bad returns the refusal of a cell.
func (c cells) bad(field Field, why string) error {
	_, place := c.at(field)
	name := string(field)
	if place >= 0 && place < len(c.heading) && c.heading[place].Text != "" {
		name = usertext.Cut(c.heading[place].Text, 40)
	}
	return refused(c.raw.Line, name, why)
}

// amountOf reads an amount; an empty cell is zero.
func (c cells) amountOf(field Field) (amount money.Pesewas, has bool, err error) {
	cell, _ := c.at(field)
	switch {
	case cell.Why != "":
		return 0, false, c.bad(field, cell.Why)
	case cell.Text == "" || cell.Text == "-":
		return 0, false, nil
	case cell.Kind == sheet.Date || cell.Kind == sheet.Boolean:
		return 0, false, c.bad(field, errAmount.Error())
	}
	mark := c.mark
	if cell.Kind == sheet.Number {
		mark = '.'
	}
	if amount, err = parseAmount(cell.Text, mark); err != nil {
		return 0, false, c.bad(field, err.Error())
	}
	if c.minor {
		if amount%money.Cedi != 0 {
			return 0, false, c.bad(field, "must be whole pesewas, without decimals")
		}
		amount /= money.Cedi
	}
	return amount, true, nil
}

// idOf reads an id.
func (c cells) idOf(field Field) (string, error) {
	cell, _ := c.at(field)
	if cell.Why != "" {
		return "", c.bad(field, cell.Why)
	}
	if cell.Kind == sheet.Date {
		return "", c.bad(field, "has a date that a spreadsheet program made: download the file again")
	}
	text, err := parseID(cell.Text)
	switch {
	case err != nil:
		return "", c.bad(field, err.Error())
	case len([]rune(text)) > maxID || !usertext.Storable(text):
		return "", c.bad(field, fmt.Sprintf("must be plain text of at most %d characters", maxID))
	}
	return text, nil
}

// dateOf reads the date.
func (c cells) dateOf() (time.Time, error) {
	cell, _ := c.at(FieldDate)
	switch {
	case cell.Why != "":
		return time.Time{}, c.bad(FieldDate, cell.Why)
	case cell.Kind == sheet.Number:
		return time.Time{}, c.bad(FieldDate, "has a number where a date is wanted: download the file again and do not save it in a spreadsheet program")
	}
	at, err := parseDate(cell.Text, c.layout.Dates)
	if err != nil {
		return at, c.bad(FieldDate, err.Error())
	}
	return at, nil
}

// entry parses the whole row except the direction of its amount.
func (c cells) entry() (e entry, err error) {
	e = entry{Line: Line{Row: c.raw.Line, Type: clean(c.text(FieldType)), Text: clean(c.text(FieldText))}, line: true, from: c.text(FieldFrom), to: c.text(FieldTo)}
	if e.At, err = c.dateOf(); err != nil {
		return e, err
	}
	if e.TheirID, err = c.idOf(FieldID); err != nil {
		return e, err
	}
	if e.Reference, err = c.idOf(FieldReference); err != nil {
		return e, err
	}
	if e.Settlement, err = c.idOf(FieldSettlement); err != nil {
		return e, err
	}
	if ours := ourReference(e.Reference); ours != "" {
		e.Reference = ours
	}
	if err := c.amounts(&e); err != nil {
		return e, err
	}
	known := false
	if e.Status, known = statuses[strings.ToLower(strings.TrimSpace(c.text(FieldStatus)))]; !known {
		return e, c.bad(FieldStatus, fmt.Sprintf("has the unknown state %q", usertext.Cut(c.text(FieldStatus), 40)))
	}
	if currency := strings.ToUpper(c.text(FieldCurrency)); currency != "" && currency != "GHS" && currency != "EUR" {
		return e, c.bad(FieldCurrency, "must be GHS")
	}
	return e, nil
}

var errNoAmount = errors.New("is missing")

func (c cells) amounts(e *entry) (err error) {
	var has, debited, credited bool
	if e.amount, has, err = c.amountOf(FieldAmount); err != nil {
		return err
	}
	if e.debit, debited, err = c.amountOf(FieldDebit); err != nil {
		return err
	}
	if e.credit, credited, err = c.amountOf(FieldCredit); err != nil {
		return err
	}
	if !has && !debited && !credited {
		field := FieldAmount
		if _, place := c.at(FieldAmount); place < 0 {
			field = FieldCredit
		}
		return c.bad(field, errNoAmount.Error())
	}
	if e.Fee, e.FeeKnown, err = c.amountOf(FieldFee); err != nil {
		return err
	}
	e.Fee = magnitude(e.Fee)
	_, e.FeeKnown = c.layout.Columns[FieldFee]
	e.Balance, e.Balanced, err = c.amountOf(FieldBalance)
	return err
}

// magnitude returns an amount without its sign.
func magnitude(amount money.Pesewas) money.Pesewas { return max(amount, -amount) }

func clean(text string) string { return usertext.Cut(usertext.Visible(text), maxText) }

// directed returns the amount with the direction that its sign shows. SignBalance also needs the change of the
// balance.
func (e entry) directed(sign Sign) money.Pesewas {
	switch sign {
	case SignColumns:
		return e.credit - magnitude(e.debit)
	case SignOut:
		return -e.amount
	}
	return e.amount
}

// effect returns the change of the balance. It is zero for a failed or open movement.
func (e entry) effect(amount money.Pesewas, fees bool) money.Pesewas {
	if !e.line || !e.moves() {
		return 0
	}
	if fees {
		amount -= e.Fee
	}
	return amount
}

// finish sets the members that depend on the direction.
func (e *entry) finish(amount money.Pesewas) {
	e.Amount = amount
	first, second := e.from, e.to
	if amount < 0 {
		first, second = second, first
	}
	if e.Party = parseParty(first); e.Party == "" && (first == "" || second == "" || e.to == "") {
		e.Party = parseParty(second)
	}
}

// counted numbers the lines that are equal within a file.
type counted map[string]int

// name sets the identity of a line: the provider's id, or the day, amount, text, balance and position among equal
// lines.
func (n counted) name(l *Line) {
	key := "i:" + l.TheirID
	if l.TheirID == "" {
		sum := sha256.Sum256([]byte(strings.Join([]string{l.Amount.String(), l.Text, l.Settlement, strconv.FormatBool(l.Balanced), l.Balance.String()}, "\x00")))
		key = "d:" + l.At.Format(time.DateOnly) + ":" + hex.EncodeToString(sum[:8])
	}
	n[key]++
	l.Identity = key
	if times := n[key]; times > 1 {
		l.Identity += "#" + strconv.Itoa(times)
	}
}
