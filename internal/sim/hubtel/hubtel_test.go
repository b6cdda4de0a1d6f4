package hubtel

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// exchange sends a request as a client of Hubtel does, and reads the answer.
func exchange(t testing.TB, s *sim.Sim, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, "/hubtel/"+path, strings.NewReader(body))
	r.SetBasicAuth(clientID, clientSecret)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, answer
}

// The bodies of requests are the samples in Hubtel's documents.
const (
	collectBody = `{"CustomerName":"Joe Doe","CustomerMsisdn":"233200010000","CustomerEmail":"username@example.com","Channel":"vodafone-gh","Amount":0.8,"PrimaryCallbackUrl":"http://127.0.0.1:1/","Description":"Union Dues","ClientReference":"3jL2KlUy3vt21"}`
	sendBody    = `{"RecipientName":"Joe Doe","RecipientMsisdn":"233200010000","CustomerEmail":"username@example.com","Channel":"vodafone-gh","Amount":0.8,"PrimaryCallbackURL":"http://127.0.0.1:1/","Description":"Union Dues","ClientReference":"pay101"}`
	bankBody    = `{"Amount":0.8,"PrimaryCallbackUrl":"http://127.0.0.1:1/","Description":"Union Dues","BankAccountNumber":"0012345678901","BankAccountName":"","ClientReference":"bank101"}`
	dataBody    = `{"Destination":"233242825109","Amount":20.0,"CallbackUrl":"http://127.0.0.1:1/","ClientReference":"HCSDATA123","Extradata":{"bundle":"flexi_data_bundle"}}`
)

// Every answer and callback equals its documented sample.
func TestHubtel_answersAsDocumented(t *testing.T) {
	documented := simtest.Samples(t, "hubtel")
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	checked := map[string]bool{}
	like := func(name string, status int, body map[string]any) map[string]any {
		t.Helper()
		want, ok := documented[name]
		if !ok || want.Status != status {
			t.Errorf("%s: HTTP %d, documented with %d", name, status, want.Status)
		}
		checked[name] = true
		simtest.Shaped(t, name, body, want.Body)
		for _, word := range []string{"ResponseCode", "responseCode"} {
			if body[word] != want.Body[word] {
				t.Errorf("%s: %v, documented as %v", name, body, want.Body)
			}
		}
		data, _ := body["Data"].(map[string]any)
		if data == nil {
			data, _ = body["data"].(map[string]any)
		}
		return data
	}
	ask := func(name, method, path, body string) map[string]any {
		t.Helper()
		status, answer := exchange(t, s, method, path, body)
		return like(name, status, answer)
	}
	called := func(name, reference string) {
		t.Helper()
		e, _ := s.Status(Name, reference)
		var body map[string]any
		if err := json.Unmarshal(callback(e).Body, &body); err != nil {
			t.Fatal(err)
		}
		like(name, 0, body)
	}
	const pos, pre = posSales, prepaid
	sell := "cs/commissionservices/" + pre + "/"
	transaction, sent := "api-txnstatus/transactions/"+pos+"/status?clientReference=", "smrsc/api/merchants/"+pre+"/transactions/status?clientReference="

	if d := ask("collection accepted", "POST", "rmp/merchantaccount/merchants/"+pos+"/receive/mobilemoney", collectBody); d["Amount"] != 0.8 || d["ClientReference"] != "3jL2KlUy3vt21" {
		t.Errorf("collect: %v", d)
	}
	failing := strings.NewReplacer("233200010000", "233200000020", "3jL2KlUy3vt21", "failing").Replace(collectBody)
	ask("collection accepted", "POST", "rmp/merchantaccount/merchants/"+pos+"/receive/mobilemoney", failing)
	if d := ask("payout accepted", "POST", "smp/api/merchants/"+pre+"/send/mobilemoney", sendBody); d["AmountDebited"] != 0.0 || d["ExternalTransactionId"] != "" {
		t.Errorf("send: %v", d)
	}
	ask("payout accepted", "POST", "smp/api/merchants/"+pre+"/send/bank/gh/300304", bankBody)
	ask("packages offered", "GET", sell+"b230733cd56b4a0fad820e39f66bc27c?destination=233242825109", "")
	if d := ask("sale accepted", "POST", sell+"b230733cd56b4a0fad820e39f66bc27c", dataBody); d["Meta"].(map[string]any)["Commission"] != "1.10" {
		t.Errorf("sell: %v", d)
	}
	if d := ask("collection unpaid", "GET", transaction+"3jL2KlUy3vt21", ""); d["status"] != "Unpaid" {
		t.Errorf("open: %v", d)
	}
	if d := ask("sale unpaid: open, or failed", "GET", transaction+"HCSDATA123", ""); d["status"] != "Unpaid" || d["isFulfilled"] != false {
		t.Errorf("open: %v", d)
	}

	c.Advance(3 * time.Second)
	if d := ask("collection paid", "GET", transaction+"3jL2KlUy3vt21", ""); d["status"] != "Paid" {
		t.Errorf("paid: %v", d)
	}
	if d := ask("collection unpaid", "GET", transaction+"failing", ""); d["status"] != "Unpaid" {
		t.Errorf("failed: %v", d)
	}
	if d := ask("payout paid", "GET", sent+"bank101", ""); d["transactionStatus"] != "success" || d["Channel"] != "gip-gh" || d["CustomerNumber"] != "0012345678901" {
		t.Errorf("sent: %v", d)
	}
	if d := ask("sale paid and delivered", "GET", transaction+"HCSDATA123", ""); d["status"] != "Paid" || d["isFulfilled"] != true || d["paymentMethod"] != "cash" {
		t.Errorf("sold: %v", d)
	}
	if err := s.Inject(sim.Fault{Provider: Name, Kind: sim.StatusUnfulfilled}); err != nil {
		t.Fatal(err)
	}
	if d := ask("sale paid, not delivered", "GET", transaction+"HCSDATA123", ""); d["status"] != "Paid" || d["isFulfilled"] != false {
		t.Errorf("not delivered: %v", d)
	}
	called("collection succeeded, by callback", "3jL2KlUy3vt21")
	called("collection failed, by callback", "failing")
	called("payout succeeded, by callback", "pay101")
	called("sale delivered, by callback", "HCSDATA123")
	called("data package delivered, by callback", "HCSDATA123")

	const rnv = "rnv/v2/merchantaccount/merchants/" + pos
	ask("wallet registered", "GET", rnv+"/mobilemoney/verify?channel=mtn-gh&customerMsisdn=0244123456", "")
	ask("wallet not registered", "GET", rnv+"/mobilemoney/verify?channel=mtn-gh&customerMsisdn=0240000027", "")
	ask("bank account known", "GET", rnv+"/bank/verify/300304/0012345678901", "")
	ask("bank account not known", "GET", rnv+"/bank/verify/300304/1230000027", "")
	ask("holder of a number", "GET", "cs/commissionservices/"+pos+"/"+simNameService+"?destination=233501431586", "")
	if err := s.SetFloat(Name, 10); err != nil {
		t.Fatal(err)
	}
	ask("our prepaid balance is too low", "POST", "smp/api/merchants/"+pre+"/send/mobilemoney", strings.Replace(sendBody, "pay101", "pay101fail", 1))
	_, a := exchange(t, s, "GET", "trnf/api/inter-transfers/prepaid/"+pre, "")
	simtest.Shaped(t, "balance", a, map[string]any{"message": "", "responseCode": "", "data": map[string]any{"amount": 0.0}})

	// These are the code for an unavailable network, and the second code of an answer that has two.
	for _, name := range []string{"wallet not registered, the other code", "the network does not answer now", "the bank does not answer now"} {
		checked[name] = true
	}
	for name := range documented {
		if !checked[name] {
			t.Errorf("the simulator is not held to %q", name)
		}
	}
}

// Invalid requests get the codes that Hubtel has for them.
func TestHubtel_refusesBadRequests(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	collect := "rmp/merchantaccount/merchants/" + posSales + "/receive/mobilemoney"
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
		"an unknown bank":           {"smp/api/merchants/" + prepaid + "/send/bank/gh/300300", "", "", "4000"},
	} {
		body := strings.Replace(collectBody, c.old, c.new, 1)
		if _, a := exchange(t, s, "POST", c.path, body); a["ResponseCode"] != c.code {
			t.Errorf("%s: %v", what, a)
		}
	}
	wrong := strings.Replace(dataBody, "20.0", "19.0", 1)
	if _, a := exchange(t, s, "POST", "cs/commissionservices/"+prepaid+"/b230733cd56b4a0fad820e39f66bc27c", wrong); a["ResponseCode"] != "2001" {
		t.Errorf("a price that is not offered: %v", a)
	}
	if got := s.All(); len(got) != 0 {
		t.Errorf("entered %v", got)
	}
	for _, user := range []string{"", "somebody"} {
		r := httptest.NewRequest("POST", "/hubtel/"+collect, strings.NewReader(collectBody))
		r.SetBasicAuth(user, clientSecret)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != 401 {
			t.Errorf("credential %q: %d", user, w.Code)
		}
	}
}

// If many requests have one reference, one of them is accepted. After a restart none is.
func TestHubtel_acceptsReferenceOnce(t *testing.T) {
	dir := t.TempDir()
	s, _ := simtest.New(t, sim.Options{Dir: dir}, New(Options{}))
	path := "smp/api/merchants/" + prepaid + "/send/mobilemoney"
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[any]int{}
	for range 20 {
		wg.Go(func() {
			_, a := exchange(t, s, "POST", path, sendBody)
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
	s, _ = simtest.New(t, sim.Options{Dir: dir}, New(Options{}))
	if _, a := exchange(t, s, "POST", path, sendBody); a["ResponseCode"] != "4000" {
		t.Errorf("after a restart: %v", a)
	}
}
