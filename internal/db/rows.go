package db

import (
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// Column describes how one field of T is stored. Exactly one of its functions is set.
type Column[T any] struct {
	Name     string
	Text     func(T) string
	Int      func(T) int64
	Bool     func(T) bool      // 0 or 1
	Time     func(T) time.Time // microseconds, 0 for the zero time
	Blob     func(T) []byte    // nil is NULL
	NullText func(T) *string   // nil is NULL
	NullInt  func(T) *int64    // nil is NULL
}

// Rows is a set of rows as one argument of a statement.
type Rows = engine.Rows

// RowsOf returns rows as one argument of a statement.
func RowsOf[T any](columns []Column[T], rows []T) Rows {
	set := make([]engine.Column, len(columns))
	for i, c := range columns {
		set[i] = columnOf(c, rows)
	}
	return engine.NewRows(set, len(rows))
}

func columnOf[T any](c Column[T], rows []T) engine.Column {
	d := engine.Column{Name: c.Name}
	switch {
	case c.Text != nil:
		d.Kind, d.Texts = engine.KindText, collect(rows, c.Text)
	case c.Int != nil:
		d.Kind, d.Ints = engine.KindInt, collect(rows, c.Int)
	case c.Bool != nil:
		d.Kind, d.Ints = engine.KindInt, collect(rows, func(r T) int64 { return engine.Bool(c.Bool(r)) })
	case c.Time != nil:
		d.Kind, d.Ints = engine.KindInt, collect(rows, func(r T) int64 { return engine.Micros(c.Time(r)) })
	case c.Blob != nil:
		d.Kind, d.Blobs = engine.KindBlob, collect(rows, c.Blob)
	case c.NullText != nil:
		d.Kind, d.NullTexts = engine.KindNullText, collect(rows, c.NullText)
	case c.NullInt != nil:
		d.Kind, d.NullInts = engine.KindNullInt, collect(rows, c.NullInt)
	default:
		panic("db: the column " + c.Name + " has no function")
	}
	return d
}

func collect[T, V any](rows []T, get func(T) V) []V {
	values := make([]V, len(rows))
	for i, r := range rows {
		values[i] = get(r)
	}
	return values
}

// Insert defers the writes that insert rows into a table.
func Insert[T any](t *Tx, into string, columns []Column[T], rows []T) {
	if len(rows) > 0 {
		t.insert(into, RowsOf(columns, rows))
	}
}

// Micros converts a time to its stored form: microseconds since 1970 in UTC. The zero time is stored as 0, which
// means "never" in every table.
func Micros(t time.Time) int64 { return engine.Micros(t) }

// FromMicros converts stored microseconds to a time in UTC. 0 becomes the zero time.
func FromMicros(us int64) time.Time { return engine.FromMicros(us) }
