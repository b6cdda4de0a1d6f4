package app

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/browsertest"
)

// saves stores a statement of the simulator as a file, as a person downloads it.
func (b *browsed) saves(t *testing.T, provider, account string) string {
	t.Helper()
	file, err := b.sim.local.StatementFile(provider, account, time.Time{}, b.clock.Now())
	name := filepath.Join(t.TempDir(), provider+".csv")
	if err == nil {
		err = os.WriteFile(name, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// approves lets a person approve the latest request of another person.
func approves(tab *browsertest.Tab, sentence string) {
	tab.Goto("/ops/acts")
	tab.Click(`main tbody tr:first-child a`)
	tab.Reads("main", sentence)
	tab.Click(`form[action$="/approve"] button`)
	tab.Reads("main", "Applied")
}

// others returns the balances of our books for the accounts that have no statement of the day, in the format of the form.
func (b *browsed) others(t *testing.T, day closing.Day) string {
	t.Helper()
	f, err := b.closing.Figures(t.Context(), ledger.TestGHS, day)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range f.Accounts {
		if a.Theirs == nil && a.ID != ledger.Transit {
			list = append(list, fmt.Sprintf("%s=%s", a.ID, a.Closing))
		}
	}
	return strings.Join(list, " ")
}

// Two people work with a statement. The first imports the file with the page of its columns, checks the matched lines, takes
// the exception and requests its resolution. The second approves it. The day is then compared with the balances of the
// statements, and both close it.
func TestBrowser_dayWithAStatement(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	day := closing.DayOf(b.clock.Now())
	b.simPayment("mtn", sim.AccountCollection, 1)
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"mtn"}, "fault": {string(sim.StatementForeign)}, "count": {"1"}})
	b.simPayment("mtn", sim.AccountCollection, 2)
	b.clock.Advance(time.Minute)
	if err := b.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(day.End().Add(2 * closing.Lag).Sub(b.clock.Now()))
	b.signIn(b.nextLink()) // the session has ended
	requester, approver := b.joins("ama@example.com", roles.Treasury), b.joins("kofi@example.com", roles.Approver)
	for _, kind := range []string{"statement.suspend", "day.close"} {
		b.ordered("/ops/policy", "kind", kind, "amount", "0.00", "checkers", "1")
	}
	ama, kofi := b.enters(t, requester), b.enters(t, approver)

	ama.Goto("/ops/statements/new")
	ama.Fill("[name=source]", "test/mtn/collection")
	ama.Run(chromedp.SetUploadFiles("[name=file]", []string{b.saves(t, "mtn", sim.AccountCollection)}))
	ama.Click(submit)
	ama.Reads("main", "Check how the file is read")
	ama.Reads("main", "External Transaction Id")
	ama.Click("#mapping button.main")
	ama.Reads("main", "Complete")
	ama.Reads("main", "3: 3 new, 0 changed")
	if err := b.reconcile.Match(t.Context()); err != nil {
		t.Fatal(err)
	}
	ama.Run(chromedp.Reload())
	ama.Reads("main", "the provider's id")
	ama.Reads("main", "none")

	list, err := b.reconcile.Exceptions(t.Context(), reconcile.Filter{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatalf("the exceptions are %+v, %v", list, err)
	}
	here := "/ops/exceptions/" + list[0].ID
	ama.Goto("/ops/exceptions")
	ama.See(`main tbody a[href="` + here + `"]`)
	ama.Goto(here)
	ama.Reads("main", "In the statement")
	ama.Reads("main", "77.70")
	ama.Click(`form[action="` + here + `/own"] button`)
	ama.Reads("main", "Remove my assignment")
	ama.Click(`a[href^="/ops/exceptions/suspend"]`)
	ama.Fill("[name=reason]", "asked MTN whose money it is")
	ama.Click(submit)
	ama.Reads("main", "approval")
	approves(kofi, "Put into suspense an exception of GHS 77.70")
	ama.Goto("/ops/exceptions?state=suspense")
	ama.Reads("main", "77.70")

	of := "?mode=test&day=" + day.String()
	ama.Goto("/ops/days/statement" + of + "&balances=" + url.QueryEscape(b.others(t, day)))
	ama.Fill("[name=reason]", "the statements of the day")
	ama.Click(submit)
	ama.Reads("main", "Applied")
	ama.Goto("/ops/days/day" + of)
	ama.Reads("main", "Explained GHS 77.70")
	ama.Click(`a[href^="/ops/days/close"]`)
	ama.Fill("[name=reason]", "compared with the statements")
	ama.Click(submit)
	ama.Reads("main", "approval")
	approves(kofi, day.String())
	ama.Goto("/ops/days/day" + of)
	ama.Reads("main", "Closed at")
	ama.Goto("/ops/days?mode=test")
	ama.Reads("main", "Closed up to")
	ama.Obeys()
	kofi.Obeys()
}
