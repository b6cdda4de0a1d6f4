package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/roles"
)

// Two people add bank accounts, book deposits with them, and top up floats, all on pages.
func TestBankAccounts_byTwoPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	requester, approver := b.joins("ama@example.com", roles.Owner), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	held := func(id ledger.AccountID) int64 {
		n, err := b.ledger.Balance(t.Context(), ledger.Key{Asset: ledger.GHS, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return -n
	}
	approve := func(request string) { b.approvedBy(approver, requester, request) }
	b.as(requester)
	b.want(http.StatusOK, "/ops/banks", "No bank accounts")
	approve(b.ordered("/ops/banks/add", "name", "gcb-main", "mode", "live", "bank", "GCB Bank", "number", "1011 0123 4567"))
	list := b.want(http.StatusOK, "/ops/banks", "gcb-main", "••••••••4567")
	if strings.Contains(list.text, "101101234567") {
		t.Error("the page shows the whole number")
	}

	fund := "/ops/tenants/" + shop.ID + "/fund"
	b.want(http.StatusOK, fund, "gcb-main (GCB Bank", "Slip number")
	b.post(http.StatusUnprocessableEntity, fund, "amount", "50", "reason", "paid in")
	deposit := []string{"amount", "50", "bank", "gcb-main", "slip", "SLP 7", "reason", "paid in"}
	confirm := b.post(http.StatusOK, fund, deposit...)
	if !strings.Contains(confirm.text, "SLP 7") {
		t.Error("the page of confirmation does not show the slip")
	}
	request := b.post(http.StatusSeeOther, fund+"/confirm", append(deposit, "id", confirm.hidden(t, "id"))...).Header.Get("Location")
	approve(request)
	if n := held("bank/gcb-main"); n != 50_00 {
		t.Errorf("the bank account has %d", n)
	}
	if p := b.post(http.StatusOK, fund, append(deposit, "id", uuid.NewString())...); !strings.Contains(p.text, "paid for GHS 50.00") {
		t.Errorf("the slip again: %s", p.text)
	}

	approve(b.ordered("/ops/banks/top-up", "bank", "gcb-main", "provider", "mtn", "account", "disbursement", "amount", "20", "reference", "T1"))
	if bank, transit := held("bank/gcb-main"), held(ledger.Transit); bank != 30_00 || transit != 20_00 {
		t.Errorf("the bank account has %d, in transit is %d", bank, transit)
	}
	sent, err := b.treasury.OnTheWay(t.Context())
	if err != nil || len(sent) != 1 {
		t.Fatal(sent, err)
	}
	b.want(http.StatusOK, "/ops/banks", "In transit", "transfer="+sent[0].ID)
	approve(b.ordered("/ops/banks/arrived", "transfer", sent[0].ID, "outcome", "arrived", "fee", "1"))
	if float, transit := held(ledger.FloatAt("mtn", "disbursement")), held(ledger.Transit); float != 19_00 || transit != 0 {
		t.Errorf("the float has %d, in transit is %d", float, transit)
	}
	b.want(http.StatusOK, "/ops/banks/transfers", "Arrived")
}
