package app

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/browsertest"
	"github.com/makola/makola/internal/test/identitytest"
	"github.com/makola/makola/internal/test/mailtest"
)

// submit is the button of the form of a page.
const submit = "main form.form button.main, main form.form button.danger"

// moves sets the clock of the server forward.
func (b *browsed) moves(by time.Duration) {
	b.t.Helper()
	for ; by > 0; by -= 10 * time.Hour {
		form := url.Values{"seconds": {strconv.Itoa(int(min(by, 10*time.Hour) / time.Second))}}
		p := b.do(http.MethodPost, "/sim/clock", form)
		if p.StatusCode == http.StatusUnauthorized { // the session has ended on the way
			b.forget()
			b.signIn(b.nextLink())
			p = b.do(http.MethodPost, "/sim/clock", form)
		}
		if p.StatusCode >= http.StatusBadRequest {
			b.t.Fatalf("the clock stays: %d", p.StatusCode)
		}
	}
}

// enters signs a person in with password and code on the pages that ask for them.
func (b *browsed) enters(t *testing.T, one identitytest.One) *browsertest.Tab {
	t.Helper()
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"60"}}) // the code of the enrolment is already used
	tab := browsertest.Open(t, b.base)
	tab.Goto("/sign-in")
	tab.Fill("[name=email]", one.Person.Email, "[name=password]", identitytest.Password, "[name=code]", b.codeNow(one.Key))
	tab.Click("form:has([name=password]) button.main")
	tab.See(".sites")
	return tab
}

// A developer's day: the printed link opens the demo account, and the first call succeeds. A webhook arrives with a valid
// signature. A refused call is found by its id, with the fix. A new key is created and used.
func TestBrowser_dayOfADeveloper(t *testing.T) {
	t.Parallel()
	b, tab := visitor(t)
	b.signIn(b.nextLink())
	app := "/app/" + demoTenant
	var at string
	if tab.Run(chromedp.Location(&at)); at != b.base+app {
		t.Errorf("the sign-in leads to %s", at)
	}
	b.ask("12.50", "0240000040", "order-0000000001")
	tab.Goto("/sim")
	tab.Click("#phone-0240000040 .prompt button[value=approve]")
	tab.Reads("#hooks", "Signature valid")
	tab.Goto(app + "/webhooks")
	tab.Reads("main", "100")
	b.refusedOnce(b.ready.APIKey, "req-of-the-developer-01")
	tab.Goto(app + "/requests")
	tab.Click(`main a[href^="` + app + `/requests/"]`)
	tab.Reads("main", "phone_number")
	tab.Goto(app + "/access")
	tab.Click(`a[href="` + app + `/keys/new"]`)
	tab.Fill("[name=label]", "checkout", "[name=reason]", "the new shop")
	tab.Fill("[name=scopes]", "collect read")
	tab.Click(submit)
	tab.Reads("main", "Applied")
	tab.Goto(app + "/collections")
	tab.Reads("main", "12.50")
	tab.Click("main tbody a")
	tab.Reads("#story", "Webhook delivered")
	tab.Goto("/docs")
	tab.See("main h1")
	tab.Obeys()
}

// A finance manager's day: the navigation counts the payout that awaits approval. It is opened, checked and approved. The account's
// statement ends with the balance. The previous day is compared with the bank's statement and closed.
func TestBrowser_dayOfAFinanceManager(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	app := "/app/" + demoTenant
	manager := b.holds("3000.00")
	id := b.waits("salary-of-ama-0001", "3000")
	tab := b.enters(t, manager)
	tab.Goto(app)
	tab.Reads("main", "Awaiting approval")
	tab.Goto(app + "/acts")
	tab.Click(`main a[href="` + app + `/acts/` + id + `"]`)
	tab.Reads("main", "Send test GHS 3,000.00")
	tab.Reads("main", "233****0051")
	tab.Click(`form[action="` + app + `/acts/` + id + `/approve"] button`)
	tab.Reads("main", "Applied")
	tab.Goto(app + "/payments/" + id)
	tab.Reads("main", "Success")
	tab.Goto(app + "/statement")
	tab.Reads("main", "3,000.00")
	tab.Reads("main", "Closing balance")
	today := closing.DayOf(b.clock.Now())
	b.moves(today.End().Add(2 * closing.Lag).Sub(b.clock.Now()))
	books := b.tab(t, b.nextLink()) // the owner of the installation, who is responsible for the books here
	of := "?mode=test&day=" + today.String()
	books.Goto("/ops/days/day" + of)
	books.Reads("main", "Statements are missing")
	books.Click(`a[href^="/ops/days/statement"]`)
	books.Fill("[name=balances]", b.balancesOf(today), "[name=reason]", "the statements of the day")
	books.Click(submit)
	books.Reads("main", "Applied")
	books.Goto("/ops/days/day" + of)
	var text string
	if books.Run(chromedp.Text("main", &text)); strings.Contains(text, "Unexplained") || !strings.Contains(text, "GHS 100,000,000.00") {
		t.Errorf("the statements of the day: %s", text)
	}
	books.Click(`a[href^="/ops/days/close"]`)
	books.Fill("[name=reason]", "compared with the statements")
	books.Click(submit)
	books.Reads("main", "Applied")
	books.Goto("/ops/days/day" + of)
	books.Reads("main", "Closed at")
	books.Obeys()
}

// balancesOf returns the statement balances of a day for each account, in the format of the form. At least one balance is not
// zero.
func (b *browsed) balancesOf(day closing.Day) string {
	b.t.Helper()
	f, err := b.closing.Figures(b.t.Context(), ledger.TestGHS, day)
	if err != nil {
		b.t.Fatal(err)
	}
	var list []string
	moved := false
	for _, a := range f.Accounts {
		moved = moved || a.Closing != 0
		list = append(list, string(a.ID)+"="+a.Closing.String())
	}
	if !moved {
		b.t.Fatalf("no account has money on %s", day)
	}
	return strings.Join(list, " ")
}

// loses sends a payout whose outcome stays unknown, and returns its id. The provider pays the payout, but its responses and
// callbacks are lost.
func (b *browsed) loses(reference string) string {
	b.t.Helper()
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"answer_lost"}, "count": {"1"}})
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"status_not_found"}, "count": {"1000"}})
	b.call("payment-api/send/mobilemoney", `{"amount":"250.00","channel":"TELECEL","account_number":"0200000001","client_reference":"`+reference+`"}`)
	id := b.the(reference)
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"120"}})
	b.until("/ops/payments/"+id, "/ops/payments/"+id+"/resolve")
	return id
}

// An operator's day: within a minute a mail reports a payout of unknown outcome. The provider is paused. The payout is assigned,
// gets a note, and is resolved from the statement. Another person's request is approved.
func TestBrowser_dayOfAnOperator(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, nil)
	b := browse(t, mailing(mails))
	b.signIn(b.ready.SignInURL)
	deposit := b.requestedByAnother("1500")[0]
	lost := b.loses("payout-lost-00001")
	began := time.Now()
	b.await(mails, "<"+developerEmail+">", "outcome of a payment is unknown", "GHS 250.00") // the work of notices runs by itself
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the mail came after %s", took)
	}
	b.until("/ops/payments/"+lost, "Operators were notified") // once the delivery is stored
	tab := b.tab(t, b.nextLink())
	tab.Goto("/ops")
	tab.Reads("main", "250.00")
	tab.Goto("/ops/stuck")
	tab.See(`main a[href="/ops/payments/` + lost + `"]`)
	tab.Goto("/ops/payments/" + lost)
	tab.Reads("main", "on hold")
	tab.Reads("main", "notified")
	tab.Fill("#note [name=note]", "Asked Hubtel by phone, answer by noon")
	tab.Run(chromedp.Evaluate("note.requestSubmit()", nil))
	tab.Reads("#notes", "answer by noon")
	tab.Goto("/ops/providers/pause")
	tab.Fill("[name=provider]", "hubtel", "[name=mode]", "test", "[name=operation]", "*", "[name=reason]", "answers get lost")
	tab.Click(submit)
	tab.Reads("main", "Applied")
	tab.Goto("/ops/providers")
	tab.Reads("main", "Paused")
	tab.Goto("/ops/payments/" + lost + "/resolve")
	tab.Fill("[name=ending]", "unpaid", "[name=reason]", "statement of 3 March, line 12")
	tab.Click(submit)
	tab.Reads("main", "Applied")
	tab.Goto("/ops/payments/" + lost)
	tab.Reads("main", "Returned to wallet")
	tab.Goto("/ops/providers/resume")
	tab.Fill("[name=provider]", "hubtel", "[name=mode]", "test", "[name=operation]", "*", "[name=reason]", "they work again")
	tab.Click(submit)
	tab.Reads("main", "Applied")
	tab.Goto("/ops/acts")
	tab.See(`main a[href="/ops/acts/` + deposit + `"]`)
	tab.Goto("/ops/acts/" + deposit)
	tab.Reads("main", "Paid by bank, slip 4711")
	tab.Reads("main", "GHS 1,500.00")
	tab.Click(`form[action="/ops/acts/` + deposit + `/approve"] button`)
	tab.Reads("main", "Applied")
	tab.Obeys()
}

// requestedByAnother returns the ids of deposits that another operator requested, and that need an approver.
func (b *browsed) requestedByAnother(amounts ...string) (ids []string) {
	b.t.Helper()
	for email, role := range map[string]roles.Role{"ama@example.com": roles.Operations, "kofi@example.com": roles.Approver} { // a policy needs people who may approve
		if _, err := b.identity.Ensure(b.t.Context(), email, "Somebody", []identity.Membership{{Role: role}}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.ordered("/ops/policy", "kind", "wallet.fund", "tenant", "", "amount", "0.00", "checkers", "1")
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"2"}}) // the policy is read again
	demo, err := b.tenants.Get(b.t.Context(), demoTenant)
	if err != nil {
		b.t.Fatal(err)
	}
	b.become("ama@example.com", identity.Membership{Role: roles.Operations})
	for _, amount := range amounts {
		ids = append(ids, b.funds(demo, amount, "Paid by bank, slip 4711"))
	}
	b.forget()
	b.signIn(b.nextLink())
	b.want(http.StatusOK, "/ops/acts/"+ids[0], "Paid by bank, slip 4711", "/ops/acts/"+ids[0]+"/approve")
	return ids
}
