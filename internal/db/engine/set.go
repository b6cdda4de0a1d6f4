package engine

import "strings"

// Kind is the type in which a column of a set is sent to the database.
type Kind byte

// The kinds.
const (
	KindText     Kind = 't'
	KindInt      Kind = 'i'
	KindBlob     Kind = 'b'
	KindNullText Kind = 'T'
	KindNullInt  Kind = 'I'
)

// Rows is a set of rows as one argument of a statement, which reads it with rows($n). PostgreSQL receives it as one
// array for each column, and SQLite as one JSON text.
type Rows struct {
	Signature string // kinds and names of the columns
	Columns   []Column
	n         int
}

// Column is one column of a set. Its values are in the field for its kind.
type Column struct {
	Name      string
	Kind      Kind
	Texts     []string
	Ints      []int64
	Blobs     [][]byte
	NullTexts []*string
	NullInts  []*int64
}

// NewRows returns a set of n rows.
func NewRows(columns []Column, n int) Rows {
	var signature strings.Builder
	for _, c := range columns {
		signature.WriteByte(byte(c.Kind))
		signature.WriteString(c.Name)
		signature.WriteByte(',')
	}
	return Rows{Signature: signature.String(), Columns: columns, n: n}
}

// Len returns the number of rows.
func (s Rows) Len() int { return s.n }

// Names returns the columns' names as an SQL list.
func (s Rows) Names() string {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// Value returns one value in the form that SQLite's driver accepts.
func (s Rows) Value(column, row int) any {
	switch c := &s.Columns[column]; c.Kind {
	case KindInt:
		return c.Ints[row]
	case KindBlob:
		if c.Blobs[row] == nil {
			return nil
		}
		return c.Blobs[row]
	case KindNullText:
		if c.NullTexts[row] == nil {
			return nil
		}
		return *c.NullTexts[row]
	case KindNullInt:
		if c.NullInts[row] == nil {
			return nil
		}
		return *c.NullInts[row]
	default:
		return c.Texts[row]
	}
}
