package app

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A part of a page updates without a click, and shows when the server does not answer.
func TestBrowser_livePart(t *testing.T) {
	t.Parallel()
	b, tab := visitor(t)
	b.signIn(b.nextLink())
	tab.Goto("/sim")
	b.ask("12.50", "0240000040", "handset-0000000001")
	tab.Click("#phone-0240000040 .prompt button[value=decline]")
	tab.Reads("#phone-0240000040", "Declined")
	tab.Goto("/ops/payments")
	b.ask("13.50", "0240000001", "handset-0000000002")
	tab.Reads("#newer", "Show 1 new")
	tab.Click("#newer a")
	tab.Reads("main table", "handset-0000000002")
	id := b.the("handset-0000000001")
	tab.Goto("/ops/payments/" + id)
	tab.Reads("#story", "Declined")
	if err := b.Stop(b.t.Context()); err != nil {
		t.Fatal(err)
	}
	tab.See("#lost:not([hidden])")
	tab.Forgive() // requests failed while there was no server
}

func TestBrowser_keyboard(t *testing.T) {
	t.Parallel()
	b, tab := visitor(t)
	b.signIn(b.nextLink())
	b.ask("12.50", "0240000001", "handset-0000000001")
	keys := func(text string) {
		tab.Ready() // waits until the page's script handles the events
		tab.Run(chromedp.KeyEvent(text))
	}
	tab.Goto("/ops")
	keys("g")
	keys("p")
	tab.Reads("h1", "Payments")
	keys("j")
	tab.See("tr.at")
	keys(kb.Enter)
	tab.See("#story")
	keys("?")
	tab.See("dialog[open]")
	tab.Click("#keys-on") // off
	tab.Click("dialog [data-close]")
	keys("/")
	var focused string
	tab.Run(chromedp.Evaluate("document.activeElement.id", &focused))
	if focused == "search" {
		t.Error("keys that were switched off act")
	}
	keys("?")
	var listed bool
	tab.Run(chromedp.Evaluate("document.querySelector('dialog').open", &listed))
	if listed {
		t.Error("keys that were switched off open their list")
	}
	tab.Click("[data-keys]")
	tab.Click("#keys-on")
	tab.Click("dialog [data-close]")
	keys("/")
	tab.Run(chromedp.Evaluate("document.activeElement.id", &focused))
	if focused != "search" {
		t.Errorf("the slash leads to %q", focused)
	}
	keys("handset-0000000001")
	keys(kb.Enter)
	tab.Reads("h1", "handset-0000000001")
}

// Every list begins on the first screen of a phone. Its filters are folded, with the number of those that are applied, and open by a
// click. A wide screen shows them at once.
func TestBrowser_listsOnAPhone(t *testing.T) {
	t.Parallel()
	b, tab := visitor(t)
	b.signIn(b.nextLink())
	b.ask("12.50", "0240000040", "handset-0000000001")
	app := "/app/" + demoTenant
	const screen = 640 // of a small phone
	const begins = `(e => e ? e.getBoundingClientRect().top : 10000)(document.querySelector("main tbody tr, main .empty"))`
	tab.Look(360, "light")
	for _, path := range []string{"/ops/payments", "/ops/payments?status=failed", "/ops/exceptions", "/ops/journal", "/ops/journal/codes", "/ops/audit", "/ops/requests", "/ops/stuck", "/ops/acts", "/ops/acts?state=failed",
		"/ops/messages", "/ops/statements", "/ops/days", "/ops/tenants", "/ops/people", "/ops/senders", app + "/collections", app + "/payouts", app + "/airtime", app + "/requests", app + "/messages", app + "/webhooks", app + "/acts"} {
		tab.Goto(path)
		var top float64
		if tab.Run(chromedp.Evaluate(begins, &top)); top >= screen {
			t.Errorf("%s: the list begins at %.0f of %d pixels", path, top, screen)
		}
	}
	const visible = `document.querySelector("main .filters [name=status]").checkVisibility({contentVisibilityAuto: true})`
	var shown bool
	tab.Goto("/ops/payments?status=failed&kind=payout")
	tab.Reads("main details.narrowing summary", "Filters (2 applied)")
	if tab.Run(chromedp.Evaluate(visible, &shown)); shown {
		t.Error("a phone shows the filters unasked")
	}
	tab.Click("main details.narrowing summary")
	tab.See("main details.narrowing[open] [name=status]")
	tab.Look(768, "light")
	tab.Goto("/ops/payments")
	if tab.Run(chromedp.Evaluate(visible, &shown)); !shown {
		t.Error("a wide screen folds the filters")
	}
}

// A visitor's choice of colours holds over all pages, also where no script runs.
func TestBrowser_theme(t *testing.T) {
	t.Parallel()
	_, tab := visitor(t)
	tab.Goto("/ops")
	tab.Ready()
	tab.Run(chromedp.Evaluate(`theme.value = "dark"; theme.dispatchEvent(new Event("change", {bubbles: true}))`, nil))
	tab.See(`html[data-theme="dark"]`)
	var colour string
	tab.Run(chromedp.Evaluate("getComputedStyle(document.documentElement).backgroundColor", &colour))
	if colour != "rgb(15, 19, 25)" {
		t.Errorf("dark is %s", colour)
	}
}

// A double click sends one request. If the person signed out in another tab, this tab shows it.
func TestBrowser_doubleClickAndEndedSession(t *testing.T) {
	t.Parallel()
	b, tab := visitor(t)
	tab.Goto("/sim")
	tab.Run(chromedp.DoubleClick("#collect button", chromedp.ByQuery))
	tab.See("#phone-0240000040 .prompt")
	b.signIn(b.nextLink())
	if prompts := promptPath.FindAllString(b.get("/sim").text, -1); len(prompts) != 1 {
		t.Errorf("a double click asks %d times", len(prompts))
	}
	second, cancel := chromedp.NewContext(tab.Context())
	defer cancel()
	if err := chromedp.Run(second, chromedp.Navigate(b.base+"/ops"), chromedp.Click(".who button.quiet", chromedp.ByQuery),
		chromedp.WaitVisible(`form[action="/first/again"]`, chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	tab.Goto("/sim")
	tab.Reads("h1", "Sign in")
}
