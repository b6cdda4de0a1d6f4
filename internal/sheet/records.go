package sheet

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLines is the maximum number of lines in one record.
const maxLines = 100

// lineRecords splits a text into records in such a way that an invalid record affects only its own line. encoding/csv
// would read from an unclosed quote to the end of the file. A line ends with LF, CR LF or CR.
type lineRecords struct {
	file  *bufio.Reader
	comma rune
	line  int        // number of the line that was read last
	ahead []fileLine // lines that were read and are not part of a record yet
	text  []byte     // of the line that was read last, for its space
	// alone reports whether a line after an open quote is a whole record. The quote is then a mistake.
	alone func(cells []string) bool
}

// fileLine is a line without its line end.
type fileLine struct {
	number int
	text   string
	long   bool // longer than maxLine, and therefore cut
}

// newLineRecords returns the records of a text. It skips a first line such as sep=; which is an instruction to
// spreadsheets.
func newLineRecords(text io.Reader, comma rune, alone func([]string) bool) *lineRecords {
	r := &lineRecords{file: bufio.NewReader(text), comma: comma, alone: alone}
	first, err := r.take()
	if err != nil {
		return r // the next call returns the error again
	}
	if separator := separatorOf(first.text); separator != 0 {
		r.comma = separator
	} else {
		r.ahead = append(r.ahead, first)
	}
	return r
}

// separatorOf returns the separator in a line such as sep=; and 0 for any other line.
func separatorOf(line string) rune {
	line = strings.Trim(line, `" `)
	if len(line) != len("sep=;") || !strings.EqualFold(line[:4], "sep=") || !strings.ContainsRune(",;\t|", rune(line[4])) {
		return 0
	}
	return rune(line[4])
}

// next implements records.
func (r *lineRecords) next() (record, error) {
	first, err := r.take()
	for err == nil && strings.TrimSpace(first.text) == "" && !first.long {
		first, err = r.take()
	}
	if err != nil {
		return record{}, err
	}
	text, behind, err := r.gather(first)
	if err != nil {
		return record{}, err
	}
	row, err := r.parse(first, text)
	if err != nil {
		r.ahead = append(behind, r.ahead...)
		return record{}, &BadRow{first.number, "cannot be read: " + err.Error()}
	}
	one := record{line: first.number, cells: make([]Cell, len(row))}
	for i, cell := range row {
		one.cells[i].Text = plainText(cell)
	}
	return one, nil
}

// gather appends the lines after an open quote to the first. It also returns these lines separately, in case the
// quote is a mistake.
func (r *lineRecords) gather(first fileLine) (text string, behind []fileLine, err error) {
	text = first.text
	for unclosed(text) && !first.long && len(behind) < maxLines && len(text) < maxLine {
		more, err := r.take()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", nil, err
		}
		behind = append(behind, more)
		if more.long || r.alone(strings.Split(more.text, string(r.comma))) {
			break
		}
		text += "\n" + more.text
	}
	return text, behind, nil
}

// parse parses one record.
func (r *lineRecords) parse(first fileLine, text string) ([]string, error) {
	switch {
	case first.long, len(text) > 2*maxLine:
		return nil, errors.New("the line is too long")
	case !utf8.ValidString(text):
		return nil, errors.New("it is not UTF-8 text")
	case unclosed(text):
		return nil, errors.New("a quote is not closed")
	}
	row, err := r.split(text, false)
	if errors.Is(err, csv.ErrBareQuote) && strings.Contains(text, `="`) { // ="0241234567", by which programs keep a zero
		row, err = r.split(text, true)
	}
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		err = parse.Err // the error's position is relative to this record, so it is left out
	}
	if err == nil && len(row) > MaxColumns {
		err = fmt.Errorf("it has more than %d columns", MaxColumns)
	}
	return row, err
}

func (r *lineRecords) split(text string, lazy bool) ([]string, error) {
	if !strings.Contains(text, `"`) { // nearly every line; its cells are trimmed later
		return strings.Split(text, string(r.comma)), nil
	}
	one := csv.NewReader(strings.NewReader(text))
	one.FieldsPerRecord, one.TrimLeadingSpace, one.Comma, one.LazyQuotes = -1, r.comma != '\t', r.comma, lazy
	return one.Read()
}

// plainText trims a cell, and returns the text in ="text".
func plainText(cell string) string {
	cell = strings.TrimSpace(cell)
	if inner, is := strings.CutPrefix(cell, `="`); is && strings.Count(inner, `"`) == 1 && strings.HasSuffix(inner, `"`) {
		return strings.TrimSuffix(inner, `"`)
	}
	return cell
}

// unclosed reports whether the text has an open quote. A doubled quote is a literal one.
func unclosed(text string) bool { return strings.Count(text, `"`)%2 == 1 }

// take returns the next line.
func (r *lineRecords) take() (fileLine, error) {
	if len(r.ahead) > 0 {
		next := r.ahead[0]
		r.ahead = r.ahead[1:]
		return next, nil
	}
	text := r.text[:0]
	next := fileLine{number: r.line + 1}
	for begun := false; ; begun = true {
		octet, err := r.file.ReadByte()
		if errors.Is(err, io.EOF) && begun {
			break
		}
		if err != nil {
			return next, err
		}
		if octet == '\r' {
			if after, err := r.file.Peek(1); err == nil && after[0] == '\n' {
				_, _ = r.file.Discard(1)
			}
		}
		if octet == '\r' || octet == '\n' {
			break
		}
		if len(text) < maxLine {
			text = append(text, octet)
		} else {
			next.long = true
		}
	}
	r.line, r.text, next.text = next.number, text, string(text)
	return next, nil
}
