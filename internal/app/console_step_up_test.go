package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/identitytest"
)

// codePage submits a form after the code of the second factor has become too old, and returns the page that asks for a code.
func (b *browsed) codePage(path string, form ...string) page {
	b.t.Helper()
	b.clock.Advance(identity.StepUpLasts)
	p := b.post(http.StatusForbidden, path, form...)
	if !strings.Contains(p.text, "Your entries are kept") {
		b.t.Fatal(p.text)
	}
	return p
}

// The entries of a settings form survive a code that is too old. The form is shown again with the entries, and nothing is done
// before the person submits it.
func TestForm_survivesAStepUp(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	one := b.joins("ama@example.com", roles.Owner)
	b.joins("kofi@example.com", roles.Owner)
	b.clock.Advance(identity.Freshness)
	b.as(one)
	path := "/ops/tenants/" + shop.ID + "/settings"
	id := b.want(http.StatusOK, path).hidden(t, "id")
	asked := b.codePage(path, "id", id, "name", "Adom Stores & Sons", "reason", "New trade name")
	if strings.Contains(asked.text, "Sons") {
		t.Error("the page of the code shows the contents")
	}
	b.post(http.StatusUnprocessableEntity, "/account/step-up", "code", "000000", "back", path, "kept", asked.hidden(t, "kept"))
	p := b.post(http.StatusOK, "/account/step-up", "code", b.codeNow(one.Key), "back", path, "kept", asked.hidden(t, "kept"))
	for _, text := range []string{`value="Adom Stores &amp; Sons"`, `value="New trade name"`, "Not sent yet", id} {
		if !strings.Contains(p.text, text) {
			t.Errorf("the form lacks %q: %s", text, p.text)
		}
	}
	if _, err := b.changes.Store.Get(t.Context(), id); err == nil {
		t.Error("the page of the code made the request")
	}
	b.post(http.StatusSeeOther, path, "id", id, "name", p.hidden(t, "id"), "reason", "New trade name").leads(t, "/ops/acts/"+id)
}

// After the code, a form about money continues at its confirmation page. It moves nothing by itself.
func TestForm_aboutMoneyIsConfirmedAfterAStepUp(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	one := b.joins("ama@example.com", roles.Owner)
	b.clock.Advance(identity.Freshness)
	b.as(one)
	path := "/ops/tenants/" + shop.ID + "/fund"
	p := b.post(http.StatusOK, path, "amount", "5", "reason", "slip 1")
	id := p.hidden(t, "id")
	kept := b.codePage(path+"/confirm", "id", id, "amount", "5.00", "reason", "slip 1").hidden(t, "kept")
	p = b.post(http.StatusOK, "/account/step-up", "code", b.codeNow(one.Key), "back", path, "kept", kept)
	for _, text := range []string{"Add GHS 5.00 to wallet", "slip 1", id} {
		if !strings.Contains(p.text, text) {
			t.Errorf("the page lacks %q: %s", text, p.text)
		}
	}
	b.wallet(shop, 0)
	b.post(http.StatusSeeOther, path+"/confirm", "id", p.hidden(t, "id"), "amount", p.hidden(t, "amount"), "reason", "slip 1")
	b.wallet(shop, 500)
}

// After the code the form of a payout is checked again and continues with the entered values.
func TestForm_ofAPayoutIsCheckedAfterAStepUp(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	one := identitytest.Join(t, b.db, b.clock, b.identity, "efua@example.com", identity.Membership{Tenant: shop.ID, Role: roles.Owner})
	b.clock.Advance(identity.Freshness)
	b.as(one)
	path := "/app/" + shop.ID + "/payouts/new"
	token := b.want(http.StatusOK, path).hidden(t, "token")
	kept := b.codePage(path, "token", token, "channel", "MTN", "account_number", "0240000001", "amount", "6").hidden(t, "kept")
	p := b.post(http.StatusUnprocessableEntity, "/account/step-up", "code", b.codeNow(one.Key), "back", path, "kept", kept)
	for _, text := range []string{`value="6"`, `value="0240000001"`, token, "Check the form"} { // no provider serves this channel, which the form reports
		if !strings.Contains(p.text, text) {
			t.Errorf("the page lacks %q: %s", text, p.text)
		}
	}
}

// The sealed entries of a form can be used once, for a limited time, and only for the session, the person and the page for which
// they were sealed.
func TestKeptForm_isRefusedElsewhere(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	one, other := b.joins("ama@example.com", roles.Owner), b.joins("kofi@example.com", roles.Owner)
	b.clock.Advance(identity.Freshness)
	b.as(one)
	path := "/ops/tenants/" + shop.ID + "/settings"
	form := []string{"id", b.want(http.StatusOK, path).hidden(t, "id"), "name", "Adom & Sons", "reason", "x"}
	kept := b.codePage(path, form...).hidden(t, "kept")
	refused := func(what string, who identitytest.One, back, kept string) {
		t.Helper()
		b.clock.Advance(time.Minute) // until another code is valid
		p := b.post(http.StatusGone, "/account/step-up", "code", b.codeNow(who.Key), "back", back, "kept", kept)
		if !strings.Contains(p.text, "can no longer be used") || strings.Contains(p.text, "Sons") {
			t.Errorf("%s: %s", what, p.text)
		}
	}
	refused("another page", one, "/ops/tenants/"+shop.ID+"/block", kept)
	refused("changed", one, path, "A"+kept[1:])
	refused("no text", one, path, "*")
	b.as(other)
	refused("another person", other, path, kept)
	b.as(one)
	b.clock.Advance(time.Minute)
	b.post(http.StatusOK, "/account/step-up", "code", b.codeNow(one.Key), "back", path, "kept", kept)
	refused("a second time", one, path, kept)
	kept = b.codePage(path, form...).hidden(t, "kept")
	for range 3 { // a session ends after a quarter of an hour without use
		b.clock.Advance(10 * time.Minute)
		b.want(http.StatusOK, "/ops")
	}
	refused("late", one, path, kept)
}

// Forms with a password, and forms that read a file, do not keep their entries.
func TestKeptForm_hasNoPasswords(t *testing.T) {
	t.Parallel()
	for _, r := range consoleRoutes() {
		if r.Resume == nil {
			continue
		}
		if r.Method != http.MethodPost || r.Machine || r.File || r.Body > 0 {
			t.Errorf("%s %s keeps what is no form", r.Method, r.Path)
		}
		for _, in := range r.Inputs {
			for _, secret := range []string{"password", "current", "code", "t"} {
				if in.Name == secret {
					t.Errorf("%s keeps %s", r.Path, in.Name)
				}
			}
		}
	}
}
