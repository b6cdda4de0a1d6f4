package app

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/identitytest"
)

var payoutPage = "/app/" + demoTenant + "/payouts/new"

// payForm fills in the form and returns the form of the confirmation page.
func (b *browsed) payForm(fields ...string) (url.Values, page) {
	b.t.Helper()
	form := url.Values{"token": {b.want(http.StatusOK, payoutPage).hidden(b.t, "token")}, "channel": {"MTN"}, "account_number": {"0240000001"}, "amount": {"6000"}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.confirming(form)
}

func (b *browsed) confirming(form url.Values) (url.Values, page) {
	b.t.Helper()
	p := b.do(http.MethodPost, payoutPage, form)
	if p.StatusCode != http.StatusOK {
		b.t.Fatalf("the form answers %d %s %s", p.StatusCode, p.Header.Get("Location"), p.text)
	}
	shown := url.Values{}
	for _, name := range []string{"token", "channel", "account_number", "amount", "name", "fee", "shown"} {
		shown.Set(name, p.hidden(b.t, name))
	}
	return shown, p
}

// paidOut returns the demo tenant's payouts.
func (b *browsed) paidOut() []book.Payment {
	b.t.Helper()
	found, err := b.payments.History(b.t.Context(), demoTenant, book.Filter{Kind: book.KindPayout, Page: 1, Size: 100})
	if err != nil {
		b.t.Fatal(err)
	}
	return found.Rows
}

// eachPaying runs a test on a server of each engine, with the developer signed in.
func eachPaying(t *testing.T, fn func(t *testing.T, b *browsed)) {
	eachCrowd(t, func(t *testing.T, b *browsed) {
		b.forget()
		b.signIn(b.nextLink())
		fn(t, b)
	})
}

func TestPayoutForm_concurrentConfirmsPayOnce(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		before := len(b.paidOut())
		shown, p := b.payForm()
		for _, text := range []string{"GHS 6,000.00", "six thousand cedis", "Fee", "Total", "Wallet balance after", "A new payee", "Registered name"} {
			if !strings.Contains(p.text, text) {
				t.Errorf("the page that asks lacks %q: %s", text, p.text)
			}
		}
		var all sync.WaitGroup
		places := make([]string, 8)
		for n := range places {
			all.Go(func() {
				p := b.do(http.MethodPost, payoutPage+"/confirm", shown)
				if places[n] = p.Header.Get("Location"); places[n] == "" {
					t.Errorf("it answers %d %s", p.StatusCode, p.text)
				}
			})
		}
		all.Wait()
		rows := b.paidOut()
		if len(rows) != before+1 {
			t.Fatalf("%d payouts were made", len(rows)-before)
		}
		want := "/app/" + demoTenant + "/payments/" + rows[0].ID
		if slices.ContainsFunc(places, func(p string) bool { return p != want }) {
			t.Errorf("they lead to %q, not to %s", places, want)
		}
		if rows[0].Amount != 600_000 || rows[0].Account != "233240000001" {
			t.Errorf("it is %+v", rows[0])
		}
		b.want(http.StatusOK, want, "6,000.00")

		// the person goes back and loads both pages again
		for _, path := range []string{payoutPage, payoutPage + "/confirm"} {
			if to := b.do(http.MethodPost, path, shown).Header.Get("Location"); to != want {
				t.Errorf("%s sent again leads to %q", path, to)
			}
		}
		changed := url.Values{"token": shown["token"], "channel": {"MTN"}, "account_number": {"0240000001"}, "amount": {"7"}}
		if to := b.do(http.MethodPost, payoutPage, changed).Header.Get("Location"); to != want {
			t.Errorf("the form of a payout that is sent, changed, leads to %q", to)
		}
		if _, p := b.payForm("name", "Somebody Else"); !strings.Contains(p.text, "Check that this is not a repetition.") || !strings.Contains(p.text, "The name differs") || strings.Contains(p.text, "A new payee") {
			t.Errorf("the same once more is not warned of: %s", p.text)
		}
		if n := len(b.paidOut()); n != before+1 {
			t.Errorf("%d payouts in the end", n-before)
		}
		entries, err := b.audit.List(t.Context(), audit.Filter{Tenant: demoTenant, Action: "payout.send"})
		if err != nil || len(entries) != 1 || entries[0].Actor != developerEmail || entries[0].Person == "" || entries[0].Subject != rows[0].ID {
			t.Fatalf("the audit log has %+v, %v", entries, err)
		}
		// The payee's name and number are only in the payment's row, because entries of the audit log cannot be erased.
		if written := fmt.Sprintf("%s", entries[0].Details); shown.Get("name") == "" || strings.Contains(written, shown.Get("name")) || strings.Contains(written, rows[0].Account) {
			t.Errorf("the audit log has of %q, %s: %s", shown.Get("name"), rows[0].Account, written)
		}
	})
}

func TestPayoutForm_boundToPersonAndTenant(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		before := len(b.paidOut())
		shown, _ := b.payForm()
		refused := func(why string, path string, form url.Values) {
			t.Helper()
			if p := b.do(http.MethodPost, path, form); p.StatusCode != http.StatusGone {
				t.Errorf("%s: %d %s", why, p.StatusCode, p.Header.Get("Location"))
			}
		}
		for name := range shown {
			for _, value := range []string{"", "x", shown.Get(name) + "0"} {
				changed := url.Values{}
				for other, values := range shown {
					changed[other] = values
				}
				changed[name] = []string{value}
				refused(name+" was changed to "+value, payoutPage+"/confirm", changed)
			}
		}
		b.become("finance@demo.example", identity.Membership{Tenant: demoTenant, Role: roles.Finance})
		refused("another person's", payoutPage, shown)
		refused("another person's", payoutPage+"/confirm", shown)
		const other = "11111111-1111-7111-8111-111111111111"
		b.become("both@demo.example", identity.Membership{Tenant: demoTenant, Role: roles.Owner}, identity.Membership{Tenant: other, Role: roles.Owner})
		own, _ := b.payForm()
		refused("another tenant's", "/app/"+other+"/payouts/new/confirm", own)
		b.forget()
		b.signIn(b.nextLink())
		for range 6 { // a session of an operator ends after 15 minutes without use
			b.clock.Advance(10 * time.Minute)
			b.want(http.StatusOK, payoutPage)
		}
		refused("an hour old", payoutPage+"/confirm", shown)
		refused("an hour old", payoutPage, shown)
		if n := len(b.paidOut()); n != before {
			t.Errorf("%d payouts were made", n-before)
		}
	})
}

func TestPayoutForm_showsErrors(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		before := len(b.paidOut())
		for want, fields := range map[string][]string{
			"must be at least 0.50":      {"amount", "0.49"},
			"such as 1250.00":            {"amount", "much"},
			"must be at most":            {"amount", "99999999"},
			"must be one of the options": {"channel", "NOKIA"},
			"is not in the list of bank": {"channel", "bank:00000000-0000-4000-8000-000000000001", "account_number", "0011223344556"},
			"Ghanaian mobile number":     {"account_number", "12"},
		} {
			form := url.Values{"token": {b.want(http.StatusOK, payoutPage).hidden(t, "token")}, "channel": {"MTN"}, "account_number": {"0240000001"}, "amount": {"6"}}
			for i := 0; i < len(fields); i += 2 {
				form.Set(fields[i], fields[i+1])
			}
			if p := b.do(http.MethodPost, payoutPage, form); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, want) {
				t.Errorf("%v: %d lacks %q: %s", fields, p.StatusCode, want, p.text)
			}
		}
		if n := len(b.paidOut()); n != before {
			t.Errorf("%d payouts were made", n-before)
		}
		const poor = "11111111-1111-7111-8111-111111111111" // the other account, whose wallet is empty
		b.become("owner@poor.example", identity.Membership{Tenant: poor, Role: roles.Owner})
		path := "/app/" + poor + "/payouts/new"
		form := url.Values{"token": {b.want(http.StatusOK, path).hidden(t, "token")}, "channel": {"MTN"}, "account_number": {"0240000001"}, "amount": {"6"}}
		if p := b.do(http.MethodPost, path, form); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "is more than the wallet balance") {
			t.Errorf("an empty wallet: %d %s", p.StatusCode, p.text)
		}
	})
}

// After a payout that the provider refuses at once, the person sees its page with the refusal. The money is back in the wallet.
func TestPayoutForm_bankAndRefused(t *testing.T) {
	eachPaying(t, func(t *testing.T, b *browsed) {
		shown, p := b.payForm("channel", "bank:"+b.ready.BankID, "account_number", "0011-2233 44556", "amount", "12.5")
		if !strings.Contains(p.text, "BANK 0011223344556") {
			t.Errorf("the page that asks: %s", p.text)
		}
		to := b.do(http.MethodPost, payoutPage+"/confirm", shown).Header.Get("Location")
		if rows := b.paidOut(); rows[0].BankID != b.ready.BankID || !strings.HasSuffix(to, rows[0].ID) {
			t.Errorf("it leads to %q; the payout is %+v", to, rows[0])
		}
		shown, _ = b.payForm("account_number", "0240000030", "amount", "12.5")
		to = b.do(http.MethodPost, payoutPage+"/confirm", shown).Header.Get("Location")
		rows := b.paidOut()
		if !strings.HasSuffix(to, rows[0].ID) || rows[0].Status != book.StatusFailed {
			t.Errorf("it leads to %q; the payout is %+v", to, rows[0])
		}
		b.want(http.StatusOK, to, "Failed")
	})
}

// In production a new code of the second factor is required before the confirmation page and before the payout.
func TestPayoutForm_needsStepUp(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	payer := identitytest.Join(t, b.db, b.clock, b.identity, "esi@example.com", identity.Membership{Tenant: shop.ID, Role: roles.Finance})
	reader := identitytest.Join(t, b.db, b.clock, b.identity, "yaw@example.com", identity.Membership{Tenant: shop.ID, Role: roles.Signatory})
	b.clock.Advance(identity.Freshness)
	path := "/app/" + shop.ID + "/payouts/new"
	b.as(reader)
	b.want(http.StatusForbidden, path)
	b.as(payer)
	token := b.want(http.StatusOK, path, "New payout").hidden(t, "token")
	b.clock.Advance(identity.StepUpLasts)
	form := url.Values{"token": {token}, "channel": {"MTN"}, "account_number": {"0240000001"}, "amount": {"6"}}
	if to := b.get(path).Header.Get("Location"); !strings.HasPrefix(to, "/account/step-up?") {
		t.Errorf("it leads to %q", to)
	}
	if p := b.do(http.MethodPost, path, form); p.StatusCode != http.StatusForbidden || !strings.Contains(p.text, "Your entries are kept") {
		t.Errorf("the form is answered %d: %s", p.StatusCode, p.text)
	}
}

// If the registered name differs from the expected name, the payout is sent only after the person typed the registered name.
func TestPayout_toADifferingNameIsTyped(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	before := len(b.paidOut())
	shown, p := b.payForm("amount", "6", "name", "Somebody Else")
	shown.Set("expected", p.hidden(t, "expected"))
	for _, typed := range []string{"", "Somebody Else"} {
		shown.Set("typed", typed)
		if p := b.do(http.MethodPost, payoutPage+"/confirm", shown); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "The name differs") {
			t.Fatalf("%q is answered %d: %s", typed, p.StatusCode, p.text)
		}
	}
	if n := len(b.paidOut()); n != before {
		t.Fatalf("%d payouts were sent", n-before)
	}
	shown.Set("typed", strings.ToLower(shown.Get("name")))
	if p := b.do(http.MethodPost, payoutPage+"/confirm", shown); p.StatusCode != http.StatusSeeOther {
		t.Fatalf("it is answered %d: %s", p.StatusCode, p.text)
	}
	if n := len(b.paidOut()); n != before+1 {
		t.Fatalf("%d payouts were sent", n-before)
	}
}

// The form accepts a purpose and the person's own reference. A reference of another payout is refused at once.
func TestPayout_hasPurposeAndReference(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	shown, p := b.payForm("amount", "6", "purpose", "Rent of March", "reference", "INV-2026-00417")
	if !strings.Contains(p.text, "Rent of March") || !strings.Contains(p.text, "INV-2026-00417") {
		t.Fatalf("the page that asks: %s", p.text)
	}
	shown.Set("purpose", p.hidden(t, "purpose"))
	shown.Set("reference", p.hidden(t, "reference"))
	to := b.do(http.MethodPost, payoutPage+"/confirm", shown).Header.Get("Location")
	b.want(http.StatusOK, to, "Rent of March", "INV-2026-00417")
	if again := b.do(http.MethodPost, payoutPage+"/confirm", shown).Header.Get("Location"); to == "" || again != to {
		t.Errorf("sent again it leads to %q, not %q", again, to)
	}
	form := url.Values{"token": {b.want(http.StatusOK, payoutPage).hidden(t, "token")}, "channel": {"MTN"}, "account_number": {"0240000001"}, "amount": {"6"}, "reference": {"INV-2026-00417"}}
	if p := b.do(http.MethodPost, payoutPage, form); p.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.text, "belongs to another payout") {
		t.Errorf("%d %s", p.StatusCode, p.text)
	}
}
