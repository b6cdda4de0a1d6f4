package records

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/statement"
)

// statementRows is the number of movements on one page of a statement.
const statementRows = 1000

// StatementMost is the maximum number of movements in the file of a statement.
const StatementMost = 100_000

// statementEver is the maximum number of movements in the period of a page.
const statementEver = 5_000_000

// ofCredits is the value of the parameter balance for SMS credits.
const ofCredits = "sms"

// errStatement is returned for the file of a statement that does not agree with the ledger.
var errStatement = problem.New(problem.Internal, "statement_wrong", "This statement does not agree with the ledger, so it cannot be exported. The operators of this server were alerted. Contact them before you rely on these figures.")

// statementOf returns the statement of the address. The default is the wallet in this month.
func (ps *Pages) statementOf(v *console.Visit, most int64) (s statement.Statement, err error) {
	t, err := v.Subject()
	if err != nil {
		return s, err
	}
	from, to, err := v.Days()
	if err != nil {
		return s, err
	}
	which := v.Param("balance")
	if which != "" && which != ofCredits {
		return s, problem.Field("balance", "must be empty (the wallet) or "+ofCredits)
	}
	if from.IsZero() {
		until := to
		if until.IsZero() {
			until = v.Now().UTC()
		}
		from = time.Date(until.Year(), until.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	end := v.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	if !to.IsZero() {
		end = to.AddDate(0, 0, 1)
	}
	if !from.Before(end) {
		return s, problem.Field("to", "must not be before the first day")
	}
	if s, err = ps.Statements.Open(v.Ctx, t, which == ofCredits, from, end); err != nil {
		return s, err
	}
	if s.Total() > most {
		return s, problem.Field("from", fmt.Sprintf("and the last day: the period must have at most %s movements, and has %s. Choose a shorter period",
			page.Count(most), page.Count(s.Total())))
	}
	return s, nil
}

// Statement shows the movements of a wallet or of SMS credits in a period, with totals and the balance after each.
func (ps *Pages) Statement(v *console.Visit) (console.Answer, error) {
	s, err := ps.statementOf(v, statementEver)
	if err != nil {
		return console.Answer{}, err
	}
	sum, err := ps.Statements.Overview(v.Ctx, s)
	if err != nil {
		return console.Answer{}, err
	}
	number, err := v.PageNumber(statementEver / statementRows)
	if err != nil {
		return console.Answer{}, err
	}
	skip := int64(number-1) * statementRows
	entries, err := ps.Statements.Page(v.Ctx, s, skip, statementRows)
	if err != nil {
		return console.Answer{}, err
	}
	base := v.R.URL.Path
	shown := statementView{Statement: s, Summary: sum, movements: movements(v, s, entries),
		narrowing: page.Narrowing{Fields: statementFilters(v, s), Submit: "Show statement", Active: v.Narrowed("balance", "from", "to"), Clear: base}}
	if sum.Problem == "" && s.Total() <= StatementMost && v.Can(roles.ExportPayments) {
		shown.files = console.FileLinks(base, v.FilterQuery("balance", "from", "to"))
	}
	if number > 1 {
		shown.prev = v.Query("page", strconv.Itoa(number-1))
	}
	if skip+statementRows < s.Total() {
		shown.next = v.Query("page", strconv.Itoa(number+1))
	}
	if len(entries) > 0 {
		shown.shown = fmt.Sprintf("%s to %s of %s", page.Count(skip+1), page.Count(skip+int64(len(entries))), page.Count(s.Total()))
	}
	return console.Answer{Title: "Statement", Body: statementPage(shown)}, nil
}

// statementView is the data of the page of a statement.
type statementView struct {
	statement.Statement
	statement.Summary
	movements         page.Grid
	narrowing         page.Narrowing
	prev, next, shown string
	files             page.Files
}

// period returns the days of the statement, both included.
func (s statementView) period() string {
	const day = "2 January 2006"
	return s.From.Format(day) + " to " + s.To.AddDate(0, 0, -1).Format(day)
}

func (s statementView) subject() string {
	if s.Asset.Credits() {
		return "SMS credits"
	}
	return "Wallet"
}

func (s statementView) amount(n int64) templ.Component {
	if s.Asset.Credits() {
		return page.Text(page.Count(n))
	}
	return page.Money(money.Pesewas(n))
}

// balances returns the opening and closing balances, and the sums between them.
func (s statementView) balances() []page.Fact {
	return []page.Fact{{Name: "Opening balance", Value: s.amount(s.Opening)}, {Name: "In", Value: s.amount(s.In)}, {Name: "Out", Value: s.amount(s.Out)},
		{Name: "Closing balance", Value: s.amount(s.Closing)}}
}

// fees returns the fees of the period.
func (s statementView) fees() []page.Fact {
	return []page.Fact{{Name: "Charged to the wallet", Value: page.Money(s.Charged)}, {Name: "Returned with failed payments", Value: page.Money(s.Returned)},
		{Name: "Deducted from collections", Value: page.Money(s.Deducted)}, {Name: "Fees of the period", Value: page.Money(s.Fees())}}
}

// totals returns the totals by type and channel as a table.
func (s statementView) totals() page.Grid {
	type total = statement.Total
	return console.Grid([]console.Column[total]{
		console.Text("Type", "", func(t total) string { return t.Type.Title() }),
		console.Text("Channel", "", func(t total) string { return words.Channel(t.Channel) }),
		console.Count("Movements", "", func(t total) int64 { return t.Count }).Laid(console.Minor),
		console.Shown("In", func(t total) templ.Component { return s.amount(t.In) }).Laid(console.Right),
		console.Shown("Out", func(t total) templ.Component { return s.amount(t.Out) }).Laid(console.Right),
	}, s.Totals, nil)
}

// movements returns movements as a table. The row of a payment leads to the payment.
func movements(v *console.Visit, s statement.Statement, entries []statement.Entry) page.Grid {
	type entry = statement.Entry
	view := statementView{Statement: s}
	side := func(n int64) templ.Component {
		if n <= 0 {
			return templ.NopComponent
		}
		return view.amount(n)
	}
	columns := []console.Column[entry]{
		console.Time("Date", "", func(e entry) time.Time { return e.At }),
		console.Text("Type", "", func(e entry) string { return e.Type.Title() }),
		console.ID("Reference", "", func(e entry) string { return masked(v, e).Reference }).Laid(console.Minor),
		console.Text("Other party", "", func(e entry) string { return party(masked(v, e)) }).Laid(console.Wide),
		console.Shown("In", func(e entry) templ.Component { return side(e.Change) }).Laid(console.Right),
		console.Shown("Out", func(e entry) templ.Component { return side(-e.Change) }).Laid(console.Right),
		console.Shown("Balance", func(e entry) templ.Component { return view.amount(e.Balance) }).Laid(console.Right),
	}
	return console.Grid(columns, entries, func(e entry) string {
		if e.Channel == "" || !v.Can(roles.ReadPayments) {
			return ""
		}
		return v.Base() + "/payments/" + e.Subject
	})
}

// party returns the name and the account of the other party.
func party(e statement.Entry) string {
	if e.Account == "" || e.Name == "" {
		return e.Name + e.Account
	}
	return e.Name + ", " + e.Account
}

// masked returns a movement, masked for visitors who may not see numbers.
func masked(v *console.Visit, e statement.Entry) statement.Entry {
	if v.Can(seeNumbers) {
		return e
	}
	e.Reference = ReferenceOf(v, book.Payment{Reference: e.Reference, Account: e.Account})
	e.Account = Account(v, e.Account)
	if e.Type != statement.TransferIn && e.Type != statement.TransferOut { // accounts of this installation, not persons
		e.Name = ""
	}
	return e
}

func statementFilters(v *console.Visit, s statement.Statement) []page.Field {
	fields := v.DayFields()
	fields[0].Value, fields[1].Value = s.From.Format(console.DayFormat), s.To.AddDate(0, 0, -1).Format(console.DayFormat)
	return append([]page.Field{{Name: "balance", Label: "Balance", Value: v.Param("balance"), Options: []page.Option{{Text: "Wallet"}, {Value: ofCredits, Text: "SMS credits"}}}}, fields...)
}

// StatementFile returns a statement as a file: the opening balance, each movement, and the closing balance.
func (ps *Pages) StatementFile(v *console.Visit) (console.Answer, error) {
	s, err := ps.statementOf(v, StatementMost)
	if err != nil {
		return console.Answer{}, err
	}
	sum, err := ps.Statements.Summarize(v.Ctx, s)
	if err != nil {
		return console.Answer{}, err
	}
	if sum.Problem != "" {
		return console.Answer{}, errStatement
	}
	name := "statement"
	if s.Asset.Credits() {
		name = "statement-sms"
	}
	return console.ExportedWhole(v, v.FileName(name, s.Tenant.ID, s.From, s.To.AddDate(0, 0, -1)), s.Columns(), func(each func(statement.Entry) error) error {
		if err := each(statement.Entry{At: s.From, Type: statement.Opening, Balance: s.Opening}); err != nil {
			return err
		}
		if err := ps.Statements.Each(v.Ctx, s, func(e statement.Entry) error { return each(masked(v, e)) }); err != nil {
			return err
		}
		return each(statement.Entry{At: s.To.Add(-time.Second), Type: statement.Closing, Balance: s.Closing})
	}), nil
}

// StatementRoutes are the statement of an account and its file, below base.
func (ps *Pages) StatementRoutes(base string) []console.Route {
	filters := []console.Input{{Name: "balance", Max: 6}, {Name: "from", Max: 10}, {Name: "to", Max: 10}, {Name: "page", Max: 9}}
	return []console.Route{
		{Method: http.MethodGet, Path: base + "/statement", Permission: roles.ReadBalances, Also: roles.ReadPayments, Inputs: filters, Handle: ps.Statement},
		{Method: http.MethodGet, Path: base + "/statement.csv", Permission: roles.ReadBalances, Also: roles.ExportPayments, Inputs: filters, File: true, Handle: ps.StatementFile},
	}
}
