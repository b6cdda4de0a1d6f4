package app

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/browsertest"
)

// searches types a text into the search of the page.
func searches(tab *browsertest.Tab, text string) {
	tab.Fill("#search", text)
	tab.Run(chromedp.Evaluate(`document.querySelector("form.search").requestSubmit()`, nil))
}

// A customer calls a support agent because money left the wallet and nothing arrived. The agent finds the payment by its
// number, sees where the money is, takes the case, writes a note and signs out. A colleague continues and queries the provider,
// which has paid. The colleague finds the payment by the network's id and by its reference, and prints the receipt.
func TestBrowser_dayOfASupportAgent(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	first, second := b.joins("efua@example.com", roles.Support), b.joins("yaw@example.com", roles.Support)
	lost := b.loses("payout-lost-00001")
	page := "/ops/payments/" + lost

	tab := b.enters(t, first)
	tab.Goto("/ops")
	searches(tab, "0200000001")
	tab.Reads("main h1", "Payout")
	tab.Reads("main", "GHS 252.50 left the wallet and is on hold.")
	tab.Reads("main", "Outcome unknown")
	tab.Click(`main form[action="` + page + `/take"] button`)
	tab.Reads("#notes", "Assigned to")
	tab.Fill("#note [name=note]", "The merchant called. Hubtel answers by noon.")
	tab.Run(chromedp.Evaluate("note.requestSubmit()", nil))
	tab.Reads("#notes", "Hubtel answers by noon")
	tab.Click(`main form[action="` + page + `/release"] button`)
	tab.See(`main form[action="` + page + `/take"] button`)
	tab.Click(`.who form[action="/sign-out"] button`)
	tab.Reads("h1", "Sign in")
	tab.Goto(page)
	tab.Reads("h1", "Sign in")

	tab = b.enters(t, second)
	tab.Goto("/ops/stuck")
	tab.Reads("main tbody", "Hubtel answers by noon")
	tab.Click(`main form[action="` + page + `/take"] button`)
	tab.See(`main form[action="` + page + `/release"] button`)
	if _, owner, err := b.payments.Notes(t.Context(), lost); err != nil || owner.Person != second.Person.ID {
		t.Errorf("the case belongs to %+v, %v", owner, err)
	}
	tab.Click(`main a[href="` + page + `"]`)
	tab.See(`main form[action="` + page + `/ask"] button`)
	b.do(http.MethodPost, "/sim/faults/clear", nil)
	tab.Click(`main form[action="` + page + `/ask"] button`)
	tab.Reads("main", "GHS 250.00 was paid to the recipient")
	p, err := b.payments.Find(t.Context(), lost)
	if err != nil || p.UpstreamID == "" {
		t.Fatalf("the payment has no id of the network: %+v, %v", p, err)
	}
	for _, text := range []string{p.UpstreamID, "payout-lost-00001"} {
		tab.Goto("/ops")
		searches(tab, text)
		tab.Reads("main h1", "Payout")
	}
	tab.Click(`main a[href="` + page + `/receipt"]`)
	tab.Reads("main h1", "Receipt")
	tab.Reads("main", "payout-lost-00001")
	tab.Run(emulation.SetEmulatedMedia().WithMedia("print"))
	tab.See("main .facts")
	var shown bool
	if tab.Run(chromedp.Evaluate(`document.querySelector(".bar").checkVisibility() || document.querySelector(".nav").checkVisibility()`, &shown)); shown {
		t.Error("the printed receipt has the navigation of the page")
	}
	tab.Run(emulation.SetEmulatedMedia().WithMedia("screen"))
	tab.Click(`.who form[action="/sign-out"] button`)
	tab.Reads("h1", "Sign in")
	tab.Obeys()
}
