package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/sheettest"
)

// A hostile file is refused within seconds, with one sentence, and nothing is stored.
func TestReceive_hostileFiles(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	for name, each := range sheettest.Hostile(t) {
		begun := time.Now()
		_, err := n.receive("ama", "Salaries", each.Content)
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), each.Want) {
			t.Errorf("%s: %v, want %q", name, err, each.Want)
		}
		if n.parts() != 0 || n.countRows() != 0 {
			t.Errorf("%s: %d parts and %d rows are left", name, n.parts(), n.countRows())
		}
		t.Logf("%s: %s, %v", name, time.Since(begun).Round(time.Millisecond), err)
	}
}
