package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/db/engine"
)

var (
	wordGreatest  = regexp.MustCompile(`(?i)\bgreatest\(`)
	wordLeast     = regexp.MustCompile(`(?i)\bleast\(`)
	wordForUpdate = regexp.MustCompile(`(?i)\s+FOR\s+UPDATE(\s+OF\s+\w+)?`)
)

// Translate implements engine.Opener. For a guarded statement the session counts the affected rows itself.
func (d *DB) Translate(sql string, want int64, args []any) (*engine.Statement, error) {
	out := make([]any, len(args))
	key := engine.TextKey{SQL: sql}
	for i, a := range args {
		if set, ok := a.(engine.Rows); ok {
			key.Columns += set.Signature
			out[i] = jsonRows(set)
			continue
		}
		v, err := engine.Argument(a)
		if err != nil {
			return nil, fmt.Errorf("db: argument $%d: %w", i+1, err)
		}
		switch list := v.(type) {
		case []string:
			v = jsonTexts(list)
		case []int64:
			v = jsonInts(list)
		}
		out[i] = v
	}
	text := d.texts.Get(key, func() string { return translated(sql, args) })
	return &engine.Statement{SQL: text, Args: out, Want: want}, nil
}

func translated(sql string, args []any) string {
	sql = engine.ReplaceSets(sql, args, func(n int, set engine.Rows) string {
		var columns []string
		for i, c := range set.Columns {
			expression := fmt.Sprintf("value->>%d", i)
			if c.Kind == engine.KindBlob {
				expression = "unhex(" + expression + ")"
			}
			columns = append(columns, expression+" AS "+c.Name)
		}
		return fmt.Sprintf("(SELECT %s FROM json_each($%d))", strings.Join(columns, ", "), n)
	})
	sql = engine.WordTexts.ReplaceAllString(sql, "json_each($$$1) AS texts")
	sql = engine.WordInts.ReplaceAllString(sql, "json_each($$$1) AS ints")
	sql = wordGreatest.ReplaceAllString(sql, "max(")
	sql = wordLeast.ReplaceAllString(sql, "min(")
	sql = engine.WordNow.ReplaceAllString(sql, "CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)")
	return wordForUpdate.ReplaceAllString(sql, "")
}

// jsonRows returns a set of rows as a JSON array of arrays.
func jsonRows(s engine.Rows) string {
	b := make([]byte, 0, 32*s.Len()*len(s.Columns)+2)
	b = append(b, '[')
	for row := range s.Len() {
		if row > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for column := range s.Columns {
			if column > 0 {
				b = append(b, ',')
			}
			switch v := s.Value(column, row).(type) {
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
			quoted, _ := json.Marshal(s) // a string can always be marshalled
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

// insertChunk is the number of rows in one INSERT.
const insertChunk = 8

// Insert implements engine.Opener. Prepared statements with plain values are the fastest way on SQLite.
func (d *DB) Insert(into string, set engine.Rows) (statements []*engine.Statement, err error) {
	width := len(set.Columns)
	whole := set.Len() / insertChunk
	for _, part := range []struct{ from, size, times int }{
		{0, insertChunk, whole}, {whole * insertChunk, 1, set.Len() - whole*insertChunk},
	} {
		if part.times == 0 {
			continue
		}
		statements = append(statements, &engine.Statement{
			SQL:  insertText(into, set.Names(), width, part.size),
			Want: -1,
			Repeat: func(i int) []any {
				if i >= part.times {
					return nil
				}
				args := make([]any, 0, part.size*width)
				for row := part.from + i*part.size; row < part.from+(i+1)*part.size; row++ {
					for column := range width {
						args = append(args, set.Value(column, row))
					}
				}
				return args
			},
		})
	}
	return statements, nil
}

func insertText(into, list string, columns, rows int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return "INSERT INTO " + into + " (" + list + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
}
