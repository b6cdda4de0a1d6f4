package app

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/browsertest"
	"github.com/makola/makola/internal/test/matrix"
)

// visitor is a browser that is signed in by the link of the first screen.
func visitor(t *testing.T) (*browsed, *browsertest.Tab) {
	b := browse(t)
	return b, b.tab(t, b.ready.SignInURL)
}

// tab opens a browser that is signed in by a link.
func (b *browsed) tab(t *testing.T, link string) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t, b.base)
	tab.Goto(strings.TrimPrefix(link, b.base))
	tab.Click("#sign-in")
	tab.See(".sites")
	return tab
}

var requestLink = regexp.MustCompile(`/ops/requests/[0-9a-f-]{36}`)

// widths and themes are the combinations in which every screen is checked.
var (
	widths = []int64{360, 768, 1280}
	themes = []string{"light", "dark"}
)

// screen is one page in one state.
type screen struct{ name, path string }

// furnish makes data for the screens: payments in every state, webhooks that were refused, and a campaign.
func (b *browsed) furnish() []screen {
	b.t.Helper()
	b.signIn(b.nextLink())
	app := "/app/" + demoTenant
	other := "/app/" + b.unused()
	first := []screen{{"empty home", other}, {"empty payouts", other + "/payouts"}, {"empty messages", other + "/messages"}, {"no page", "/ops/nothing"}, {"refused filter", "/ops/payments?from=yesterday"}}
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
	b.until("/ops/payments/"+lost, "/ops/payments/"+lost+"/resolve")
	failed := b.the("payout-of-november-02")
	request := b.request()
	b.holds("7000.00")
	held := b.waits("payout-of-november-03", "7500")
	campaigns, err := b.messaging.Campaigns(b.t.Context(), demoTenant, "", 1)
	if err != nil || len(campaigns) != 1 {
		b.t.Fatalf("campaigns: %v, %v", campaigns, err)
	}
	b.refusedOnce(b.ready.APIKey, "req-of-the-screens-01")
	refused := requestLink.FindString(b.get("/ops/requests").text)
	if p := b.do(http.MethodPost, "/account/factor", nil); p.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("a second factor that waits: %d", p.StatusCode)
	}
	return append(first, []screen{
		{"handsets", "/sim"}, {"overview", "/ops"}, {"payments", "/ops/payments"}, {"payment paid", "/ops/payments/" + paid}, {"payment lost", "/ops/payments/" + lost},
		{"payment failed", "/ops/payments/" + failed}, {"stuck", "/ops/stuck"}, {"accounts", "/ops/tenants"}, {"account", "/ops/tenants/" + demoTenant}, {"providers", "/ops/providers"}, {"provider", "/ops/providers/paystack"},
		{"float", "/ops/float"}, {"float compared", "/ops/float?ask=yes"}, {"float form", "/ops/float/add"}, {"bank accounts", "/ops/banks"}, {"customer funds", "/ops/funds"}, {"days", "/ops/days"}, {"a day", "/ops/days/day"}, {"a month", "/ops/days/month"}, {"journal", "/ops/journal"}, {"account codes", "/ops/journal/codes"}, {"own transfers", "/ops/banks/transfers"}, {"top-up form", "/ops/banks/top-up"}, {"credits form", "/ops/tenants/" + demoTenant + "/credits/sell"}, {"statement form", "/ops/payments/" + lost + "/resolve"},
		{"account access", "/ops/tenants/" + demoTenant + "/access"}, {"own access", app + "/access"}, {"key form", app + "/keys/new"}, {"addresses form", app + "/addresses"}, {"settings form", app + "/settings"},
		{"account form", "/ops/tenants/new"}, {"people", "/ops/people"}, {"own people", app + "/people"}, {"invitation form", "/ops/people/invite"}, {"senders", "/ops/senders"}, {"fees form", "/ops/tenants/" + demoTenant + "/fees"}, {"pause form", "/ops/providers/pause"}, {"routes", "/ops/routes"}, {"statements", "/ops/statements"}, {"statement form", "/ops/statements/new"}, {"exceptions", "/ops/exceptions"}, {"route form", "/ops/routes/set"}, {"dead letters", "/ops/jobs"}, {"transfer form", "/ops/tenants/" + demoTenant + "/transfer"}, {"debt form", "/ops/tenants/" + demoTenant + "/recover"}, {"new payout", app + "/payouts/new"}, {"checks", "/ops/checks"}, {"search", "/ops/search?q=0240000040"}, {"search nothing", "/ops/search?q=nothing-like-this"},
		{"home", app}, {"collections", app + "/collections"}, {"no match", app + "/collections?status=invalid"}, {"payouts", app + "/payouts"}, {"statement", app + "/statement"}, {"own fees", app + "/fees"}, {"webhooks", app + "/webhooks"}, {"unknown payouts", app + "/payouts?status=unknown"}, {"receipt", app + "/payments/" + paid + "/receipt"}, {"account statement", "/ops/tenants/" + demoTenant + "/statement?balance=sms"}, {"held payout", app + "/payments/" + held}, {"act of a held payout", app + "/acts/" + held}, {"all held payout", "/ops/payments/" + held}, {"own payment", app + "/payments/" + paid},
		{"all messages", "/ops/messages"}, {"all campaign", "/ops/messages/" + campaigns[0].ID}, {"messages", app + "/messages"}, {"incoming", app + "/incoming"}, {"opt-outs", app + "/opt-outs"}, {"all incoming", "/ops/incoming"}, {"campaign", app + "/messages/" + campaigns[0].ID}, {"fund", "/ops/tenants/" + demoTenant + "/fund"}, {"adjust", "/ops/tenants/" + demoTenant + "/adjust"}, {"acts", "/ops/acts"}, {"policy", "/ops/policy"}, {"audit log", "/ops/audit"}, {"requests", "/ops/requests"}, {"request", refused}, {"own requests", app + "/requests"}, {"own acts", app + "/acts"}, {"act", request}, {"sign in", "/sign-in"}, {"own account", "/account"}, {"own notices", "/account/notices"}, {"notices", "/ops/notices"}, {"second factor", "/account/factor"}, {"step-up", "/account/step-up"},
	}...)
}

// furnishMoney makes batches, a bank account with a statement and its exceptions, and more requests of one kind.
func (b *browsed) furnishMoney() []screen {
	b.t.Helper()
	ended, draft, file := b.furnishBatches()
	campaign := b.drafted()
	deposit := b.requestedByAnother("1500", "2500")[0] // deposits made before the first bank account need no bank account
	b.ordered("/ops/banks/add", "name", "gcb", "mode", "test", "bank", "GCB Bank", "number", "1011 0123 4567")
	const rows = "Date,Remarks,Debit,Credit,Balance\n23/04/2026,CHARGES,1.00,,99.00\n24/04/2026,DEPOSIT OF ADOM STORES,,2500.00,2599.00\n"
	to := b.givesStatement("bank", "gcb", rows).Header.Get("Location")
	columns := url.Values{"column_date": {"0"}, "column_text": {"1"}, "column_debit": {"2"}, "column_credit": {"3"}, "column_balance": {"4"}}
	statement := b.do(http.MethodPost, to, columns).Header.Get("Location")
	next := b.givesStatement("bank", "gib", rows).Header.Get("Location")
	if err := b.reconcile.Match(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	exception := exceptionLink.FindString(b.want(http.StatusOK, "/ops/exceptions").text)
	if statement == "" || next == "" || exception == "" {
		b.t.Fatalf("the statement %q, the next %q, the exception %q", statement, next, exception)
	}
	demo, err := b.tenants.Get(b.t.Context(), demoTenant)
	if err != nil {
		b.t.Fatal(err)
	}
	fees := "/ops/acts/" + strings.TrimPrefix(b.ordered("/ops/tenants/"+demo.ID+"/fees", "plan", "rates", "collection-all-percent", "1", "payout-bank-fixed", "8.00"), "/ops/acts/")
	id := strings.TrimPrefix(exception, "/ops/exceptions/")
	return []screen{
		{"batches", batchesPage}, {"batch ended", batchesPage + "/" + ended}, {"batch rows", batchesPage + "/" + ended + "/rows"}, {"batch draft", batchesPage + "/" + draft}, {"batch columns", "/app/" + demoTenant + "/batch-files/" + file}, {"new batch", batchesPage + "/new"},
		{"bank account", "/ops/banks"}, {"bank statement", statement}, {"statement columns", next}, {"all statements", "/ops/statements"}, {"all exceptions", "/ops/exceptions"}, {"exception", exception},
		{"match form", "/ops/exceptions/match?exception=" + id}, {"adopt form", "/ops/exceptions/adopt?exception=" + id}, {"write-off form", "/ops/exceptions/write-off?exception=" + id}, {"fees approval", fees}, {"like requests", "/ops/acts/alike?kind=wallet.fund&tenant=" + demo.ID}, {"deposit to approve", "/ops/acts/" + deposit},
		{"new campaign", newCampaignPage}, {"campaign draft", campaign}, {"campaign text", campaign + "/text"},
		{"default fees", "/ops/fees"}, {"today", "/ops/days/day?mode=test&day=" + b.clock.Now().UTC().Format(time.DateOnly)}, {"own policy", "/app/" + demoTenant + "/policy"},
	}
}

var exceptionLink = regexp.MustCompile(`/ops/exceptions/[0-9a-f-]{36}`)

// unused makes an account with a long name and no data.
func (b *browsed) unused() string {
	b.t.Helper()
	var t tenant.Tenant
	err := b.db.Write(b.t.Context(), func(tx *db.Tx) (err error) {
		t, err = b.tenants.Create(tx, tenant.Tenant{ID: uuid.Must(uuid.NewV7()).String(), Mode: tenant.Test, Name: "Nana Ama Serwaa Akoto-Boateng & Daughters Trading Enterprise of Kumasi Central Market"})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return t.ID
}

// act requests a deposit to the demo account's wallet, and returns the page of the request.
func (b *browsed) request() string {
	b.t.Helper()
	p := b.do(http.MethodPost, "/ops/tenants/"+demoTenant+"/fund/confirm", url.Values{"id": {uuid.Must(uuid.NewV7()).String()}, "amount": {"92500.00"}, "reason": {"Paid by bank, slip 4711"}})
	if p.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("an act: %d %s", p.StatusCode, p.text)
	}
	return p.Header.Get("Location")
}

// the returns the payment with a reference.
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

// nextLink returns a new sign-in link of the developer.
func (b *browsed) nextLink() string {
	b.t.Helper()
	link, err := b.link(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return link
}

// twice returns the access keys that two links of a page share.
const twice = `[...document.querySelectorAll("[data-go]")].map(e => e.dataset.go).filter((key, at, all) => all.indexOf(key) !== at)`

// album checks screens. If MAKOLA_SCREENS names a folder, it also stores pictures of them there.
type album struct {
	t      *testing.T
	tab    *browsertest.Tab
	folder string
	loads  bool // the pages look at their width when they are loaded, so each width loads them
	sheet  strings.Builder
}

func newAlbum(t *testing.T, tab *browsertest.Tab) *album {
	return &album{t: t, tab: tab, folder: os.Getenv("MAKOLA_SCREENS")}
}

// look holds screens to the rules. In the gate a screen is loaded once, in the narrowest width, and then becomes wider. The whole
// audit runs once, the colours once in the other theme and width, and the cheap checks in every width. make deep and make screens
// load each width and audit it in each theme.
func (a *album) look(screens ...screen) {
	a.t.Helper()
	whole := a.folder != "" || matrix.Whole()
	for _, s := range screens {
		fmt.Fprintf(&a.sheet, "<h2>%s</h2>\n", s.name)
		for _, width := range widths {
			a.tab.Look(width, themes[0])
			if whole || width == widths[0] || a.loads {
				a.tab.Goto(s.path)
			}
			a.plain(fmt.Sprintf("%s-%d", s.name, width))
			switch widest, narrowest := width == widths[len(widths)-1], width == widths[0]; {
			case whole:
				for _, theme := range themes {
					a.audit(s.name, width, theme, theme == themes[0])
				}
			case widest:
				a.audit(s.name, width, themes[0], true)
			case narrowest:
				a.audit(s.name, width, themes[1], false)
			}
		}
	}
}

// plain runs the cheap checks: each access key leads to one place, and the page does not scroll sideways.
func (a *album) plain(what string) {
	a.t.Helper()
	var keys []string
	if a.tab.Run(chromedp.Evaluate(twice, &keys)); len(keys) > 0 {
		a.t.Errorf("%s: keys that lead to two places: %v", what, keys)
	}
	a.tab.Fits(what)
}

// audit runs axe-core on the page in a theme, with all rules or only the rules about colours.
func (a *album) audit(name string, width int64, theme string, whole bool) {
	a.t.Helper()
	a.tab.Look(width, theme)
	what := fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(name, " ", "-"), width, theme)
	if whole {
		a.tab.Audit(what)
	} else {
		a.tab.AuditColours(what)
	}
	if a.folder != "" {
		a.tab.Picture(filepath.Join(a.folder, what+".png"))
		fmt.Fprintf(&a.sheet, "<img src=%q alt=%q width=%d>\n", what+".png", what, width/2)
	}
}

// close writes the sheet that shows the pictures side by side.
func (a *album) close(name string) {
	a.t.Helper()
	if a.folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(a.folder, name), []byte("<!doctype html><title>Screens</title>\n"+a.sheet.String()), 0o644); err != nil {
		a.t.Fatal(err)
	}
}

// Every screen in both themes and three widths has no serious violation of axe-core, no content from other hosts, and no inline
// script. If MAKOLA_SCREENS names a folder, the test stores pictures there, with a sheet (index.html) that shows them side by side.
func TestBrowser_everyScreen(t *testing.T) { // not in parallel, because other tests delay the browser
	b, tab := visitor(t)
	a := newAlbum(t, tab)
	a.look(screen{"empty overview", "/ops"}, screen{"empty payments", "/ops/payments"}, screen{"empty all messages", "/ops/messages"}, screen{"empty handsets", "/sim"})
	screens := append(b.furnish(), b.furnishMoney()...)
	if a.folder == "" {
		b.lookInTwo(screens)
		return
	}
	a.look(screens...)
	tab.Look(1280, "light")
	tab.Run(chromedp.EmulateViewport(1280, 820)) // pictures of less than 150 KB
	tab.Goto("/sim")
	tab.View(filepath.Join(a.folder, "readme-handsets.png"))
	a.close("index.html")
}

// lookInTwo checks the screens in two browsers at once, each browser every other screen.
func (b *browsed) lookInTwo(screens []screen) {
	const browsers = 2
	for first := range browsers {
		b.t.Run(fmt.Sprint("browser ", first+1), func(t *testing.T) {
			a := newAlbum(t, b.tab(t, b.nextLink())) // one after the other, because a new link ends the previous one
			t.Parallel()
			for i := first; i < len(screens); i += browsers {
				a.look(screens[i])
			}
		})
	}
}

// The guides follow the same rules.
func TestBrowser_everyGuide(t *testing.T) { // not in parallel, because other tests delay the browser
	b := browse(t)
	a := newAlbum(t, browsertest.Open(t, b.base))
	a.loads = true
	a.look(screen{"guide webhooks", "/docs/webhooks"}, screen{"guide error", "/docs/errors/duplicate_reference"}, screen{"no guide", "/docs/nothing"}, screen{"reference", "/docs/reference"}, screen{"guide going live", "/docs/going-live"})
	if a.folder != "" { // these pages consist of the same parts
		a.look(screen{"guide quickstart", "/docs"}, screen{"guide testing", "/docs/testing"}, screen{"guide errors", "/docs/errors"})
	}
	a.close("guides.html")
}
