package engine

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Statements are written once, in the SQL that both engines share and these keywords, which each engine's dialect.go
// spells:
//
//	in the text                 on PostgreSQL                  on SQLite
//	IN (SELECT value FROM
//	    texts($1))              = ANY($1), NOT: <> ALL($1)     IN (SELECT value FROM json_each($1))
//	IN (r.id)                   = ANY(ARRAY[r.id])             the same, which is = r.id
//	texts($1), ints($1)         (SELECT unnest($1) AS value)   json_each($1)
//	rows($1)                    unnest of one array a column   json_each($1), column by column
//	greatest(a, b), least(a, b) the same                       max(a, b), min(a, b)
//	now_micros()                clock_timestamp in µs          unixepoch in µs
//	FOR UPDATE [OF t]           the same                       nothing: the one writer has locked all
//	CAST(x AS INTEGER)          CAST(x AS BIGINT)              the same
//	unindexed(x)                x || ''                        the same
//
// unindexed keeps the planner from choosing an index for a text.
//
// $1 of texts and ints is a []string or []int64, of rows a Rows value. rows($1) needs an alias after it. texts and
// ints have their names as aliases and a column "value". Both engines share ON CONFLICT, RETURNING, UPDATE ... FROM
// and row values. An INSERT ... SELECT ... ON CONFLICT needs WHERE true before ON for SQLite's parser. PostgreSQL
// needs CAST($1 AS TEXT) where nothing else shows the type of $1.
//
// Find rows by the first column of an index with IN. PostgreSQL plans = ANY only as an index lookup. A join that was
// planned while the table was empty can read the whole table later. With another column, or where another index has
// the order of ORDER BY, = ANY can become a filter. There, write ORDER BY unindexed(x), or value = (SELECT ...),
// which looks each row up by itself.
//
// A join with rows($1) uses t.a IN (r.a) for the first column of an index, and = for the others. Both cost the same.
// With = for the first column, PostgreSQL may read a whole index for its order. ORDER BY t.a has the same effect;
// ORDER BY unindexed(t.a) has not.
//
// SQLite plans a statement again at each execution if a parameter is compared with a column in the condition of a
// partial index, because the value could imply the condition: kind = $1 beside an index WHERE kind = 'payout'. Where no
// such index helps, write kind IN ($1).
//
// In migrations INTEGER becomes BIGINT, BLOB becomes BYTEA, TEXT becomes TEXT COLLATE "C", and STRICT and WITHOUT
// ROWID are dropped. A line that begins with "-- postgres:" is a comment on SQLite and a statement on PostgreSQL.

// Keywords that both engines replace.
var (
	wordRows      = regexp.MustCompile(`\brows\(\$(\d+)\)`)
	wordUnindexed = regexp.MustCompile(`\bunindexed\(([\w.]+)\)`)
	WordTexts     = regexp.MustCompile(`\btexts\(\$(\d+)\)`)
	WordInts      = regexp.MustCompile(`\bints\(\$(\d+)\)`)
	WordNow       = regexp.MustCompile(`\bnow_micros\(\)`)
)

// ReplaceSets replaces each rows($n) by the result of spell for n and the set. It also replaces the keywords that
// guide the query planners of both engines.
func ReplaceSets(sql string, args []any, spell func(number int, set Rows) string) string {
	sql = wordRows.ReplaceAllStringFunc(sql, func(word string) string {
		n, _ := strconv.Atoi(wordRows.FindStringSubmatch(word)[1])
		if n < 1 || n > len(args) {
			return word
		}
		set, ok := args[n-1].(Rows)
		if !ok {
			return word
		}
		return spell(n, set)
	})
	return wordUnindexed.ReplaceAllString(sql, "$1 || ''")
}

// TextKey identifies a translated text by the original text, the columns of its rows, and whether it is guarded.
type TextKey struct {
	SQL, Columns string
	Guarded      bool
}

// Texts caches translations. All statements are constants, so the cache stays small.
type Texts struct{ m sync.Map }

// Get returns the cached text of a key. It calls translate if there is none.
func (c *Texts) Get(key TextKey, translate func() string) string {
	if text, ok := c.m.Load(key); ok {
		return text.(string)
	}
	text := translate()
	c.m.Store(key, text)
	return text
}

// Argument converts a Go value to one that both drivers store alike. Named types become their underlying types,
// booleans 0 and 1, and times microseconds.
func Argument(a any) (any, error) {
	switch v := a.(type) {
	case nil, string, int64, []byte, float64, []string, []int64:
		return v, nil
	case int:
		return int64(v), nil
	case bool:
		return Bool(v), nil
	case time.Time:
		return Micros(v), nil
	case json.RawMessage:
		if v == nil {
			return nil, nil
		}
		return string(v), nil
	case driver.Valuer:
		return v.Value()
	}
	r := reflect.ValueOf(a)
	switch r.Kind() {
	case reflect.String:
		return r.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(r.Uint()), nil
	case reflect.Bool:
		return Bool(r.Bool()), nil
	case reflect.Pointer:
		if r.IsNil() {
			return nil, nil
		}
		return Argument(r.Elem().Interface())
	case reflect.Slice:
		switch r.Type().Elem().Kind() {
		case reflect.Uint8:
			return r.Bytes(), nil
		case reflect.String:
			list := make([]string, r.Len())
			for i := range list {
				list[i] = r.Index(i).String()
			}
			return list, nil
		case reflect.Int, reflect.Int64:
			list := make([]int64, r.Len())
			for i := range list {
				list[i] = r.Index(i).Int()
			}
			return list, nil
		}
	}
	return nil, fmt.Errorf("a %T cannot be stored", a)
}

// Bool returns the stored form of a boolean.
func Bool(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
