package pawapay

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// exchange sends a request as a client of pawaPay does and reads the answer.
func exchange(t testing.TB, s *sim.Sim, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, "/"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, answer
}

const id = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"

func order(idName, id, side, number, more string) string {
	return `{"` + idName + `":"` + id + `","` + side + `":{"type":"MMO","accountDetails":{"phoneNumber":"` + number + `","provider":"MTN_MOMO_GHA"}},"amount":"15","currency":"GHS","customerMessage":"To ACME company"` + more + `}`
}

// Every answer has the members of its sample.
func TestPawaPay_answersAsDocumented(t *testing.T) {
	documented := simtest.Samples(t, "pawapay")
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	ask := func(name, method, path, body string) map[string]any {
		t.Helper()
		status, answer := exchange(t, s, method, "pawapay/v2/"+path, body)
		want, ok := documented[name]
		if !ok || want.Status != status || want.Body["status"] != answer["status"] {
			t.Errorf("%s: HTTP %d %v, documented with %d: %v", name, status, answer, want.Status, want.Body)
		}
		simtest.Shaped(t, name, answer, want.Body)
		return answer
	}
	deposit := order("depositId", id, "payer", "233593456789", "")
	ask("not found", "GET", "deposits/"+id, "")
	ask("accepted", "POST", "deposits", deposit)
	ask("used id ignored", "POST", "deposits", deposit)
	ask("deposit processing", "GET", "deposits/"+id, "")
	c.Advance(3 * time.Second)
	ask("deposit completed", "GET", "deposits/"+id, "")
	ask("not found", "GET", "payouts/"+id, "") // this is the id of a deposit
	const second, third, fourth = "f4401bd2-1568-4140-bf2d-eb77d2b2b630", "f4401bd2-1568-4140-bf2d-eb77d2b2b631", "f4401bd2-1568-4140-bf2d-eb77d2b2b632"
	exchange(t, s, "POST", "pawapay/v2/payouts", order("payoutId", second, "recipient", "233593456789", ""))
	exchange(t, s, "POST", "pawapay/v2/payouts", order("payoutId", third, "recipient", "233593456089", ""))
	exchange(t, s, "POST", "pawapay/v2/payouts", order("payoutId", fourth, "recipient", "233240000002", ""))
	c.Advance(3 * time.Second)
	ask("payout completed", "GET", "payouts/"+second, "")
	ask("payout failed with RECIPIENT_NOT_FOUND", "GET", "payouts/"+third, "")
	ask("payout enqueued", "GET", "payouts/"+fourth, "")
	ask("phone number", "POST", "payouts", strings.Replace(order("payoutId", id, "recipient", "0593456789", ""), id, "f4401bd2-1568-4140-bf2d-eb77d2b2b633", 1))
	ask("request not read", "POST", "payouts", "{")
	ask("balances", "GET", "wallet-balances", "")
}

// The status repeats the client's reference, which the answers of documented samples may have.
func TestPawaPay_repeatsClientReference(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	exchange(t, s, "POST", "pawapay/v2/payouts", order("payoutId", id, "recipient", "233593456789", `,"clientReferenceId":"INV-1"`))
	_, a := exchange(t, s, "GET", "pawapay/v2/payouts/"+id, "")
	data, _ := a["data"].(map[string]any)
	to, _ := data["recipient"].(map[string]any)
	if wallet, _ := to["accountDetails"].(map[string]any); data["clientReferenceId"] != "INV-1" || wallet["provider"] != "MTN_MOMO_GHA" {
		t.Errorf("%v", a)
	}
}

// A request that pawaPay's form does not take moves nothing.
func TestPawaPay_refusesWhatIsWrong(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	good := order("payoutId", id, "recipient", "233593456789", "")
	for code, body := range map[string]string{
		"INVALID_AMOUNT":       strings.Replace(good, `"15"`, `"015"`, 1),
		"INVALID_CURRENCY":     strings.Replace(good, "GHS", "USD", 1),
		"INVALID_PROVIDER":     strings.Replace(good, "MTN_MOMO_GHA", "MTN_MOMO_ZMB", 1),
		"INVALID_PHONE_NUMBER": strings.Replace(good, "233593456789", "+233593456789", 1),
		"INVALID_PARAMETER":    strings.Replace(good, id, "f4401bd2-1568-1140-bf2d-eb77d2b2b639", 1),
		"MISSING_PARAMETER":    strings.Replace(good, "recipient", "payer", 1),
	} {
		_, a := exchange(t, s, "POST", "pawapay/v2/payouts", body)
		reason, _ := a["failureReason"].(map[string]any)
		if a["status"] != "REJECTED" || reason["failureCode"] != code {
			t.Errorf("%s: %v", code, a)
		}
	}
	if len(s.All()) != 0 {
		t.Errorf("something moved: %v", s.All())
	}
}

// The controls set the callback address and the answer to a repeated id.
func TestControls_dashboard(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	if status, _ := exchange(t, s, "POST", "sim/v1/pawapay", `{"callback_url":"nowhere"}`); status != 422 {
		t.Errorf("a bad address: %d", status)
	}
	exchange(t, s, "POST", "sim/v1/pawapay", `{"reject_repeats":true,"callback_url":"http://127.0.0.1:1/x"}`)
	_, a := exchange(t, s, "GET", "sim/v1/pawapay", "")
	if data, _ := a["data"].(map[string]any); data["reject_repeats"] != true || data["callback_url"] != "http://127.0.0.1:1/x" {
		t.Errorf("%v", a)
	}
}
