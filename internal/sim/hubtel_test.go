package sim

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
)

// hubtelAsk sends a request as a client of Hubtel's does and reads the answer.
func hubtelAsk(t testing.TB, s *Sim, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, "/hubtel/"+path, strings.NewReader(body))
	r.SetBasicAuth(hubtelID, hubtelSecret)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, answer
}

func manualSim(t *testing.T, dir string) (*Sim, *clock.Clock) {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC))
	s, err := New(Options{Dir: dir, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// The bodies are the samples of Hubtel's documents.
const (
	hubtelCollectBody = `{"CustomerName":"Joe Doe","CustomerMsisdn":"233200010000","CustomerEmail":"username@example.com","Channel":"vodafone-gh","Amount":0.8,"PrimaryCallbackUrl":"http://127.0.0.1:1/","Description":"Union Dues","ClientReference":"3jL2KlUy3vt21"}`
	hubtelSendBody    = `{"RecipientName":"Joe Doe","RecipientMsisdn":"233200010000","CustomerEmail":"username@example.com","Channel":"vodafone-gh","Amount":0.8,"PrimaryCallbackURL":"http://127.0.0.1:1/","Description":"Union Dues","ClientReference":"pay101"}`
	hubtelBankBody    = `{"Amount":0.8,"PrimaryCallbackUrl":"http://127.0.0.1:1/","Description":"Union Dues","BankAccountNumber":"0012345678901","BankAccountName":"","ClientReference":"bank101"}`
	hubtelDataBody    = `{"Destination":"233242825109","Amount":20.0,"CallbackUrl":"http://127.0.0.1:1/","ClientReference":"HCSDATA123","Extradata":{"bundle":"flexi_data_bundle"}}`
)

// members fails the test where an answer's data lacks one of the documented names.
func members(t *testing.T, answer map[string]any, data string, names ...string) map[string]any {
	t.Helper()
	d, _ := answer[data].(map[string]any)
	for _, name := range names {
		if _, ok := d[name]; !ok {
			t.Errorf("no %s in %v", name, answer)
		}
	}
	return d
}

func TestHubtelAnswersAsDocumented(t *testing.T) {
	s, c := manualSim(t, "")
	defer s.Close()
	status, a := hubtelAsk(t, s, "POST", "rmp/merchantaccount/merchants/"+hubtelPOS+"/receive/mobilemoney", hubtelCollectBody)
	d := members(t, a, "Data", "TransactionId", "Description", "ClientReference", "Amount", "Charges", "AmountAfterCharges", "AmountCharged", "DeliveryFee")
	if status != 200 || a["ResponseCode"] != "0001" || d["Amount"] != 0.8 || d["ClientReference"] != "3jL2KlUy3vt21" {
		t.Errorf("collect: %d %v", status, a)
	}
	status, a = hubtelAsk(t, s, "POST", "smp/api/merchants/"+hubtelPrepaid+"/send/mobilemoney", hubtelSendBody)
	d = members(t, a, "Data", "AmountDebited", "TransactionId", "Description", "ClientReference", "ExternalTransactionId", "Amount", "Charges", "Meta", "RecipientName")
	if status != 200 || a["ResponseCode"] != "0001" || d["AmountDebited"] != 0.0 || d["ExternalTransactionId"] != "" {
		t.Errorf("send: %d %v", status, a)
	}
	if status, a = hubtelAsk(t, s, "POST", "smp/api/merchants/"+hubtelPrepaid+"/send/bank/gh/300304", hubtelBankBody); status != 200 || a["ResponseCode"] != "0001" {
		t.Errorf("bank: %d %v", status, a)
	}
	if status, a = hubtelAsk(t, s, "POST", "cs/commissionservices/"+hubtelPrepaid+"/b230733cd56b4a0fad820e39f66bc27c", hubtelDataBody); status != 200 || a["ResponseCode"] != "0001" {
		t.Errorf("data: %d %v", status, a)
	}
	_, a = hubtelAsk(t, s, "GET", "api-txnstatus/transactions/"+hubtelPOS+"/status?clientReference=3jL2KlUy3vt21", "")
	if d := a["data"].(map[string]any); d["status"] != "Unpaid" || a["responseCode"] != "0000" {
		t.Errorf("open: %v", a)
	}
	c.Advance(3 * time.Second)
	_, a = hubtelAsk(t, s, "GET", "api-txnstatus/transactions/"+hubtelPOS+"/status?clientReference=3jL2KlUy3vt21", "")
	d = members(t, a, "data", "date", "status", "transactionId", "externalTransactionId", "paymentMethod", "clientReference", "currencyCode", "amount", "charges", "amountAfterCharges", "isFulfilled")
	if d["status"] != "Paid" || a["responseCode"] != "0000" {
		t.Errorf("paid: %v", a)
	}
	_, a = hubtelAsk(t, s, "GET", "smrsc/api/merchants/"+hubtelPrepaid+"/transactions/status?clientReference=bank101", "")
	d = members(t, a, "Data", "TransactionId", "networkTransactionId", "Amount", "Fees", "ClientReference", "Channel", "CustomerNumber", "transactionStatus", "CreatedAt")
	if a["ResponseCode"] != "success" || d["transactionStatus"] != "success" || d["Channel"] != "gip-gh" || d["CustomerNumber"] != "0012345678901" {
		t.Errorf("sent: %v", a)
	}
	_, a = hubtelAsk(t, s, "GET", "cs/commissionservices/"+hubtelPrepaid+"/transactionstatus?clientReference=HCSDATA123", "")
	d = members(t, a, "Data", "AmountDebited", "TransactionId", "ClientReference", "Description", "ExternalTransactionId", "Amount", "Charges", "Meta", "RecipientName")
	if meta, _ := d["Meta"].(map[string]any); a["ResponseCode"] != "0000" || d["AmountDebited"] != 20.0 || meta["Commission"] != "1.10" {
		t.Errorf("bundle: %v", a)
	}
	_, a = hubtelAsk(t, s, "GET", "trnf/api/inter-transfers/prepaid/"+hubtelPrepaid, "")
	members(t, a, "data", "amount")
}

func TestHubtelRefuses(t *testing.T) {
	s, _ := manualSim(t, "")
	defer s.Close()
	collect := "rmp/merchantaccount/merchants/" + hubtelPOS + "/receive/mobilemoney"
	for what, c := range map[string]struct{ path, old, new, code string }{
		"another account":           {"rmp/merchantaccount/merchants/1/receive/mobilemoney", "", "", "4101"},
		"three decimals":            {collect, "0.8", "0.801", "4000"},
		"nothing":                   {collect, "0.8", "0", "4000"},
		"a channel of its own":      {collect, "vodafone-gh", "glo-gh", "4000"},
		"a reference with a hyphen": {collect, "3jL2KlUy3vt21", "3jL2-KlUy3vt21", "4000"},
		"a reference too long":      {collect, "3jL2KlUy3vt21", strings.Repeat("a", 37), "4000"},
		"a description with signs":  {collect, "Union Dues", "50% & more", "4000"},
		"no callback URL":           {collect, "http://127.0.0.1:1/", "", "4000"},
		"no JSON":                   {collect, "{", "", "4000"},
		"an unknown bank":           {"smp/api/merchants/" + hubtelPrepaid + "/send/bank/gh/300300", "", "", "4000"},
	} {
		body := strings.Replace(hubtelCollectBody, c.old, c.new, 1)
		if _, a := hubtelAsk(t, s, "POST", c.path, body); a["ResponseCode"] != c.code {
			t.Errorf("%s: %v", what, a)
		}
	}
	wrong := strings.Replace(hubtelDataBody, "20.0", "19.0", 1)
	if _, a := hubtelAsk(t, s, "POST", "cs/commissionservices/"+hubtelPrepaid+"/b230733cd56b4a0fad820e39f66bc27c", wrong); a["ResponseCode"] != "2001" {
		t.Errorf("a price that is not offered: %v", a)
	}
	if got := s.All(); len(got) != 0 {
		t.Errorf("entered %v", got)
	}
	for _, user := range []string{"", "somebody"} {
		r := httptest.NewRequest("POST", "/hubtel/"+collect, strings.NewReader(hubtelCollectBody))
		r.SetBasicAuth(user, hubtelSecret)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != 401 {
			t.Errorf("credential %q: %d", user, w.Code)
		}
	}
}

// TestHubtelReferenceOnce: of many requests with one reference one is taken,
// and after a restart none.
func TestHubtelReferenceOnce(t *testing.T) {
	dir := t.TempDir()
	s, _ := manualSim(t, dir)
	path := "smp/api/merchants/" + hubtelPrepaid + "/send/mobilemoney"
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[any]int{}
	for range 20 {
		wg.Go(func() {
			_, a := hubtelAsk(t, s, "POST", path, hubtelSendBody)
			mu.Lock()
			defer mu.Unlock()
			codes[a["ResponseCode"]]++
		})
	}
	wg.Wait()
	if codes["0001"] != 1 || codes["4000"] != 19 {
		t.Errorf("codes %v", codes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = manualSim(t, dir)
	defer s.Close()
	if _, a := hubtelAsk(t, s, "POST", path, hubtelSendBody); a["ResponseCode"] != "4000" {
		t.Errorf("after a restart: %v", a)
	}
}
