package app

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The navigation has groups by job, counts what awaits the visitor, and marks the page itself. Narrow screens have the same pages in a menu.
func TestNavigation_groupsAndCounts(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	p := b.want(http.StatusOK, "/ops/stuck", ">Today<", ">Payments<", ">Money<", ">Messages<", ">Accounts<", ">Settings<", ">System<", `id="menu-System"`, "Needs attention")
	if strings.Contains(p.text, `class="count"`) {
		t.Errorf("nothing waits, and the page counts: %s", p.text)
	}
	for _, link := range []string{`href="/ops/stuck"`, `href="/ops/audit"`} {
		if n := strings.Count(p.text, link); n != 2 {
			t.Errorf("%s is there %d times, not in both navigations", link, n)
		}
	}
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"answer_lost"}, "count": {"1"}})
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"status_not_found"}, "count": {"1000"}})
	b.call("payment-api/send/mobilemoney", `{"amount":"25.00","channel":"TELECEL","account_number":"0200000001","client_reference":"lost-000000001","account_name":"Ama"}`)
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"120"}})
	b.until("/ops/payments/"+b.the("lost-000000001"), "Outcome unknown")
	b.until("/ops", `class="count"`)
	p = b.want(http.StatusOK, "/ops", `class="count">1<span class="read"> waiting</span>`)
	if n := strings.Count(p.text, `class="count"`); n != 2 {
		t.Errorf("%d counts: %s", n, p.text)
	}
	b.want(http.StatusOK, "/app/"+demoTenant, ">Today<", "Statement")
}

// The actions about an account are in one menu, grouped by purpose.
func TestAccountPage_actionsAreAMenu(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusOK, "/ops/tenants/"+demoTenant, "<summary class=\"button\">Actions</summary>", `id="actions-Wallet"`, "Fund wallet", "Refund SMS credits", "Edit fee plan", "View as account")
}
