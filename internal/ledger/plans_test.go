package ledger

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/test/dbtest"
)

// A check reads a set of transfers by time, and looks up the transfer before each of them. If PostgreSQL sorted by wallet, it would
// read all transfers for each set: 113,000 pages and 2.4 s instead of 15,000 pages and 0.03 s at a million payments.
func TestRunning_readsASetByTime(t *testing.T) {
	args := []any{int64(1), int64(2)}
	plan := dbtest.PostgresPlan(t, sqlRunning, args...)
	set, result, found := strings.Cut(plan, "CTE Scan on running")
	if !found || strings.Contains(result, " on transfers") || strings.Count(set, " on transfers ") != 2 || !strings.Contains(set, "SubPlan") {
		t.Errorf("PostgreSQL reads transfers to sort them:\n%s", plan)
	}
	plan = dbtest.Plan(t, sqlRunning, args...)
	if !strings.Contains(plan, "SEARCH t USING INDEX transfers_at (at>? AND at<?)") || !strings.Contains(plan, "SEARCH b USING INDEX transfers_of_wallet (wallet=? AND sequence=?)") {
		t.Errorf("SQLite: %s", plan)
	}
}
