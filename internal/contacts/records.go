package contacts

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

const (
	maxLine  = 64 << 10 // bytes of a line
	maxLines = 100      // of one record
)

// recordReader splits a file into records so that a bad one costs its own line. The reader of encoding/csv alone reads on
// from a quote that is never closed to the end of the file. A line ends with LF, CR LF or CR.
type recordReader struct {
	file  *bufio.Reader
	comma rune
	line  int        // that was read last
	ahead []fileLine // were read and belong to no record yet
	// alone says of a line behind an open quote that it is a record of its own: then the quote is a mistake.
	alone func(cells []string) bool
}

// fileLine is a line without its end.
type fileLine struct {
	number int
	text   string
	long   bool // longer than maxLine, and cut
}

// read gives the next record with its first line, a badRow, or the error of the file.
func (r *recordReader) read() ([]string, int, error) {
	first, err := r.take()
	for err == nil && strings.TrimSpace(first.text) == "" && !first.long {
		first, err = r.take()
	}
	if err != nil {
		return nil, 0, err
	}
	text, behind := first.text, []fileLine(nil)
	for unclosed(text) && !first.long && len(behind) < maxLines && len(text) < maxLine {
		more, err := r.take()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if err != nil {
			break
		}
		behind = append(behind, more)
		if more.long || r.alone(r.cells(more.text)) {
			break
		}
		text += "\n" + more.text
	}
	var row []string
	switch {
	case first.long:
		err = errors.New("the line is too long")
	case unclosed(text):
		err = errors.New("a quote is not closed")
	default:
		row, err = r.parse(text)
	}
	if err != nil {
		r.ahead = append(behind, r.ahead...)
		return nil, 0, &badRow{first.number, "cannot be read: " + err.Error()}
	}
	return row, first.number, nil
}

// unclosed says whether a quote of the text is not closed: one that is written twice stands for itself.
func unclosed(text string) bool { return strings.Count(text, `"`)%2 == 1 }

// cells splits a line, quotes and all.
func (r *recordReader) cells(line string) []string { return strings.Split(line, string(r.comma)) }

// parse reads one record.
func (r *recordReader) parse(text string) ([]string, error) {
	one := csv.NewReader(strings.NewReader(text))
	one.FieldsPerRecord, one.TrimLeadingSpace, one.Comma = -1, true, r.comma
	row, err := one.Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		err = parse.Err // without a place, which is one in this record
	}
	return row, err
}

// take gives the next line.
func (r *recordReader) take() (fileLine, error) {
	if len(r.ahead) > 0 {
		next := r.ahead[0]
		r.ahead = r.ahead[1:]
		return next, nil
	}
	var text []byte
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
	r.line, next.text = next.number, string(text)
	return next, nil
}
