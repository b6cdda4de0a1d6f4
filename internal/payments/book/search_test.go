package book

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/test/dbtest"
)

// A search for a reference uses the index of each list, so its cost does not depend on the number of payments.
func TestSearch_referenceUsesIndex(t *testing.T) {
	if text := dbtest.Plan(t, paymentsOfReference, "nothing-like-it"); strings.Contains(text, "SCAN payments") || !strings.Contains(text, "SEARCH payments USING INDEX") {
		t.Error(text)
	}
}

// The payouts to the accounts of a draft are found by account and time. The latest payout to one account is found among the last
// numbers of the tenant.
func TestPaid_usesIndex(t *testing.T) {
	if text := dbtest.Plan(t, paidSince, "tenant", []string{"233241234567"}, 1); !strings.Contains(text, "USING INDEX payments_payee (account=? AND created_at>?)") {
		t.Error(text)
	}
	if text := dbtest.Plan(t, paidTo, "tenant", "233241234567", PayeeWindow, 3); !strings.Contains(text, "(tenant=? AND kind=? AND seq>?)") {
		t.Error(text)
	}
}
