package treasury

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// daysShown is the number of days in the list of days.
const daysShown = 40

// dayLine is a day in the list.
type dayLine struct {
	day    closing.Day
	closed bool
	next   bool   // it is the day to close next
	never  string // reason why the day is never closed; empty for all other days
}

// days lists the newest days, and which of them are closed.
func (ps *Pages) days(v *console.Visit) (console.Answer, error) {
	mode, asset, err := modeOf(v)
	if err != nil {
		return console.Answer{}, err
	}
	last, err := ps.Books.LastClosed(v.Ctx, asset)
	if err != nil {
		return console.Answer{}, err
	}
	today := ps.Books.Today()
	closed, err := ps.Books.ClosedDays(v.Ctx, asset, today-daysShown, today)
	if err != nil {
		return console.Answer{}, err
	}
	began, moved, err := ps.Books.Began(v.Ctx, asset)
	if err != nil {
		return console.Answer{}, err
	}
	var lines []dayLine
	for day := today; day > today-daysShown; day-- {
		line := dayLine{day: day, closed: closed[day], next: last.Revision > 0 && day == last.Day+1 && day < today}
		switch {
		case line.closed || line.next:
		case last.Revision > 0 && day < last.Day: // days close in their order
			line.never = "Before the first close"
		case !moved || day < began:
			line.never = "Before the first movement"
		}
		lines = append(lines, line)
	}
	columns := []console.Column[dayLine]{
		console.Text("Day", "", func(d dayLine) string { return d.day.Begin().Format("Monday 2 January 2006") }),
		console.Shown("Status", func(d dayLine) templ.Component {
			switch {
			case d.closed:
				return page.Mark(page.Badge{Tone: page.Good, Word: "Closed"})
			case d.next:
				return page.Mark(page.Badge{Tone: page.Open, Word: "To close next"})
			case d.never != "":
				return page.Text(d.never)
			}
			return page.Mark(page.Badge{Word: "Open"})
		}),
	}
	l := page.List{Title: "Days", Lead: "Days are closed in order, each by two people. Times are in Accra's time zone (UTC). " + waiting(last, ps.Books.Behind(last)), Filters: []page.Field{modeField(mode)}, Clear: "/ops/days",
		Actions: []page.Link{{Href: "/ops/days/month?" + query("mode", string(mode), "day", today.String()), Text: "This month"},
			{Href: "/ops/days/month?" + query("mode", string(mode), "day", closing.DayOf(firstOfMonth(today).AddDate(0, 0, -1)).String()), Text: "Last month"}},
		Grid: console.Grid(columns, lines, func(d dayLine) string { return dayPath(mode, d.day) })}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// waiting describes the lag of the close in a sentence.
func waiting(last closing.Closed, behind int) string {
	switch {
	case last.Revision == 0:
		return "No day is closed yet."
	case behind == 0:
		return fmt.Sprintf("Closed up to %s. No day remains to be closed.", last.Day)
	case behind == 1:
		return fmt.Sprintf("Closed up to %s. 1 day remains to be closed.", last.Day)
	}
	return fmt.Sprintf("Closed up to %s. %d days remain to be closed.", last.Day, behind)
}

func firstOfMonth(d closing.Day) time.Time {
	t := d.Begin()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func dayPath(mode tenant.Mode, day closing.Day) string {
	return "/ops/days/day?" + query("mode", string(mode), "day", day.String())
}

// dayView is the data of the page of a day.
type dayView struct {
	closing.Figures
	mode                                          tenant.Mode
	closable                                      string // why the day cannot be closed; empty: it can
	accounts, moves, exceptions, reopenings, late page.Grid
	actions                                       []page.Link
	unexplained, missing                          int
}

func (d dayView) title() string { return d.Day.Begin().Format("Monday 2 January 2006") }

// status describes the state of the day in a sentence.
func (d dayView) status() string {
	of := words.Mode(d.mode) + " money. "
	if d.Closed.Revision > 0 {
		return of + "Closed at " + page.When(d.Closed.At) + "."
	}
	return of + "Open. These are the current figures."
}

// day shows the figures of a day by account, and the actions on it.
func (ps *Pages) day(v *console.Visit) (console.Answer, error) {
	mode, asset, err := modeOf(v)
	if err != nil {
		return console.Answer{}, err
	}
	day, err := ps.dayParam(v, "day", ps.Books.Today()-1)
	if err != nil {
		return console.Answer{}, err
	}
	f, err := ps.Books.Figures(v.Ctx, asset, day)
	if err != nil {
		return console.Answer{}, err
	}
	d := dayView{Figures: f, mode: mode}
	if err := ps.Books.Closable(f); err != nil {
		d.closable = reasonOf(err)
	}
	for _, a := range f.Accounts {
		if a.Theirs == nil {
			d.missing++
		}
		if a.Unexplained() != 0 {
			d.unexplained++
		}
	}
	d.accounts = console.Grid(accountColumns, f.Accounts, func(a closing.Account) string { return rowsOf(mode, day, day, a.ID) })
	d.moves = console.Grid(moveColumns, movesOf(f.Accounts), func(m accountMove) string { return rowsOf(mode, m.Day, m.Day, m.account.ID) })
	d.exceptions = console.Grid(exceptionColumns, exceptionsOf(f.Accounts), nil)
	d.late = console.Grid(lateColumns, f.LateLines, func(l reconcile.LateLine) string { return "/ops/statements/" + l.Statement })
	d.reopenings = console.Grid(reopenedColumns, f.Reopened, func(r closing.Reopened) string { return "/ops/acts/" + r.Request })
	of := query("mode", string(mode), "day", day.String())
	switch {
	case f.Closed.Revision > 0:
		d.actions = append([]page.Link{{Href: "/ops/acts/" + f.Closed.Request, Text: "See signatures"}}, v.Actions(roles.ChangeTreasury, page.Link{Href: "/ops/days/reopen?" + of, Text: "Reopen day"})...)
	default:
		d.actions = v.Actions(roles.ChangeTreasury, page.Link{Href: "/ops/days/close?" + of, Text: "Close day"},
			page.Link{Href: "/ops/days/statement?" + of + "&" + query("balances", blanks(f.Accounts)), Text: "Enter statements"}, page.Link{Href: "/ops/days/exception?" + of, Text: "Add exception"})
	}
	return console.Answer{Title: d.title(), Body: dayPage(d)}, nil
}

// reasonOf returns the reason why a day cannot be closed.
func reasonOf(err error) string {
	p := problem.From(err)
	if why := p.Fields["day"]; len(why) > 0 {
		return "The day " + why[0] + "."
	}
	return p.Message + "."
}

// blanks lists the accounts of a day that have no statement yet, as a form.
func blanks(accounts []closing.Account) string {
	var list []string
	for _, a := range accounts {
		if a.Theirs == nil && len(list) < 50 {
			list = append(list, string(a.ID)+"=")
		}
	}
	return strings.Join(list, " ")
}

var accountColumns = []console.Column[closing.Account]{
	console.Text("Account", "", func(a closing.Account) string { return accountWord(a.ID) }),
	console.Money("Opening", "", func(a closing.Account) money.Pesewas { return a.Opening }).Laid(console.Minor),
	console.Money("In", "", func(a closing.Account) money.Pesewas { return a.In }).Laid(console.Minor),
	console.Money("Out", "", func(a closing.Account) money.Pesewas { return a.Out }).Laid(console.Minor),
	console.Money("From closed days", "", func(a closing.Account) money.Pesewas { return a.Late }).Laid(console.Minor),
	console.Money("Closing", "", func(a closing.Account) money.Pesewas { return a.Closing }),
	console.Shown("Statement", func(a closing.Account) templ.Component {
		if a.Theirs == nil {
			return page.Text("not given")
		}
		return page.Money(*a.Theirs)
	}).Laid(page.Display{Right: true, Minor: true}),
	console.Money("Explained", "", func(a closing.Account) money.Pesewas { return a.Explained }).Laid(console.Minor),
	console.Shown("Difference", func(a closing.Account) templ.Component {
		switch {
		case a.Theirs == nil:
			return page.Mark(page.Badge{Tone: page.Open, Word: "No statement"})
		case a.Unexplained() != 0:
			return page.Mark(page.Badge{Tone: page.Bad, Word: "Unexplained " + page.Cedis(a.Unexplained())})
		case a.Difference() != 0:
			return page.Mark(page.Badge{Tone: page.Good, Word: "Explained " + page.Cedis(a.Difference())})
		}
		return page.Mark(page.Badge{Tone: page.Good, Word: "None"})
	}),
}

// accountMove is a movement with its account.
type accountMove struct {
	closing.Move
	account closing.Account
}

func movesOf(accounts []closing.Account) (list []accountMove) {
	for _, a := range accounts {
		for _, m := range a.Moves {
			list = append(list, accountMove{m, a})
		}
	}
	return list
}

var moveColumns = []console.Column[accountMove]{
	console.Text("Account", "", func(m accountMove) string { return accountWord(m.account.ID) }),
	console.Text("Movement", "", func(m accountMove) string { return words.MovementWord(m.Kind) }).Laid(console.Under),
	console.Text("Dated", "", func(m accountMove) string { return m.Day.String() }).Laid(console.Minor),
	console.Count("Transfers", "", func(m accountMove) int64 { return m.Count }).Laid(console.Minor),
	console.Money("In", "", func(m accountMove) money.Pesewas { return m.In }),
	console.Money("Out", "", func(m accountMove) money.Pesewas { return m.Out }),
}

// accountException is an exception with its account.
type accountException struct{ closing.Exception }

func exceptionsOf(accounts []closing.Account) (list []accountException) {
	for _, a := range accounts {
		for _, x := range a.Exceptions {
			list = append(list, accountException{x})
		}
	}
	return list
}

var exceptionColumns = []console.Column[accountException]{
	console.Text("Account", "", func(x accountException) string { return accountWord(x.Account) }),
	console.Text("Explanation", "", func(x accountException) string { return x.Text }),
	console.Text("By", "", func(x accountException) string { return x.Actor }).Laid(console.Minor),
	console.Money("Amount", "", func(x accountException) money.Pesewas { return x.Amount }),
}

var lateColumns = []console.Column[reconcile.LateLine]{
	console.Text("Account", "", func(l reconcile.LateLine) string { return accountWord(l.Account) }),
	console.Time("Time", "", func(l reconcile.LateLine) time.Time { return l.At }),
	console.ID("Provider's id", "", func(l reconcile.LateLine) string { return l.TheirID }).Laid(console.Minor),
	console.Money("Amount", "", func(l reconcile.LateLine) money.Pesewas { return l.Amount }),
}

var reopenedColumns = []console.Column[closing.Reopened]{
	console.Time("Reopened", "", func(r closing.Reopened) time.Time { return r.At }),
	console.Text("Reason", "", func(r closing.Reopened) string { return r.Reason }),
	console.Text("Requested by", "", func(r closing.Reopened) string { return r.Actor }),
}

// month shows the totals of the closed days of a month, and whether each account ties.
func (ps *Pages) month(v *console.Visit) (console.Answer, error) {
	mode, asset, err := modeOf(v)
	if err != nil {
		return console.Answer{}, err
	}
	day, err := ps.dayParam(v, "day", ps.Books.Today())
	if err != nil {
		return console.Answer{}, err
	}
	m, err := ps.Books.MonthOf(v.Ctx, asset, day)
	if err != nil {
		return console.Answer{}, err
	}
	title := m.First.Begin().Format("January 2006")
	grid := console.Grid(monthColumns, m.Accounts, func(a closing.MonthAccount) string { return rowsOf(mode, m.First, m.Last, a.ID) })
	lead := fmt.Sprintf("%s money. %d of %d days are closed.", words.Mode(mode), m.Closed, m.Days())
	return console.Answer{Title: title, Body: monthPage(title, lead, m, grid)}, nil
}

var monthColumns = []console.Column[closing.MonthAccount]{
	console.Text("Account", "", func(a closing.MonthAccount) string { return accountWord(a.ID) }),
	console.Money("Opening", "", func(a closing.MonthAccount) money.Pesewas { return a.Opening }).Laid(console.Minor),
	console.Money("In", "", func(a closing.MonthAccount) money.Pesewas { return a.In }).Laid(console.Minor),
	console.Money("Out", "", func(a closing.MonthAccount) money.Pesewas { return a.Out }).Laid(console.Minor),
	console.Money("From closed days", "", func(a closing.MonthAccount) money.Pesewas { return a.Late }).Laid(console.Minor),
	console.Money("Closing", "", func(a closing.MonthAccount) money.Pesewas { return a.Closing }),
	console.Shown("Statement", func(a closing.MonthAccount) templ.Component {
		if a.Theirs == nil {
			return page.Text("not given")
		}
		return page.Money(*a.Theirs)
	}).Laid(page.Display{Right: true, Minor: true}),
	console.Shown("Ties", func(a closing.MonthAccount) templ.Component {
		switch {
		case a.Off() != 0 || a.Gaps != 0:
			return page.Mark(page.Badge{Tone: page.Bad, Word: "Movements off by " + page.Cedis(a.Off())})
		case a.Since() != 0:
			return page.Mark(page.Badge{Tone: page.Bad, Word: "Changed by " + page.Cedis(a.Since()) + " since the close"})
		case a.Theirs == nil:
			return page.Mark(page.Badge{Tone: page.Open, Word: "No statement"})
		case a.Unexplained() != 0:
			return page.Mark(page.Badge{Tone: page.Bad, Word: "Unexplained " + page.Cedis(a.Unexplained())})
		}
		return page.Mark(page.Badge{Tone: page.Good, Word: "Ties"})
	}),
}
