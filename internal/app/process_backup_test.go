//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock/clocktest"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
)

// backupKills is how often a backup is killed, on each engine.
const backupKills = 6

// listed is a row of backup list.
type listed struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

// A backup that was killed under load leaves nothing that looks whole; what looks whole can be restored, with books that
// add up; and a restore never touches the database of the server that runs.
func TestBackupsKilledUnderLoad(t *testing.T) {
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
				killBackup(t, where, folder, time.Duration(random.IntN(500))*time.Millisecond)
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
				} else if !strings.Contains(b.Problem, "There is no backup") { // the dump has its name, the manifest has not
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

// killBackup begins a backup and kills it after a while, if it takes so long.
func killBackup(t *testing.T, where site, folder string, after time.Duration) {
	t.Helper()
	run := exec.Command(program(t), append([]string{"backup", "create", "--folder", folder}, where.args()...)...)
	run.Env = append(run.Environ(), where.environment...)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	pause(after)
	_ = run.Process.Kill()
	_ = run.Wait()
}

// server is the flag by which verify and drill find a PostgreSQL server.
func (s site) server() []string {
	if s.url == "" {
		return nil
	}
	return []string{"--database", s.url}
}

// beside is a place without a database for a restored one, with the same master key.
func (s site) beside(t testing.TB) site {
	t.Helper()
	s.data = t.TempDir()
	if s.engine == db.Postgres {
		s.url = dbtest.EmptyURL(t)
	}
	return s
}
