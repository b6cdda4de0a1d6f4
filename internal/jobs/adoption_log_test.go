package jobs

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// The adoption of a dead node's jobs is one log line for any number of jobs. Jobs that a living node hands over are
// not logged.
func TestAdoption_isLoggedOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		a := start(t, newQueue(t, d, c, quietOptions("a"), ra.handler("k", func(Job) Outcome { return Later(time.Hour) }), ra.handler("elsewhere", func(Job) Outcome { return Pass() })))
		b := newQueue(t, d, c, quietOptions("b"), rb.handler("k", done), rb.handler("elsewhere", done))
		var lines bytes.Buffer
		b.log = slog.New(slog.NewTextHandler(&lines, nil)) // from level INFO
		start(t, b)
		for i := range 3 {
			add(t, d, a, Job{ID: fmt.Sprint("passed ", i), Kind: "elsewhere"})
			quiet(t, a)
			look(t, b)
			quiet(t, b)
		}
		if n := len(rb.all()); n != 3 || strings.Contains(lines.String(), "adopted") {
			t.Errorf("%d jobs were passed on; the log is %q", n, lines.String())
		}
		var jobs []Job
		for i := range 2*setSize + 20 {
			jobs = append(jobs, Job{ID: fmt.Sprintf("job-%04d", i), Kind: "k"})
		}
		add(t, d, a, jobs...)
		quiet(t, a)
		kill(t, d, a)
		look(t, b)
		quiet(t, b)
		if n := strings.Count(lines.String(), "level="); n != 1 || !strings.Contains(lines.String(), fmt.Sprint("jobs=", len(jobs))) {
			t.Errorf("%d lines, expected one with the number of jobs: %q", n, lines.String())
		}
	})
}
