package app

import (
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/identitytest"
)

// enlists creates a person of an account, who is signed in with a second factor.
func (b *browsed) enlists(email, tenant string, role roles.Role) identitytest.One {
	b.t.Helper()
	return identitytest.Join(b.t, b.db, b.clock, b.identity, email, identity.Membership{Tenant: tenant, Role: role})
}

// ordered submits the form of a change request with the values of its page, and returns the page of the request.
func (b *browsed) ordered(path string, pairs ...string) string {
	b.t.Helper()
	id := b.want(http.StatusOK, path).hidden(b.t, "id")
	p := b.post(http.StatusSeeOther, path, append(pairs, "id", id, "reason", "as agreed")...)
	return p.Header.Get("Location")
}

// The owner requests a key for payments and the admin approves it. Only the owner sees the key, once.
func TestKeyPages_paysNeedsTwoPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	owner, admin := b.enlists("owner@adom.example", shop.ID, roles.Owner), b.enlists("admin@adom.example", shop.ID, roles.Admin)
	operator := b.joins("boss@example.com", roles.Owner)
	b.clock.Advance(identity.Freshness)
	app := "/app/" + shop.ID
	b.as(owner)
	b.want(http.StatusOK, app+"/access", "No keys yet", "The list is empty", "Create API key")
	b.post(http.StatusUnprocessableEntity, app+"/keys/new", "id", "x", "reason", "x", "scopes", "everything")
	request := b.ordered(app+"/keys/new", "scopes", "payout read", "label", "till 4")
	b.want(http.StatusOK, request, "Awaiting approval", "payout", "till 4", "Withdraw request")
	b.want(http.StatusOK, app, "Your requests awaiting approval", request)
	b.post(http.StatusNotFound, request+"/reveal")
	b.as(operator)
	b.want(http.StatusNotFound, strings.Replace(request, app, "/ops", 1))
	if p := b.want(http.StatusOK, "/ops/acts"); strings.Contains(p.text, "till 4") {
		t.Error("an account's own act is on the page of the installation")
	}
	b.post(http.StatusNotFound, request+"/approve")
	b.as(admin)
	b.want(http.StatusOK, app+"/acts", "Awaiting your approval", request)
	b.post(http.StatusSeeOther, request+"/approve", "digest", b.get(request).hidden(t, "digest")).leads(t, request)
	if p := b.want(http.StatusOK, request, "Applied"); strings.Contains(p.text, "Show the secret") {
		t.Error("the checker is offered the key")
	}
	b.post(http.StatusForbidden, request+"/reveal")
	b.as(owner)
	b.want(http.StatusOK, request, "Show the secret")
	p := b.post(http.StatusOK, request+"/reveal")
	_, rest, found := strings.Cut(p.text, "mk_live_")
	if !found {
		t.Fatal(p.text)
	}
	caller, err := b.access.Authenticate(t.Context(), "mk_live_"+rest[:49])
	if err != nil || caller.Tenant != shop.ID || caller.Can(access.Airtime) || !caller.Can(access.Payout) {
		t.Fatalf("%+v, %v", caller, err)
	}
	b.clock.Advance(time.Minute)
	b.post(http.StatusGone, request+"/reveal")
	b.want(http.StatusOK, app+"/access", "till 4", "Active", "owner@adom.example")
	if err := b.db.Write(t.Context(), func(tx *db.Tx) error {
		_, _, err := b.identity.SetRole(tx, "owner@adom.example", identity.Membership{Tenant: shop.ID})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b.as(admin)
	b.want(http.StatusOK, app+"/access", "owner@adom.example (no longer has a role here)")
	revoked := b.ordered(app + "/keys/" + caller.KeyID + "/revoke")
	b.want(http.StatusOK, revoked, "Applied")
	b.clock.Advance(access.Freshness)
	if _, err := b.access.Authenticate(t.Context(), "mk_live_"+rest[:49]); err == nil {
		t.Fatal("works still")
	}
}

// A refused address can be allowed from the page that shows it.
func TestAllowList_fromARefusedRequest(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	owner := b.enlists("owner@adom.example", shop.ID, roles.Owner)
	b.clock.Advance(identity.Freshness)
	b.requests.Record(requestlog.Request{Tenant: shop.ID, Method: http.MethodPost, Endpoint: "/api/v1/payment-api/send/mobilemoney", Status: http.StatusForbidden, Code: "ip_not_whitelisted", Origin: "203.0.113.9", At: b.clock.Now()})
	if err := b.requests.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	app := "/app/" + shop.ID
	b.as(owner)
	b.want(http.StatusOK, app+"/access", "203.0.113.9", app+"/addresses?add=203.0.113.9")
	p := b.want(http.StatusOK, app+"/addresses?add=203.0.113.9", `value="203.0.113.9"`)
	b.post(http.StatusUnprocessableEntity, app+"/addresses", "id", p.hidden(t, "id"), "payout_ips", "203.0.113.9/8", "reason", "x")
	request := "/app/" + shop.ID + "/acts/" + p.hidden(t, "id")
	b.post(http.StatusSeeOther, app+"/addresses", "id", p.hidden(t, "id"), "payout_ips", "203.0.113.9", "reason", "the new till").leads(t, request)
	b.want(http.StatusOK, request, "Applied")
	b.clock.Advance(access.Freshness)
	if allowed, err := b.access.PayoutIPAllowed(t.Context(), shop.ID, netip.MustParseAddr("203.0.113.9")); err != nil || !allowed {
		t.Fatal(allowed, err)
	}
}

// The page of an account shows the payout addresses to operators who may read access, and to no other operator.
func TestAllowList_needsAccessPermission(t *testing.T) {
	t.Parallel()
	b := browse(t)
	if err := b.db.Write(t.Context(), func(tx *db.Tx) error {
		_, err := b.access.SetPayoutIPs(tx, demoTenant, []netip.Prefix{netip.MustParsePrefix("203.0.113.9/32")})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for role, shown := range map[roles.Role]bool{roles.Owner: true, roles.Compliance: true, roles.Auditor: true, roles.Support: false, roles.Treasury: false} {
		b.become(string(role)+"@example.com", identity.Membership{Role: role})
		p := b.want(http.StatusOK, "/ops/tenants/"+demoTenant, "Collection fees")
		if strings.Contains(p.text, "Payout IP address") != shown || strings.Contains(p.text, "203.0.113.9") != shown {
			t.Errorf("%s sees them: %v, not %v", role, !shown, shown)
		}
	}
}

// The secret of webhooks is shown only to roles with the permission. The audit log records each view.
func TestWebhookSecret_showIsAudited(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	developer, support := b.enlists("dev@adom.example", shop.ID, roles.Developer), b.enlists("sup@adom.example", shop.ID, roles.Support)
	boss := b.joins("boss@example.com", roles.Owner)
	b.clock.Advance(identity.Freshness)
	app := "/app/" + shop.ID
	secret, err := b.webhooks.Secret(t.Context(), shop.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.as(support)
	b.post(http.StatusForbidden, app+"/secret/reveal")
	b.as(boss)
	b.post(http.StatusNotFound, app+"/secret/reveal") // an operator who views the account cannot change or reveal anything
	b.as(developer)
	if p := b.want(http.StatusOK, app+"/access"); strings.Contains(p.text, secret.Current) {
		t.Error("shown before it was asked for")
	}
	if p := b.post(http.StatusOK, app+"/secret/reveal"); !strings.Contains(p.text, secret.Current) {
		t.Fatal(p.text)
	}
	b.clock.Advance(identity.StepUpLasts)
	b.post(http.StatusSeeOther, app+"/secret/reveal")
	b.as(boss)
	b.want(http.StatusOK, "/ops/audit?action=webhook.reveal", "dev@adom.example")
}

// A person is invited on pages, signs in with the link that the requester saw, and is then disabled.
func TestPeoplePages_inviteAndDisable(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	boss, kofi := b.joins("boss@example.com", roles.Owner), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	b.as(boss)
	request := b.ordered("/ops/people/invite", "email", "Owner@adom.example", "name", "Ama <b>", "role", "owner", "tenant", shop.ID)
	b.as(kofi)
	b.post(http.StatusSeeOther, request+"/approve", "digest", b.want(http.StatusOK, request, "Ama &lt;b&gt;").hidden(t, "digest")).leads(t, request)
	b.post(http.StatusForbidden, request+"/reveal")
	b.want(http.StatusOK, request, "Show the code", "approval 1 of this person")
	if code := b.post(http.StatusOK, request+"/code"); !regexp.MustCompile(`>[0-9]{8}<`).MatchString(code.text) {
		t.Error(code.text)
	}
	b.as(boss)
	if page := b.want(http.StatusOK, request, "Show the link"); strings.Contains(page.text, "Show the code") {
		t.Error("the requester is offered the code")
	}
	b.post(http.StatusForbidden, request+"/code")
	p := b.post(http.StatusOK, request+"/reveal")
	_, token, found := strings.Cut(p.text, "https://makola.example/first?t=")
	if !found {
		t.Fatal(p.text)
	}
	b.forget()
	b.http.Jar = held{}
	b.want(http.StatusOK, "/first?t="+token[:43], "owner@adom.example")
	b.as(boss)
	people, err := b.identity.Members(t.Context(), shop.ID, "", 10)
	if err != nil || len(people) != 1 || people[0].Memberships[0].Role != roles.Owner {
		t.Fatal(people, err)
	}
	b.want(http.StatusOK, "/ops/people", "owner@adom.example", "owner at Adom Stores")
	out := b.ordered("/ops/people/" + people[0].ID + "/disable")
	b.want(http.StatusOK, out, "Awaiting approval")
}

// Settings of an account: an operator's change of limits needs two people. Compliance can block the account at once. The account
// changes its own settings itself.
func TestAccountPages_settings(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	requester, esi := b.joins("ama@example.com", roles.Operations), b.joins("esi@example.com", roles.Compliance)
	b.joins("kofi@example.com", roles.Approver)
	owner := b.enlists("owner@adom.example", shop.ID, roles.Owner)
	b.clock.Advance(identity.Freshness)
	ops := "/ops/tenants/" + shop.ID
	b.as(requester)
	b.want(http.StatusOK, ops, "View keys and settings")
	b.want(http.StatusOK, b.ordered(ops+"/settings", "transfer_limit", "20000.00", "collections", "on"), "Awaiting approval", "20000.00")
	b.want(http.StatusOK, b.ordered("/ops/tenants/new", "name", "New Shop", "mode", "live", "collections", "on"), "Awaiting approval", "New Shop")
	b.as(esi)
	b.want(http.StatusForbidden, ops+"/settings")
	b.want(http.StatusOK, b.ordered(ops+"/block", "blocked", "on"), "Applied")
	b.clock.Advance(time.Second)
	b.as(owner)
	b.want(http.StatusOK, b.ordered("/app/"+shop.ID+"/settings", "fee_bearer", "customer", "transfer_limit", "1000000.00"), "Applied", "fee_bearer")
	b.clock.Advance(time.Second)
	after, err := b.tenants.Get(t.Context(), shop.ID)
	if err != nil || !after.Blocked || after.FeeBearer != "customer" || after.PayoutLimitWallet != shop.PayoutLimitWallet {
		t.Fatalf("%+v, %v", after, err)
	}
}

// An account sets the number of approvers for its requests, and the daily limit of a key, on pages that only its own people
// see. A kind without its own template has a page that is made from its fields and shows their errors.
func TestGeneratedPage_requestsAChange(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	owner, finance := b.enlists("owner@adom.example", shop.ID, roles.Owner), b.enlists("finance@adom.example", shop.ID, roles.Finance)
	b.clock.Advance(identity.Freshness)
	b.as(owner)
	page := "/app/" + shop.ID + "/changes/tenant.low_balance"
	b.want(http.StatusOK, "/app/"+shop.ID+"/access", "Low-balance threshold", "none", page)
	id := b.want(http.StatusOK, page, "Low-balance threshold", "Warn below (GHS)").hidden(t, "id")
	b.post(http.StatusUnprocessableEntity, page, "id", id, "reason", "payday", "amount", "much")
	b.want(http.StatusOK, b.ordered(page, "amount", "250.00"), "Applied", "from none to GHS 250.00")
	b.want(http.StatusOK, "/app/"+shop.ID+"/access", "GHS 250.00")
	b.as(finance)
	b.want(http.StatusForbidden, page)
}

func TestAccountPages_policyAndKeyLimit(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop, other := b.live(), b.named("Kejetia")
	owner, admin := b.enlists("owner@adom.example", shop.ID, roles.Owner), b.enlists("admin@adom.example", shop.ID, roles.Admin)
	foreign, operator := b.enlists("owner@kejetia.example", other.ID, roles.Owner), b.joins("boss@example.com", roles.Owner)
	b.clock.Advance(identity.Freshness)
	app := "/app/" + shop.ID
	approve := func(request string) {
		t.Helper()
		b.as(admin)
		b.post(http.StatusSeeOther, request+"/approve", "digest", b.get(request).hidden(t, "digest"))
		b.clock.Advance(time.Second)
		b.as(owner)
	}
	b.as(owner)
	b.want(http.StatusOK, app, app+"/policy")
	page := b.want(http.StatusOK, app+"/policy", "In force")
	if strings.Contains(page.text, "Deposit to a wallet") || strings.Contains(page.text, `name="tenant"`) {
		t.Errorf("the policy of an account offers what is the installation's: %s", page.text)
	}
	line := []string{"kind", "key.create", "amount", "0.00", "checkers", "0"} // the name of the field in forms of the version before
	b.post(http.StatusUnprocessableEntity, app+"/policy", "id", page.hidden(t, "id"), "kind", "wallet.fund", "amount", "0.00", "checkers", "0", "reason", "x")
	approve(b.ordered(app+"/policy", line...))
	b.want(http.StatusOK, app+"/policy", "This account")
	request := b.ordered(app+"/keys/new", "scopes", "payout", "daily", "100")
	b.want(http.StatusOK, request, "Applied")
	key := regexp.MustCompile(`/keys/([0-9a-f-]+)/daily`).FindStringSubmatch(b.want(http.StatusOK, app+"/access", "/daily").text)[1]
	b.want(http.StatusOK, app+"/keys/"+key+"/daily", "100.00")
	b.want(http.StatusOK, b.ordered(app+"/keys/"+key+"/daily", "daily", "40"), "Applied") // a lower limit needs no approval
	raise := b.ordered(app+"/keys/"+key+"/daily", "daily", "4000")
	b.want(http.StatusOK, raise, "Awaiting approval")
	approve(raise)
	b.want(http.StatusOK, app+"/keys/"+key+"/daily", "4000.00")

	b.as(foreign)
	b.want(http.StatusNotFound, app+"/policy")
	b.want(http.StatusOK, "/app/"+other.ID+"/policy", "In force")
	b.want(http.StatusNotFound, "/app/"+other.ID+"/keys/"+key+"/daily")
	b.as(operator)
	if p := b.want(http.StatusOK, "/ops/policy", "In force"); strings.Contains(p.text, "This account") {
		t.Error("the installation shows the account's own lines as its own")
	}
	if p := b.want(http.StatusOK, app+"/policy", "This account"); strings.Contains(p.text, "Change the policy") {
		t.Error("an operator who looks at the account's pages is offered to change its policy")
	}
}

// A full phone number is shown only to roles with the permission, one number at a time. The audit log records each view.
func TestReveal_isAudited(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	id := b.paid()
	const number = "233240000001"
	for _, tt := range []struct {
		role   identity.Membership
		base   string
		status int
	}{
		{identity.Membership{Tenant: demoTenant, Role: roles.Support}, "/app/" + demoTenant, http.StatusOK},
		{identity.Membership{Tenant: demoTenant, Role: roles.Signatory}, "/app/" + demoTenant, http.StatusOK},
		{identity.Membership{Role: roles.Support}, "/ops", http.StatusOK},
		{identity.Membership{Tenant: demoTenant, Role: roles.Developer}, "/app/" + demoTenant, http.StatusForbidden},
		{identity.Membership{Role: roles.Auditor}, "/ops", http.StatusForbidden},
		{identity.Membership{Tenant: b.another().ID, Role: roles.Owner}, "/app/" + demoTenant, http.StatusNotFound},
	} {
		email := strings.ToLower(string(tt.role.Role)) + "-of-" + tt.role.Tenant + "@example.com"
		b.become(email, tt.role)
		here := tt.base + "/payments/" + id
		if tt.status != http.StatusNotFound {
			p := b.want(http.StatusOK, here)
			if strings.Contains(p.text, number) || strings.Contains(p.text, "Show full number") != (tt.status == http.StatusOK) {
				t.Errorf("%s: %s", email, p.text)
			}
		}
		if p := b.post(tt.status, here+"/number"); strings.Contains(p.text, number) != (tt.status == http.StatusOK) {
			t.Errorf("%s: %s", email, p.text)
		}
		b.post(tt.status, here+"/number") // a second view of the same number makes no other entry
		entries, err := b.audit.List(t.Context(), audit.Filter{Action: "number.reveal", Subject: id, Actor: email})
		if err != nil || (len(entries) == 1) != (tt.status == http.StatusOK) {
			t.Errorf("%s: %+v, %v", email, entries, err)
		}
		if tt.status != http.StatusOK {
			continue
		}
		person := entries[0].Person
		for n := range 29 { // 30 numbers an hour
			if err := b.identity.Use(t.Context(), identity.Reveals, person, id+strconv.Itoa(n), audit.Entry{Actor: email, Action: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		b.post(http.StatusOK, here+"/number")
		if err := b.identity.Use(t.Context(), identity.Reveals, person, "another", audit.Entry{Actor: email, Action: "test"}); !problem.Is(err, problem.RateLimited) {
			t.Error(err)
		}
	}
}
