package app

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/clocktest"
)

var promptPath = regexp.MustCompile(`/sim/prompts/[0-9]+/[0-9A-Za-z-]+`)

// ask fills in and submits the form of /sim.
func (b *browsed) ask(amount, phone, reference string) page {
	b.t.Helper()
	return b.do(http.MethodPost, "/sim/collect", url.Values{"amount": {amount}, "phone": {phone}, "reference": {reference}})
}

// until fetches a page until it shows a text.
func (b *browsed) until(path, text string) page {
	b.t.Helper()
	var p page
	clocktest.Await(b.t, text+" on "+path, func() bool {
		p = b.get(path)
		return strings.Contains(p.text, text)
	})
	return p
}

// A visitor of the page of handsets can request money, approve it, and see the signed webhook and the balance.
func TestHandsets_collectionToWebhook(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	b.want(http.StatusOK, "/sim", "GHS 5,000.00", "0240000040", "0200000040", "/sim/hooks/"+demoTenant)
	for range 2 { // the person goes back and sends the same form again
		if p := b.ask("10.00", "0240000040", "handset-0000000001"); p.StatusCode != http.StatusSeeOther {
			t.Fatalf("asking: %d %s", p.StatusCode, p.text)
		}
	}
	p := b.until("/sim", "/sim/prompts/")
	prompts := promptPath.FindAllString(p.text, -1)
	if len(prompts) != 1 {
		t.Fatalf("one form makes the prompts %v", prompts)
	}
	if p := b.do(http.MethodPost, prompts[0], url.Values{"action": {"approve"}}); p.StatusCode != http.StatusSeeOther {
		t.Fatalf("approving: %d %s", p.StatusCode, p.text)
	}
	// The page reads the webhook, the balance and the handset one after the other, so it may show one change before the next.
	for _, text := range []string{"Signature valid", "GHS 5,009.90", "signed by Adom Stores", "handset-0000000001", "Approved"} {
		b.until("/sim", text)
	}
	if p := b.do(http.MethodPost, prompts[0], url.Values{"action": {"decline"}}); p.StatusCode != http.StatusSeeOther {
		t.Errorf("answering again: %d", p.StatusCode)
	}
}

func TestLivePart_sentWhenChanged(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	poll := regexp.MustCompile(`hx-get="(/sim\?[^"]*live=board[^"]*)"`)
	at := func(p page) string {
		found := poll.FindStringSubmatch(p.text)
		if found == nil {
			t.Fatalf("nothing is live: %s", p.text)
		}
		return strings.ReplaceAll(found[1], "&amp;", "&")
	}
	first := at(b.want(http.StatusOK, "/sim"))
	b.want(http.StatusNoContent, first)
	b.ask("10.00", "0240000040", "handset-0000000001")
	b.until("/sim", "/sim/prompts/")
	p := b.want(http.StatusOK, first, `id="board"`)
	if strings.Contains(p.text, "<html") {
		t.Error("a whole page for a part")
	}
	b.forget()
	b.want(http.StatusUnauthorized, first)
}

func TestHandsets_formNamesTheField(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	for _, c := range []struct{ amount, phone, says string }{
		{"a lot", "0240000040", "must be an amount"}, {"-1", "0240000040", "Amount in GHS"}, {"0.01", "0240000040", "Amount in GHS"}, {"10", "12", "must be a mobile number"},
		{`"><script>`, "0240000040", "must be an amount"},
	} {
		p := b.ask(c.amount, c.phone, "handset-0000000002")
		if p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, c.says) || strings.Contains(p.text, "<script>") {
			t.Errorf("%v: %d %s", c, p.StatusCode, p.text)
		}
	}
	if p := b.do(http.MethodPost, "/sim/collect", url.Values{"amount": {"1", "2"}}); p.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an amount twice: %d", p.StatusCode)
	}
	if p := b.do(http.MethodPost, "/sim/collect", url.Values{"amount": {strings.Repeat("1", 100_000)}}); p.StatusCode < 400 || p.StatusCode >= 500 {
		t.Errorf("a huge form: %d", p.StatusCode)
	}
}

// Any program on this machine may send a webhook here. Only a webhook that is signed with the tenant's secret is shown as
// valid.
func TestHandsets_forgedWebhook(t *testing.T) {
	t.Parallel()
	b := browse(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.base+"/sim/hooks/"+demoTenant, strings.NewReader(`{"status":"<script>success"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("webhook-id", "msg_1")
	r.Header.Set("webhook-timestamp", "1700000000")
	r.Header.Set("webhook-signature", "v1,AAAA")
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Body.Close() != nil {
		t.Fatalf("%+v, %v", answer, err)
	}
	b.signIn(b.ready.SignInURL)
	p := b.want(http.StatusOK, "/sim", "Signature not valid", "the signature is not one of Adom Stores")
	if strings.Contains(p.text, "Signature valid") || strings.Contains(p.text, "<script>success") {
		t.Errorf("a forged webhook: %s", p.text)
	}
}

// A webhook is shown to the account that signed it, whatever name its address contains.
func TestHandsets_webhookGoesToItsSigner(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	if p := b.do(http.MethodPost, "/sim/hooks/shop", url.Values{"signed": {"by nobody"}}); p.StatusCode != http.StatusOK || !strings.Contains(p.text, "not shown") {
		t.Errorf("%d %s", p.StatusCode, p.text)
	}
	b.call("payment-api/momopay", `{"amount":"2.00","network":"MTN","phone_number":"0240000001","transaction_id":"free-name-0001","callback_url":"`+b.base+`/sim/hooks/shop"}`)
	b.until("/sim", "Signature valid")
	p := b.want(http.StatusOK, "/sim", "signed by Adom Stores", "free-name-0001")
	if strings.Contains(p.text, "by nobody") {
		t.Errorf("a webhook that no account has signed is shown: %s", p.text)
	}
}

func TestHandsets_faultsAndClock(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"mtn"}, "fault": {"outage"}, "count": {"3"}})
	b.want(http.StatusOK, "/sim", "MTN: outage × 3")
	b.do(http.MethodPost, "/sim/faults/clear", nil)
	if p := b.want(http.StatusOK, "/sim"); strings.Contains(p.text, "outage × 3") {
		t.Error("the faults are still there")
	}
	for _, form := range []url.Values{{"provider": {"mtn"}, "fault": {"nonsense"}, "count": {"1"}}, {"provider": {"mtn"}, "fault": {"outage"}, "count": {"-1"}}} {
		if p := b.do(http.MethodPost, "/sim/faults", form); p.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", form, p.StatusCode)
		}
	}
	before := b.clock.Now()
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"60"}})
	if moved := b.clock.Now().Sub(before).Seconds(); moved < 60 {
		t.Errorf("the clock moved by %v s", moved)
	}
}

func TestHandsets_needInstallationRole(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.become("owner@shop.example", identity.Membership{Tenant: demoTenant, Role: roles.Owner})
	if p := b.ask("10.00", "0240000040", "handset-0000000003"); p.StatusCode != http.StatusForbidden {
		t.Errorf("a tenant's owner asks by the handsets' page: %d", p.StatusCode)
	}
}
