//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// killsOfCopy is the number of kills during a move to PostgreSQL.
const killsOfCopy = 12

// refused runs a command that must fail, and returns its output.
func (s site) refused(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, program(t), append(args, s.args()...)...)
	run.Env = append(run.Environ(), s.environment...)
	var said bytes.Buffer
	run.Stderr = &said
	var failed *exec.ExitError
	if err := run.Run(); !errors.As(err, &failed) || ctx.Err() != nil {
		t.Fatalf("makola %s: %v, %s", strings.Join(args, " "), err, said.String())
	}
	return said.String()
}

// mark returns the mark of the site's database, or none for a database without tables.
func (s site) mark(t *testing.T) (mark installation.Mark) {
	t.Helper()
	o := db.Options{URL: s.url, MaxConns: 1}
	if s.engine == db.SQLite {
		o.Path = filepath.Join(s.data, "makola.db")
	}
	d, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	err = d.Read(t.Context(), func(tx *db.Tx) error {
		tables, err := tx.Tables()
		if err != nil || !slices.Contains(tables, "installation") {
			return err
		}
		mark, err = installation.ReadMark(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// A server is killed under load, and its installation is moved to PostgreSQL by a command that is killed repeatedly. The work
// then continues on PostgreSQL: each payout is paid once or refunded, and a server refuses the old folder.
func TestKilled_moveToPostgreSQL(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.SQLite)
	server := where.serve(t, "makola on SQLite", sim)
	key, tenant := server.ready.APIKey, server.ready.TenantID
	where.command(t, "wallet", "fund", tenant, "100000.00", "--reason", "load", "--reference", "load")
	api := newClient(server.ready.APIURL, key)
	opening := balance(t, api)
	l := startLoad(t, "copy", in.server.URL, api)
	clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= 20*callers })
	move := []string{"migrate", "copy", "--data", where.data, "--to"}
	there := site{engine: db.Postgres, data: where.data, url: dbtest.EmptyURL(t), environment: []string{"MAKOLA_MASTER_KEY_FILE=" + app.DevelopmentKey(where.data)}}
	if said := where.refused(t, "migrate", "copy", "--to", there.url); !strings.Contains(said, "stop it first") {
		t.Errorf("a move beside the server says %s", said)
	}
	server.kill()

	random := rand.New(rand.NewPCG(4, 1))
	states := map[installation.MarkState]int{}
	for n := range killsOfCopy {
		command := exec.Command(program(t), append(move, there.url)...)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		pause(time.Duration(random.IntN(60*(n+1))) * time.Millisecond)
		_ = command.Process.Kill()
		_ = command.Wait()
		source, target := where.mark(t), there.mark(t)
		states[source.State]++
		if source.State == "" && target.State == "" && target.Fingerprint != "" {
			t.Fatal("both databases can be served")
		}
	}
	t.Logf("after each of %d kills the source was %v", killsOfCopy, states)
	command(t, nil, nil, append(move, there.url)...)
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--sim", sim.ready.SimURL}, {"tenant", "list"}, {"backup", "create", "--folder", t.TempDir()}} {
		if said := where.refused(t, args...); !strings.Contains(said, "moved") {
			t.Errorf("makola %s in the old folder says %s", args[0], said)
		}
	}

	server = there.serve(t, "makola on PostgreSQL", sim)
	l.target.Store(newClient(server.ready.APIURL, key))
	before := l.sent.Load()
	clocktest.Await(t, "the load to go on", func() bool { return l.sent.Load() >= before+5*callers })
	verify(t, verification{site: there, sim: sim, servers: []*process{server}, api: newClient(server.ready.APIURL, key), inbox: in, opening: opening, payouts: l.end()})
	there.command(t, "audit", "verify")
	if said := string(there.command(t, "audit", "list", "--action", "database.move", "-o", "csv")); strings.Count(said, "database.move") != 1 {
		t.Errorf("the log says of the move: %s", said)
	}
}
