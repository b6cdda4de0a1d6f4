package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/identitytest"
)

// funds requests a deposit to the wallet of an account, and returns the request's id.
func (b *browsed) funds(t tenant.Tenant, amount, reason string) string {
	b.t.Helper()
	path := "/ops/tenants/" + t.ID + "/fund"
	p := b.post(http.StatusOK, path, "amount", amount, "reason", reason)
	b.post(http.StatusSeeOther, path+"/confirm", "id", p.hidden(b.t, "id"), "amount", p.hidden(b.t, "amount"), "reason", reason)
	return p.hidden(b.t, "id")
}

// alikeShop is an account with requests: three deposits to its wallet, and one to another account's.
func alikeShop(t *testing.T, fn func(b *browsed, shop tenant.Tenant, requester, approver identitytest.One, ids []string)) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	var other tenant.Tenant
	if err := b.db.Write(t.Context(), func(tx *db.Tx) (err error) {
		other, err = b.tenants.Create(tx, tenant.Tenant{Name: "Kente House", Mode: tenant.Live})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	requester, approver := b.joins("ama@example.com", roles.Operations), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	b.as(requester)
	ids := []string{b.funds(shop, "100", "slip 1"), b.funds(shop, "200", "slip 2"), b.funds(shop, "400", "slip 3"), b.funds(other, "800", "slip 4")}
	fn(b, shop, requester, approver, ids)
}

// Similar requests are listed in full, and one button approves them one after another. A request that changed meanwhile stays open,
// and the page lists it with the reason.
func TestAlike_approvedOneByOne(t *testing.T) {
	alikeShop(t, func(b *browsed, shop tenant.Tenant, requester, approver identitytest.One, ids []string) {
		page := "/ops/acts/alike?kind=wallet.fund&tenant=" + shop.ID
		b.as(approver)
		b.want(http.StatusOK, "/ops/acts", "Similar requests", strings.ReplaceAll(page, "&", "&amp;"), "Deposit to a wallet, Adom Stores")
		p := b.want(http.StatusOK, page, "slip 1", "slip 2", "slip 3", "3 requests, GHS 700.00 together", "In the wallet", "Approve 3 requests", "ama@example.com")
		if strings.Contains(p.text, "slip 4") {
			t.Error("another account's request is listed")
		}
		two := b.want(http.StatusOK, page+"&without="+ids[0], "Approve 2 requests")
		if strings.Contains(two.text, "slip 1") {
			t.Error("what was left out is listed")
		}
		shown := p.hidden(t, "shown")
		b.as(requester)
		b.post(http.StatusSeeOther, "/ops/acts/"+ids[1]+"/withdraw", "digest", b.want(http.StatusOK, "/ops/acts/"+ids[1]).hidden(t, "digest"))
		b.as(approver)
		stranger := b.want(http.StatusOK, "/ops/acts/"+ids[3]).hidden(t, "digest")
		done := b.post(http.StatusOK, "/ops/acts/alike", "kind", "wallet.fund", "tenant", shop.ID, "shown", shown+" "+ids[3]+"="+stranger+" "+ids[2]+"=0")
		for _, text := range []string{"2 of 5 requests approved", "withdrawn already", "another kind, or about another account", "Withdrawn", "Not approved"} {
			if !strings.Contains(done.text, text) {
				t.Errorf("the page lacks %q: %s", text, done.text)
			}
		}
		b.wallet(shop, 500_00)
		again := b.post(http.StatusOK, "/ops/acts/alike", "kind", "wallet.fund", "tenant", shop.ID, "shown", shown)
		if !strings.Contains(again.text, "0 of 3 requests approved") {
			t.Errorf("loaded again: %s", again.text)
		}
		b.wallet(shop, 500_00)
		b.post(http.StatusUnprocessableEntity, "/ops/acts/alike", "kind", "wallet.fund", "tenant", shop.ID, "shown", strings.Repeat(ids[0]+"=0 ", 51))
	})
}

// An approval of several requests requires the second factor and the same checks as an approval of one.
func TestAlike_guards(t *testing.T) {
	alikeShop(t, func(b *browsed, shop tenant.Tenant, requester, approver identitytest.One, ids []string) {
		page := "/ops/acts/alike?kind=wallet.fund&tenant=" + shop.ID
		b.as(approver)
		shown := b.want(http.StatusOK, page).hidden(t, "shown")
		form := []string{"kind", "wallet.fund", "tenant", shop.ID, "shown", shown}
		b.as(requester)
		b.post(http.StatusForbidden, "/ops/acts/alike", form...)
		second := b.joins("efua@example.com", roles.Owner)
		b.clock.Advance(identity.Freshness)
		b.as(second) // a person whose role is newer than the requests
		if p := b.post(http.StatusOK, "/ops/acts/alike", form...); !strings.Contains(p.text, "0 of 3 requests approved") {
			t.Errorf("a younger role: %s", p.text)
		}
		b.as(approver)
		b.clock.Advance(identity.StepUpLasts)
		if to := b.get(page).Header.Get("Location"); !strings.HasPrefix(to, "/account/step-up?") {
			t.Errorf("the page leads to %q", to)
		}
		if to := b.post(http.StatusSeeOther, "/ops/acts/alike", form...).Header.Get("Location"); !strings.HasPrefix(to, "/account/step-up?") {
			t.Errorf("the form leads to %q", to)
		}
		b.wallet(shop, 0)
	})
}
