package app

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/app/browsertest"
	"github.com/makola/makola/internal/payments/book"
)

// visitor is a browser that is signed in by the link of the first screen.
func visitor(t *testing.T) (*browsed, *browsertest.Tab) {
	b := browse(t)
	tab := browsertest.Open(t, b.base)
	tab.Goto(strings.TrimPrefix(b.ready.SignInURL, b.base))
	tab.Click("#sign-in")
	tab.See(".sites")
	return b, tab
}

// widths and themes are those that every screen is looked at in.
var (
	widths = []int64{360, 768, 1280}
	themes = []string{"light", "dark"}
)

// screen is one page in one state.
type screen struct{ name, path string }

// furnish makes something to look at: payments in every state, webhooks that were refused, a campaign.
func (b *browsed) furnish() []screen {
	b.t.Helper()
	b.signIn(b.nextLink())
	app := "/app/" + demoTenant
	empty := []screen{{"empty payouts", app + "/payouts"}, {"no page", "/ops/nothing"}, {"refused filter", "/ops/payments?from=yesterday"}}
	b.ask("12.50", "0240000040", "handset-0000000001")
	p := b.until("/sim", "/sim/prompts/")
	b.do(http.MethodPost, promptPath.FindString(p.text), url.Values{"action": {"approve"}})
	b.until("/sim", "Signature valid")
	paid := b.the("handset-0000000001")
	b.ask("4900.00", "0240000040", "handset-0000000003")
	b.ask("40.00", "0200000040", "handset-0000000002")
	b.until("/sim", "/sim/prompts/0200000040")
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"answer_lost"}, "count": {"1"}})
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"status_not_found"}, "count": {"1000"}})
	b.call("payment-api/send/mobilemoney", `{"amount":"250.00","channel":"TELECEL","account_number":"0200000001","client_reference":"payout-of-november-01","account_name":"Nana Ama Serwaa Akoto-Boateng of Kumasi Central Market"}`)
	b.call("payment-api/send/mobilemoney", `{"amount":"75.40","channel":"MTN","account_number":"0240000024","client_reference":"payout-of-november-02","callback_url":"`+b.base+`/sim/hooks/`+demoTenant+`"}`)
	b.call("sms-api/send", `{"sender_id":"`+b.ready.SenderID+`","message":"Akwaaba! Our shop is open until eight.","recipients":["0240000001","0200000024"]}`)
	lost := b.the("payout-of-november-01")
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"120"}})
	b.until("/ops/payments/"+lost, "Outcome unknown")
	failed := b.the("payout-of-november-02")
	campaigns, err := b.messaging.Campaigns(b.t.Context(), demoTenant, "", 1)
	if err != nil || len(campaigns) != 1 {
		b.t.Fatalf("campaigns: %v, %v", campaigns, err)
	}
	if p := b.do(http.MethodPost, "/account/factor", nil); p.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("a second factor that waits: %d", p.StatusCode)
	}
	return append(empty, []screen{
		{"handsets", "/sim"}, {"overview", "/ops"}, {"payments", "/ops/payments"}, {"payment paid", "/ops/payments/" + paid}, {"payment lost", "/ops/payments/" + lost},
		{"payment failed", "/ops/payments/" + failed}, {"stuck", "/ops/stuck"}, {"accounts", "/ops/tenants"}, {"account", "/ops/tenants/" + demoTenant}, {"providers", "/ops/providers"},
		{"float", "/ops/float"}, {"checks", "/ops/checks"}, {"search", "/ops/search?q=0240000040"}, {"search nothing", "/ops/search?q=nothing-like-this"},
		{"home", app}, {"collections", app + "/collections"}, {"no match", app + "/collections?status=invalid"}, {"payouts", app + "/payouts"}, {"own payment", app + "/payments/" + paid},
		{"messages", app + "/messages"}, {"campaign", app + "/messages/" + campaigns[0].ID}, {"fund", "/ops/tenants/" + demoTenant + "/fund"}, {"adjust", "/ops/tenants/" + demoTenant + "/adjust"}, {"acts", "/ops/acts"}, {"policy", "/ops/policy"}, {"audit log", "/ops/audit"}, {"act", b.act()}, {"sign in", "/sign-in"}, {"own account", "/account"}, {"second factor", "/account/factor"}, {"step-up", "/account/step-up"},
	}...)
}

// act puts money into the demo account's wallet, and gives the page of the act.
func (b *browsed) act() string {
	b.t.Helper()
	p := b.do(http.MethodPost, "/ops/tenants/"+demoTenant+"/fund/confirm", url.Values{"id": {uuid.Must(uuid.NewV7()).String()}, "amount": {"12500.00"}, "reason": {"Paid by bank, slip 4711"}})
	if p.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("an act: %d %s", p.StatusCode, p.text)
	}
	return p.Header.Get("Location")
}

// the finds a payment by its reference.
func (b *browsed) the(reference string) string {
	b.t.Helper()
	found, err := b.payments.Search(b.t.Context(), book.Search{Text: reference, Limit: 2})
	if err != nil || len(found.Payments) != 1 {
		b.t.Fatalf("%s: %v, %v", reference, found, err)
	}
	return found.Payments[0].ID
}

// call sends a request of the demo account.
func (b *browsed) call(path, body string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.ready.APIURL+"/"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("x-api-key", b.ready.APIKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
}

// screenPath is where a screen is found.
func screenPath(screens []screen, name string) string {
	return screens[slices.IndexFunc(screens, func(s screen) bool { return s.name == name })].path
}

// nextLink is another sign-in link of the developer's.
func (b *browsed) nextLink() string {
	b.t.Helper()
	link, err := b.link(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return link
}

// Every screen in both themes and three widths: nothing serious for axe-core, nothing from elsewhere, no inline script.
// MAKOLA_SCREENS names a folder for pictures of all of them, with a sheet (index.html) that shows them side by side.
func TestInABrowserEveryScreenIsFit(t *testing.T) {
	b, tab := visitor(t)
	folder := os.Getenv("MAKOLA_SCREENS")
	var sheet strings.Builder
	screens := b.furnish()
	for _, s := range screens {
		fmt.Fprintf(&sheet, "<h2>%s</h2>\n", s.name)
		for _, width := range widths {
			tab.Look(width, themes[0])
			tab.Goto(s.path)
			for _, theme := range themes {
				tab.Look(width, theme)
				what := fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(s.name, " ", "-"), width, theme)
				tab.Audit(what)
				if folder != "" {
					tab.Picture(filepath.Join(folder, what+".png"))
					fmt.Fprintf(&sheet, "<img src=%q alt=%q width=%d>\n", what+".png", what, width/2)
				}
			}
		}
	}
	if folder != "" {
		tab.Look(1280, "light")
		for name, path := range map[string]string{"payment": screenPath(screens, "payment lost"), "handsets": "/sim"} {
			tab.Goto(path)
			tab.View(filepath.Join(folder, "readme-"+name+".png"))
		}
		if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte("<!doctype html><title>Screens</title>\n"+sheet.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
