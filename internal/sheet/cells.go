package sheet

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Limits of a sheet in any workbook.
const (
	lastRow    = 1 << 20
	lastColumn = 1 << 14
)

// sheetRecords reads the rows of one sheet.
type sheetRecords struct {
	book *workbook
	part *part
	line int
	data bool // within sheetData
}

func (w *workbook) open(sheet worksheet) (*sheetRecords, error) {
	p, err := openPart(w.archive, sheet.part)
	if err != nil {
		return nil, err
	}
	return &sheetRecords{book: w, part: p}, nil
}

// next implements records. After the last row it reads to the end of the part, to detect a sheet that was cut off.
func (s *sheetRecords) next() (record, error) {
	for {
		e, err := s.part.element()
		if err != nil {
			return record{}, err
		}
		switch e.Name.Local {
		case "sheetData":
			s.data = true
		case "row":
			if s.data {
				return s.row(e)
			}
		default:
			if s.data { // the rest after the rows is not used
				if err := s.part.skip(); err != nil {
					return record{}, err
				}
			}
		}
	}
}

// row reads a row. The numbers of rows and columns may be missing, and must increase.
func (s *sheetRecords) row(e xml.StartElement) (record, error) {
	line := s.line + 1
	if given := attribute(e, "r"); given != "" {
		if n, err := strconv.Atoi(given); err != nil || n < line {
			return record{}, errDamaged()
		} else {
			line = n
		}
	}
	if line > lastRow {
		return record{}, errDamaged()
	}
	s.line = line
	hidden := attribute(e, "hidden")
	one := record{line: line, hidden: hidden == "1" || hidden == "true"}
	size, column, why := 0, 0, ""
	for end := s.part.depth - 1; ; {
		token, err := s.part.next()
		if err != nil {
			return record{}, unexpected(err)
		}
		if _, is := token.(xml.EndElement); is && s.part.depth == end {
			break
		}
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != "c" {
			continue
		}
		if column, err = columnOf(attribute(start, "r"), column); err != nil {
			return record{}, err
		}
		cell, err := s.cell(start)
		if err != nil {
			return record{}, err
		}
		if cell.Text == "" && cell.Kind != Error {
			continue
		}
		if column > MaxColumns {
			return record{}, refuse("has more than " + strconv.Itoa(MaxColumns) + " columns")
		}
		if size += len(cell.Text); len(cell.Text) > maxCell || size > maxLine {
			why = "cannot be read: it is too long"
			continue
		}
		for len(one.cells) < column {
			one.cells = append(one.cells, Cell{})
		}
		one.cells[column-1] = cell
	}
	if why != "" {
		return record{}, &BadRow{line, why}
	}
	return one, nil
}

// columnOf returns the column of a reference such as C7, counted from 1. Without a reference it is the column after
// the last.
func columnOf(reference string, last int) (int, error) {
	if reference == "" {
		reference, last = "", last+1
		if last > lastColumn {
			return 0, errDamaged()
		}
		return last, nil
	}
	column := 0
	for _, r := range reference {
		if r < 'A' || r > 'Z' {
			break
		}
		if column = column*26 + int(r-'A') + 1; column > lastColumn {
			return 0, errDamaged()
		}
	}
	if column <= last {
		return 0, errDamaged()
	}
	return column, nil
}

// cell reads the stored value of a cell, which may differ from the displayed text.
func (s *sheetRecords) cell(e xml.StartElement) (Cell, error) {
	kind, style := attribute(e, "t"), attribute(e, "s")
	var stored string
	var formula, valued bool
	for end := s.part.depth - 1; ; {
		token, err := s.part.next()
		if err != nil {
			return Cell{}, unexpected(err)
		}
		if _, is := token.(xml.EndElement); is && s.part.depth == end {
			break
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch start.Name.Local {
		case "v", "is":
			if stored, err = s.part.text(); err != nil {
				return Cell{}, err
			}
			valued = true
		case "f":
			formula = true
			err = s.part.skip()
		default:
			err = s.part.skip()
		}
		if err != nil {
			return Cell{}, err
		}
	}
	if formula && (!valued || stored == "" && kind == "") {
		return Cell{Kind: Error, Why: "has a formula that was never calculated: open the file in a spreadsheet program and save it again"}, nil
	}
	if !valued || stored == "" {
		return Cell{}, nil
	}
	return s.value(kind, style, stored)
}

// value returns the cell of a stored value.
func (s *sheetRecords) value(kind, style, stored string) (Cell, error) {
	switch kind {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(stored))
		if err != nil {
			return Cell{}, errDamaged()
		}
		text, err := s.book.texts.at(i)
		return Cell{Text: unescaped(text)}, err
	case "str", "inlineStr":
		return Cell{Text: unescaped(stored)}, nil
	case "b":
		return Cell{Text: strconv.FormatBool(stored == "1" || stored == "true"), Kind: Boolean}, nil
	case "e":
		return Cell{stored, Error, "has the error " + stored}, nil
	case "d":
		return Cell{Text: strings.TrimSuffix(stored, "Z"), Kind: Date}, nil
	case "", "n":
		i, err := strconv.Atoi(style)
		if err == nil && i >= 0 && i < len(s.book.dates) && s.book.dates[i] {
			return s.book.date(stored), nil
		}
		return number(stored), nil
	}
	return Cell{}, errDamaged()
}

// escape matches the form in which workbooks write characters that XML does not allow.
var escape = regexp.MustCompile(`_x([0-9A-Fa-f]{4})_`)

func unescaped(text string) string {
	if strings.Contains(text, "_x") {
		text = escape.ReplaceAllStringFunc(text, func(match string) string {
			code, _ := strconv.ParseUint(match[2:6], 16, 32)
			return string(rune(code))
		})
	}
	return plainText(text)
}

// empty reports whether all rows are empty.
func (s *sheetRecords) empty() (bool, error) {
	for {
		one, err := s.next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			var bad *BadRow
			if errors.As(err, &bad) {
				return false, nil
			}
			return false, err
		}
		if !one.empty() {
			return false, nil
		}
	}
}
