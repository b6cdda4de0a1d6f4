package app

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/mailtest"
)

// operatorWords are words about providers, their costs and the installation's own accounts, and a note of an operator.
var operatorWords = []string{"hubtel", "mtnmomo", "paystack", "arkesel", "provider's fee", "provider_fee", "commission", "float", "clearing at", "revenue", "operators-own-note", "payment.note"}

// discreet fails the test if a text for an account contains a word that only operators may see.
func (b *browsed) discreet(where, text string) {
	b.t.Helper()
	for _, word := range operatorWords {
		if at := strings.Index(strings.ToLower(text), word); at >= 0 {
			b.t.Errorf("%s has %q: %.200s", where, word, text[max(0, at-80):])
		}
	}
}

// seen returns the text of a page or of a file. The cells of a workbook are its text.
func (p page) seen(t *testing.T) string {
	t.Helper()
	if p.Header.Get("Content-Type") != sheet.XLSX.MediaType() {
		return p.text
	}
	var cells []string
	for _, row := range p.workbook(t) {
		cells = append(cells, row...)
	}
	return strings.Join(cells, " ")
}

// furnishBatches makes a batch that has ended, one that is a draft, and a file whose columns are not confirmed. It returns their ids.
func (b *browsed) furnishBatches() (ended, draft, file string) {
	b.t.Helper()
	last := func(p page) string {
		to := p.Header.Get("Location")
		if to == "" {
			b.t.Fatalf("the file is answered %d: %s", p.StatusCode, p.text)
		}
		return to[strings.LastIndex(to, "/")+1:]
	}
	const heads = "Phone Number,Network,Amount,Name\n"
	ended = last(b.uploads("Salaries November", "salaries.csv", heads+"0240000001,MTN,\"1,200.50\",Ama Mensah\n0240000004,MTN,10.00,Yaw Boateng\n"))
	here := batchesPage + "/" + ended
	b.post(http.StatusSeeOther, here+"/request", "id", b.want(http.StatusOK, here).hidden(b.t, "id"), "reason", "salaries of November")
	b.ends(ended)
	draft = last(b.uploads("Bonus December", "bonus.csv", heads+"0240000004,MTN,75.00,Efua Owusu\n02400,MTN,10.00,Kofi\n"))
	file = last(b.sendsFile("Drivers", "drivers.csv", []byte("Who,How much\n0240000001,12.00\n")))
	return ended, draft, file
}

// People and programs of an account see no internal data of the installation on any page, file, answer or webhook. They see no
// name of a provider except the chosen network, no costs of providers, and no accounts at providers. The test reads every page,
// file and GET answer, and fails for a new one that it does not read.
func TestAccountPages_nothingOfTheInstallation(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		paid := b.the("handset-0000000001")
		p, err := b.payments.Find(t.Context(), paid)
		if err != nil || p.Status != book.StatusSuccess || p.UpstreamID == "" {
			t.Fatalf("the payment of this test: %+v, %v", p, err)
		}
		form := b.want(http.StatusOK, "/ops/payments/"+paid, "New note")
		b.post(http.StatusSeeOther, "/ops/payments/"+paid+"/notes", "id", form.hidden(t, "id"), "note", "operators-own-note")
		ended, draft, file := b.furnishBatches()
		campaign := b.drafted()
		campaign = campaign[strings.LastIndex(campaign, "/")+1:]
		held, failed := b.the("payout-of-november-03"), b.the("payout-of-november-02")
		ids := b.good()
		mapping := "/app/" + demoTenant + "/batch-files/" + file // only the person who uploaded the file sees it
		b.discreet(mapping, b.want(http.StatusOK, mapping).text)
		b.answers(ended)
		b.webhookBodies()
		b.become("owner@adom.example", identity.Membership{Tenant: demoTenant, Role: roles.Owner})
		read := []string{"/app/{tenant}/batch-files/{id}", "/app/{tenant}/messages/{id}/stop"} // the campaign has ended
		unread := map[string]*regexp.Regexp{}
		var from []string
		for _, route := range consoleRoutes() {
			if route.Site != console.Tenants || route.Method != http.MethodGet || strings.Contains(route.Path, "{rest...}") || slices.Contains(read, route.Path) {
				continue
			}
			unread[route.Path] = addressOf(route)
			for _, id := range []string{paid, failed, held, ended, draft, file, campaign} {
				of := maps.Clone(ids)
				of["id"] = id
				from = append(from, asked(route, of).path)
			}
		}
		for path, p := range b.crawl(ids, from...) {
			if !strings.HasPrefix(path, "/app/"+demoTenant) || p.StatusCode != http.StatusOK {
				continue
			}
			b.discreet(path, p.seen(t))
			address, _, _ := strings.Cut(path, "?")
			maps.DeleteFunc(unread, func(_ string, of *regexp.Regexp) bool { return of.MatchString(address) })
		}
		if len(unread) > 0 {
			t.Errorf("no page of these was read: %v", slices.Sorted(maps.Keys(unread)))
		}
	})
}

// addressOf matches the paths of a route.
func addressOf(route console.Route) *regexp.Regexp {
	parts := wildcard.Split(route.Path, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, "[^/]+") + "$")
}

// answers reads every GET answer of the interface.
func (b *browsed) answers(batch string) {
	b.t.Helper()
	campaigns, err := b.messaging.Campaigns(b.t.Context(), demoTenant, "", 1)
	if err != nil || len(campaigns) == 0 {
		b.t.Fatal(campaigns, err)
	}
	of := map[string]string{"transaction_id": "payout-of-november-02", "ext_transaction_id": "none-000000000001", "batch_id": batch, "request_id": "req-of-the-screens-01", "phone_number": "0240000001",
		"service_id": "mtn", "campaignId": campaigns[0].ID, "groupId": "1"}
	query := map[string]string{"payment-api/bankNameQuery": "?bank_code=GCB&account_number=0240000001", "kyc-api/msisdNameQuery": "?msisdn=0240000001&phone_number=0240000001"}
	read := 0
	for _, route := range api.Routes() {
		if route.Method != http.MethodGet || route.Path == "sms-api/send" { // which sends
			continue
		}
		path := wildcard.ReplaceAllStringFunc(route.Path, func(w string) string { return of[w[1:len(w)-1]] })
		r, err := http.NewRequestWithContext(b.t.Context(), route.Method, b.ready.APIURL+"/"+path+query[route.Path], nil)
		if err != nil {
			b.t.Fatal(err)
		}
		r.Header.Set("x-api-key", b.ready.APIKey)
		p := b.read(r)
		if p.StatusCode == http.StatusOK {
			read++
		}
		b.discreet(route.Path, p.text)
	}
	if read < 14 {
		b.t.Errorf("the interface gave %d answers alone", read)
	}
}

// webhookBodies reads every webhook of the account.
func (b *browsed) webhookBodies() {
	b.t.Helper()
	var bodies []string
	err := b.db.Read(b.t.Context(), func(tx *db.Tx) error {
		bodies = nil
		return tx.Query(`SELECT body FROM webhook_events WHERE tenant = $1`, []any{demoTenant}, func(r *db.Row) error {
			var body string
			err := r.Scan(&body)
			bodies = append(bodies, body)
			return err
		})
	})
	if err != nil || len(bodies) == 0 {
		b.t.Fatalf("%d webhooks, %v", len(bodies), err)
	}
	for _, body := range bodies {
		b.discreet("a webhook", body)
	}
}

// accountEvents are the titles of the notices that people of an account receive about it.
var accountEvents = []string{"A change request awaits your approval", "A batch ended", "Webhooks have failed for an hour", "A sender ID was approved or rejected",
	"An API key expires soon", "An API key or the webhook secret was changed", "A person or a role was changed"}

// Mails to people of an account show no internal data of the installation, either. The test makes one notice of each event of an account.
func TestAccountNotices_nothingOfTheInstallation(t *testing.T) {
	t.Parallel()
	b := browse(t, mailing(mailtest.Start(t, nil)))
	b.furnish() // with a payout that awaits approval, and one that its provider lost
	b.furnishBatches()
	owner := b.enlists("owner@adom.example", demoTenant, roles.Owner)
	b.call("sms-api/requestSenderId", `{"name":"AdomShop","desc":"Orders of our shop"}`)
	senders, err := b.senders.Waiting(t.Context(), 1)
	if err != nil || len(senders) != 1 {
		t.Fatalf("the sender IDs in review: %+v, %v", senders, err)
	}
	b.ordered("/ops/senders/" + senders[0].ID + "/reject")
	b.ordered("/app/"+demoTenant+"/keys/new", "scopes", "read", "label", "till 4")
	b.ordered("/app/"+demoTenant+"/people/invite", "email", "kojo@adom.example", "name", "Kojo", "role", string(roles.Marketing))
	now := b.clock.Now()
	b.runs(t, []string{`UPDATE api_keys SET expires_at = ` + micros(now.Add(3*24*time.Hour)) + ` WHERE label = 'till 4'`,
		`INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at) VALUES ('0190-hook', 'elsewhere', 'webhook', '', '{"tenant":"` + demoTenant + `"}', ` + micros(now.Add(48*time.Hour)) + `, 4, 0, 'answered 500', ` + micros(now.Add(-2*time.Hour)) + `, 0)`})
	missing := func(text string) []string {
		return slices.DeleteFunc(slices.Clone(accountEvents), func(title string) bool { return strings.Contains(text, title) })
	}
	var text string
	for range 4 {
		if err := b.notices.Work(t.Context()); err != nil {
			t.Log("the worker of the server makes the same messages: ", err)
		}
		if text = b.noticesTo(owner.Person.ID); len(missing(text)) == 0 {
			break
		}
		b.clock.Advance(time.Hour) // several mails in a row wait for each other
	}
	if list := missing(text); len(list) > 0 {
		t.Errorf("the owner has no notice of %q:\n%s", list, text)
	}
	b.discreet("a notice", text)
	b.discreet("a notice to another person", b.noticesTo(""))
}

// noticesTo returns the messages to a person; "" stands for everybody except the developer, who is an operator, too.
func (b *browsed) noticesTo(person string) string {
	b.t.Helper()
	var text strings.Builder
	err := b.db.Read(b.t.Context(), func(tx *db.Tx) error {
		text.Reset()
		return tx.Query(`SELECT title, body FROM notice_messages WHERE (person = $1 OR $1 = '') AND address <> $2 ORDER BY id`, []any{person, developerEmail}, func(r *db.Row) error {
			var title, body string
			err := r.Scan(&title, &body)
			text.WriteString(title + "\n" + body + "\n")
			return err
		})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return text.String()
}
