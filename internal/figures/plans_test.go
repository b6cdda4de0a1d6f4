package figures

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
)

var openJoins = map[string][]any{heldOf: {"tenant", "unknown"}, changedOpen: {1}}

// Open payments are looked up by key, so the first page of an account costs the same for any number of payments.
func TestOpenPayments_lookedUpOneByOne(t *testing.T) {
	for sql, args := range openJoins {
		text := dbtest.Plan(t, sql, args...)
		for _, step := range []string{"SEARCH p USING INDEX payments_id (id=?)", "SEARCH x USING INDEX sqlite_autoindex_payments_1 (tenant=? AND kind=? AND seq>?)"} {
			if !strings.Contains(text, step) {
				t.Errorf("%q is not in %s", step, text)
			}
		}
	}
}

// PostgreSQL also looks them up by key before the first ANALYZE of a new installation.
func TestOpenPayments_withoutStatistics(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	f := open(t, d)
	many := make([]payment, 2000)
	for i := range many {
		many[i] = payment{list: list{tenant: "tenant", kind: book.KindPayout}, mode: "test", status: book.StatusPending, amount: 100, at: morning}
	}
	f.add(many...)
	if err := f.Sum(t.Context()); err != nil { // Sum fills the table of open payments
		t.Fatal(err)
	}
	for sql, args := range openJoins {
		text := dbtest.WithoutStatistics(t, d, sql, args...)
		if !strings.Contains(text, "payments_pkey") || !strings.Contains(text, "payments_id") || strings.Contains(text, "payments_reference") {
			t.Error(text)
		}
	}
}
