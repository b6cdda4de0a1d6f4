package sheet

import (
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/makola/makola/internal/usertext"
)

// Column is one column of a downloaded table: its heading, and a function that returns the value of a row.
type Column[T any] struct {
	Head  string
	Value func(T) Value
}

// Value is one cell of a downloaded table.
type Value struct {
	kind   valueKind
	text   string
	number int64
	at     time.Time
}

type valueKind int

const (
	valueText valueKind = iota
	valueAmount
	valueInteger
	valueTime
	valueDay
)

// String returns a text cell. Digits in it are not converted to a number.
func String(text string) Value { return Value{kind: valueText, text: text} }

// Amount returns a cell with an amount in pesewas, which is shown in cedis.
func Amount(pesewas int64) Value { return Value{kind: valueAmount, number: pesewas} }

// Integer returns a cell with a whole number.
func Integer(n int64) Value { return Value{kind: valueInteger, number: n} }

// Time returns a cell with a time in UTC, to the second. For the zero time the cell is empty.
func Time(at time.Time) Value { return Value{kind: valueTime, at: at.UTC()} }

// Day returns a cell with the day of a time. For the zero time the cell is empty.
func Day(at time.Time) Value { return Value{kind: valueDay, at: at.UTC()} }

// Format is a kind of file.
type Format string

// The formats. CSV is for programs, and XLSX for people.
const (
	CSV  Format = "csv"
	XLSX Format = "xlsx"
)

// MediaType returns the Content-Type of a format.
func (f Format) MediaType() string {
	if f == XLSX {
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	return "text/csv; charset=utf-8"
}

// writer writes the rows of one file, one after the other.
type writer interface {
	row(values []Value) error
	close() error
}

// Writer writes a table. It has only one row in memory.
type Writer[T any] struct {
	columns []Column[T]
	values  []Value
	to      writer
}

// NewWriter begins a file and writes its headings. Close ends the file.
func NewWriter[T any](to io.Writer, format Format, columns []Column[T]) (*Writer[T], error) {
	w := &Writer[T]{columns: columns, values: make([]Value, len(columns))}
	for i, c := range columns {
		w.values[i] = String(c.Head)
	}
	if format == XLSX {
		book, err := newBookWriter(to, []string{"Makola"}, w.values)
		w.to = book
		return w, err
	}
	w.to = newTextWriter(to)
	return w, w.to.row(w.values)
}

// Write writes a row.
func (w *Writer[T]) Write(row T) error {
	for i, c := range w.columns {
		w.values[i] = c.Value(row)
	}
	return w.to.row(w.values)
}

// Note writes a row that contains only a text.
func (w *Writer[T]) Note(text string) error { return w.to.row([]Value{String(text)}) }

// Close writes the end of the file.
func (w *Writer[T]) Close() error { return w.to.close() }

// visible returns a text without characters that programs do not show.
func visible(text string) string {
	return usertext.Visible(strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
