// Package dbtest gives tests a fresh, migrated database of each engine. MAKOLA_TEST_POSTGRES names the PostgreSQL
// server (scripts/postgres.sh start prints it). Without it the test fails, because a test on one engine proves
// nothing for the other.
package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/db"
)

// Environment is the variable with the URL of the test server.
const Environment = "MAKOLA_TEST_POSTGRES"

// connections is the size of a test's PostgreSQL pool. It is small, because many packages are tested at once.
const connections = 8

// EnginesVariable names the one engine that Each runs on: the gate runs most packages on PostgreSQL with the race detector and on
// SQLite without it.
const EnginesVariable = "MAKOLA_TEST_ENGINES"

// Engines returns the engines of Each: only SQLite with go test -short, as make quick runs it.
func Engines() []db.Engine {
	all := []db.Engine{db.SQLite, db.Postgres}
	named := os.Getenv(EnginesVariable)
	if testing.Short() {
		named = db.SQLite.String()
	}
	if named == "" {
		return all
	}
	for _, e := range all {
		if e.String() == named {
			return []db.Engine{e}
		}
	}
	panic(EnginesVariable + " is " + named + ", which is no engine") // a test without an engine could not fail
}

// Each runs fn as a subtest on a fresh database of each engine.
func Each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Parallel()
	for _, e := range Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, Open(t, e))
		})
	}
}

// EachFaulty is Each with connections that break on demand. After fn has ended, also by Fatal, connections no longer break, because the
// cleanup of the test needs the database.
func EachFaulty(t *testing.T, fn func(t *testing.T, d *db.DB, f *db.Faults)) {
	t.Helper()
	t.Parallel()
	for _, e := range Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := &db.Faults{Looks: 5}
			o := Options(t, e)
			o.Faults = f
			d := OpenWith(t, o)
			defer f.Decide(nil)
			fn(t, d, f)
		})
	}
}

// Open opens a fresh, migrated database. It is closed and dropped with the test.
func Open(t testing.TB, e db.Engine) *db.DB {
	t.Helper()
	return OpenWith(t, Options(t, e))
}

// OpenWith opens a database with o and closes it with the test.
func OpenWith(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return d
}

// Options makes a fresh, migrated database and returns the options to open it, for tests that open it more than once.
func Options(t testing.TB, e db.Engine) db.Options {
	t.Helper()
	if e == db.Postgres {
		return db.Options{URL: URL(t), MaxConns: connections}
	}
	path := filepath.Join(t.TempDir(), "makola.db")
	File(t, path)
	return db.Options{Path: path}
}

// File makes a fresh, migrated SQLite database at path.
func File(t testing.TB, path string) {
	t.Helper()
	migrated, err := migratedFile()
	if err == nil {
		err = os.WriteFile(path, migrated, 0o600)
	}
	if err != nil {
		t.Fatalf("make a SQLite database: %v", err)
	}
}

// migratedFile is a migrated SQLite file, made once in a test run.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "makola-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "makola.db")
	d, err := db.Open(context.Background(), db.Options{Path: path})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.Migrate(context.Background()), d.Close()); err != nil {
		return nil, err
	}
	if left, _ := filepath.Glob(path + "-*"); len(left) > 0 {
		return nil, fmt.Errorf("not everything is in the file: %v", left)
	}
	return os.ReadFile(path)
})

// URL gives the test a migrated PostgreSQL database without rows. It is a copy of a template, which is made once for
// each state of the migrations, or a database that an earlier test released.
func URL(t testing.TB) string {
	t.Helper()
	server := serverURL(t)
	template, err := templateOf(server)
	if err != nil {
		t.Fatalf("make the template database: %v", err)
	}
	return lease(t, server, template)
}

// templates has the names of the templates that this process has found or made, by server.
var templates sync.Map

// templateOf returns the template of a server. It queries the server once.
func templateOf(server string) (string, error) {
	if name, known := templates.Load(server); known {
		return name.(string), nil
	}
	name, err := makeTemplate(context.Background(), server)
	if err == nil {
		templates.Store(server, name)
	}
	return name, err
}

// serverURL is the PostgreSQL server of the tests. A test that needs it is skipped with go test -short.
func serverURL(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("make quick runs SQLite alone")
	}
	server := os.Getenv(Environment)
	if server == "" {
		t.Fatalf("%s is not set; run: export %s=$(scripts/postgres.sh start)", Environment, Environment)
	}
	return server
}

// EmptyURL makes a fresh PostgreSQL database without tables. It is dropped with
// the test.
func EmptyURL(t testing.TB) string {
	t.Helper()
	server := serverURL(t)
	name := testPrefix + strings.ReplaceAll(uuid.NewString(), "-", "")[:16]
	if err := run(t.Context(), server, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() {
		if err := run(context.Background(), server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	return withName(server, name)
}

// The names of what tests make on the server begin with these.
const (
	testPrefix     = "makola_t_"
	templatePrefix = "makola_template_"
)

func withName(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Path = "/" + name
	return u.String()
}

func run(ctx context.Context, server string, statements ...string) error {
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	for _, s := range statements {
		if _, err := c.Exec(ctx, s, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// makeTemplate finds or makes the template. Test binaries run at once: a lock on
// the server, which only tests may use, lets one of them make it.
func makeTemplate(ctx context.Context, server string) (string, error) {
	sum, err := state()
	if err != nil {
		return "", err
	}
	name := templatePrefix + sum
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close(ctx) }()
	there := func() (found bool, err error) {
		err = c.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)", name).Scan(&found)
		return found, err
	}
	if found, err := there(); err != nil || found {
		return name, err
	}
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock(7317)"); err != nil {
		return "", err
	}
	if found, err := there(); err != nil || found {
		return name, err
	}
	if err := sweep(ctx, c, server); err != nil {
		return "", err
	}
	building := name + "_building"
	if err := run(ctx, server, "DROP DATABASE IF EXISTS "+building+" WITH (FORCE)", "CREATE DATABASE "+building); err != nil {
		return "", err
	}
	d, err := db.Open(ctx, db.Options{URL: withName(server, building), MaxConns: 2})
	if err != nil {
		return "", err
	}
	if err := errors.Join(d.Migrate(ctx), d.Close()); err != nil {
		return "", err
	}
	return name, run(ctx, server, "ALTER DATABASE "+building+" RENAME TO "+name)
}

// sweep drops unused databases that tests left behind, and templates of other
// states that are a day old.
func sweep(ctx context.Context, c *pgx.Conn, server string) error {
	rows, err := c.Query(ctx, `SELECT datname FROM pg_database, pg_stat_file('base/' || oid || '/PG_VERSION', true) AS made
WHERE starts_with(datname, $1) AND made.modification < now() - interval '2 hours'
OR starts_with(datname, $2) AND made.modification < now() - interval '1 day'`, testPrefix, templatePrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		var free bool
		if err := c.QueryRow(ctx, lockName, name).Scan(&free); err != nil {
			return err
		}
		if !free {
			continue
		}
		if err := run(ctx, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	return nil
}

// state is a checksum over all migrations, and the query that recognises their tables.
func state() (string, error) {
	list, err := db.KnownMigrations()
	h := sha256.New()
	h.Write([]byte(fingerprint))
	for _, m := range list {
		h.Write([]byte(m.Name + m.Checksum))
	}
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
