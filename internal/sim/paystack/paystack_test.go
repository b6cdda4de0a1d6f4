package paystack

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// exchange sends a request as a client of Paystack does and reads the answer.
func exchange(t testing.TB, s *sim.Sim, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	prefix := "/paystack/"
	if strings.HasPrefix(path, "sim/") {
		prefix = "/"
	}
	r := httptest.NewRequest(method, prefix+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secretKey)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, answer
}

const (
	momo     = `{"type":"mobile_money","name":"Ama Sample","account_number":"0551234987","bank_code":"MTN","currency":"GHS"}`
	transfer = `{"source":"balance","amount":100000,"recipient":"RECIPIENT","reference":"makola-sample-000001","reason":"Sample","currency":"GHS"}`
)

// recipientFor makes the recipient of a body and returns its code.
func recipientFor(t *testing.T, s *sim.Sim, body string) string {
	t.Helper()
	_, a := exchange(t, s, "POST", "transferrecipient", body)
	data, _ := a["data"].(map[string]any)
	code, _ := data["recipient_code"].(string)
	return code
}

// Every answer and event has the members of its sample, and refusals also have its words.
func TestPaystack_answersAsDocumented(t *testing.T) {
	documented := simtest.Samples(t, "paystack")
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	checked := map[string]bool{}
	like := func(name string, status int, body map[string]any) {
		t.Helper()
		want, ok := documented[name]
		if !ok || want.Status != status {
			t.Errorf("%s: HTTP %d, documented with %d: %v", name, status, want.Status, body)
		}
		checked[name] = true
		simtest.Shaped(t, name, body, want.Body)
		if want.Body["status"] != body["status"] || body["status"] == false && want.Body["message"] != body["message"] && name != "duplicates in a bulk" ||
			want.Body["code"] != body["code"] || want.Body["event"] != body["event"] {
			t.Errorf("%s: %v, documented as %v", name, body, want.Body)
		}
	}
	ask := func(name, method, path, body string) map[string]any {
		t.Helper()
		status, answer := exchange(t, s, method, path, body)
		like(name, status, answer)
		data, _ := answer["data"].(map[string]any)
		return data
	}
	event := func(name, reference string) {
		t.Helper()
		e, _ := s.Status(Name, reference)
		var body map[string]any
		if err := json.Unmarshal((&paystack{}).event(e).Body, &body); err != nil {
			t.Fatal(err)
		}
		like(name, 0, body)
	}
	code, _ := ask("recipient created", "POST", "transferrecipient", momo)["recipient_code"].(string)
	if again := recipientFor(t, s, momo); again != code || code == "" {
		t.Errorf("the same account is %s and %s", code, again)
	}
	send := strings.Replace(transfer, "RECIPIENT", code, 1)
	ask("transfer queued", "POST", "transfer", send)
	ask("reference used before", "POST", "transfer", send)
	ask("recipient unknown", "POST", "transfer", transfer)
	ask("transfer not known", "GET", "transfer/verify/makola-sample-000009", "")
	c.Advance(3 * time.Second)
	if d := ask("transfer paid", "GET", "transfer/verify/makola-sample-000001", ""); d["status"] != "success" || d["fee_charged"] != 100.0 {
		t.Errorf("paid: %v", d)
	}
	event("transfer succeeded, by event", "makola-sample-000001")
	s.ReverseEntry(Name, "makola-sample-000001")
	event("transfer reversed, by event", "makola-sample-000001")
	failing := recipientFor(t, s, strings.Replace(momo, "0551234987", "0550000024", 1))
	exchange(t, s, "POST", "transfer", strings.NewReplacer("RECIPIENT", failing, "000001", "000002").Replace(transfer))
	c.Advance(3 * time.Second)
	event("transfer failed, by event", "makola-sample-000002")
	row := func(reference string) string {
		return `{"amount":100,"recipient":"` + code + `","reference":"makola-sample-` + reference + `","reason":"x"}`
	}
	ask("bulk queued", "POST", "transfer/bulk", `{"source":"balance","currency":"GHS","transfers":[`+row("000003")+`,`+row("000004")+`]}`)
	ask("duplicates in a bulk", "POST", "transfer/bulk", `{"source":"balance","currency":"GHS","transfers":[`+row("000003")+`,`+row("000005")+`]}`)
	ask("OTPs are switched on", "POST", "transfer/enable_otp", "")
	ask("transfer waits for an OTP", "POST", "transfer", strings.Replace(send, "000001", "000006", 1))
	ask("OTP is wrong", "POST", "transfer/finalize_transfer", `{"transfer_code":"TRF_51a0000000000005","otp":"000000"}`)
	ask("OTPs are switched off: first step", "POST", "transfer/disable_otp", "")
	ask("OTPs are switched off: second step", "POST", "transfer/disable_otp_finalize", `{"otp":"123456"}`)
	ask("account known", "GET", "bank/resolve?account_number=0551234987&bank_code=MTN", "")
	ask("account not known", "GET", "bank/resolve?account_number=0550000027&bank_code=MTN", "")
	ask("bank not known", "GET", "bank/resolve?account_number=0551234987&bank_code=300304", "")
	ask("mobile money networks", "GET", "bank?currency=GHS&type=mobile_money", "")
	ask("balance", "GET", "balance", "")
	ask("balance ledger", "GET", "balance/ledger", "")
	charge := func(provider, phone, reference string) string {
		return `{"amount":100,"email":"ama@example.com","currency":"GHS","reference":"makola-sample-` + reference + `","mobile_money":{"phone":"` + phone + `","provider":"` + provider + `"}}`
	}
	ask("payer is prompted", "POST", "charge", charge("MTN", "0551234987", "000101"))
	ask("charge reference used before", "POST", "charge", charge("mtn", "0551234987", "000101"))
	ask("charge checked: pending", "GET", "charge/makola-sample-000101", "")
	c.Advance(3 * time.Second)
	ask("transaction paid", "GET", "transaction/verify/makola-sample-000101", "")
	event("charge succeeded, by event", "makola-sample-000101")
	ask("charged at once", "POST", "charge", charge("atl", "0270000001", "000102"))
	ask("charge is late", "POST", "charge", charge("atl", "0270000002", "000103"))
	ask("no e-mail address", "POST", "charge", strings.Replace(charge("mtn", "0551234987", "000104"), "ama@example.com", "", 1))
	ask("voucher wanted", "POST", "charge", charge("vod", "0200000000", "000105"))
	ask("charge checked: voucher wanted", "GET", "charge/makola-sample-000105", "")
	ask("voucher for another charge", "POST", "charge/submit_otp", `{"otp":"123456","reference":"makola-sample-000101"}`)
	ask("voucher taken", "POST", "charge/submit_otp", `{"otp":"123456","reference":"makola-sample-000105"}`)
	ask("voucher wanted", "POST", "charge", charge("vod", "0200000000", "000106"))
	ask("voucher refused", "POST", "charge/submit_otp", `{"otp":"111111","reference":"makola-sample-000106"}`)
	exchange(t, s, "POST", "charge", charge("mtn", "0240000022", "000107"))
	c.Advance(3 * time.Second)
	ask("charge checked: failed", "GET", "charge/makola-sample-000107", "")
	ask("charge not known", "GET", "charge/makola-sample-000199", "")
	ask("transaction not known", "GET", "transaction/verify/makola-sample-000199", "")
	back := func(of, note string) string {
		return `{"transaction":"makola-sample-` + of + `","amount":50,"merchant_note":"Makola ` + strings.Repeat(note, 32) + `"}`
	}
	queued := ask("refund queued", "POST", "refund", back("000101", "a"))
	c.Advance(3 * time.Second)
	ask("refunds listed", "GET", "refund", "")
	ask("refund fetched", "GET", fmt.Sprintf("refund/%.0f", queued["id"]), "")
	ask("refund in another state", "POST", fmt.Sprintf("refund/retry_with_customer_details/%.0f", queued["id"]), "{}")
	event("refund processed, by event", strings.Repeat("a", 32))
	exchange(t, s, "POST", "refund", back("000107", "b")) // the refund of an unpaid charge
	c.Advance(3 * time.Second)
	event("refund failed, by event", strings.Repeat("b", 32))
	exchange(t, s, "POST", "charge", charge("mtn", "0240000003", "000108"))
	s.Resolve(Name, "makola-sample-000108", sim.Success, "")
	exchange(t, s, "POST", "refund", back("000108", "c"))
	checked["refund needs-attention, by event"], checked["refund pending, by event"] = true, true // the simulator sends only final events
	if err := s.SetFloat(Name, 10); err != nil {
		t.Fatal(err)
	}
	ask("our balance is too low", "POST", "transfer", strings.Replace(send, "000001", "000007", 1))
	checked["wrong key"] = true // see TestPaystack_key
	for name := range documented {
		if !checked[name] {
			t.Errorf("the simulator is not held to %q", name)
		}
	}
}

// Requests without the secret key are refused.
func TestPaystack_key(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	for _, key := range []string{"", "Bearer ", "Bearer sk_test_other", secretKey} {
		r := httptest.NewRequest("GET", "/paystack/balance", nil)
		r.Header.Set("Authorization", key)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != 401 || !strings.Contains(w.Body.String(), `"message":"Invalid key"`) {
			t.Errorf("%q: %d %s", key, w.Code, w.Body)
		}
	}
}

// References with other characters or lengths than Paystack's, and amounts that are not whole pesewas, are refused.
func TestPaystack_refusesBadTransfers(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	send := strings.Replace(transfer, "RECIPIENT", recipientFor(t, s, momo), 1)
	for _, change := range []struct{ from, to string }{
		{"makola-sample-000001", "short"}, {"makola-sample-000001", "Makola-Sample-000001"}, {"makola-sample-000001", strings.Repeat("a", 51)},
		{"100000", "0"}, {"100000", "10.5"}, {"100000", "-1"}, {`"balance"`, `"bank"`}, {`"GHS"`, `"NGN"`}, {"{", ""},
	} {
		if status, a := exchange(t, s, "POST", "transfer", strings.Replace(send, change.from, change.to, 1)); status != 400 || a["status"] != false {
			t.Errorf("%s: %d %v", change.to, status, a)
		}
	}
	for _, body := range []string{strings.Replace(momo, "MTN", "XYZ", 1), strings.Replace(momo, "0551234987", "233551234987", 1), strings.Replace(momo, "mobile_money", "ghipss", 1)} {
		if code := recipientFor(t, s, body); code != "" {
			t.Errorf("%s is recipient %s", body, code)
		}
	}
	if len(s.All()) != 0 {
		t.Errorf("something moved: %v", s.All())
	}
}

// The balances of the ledger's rows follow from each other, and the newest row has the current balance.
func TestLedger_chains(t *testing.T) {
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	send := strings.Replace(transfer, "RECIPIENT", recipientFor(t, s, momo), 1)
	for _, n := range []string{"000001", "000002", "000003"} {
		exchange(t, s, "POST", "transfer", strings.Replace(send, "000001", n, 1))
		c.Advance(3 * time.Second)
	}
	s.ReverseEntry(Name, "makola-sample-000002")
	_, a := exchange(t, s, "GET", "balance/ledger?perPage=100", "")
	rows, _ := a["data"].([]any)
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	after := float64(s.Float(Name))
	for _, each := range rows {
		row, _ := each.(map[string]any)
		if row["balance"] != after {
			t.Errorf("balance %v, want %v", row["balance"], after)
		}
		difference, _ := row["difference"].(float64)
		after -= difference
	}
	if after != float64(s.Opening(Name)) {
		t.Errorf("the ledger begins at %v", after)
	}
}

// The controls switch OTPs on and off, and set the address of events.
func TestControls_dashboard(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	if status, _ := exchange(t, s, "POST", "sim/v1/paystack", `{"event_url":"nowhere"}`); status != 422 {
		t.Errorf("a bad address: %d", status)
	}
	exchange(t, s, "POST", "sim/v1/paystack", `{"otp":true,"event_url":"http://127.0.0.1:1/x"}`)
	_, a := exchange(t, s, "POST", "sim/v1/paystack", `{}`)
	if data, _ := a["data"].(map[string]any); data["otp"] != true || data["event_url"] != "http://127.0.0.1:1/x" {
		t.Errorf("%v", a)
	}
}
