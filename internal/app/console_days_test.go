package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// Two people compare a day with its statements, close it and reopen it on pages. Customer funds and the journal have pages and
// files.
func TestDays_closedByTwoPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	if err := b.treasury.Fund(t.Context(), shop.ID, 50_00, "paid in", "ama"); err != nil {
		t.Fatal(err)
	}
	bank, err := treasury.CheckBank(treasury.Bank{Name: "gcb-main", Mode: tenant.Live, Bank: "GCB Bank", Number: "101101234567"})
	if err == nil {
		err = b.db.Write(t.Context(), func(tx *db.Tx) error { return b.treasury.AddBank(tx, bank) })
	}
	if err == nil {
		err = b.treasury.Open(t.Context(), ledger.GHS, []treasury.Opening{{Bank: "gcb-main", Amount: 70_00}}, "opening", "books begin", "ama")
	}
	if err != nil {
		t.Fatal(err)
	}
	today := closing.DayOf(b.clock.Now())
	b.clock.Advance(today.End().Add(2 * closing.Lag).Sub(b.clock.Now()))
	requester, approver := b.joins("ama@example.com", roles.Owner), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	day := today.String()
	of := "?mode=live&day=" + day
	approve := func(request string) { b.approvedBy(approver, requester, request) }
	b.as(requester)
	if list := b.want(http.StatusOK, "/ops/days?mode=live", ">Open<", "Before the first movement"); strings.Count(list.text, ">Open<") != 2 {
		t.Errorf("the books began yesterday, and %d days are open", strings.Count(list.text, ">Open<"))
	}
	b.want(http.StatusOK, "/ops/days/day"+of, "Statements are missing", "Bank account gcb-main", "Enter statements")
	b.post(http.StatusSeeOther, "/ops/days/statement", "id", b.want(http.StatusOK, "/ops/days/statement").hidden(t, "id"), "reason", "bank", "mode", "live", "day", day, "balances", "bank/gcb-main=68.00 float/mtn=")
	b.want(http.StatusOK, "/ops/days/day"+of, "Unexplained −GHS 2.00")
	b.want(http.StatusOK, "/ops/days/day?mode=live&day="+(today+1).String(), "Cannot be closed yet")
	b.post(http.StatusUnprocessableEntity, "/ops/days/close", "id", b.want(http.StatusOK, "/ops/days/close").hidden(t, "id"), "reason", "x", "mode", "live", "day", (today + 1).String())
	approve(b.ordered("/ops/days/close", "mode", "live", "day", day))
	last, err := closing.New(b.db, b.ledger, b.clock).LastClosed(t.Context(), ledger.GHS)
	if err != nil || last.Day.String() != day {
		t.Fatal(last, err)
	}
	b.want(http.StatusOK, "/ops/days/day"+of, "Closed at", "Reopen day", "See signatures")
	b.want(http.StatusOK, "/ops/days?mode=live", ">Closed<", "Before the first close")
	b.want(http.StatusOK, "/ops/days/month"+of, "The month does not tie yet")
	approve(b.ordered("/ops/days/reopen", "mode", "live", "day", day))
	b.want(http.StatusOK, "/ops/days/day"+of, "as agreed", "Close day")

	b.want(http.StatusOK, "/ops/funds"+of, "Owed to customers", "Wallets of customers", "Unassigned funding", "Surplus")
	b.want(http.StatusOK, "/ops/journal?mode=live&from="+day+"&to="+day+"&account=wallet:*", "Wallet", "Fund")
	if file := b.want(http.StatusOK, "/ops/journal.csv?mode=live&from="+day+"&to="+day); !strings.Contains(file.text, `"bank/gcb-main"`) || strings.Count(file.text, "\r\n") != 5 {
		t.Errorf("the journal: %s", file.text)
	}
	b.want(http.StatusOK, "/ops/funds.csv"+of, `"surplus"`)
	code := b.ordered("/ops/journal/code", "account", "wallet:*", "accountant_code", "2100")
	b.want(http.StatusOK, code)
	b.want(http.StatusOK, "/ops/journal/codes?mode=live", "2100", "Ties")
}
