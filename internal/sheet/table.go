package sheet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Options are the caller's choices about a file.
type Options struct {
	Columns map[string]string // heading by field, if the field's own headings do not fit
	Places  map[string]int    // column by field, from 0, instead of headings; a field that is missing here has no column
	Sheet   string            // name of a sheet; empty: the first visible sheet with content
}

// Table is a file that was read completely once. Next returns its rows from the first on.
type Table struct {
	Report
	form    Form
	columns columns
	rows    records
	ahead   *record // the first row, if it is not a heading
	places  map[string]int
	preview *Preview // the preview to fill; nil: the rows are used
}

// Report has the facts about a file that a person should see before its rows are used.
type Report struct {
	Rows    int // rows that are not empty, including bad ones, without the headings
	Empty   int // empty rows, which are skipped
	Hidden  int // rows that the spreadsheet hides; they are read
	Errors  int // cells such as #N/A
	Sheet   string
	Others  []string // names of the sheets that are not read
	Choices []Choice
}

// Notes returns a sentence for each unusual fact about a file.
func (r Report) Notes() []string {
	var notes []string
	for _, c := range r.Choices {
		notes = append(notes, fmt.Sprintf("%s is read from %q, not from %s", c.Field, c.Heading, strings.Join(quotedNames(c.Others), ", ")))
	}
	if r.Hidden > 0 {
		notes = append(notes, fmt.Sprintf("%d hidden rows are read, too", r.Hidden))
	}
	if r.Errors > 0 {
		notes = append(notes, fmt.Sprintf("%d cells hold an error such as #N/A", r.Errors))
	}
	if len(r.Others) > 0 {
		notes = append(notes, fmt.Sprintf("only the sheet %q is read, not %s", r.Sheet, strings.Join(quotedNames(r.Others), ", ")))
	}
	return notes
}

func quotedNames(names []string) []string {
	cells := make([]string, 0, len(names))
	for i, name := range names {
		if i == maxShown {
			return append(cells, "...")
		}
		cells = append(cells, fmt.Sprintf("%q", name))
	}
	return cells
}

// Table reads the whole file and finds the columns of a form. If the file cannot be used, the error is Invalid. Two
// tables must not read a file at the same time.
func (f *File) Table(form Form, o Options) (*Table, error) {
	for field := range o.Columns {
		if form.index(field) < 0 {
			return nil, refuse(fmt.Sprintf("has no field %q: the fields are %s", field, form.names()))
		}
	}
	for field, place := range o.Places {
		if form.index(field) < 0 || place < 0 || place >= MaxColumns {
			return nil, refuse(fmt.Sprintf("has no column %d for %q", place+1, field))
		}
	}
	t := &Table{form: form, places: o.Places}
	open, err := f.source(t, o)
	if err != nil {
		return nil, err
	}
	if err := t.survey(open, o.Columns); err != nil {
		return nil, err
	}
	if t.rows, err = open(); err != nil {
		return nil, err
	}
	first, err := t.first()
	if err != nil {
		return nil, err
	}
	if t.columns.heading == nil {
		t.ahead = &first
	}
	return t, nil
}

// source returns a function that opens the rows from the first on.
func (f *File) source(t *Table, o Options) (func() (records, error), error) {
	if f.book != nil {
		chosen, err := f.book.choose(o.Sheet)
		if err != nil {
			return nil, err
		}
		t.Sheet = chosen.name
		for _, other := range f.book.sheets {
			if other.part != chosen.part {
				t.Others = append(t.Others, other.name)
			}
		}
		return func() (records, error) { return f.book.open(chosen) }, nil
	}
	if o.Sheet != "" {
		return nil, refuse("is not a workbook: it has no sheets")
	}
	comma := f.separator(t.form, o.Columns)
	return func() (records, error) { return newLineRecords(f.reader(), comma, t.alone), nil }, nil
}

// choose returns the sheet to read.
func (w *workbook) choose(name string) (worksheet, error) {
	if name != "" {
		i := slices.IndexFunc(w.sheets, func(s worksheet) bool { return s.name == name })
		if i < 0 {
			names := make([]string, len(w.sheets))
			for i, s := range w.sheets {
				names[i] = s.name
			}
			return worksheet{}, refuse(fmt.Sprintf("has no sheet %q; its sheets are %s", name, strings.Join(quotedNames(names), ", ")))
		}
		return w.sheets[i], nil
	}
	for _, s := range w.sheets {
		if s.hidden {
			continue
		}
		rows, err := w.open(s)
		if err != nil {
			return worksheet{}, err
		}
		empty, err := rows.empty()
		rows.part.close()
		if err != nil {
			return worksheet{}, err
		}
		if !empty {
			return s, nil
		}
	}
	return worksheet{}, refuse("has no rows")
}

// separator returns the separator of a text's cells. It prefers a separator with which the first row fits the form,
// and then the one that gives the most cells.
func (f *File) separator(form Form, given map[string]string) rune {
	best, most := ',', -1
	for _, comma := range []rune{',', ';', '\t'} {
		rows := newLineRecords(f.reader(), comma, func([]string) bool { return false })
		first, err := rows.next()
		if err != nil {
			continue
		}
		cells := len(first.cells)
		_, headed, err := form.headed(first.cells, given)
		_, unheaded := form.unheaded(first.cells)
		if err == nil && (headed || unheaded) {
			cells += MaxColumns
		}
		if cells > most {
			best, most = comma, cells
		}
	}
	return best
}

// alone reports whether a line after an open quote has a key in a possible column, and so is a whole row.
func (t *Table) alone(cells []string) bool {
	key := t.form.key()
	if key < 0 {
		return false
	}
	for i, cell := range cells {
		known := len(t.columns.fit) == 0 || slices.Contains(t.columns.fit[key], i)
		if known && t.form.Fields[key].Looks(plainText(strings.Trim(cell, `" `))) {
			return true
		}
	}
	return false
}

// survey reads the whole file once. It finds the headings, counts rows and chooses the columns.
func (t *Table) survey(open func() (records, error), given map[string]string) error {
	var err error
	if t.rows, err = open(); err != nil {
		return err
	}
	defer t.close()
	first, err := t.first()
	var bad *BadRow
	switch {
	case errors.Is(err, io.EOF):
		return refuse("has no rows")
	case errors.As(err, &bad):
		return refuse("begins with a row that " + bad.Why)
	case err != nil:
		return err
	}
	if err := t.findColumns(first, given); err != nil {
		return err
	}
	for {
		one, err := t.rows.next()
		switch {
		case errors.Is(err, io.EOF):
			t.Choices, err = t.form.choose(&t.columns)
			if t.preview != nil {
				err = nil // a person chooses the missing columns
			}
			return err
		case errors.As(err, &bad):
			err = t.note(record{}, true)
		case err == nil:
			err = t.note(one, false)
		}
		if err != nil {
			return err
		}
	}
}

// first returns the first row that is not empty.
func (t *Table) first() (record, error) {
	for {
		one, err := t.rows.next()
		if err != nil || !one.empty() {
			return one, err
		}
	}
}

func (t *Table) findColumns(first record, given map[string]string) error {
	headed, ok, err := t.form.headed(first.cells, given)
	if err != nil {
		return err
	}
	unheaded, looks := t.form.unheaded(first.cells)
	switch {
	case ok || !looks && (t.places != nil || t.preview != nil): // a first row that does not look like data is a heading
		t.columns = headed
	case !looks:
		return t.form.missing(&headed, t.form.Fields[t.form.key()])
	default:
		t.columns = unheaded
	}
	if t.places != nil {
		t.columns.place(t.form, t.places)
	}
	if t.columns.heading == nil {
		return t.note(first, false)
	}
	return nil
}

// note counts a row.
func (t *Table) note(one record, bad bool) error {
	if !bad && one.empty() {
		t.Empty++
		return nil
	}
	if t.Rows++; t.Rows > MaxRows {
		return refuse(fmt.Sprintf("must have at most %d rows: divide it", MaxRows))
	}
	if one.hidden {
		t.Hidden++
	}
	for _, cell := range one.cells {
		if cell.Kind == Error {
			t.Errors++
		}
	}
	t.preview.show(one)
	t.form.count(&t.columns, one.cells)
	return nil
}

func (t *Table) close() {
	if sheet, is := t.rows.(*sheetRecords); is {
		sheet.part.close()
	}
}

// Row is one row of a table.
type Row struct {
	Line   int // line of the text, or number of the row in the sheet, from 1
	Hidden bool
	table  *Table
	cells  []Cell
}

// Next returns the next row, a BadRow, or io.EOF. It skips empty rows.
func (t *Table) Next() (Row, error) {
	for {
		var one record
		if t.ahead != nil {
			one, t.ahead = *t.ahead, nil
		} else {
			var err error
			if one, err = t.rows.next(); err != nil {
				return Row{}, err
			}
		}
		if !one.empty() {
			return Row{Line: one.line, Hidden: one.hidden, table: t, cells: one.cells}, nil
		}
	}
}

// Cell returns the value of a field. It is empty for a field without a column.
func (r Row) Cell(field string) Cell {
	i := r.table.form.index(field)
	if i < 0 {
		return Cell{}
	}
	if column := r.table.columns.chosen[i]; column >= 0 && column < len(r.cells) {
		return r.cells[column]
	}
	return Cell{}
}

// Text returns the value of a field as a text or number. The text of an error follows the row's number.
func (r Row) Text(field string) (string, error) {
	switch cell := r.Cell(field); {
	case cell.Why != "":
		return "", fmt.Errorf("%s %s", field, cell.Why)
	case cell.Kind == Date:
		return "", fmt.Errorf("%s has a date: format the column as text and type it again", field)
	default:
		return cell.Text, nil
	}
}
