package treasury

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// modeOf returns the mode of the address. In development the default is test money.
func modeOf(v *console.Visit) (tenant.Mode, ledger.Asset, error) {
	usual := tenant.Live
	if v.Development() {
		usual = tenant.Test
	}
	mode := tenant.Mode(cmp.Or(v.Param("mode"), string(usual)))
	if mode != tenant.Live && mode != tenant.Test {
		return mode, "", problem.Field("mode", "must be live or test")
	}
	return mode, tenant.Tenant{Mode: mode}.Money(), nil
}

// dayParam reads the day of the address.
func (ps *Pages) dayParam(v *console.Visit, name string, usual closing.Day) (closing.Day, error) {
	if v.Param(name) == "" {
		return usual, nil
	}
	return closing.ParseDay(name, v.Param(name))
}

// modeField is the choice of the mode.
func modeField(mode tenant.Mode) page.Field {
	return page.Field{Name: "mode", Label: "Money", Value: string(mode), Options: []page.Option{{Value: string(tenant.Live), Text: "Live"}, {Value: string(tenant.Test), Text: "Test"}}}
}

func dateField(name, label string, day closing.Day) page.Field {
	return page.Field{Name: name, Label: label, Type: "date", Value: day.String(), Max: 10}
}

// query writes the parameters of an address.
func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}

// rowsOf returns the address of the transfers of an account on the days from first to last.
func rowsOf(mode tenant.Mode, first, last closing.Day, account ledger.AccountID) string {
	return "/ops/journal?" + query("mode", string(mode), "from", first.String(), "to", last.String(), "account", string(account))
}

// fundsOf reads the comparison of the day in the address. The default is the current day.
func (ps *Pages) fundsOf(v *console.Visit) (tenant.Mode, closing.Funds, error) {
	mode, asset, err := modeOf(v)
	if err != nil {
		return mode, closing.Funds{}, err
	}
	day, err := ps.dayParam(v, "day", ps.Books.Today())
	if err != nil {
		return mode, closing.Funds{}, err
	}
	f, err := ps.Books.Funds(v.Ctx, asset, day)
	return mode, f, err
}

// fundsView is the data of the page of customer funds.
type fundsView struct {
	closing.Funds
	filters         []page.Field
	files           page.Files
	owed, held, own page.Grid
}

// when describes the time of the figures.
func (f fundsView) when() string {
	if f.Running {
		return "As of now, " + page.When(f.At) + "."
	}
	return "At the end of " + f.Day.Begin().Format("2 January 2006") + ", Accra's time."
}

func (f fundsView) sums() []page.Fact {
	result := page.Fact{Name: "Surplus", Value: page.Money(f.Surplus())}
	if f.Surplus() < 0 {
		result = page.Fact{Name: "Shortfall", Value: page.Money(-f.Surplus())}
	}
	return []page.Fact{{Name: "Owed to customers", Value: page.Money(f.Funds.Owed)}, {Name: "Held", Value: page.Money(f.Funds.Held)}, result}
}

// funds compares the money that we owe to customers with the money that we hold.
func (ps *Pages) funds(v *console.Visit) (console.Answer, error) {
	mode, f, err := ps.fundsOf(v)
	if err != nil {
		return console.Answer{}, err
	}
	columns := []console.Column[closing.FundsLine]{
		console.Text("Account", "", func(l closing.FundsLine) string { return accountWord(l.Account) }),
		console.Money("Amount", "", func(l closing.FundsLine) money.Pesewas { return l.Amount }),
	}
	href := func(l closing.FundsLine) string { return rowsOf(mode, f.Day, f.Day, l.Account) }
	shown := fundsView{Funds: f, filters: []page.Field{modeField(mode), dateField("day", "Day", f.Day)},
		owed: console.Grid(columns, f.Of(closing.Owed), href), held: console.Grid(columns, f.Of(closing.Held), href), own: console.Grid(columns, f.Of(closing.Own), href)}
	if v.Can(roles.ExportPayments) {
		shown.files = console.FileLinks("/ops/funds", query("mode", string(mode), "day", f.Day.String()))
	}
	return console.Answer{Title: "Customer funds", Body: fundsPage(shown)}, nil
}

// fundsFile returns the comparison as a file.
func (ps *Pages) fundsFile(v *console.Visit) (console.Answer, error) {
	mode, f, err := ps.fundsOf(v)
	return console.ExportedWhole(v, "customer-funds-"+string(mode)+"-"+f.Day.String(), closing.FundsColumns, func(each func(closing.FundsLine) error) error {
		for _, l := range f.Rows() {
			if err := each(l); err != nil {
				return err
			}
		}
		return nil
	}), err
}

// accountWord names an account, or a class of accounts.
func accountWord(id ledger.AccountID) string {
	switch id {
	case "wallet:*":
		return "Wallets of customers"
	case "reserve/*":
		return "Reserves of batches"
	case "receivable/*":
		return "Debts of customers"
	case ledger.Clearing:
		return "Clearing: accepted, not settled"
	case ledger.Funding:
		return "Unassigned funding"
	case ledger.Transit:
		return "In transit"
	}
	return words.AccountWord(id)
}

// period returns the days of the address. The default is the current month.
func (ps *Pages) period(v *console.Visit) (mode tenant.Mode, p closing.Period, err error) {
	mode, p.Asset, err = modeOf(v)
	if err != nil {
		return mode, p, err
	}
	today := ps.Books.Today().Begin()
	if p.First, err = ps.dayParam(v, "from", closing.DayOf(time.Date(today.Year(), today.Month(), 1, 0, 0, 0, 0, time.UTC))); err != nil {
		return mode, p, err
	}
	if p.Last, err = ps.dayParam(v, "to", max(p.First, ps.Books.Today())); err != nil {
		return mode, p, err
	}
	return mode, p, p.Check()
}

// cursor names the last transfer of a page.
func cursor(t ledger.Transfer) string {
	return fmt.Sprintf("%d~%s~%s", t.At.UnixMicro(), t.Leg, t.Subject)
}

// maxCursor is the longest cursor, in characters.
const maxCursor = 200

func readCursor(text string) (*ledger.Transfer, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.SplitN(text, "~", 3)
	if len(parts) == 3 {
		if at, err := strconv.ParseInt(parts[0], 10, 64); err == nil && at > 0 && at < 1<<55 {
			return &ledger.Transfer{At: time.UnixMicro(at).UTC(), Leg: parts[1], Subject: parts[2]}, nil
		}
	}
	return nil, problem.Field("after", "must come from the link to the next page")
}

// journal lists the transfers of the books in the order of time, of one account or of all.
func (ps *Pages) journal(v *console.Visit) (console.Answer, error) {
	mode, p, err := ps.period(v)
	if err != nil {
		return console.Answer{}, err
	}
	after, err := readCursor(v.Param("after"))
	if err != nil {
		return console.Answer{}, err
	}
	list, err := ps.Books.Rows(v.Ctx, p, ledger.AccountID(v.Param("account")), after, console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	codes, err := ps.Books.Codes(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Journal", Lead: "The transfers of the ledger in the order of time. Each debits one account and credits another.", Active: v.Narrowed("account", "from", "to"), Clear: "/ops/journal?" + query("mode", string(mode)),
		Filters: []page.Field{modeField(mode), dateField("from", "From", p.First), dateField("to", "To", p.Last), {Name: "account", Label: "Account", Value: v.Param("account"), Max: 120}},
		Actions: []page.Link{{Href: "/ops/journal/codes?" + query("mode", string(mode)), Text: "Accountant's codes"}}, Empty: page.Empty{Title: "No transfers", Text: "Nothing moved on these days."}}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks("/ops/journal", query("mode", string(mode), "from", p.First.String(), "to", p.Last.String()))
	}
	list = console.Keyed(v, &l, "after", list, cursor)
	l.Grid = console.Grid(journalColumns(codes), list, nil)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

func journalColumns(codes closing.Codes) []console.Column[ledger.Transfer] {
	type transfer = ledger.Transfer
	return []console.Column[transfer]{
		console.Time("Date", "", func(t transfer) time.Time { return t.At }),
		console.Text("Kind", "", func(t transfer) string { return words.MovementWord(t.Kind) }).Laid(console.Under),
		console.Text("Debit", "", func(t transfer) string { return accountWord(t.From) }).Laid(console.Minor),
		console.Text("Credit", "", func(t transfer) string { return accountWord(t.To) }).Laid(console.Minor),
		console.Text("Codes", "", func(t transfer) string { return codes.Of(t.From) + " → " + codes.Of(t.To) }).Laid(console.Under),
		console.ID("Reference", "", func(t transfer) string { return t.Subject }).Laid(console.Minor),
		console.Money("Amount", "", func(t transfer) money.Pesewas { return money.Pesewas(t.Amount) }),
	}
}

// journalFile returns the journal of a period as a file: two lines for each transfer.
func (ps *Pages) journalFile(v *console.Visit) (console.Answer, error) {
	mode, p, err := ps.period(v)
	if err != nil {
		return console.Answer{}, err
	}
	if strings.HasSuffix(v.Route.Path, ".xlsx") {
		n, err := ps.Books.Size(v.Ctx, p)
		if err != nil {
			return console.Answer{}, err
		}
		if n > closing.MostInWorkbook {
			return console.Answer{}, problem.Field("to", fmt.Sprintf("and the first day: the period has %s lines, and a workbook can hold %s. Export CSV, or choose fewer days", page.Count(n), page.Count(int64(closing.MostInWorkbook))))
		}
	}
	name := fmt.Sprintf("journal-%s-%s-to-%s", mode, p.First, p.Last)
	return console.ExportedWhole(v, name, closing.LineColumns, func(each func(closing.Line) error) error { return ps.Books.Each(v.Ctx, p, each) }), nil
}

// codes lists the accounts of the books with their totals and the accountant's codes.
func (ps *Pages) codes(v *console.Visit) (console.Answer, error) {
	mode, p, err := ps.period(v)
	if err != nil {
		return console.Answer{}, err
	}
	list, err := ps.Books.Totals(v.Ctx, p)
	if err != nil {
		return console.Answer{}, err
	}
	var href func(closing.Total) string
	if v.Can(roles.ChangeTreasury) {
		href = func(t closing.Total) string {
			code := t.Code
			if code == string(t.Account) {
				code = ""
			}
			return "/ops/journal/code?" + query("account", string(t.Account), "accountant_code", code)
		}
	}
	l := page.List{Title: "Accountant's codes", Lead: "Each account with its code in the journal and its totals. An account without a code appears under its own name.",
		Filters: []page.Field{modeField(mode), dateField("from", "From", p.First), dateField("to", "To", p.Last)}, Clear: "/ops/journal/codes", Active: v.Narrowed("from", "to"),
		Grid: console.Grid(totalColumns, list, href), Empty: page.Empty{Title: "No accounts", Text: "Nothing has been booked yet."}}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

var totalColumns = []console.Column[closing.Total]{
	console.Text("Account", "", func(t closing.Total) string { return accountWord(t.Account) }),
	console.Text("Code", "", func(t closing.Total) string { return t.Code }),
	console.Money("Opening", "", func(t closing.Total) money.Pesewas { return t.Opening }).Laid(console.Minor),
	console.Money("Debits", "", func(t closing.Total) money.Pesewas { return t.Debit }),
	console.Money("Credits", "", func(t closing.Total) money.Pesewas { return t.Credit }),
	console.Money("Closing", "", func(t closing.Total) money.Pesewas { return t.Closing }),
	console.Shown("Ties", func(t closing.Total) templ.Component { return tied(t.Off()) }),
}

// tied shows that figures tie, or by how much they do not.
func tied(off money.Pesewas) templ.Component {
	if off == 0 {
		return page.Mark(page.Badge{Tone: page.Good, Word: "Ties"})
	}
	return page.Mark(page.Badge{Tone: page.Bad, Word: "Off by " + ledger.GHS.Text(int64(off))})
}
