package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
)

// The page of a statement shows the same balances as the account's home page, and its file has each movement between them.
func TestStatementPage_agreesWithTheWallet(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	b.call("payment-api/send/mobilemoney", `{"amount":"75.40","channel":"MTN","account_number":"0240000001","client_reference":"statement-page-1","account_name":"Ama Mensah"}`)
	today := b.clock.Now().UTC().Format("2006-01-02")
	for _, base := range []string{"/app/" + demoTenant, "/ops/tenants/" + demoTenant} {
		p := b.want(http.StatusOK, base+"/statement", "Opening balance", "Closing balance", "statement-page-1", "GHS 75.40", "Wallet funded", "This is not a tax invoice", "Totals")
		if !strings.Contains(p.text, "5,000.00") {
			t.Errorf("%s has no balance: %s", base, p.text)
		}
		b.want(http.StatusOK, base+"/statement?balance=sms", "SMS credits", "Credits bought")
		b.want(http.StatusOK, base+"/statement?from=2020-01-01&to=2020-01-31", "No movements", "1 January 2020 to 31 January 2020")
		file := b.want(http.StatusOK, base+"/statement.csv?from="+today, "Opening balance", "Closing balance", "statement-page-1").text
		if lines := strings.Count(file, "\n"); lines < 5 {
			t.Errorf("%s: %d lines: %s", base, lines, file)
		}
		if x := b.get(base + "/statement.xlsx"); x.StatusCode != http.StatusOK || !strings.HasPrefix(x.text, "PK") {
			t.Errorf("%s: the workbook is %d %.20q", base, x.StatusCode, x.text)
		}
		for _, query := range []string{"balance=all", "from=2026-02-01&to=2026-01-01", "page=0", "page=5001", "from=yesterday"} {
			if p := b.get(base + "/statement?" + query); p.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%s?%s: %d", base, query, p.StatusCode)
			}
		}
	}
}

// A person without the permission sees no full number on a statement or in its file.
func TestStatementPage_masksNumbers(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.call("payment-api/send/mobilemoney", `{"amount":"75.40","channel":"MTN","account_number":"0240000001","client_reference":"pay-0240000001-now","account_name":"Ama Mensah"}`)
	for _, role := range []roles.Role{roles.Finance, roles.Auditor} {
		b.become(string(role)+"@example.com", identity.Membership{Tenant: demoTenant, Role: role})
		for _, file := range []string{"/statement", "/statement.csv"} {
			p := b.want(http.StatusOK, "/app/"+demoTenant+file)
			if strings.Contains(p.text, "240000001") || strings.Contains(p.text, "Ama Mensah") {
				t.Errorf("%s reads in %s: %s", role, file, p.text)
			}
		}
	}
	b.become("support@example.com", identity.Membership{Tenant: demoTenant, Role: roles.Support})
	b.want(http.StatusForbidden, "/app/"+demoTenant+"/statement")
}

// The page of a payment shows where its money is. Its receipt has the details that the law requires.
func TestPaymentPage_tellsWhereTheMoneyIs(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	b.call("payment-api/send/mobilemoney", `{"amount":"75.40","channel":"TELECEL","account_number":"0200000001","client_reference":"receipt-0001","account_name":"Ama Mensah"}`)
	open := b.the("receipt-0001")
	for _, base := range []string{"/app/" + demoTenant, "/ops"} {
		page := base + "/payments/" + open
		b.until(page, "GHS 75.40 was paid to the recipient on")
		b.want(http.StatusOK, page+"/receipt", "GHS 75.40", "Payout, Telecel", "receipt-0001", "Date and time (UTC)", "Paid to", "233200000001", "Fees", "GHS 0.75")
		b.post(http.StatusSeeOther, page+"/ask").leads(t, page)
	}
	b.ask("10.00", "0240000040", "receipt-0002")
	waiting := "/app/" + demoTenant + "/payments/" + b.the("receipt-0002")
	b.want(http.StatusOK, waiting, "The wallet has not changed", "when the payer has paid", "Query provider now")
	b.want(http.StatusConflict, waiting+"/receipt", "has not ended")
	b.post(http.StatusSeeOther, waiting+"/ask").leads(t, waiting)
}
