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

// A visitor's choice of colours applies to all pages, even without scripts.
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
