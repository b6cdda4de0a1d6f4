package db

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Column says how a member of T is stored: exactly one of its functions is set.
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

// A kind is how a column of a set travels.
type kind byte

const (
	kindText     kind = 't'
	kindInt      kind = 'i'
	kindBlob     kind = 'b'
	kindNullText kind = 'T'
	kindNullInt  kind = 'I'
)

func (k kind) postgres() string {
	switch k {
	case kindInt, kindNullInt:
		return "bigint"
	case kindBlob:
		return "bytea"
	}
	return "text"
}

// Rows is a set of rows as one argument of a statement, which reads it with
// rows($n). It travels as one array a column on PostgreSQL and as one JSON text
// on SQLite.
type Rows struct {
	signature string
	columns   []columnData
	n         int
}

type columnData struct {
	name      string
	kind      kind
	texts     []string
	ints      []int64
	blobs     [][]byte
	nullTexts []*string
	nullInts  []*int64
}

// RowsOf makes a set of rows.
func RowsOf[T any](columns []Column[T], rows []T) Rows {
	set := Rows{n: len(rows), columns: make([]columnData, len(columns))}
	var signature strings.Builder
	for i, c := range columns {
		set.columns[i] = columnOf(c, rows)
		signature.WriteByte(byte(set.columns[i].kind))
		signature.WriteString(c.Name)
		signature.WriteByte(',')
	}
	set.signature = signature.String()
	return set
}

func columnOf[T any](c Column[T], rows []T) columnData {
	d := columnData{name: c.Name}
	switch {
	case c.Text != nil:
		d.kind, d.texts = kindText, collect(rows, c.Text)
	case c.Int != nil:
		d.kind, d.ints = kindInt, collect(rows, c.Int)
	case c.Bool != nil:
		d.kind, d.ints = kindInt, collect(rows, func(r T) int64 { return boolean(c.Bool(r)) })
	case c.Time != nil:
		d.kind, d.ints = kindInt, collect(rows, func(r T) int64 { return Micros(c.Time(r)) })
	case c.Blob != nil:
		d.kind, d.blobs = kindBlob, collect(rows, c.Blob)
	case c.NullText != nil:
		d.kind, d.nullTexts = kindNullText, collect(rows, c.NullText)
	case c.NullInt != nil:
		d.kind, d.nullInts = kindNullInt, collect(rows, c.NullInt)
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

// Len is the number of rows.
func (s Rows) Len() int { return s.n }

// value is one member as SQLite's driver takes it.
func (s Rows) value(column, row int) any {
	switch c := &s.columns[column]; c.kind {
	case kindInt:
		return c.ints[row]
	case kindBlob:
		if c.blobs[row] == nil {
			return nil
		}
		return c.blobs[row]
	case kindNullText:
		if c.nullTexts[row] == nil {
			return nil
		}
		return *c.nullTexts[row]
	case kindNullInt:
		if c.nullInts[row] == nil {
			return nil
		}
		return *c.nullInts[row]
	default:
		return c.texts[row]
	}
}

// json is the set as an array of arrays.
func (s Rows) json() string {
	b := make([]byte, 0, 32*s.n*len(s.columns)+2)
	b = append(b, '[')
	for row := range s.n {
		if row > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for column := range s.columns {
			if column > 0 {
				b = append(b, ',')
			}
			switch v := s.value(column, row).(type) {
			case nil:
				b = append(b, "null"...)
			case int64:
				b = strconv.AppendInt(b, v, 10)
			case string:
				b = appendJSONText(b, v)
			case []byte:
				b = append(b, '"')
				b = hex.AppendEncode(b, v)
				b = append(b, '"')
			}
		}
		b = append(b, ']')
	}
	return string(append(b, ']'))
}

func appendJSONText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func jsonTexts(list []string) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONText(b, s)
	}
	return string(append(b, ']'))
}

func jsonInts(list []int64) string {
	b := []byte{'['}
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// insertChunk rows go into one INSERT of SQLite.
const insertChunk = 8

// Insert writes rows into a table with the transaction's deferred writes.
func Insert[T any](t *Tx, into string, columns []Column[T], rows []T) {
	if len(rows) == 0 {
		return
	}
	t.insert(into, RowsOf(columns, rows))
}

func (t *Tx) insert(into string, set Rows) {
	names := make([]string, len(set.columns))
	for i, c := range set.columns {
		names[i] = c.name
	}
	list := strings.Join(names, ", ")
	if t.db.engine == Postgres {
		t.Defer("INSERT INTO "+into+" ("+list+") SELECT "+list+" FROM rows($1) AS r", -1, set)
		return
	}
	// Prepared statements with plain values are SQLite's fastest way.
	whole := set.n / insertChunk
	for _, part := range []struct{ from, size, times int }{
		{0, insertChunk, whole}, {whole * insertChunk, 1, set.n - whole*insertChunk},
	} {
		if part.times == 0 {
			continue
		}
		t.deferred = append(t.deferred, &statement{
			sql:  insertText(into, list, len(names), part.size),
			want: -1,
			repeat: func(i int) []any {
				if i >= part.times {
					return nil
				}
				args := make([]any, 0, part.size*len(names))
				for row := part.from + i*part.size; row < part.from+(i+1)*part.size; row++ {
					for column := range names {
						args = append(args, set.value(column, row))
					}
				}
				return args
			},
		})
	}
}

func insertText(into, list string, columns, rows int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return "INSERT INTO " + into + " (" + list + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
}
