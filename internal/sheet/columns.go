package sheet

import (
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/makola/makola/internal/usertext"
)

// Column is one column of a table that people take away: its head, and the value of each row with its kind.
type Column[T any] struct {
	Head  string
	Value func(T) Value
}

// Value is one cell of such a table.
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

// String makes a text cell. Digits in it stay as they are.
func String(text string) Value { return Value{kind: valueText, text: text} }

// Amount makes an amount of pesewas, shown in cedis.
func Amount(pesewas int64) Value { return Value{kind: valueAmount, number: pesewas} }

// Integer makes a whole number.
func Integer(n int64) Value { return Value{kind: valueInteger, number: n} }

// Time makes a point of time, in UTC to the second. The zero time is an empty cell.
func Time(at time.Time) Value { return Value{kind: valueTime, at: at.UTC()} }

// Day makes the day of a point of time. The zero time is an empty cell.
func Day(at time.Time) Value { return Value{kind: valueDay, at: at.UTC()} }

// Format is a kind of file.
type Format string

// The formats: CSV is for programs, XLSX for people.
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

// Writer writes a table in memory for one row.
type Writer[T any] struct {
	columns []Column[T]
	values  []Value
	to      writer
}

// NewWriter writes the head of a file. Close writes its end.
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

// Note writes a text in a row of its own.
func (w *Writer[T]) Note(text string) error { return w.to.row([]Value{String(text)}) }

// Close writes the end of the file.
func (w *Writer[T]) Close() error { return w.to.close() }

// visible returns a text that a program shows as it is.
func visible(text string) string {
	return usertext.Visible(strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
