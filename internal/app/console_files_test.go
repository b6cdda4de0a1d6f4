package app

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/tenant"
)

// table reads a file of comma separated values.
func (p page) table(t *testing.T) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(p.text)).ReadAll()
	if err != nil || !strings.HasPrefix(p.Header.Get("Content-Type"), "text/csv") {
		t.Fatalf("no file: %v, %s", err, p.text)
	}
	return rows
}

// Messages, refused requests and the audit log are files, too, with the filters of their lists and no formula in them.
func TestListsBesidePaymentsAreFilesToo(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.call("sms-api/send", `{"sender_id":"`+b.ready.SenderID+`","message":"Akwaaba","recipients":["0240000001","0200000024"]}`)
	b.refusedOnce(b.ready.APIKey, "req_of_files_01")
	b.post(http.StatusSeeOther, "/ops/tenants/"+demoTenant+"/fund/confirm", "id", uuid.Must(uuid.NewV7()).String(), "amount", "5", "reason", "=HYPERLINK(1)")
	campaigns, err := b.messaging.Campaigns(t.Context(), demoTenant, "", 1)
	if err != nil || len(campaigns) != 1 {
		t.Fatal(campaigns, err)
	}
	app := "/app/" + demoTenant
	for _, tt := range []struct {
		list, file string
		has        string // a cell of its second row or later
	}{
		{"/ops/messages", "/ops/messages.csv", campaigns[0].ID},
		{"/ops/messages?tenant=" + demoTenant, "/ops/messages.csv?tenant=" + demoTenant, campaigns[0].ID},
		{app + "/messages", app + "/messages.csv", campaigns[0].ID},
		{"/ops/requests", "/ops/requests.csv", "req_of_files_01"},
		{app + "/requests?status=422", app + "/requests.csv?status=422", "req_of_files_01"},
		{"/ops/audit?action=wallet.fund", "/ops/audit.csv?action=wallet.fund", "'=HYPERLINK(1)"},
	} {
		b.want(http.StatusOK, tt.list, strings.ReplaceAll(tt.file, "&", "&amp;"))
		rows := b.want(http.StatusOK, tt.file).table(t)
		found := false
		for _, row := range rows[1:] {
			for _, cell := range row {
				found = found || cell == tt.has
			}
		}
		if !found || len(rows[0]) < 8 {
			t.Errorf("%s lacks %q: %v", tt.file, tt.has, rows)
		}
	}
	if rows := b.want(http.StatusOK, app+"/requests.csv?status=404").table(t); len(rows) != 1 {
		t.Errorf("the filter does not narrow the file: %v", rows)
	}
	b.want(http.StatusUnprocessableEntity, "/ops/requests.csv?status=200")
	log, err := b.audit.List(t.Context(), audit.Filter{Action: "payments.export", Limit: 20})
	if err != nil || len(log) != 7 || log[1].Subject != "/ops/audit.csv" { // a list that was taken away is written down
		t.Errorf("%d entries, %v: %+v", len(log), err, log)
	}
}

// A list that was taken away is written down once; one that was refused, or whose head alone was asked for, was not taken.
func TestAFileIsWrittenDownWhenItIsGiven(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	exports := func(want int, after string) {
		t.Helper()
		log, err := b.audit.List(t.Context(), audit.Filter{Action: "payments.export"})
		if err != nil || len(log) != want {
			t.Errorf("%d entries after %s, not %d: %+v, %v", len(log), after, want, log, err)
		}
	}
	app := "/app/" + demoTenant
	for _, path := range []string{app + "/collections.csv?status=lost", "/ops/payments.csv?from=x", app + "/requests.csv?status=200"} {
		b.want(http.StatusUnprocessableEntity, path)
		exports(0, path)
	}
	for _, path := range []string{app + "/collections.csv", "/ops/payments.csv"} {
		if p := b.do(http.MethodHead, path, nil); p.StatusCode != http.StatusOK || p.text != "" {
			t.Errorf("HEAD %s: %d %s", path, p.StatusCode, p.text)
		}
		exports(0, "HEAD "+path)
	}
	b.want(http.StatusOK, app+"/collections.csv?status=success")
	exports(1, "a good one")
	b.want(http.StatusOK, "/ops/payments.csv")
	exports(2, "another")
}

// Who may take files away takes no list that their role does not see.
func TestAFileNeedsTheRightToItsList(t *testing.T) {
	t.Parallel()
	b := browse(t)
	app := "/app/" + demoTenant
	for _, tt := range []struct {
		of      identity.Membership
		base    string
		refused []string
		given   string
	}{
		{identity.Membership{Role: identity.Treasury}, "/ops", []string{"/requests", "/messages"}, "/payments.csv"},
		{identity.Membership{Tenant: demoTenant, Role: identity.Finance}, app, []string{"/requests", "/messages"}, "/payouts.csv"},
		{identity.Membership{Tenant: demoTenant, Role: identity.Signatory}, app, []string{"/requests", "/messages"}, "/payouts.csv"},
	} {
		b.become(string(tt.of.Role)+"@example.com", tt.of)
		for _, list := range tt.refused {
			b.want(http.StatusForbidden, tt.base+list)
			b.want(http.StatusForbidden, tt.base+list+".csv")
		}
		b.want(http.StatusOK, tt.base+tt.given)
	}
}

// A campaign is found by its id, on the sites of those who may see it.
func TestACampaignIsFoundByItsID(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.call("sms-api/send", `{"sender_id":"`+b.ready.SenderID+`","message":"Akwaaba","recipients":["0240000001"]}`)
	campaigns, err := b.messaging.Campaigns(t.Context(), demoTenant, "", 1)
	if err != nil || len(campaigns) != 1 {
		t.Fatal(campaigns, err)
	}
	id := campaigns[0].ID
	b.want(http.StatusSeeOther, "/ops/search?q="+id).leads(t, "/ops/messages/"+id)
	b.want(http.StatusSeeOther, "/app/"+demoTenant+"/search?q="+strings.ToUpper(id)).leads(t, "/app/"+demoTenant+"/messages/"+id)
	b.want(http.StatusOK, "/ops/search?q="+uuid.NewString(), "Nothing found")
	b.want(http.StatusOK, "/app/"+b.named("Kejetia").ID+"/search?q="+id, "Nothing found") // another account's
}

// An address that no page has is answered between the navigation of its site.
func TestAStrayAddressKeepsTheNavigation(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusNotFound, "/ops/nothing/here", `href="/ops/payments"`, "There is no such page")
	b.want(http.StatusNotFound, "/app/"+demoTenant+"/nothing", `href="/app/`+demoTenant+`/payouts"`, "There is no such page")
	if p := b.want(http.StatusNotFound, "/app/no-such-account/nothing"); strings.Contains(p.text, "/payouts") {
		t.Errorf("an account that is not there has pages: %s", p.text)
	}
}

// With more accounts than a list can offer, the filter takes an id or a name.
func TestTheFilterByAccountTakesANameWhereThereAreMany(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	if p := b.get("/ops/payments"); !strings.Contains(p.text, `<option value="`+demoTenant+`"`) {
		t.Error("few accounts are not offered")
	}
	for range 201 {
		b.named("Kejetia")
	}
	b.named("Adum Textiles")
	if p := b.get("/ops/payments"); strings.Contains(p.text, "<option value=\""+demoTenant) || !strings.Contains(p.text, "by id or name") {
		t.Error("many accounts are offered one by one")
	}
	b.want(http.StatusOK, "/ops/payments?"+url.Values{"tenant": {"adum textiles"}}.Encode(), "Nothing matches")
	b.want(http.StatusOK, "/ops/messages?"+url.Values{"tenant": {"adum textiles"}}.Encode(), "Nothing matches")
	b.want(http.StatusUnprocessableEntity, "/ops/payments?tenant=Kejetia", "several accounts")
	b.want(http.StatusUnprocessableEntity, "/ops/payments?tenant=nothing", "must be the id of an account")
}

// named makes an account of a name, with live money.
func (b *browsed) named(name string) (t tenant.Tenant) {
	b.t.Helper()
	if err := b.db.Write(b.t.Context(), func(tx *db.Tx) (err error) {
		t, err = b.tenants.Create(tx, tenant.Tenant{Name: name, Mode: tenant.Live})
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
	return t
}
