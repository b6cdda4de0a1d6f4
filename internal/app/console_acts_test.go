package app

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/identitytest"
)

// joins creates a person of the installation, who is signed in with a second factor.
func (b *browsed) joins(email string, role roles.Role) identitytest.One {
	b.t.Helper()
	return identitytest.Join(b.t, b.db, b.clock, b.identity, email, identity.Membership{Role: role})
}

// as continues as another person.
func (b *browsed) as(one identitytest.One) {
	b.http.Jar = held{"__Host-makola": {Name: "__Host-makola", Value: one.Token}}
}

// approvedBy lets a person approve a request, and continues as its requester.
func (b *browsed) approvedBy(approver, requester identitytest.One, request string) {
	b.t.Helper()
	b.as(approver)
	digest := b.want(http.StatusOK, request).hidden(b.t, "digest")
	b.post(http.StatusSeeOther, request+"/approve", "digest", digest)
	b.as(requester)
}

// hidden returns the value of a hidden member of a form.
func (p page) hidden(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(p.text)
	if found == nil {
		t.Fatalf("no %s in %s", name, p.text)
	}
	return found[1]
}

// live makes an account with live money.
func (b *browsed) live() tenant.Tenant {
	b.t.Helper()
	var t tenant.Tenant
	if err := b.db.Write(b.t.Context(), func(tx *db.Tx) (err error) {
		t, err = b.tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Live})
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
	return t
}

// wallet fails the test unless the wallet has the given balance.
func (b *browsed) wallet(t tenant.Tenant, want int64) {
	b.t.Helper()
	if n, err := b.ledger.Balance(b.t.Context(), t.Wallet()); err != nil || n != want {
		b.t.Fatalf("the wallet has %d, %v; want %d", n, err, want)
	}
}

// A deposit to a wallet needs two people on pages: one requests it, another approves it. Nothing moves twice.
func TestFunding_needsTwoPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	requester, approver := b.joins("ama@example.com", roles.Operations), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	page := "/ops/tenants/" + shop.ID + "/fund"
	b.as(requester)
	b.want(http.StatusOK, "/ops/tenants/"+shop.ID, "Fund wallet")
	b.want(http.StatusOK, page, "Adom Stores")
	b.post(http.StatusUnprocessableEntity, page, "amount", "-5", "reason", "x")
	p := b.post(http.StatusOK, page, "amount", "500000", "reason", "Paid by bank, slip 4711")
	for _, text := range []string{"GHS 500,000.00", "five hundred thousand cedis", "GHS 0.00", "Add GHS 500,000.00 to wallet"} {
		if !strings.Contains(p.text, text) {
			t.Errorf("the page that asks lacks %q: %s", text, p.text)
		}
	}
	b.wallet(shop, 0)
	form := []string{"id", p.hidden(t, "id"), "amount", p.hidden(t, "amount"), "reason", "Paid by bank, slip 4711"}
	request := "/ops/acts/" + p.hidden(t, "id")
	for range 2 { // a double click
		b.post(http.StatusSeeOther, page+"/confirm", form...).leads(t, request)
	}
	b.wallet(shop, 0)
	own := b.want(http.StatusOK, request, "Awaiting approval", "0 of 1", "Withdraw request")
	if strings.Contains(own.text, "Approve and apply") {
		t.Error("the maker is offered to approve")
	}
	b.want(http.StatusOK, "/ops/tenants/"+shop.ID, "Awaiting approval", request)
	digest := regexp.MustCompile(`name="digest" value="([0-9a-f]{64})"`).FindStringSubmatch(own.text)[1]
	b.post(http.StatusForbidden, request+"/approve", "digest", digest)

	b.want(http.StatusOK, "/ops", "Your requests awaiting approval", request)
	b.as(approver)
	b.want(http.StatusOK, "/ops", "Awaiting your approval", request)
	b.want(http.StatusForbidden, page)
	b.want(http.StatusOK, "/ops/acts?state=waiting", request)
	p = b.want(http.StatusOK, request, "Approve and apply", "Paid by bank, slip 4711", "ama@example.com")
	if p := b.post(http.StatusUnprocessableEntity, request+"/approve", "digest", strings.Repeat("0", 64)); !strings.Contains(p.text, "differs from the page that you saw") {
		t.Fatal(p.text)
	}
	b.post(http.StatusUnprocessableEntity, request+"/reject", "digest", digest, "note", "")
	b.clock.Advance(identity.StepUpLasts)
	b.post(http.StatusSeeOther, request+"/approve", "digest", digest).leads(t, "/account/step-up?back="+strings.ReplaceAll(request, "/", "%2F"))
	b.post(http.StatusSeeOther, "/account/step-up", "code", b.codeNow(approver.Key), "back", request).leads(t, request)
	b.post(http.StatusSeeOther, request+"/approve", "digest", p.hidden(t, "digest")).leads(t, request)
	b.wallet(shop, 50_000_000)
	b.want(http.StatusOK, request, "Applied", "1 of 1", "kofi@example.com")
	if p := b.post(http.StatusUnprocessableEntity, request+"/approve", "digest", digest); !strings.Contains(p.text, "done already") {
		t.Fatal(p.text)
	}
	b.wallet(shop, 50_000_000)

	b.as(requester)
	b.want(http.StatusSeeOther, page) // five minutes have also passed for the requester
	b.post(http.StatusSeeOther, "/account/step-up", "code", b.codeNow(requester.Key), "back", page).leads(t, page)
	p = b.post(http.StatusOK, page, "amount", "500000.00", "reason", "another slip")
	if !strings.Contains(p.text, "Check that this is not a repetition.") {
		t.Error("the same amount again is not warned of")
	}
	b.clock.Advance(time.Second)
	request = "/ops/acts/" + p.hidden(t, "id")
	b.post(http.StatusSeeOther, page+"/confirm", "id", p.hidden(t, "id"), "amount", "500000.00", "reason", "another slip").leads(t, request)
	b.post(http.StatusSeeOther, request+"/withdraw", "digest", b.get(request).hidden(t, "digest")).leads(t, request)
	b.want(http.StatusOK, request, "Withdrawn")
	b.wallet(shop, 50_000_000)
	b.as(approver)
	b.want(http.StatusOK, "/ops/audit?tenant="+shop.ID, "act.withdrawn", "wallet.fund", "kofi@example.com", "198.51.100.4", "GHS 0.00 → GHS 500,000.00", "Paid by bank, slip 4711")
	if p := b.want(http.StatusOK, "/ops/audit?action=wallet.fund"); strings.Contains(p.text, "act.withdrawn") {
		t.Error("the filter does not narrow")
	}
	if v, err := b.audit.Verify(t.Context(), audit.Head{}); err != nil || !v.OK() {
		t.Error(v, err)
	}
}

// On a development server one person is enough. The page of a request offers the approval only to people who may approve it. It
// shows in advance how the approver will be recorded.
func TestApprove_offeredWithPermission(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	requester, barred, second := b.joins("ama@example.com", roles.Operations), b.joins("kofi@example.com", roles.Approver), b.joins("esi@example.com", roles.Approver)
	if _, err := b.db.Exec(t.Context(), `UPDATE people SET sponsor = $1 WHERE id = $2`, requester.Person.ID, barred.Person.ID); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(identity.Freshness)
	b.as(requester)
	page := "/ops/tenants/" + shop.ID + "/fund"
	p := b.post(http.StatusOK, page, "amount", "500000", "reason", "Paid by bank, slip 4711")
	request := "/ops/acts/" + p.hidden(t, "id")
	b.post(http.StatusSeeOther, page+"/confirm", "id", p.hidden(t, "id"), "amount", p.hidden(t, "amount"), "reason", "Paid by bank, slip 4711").leads(t, request)
	b.as(barred)
	if p := b.want(http.StatusOK, request, "You cannot approve this", "Another person must approve this"); strings.Contains(p.text, "Approve and apply") {
		t.Error("somebody who is barred is offered to approve")
	}
	if p := b.want(http.StatusOK, "/ops"); strings.Contains(p.text, "Awaiting your approval") {
		t.Error("it waits for somebody who is barred")
	}
	b.as(second)
	b.want(http.StatusOK, "/ops", "Awaiting your approval", request)
	b.want(http.StatusOK, request, "Approve and apply", "approval 1 of this person")
}

// While the clock of the node is wrong, pages that move money are refused. Other pages work.
func TestClock_stopsMoneyOnPages(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	b.as(b.joins("ama@example.com", roles.Owner))
	page, form := "/ops/tenants/"+shop.ID+"/fund", []string{"amount", "5", "reason", "slip"}
	b.post(http.StatusOK, page, form...)
	b.clock.Set(-45 * time.Second) // more than the limit for money, and less than the limit that ends a session
	if err := b.timekeeper.Look(t.Context()); err != nil || b.timekeeper.Stopped() == nil {
		t.Fatal("the clock is right", err)
	}
	for _, path := range []string{page, page + "/confirm", "/ops/acts/x/approve", "/ops/acts/x/reject", "/ops/acts/x/withdraw", "/ops/acts/x/do"} {
		if p := b.post(http.StatusServiceUnavailable, path, form...); p.Header.Get("Retry-After") == "" {
			t.Errorf("%s has no Retry-After", path)
		}
	}
	b.want(http.StatusOK, page)
	b.post(http.StatusSeeOther, "/account/sessions/end")
	b.wallet(shop, 0)
}

func TestFunding_inDevelopment(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusOK, b.request(), "Put test GHS 92,500.00 into the wallet of Adom Stores", "Applied")
}

// An owner changes the number of approvers for an amount, and another person approves the change.
func TestPolicy_changeNeedsTwoPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	owner, kofi := b.joins("owner@example.com", roles.Owner), b.joins("kofi@example.com", roles.Approver)
	b.joins("efua@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	b.as(owner)
	line := []string{"kind", "wallet.fund", "amount", "1000", "approvers", "2", "reason", "large sums"}
	id := b.want(http.StatusOK, "/ops/policy", "In force").hidden(t, "id")
	b.post(http.StatusUnprocessableEntity, "/ops/policy", append(line, "id", id, "amount", "x")...)
	b.post(http.StatusUnprocessableEntity, "/ops/policy", append(line, "id", id, "tenant", "nobody")...)
	request := "/ops/acts/" + id
	b.post(http.StatusSeeOther, "/ops/policy", append(line, "id", id)...).leads(t, request)
	b.want(http.StatusOK, request, "Deposit to a wallet needs 2 approvers from GHS 1,000.00, everywhere", "Awaiting approval")
	b.as(kofi)
	b.post(http.StatusForbidden, "/ops/policy", line...)
	b.post(http.StatusSeeOther, request+"/approve", "digest", b.get(request).hidden(t, "digest")).leads(t, request)
	b.want(http.StatusOK, "/ops/policy", "2 approvers", "GHS 1,000.00")
	b.as(owner)
	fund := "/ops/tenants/" + shop.ID + "/fund"
	p := b.post(http.StatusOK, fund, "amount", "1000", "reason", "x")
	b.post(http.StatusSeeOther, fund+"/confirm", "id", p.hidden(t, "id"), "amount", "1000.00", "reason", "x")
	b.want(http.StatusOK, "/ops/acts/"+p.hidden(t, "id"), "0 of 2")
}

// A role that was removed disappears from pages within a second. Change requests apply the removal at once.
func TestRole_removedHasNoEffect(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	requester, kofi := b.joins("ama@example.com", roles.Operations), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	fund := "/ops/tenants/" + shop.ID + "/fund"
	b.as(requester)
	p := b.post(http.StatusOK, fund, "amount", "5", "reason", "x")
	request := "/ops/acts/" + p.hidden(t, "id")
	b.post(http.StatusSeeOther, fund+"/confirm", "id", p.hidden(t, "id"), "amount", "5.00", "reason", "x")
	b.as(kofi)
	digest := b.want(http.StatusOK, request).hidden(t, "digest")
	err := b.db.Write(t.Context(), func(tx *db.Tx) error {
		_, _, err := b.identity.SetRole(tx, "kofi@example.com", identity.Membership{Role: roles.Support})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The page still has the earlier role of the person. The transaction reads the current role.
	if p := b.post(http.StatusUnprocessableEntity, request+"/approve", "digest", digest); !strings.Contains(p.text, "does not have the permission") {
		t.Fatal(p.text)
	}
	b.clock.Advance(identity.Freshness)
	b.post(http.StatusForbidden, request+"/approve", "digest", digest)
	b.want(http.StatusForbidden, request)
	b.wallet(shop, 0)
}

// A wallet is corrected in both directions, but never below zero.
func TestWalletPages_correction(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	demo, err := b.tenants.Get(t.Context(), demoTenant)
	if err != nil {
		t.Fatal(err)
	}
	has, err := b.ledger.Balance(t.Context(), demo.Wallet())
	if err != nil {
		t.Fatal(err)
	}
	path := "/ops/tenants/" + demoTenant + "/adjust"
	b.want(http.StatusOK, path, "Remove from wallet")
	correct := func(way, amount string) page {
		t.Helper()
		p := b.post(http.StatusOK, path, "way", way, "amount", amount, "reason", "booked twice")
		id := p.hidden(t, "id")
		b.post(http.StatusSeeOther, path+"/confirm", "id", id, "way", p.hidden(t, "way"), "amount", p.hidden(t, "amount"), "reason", "booked twice").leads(t, "/ops/acts/"+id)
		return b.get("/ops/acts/" + id)
	}
	if p := correct("out", "7.50"); !strings.Contains(p.text, "take test GHS 7.50 out of it") || !strings.Contains(p.text, "Applied") {
		t.Error(p.text)
	}
	b.wallet(demo, has-750)
	correct("in", "7.50")
	b.wallet(demo, has)
	if p := correct("out", "99999999.00"); !strings.Contains(p.text, "Failed") || !strings.Contains(p.text, "does not cover the amount") {
		t.Error(p.text)
	}
	b.wallet(demo, has)
	b.post(http.StatusUnprocessableEntity, path, "way", "around", "amount", "1", "reason", "x")
}

// The form of a deposit accepts the number of a slip, and warns if the slip was used before.
func TestFund_warnsOfASlipUsedBefore(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	path := "/ops/tenants/" + demoTenant + "/fund"
	for n := range 2 {
		p := b.post(http.StatusOK, path, "amount", "5", "reference", "slip 4711", "reason", "Paid by bank")
		if strings.Contains(p.text, "was used before") != (n == 1) || !strings.Contains(p.text, "slip 4711") {
			t.Fatalf("deposit %d: %s", n, p.text)
		}
		if n == 0 {
			id := p.hidden(t, "id")
			b.post(http.StatusSeeOther, path+"/confirm", "id", id, "amount", "5.00", "reference", p.hidden(t, "reference"), "reason", "Paid by bank").leads(t, "/ops/acts/"+id)
		}
	}
}
