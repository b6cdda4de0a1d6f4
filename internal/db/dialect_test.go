package db

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/db/engine"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/db/sqlite"
)

// testServer is the URL of the PostgreSQL of the tests. A test that needs it is skipped with go test -short.
func testServer(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("make quick runs SQLite alone")
	}
	server := os.Getenv("MAKOLA_TEST_POSTGRES")
	if server == "" {
		t.Fatal("MAKOLA_TEST_POSTGRES is not set; run: export MAKOLA_TEST_POSTGRES=$(scripts/postgres.sh start)")
	}
	return server
}

// emptyURL makes an empty database. It cannot be in dbtest, because dbtest imports this package.
func emptyURL(t *testing.T) string {
	t.Helper()
	server := testServer(t)
	name := fmt.Sprintf("makola_t_%d_%x", time.Now().Unix(), time.Now().UnixNano())
	run := func(ctx context.Context, sql string) {
		c, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(ctx) }()
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	run(t.Context(), "CREATE DATABASE "+name)
	t.Cleanup(func() { run(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") })
	return strings.Replace(server, "/postgres?", "/"+name+"?", 1)
}

type pair struct {
	id string
	n  int64
}

var pairColumns = []Column[pair]{
	{Name: "id", Text: func(p pair) string { return p.id }},
	{Name: "n", Int: func(p pair) int64 { return p.n }},
}

// One SQL text is translated into the dialect of each engine.
func TestTranslate_bothEngines(t *testing.T) {
	set := RowsOf(pairColumns, []pair{{"a", 1}, {"b\"", 2}})
	for _, c := range []struct {
		sql              string
		args             []any
		postgres, sqlite string
	}{
		{"SELECT 1 FROM t WHERE a = $1 FOR UPDATE", []any{1},
			"SELECT 1 FROM t WHERE a = $1 FOR UPDATE", "SELECT 1 FROM t WHERE a = $1"},
		{"SELECT 1 FROM t\nFOR UPDATE OF t", nil,
			"SELECT 1 FROM t\nFOR UPDATE OF t", "SELECT 1 FROM t"},
		{"SELECT CAST(note->>'n' AS INTEGER) FROM t", nil,
			"SELECT CAST(note->>'n' AS BIGINT) FROM t", "SELECT CAST(note->>'n' AS INTEGER) FROM t"},
		{"SELECT 1 FROM t WHERE unindexed(t.a) IN (SELECT value FROM texts($1)) ORDER BY unindexed(n)", []any{[]string{"x"}},
			"SELECT 1 FROM t WHERE t.a || '' = ANY($1::text[]) ORDER BY n || ''",
			"SELECT 1 FROM t WHERE t.a || '' IN (SELECT value FROM json_each($1) AS texts) ORDER BY n || ''"},
		{"SELECT greatest(a, 1), least(b, 2) FROM t", nil,
			"SELECT greatest(a, 1), least(b, 2) FROM t", "SELECT max(a, 1), min(b, 2) FROM t"},
		{"SELECT n FROM t WHERE id IN (SELECT value FROM texts($1)) AND n IN (SELECT value FROM ints($2))", []any{[]string{"x"}, []int64{1}},
			"SELECT n FROM t WHERE id = ANY($1::text[]) AND n IN (SELECT value FROM (SELECT unnest($2::bigint[]) AS value) AS ints)",
			"SELECT n FROM t WHERE id IN (SELECT value FROM json_each($1) AS texts) AND n IN (SELECT value FROM json_each($2) AS ints)"},
		{"SELECT n FROM t WHERE id NOT IN (SELECT value FROM texts($1))", []any{[]string{"x"}},
			"SELECT n FROM t WHERE id <> ALL($1::text[])", "SELECT n FROM t WHERE id NOT IN (SELECT value FROM json_each($1) AS texts)"},
		{"SELECT n FROM texts($1) JOIN t ON t.id = texts.value", []any{[]string{"x"}},
			"SELECT n FROM (SELECT unnest($1::text[]) AS value) AS texts JOIN t ON t.id = texts.value",
			"SELECT n FROM json_each($1) AS texts JOIN t ON t.id = texts.value"},
		{"UPDATE t SET n = r.n FROM rows($1) AS r WHERE t.id = r.id AND x < $2", []any{set, 7},
			"UPDATE t SET n = r.n FROM (SELECT * FROM unnest($1::text[], $3::bigint[]) AS u (id, n)) AS r WHERE t.id = r.id AND x < $2",
			"UPDATE t SET n = r.n FROM (SELECT value->>0 AS id, value->>1 AS n FROM json_each($1)) AS r WHERE t.id = r.id AND x < $2"},
		{"UPDATE t SET n = r.n FROM rows($1) AS r WHERE t.id IN (r.id)", []any{set},
			"UPDATE t SET n = r.n FROM (SELECT * FROM unnest($1::text[], $2::bigint[]) AS u (id, n)) AS r WHERE t.id = ANY(ARRAY[r.id])",
			"UPDATE t SET n = r.n FROM (SELECT value->>0 AS id, value->>1 AS n FROM json_each($1)) AS r WHERE t.id IN (r.id)"},
	} {
		var pg postgres.DB
		for range 2 { // translated, then read from the cache
			if got, err := pg.Translate(c.sql, -1, c.args); err != nil || got.SQL != c.postgres {
				t.Errorf("PostgreSQL: %v\n%s\nwant\n%s", err, got.SQL, c.postgres)
			}
			if got, err := new(sqlite.DB).Translate(c.sql, -1, c.args); err != nil || got.SQL != c.sqlite {
				t.Errorf("SQLite: %v\n%s\nwant\n%s", err, got.SQL, c.sqlite)
			}
		}
	}
	guarded, err := new(postgres.DB).Translate("DELETE FROM t USING rows($1) AS r WHERE t.id = r.id", 2, []any{set})
	if err != nil || len(guarded.Args) != 3 || !strings.HasPrefix(guarded.SQL, "WITH guarded AS (DELETE FROM t USING (SELECT * FROM unnest($1::text[], $2::bigint[])") || !strings.Contains(guarded.SQL, "= $3::bigint") {
		t.Errorf("guarded: %v, %v\n%s", guarded.Args, err, guarded.SQL)
	}
	if got, err := new(sqlite.DB).Translate("SELECT 1 FROM rows($1) AS r", -1, []any{set}); err != nil || got.Args[0] != `[["a",1],["b\"",2]]` {
		t.Errorf("json: %v, %v", got, err)
	}
}

// Arguments are converted to the form that both engines store.
func TestArguments_becomeStoredForm(t *testing.T) {
	type name string
	type amount int64
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	text := "x"
	for _, c := range []struct{ in, want any }{
		{name("a"), "a"}, {amount(3), int64(3)}, {true, int64(1)}, {false, int64(0)}, {7, int64(7)},
		{at, at.UnixMicro()}, {time.Time{}, int64(0)}, {(*string)(nil), nil}, {&text, "x"}, {nil, nil},
	} {
		got, err := engine.Argument(c.in)
		if err != nil || got != c.want {
			t.Errorf("%#v became %#v (%v), want %#v", c.in, got, err, c.want)
		}
	}
	for _, wrong := range []any{struct{}{}, map[string]int{}, make(chan int), []struct{}{{}}, 1i} {
		if got, err := engine.Argument(wrong); err == nil {
			t.Errorf("%#v became %#v", wrong, got)
		}
	}
	if back := FromMicros(Micros(at)); !back.Equal(at.Truncate(time.Microsecond)) || !FromMicros(0).IsZero() {
		t.Errorf("the time came back as %v", back)
	}
}

// Arrays work in each execution mode in which the driver gets the types of parameters from the server.
func TestArrays_workInEachExecMode(t *testing.T) {
	url := emptyURL(t)
	for mode, works := range map[string]bool{
		"cache_statement": true, "cache_describe": true, "describe_exec": true, "exec": false, "simple_protocol": false,
	} {
		d, err := Open(t.Context(), Options{URL: url + "&default_query_exec_mode=" + mode})
		if !works {
			if err == nil || !strings.Contains(err.Error(), "default_query_exec_mode") {
				t.Errorf("%s: %v", mode, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		var got int64
		err = d.Read(t.Context(), func(tx *Tx) error {
			_, err := tx.One(`SELECT CAST(sum(value) AS BIGINT) FROM ints($1)`, []any{[]int64{3, 4}}, &got)
			return err
		})
		if err != nil || got != 7 {
			t.Errorf("%s: %d, %v", mode, got, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
