package postgres

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgreSQL's programs receive the parts of the URL as environment variables.
func TestClientEnvironment_fromURL(t *testing.T) {
	for _, name := range []string{"PGSSLMODE", "PGSERVICE", "PGPASSWORD"} {
		t.Setenv(name, "")
	}
	for url, want := range map[string][]string{
		"postgres://ama:p%40ss@db.example:5433/shop?sslmode=disable&pool_max_conns=3&search_path=x&connect_timeout=3": {
			"PGHOST=db.example", "PGPORT=5433", "PGUSER=ama", "PGPASSWORD=p@ss", "PGDATABASE=shop", "PGSSLMODE=disable", "PGCONNECT_TIMEOUT=3", "PGAPPNAME=makola"},
		"postgres://ama@one:5432,two:5433/shop?target_session_attrs=read-write": {
			"PGHOST=one,two", "PGPORT=5432,5433", "PGUSER=ama", "PGDATABASE=shop", "PGTARGETSESSIONATTRS=read-write", "PGAPPNAME=makola"},
	} {
		got, err := ClientEnvironment(url)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s:\n%v\n%v, want\n%v", url, got, err, want)
		}
	}
	for _, url := range []string{"host=db password=secret", "postgres://ama:secret@[db/x"} {
		if _, err := ClientEnvironment(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Creating a scratch database removes the databases that killed drills left. Databases that are young, in use or not
// ours stay.
func TestScratch_removesLeftovers(t *testing.T) {
	t.Parallel()
	server := server(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	suffix := strings.ToLower(rand.Text()[:8])
	name := func(age time.Duration) string {
		return scratchPrefix + time.Now().UTC().Add(-age).Format(scratchTime) + "_" + suffix
	}
	old, young, used, foreign := name(25*time.Hour), name(time.Hour), name(26*time.Hour), "scratchxmakola_20200101t000000_"+suffix
	for _, one := range []string{old, young, used, foreign} {
		if err := alone(t.Context(), server, "CREATE DATABASE "+one+" TEMPLATE template0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = alone(context.Background(), server, "DROP DATABASE IF EXISTS "+one+" WITH (FORCE)") })
	}
	u.Path = "/" + used
	session, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.Background()) }()
	_, drop, err := Scratch(t.Context(), server, "public")
	if err != nil {
		t.Fatal(err)
	}
	if err := drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for one, want := range map[string]bool{old: false, young: true, used: true, foreign: true} {
		var there bool
		if err := c.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, one).Scan(&there); err != nil || there != want {
			t.Errorf("%s is there: %t, %v, want %t", one, there, err, want)
		}
	}
}

// server is the URL of the PostgreSQL of the tests. A test that needs it is skipped with go test -short.
func server(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("make quick runs SQLite alone")
	}
	url := os.Getenv("MAKOLA_TEST_POSTGRES")
	if url == "" {
		t.Fatal("MAKOLA_TEST_POSTGRES is not set; run: export MAKOLA_TEST_POSTGRES=$(scripts/postgres.sh start)")
	}
	return url
}

// A URL of another scheme is not accepted as a PostgreSQL database. A list of keywords is accepted.
func TestURL_ofPostgres(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"postgres://x/y", "postgresql://x", "host=/run dbname=makola password=a://b", "dbname=makola"} {
		if !ofPostgres(text) {
			t.Errorf("%s is refused", text)
		}
	}
}
