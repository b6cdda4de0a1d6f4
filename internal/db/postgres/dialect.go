package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/db/engine"
)

// guardMark begins the error text of a failed guard on PostgreSQL.
const guardMark = "makola guard"

var (
	wordInTexts     = regexp.MustCompile(`\bIN \(SELECT value FROM texts\(\$(\d+)\)\)`)
	wordInOne       = regexp.MustCompile(`\bIN \((\w+\.\w+)\)`)
	wordNotInTexts  = regexp.MustCompile(`\bNOT IN \(SELECT value FROM texts\(\$(\d+)\)\)`)
	wordCastInteger = regexp.MustCompile(`(?i)\bAS\s+INTEGER\s*\)`)
	typeInteger     = regexp.MustCompile(`\bINTEGER\b`)
	typeBlob        = regexp.MustCompile(`\bBLOB\b`)
	typeText        = regexp.MustCompile(`\bTEXT\b`)
	onlyPostgres    = regexp.MustCompile(`(?m)^-- postgres:`)
	postgresOnly    = regexp.MustCompile(`(?m)^-- postgres: `)
	tableOptions    = regexp.MustCompile(`\)\s*(STRICT|WITHOUT\s+ROWID)(\s*,\s*(STRICT|WITHOUT\s+ROWID))?\s*;`)
)

// Translate implements engine.Opener. It wraps a guarded statement so that the server itself rejects a wrong number
// of rows. We would receive the number only after COMMIT was sent.
func (d *DB) Translate(sql string, want int64, args []any) (*engine.Statement, error) {
	out := make([]any, 0, len(args)+4)
	for i, a := range args {
		if set, ok := a.(engine.Rows); ok {
			out = append(out, &array{Column: &set.Columns[0]})
			continue
		}
		v, err := engine.Argument(a)
		if err != nil {
			return nil, fmt.Errorf("db: argument $%d: %w", i+1, err)
		}
		switch list := v.(type) {
		case []string:
			v = &array{Column: &engine.Column{Texts: list}}
		case []int64:
			v = &array{Column: &engine.Column{Ints: list}}
		}
		out = append(out, v)
	}
	guarded := want >= 0
	key := engine.TextKey{SQL: sql, Guarded: guarded}
	for _, a := range args {
		if set, ok := a.(engine.Rows); ok {
			key.Columns += set.Signature
			for i := 1; i < len(set.Columns); i++ {
				out = append(out, &array{Column: &set.Columns[i]})
			}
		}
	}
	makeRoom(out)
	text := d.texts.Get(key, func() string { return translated(sql, args, guarded) })
	if guarded {
		out = append(out, want)
	}
	return &engine.Statement{SQL: text, Args: out, Want: -1}, nil
}

// Insert implements engine.Opener.
func (d *DB) Insert(into string, set engine.Rows) ([]*engine.Statement, error) {
	list := set.Names()
	s, err := d.Translate("INSERT INTO "+into+" ("+list+") SELECT "+list+" FROM rows($1) AS r", -1, []any{set})
	return []*engine.Statement{s}, err
}

// translated makes the translation. The first array of a set has the set's parameter number. The numbers of its other
// arrays follow after all arguments.
func translated(sql string, args []any, guarded bool) string {
	next := len(args) + 1
	first := map[int]int{} // parameter number of a set's second array
	for i, a := range args {
		if set, ok := a.(engine.Rows); ok {
			first[i+1] = next
			next += len(set.Columns) - 1
		}
	}
	sql = engine.ReplaceSets(sql, args, func(n int, set engine.Rows) string {
		var arrays, names []string
		for i, c := range set.Columns {
			number := n
			if i > 0 {
				number = first[n] + i - 1
			}
			arrays = append(arrays, fmt.Sprintf("$%d::%s[]", number, typeOf(c.Kind)))
			names = append(names, c.Name)
		}
		return "(SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ") AS u (" + strings.Join(names, ", ") + "))"
	})
	sql = wordNotInTexts.ReplaceAllString(sql, "<> ALL($$$1::text[])")
	sql = wordInTexts.ReplaceAllString(sql, "= ANY($$$1::text[])")
	sql = wordInOne.ReplaceAllString(sql, "= ANY(ARRAY[$1])")
	sql = engine.WordTexts.ReplaceAllString(sql, "(SELECT unnest($$$1::text[]) AS value) AS texts")
	sql = engine.WordInts.ReplaceAllString(sql, "(SELECT unnest($$$1::bigint[]) AS value) AS ints")
	sql = engine.WordNow.ReplaceAllString(sql, "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
	sql = wordCastInteger.ReplaceAllString(sql, "AS BIGINT)")
	if guarded {
		want := "$" + strconv.Itoa(next)
		sql = "WITH guarded AS (" + sql + " RETURNING 1) SELECT CAST(CASE WHEN count(*) = " + want + "::bigint THEN '0' ELSE '" +
			guardMark + ": ' || count(*) || ' rows instead of ' || " + want + "::bigint END AS bigint) FROM guarded"
	}
	return sql
}

// typeOf returns the SQL type of a column's elements.
func typeOf(k engine.Kind) string {
	switch k {
	case engine.KindInt, engine.KindNullInt:
		return "bigint"
	case engine.KindBlob:
		return "bytea"
	}
	return "text"
}

// ddl translates a migration.
func ddl(text string) string {
	text = onlyPostgres.ReplaceAllString(text, "")
	text = postgresOnly.ReplaceAllString(text, "")
	text = tableOptions.ReplaceAllString(text, ");")
	text = typeInteger.ReplaceAllString(text, "BIGINT")
	text = typeBlob.ReplaceAllString(text, "BYTEA")
	return typeText.ReplaceAllString(text, `TEXT COLLATE "C"`)
}
