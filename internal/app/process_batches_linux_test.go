//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// The disk of a server fills up during a batch. When there is space again, the batch continues. Each row is paid once or not at
// all, and wallet, reserve and the provider's book agree. A limit on the file size simulates the full disk, because a test may
// not mount a file system.
func TestKilled_batchesDiskFull(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, newSite(t, db.SQLite))
	b := batchOf(1, 2*batchRows, fileOutcomes)
	p.draft(b)
	p.submit(b)
	p.approve()
	p.reaches(b, 10)
	p.server.limitFiles(4096)
	clocktest.Await(t, "a refused write", func() bool {
		a, err := p.api().call(http.MethodPost, "/payment-api/batches", map[string]any{"name": "Winners", "rows": batchOf(2, 1, fileOutcomes).rows})
		return err == nil && a.status >= http.StatusInternalServerError
	})
	before := p.state(b)
	pause(200 * time.Millisecond)
	if after := p.state(b); after.accepted() != before.accepted() {
		t.Errorf("%d rows were accepted, then %d, with a full disk", before.accepted(), after.accepted())
	}
	p.server.limitFiles(unix.RLIM_INFINITY)
	p.ends(b)
	p.verify(b)
	p.sound()
}

// limitFiles limits the size of each file that the process writes, in bytes.
func (p *process) limitFiles(most uint64) {
	p.t.Helper()
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: unix.RLIM_INFINITY}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// The clock of a server steps forward by hours during a batch, and back when the server is killed. On PostgreSQL the clocks of the
// two nodes then differ. Each row is paid once or not at all, and the books agree.
func TestKilled_batchesClockSteps(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			p := newPayroll(t, newSite(t, engine))
			b := batchOf(1, 2*batchRows, fileOutcomes)
			p.draft(b)
			p.submit(b)
			p.approve()
			p.reaches(b, 10)
			p.server.forward(t, 3*time.Hour)
			p.reaches(b, 50)
			p.restart()
			p.reaches(b, 80)
			p.server.forward(t, 40*time.Minute)
			p.ends(b)
			p.verify(b)
			// The development clock also moves the time that has passed. A transfer that was being committed then looks hours late, and
			// the sums of its hour are counted again.
			p.where.command(t, "figures", "rebuild")
			p.sound()
		})
	}
}

// forward sets the clock of the process forward.
func (p *process) forward(t *testing.T, by time.Duration) {
	t.Helper()
	a, err := newClient(p.ready.SimURL, "").call(http.MethodPost, "/clock", map[string]any{"advance_s": by.Seconds()})
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("the clock: %v %+v", err, a)
	}
}
