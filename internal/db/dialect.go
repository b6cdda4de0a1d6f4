package db

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file is the one place where the engines' spellings differ. A statement
// is written once, in the words that both engines share plus these:
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
// The last says what the planner shall not do: choose an index for a text.
//
// $1 of texts and ints is a []string or []int64, of rows a Rows value. rows($1)
// needs an alias after it, texts and ints have theirs ("texts", "ints") and a
// column "value". Both engines have these, which need no word: ON CONFLICT, RETURNING, UPDATE ...
// FROM, row values. An INSERT ... SELECT ... ON CONFLICT needs WHERE true before ON for SQLite's
// parser. PostgreSQL needs CAST($1 AS TEXT) where nothing else says what $1 is. Rows of a table that
// are named by one column are best found with IN: a plan of = ANY can only look them up, where a join
// that was planned while the table was empty reads all of what it has become. That holds for the first
// column of an index, and where no other index has the order that is asked for (ORDER BY
// unindexed(x) asks for none's); else = ANY may become a filter, and value = (SELECT ...) looks
// each row up by itself. A join with rows($1) says t.a IN (r.a) of the column that an index begins
// with, and = of the others: it costs the same, but only an equality gives an index an order that
// PostgreSQL thinks worth reading it whole for. ORDER BY t.a is worth it, too; ORDER BY unindexed(t.a)
// is not.
//
// In migrations INTEGER becomes BIGINT, BLOB becomes BYTEA, TEXT becomes
// TEXT COLLATE "C", and STRICT and WITHOUT ROWID go away. A line that begins with
// "-- postgres:" is a comment on SQLite and a statement on PostgreSQL.

// guardMark begins the text that a failed guard raises on PostgreSQL.
const guardMark = "makola guard"

var (
	wordRows        = regexp.MustCompile(`\brows\(\$(\d+)\)`)
	wordInTexts     = regexp.MustCompile(`\bIN \(SELECT value FROM texts\(\$(\d+)\)\)`)
	wordInOne       = regexp.MustCompile(`\bIN \((\w+\.\w+)\)`)
	wordNotInTexts  = regexp.MustCompile(`\bNOT IN \(SELECT value FROM texts\(\$(\d+)\)\)`)
	wordTexts       = regexp.MustCompile(`\btexts\(\$(\d+)\)`)
	wordInts        = regexp.MustCompile(`\bints\(\$(\d+)\)`)
	wordUnindexed   = regexp.MustCompile(`\bunindexed\(([\w.]+)\)`)
	wordNow         = regexp.MustCompile(`\bnow_micros\(\)`)
	wordGreatest    = regexp.MustCompile(`(?i)\bgreatest\(`)
	wordLeast       = regexp.MustCompile(`(?i)\bleast\(`)
	wordForUpdate   = regexp.MustCompile(`(?i)\s+FOR\s+UPDATE(\s+OF\s+\w+)?`)
	wordCastInteger = regexp.MustCompile(`(?i)\bAS\s+INTEGER\s*\)`)
	typeInteger     = regexp.MustCompile(`\bINTEGER\b`)
	typeBlob        = regexp.MustCompile(`\bBLOB\b`)
	typeText        = regexp.MustCompile(`\bTEXT\b`)
	onlyPostgres    = regexp.MustCompile(`(?m)^-- postgres:`)
	postgresOnly    = regexp.MustCompile(`(?m)^-- postgres: `)
	tableOptions    = regexp.MustCompile(`\)\s*(STRICT|WITHOUT\s+ROWID)(\s*,\s*(STRICT|WITHOUT\s+ROWID))?\s*;`)
)

// A textKey finds a translated text: what was written, which columns its rows
// have, and whether it is guarded.
type textKey struct {
	sql, columns string
	guarded      bool
}

// texts holds translations. Statements are constants, so it stays small; the
// texts are pure functions of their keys.
type texts struct{ m sync.Map }

func (c *texts) get(key textKey, make func() string) string {
	if text, ok := c.m.Load(key); ok {
		return text.(string)
	}
	text := make()
	c.m.Store(key, text)
	return text
}

// postgres translates sql and its arguments for PostgreSQL.
func (c *texts) postgres(sql string, args []any) (string, []any, error) {
	return c.postgresAs(sql, args, false)
}

// postgresGuarded wraps the statement so that the server itself refuses another
// number of rows: the client only learns it when COMMIT is already on its way.
func (c *texts) postgresGuarded(sql string, want int64, args []any) (string, []any, error) {
	text, out, err := c.postgresAs(sql, args, true)
	return text, append(out, want), err
}

func (c *texts) postgresAs(sql string, args []any, guarded bool) (string, []any, error) {
	out := make([]any, 0, len(args)+4)
	for i, a := range args {
		if set, ok := a.(Rows); ok {
			out = append(out, &array{columnData: &set.columns[0]})
			continue
		}
		v, err := argument(a)
		if err != nil {
			return "", nil, fmt.Errorf("db: argument $%d: %w", i+1, err)
		}
		switch list := v.(type) {
		case []string:
			v = &array{columnData: &columnData{texts: list}}
		case []int64:
			v = &array{columnData: &columnData{ints: list}}
		}
		out = append(out, v)
	}
	key := textKey{sql: sql, guarded: guarded}
	for _, a := range args {
		if set, ok := a.(Rows); ok {
			key.columns += set.signature
			for i := 1; i < len(set.columns); i++ {
				out = append(out, &array{columnData: &set.columns[i]})
			}
		}
	}
	makeRoom(out)
	text := c.get(key, func() string { return postgresText(sql, args, guarded) })
	return text, out, nil
}

// planned translates the words that guide the planners of both engines.
func planned(sql string) string {
	return wordUnindexed.ReplaceAllString(sql, "$1 || ''")
}

// postgresText is the translation itself. The first array of a set keeps the
// set's number, the others follow behind all arguments.
func postgresText(sql string, args []any, guarded bool) string {
	next := len(args) + 1
	first := map[int]int{} // the number of a set's second array
	for i, a := range args {
		if set, ok := a.(Rows); ok {
			first[i+1] = next
			next += len(set.columns) - 1
		}
	}
	sql = wordRows.ReplaceAllStringFunc(sql, func(word string) string {
		n, _ := strconv.Atoi(wordRows.FindStringSubmatch(word)[1])
		if n < 1 || n > len(args) {
			return word
		}
		set, ok := args[n-1].(Rows)
		if !ok {
			return word
		}
		var arrays, names []string
		for i, c := range set.columns {
			number := n
			if i > 0 {
				number = first[n] + i - 1
			}
			arrays = append(arrays, fmt.Sprintf("$%d::%s[]", number, c.kind.postgres()))
			names = append(names, c.name)
		}
		return "(SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ") AS u (" + strings.Join(names, ", ") + "))"
	})
	sql = planned(sql)
	sql = wordNotInTexts.ReplaceAllString(sql, "<> ALL($$$1::text[])")
	sql = wordInTexts.ReplaceAllString(sql, "= ANY($$$1::text[])")
	sql = wordInOne.ReplaceAllString(sql, "= ANY(ARRAY[$1])")
	sql = wordTexts.ReplaceAllString(sql, "(SELECT unnest($$$1::text[]) AS value) AS texts")
	sql = wordInts.ReplaceAllString(sql, "(SELECT unnest($$$1::bigint[]) AS value) AS ints")
	sql = wordNow.ReplaceAllString(sql, "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
	sql = wordCastInteger.ReplaceAllString(sql, "AS BIGINT)")
	if guarded {
		want := "$" + strconv.Itoa(next)
		sql = "WITH guarded AS (" + sql + " RETURNING 1) SELECT CAST(CASE WHEN count(*) = " + want + "::bigint THEN '0' ELSE '" +
			guardMark + ": ' || count(*) || ' rows instead of ' || " + want + "::bigint END AS bigint) FROM guarded"
	}
	return sql
}

// sqlite translates sql and its arguments for SQLite.
func (c *texts) sqlite(sql string, args []any) (string, []any, error) {
	out := make([]any, len(args))
	key := textKey{sql: sql}
	for i, a := range args {
		if set, ok := a.(Rows); ok {
			key.columns += set.signature
			out[i] = set.json()
			continue
		}
		v, err := argument(a)
		if err != nil {
			return "", nil, fmt.Errorf("db: argument $%d: %w", i+1, err)
		}
		switch list := v.(type) {
		case []string:
			v = jsonTexts(list)
		case []int64:
			v = jsonInts(list)
		}
		out[i] = v
	}
	text := c.get(key, func() string { return sqliteText(sql, args) })
	return text, out, nil
}

func sqliteText(sql string, args []any) string {
	sql = wordRows.ReplaceAllStringFunc(sql, func(word string) string {
		n, _ := strconv.Atoi(wordRows.FindStringSubmatch(word)[1])
		if n < 1 || n > len(args) {
			return word
		}
		set, ok := args[n-1].(Rows)
		if !ok {
			return word
		}
		var columns []string
		for i, c := range set.columns {
			expression := fmt.Sprintf("value->>%d", i)
			if c.kind == kindBlob {
				expression = "unhex(" + expression + ")"
			}
			columns = append(columns, expression+" AS "+c.name)
		}
		return fmt.Sprintf("(SELECT %s FROM json_each($%d))", strings.Join(columns, ", "), n)
	})
	sql = planned(sql)
	sql = wordTexts.ReplaceAllString(sql, "json_each($$$1) AS texts")
	sql = wordInts.ReplaceAllString(sql, "json_each($$$1) AS ints")
	sql = wordGreatest.ReplaceAllString(sql, "max(")
	sql = wordLeast.ReplaceAllString(sql, "min(")
	sql = wordNow.ReplaceAllString(sql, "CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)")
	return wordForUpdate.ReplaceAllString(sql, "")
}

// postgresDDL translates a migration.
func postgresDDL(text string) string {
	text = onlyPostgres.ReplaceAllString(text, "")
	text = postgresOnly.ReplaceAllString(text, "")
	text = tableOptions.ReplaceAllString(text, ");")
	text = typeInteger.ReplaceAllString(text, "BIGINT")
	text = typeBlob.ReplaceAllString(text, "BYTEA")
	return typeText.ReplaceAllString(text, `TEXT COLLATE "C"`)
}

// argument turns a Go value into one that both drivers store alike: named types
// become their base, booleans 0 and 1, times microseconds.
func argument(a any) (any, error) {
	switch v := a.(type) {
	case nil, string, int64, []byte, float64, []string, []int64:
		return v, nil
	case int:
		return int64(v), nil
	case bool:
		return boolean(v), nil
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
		return boolean(r.Bool()), nil
	case reflect.Pointer:
		if r.IsNil() {
			return nil, nil
		}
		return argument(r.Elem().Interface())
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

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
