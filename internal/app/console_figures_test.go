package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/test/clocktest"
)

// The home page of an account shows its money. The available amount is the wallet_balance of the interface. The amount on hold
// is the sum of the open payments in the linked list.
func TestHome_figuresAreThoseOfTheirRows(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.paid()
	app := "/app/" + demoTenant
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"answer_lost"}, "count": {"1"}})
	b.do(http.MethodPost, "/sim/faults", url.Values{"provider": {"hubtel"}, "fault": {"status_not_found"}, "count": {"1000"}})
	b.call("payment-api/send/mobilemoney", `{"amount":"250.00","channel":"TELECEL","account_number":"0200000001","client_reference":"payout-of-november-01"}`)
	b.do(http.MethodPost, "/sim/clock", url.Values{"seconds": {"120"}})
	b.until(app+"/payouts", "Outcome unknown")
	if err := errors.Join(b.figures.Sum(t.Context()), b.routes.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	var balance struct {
		Data struct {
			Wallet json.Number `json:"wallet_balance"`
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.ready.APIURL+"/account-api/balance", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-api-key", b.ready.APIKey)
	if err := json.Unmarshal([]byte(b.read(r).text), &balance); err != nil {
		t.Fatal(err)
	}
	available := "GHS " + money.Grouped(balance.Data.Wallet.String())
	b.want(http.StatusOK, app, "Available", available, "On hold", "Payouts GHS 252.50", "Payouts: 1 outcome is unknown", "Successful payments, 30 days", "Show numbers")
	b.want(http.StatusOK, app+"/payouts?status=pending", "payout-of-november-01", "In all GHS 250.00, with fees of GHS 2.50")
	b.want(http.StatusOK, app+"/payouts?status=unknown", "payout-of-november-01")
	b.want(http.StatusOK, app+"/payouts?least=250.01", "No payment matches these filters")
	b.want(http.StatusOK, "/ops", "Open payments by age", "1 payment, GHS 250.00", "Successful payments by provider", "Response times of providers", "Payout status query", "Last backup")
	b.want(http.StatusOK, "/ops/float?ask=yes", "s balance", "differs")
}

const giveUp = `UPDATE webhook_events SET state = 'failed', ended_at = created_at, failed_at = created_at WHERE tenant = $1`

// The page of webhooks lists each address with its success rate. It sends failed webhooks again, and the audit log records this.
func TestWebhooksPage_resendsFailed(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	here := "/app/" + demoTenant + "/webhooks"
	b.want(http.StatusOK, here, "/sim/hooks/"+demoTenant, "100%", "Every webhook was delivered")
	if err := b.db.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(giveUp, demoTenant); return err }); err != nil {
		t.Fatal(err)
	}
	b.want(http.StatusOK, here, "0%", "/payments/"+id, "Resend failed webhooks")
	b.want(http.StatusOK, "/app/"+demoTenant, "1 webhook was not delivered")
	if p := b.do(http.MethodPost, here, url.Values{"since": {"ever"}}); p.StatusCode != http.StatusUnprocessableEntity && p.StatusCode != http.StatusBadRequest {
		t.Errorf("a time that is not offered: %d", p.StatusCode)
	}
	if p := b.do(http.MethodPost, here, url.Values{"since": {"day"}}); p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != here+"?sent=1" {
		t.Fatalf("%d %s", p.StatusCode, p.Header.Get("Location"))
	}
	clocktest.Await(t, "the webhook once more", func() bool { return strings.Contains(b.get(here).text, "100%") })
	b.want(http.StatusOK, "/ops/audit?action=webhook.replay", "Adom Stores")
}
