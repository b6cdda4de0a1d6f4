package figures

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/test/dbtest"
)

// Open payments are looked up one by one, so that the first page of an account costs the same however many payments it has.
func TestOpenPayments_lookedUpOneByOne(t *testing.T) {
	for sql, args := range map[string][]any{heldOf: {"tenant", "unknown"}, changedOpen: {1}} {
		if text := dbtest.Plan(t, sql, args...); !strings.Contains(text, "SEARCH p USING INDEX sqlite_autoindex_payments_1 (tenant=? AND kind=? AND seq=?)") {
			t.Error(text)
		}
	}
}
