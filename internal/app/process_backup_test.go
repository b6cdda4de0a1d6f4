//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// backupKills is the number of kills during backups, on each engine.
const backupKills = 6

// listed is a row of the output of makola backup list.
type listed struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

// A backup that is killed under load leaves nothing that looks complete. A backup that looks complete can be restored, and its
// books balance. A restore never touches the database of the running server.
func TestKilled_backupUnderLoad(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, in, where := startSim(t), newInbox(t), newSite(t, engine)
			where.environment = []string{"MAKOLA_MASTER_KEY=" + strings.Repeat("5e", 32)}
			server := where.serve(t, "makola", sim)
			where.command(t, "wallet", "fund", server.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
			l := startLoad(t, "backup-"+engine.String(), in.server.URL, newClient(server.ready.APIURL, server.ready.APIKey))
			folder := filepath.Join(t.TempDir(), "backups")
			random := rand.New(rand.NewPCG(2, uint64(engine)))
			for range backupKills {
				before := l.sent.Load()
				clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+callers })
				where.killed(t, time.Duration(random.IntN(500))*time.Millisecond, "backup", "create", "--folder", folder)
			}
			var whole struct {
				File string `json:"file"`
			}
			decode(t, where.command(t, "backup", "create", "--folder", folder, "-o", "json"), &whole)
			l.end()
			if left, _ := filepath.Glob(filepath.Join(folder, ".makola-*")); len(left) > 0 {
				t.Errorf("the killed ones have left %v", left)
			}
			var all []listed
			decode(t, command(t, nil, nil, "backup", "list", "--folder", folder, "-o", "json"), &all)
			good := 0
			for _, b := range all {
				if b.Problem == "" {
					good++
					command(t, nil, nil, append([]string{"backup", "verify", b.File}, where.server()...)...)
				} else if !strings.Contains(b.Problem, "There is no backup") { // the dump has its final name, and the manifest does not
					t.Errorf("%+v", b)
				}
			}
			t.Logf("%d kills, %d backups are whole, %d dumps have no manifest", backupKills, good, len(all)-good)
			const conflict = 5
			if out := command(t, where.environment, []int{conflict}, append([]string{"restore", whole.File}, where.args()...)...); len(out) > 0 {
				t.Errorf("restored over a server that runs: %s", out)
			}
			new := where.beside(t)
			new.command(t, "restore", whole.File)
			new.command(t, "ledger", "check")
		})
	}
}

// killed runs a command, and kills it if it still runs after the given time.
func (s site) killed(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	run := exec.Command(program(t), append(args, s.args()...)...)
	run.Env = append(run.Environ(), s.environment...)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	pause(after)
	_ = run.Process.Kill()
	_ = run.Wait()
}

// A killed restore leaves no database, or a database that is marked as restored.
func TestKilled_restore(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			where, folder := newSite(t, engine), t.TempDir()
			where.command(t, "migrate", "up")
			where.command(t, "tenant", "create", "Adom Stores", "--mode", "live")
			var made struct {
				File string `json:"file"`
			}
			decode(t, where.command(t, "backup", "create", "--folder", folder, "-o", "json"), &made)
			random := rand.New(rand.NewPCG(3, uint64(engine)))
			whole := 0
			for range backupKills {
				new := where.beside(t)
				new.killed(t, time.Duration(random.IntN(600))*time.Millisecond, "restore", made.File)
				d := new.left(t)
				if d == nil {
					continue
				}
				if r, found, err := backup.LastRestore(t.Context(), d); !found || err != nil || r.MadeAt.IsZero() {
					t.Errorf("a database was left that does not know it: %+v, %v", r, err)
				}
				whole++
			}
			t.Logf("%d of %d restores were quicker", whole, backupKills)
		})
	}
}

// left opens the database that a killed command left, if there is one.
func (s site) left(t *testing.T) *db.DB {
	t.Helper()
	o := db.Options{URL: s.url, MaxConns: 2}
	if s.engine == db.SQLite {
		o.Path = filepath.Join(s.data, "makola.db")
		if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	d := dbtest.OpenWith(t, o)
	if s.engine == db.SQLite {
		return d
	}
	tables := 0
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		// psql ends by itself after its makola was killed.
		clocktest.Await(t, "the command's sessions to end", func() bool {
			var others int
			_, err := tx.One(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> $1`, []any{dbtest.ApplicationName}, &others)
			return err == nil && others == 0
		})
		names, err := tx.Tables()
		tables = len(names)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if tables == 0 {
		return nil
	}
	return d
}

// server returns the flag that names a PostgreSQL server for verify and drill.
func (s site) server() []string {
	if s.url == "" {
		return nil
	}
	return []string{"--database", s.url}
}

// beside returns a place with the same master key and without a database, for a restore.
func (s site) beside(t testing.TB) site {
	t.Helper()
	s.data = t.TempDir()
	if s.engine == db.Postgres {
		s.url = dbtest.EmptyURL(t)
	}
	return s
}

// letIn opens a recovery whose data folder has no journal from before it. It confirms the list of keys and people by the list's
// code.
func (s site) letIn(t testing.TB) {
	t.Helper()
	args := append([]string{"recovery", "access"}, s.args()...)
	run := exec.Command(program(t), args...)
	run.Env = append(os.Environ(), s.environment...)
	printed, err := run.CombinedOutput()
	code := regexp.MustCompile(`--confirm-access ([0-9a-f]{8})`).FindSubmatch(printed)
	if err != nil || code == nil {
		t.Fatalf("makola recovery access: %v\n%s", err, printed)
	}
	s.command(t, "recovery", "open", "--reason", "no acts are missed", "--confirm-access", string(code[1]))
}
