package statements

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
)

// sourceTitle names a source by its id.
func sourceTitle(id string) string {
	s, err := reconcile.ParseSource(id)
	if err != nil {
		return id
	}
	return s.Title()
}

// period writes the days of a statement.
func period(s reconcile.Statement) string {
	from, to := s.First.Format("2 Jan 2006"), s.Last.Format("2 Jan 2006")
	if from == to {
		return from
	}
	return from + " to " + to
}

var statementColumns = []console.Column[reconcile.Statement]{
	console.Time("Imported", "", func(s reconcile.Statement) time.Time { return s.UploadedAt }),
	console.Text("Account", "", func(s reconcile.Statement) string { return sourceTitle(s.Source) }).Laid(console.Link),
	console.Text("Period", "", period).Laid(console.Under),
	console.Count("Lines", "", func(s reconcile.Statement) int64 { return int64(s.Lines) }).Laid(console.Minor),
	console.Text("By", "", func(s reconcile.Statement) string { return s.UploaderName }).Laid(console.Wide),
}

// list shows all statements.
func (ps *Pages) list(v *console.Visit) (console.Answer, error) {
	list, err := ps.Reconcile.Statements(v.Ctx, v.Param("before"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Statements", Lead: "Files of providers and banks. Their lines are compared with our payments.",
		Actions: v.Actions(roles.ImportStatements, page.Link{Href: base + "/new", Text: "Import a statement"}),
		Empty:   page.Empty{Title: "No statements", Text: "Import the file of a provider's portal or of a bank."}}
	list = console.Keyed(v, &l, "before", list, func(s reconcile.Statement) string { return s.ID })
	l.Grid = console.Grid(statementColumns, list, func(s reconcile.Statement) string { return base + "/" + s.ID })
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// statusBadges show the states of lines.
var statusBadges = map[reconcile.Status]page.Badge{
	reconcile.StatusSuccess: {Tone: page.Good, Word: "Successful"}, reconcile.StatusFailed: {Tone: page.Bad, Word: "Failed"}, reconcile.StatusPending: {Tone: page.Open, Word: "Pending"},
}

var lineColumns = []console.Column[reconcile.Line]{
	console.Count("Row", "", func(l reconcile.Line) int64 { return int64(l.Row) }),
	console.Time("Time", "", func(l reconcile.Line) time.Time { return l.At }),
	console.ID("Provider's id", "", func(l reconcile.Line) string { return l.TheirID }).Laid(console.Minor),
	console.Text("Number", "", func(l reconcile.Line) string { return page.Masked(l.Party) }).Laid(console.Minor),
	console.Shown("State", func(l reconcile.Line) templ.Component { return page.Mark(statusBadges[l.Status]) }),
	console.Money("Amount", "", func(l reconcile.Line) money.Pesewas { return l.Amount }),
	console.Money("Fee", "", func(l reconcile.Line) money.Pesewas { return l.Fee }).Laid(console.Minor),
}

// statement shows a file and the lines that it added.
func (ps *Pages) statement(v *console.Visit) (console.Answer, error) {
	s, err := ps.Reconcile.Statement(v.Ctx, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	after := 0
	if text := v.Param("after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return console.Answer{}, problem.Field("after", "must be the number of a row")
		}
	}
	lines, err := ps.Reconcile.LinesOf(v.Ctx, s.ID, after, console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Lines", Lead: "New and changed lines of this file.", Empty: page.Empty{Title: "No lines", Text: "All lines of this file are in earlier files."}}
	lines = console.Keyed(v, &l, "after", lines, func(l reconcile.Line) string { return strconv.Itoa(l.Row) })
	matches, err := ps.Reconcile.MatchesOf(v.Ctx, lines)
	if err != nil {
		return console.Answer{}, err
	}
	l.Grid = console.Grid(append(slices.Clone(lineColumns), console.Text("Matched by", "", func(l reconcile.Line) string {
		if m, is := matches[l.ID]; is {
			return ruleTexts[m.Rule]
		}
		return "none"
	})), lines, nil)
	body := page.Join(page.Head(sourceTitle(s.Source), ""), page.Panel("The file", page.Facts(statementFacts(s))), page.Listing(l), page.Anchor(base, "All statements"))
	return console.Answer{Title: "Statement of " + sourceTitle(s.Source), Body: body}, nil
}

func statementFacts(s reconcile.Statement) []page.Fact {
	state := page.Mark(page.Badge{Tone: page.Good, Word: "Complete"})
	if !s.Done {
		state = page.Mark(page.Badge{Tone: page.Bad, Word: "Incomplete: import the file again"})
	}
	list := []page.Fact{
		{Name: "State", Value: state},
		{Name: "Name", Value: page.Text(s.FileName)},
		{Name: "Period", Value: page.Text(period(s))},
		{Name: "Lines", Value: page.Text(fmt.Sprintf("%d: %d new, %d changed", s.Lines, s.Added, s.Changed))},
	}
	if s.Chains {
		list = append(list, page.Fact{Name: "Opening balance", Value: page.Money(s.Opening)}, page.Fact{Name: "Closing balance", Value: page.Money(s.Closing)})
	} else {
		list = append(list, page.Fact{Name: "Balances", Value: page.Text("The balances in the file do not follow from each other, so they cannot show whether a line is missing.")})
	}
	return append(list, page.Fact{Name: "Imported by", Value: page.Text(s.UploaderName)}, page.Fact{Name: "Imported", Value: page.Time(s.UploadedAt)}, page.Fact{Name: "Id", Value: page.Copyable(s.ID)})
}
