package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

// Reading is the way to read a file, and the questions to a person before that.
type Reading struct {
	Layout
	Profile   Profile
	Headings  []string   // headings as the file has them
	Sample    [][]string // texts of the first rows
	Questions []Question
	Lines     int
	First     time.Time // of the lines
	Last      time.Time
	Opening   money.Pesewas // before the first line
	Closing   money.Pesewas // balance after the last line
	Chains    bool          // every balance follows from the one before
	mark      rune          // before decimals
	newest    bool          // the newest line comes first
	fees      bool          // the balances include the fees
}

// Question is something about the file that only a person can answer.
type Question struct {
	Name    string // name of the answer: QuestionDates, QuestionSign
	Text    string
	Answers []string
}

// The names of questions.
const (
	QuestionDates = "dates"
	QuestionSign  = "sign"
	QuestionMap   = "columns"
)

const (
	sampled    = 10 // rows of a preview
	letterhead = 50 // maximum number of rows before the heading
)

// reader reads the rows of a file several times.
type reader struct {
	file  *sheet.File
	sheet string
	Reading
	heading []sheet.Cell
	headAt  int  // its row
	saved   bool // a person confirmed the layout before
}

// fits reports whether a row is the heading.
func (r *reader) fits(row []sheet.Cell) bool {
	headings := headingsOf(row)
	if r.saved || r.headAt > 0 {
		return slices.Equal(headings, r.Layout.Headings)
	}
	_, ok := r.Profile.propose(headings)
	return ok || len(r.Columns) > 0 && looksLikeHeading(row)
}

// looksLikeHeading reports whether a row has three texts or more, none of which is a date or an amount.
func looksLikeHeading(row []sheet.Cell) bool {
	texts := 0
	for _, cell := range row {
		if cell.Text == "" {
			continue
		}
		if texts++; cell.Kind != sheet.Text {
			return false
		}
		_, notDate := splitDate(cell.Text)
		_, notAmount := parseAmount(cell.Text, '.')
		if notDate == nil || notAmount == nil {
			return false
		}
	}
	return texts >= 3
}

// findHeading finds the heading among the first rows and the columns that it proposes.
func (r *reader) findHeading() error {
	rows, err := r.file.Rows(r.sheet, r.fits)
	if err != nil {
		return err
	}
	defer rows.Close()
	var alike *sheet.Raw
	for range letterhead {
		row, err := rows.Next()
		var bad *sheet.BadRow
		switch {
		case errors.Is(err, io.EOF):
			return r.noHeading(alike)
		case errors.As(err, &bad):
			continue
		case err != nil:
			return err
		}
		if r.fits(row.Cells) {
			return r.take(row)
		}
		if alike == nil && looksLikeHeading(row.Cells) {
			alike = &row
		}
	}
	return r.noHeading(alike)
}

// take uses a row as the heading.
func (r *reader) take(row sheet.Raw) error {
	r.heading, r.headAt, r.Headings = row.Cells, row.Line, texts(row.Cells)
	if r.saved {
		return nil
	}
	r.Layout.Headings = headingsOf(row.Cells)
	if len(r.Columns) > 0 {
		return r.checkColumns()
	}
	r.Columns, _ = r.Profile.propose(r.Layout.Headings)
	return nil
}

// checkColumns refuses an impossible choice of columns.
func (r *reader) checkColumns() error {
	used := map[int]Field{}
	for _, field := range slices.Sorted(maps.Keys(r.Columns)) {
		place := r.Columns[field]
		if place < 0 || place >= len(r.heading) {
			return problem.Field(string(field), "must be a column of the file")
		}
		if other, is := used[place]; is {
			return problem.Field(string(field), "must not be the column of "+string(other))
		}
		used[place] = field
	}
	_, dated := r.Columns[FieldDate]
	_, amount := r.Columns[FieldAmount]
	_, debit := r.Columns[FieldDebit]
	_, credit := r.Columns[FieldCredit]
	switch {
	case !dated:
		return problem.Field(string(FieldDate), "is required")
	case !amount && !(debit && credit):
		return problem.Field(string(FieldAmount), "is required, or a column of debits and one of credits")
	}
	return nil
}

// noHeading refuses a file, or returns the question for its columns.
func (r *reader) noHeading(alike *sheet.Raw) error {
	switch {
	case r.saved && alike != nil:
		return problem.Field("file", fmt.Sprintf("row %d: the headings are not those of the files before: %s", alike.Line, r.changed(headingsOf(alike.Cells))))
	case r.saved:
		return problem.Field("file", "has no row with the headings of earlier files")
	case alike == nil:
		return problem.Field("file", "has no heading in its first 50 rows")
	}
	r.heading, r.headAt, r.Headings, r.Layout.Headings = alike.Cells, alike.Line, texts(alike.Cells), headingsOf(alike.Cells)
	r.Questions = append(r.Questions, Question{Name: QuestionMap, Text: "Which columns have these values?"})
	return nil
}

// changed returns the first heading that has changed.
func (r *reader) changed(now []string) string {
	for i := range max(len(now), len(r.Layout.Headings)) {
		var is, was string
		if i < len(now) {
			is = now[i]
		}
		if i < len(r.Layout.Headings) {
			was = r.Layout.Headings[i]
		}
		if is != was {
			return fmt.Sprintf("column %d is %q and was %q", i+1, usertext.Cut(is, 40), was)
		}
	}
	return "the number of columns"
}

func texts(row []sheet.Cell) []string {
	list := make([]string, len(row))
	for i, cell := range row {
		list[i] = usertext.Cut(usertext.Visible(cell.Text), 60)
	}
	return list
}

// each calls a function for the rows after the heading that are lines, openings or totals.
func (r *reader) each(do func(c cells, kind rowKind) error) error {
	rows, err := r.file.Rows(r.sheet, r.fits)
	if err != nil {
		return err
	}
	defer rows.Close()
	lines := 0
	for {
		row, err := rows.Next()
		var bad *sheet.BadRow
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			if bad.Line < r.headAt {
				continue
			}
			return refused(bad.Line, "", bad.Why)
		case err != nil:
			return err
		case row.Line <= r.headAt:
			continue
		}
		c := cells{raw: row, layout: r.Layout, heading: r.heading, mark: r.mark, minor: r.Profile.Minor}
		kind := c.kind()
		if kind == skipped {
			continue
		}
		if lines++; lines > sheet.MaxRows {
			return problem.Field("file", fmt.Sprintf("must have at most %d rows: divide it", sheet.MaxRows))
		}
		if err := do(c, kind); err != nil {
			return err
		}
	}
}

type rowKind int

const (
	skipped   rowKind = iota // a footer, or the heading of another page
	movement                 // a line
	balanced                 // an opening or closing balance
	totalling                // sums of the rows above
)

// kind classifies a row. A row with an amount is a line unless its text names it a total.
func (c cells) kind() rowKind {
	if isHeading(c.raw.Cells, c.layout.Headings) {
		return skipped
	}
	amounts := c.text(FieldAmount) != "" || c.text(FieldDebit) != "" || c.text(FieldCredit) != ""
	date, id := c.text(FieldDate), c.text(FieldID)
	_, notDate := splitDate(date)
	switch {
	case date != "" && notDate == nil:
		if !amounts && id == "" && c.text(FieldBalance) != "" {
			return balanced
		}
		return movement
	case id != "" && amounts && !c.says("total"):
		return movement
	case amounts && c.says("total"):
		return totalling
	case amounts:
		return movement
	case c.text(FieldBalance) != "" && (c.says("opening") || c.says("closing") || c.says("brought") || c.says("carried") || c.says("b/f")):
		return balanced
	}
	return skipped
}

// says reports whether a text of the row contains a word.
func (c cells) says(word string) bool {
	return slices.ContainsFunc(c.raw.Cells, func(cell sheet.Cell) bool { return strings.Contains(strings.ToLower(cell.Text), word) })
}

// evidence finds the decimal mark and the order of dates, and stores the first rows for the preview.
func (r *reader) evidence() error {
	var marks = map[rune]int{} // the first row that shows a mark
	var dates dateEvidence
	err := r.each(func(c cells, kind rowKind) error {
		if len(r.Sample) < sampled {
			r.Sample = append(r.Sample, texts(c.raw.Cells))
		}
		if kind == movement {
			r.Lines++
			dates.note(c)
		}
		for _, field := range []Field{FieldAmount, FieldDebit, FieldCredit, FieldFee, FieldBalance} {
			cell, _ := c.at(field)
			if mark := decimalMark(cell.Text); mark != 0 && cell.Kind == sheet.Text {
				marks[mark] = cmp.Or(marks[mark], c.raw.Line)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case r.Lines == 0:
		return problem.Field("file", "has no lines")
	case marks['.'] > 0 && marks[','] > 0:
		return refused(max(marks['.'], marks[',']), "", "has another decimal mark than the rows above")
	}
	r.mark = '.'
	if marks[','] > 0 {
		r.mark = ','
	}
	return r.decideDates(dates)
}

// dateEvidence counts the dates of a file that fit each order of day and month.
type dateEvidence struct {
	notDayFirst, notMonthFirst int // the first row that cannot be read in this order
	open                       int // number of dates whose order matters
	made, typed                int // the first row with a date that a spreadsheet made, and the first one with a text whose order matters
}

func (d *dateEvidence) note(c cells) {
	cell, _ := c.at(FieldDate)
	if cell.Kind == sheet.Date {
		d.made = cmp.Or(d.made, c.raw.Line)
		return
	}
	parts, err := splitDate(cell.Text)
	if err != nil || parts.fixed {
		return
	}
	d.open++
	d.typed = cmp.Or(d.typed, c.raw.Line)
	dayFirst, monthFirst := parts.orders()
	if !dayFirst {
		d.notDayFirst = cmp.Or(d.notDayFirst, c.raw.Line)
	}
	if !monthFirst {
		d.notMonthFirst = cmp.Or(d.notMonthFirst, c.raw.Line)
	}
}

// decideDates chooses the order of dates, or returns the question if both orders fit.
func (r *reader) decideDates(d dateEvidence) error {
	switch {
	case d.made > 0 && d.typed > 0:
		return refused(max(d.made, d.typed), "", "has a date that a spreadsheet program changed, unlike others: download the file again and do not save it there")
	case d.open == 0:
		r.Dates = cmp.Or(r.Dates, DayFirst)
		return nil
	case d.notDayFirst > 0 && d.notMonthFirst > 0:
		return refused(max(d.notDayFirst, d.notMonthFirst), "", "has a date in another order of day and month than the rows above")
	case d.notDayFirst > 0 && r.Dates == DayFirst:
		return refused(d.notDayFirst, "", "has a date that does not begin with the day")
	case d.notMonthFirst > 0 && r.Dates == MonthFirst:
		return refused(d.notMonthFirst, "", "has a date that does not begin with the month")
	case r.Dates != "":
	case d.notMonthFirst > 0:
		r.Dates = DayFirst
	case d.notDayFirst > 0:
		r.Dates = MonthFirst
	default:
		r.Questions = append(r.Questions, Question{QuestionDates, "Do the dates begin with the day or with the month? Both readings fit.", []string{string(DayFirst), string(MonthFirst)}})
	}
	return nil
}
