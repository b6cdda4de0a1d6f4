package cli

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// A PostgreSQL without disk space or connections is reported in PostgreSQL's own words.
func TestDoctor_postgresIsFull(t *testing.T) {
	t.Parallel()
	d := patient(t)
	d.Server.Connections = 1
	d.Database = dbtest.EmptyURL(t)
	super, err := db.Open(t.Context(), db.Options{URL: d.Database, MaxConns: frame.Connections})
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close()
	run := func(sql string) {
		t.Helper()
		if err := super.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql); return err }); err != nil {
			t.Fatal(err)
		}
	}
	look := func(check, state, fact string) {
		t.Helper()
		d.stored(t.Context())
		d.says(t, check, state, fact)
	}
	look("connections of PostgreSQL", stateOK, "a node opens up to 1")
	d.Server.Connections = 1 << 20
	look("connections of PostgreSQL", stateWarn, "a node opens up to 1048576")
	look("disk of PostgreSQL", stateOK, "16 MB")
	if left, err := tables(t, super); err != nil || left != 0 {
		t.Errorf("the check left %d tables: %v", left, err)
	}

	run(`CREATE FUNCTION full_disk() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'could not extend file "base/1/2": No space left on device', HINT = 'Check free disk space.'; END $$`)
	run(`CREATE EVENT TRIGGER full_disk ON ddl_command_end WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION full_disk()`)
	look("disk of PostgreSQL", stateFail, `no disk space left: could not extend file "base/1/2": No space left on device Check free disk space.`)

	role := "makola_t_" + strings.ReplaceAll(frame.NewID(), "-", "")
	run(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'x' CONNECTION LIMIT 0`)
	defer run(`DROP ROLE ` + role)
	u, err := url.Parse(d.Database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	d.Database = u.String()
	look("database", stateFail, "no connections left: too many connections for role")
}

// tables counts the tables of a database.
func tables(t *testing.T, d *db.DB) (n int64, err error) {
	t.Helper()
	_, err = d.ReadOne(t.Context(), `SELECT count(*) FROM pg_class WHERE relname = 'makola_room'`, nil, &n)
	return n, err
}

// The doctor reports the result of the server's probe: that it is not ready, or which requests it refuses.
func TestDoctor_serverRefuses(t *testing.T) {
	t.Parallel()
	d := patient(t)
	look := func(status int, body, state, fact string) {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("the path is %s", r.URL.Path)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		d.Listen = server.Listener.Addr().String()
		d.readiness(t.Context())
		d.says(t, "readiness", state, fact)
	}
	look(http.StatusOK, `{"message":"ready"}`, stateOK, "the server is ready")
	look(http.StatusOK, `{"message":"ready, but the disk is nearly full","refused":["the disk is nearly full: contacts are refused"]}`, stateFail, "refuses: the disk is nearly full: contacts are refused")
	look(http.StatusServiceUnavailable, `{"message":"the database has no connections left"}`, stateFail, "accepts no requests: the database has no connections left")
	look(http.StatusBadGateway, `<html>`, stateFail, "/readyz answers 502")
	d.Listen = "127.0.0.1:1"
	d.readiness(t.Context())
	d.says(t, "readiness", stateWarn, "no server answers at 127.0.0.1:1")
	d.Listen = "nowhere"
	d.readiness(t.Context())
	d.says(t, "readiness", stateFail, "nowhere")
}
