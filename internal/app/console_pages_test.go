package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/webhook"
)

// another makes a second tenant.
func (b *browsed) another() tenant.Tenant {
	b.t.Helper()
	var t tenant.Tenant
	err := b.db.Write(b.t.Context(), func(tx *db.Tx) (err error) {
		t, err = b.tenants.Create(tx, tenant.Tenant{ID: "11111111-1111-7111-8111-111111111111", Name: "Another Shop", Mode: tenant.Test})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

// paid returns an approved collection of the demo tenant whose webhook was delivered.
func (b *browsed) paid() string {
	b.t.Helper()
	b.signIn(b.nextLink())
	b.ask("12.50", "0240000001", "handset-0000000001")
	b.until("/sim", "Signature valid")
	if err := b.routes.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return b.the("handset-0000000001")
}

func TestPaymentPage_wholeHistory(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	b.want(http.StatusOK, "/ops/payments/"+id, "handset-0000000001", "GHS 12.50", "Success", "payment request", "Request and response (redacted)", "Final status: success",
		"Webhook delivered", "Ledger transfers", "Float at MTN", "233240000001", "Resend webhook")
	own := b.want(http.StatusOK, "/app/"+demoTenant+"/payments/"+id, "handset-0000000001", "Webhook delivered", "Ledger transfers")
	if strings.Contains(own.text, "Request and response (redacted)") || strings.Contains(own.text, "own id") {
		t.Error("a tenant sees what was said to the provider")
	}
}

func TestPaymentPage_resendWebhook(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	p := b.want(http.StatusOK, "/ops/payments/"+id)
	_, rest, found := strings.Cut(p.text, `action="/ops/payments/`+id+`/webhooks/`)
	event, _, _ := strings.Cut(rest, "/")
	if !found {
		t.Fatal("no button")
	}
	if p := b.do(http.MethodPost, "/ops/payments/"+id+"/webhooks/"+event+"/replay", nil); p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != "/ops/payments/"+id {
		t.Fatalf("%d %s", p.StatusCode, p.text)
	}
	clocktest.Await(t, "the same webhook once more", func() bool { return strings.Count(b.get("/sim").text, "webhook-id: "+event) == 2 })
}

// A webhook from which a person was erased has no button, and neither a page nor a key can send it again.
func TestErasedWebhook_isNotResent(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	_, rest, _ := strings.Cut(b.want(http.StatusOK, "/ops/payments/"+id, "Resend webhook").text, `action="/ops/payments/`+id+`/webhooks/`)
	event, _, _ := strings.Cut(rest, "/")
	err := b.db.Write(t.Context(), func(tx *db.Tx) error {
		_, err := webhook.EraseTexts(tx, demoTenant, id, "erased", "0240000001")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := b.want(http.StatusOK, "/ops/payments/"+id, "was erased from it"); strings.Contains(p.text, "Resend webhook") {
		t.Error("the page has a button")
	}
	b.post(http.StatusGone, "/ops/payments/"+id+"/webhooks/"+event+"/replay")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.base+"/api/v1/account-api/webhooks/payment/handset-0000000001/replay", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", b.ready.APIKey)
	r.Header.Set("Content-Type", "application/json")
	if p := b.read(r); p.StatusCode != http.StatusGone || !strings.Contains(p.text, "webhook_erased") {
		t.Errorf("a key is answered %d %s", p.StatusCode, p.text)
	}
}

// If a person sends a webhook again, the audit log names the person. A webhook of another payment is a 404.
func TestResendWebhook_isAudited(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	for _, tt := range []struct {
		email string
		of    identity.Membership
		base  string
	}{
		{"ops@example.com", identity.Membership{Role: roles.Operations}, "/ops"},
		{"dev@demo.example", identity.Membership{Tenant: demoTenant, Role: roles.Developer}, "/app/" + demoTenant},
	} {
		b.become(tt.email, tt.of)
		written := func() []audit.Entry {
			t.Helper()
			log, err := b.audit.List(t.Context(), audit.Filter{Action: "webhook.replay", Subject: id, Actor: tt.email})
			if err != nil {
				t.Fatal(err)
			}
			return log
		}
		here := tt.base + "/payments/" + id
		for _, event := range []string{"x", id, "00000000-0000-7000-8000-000000000000"} {
			b.post(http.StatusNotFound, here+"/webhooks/"+event+"/replay")
		}
		if log := written(); len(log) != 0 {
			t.Errorf("%s: an event that is not there was written down: %+v", tt.email, log)
		}
		_, rest, found := strings.Cut(b.want(http.StatusOK, here).text, `action="`+here+`/webhooks/`)
		event, _, _ := strings.Cut(rest, "/")
		if !found {
			t.Fatalf("%s has no button", tt.email)
		}
		b.post(http.StatusSeeOther, here+"/webhooks/"+event+"/replay").leads(t, here)
		log := written()
		if len(log) != 1 || log[0].Person == "" || log[0].Origin != "127.0.0.1" || log[0].Tenant != demoTenant || !strings.Contains(string(log[0].Details.(json.RawMessage)), event) {
			t.Errorf("%s: %+v", tt.email, log)
		}
	}
}

// A HEAD request of an operator for a tenant's page has the same status as a GET, and the audit log records the access.
func TestViewAs_headEqualsGet(t *testing.T) {
	t.Parallel()
	b := browse(t)
	app := "/app/" + demoTenant
	b.become("ops@example.com", identity.Membership{Role: roles.Operations})
	for path, status := range map[string]int{app: http.StatusOK, app + "/payouts": http.StatusOK, app + "/payouts.csv": http.StatusOK, app + "/payouts/new": http.StatusForbidden, app + "/payments/nothing": http.StatusNotFound} {
		head, get := b.do(http.MethodHead, path, nil), b.get(path)
		if head.StatusCode != status || get.StatusCode != status || head.text != "" {
			t.Errorf("%s: HEAD %d %q, GET %d, not %d", path, head.StatusCode, head.text, get.StatusCode, status)
		}
	}
	b.become("boss@example.com", identity.Membership{Role: roles.Owner})
	b.do(http.MethodHead, app, nil)
	if log, err := b.audit.List(t.Context(), audit.Filter{Action: "tenant.view", Actor: "boss@example.com"}); err != nil || len(log) != 1 {
		t.Errorf("%+v, %v", log, err)
	}
	b.become("sre@example.com", identity.Membership{Role: roles.SRE})
	if p := b.do(http.MethodHead, app, nil); p.StatusCode != http.StatusNotFound {
		t.Errorf("a role that may not look: %d", p.StatusCode)
	}
}

// The overview shows only data that the role may read on other pages.
func TestOverview_panelsNeedPermission(t *testing.T) {
	t.Parallel()
	b := browse(t)
	for _, role := range roles.At(roles.InstallationSite) {
		b.become(string(role)+"@example.com", identity.Membership{Role: role})
		may := roles.Can(roles.InstallationSite, role, roles.ReadProviders)
		if p := b.want(http.StatusOK, "/ops"); strings.Contains(p.text, "<h2>Providers paused or failing</h2>") != may || role == roles.Compliance && may {
			t.Errorf("%s: providers.read is %v: %s", role, may, p.text)
		}
	}
}

func TestConsole_otherTenantsIDsAre404(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	other := b.another()
	b.become("owner@another.example", identity.Membership{Tenant: other.ID, Role: roles.Owner})
	b.want(http.StatusSeeOther, "/")
	b.want(http.StatusOK, "/app/"+other.ID, "Another Shop")
	b.want(http.StatusNotFound, "/app/"+other.ID+"/payments/"+id)
	b.want(http.StatusNotFound, "/app/"+demoTenant)
	b.want(http.StatusNotFound, "/app/"+demoTenant+"/payments/"+id)
	b.want(http.StatusForbidden, "/ops")
	if p := b.want(http.StatusOK, "/app/"+other.ID+"/search?q=handset-0000000001"); strings.Contains(p.text, id) {
		t.Error("a search finds another tenant's payment")
	}
	if p := b.get("/app/" + other.ID + "/collections.csv"); strings.Contains(p.text, "handset") {
		t.Error("a file has another tenant's payment")
	}
	if p := b.do(http.MethodPost, "/app/"+other.ID+"/payments/"+id+"/webhooks/x/replay", nil); p.StatusCode != http.StatusNotFound {
		t.Errorf("a replay of another's: %d", p.StatusCode)
	}
}

func TestViewAs_isReadOnly(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	b.become("ops@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Operations})
	p := b.want(http.StatusOK, "/app/"+demoTenant+"/payments/"+id, "You are viewing Adom Stores", "233 •••• 001")
	if strings.Contains(p.text, "Resend webhook") || strings.Contains(p.text, "233240000001") {
		t.Error("more than the auditor's rights")
	}
	if p := b.do(http.MethodPost, "/app/"+demoTenant+"/payments/"+id+"/webhooks/x/replay", nil); p.StatusCode != http.StatusNotFound {
		t.Errorf("a write: %d", p.StatusCode)
	}
	b.become("sre@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.SRE})
	b.want(http.StatusNotFound, "/app/"+demoTenant)
}

// Pages and files show full numbers only if the role allows it.
func TestNumbers_maskedWithoutPermission(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	for role, whole := range map[roles.Role]bool{roles.Owner: true, roles.Operations: true, roles.Treasury: false, roles.Auditor: false, roles.Support: false} {
		b.become(string(role)+"@example.com", identity.Membership{Tenant: roles.Installation, Role: role})
		pages := []string{"/ops/payments", "/ops/payments/" + id, "/ops/search?q=12.50"}
		if roles.Can(roles.InstallationSite, role, roles.ExportPayments) {
			pages = append(pages, "/ops/payments.csv")
		}
		for _, path := range pages {
			p := b.get(path)
			shows := strings.Contains(p.text, "233240000001") || strings.Contains(p.text, "0240000001")
			if shows && !whole || !shows && whole && p.StatusCode == http.StatusOK {
				t.Errorf("%s at %s: whole numbers %v", role, path, shows)
			}
		}
	}
}

func TestConsole_wrongAddresses(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.paid()
	app := "/app/" + demoTenant
	long := strings.Repeat("9", 300)
	for path, status := range map[string]int{
		"/ops/payments/nothing": 404, "/ops/payments/" + long: 404, "/ops/payments/%00": 404, app + "/payments/%3Cscript%3E": 404, "/ops/tenants/nothing": 404, app + "/messages/nothing": 404,
		"/app/nothing": 404, "/app/" + long: 404, "/ops/nothing": 404,
		app + "/collections?page=999999": 200, app + "/collections?page=0": 422, app + "/collections?page=x": 422, app + "/collections?page=" + long: 422, app + "/messages?before=zzz": 200,
		app + "/collections?status=lost": 422, app + "/collections?from=2026-13-01": 422, app + "/collections?from=2026-11-02&to=2026-11-01": 422, app + "/collections?status=success&status=failed": 422,
		"/ops/payments?before=" + long: 422, "/ops/payments?kind=nothing": 200, "/ops/payments?tenant=nothing": 422, "/ops/payments?tenant=01a00000-0000-7000-8000-000000000000": 200, "/ops/payments?newer=zzz": 204, "/ops/search?q=": 200, "/ops/search?q=" + long: 422,
		app + "/collections.csv?status=lost": 422, "/ops/payments.csv?from=x": 422, "/ops/payments?live=nothing": 204,
	} {
		if p := b.get(path); p.StatusCode != status {
			t.Errorf("%s: %d, not %d", path, p.StatusCode, status)
		}
	}
}

// The count of newer rows works, and lists continue by page number and by key.
func TestLists_newerAndPages(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	app := "/app/" + demoTenant
	poll := func(path string) string {
		p := b.want(http.StatusOK, path)
		_, rest, _ := strings.Cut(p.text, `id="newer"`)
		_, rest, _ = strings.Cut(rest, `hx-get="`)
		at, _, _ := strings.Cut(rest, `"`)
		return at
	}
	all, own := poll("/ops/payments"), poll(app+"/collections")
	b.want(http.StatusNoContent, all)
	b.want(http.StatusNoContent, own)
	b.ask("12.50", "0240000001", "handset-0000000001")
	b.want(http.StatusOK, all, "Show 1 new")
	again := b.want(http.StatusOK, own, "Show 1 new")
	_, rest, _ := strings.Cut(again.text, `hx-get="`)
	at, _, _ := strings.Cut(rest, `"`)
	b.want(http.StatusNoContent, strings.ReplaceAll(at, "&amp;", "&"))
	b.want(http.StatusOK, app+"/collections", "handset-0000000001")
}

func TestSession_pollingDoesNotExtendIt(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusOK, "/ops/payments")
	b.clock.Advance(identity.IdleOperator - time.Minute)
	b.get("/ops/payments?newer=0")
	b.clock.Advance(2 * time.Minute)
	b.want(http.StatusUnauthorized, "/ops/payments")
}

// While the database is down every page reports it. Afterwards the pages work again for the same session.
func TestConsole_databaseDown(t *testing.T) {
	t.Parallel()
	faults := &db.Faults{}
	b := browseWith(t, Options{Faults: faults})
	b.signIn(b.nextLink())
	b.want(http.StatusOK, "/ops", "Overview")
	faults.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
	for _, path := range []string{"/ops/payments", "/app/" + demoTenant, "/app/" + demoTenant + "/payouts", "/sim"} {
		b.want(http.StatusServiceUnavailable, path, "Temporarily unavailable", "try again shortly", "</html>")
	}
	faults.Decide(nil)
	b.want(http.StatusOK, "/ops", "Overview")
}

// Operators see the campaigns of all accounts, each with its account. People of a tenant see only their own.
func TestMessages_ofAllAccountsForOperators(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusOK, "/ops/messages", "No messages yet")
	b.call("sms-api/send", `{"sender_id":"`+b.ready.SenderID+`","message":"Akwaaba!","recipients":["0240000001"]}`)
	list := b.want(http.StatusOK, "/ops/messages", "Adom Stores", "AdomStores", "Campaign")
	_, rest, _ := strings.Cut(list.text, `href="/ops/messages/`)
	id, _, _ := strings.Cut(rest, `"`)
	b.want(http.StatusOK, "/ops/messages/"+id, "Akwaaba!", "233240000001", "/ops/tenants/"+demoTenant)
	b.want(http.StatusOK, "/ops/messages?tenant="+demoTenant, id)
	other := b.another()
	b.want(http.StatusOK, "/ops/messages?tenant="+other.ID, "No results", "Another Shop")
	b.want(http.StatusOK, "/ops/messages?before="+id, "No results")
	b.want(http.StatusNotFound, "/ops/messages/nothing")
	b.become("owner@another.example", identity.Membership{Tenant: other.ID, Role: roles.Owner})
	b.want(http.StatusNotFound, "/app/"+other.ID+"/messages/"+id)
	b.want(http.StatusForbidden, "/ops/messages/"+id)
	b.become("support@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Support})
	if p := b.want(http.StatusOK, "/ops/messages/"+id, "233 •••• 001"); strings.Contains(p.text, "Akwaaba!") {
		t.Error("a text is shown to a role without personal data")
	}
}

// The metrics have requests of pages by the pattern of their path. No id and no text of a client is a label.
func TestMetrics_pagesByPattern(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.get("/ops/payments/nothing")
	b.get("/ops/made-up")
	b.get("/assets/made-up.css")
	b.want(http.StatusOK, "/app/"+demoTenant+"/payouts")
	seen := map[string]float64{}
	families, err := b.meters.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "makola_http_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
				if strings.Contains(l.GetValue(), "made-up") || strings.Contains(l.GetValue(), demoTenant) {
					t.Errorf("a label is %q", l.GetValue())
				}
			}
			seen[labels["method"]+" "+labels["route"]+" "+labels["code"]] = m.GetCounter().GetValue()
		}
	}
	for _, want := range []string{"POST /first 303", "GET /ops/payments/{id} 404", "GET console 404", "GET /assets/ 404", "GET /app/{tenant}/payouts 200"} {
		if seen[want] != 1 {
			t.Errorf("%s: %v times", want, seen[want])
		}
	}
}
