//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// again is the log line of both programs at the first signal to stop.
const again = "interrupt again to stop at once"

// The first interrupt begins the drain, which may take long, and logs this. The second interrupt ends the process.
func TestInterrupted_twiceEndsAtOnce(t *testing.T) {
	t.Parallel()
	where := newSite(t, db.SQLite)
	server := start(t, "makola", append([]string{"serve", "--listen", "127.0.0.1:0", "--drain-notice", "24h"}, where.args()...)...)
	server.signal(syscall.SIGINT)
	clocktest.Await(t, "the server to say that it drains", func() bool { return strings.Contains(server.log.String(), again) })
	server.signal(syscall.SIGTERM)
	server.wait()
	if status, is := server.state.Sys().(syscall.WaitStatus); !is || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("the server ended with %v", server.state)
	}
	where.command(t, "ledger", "check")

	sim := startSim(t)
	sim.signal(syscall.SIGINT)
	if code := sim.wait(); code != 0 || !strings.Contains(sim.log.String(), again) {
		t.Errorf("the simulator ended with %d and said %s", code, sim.log)
	}
}

// The folder's lock proves that an earlier server is gone, so that its lease ends with the start of the next one.
func TestKilled_serverLeavesNoLease(t *testing.T) {
	t.Parallel()
	sim, where := startSim(t), newSite(t, db.SQLite)
	where.serve(t, "first", sim).kill()
	where.serve(t, "second", sim)
	d, err := db.Open(t.Context(), db.Options{Path: filepath.Join(where.data, "makola.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var leases, alive int
	if _, err := d.ReadOne(t.Context(), `SELECT count(*), count(*) FILTER (WHERE expires_at > 0) FROM job_leases`, nil, &leases, &alive); err != nil || leases != 2 || alive != 1 {
		t.Errorf("%d of %d leases are alive, %v", alive, leases, err)
	}
}
