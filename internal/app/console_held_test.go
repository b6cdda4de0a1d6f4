package app

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/identitytest"
)

// holds makes payouts of the demo account, from an amount on, await approval by a second person of the account, who is a signatory.
func (b *browsed) holds(from string) identitytest.One {
	b.t.Helper()
	signatory := b.enlists("signatory-from-"+from+"@demo.example", demoTenant, roles.Signatory)
	b.ordered("/app/"+demoTenant+"/policy", "kind", "payout.send", "amount", from, "approvers", "1")
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"2"}})
	return signatory
}

// waits requests by key a payout that awaits approval, and returns its id.
func (b *browsed) waits(reference, amount string) string {
	b.t.Helper()
	b.call("payment-api/send/mobilemoney", `{"amount":"`+amount+`","channel":"MTN","account_number":"0240000051","client_reference":"`+reference+`","callback_url":"`+b.base+`/sim/hooks/`+demoTenant+`"}`)
	return b.the(reference)
}

// asked returns the status of a payout from the interface, with the account's key.
func (b *browsed) asked(reference string) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.ready.APIURL+"/payment-api/checkstatus/"+reference, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("x-api-key", b.ready.APIKey)
	return b.read(r).text
}

// A payout by a key and a payout from a page await approval, and their pages show this. They are sent after another person of the
// account approves them.
func TestHeldPayout_needsAnotherPerson(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		app := "/app/" + demoTenant
		signatory := b.holds("5000.00")
		shown, p := b.payForm()
		if !strings.Contains(p.text, "Another person of the account must approve it") {
			t.Errorf("the page that asks does not say that it will wait: %s", p.text)
		}
		byPage := b.do(http.MethodPost, payoutPage+"/confirm", shown).Header.Get("Location")
		b.want(http.StatusOK, byPage, "Awaiting approval", "Nothing was sent", app+"/acts/"+strings.TrimPrefix(byPage, app+"/payments/"))
		good, bad := b.waits("held-payout-0001", "5000"), b.waits("held-payout-0002", "5000.01")
		small := b.waits("held-payout-0003", "4999.99")
		b.want(http.StatusOK, "/ops/payments/"+good, "Awaiting approval", "Nothing was sent")
		b.want(http.StatusOK, app+"/payouts", "Awaiting approval")
		b.want(http.StatusOK, app+"/acts", "Send test GHS 5,000.00 to MTN 233****0051")
		for _, reference := range []string{"held-payout-0001", "held-payout-0002"} {
			if text := b.asked(reference); !strings.Contains(text, `"status":"pending"`) {
				t.Errorf("%s: %s", reference, text)
			}
		}
		if pay, err := b.payments.Find(t.Context(), small); err != nil || pay.AwaitsApproval() {
			t.Errorf("below the line: %+v, %v", pay, err)
		}
		own := b.want(http.StatusOK, strings.Replace(byPage, "/payments/", "/acts/", 1), "Withdraw request")
		if strings.Contains(own.text, "Approve and apply") {
			t.Error("who asked is offered to approve")
		}
		name := b.http.Jar.Cookies(mustParse(t, b.base))[0].Name
		b.http.Jar = held{name: {Name: name, Value: signatory.Token}}
		for _, id := range []string{good, strings.TrimPrefix(byPage, app+"/payments/")} {
			request := app + "/acts/" + id
			b.post(http.StatusSeeOther, request+"/approve", "digest", b.want(http.StatusOK, request, "Approve and apply", app+"/payments/"+id).hidden(t, "digest"))
			b.until(app+"/payments/"+id, "Success")
		}
		request := app + "/acts/" + bad
		b.post(http.StatusSeeOther, request+"/reject", "digest", b.want(http.StatusOK, request).hidden(t, "digest"), "note", "Not agreed with the supplier")
		b.want(http.StatusOK, app+"/payments/"+bad, "Failed", "did not approve")
		if text := b.asked("held-payout-0002"); !strings.Contains(text, `"status":"failed"`) || !strings.Contains(text, `"not_approved"`) {
			t.Errorf("the rejected one: %s", text)
		}
		b.forget()
		b.signIn(b.nextLink())
		b.until("/ops/payments/"+bad, "Webhook delivered")
		b.until("/ops/payments/"+good, "Webhook delivered")
	})
}

// The request for a payout by key shows the address of the client. It shows the payee's name to people who may approve it.
func TestHeldPayout_showsOriginAndPayee(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		b.holds("5000.00")
		const name = "Efua Sutherland"
		hook := `,"callback_url":"` + b.base + `/sim/hooks/` + demoTenant + `","account_name":"` + name + `"}`
		b.call("payment-api/send/mobilemoney", `{"amount":"5000","channel":"MTN","account_number":"0240000051","client_reference":"held-origin-0001"`+hook)
		b.call("payment-api/send/bank", `{"amount":"5000","bank_id":"`+b.ready.BankID+`","account_number":"0011223344556","client_reference":"held-origin-0002"`+hook)
		for _, reference := range []string{"held-origin-0001", "held-origin-0002"} {
			request := "/app/" + demoTenant + "/acts/" + b.the(reference)
			if p := b.want(http.StatusOK, request, "Awaiting approval", "Send test GHS 5,000.00 to "); !givenFrom.MatchString(p.text) || !strings.Contains(p.text, "Name of the payee") {
				t.Errorf("%s: %s", reference, p.text)
			}
		}
	})
}

// givenFrom matches the place of a change request that was made from this machine.
var givenFrom = regexp.MustCompile(`<dt>Requested from</dt>\s*<dd>\s*127\.0\.0\.1\s*</dd>`)
