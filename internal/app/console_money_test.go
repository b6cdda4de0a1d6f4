package app

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// Two people book a float and sell credits on pages: one requests the change, and the other approves it.
func TestFloatAndCredits_needTwoPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	requester, approver := b.joins("ama@example.com", roles.Owner), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	float := func(account string) func() int64 {
		return func() int64 {
			n, err := b.ledger.Balance(t.Context(), ledger.Key{Asset: ledger.GHS, ID: ledger.FloatAt("mtn", account)})
			if err != nil {
				return 0
			}
			return -n
		}
	}
	held, paidOut := float(""), float("disbursement")
	credits := func() int64 {
		n, err := b.ledger.Balance(t.Context(), shop.SMSCredits())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	account := "/ops/tenants/" + shop.ID
	for _, tt := range []struct {
		from, path string
		form       []string
		bad        []string // a form that is refused because of its last field
		reads      func() int64
		want       int64
	}{
		{"/ops/float", "/ops/float/add", []string{"provider", "mtn", "mode", "live", "way", "in", "amount", "9000", "reference", "slip 1"}, []string{"provider", "mtn", "mode", "live", "way", "up", "amount", "9000"}, held, 900_000},
		{"/ops/float", "/ops/float/add", []string{"provider", "mtn", "mode", "live", "account", "disbursement", "way", "in", "amount", "7000", "reference", "slip 2"}, []string{"provider", "mtn", "mode", "live", "account", "services", "way", "in", "amount", "7000"}, paidOut, 700_000},
		{account, account + "/credits/sell", []string{"credits", "20000", "price", "700"}, []string{"credits", "0", "price", "700"}, credits, 20_000},
		{account, account + "/credits/refund", []string{"credits", "20000", "price", "700"}, []string{"credits", "many"}, credits, 0},
	} {
		b.as(requester)
		b.want(http.StatusOK, tt.from, tt.path)
		b.post(http.StatusUnprocessableEntity, tt.path, append(tt.bad, "id", b.want(http.StatusOK, tt.path).hidden(t, "id"), "reason", "x")...)
		before := tt.reads()
		request := b.ordered(tt.path, tt.form...)
		own := b.want(http.StatusOK, request, "Awaiting approval")
		if strings.Contains(own.text, "Approve and apply") || tt.reads() != before {
			t.Errorf("%s: the maker alone has done it", tt.path)
		}
		digest := own.hidden(t, "digest")
		b.post(http.StatusUnprocessableEntity, request+"/approve", "digest", digest)
		b.as(approver)
		b.want(http.StatusForbidden, tt.path)
		b.post(http.StatusSeeOther, request+"/approve", "digest", digest)
		b.post(http.StatusUnprocessableEntity, request+"/approve", "digest", digest) // a double click
		if n := tt.reads(); n != tt.want {
			t.Errorf("%s: it is %d, want %d", tt.path, n, tt.want)
		}
	}
	// An amount above the limit of an account is refused, and the error names the limit.
	b.as(requester)
	for path, form := range map[string][]string{
		account + "/fund/confirm": nil, account + "/adjust/confirm": {"way", "in"},
		"/ops/float/add":          {"provider", "mtn", "mode", "live", "way", "in"},
		account + "/credits/sell": {"credits", "1", "price", "10000000000000.01"},
	} {
		p := b.post(http.StatusUnprocessableEntity, path, append(form, "amount", "10000000000000.01", "id", uuid.NewString(), "reason", "x")...)
		if !strings.Contains(p.text, "must be at most 10000000000000.00") {
			t.Errorf("%s: %s", path, p.text)
		}
	}
	// The reference of the slip was used before.
	b.as(requester)
	// The page lists each account of a configured provider, and the unassigned float.
	for at, amount := range map[treasury.Float]money.Pesewas{{Provider: "mtn", Mode: tenant.Test}: 123_00, {Provider: "mtn", Account: "disbursement", Mode: tenant.Test}: 456_00} {
		if err := b.treasury.AddFloat(t.Context(), at, amount, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
	}
	b.want(http.StatusOK, "/ops/float", "Collection", "Disbursement", "GHS 456.00", "Unassigned", "GHS 123.00")
	request := b.ordered("/ops/float/add", "provider", "mtn", "mode", "live", "way", "in", "amount", "1", "reference", "slip 1")
	if p := b.get(request); !strings.Contains(p.text, "Failed") && !strings.Contains(p.text, "Waits") || held() != 900_000 {
		t.Errorf("the same slip again: %s", p.text)
	}
}

// On pages a person moves money between wallets, recovers a debt, changes a route and reruns a dead job. Changes of money or
// routes need a second person.
func TestOperationPages_transferRouteDeadLetter(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop, other := b.live(), b.named("Kejetia")
	requester, approver := b.joins("ama@example.com", roles.Owner), b.joins("kofi@example.com", roles.Approver)
	b.clock.Advance(identity.Freshness)
	job := uuid.Must(uuid.NewV7()).String()
	owe := treasury.Movement{Asset: shop.Money(), From: ledger.Receivable(shop.ID), To: ledger.Funding, Amount: 30_00, Kind: "reversed"}
	err := errors.Join(b.treasury.Fund(t.Context(), shop.ID, 100_00, "paid", "ama"), b.treasury.Move(t.Context(), owe, "a reversal", "ama"), b.db.Write(t.Context(), func(tx *db.Tx) error {
		tx.Defer(`INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at) VALUES ($1, 'dead', 'nothing', 'shop', '', 1, 9, 0, 'was <gone>', 1, 2)`, 1, job)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	account := "/ops/tenants/" + shop.ID
	for _, tt := range []struct {
		from, shows, path string
		form              []string
		alone             bool
	}{
		{account, "Owed after a reversal", account + "/recover", nil, false},
		{account, "Transfer to another wallet", account + "/transfer", []string{"to", other.ID, "amount", "20", "reference", "letter 7"}, false},
		{"/ops/routes", "disburse", "/ops/routes/set", []string{"operation", "disburse_wallet", "channel", "MTN", "mode", "live", "tenant", shop.ID, "providers", "hubtel mtn"}, false},
		{"/ops/routes", shop.ID, "/ops/routes/drop", []string{"operation", "disburse_wallet", "channel", "MTN", "mode", "live", "tenant", shop.ID}, false},
		{"/ops/jobs", "was &lt;gone&gt;", "/ops/jobs/" + job + "/rerun", nil, true},
	} {
		b.as(requester)
		b.want(http.StatusOK, tt.from, tt.shows)
		request := b.ordered(tt.path, tt.form...)
		if !tt.alone {
			digest := b.want(http.StatusOK, request, "Awaiting approval").hidden(t, "digest")
			b.as(approver)
			b.want(http.StatusForbidden, tt.path)
			b.post(http.StatusSeeOther, request+"/approve", "digest", digest)
		}
		b.want(http.StatusOK, request, "Applied")
	}
	b.wallet(shop, 50_00)
	b.wallet(other, 20_00)
	b.as(requester)
	b.want(http.StatusOK, "/ops/jobs", "No failed jobs")
	b.want(http.StatusNotFound, "/ops/jobs/"+job+"/rerun")
	b.post(http.StatusUnprocessableEntity, account+"/transfer", "id", job, "reason", "x", "to", shop.ID, "amount", "1")
	b.post(http.StatusUnprocessableEntity, "/ops/routes/set", "id", job, "reason", "x", "operation", "dance", "channel", "MTN", "mode", "live", "tenant", "*", "providers", "mtn")
}

// An unknown payment is resolved from its page by the provider's statement. The resolution is then reversed and decided on the
// same page.
func TestUnknownPayment_resolvedByStatement(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"answer_lost"}, "count": {"1"}})
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"status_not_found"}, "count": {"1000"}})
	b.call("payment-api/send/mobilemoney", `{"amount":"25.00","channel":"TELECEL","account_number":"0200000001","client_reference":"statement-0000001","account_name":"Ama"}`)
	page := "/ops/payments/" + b.the("statement-0000001")
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"120"}})
	b.until(page, "Outcome unknown")
	b.until(page, page+"/resolve") // two minutes have passed for the server that follows the payment
	demo, err := b.tenants.Get(t.Context(), demoTenant)
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.ledger.Balance(t.Context(), demo.Wallet())
	if err != nil {
		t.Fatal(err)
	}
	b.want(http.StatusOK, page+"/resolve", "statement-0000001", "GHS 25.00", "Outcome unknown", "on hold")
	id := b.get(page+"/resolve").hidden(t, "id")
	b.post(http.StatusUnprocessableEntity, page+"/resolve", "id", id, "ending", "", "reason", "statement of 3 March")
	b.post(http.StatusUnprocessableEntity, page+"/resolve", "id", id, "ending", "unpaid", "provider_fee", "0.05", "reason", "statement of 3 March")
	b.post(http.StatusUnprocessableEntity, page+"/resolve", "id", id, "ending", "unpaid", "reason", "")
	b.want(http.StatusNotFound, "/ops/payments/no-such-payment/resolve")
	for range 2 { // a double click
		b.post(http.StatusSeeOther, page+"/resolve", "id", id, "ending", "unpaid", "reason", "statement of 3 March").leads(t, "/ops/acts/"+id)
	}
	b.want(http.StatusOK, "/ops/acts/"+id, "Applied")
	held, err := b.ledger.Balance(t.Context(), demo.Wallet())
	if err != nil || held <= before {
		t.Fatalf("the wallet has %d, had %d, %v", held, before, err)
	}
	p := b.want(http.StatusOK, page, "Failed", page+"/contradict", "statement of 3 March")
	if strings.Contains(p.text, page+"/resolve") {
		t.Error("it may be ended once more")
	}
	// The payment was made after all: the resolution is reversed, and the company pays.
	b.want(http.StatusOK, b.ordered(page+"/contradict", "ending", "paid"), "Applied")
	b.want(http.StatusOK, page, page+"/decide")
	b.want(http.StatusOK, b.ordered(page+"/decide", "for", "house"), "Applied")
	if p := b.get(b.ordered(page+"/decide", "for", "customer")); strings.Contains(p.text, ">Done<") {
		t.Errorf("it was decided twice: %s", p.text)
	}
	if n, err := b.ledger.Balance(t.Context(), demo.Wallet()); err != nil || n != held {
		t.Errorf("the wallet has %d, %v; want %d", n, err, held)
	}
}

// Fee plans, pauses and the stop of a campaign have their own pages, at their places in the navigation.
func TestOperationPages_feesPauseCampaign(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	account := "/ops/tenants/" + demoTenant
	b.want(http.StatusOK, account, account+"/fees")
	b.want(http.StatusOK, account+"/fees", "Collection, all channels", `name="collection-all-minimum" type="text" value="0.10"`, "Payout, bank account")
	for name, bad := range map[string][]string{
		"plan":                        {},
		"payout-bank-fixed":           {"payout-bank-fixed", "eight"},
		"payout-bank-percent":         {"payout-bank-percent", "100.01"},
		"collection-mtn-maximum":      {"collection-mtn-minimum", "2", "collection-mtn-maximum", "1"},
		"collection-airteltigo-fixed": {"collection-airteltigo-fixed", "-1"},
	} {
		id := b.get(account+"/fees").hidden(t, "id")
		p := b.post(http.StatusUnprocessableEntity, account+"/fees", append(bad, "plan", "rates", "id", id, "reason", "contract 12")...)
		if !strings.Contains(p.text, `href="#order-`+name+`"`) {
			t.Errorf("%v: the page does not name %s", bad, name)
		}
	}
	applied := b.ordered(account+"/fees", "plan", "rates", "payout-bank-fixed", "8.00", "payout-bank-percent", "0.5")
	b.want(http.StatusOK, applied, "Applied", "Payout, bank account: now", "1%, at least GHS 0.10, at most GHS 10.00. GHS 100.00 costs GHS 1.00, GHS 5,000.00 costs GHS 10.00.",
		"Payout, bank account: then", "GHS 8.00 plus 0.5%. GHS 100.00 costs GHS 8.50, GHS 5,000.00 costs GHS 33.00.", "Payout, all channels: then")
	b.want(http.StatusOK, account+"/fees", `name="payout-bank-fixed" type="text" value="8.00"`, "GHS 8.50")
	b.want(http.StatusOK, "/app/"+demoTenant+"/fees", "Payout, bank account", "GHS 8.00 plus 0.5%", "Your wallet pays GHS 108.50")
	b.post(http.StatusUnprocessableEntity, "/ops/fees", "id", b.get("/ops/fees").hidden(t, "id"), "plan", "free", "payout-bank-fixed", "1", "reason", "x")
	b.want(http.StatusOK, b.ordered("/ops/fees", "plan", "free"), "Applied", "everything is free")
	b.want(http.StatusNotFound, "/ops/tenants/no-such-account/fees")

	b.want(http.StatusOK, "/ops/providers", "/ops/providers/pause", "/ops/providers/resume")
	b.post(http.StatusUnprocessableEntity, "/ops/providers/pause", "id", b.get("/ops/providers/pause").hidden(t, "id"), "provider", "vodafone", "mode", "test", "operation", "*", "reason", "x")
	b.want(http.StatusOK, b.ordered("/ops/providers/pause", "provider", "hubtel", "mode", "test", "operation", string(route.TopUp)), "Applied")
	b.want(http.StatusOK, "/ops/providers", "Paused", "as agreed")
	b.want(http.StatusOK, b.ordered("/ops/providers/resume", "provider", "hubtel", "mode", "test", "operation", "*"), "Applied")
	if p := b.get("/ops/providers"); strings.Contains(p.text, "Paused") {
		t.Error("it is paused still")
	}

	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"smsc"}, "fault": {"throttled"}, "count": {"1000"}})
	b.call("sms-api/send", `{"sender_id":"`+b.ready.SenderID+`","message":"Akwaaba","recipients":["0240000001"]}`)
	campaigns, err := b.messaging.Campaigns(t.Context(), demoTenant, "", 1)
	if err != nil || len(campaigns) != 1 {
		t.Fatal(campaigns, err)
	}
	id := campaigns[0].ID
	b.want(http.StatusForbidden, "/app/"+b.named("Kejetia").ID+"/messages/"+id+"/stop")
	b.want(http.StatusNotFound, "/ops/messages/nothing/stop")
	page := b.get(b.ordered("/app/" + demoTenant + "/messages/" + id + "/stop")).text
	if !strings.Contains(page, "Applied") && !strings.Contains(page, "already") { // the campaign may finish before it is stopped
		t.Error(page)
	}
	b.want(http.StatusOK, "/app/"+demoTenant+"/acts", "Stop the campaign from")
}
