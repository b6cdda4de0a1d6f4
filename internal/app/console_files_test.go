package app

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/xuri/excelize/v2"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
)

// table reads a file of comma separated values.
func (p page) table(t *testing.T) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(p.text, "\ufeff"))).ReadAll()
	if err != nil || !strings.HasPrefix(p.Header.Get("Content-Type"), "text/csv") {
		t.Fatalf("no file: %v, %s", err, p.text)
	}
	return rows
}

// workbook reads an XLSX file with another library than the writer's.
func (p page) workbook(t *testing.T) [][]string {
	t.Helper()
	book, err := excelize.OpenReader(strings.NewReader(p.text))
	if err != nil || !strings.HasSuffix(p.Header.Get("Content-Type"), "spreadsheetml.sheet") {
		t.Fatalf("no workbook: %v", err)
	}
	defer func() { _ = book.Close() }()
	rows, err := book.GetRows(book.GetSheetName(0), excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Payments can be downloaded as a workbook for people, as CSV for programs, and with the columns of bookkeeping programs. The
// amounts add up to the change of the wallet. File names contain the account and the days.
func TestFiles_ofPayments(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	demo, err := b.tenants.Get(t.Context(), demoTenant)
	if err != nil {
		t.Fatal(err)
	}
	balance := func() int64 {
		n, err := b.ledger.Balance(t.Context(), demo.Wallet())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := balance()
	b.ask("100.00", "0240000001", "order-0000001")
	b.ask("12.50", "0240000001", "000000000002")
	b.call("payment-api/send/mobilemoney", `{"amount":"25.00","channel":"MTN","account_number":"0240000001","client_reference":"payout-0000001","account_name":"=Ama"}`)
	app := "/app/" + demoTenant
	clocktest.Await(t, "three payments that succeeded", func() bool { return len(b.get("/ops/payments.csv?status=success").table(t)) == 4 })
	b.want(http.StatusOK, app+"/collections?status=success", app+"/collections.xlsx?status=success", app+"/collections.csv?status=success", "preset=bookkeeping")
	p := b.want(http.StatusOK, app+"/collections.xlsx?from=2026-01-01&to=2026-02-28")
	if name := p.Header.Get("Content-Disposition"); !regexp.MustCompile(`^attachment; filename="collections-[a-z0-9-]+-2026-01-01-to-2026-02-28\.xlsx"$`).MatchString(name) {
		t.Errorf("the file is %s", name)
	}
	p = b.want(http.StatusOK, "/ops/payments.csv?tenant="+demoTenant)
	if name := p.Header.Get("Content-Disposition"); !regexp.MustCompile(`^attachment; filename="payments-[a-z0-9-]+-to-20[0-9-]{8}\.csv"$`).MatchString(name) {
		t.Errorf("the file is %s", name)
	}
	if rows := b.want(http.StatusOK, app+"/collections.xlsx").workbook(t); len(rows) != 3 || rows[1][4] != "000000000002" || rows[1][9] != "12.50" || rows[1][7] != "233240000001" {
		t.Errorf("%v", rows)
	}
	rows := b.want(http.StatusOK, app+"/collections.csv?preset=bookkeeping&status=success").table(t)
	if !slices.Equal(rows[0], []string{"Date", "Amount", "Payee", "Description", "Reference"}) || rows[1][4] != "000000000002" || !strings.HasPrefix(rows[1][3], "Collection") {
		t.Errorf("%v", rows)
	}
	rows = b.want(http.StatusOK, "/ops/payments.csv?preset=bookkeeping&tenant="+demoTenant).table(t)
	var sum money.Pesewas
	for _, row := range rows[1:] {
		amount, err := money.Parse(strings.TrimPrefix(row[1], "-"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(row[1], "-") {
			amount = -amount
		}
		sum += amount
	}
	if got := balance() - before; int64(sum) != got {
		t.Errorf("the entries add up to %d, and the wallet got %d: %v", sum, got, rows)
	}
	b.want(http.StatusUnprocessableEntity, app+"/collections.csv?preset=tally", "must be bookkeeping")
}

// Messages, refused requests and the audit log can also be downloaded as files, with the filters of their lists. The files contain
// no formula.
func TestExports_allLists(t *testing.T) {
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
		has        string // text of a cell in the second row or later
	}{
		{"/ops/messages", "/ops/messages.csv", campaigns[0].ID},
		{"/ops/messages?tenant=" + demoTenant, "/ops/messages.csv?tenant=" + demoTenant, campaigns[0].ID},
		{app + "/messages", app + "/messages.csv", campaigns[0].ID},
		{"/ops/requests", "/ops/requests.csv", "req_of_files_01"},
		{app + "/requests?status=422", app + "/requests.csv?status=422", "req_of_files_01"},
		{"/ops/audit?action=wallet.fund", "/ops/audit.csv?action=wallet.fund", "'=HYPERLINK(1)"},
	} {
		xlsx := strings.Replace(tt.file, ".csv", ".xlsx", 1)
		b.want(http.StatusOK, tt.list, strings.ReplaceAll(tt.file, "&", "&amp;"), strings.ReplaceAll(xlsx, "&", "&amp;"))
		book := b.want(http.StatusOK, xlsx).workbook(t)
		rows := b.want(http.StatusOK, tt.file).table(t)
		found := false
		for _, row := range rows[1:] {
			for _, cell := range row {
				found = found || cell == tt.has
			}
		}
		if len(book) != len(rows) || !slices.Equal(book[0], rows[0]) {
			t.Errorf("%s has the rows %v, not %v", xlsx, book, rows)
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
	if err != nil || len(log) != 13 || log[1].Subject != "/ops/audit.csv" { // the audit log records each download
		t.Errorf("%d entries, %v: %+v", len(log), err, log)
	}
}

// The audit log has one entry for each downloaded list. It has none for a refused download or a HEAD request.
func TestExports_areAudited(t *testing.T) {
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

// A person who may download files can download only the lists that the role may read.
func TestExports_needPermission(t *testing.T) {
	t.Parallel()
	b := browse(t)
	app := "/app/" + demoTenant
	for _, tt := range []struct {
		of      identity.Membership
		base    string
		refused []string
		given   string
	}{
		{identity.Membership{Role: roles.Treasury}, "/ops", []string{"/requests", "/messages"}, "/payments.csv"},
		{identity.Membership{Tenant: demoTenant, Role: roles.Finance}, app, []string{"/requests", "/messages"}, "/payouts.csv"},
		{identity.Membership{Tenant: demoTenant, Role: roles.Signatory}, app, []string{"/requests", "/messages"}, "/payouts.csv"},
	} {
		b.become(string(tt.of.Role)+"@example.com", tt.of)
		for _, list := range tt.refused {
			b.want(http.StatusForbidden, tt.base+list)
			b.want(http.StatusForbidden, tt.base+list+".csv")
		}
		b.want(http.StatusOK, tt.base+tt.given)
	}
}

// People who may see a campaign find it by its id on their site.
func TestSearch_campaignID(t *testing.T) {
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
	b.want(http.StatusOK, "/ops/search?q="+uuid.NewString(), "No results")
	b.want(http.StatusOK, "/app/"+b.named("Kejetia").ID+"/search?q="+id, "No results") // another account's
}

// The answer for an address without a page has the navigation of the site.
func TestNotFound_keepsNavigation(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusNotFound, "/ops/nothing/here", `href="/ops/payments"`, "This page does not exist")
	b.want(http.StatusNotFound, "/app/"+demoTenant+"/nothing", `href="/app/`+demoTenant+`/payouts"`, "This page does not exist")
	if p := b.want(http.StatusNotFound, "/app/no-such-account/nothing"); strings.Contains(p.text, "/payouts") {
		t.Errorf("an account that is not there has pages: %s", p.text)
	}
}

// If there are more accounts than a list can offer, the filter accepts an id or a name.
func TestAccountFilter_byName(t *testing.T) {
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
	if p := b.get("/ops/payments"); strings.Contains(p.text, "<option value=\""+demoTenant) || !strings.Contains(p.text, "(name or ID)") {
		t.Error("many accounts are offered one by one")
	}
	b.want(http.StatusOK, "/ops/payments?"+url.Values{"tenant": {"adum textiles"}}.Encode(), "No results")
	b.want(http.StatusOK, "/ops/messages?"+url.Values{"tenant": {"adum textiles"}}.Encode(), "No results")
	b.want(http.StatusUnprocessableEntity, "/ops/payments?tenant=Kejetia", "several accounts")
	b.want(http.StatusUnprocessableEntity, "/ops/payments?tenant=nothing", "must be the name or ID of one account")
}

// named makes an account with a name and live money.
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

// A person may download at most 20 files an hour, one at a time. Repeated downloads of a file have one entry in the audit log,
// and a second entry with their number after the hour. Another person has a limit of their own.
func TestFiles_areLimitedForEachPerson(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	ama, kofi := b.joins("ama@example.com", roles.Owner), b.joins("kofi@example.com", roles.Owner)
	b.as(ama)
	for range 20 {
		b.want(http.StatusOK, "/ops/payments.csv?tenant="+shop.ID)
	}
	for range 200 {
		if p := b.get("/ops/payments.csv?tenant=" + shop.ID); p.StatusCode != http.StatusTooManyRequests || p.Header.Get("Retry-After") == "" {
			t.Fatal(p.StatusCode, p.Header)
		}
	}
	b.want(http.StatusTooManyRequests, "/ops/audit.csv")
	b.want(http.StatusOK, "/ops/payments")
	b.as(kofi)
	b.want(http.StatusOK, "/ops/payments.csv?tenant="+shop.ID)
	exports := func(want int) []audit.Entry {
		t.Helper()
		log, err := b.audit.List(t.Context(), audit.Filter{Action: "payments.export"})
		if err != nil || len(log) != want {
			t.Fatalf("%d entries, %v", len(log), err)
		}
		return log
	}
	exports(2)
	b.clock.Advance(time.Hour)
	if err := b.identity.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log := exports(3); !strings.Contains(string(log[0].Details.(json.RawMessage)), `"times":20`) || log[0].Actor != "ama@example.com" {
		t.Errorf("%+v", log[0])
	}
}
