package sheet

import (
	"errors"
	"fmt"
)

// Rows reads the rows of a file without a form. Its caller finds the columns itself, because a bank's file begins
// with lines of letterhead.
type Rows struct {
	from records
	rows int
}

// Raw is one row.
type Raw struct {
	Line  int // line of the text, or number of the row in the sheet, from 1
	Cells []Cell
}

// searched is the number of rows in which Rows looks for headings.
const searched = 50

// Rows returns the rows of a file from the first on. fits reports whether a row may be the headings. The cells of a
// text are split at the first separator with which one of the first rows fits, or else at the comma.
func (f *File) Rows(sheet string, fits func(cells []Cell) bool) (*Rows, error) {
	if f.book != nil {
		chosen, err := f.book.choose(sheet)
		if err != nil {
			return nil, err
		}
		from, err := f.book.open(chosen)
		return &Rows{from: from}, err
	}
	if sheet != "" {
		return nil, refuse("is not a workbook: it has no sheets")
	}
	for _, comma := range []rune{',', ';', '\t', '|'} {
		if f.fitsBy(comma, fits) {
			return &Rows{from: f.lines(comma)}, nil
		}
	}
	return &Rows{from: f.lines(',')}, nil
}

func (f *File) lines(comma rune) records {
	return newLineRecords(f.reader(), comma, func([]string) bool { return false })
}

// fitsBy reports whether one of the first rows fits if cells are split at a separator.
func (f *File) fitsBy(comma rune, fits func([]Cell) bool) bool {
	rows := f.lines(comma)
	for range searched {
		one, err := rows.next()
		var bad *BadRow
		if err != nil && !errors.As(err, &bad) {
			return false
		}
		if err == nil && fits(one.cells) {
			return true
		}
	}
	return false
}

// Next returns the next row that is not empty, a BadRow, or io.EOF.
func (r *Rows) Next() (Raw, error) {
	for {
		one, err := r.from.next()
		if err != nil {
			return Raw{}, err
		}
		if one.empty() {
			continue
		}
		if r.rows++; r.rows > MaxRows+searched {
			return Raw{}, refuse(fmt.Sprintf("must have at most %d rows: divide it", MaxRows))
		}
		return Raw{Line: one.line, Cells: one.cells}, nil
	}
}

// Close ends reading before the last row.
func (r *Rows) Close() {
	if book, is := r.from.(*sheetRecords); is {
		book.part.close()
	}
}

// Heading returns a heading in a form in which two can be compared: "Phone No." and "phone_no" become equal.
func Heading(text string) string { return plainHeading(text) }
