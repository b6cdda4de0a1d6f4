package moolre

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// exchange sends a request as a client of Moolre does and reads the answer.
func exchange(t testing.TB, s *sim.Sim, method, path, body string, headers ...string) (status int, answer map[string]any) {
	t.Helper()
	if !strings.HasPrefix(path, "sim/") {
		path = "moolre/" + path
	}
	r := httptest.NewRequest(method, "/"+path, strings.NewReader(body))
	r.Header.Set("X-API-USER", user)
	r.Header.Set("X-API-KEY", privateKey)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, answer
}

func payment(number, reference, more string) string {
	return `{"type":1,"channel":"13","currency":"GHS","payer":"` + number + `","amount":"1.00","externalref":"` + reference + `","accountnumber":"` + account + `"` + more + `}`
}

func payout(number, reference string) string {
	return `{"type":1,"channel":"1","currency":"GHS","receiver":"` + number + `","amount":"5","externalref":"` + reference + `","accountnumber":"` + account + `"}`
}

func question(reference string) string {
	return `{"type":1,"idtype":"1","id":"` + reference + `","accountnumber":"` + account + `"}`
}

// Every answer has the members and the code of its sample. Its status is a number or a text, like the sample's.
func TestMoolre_answersAsDocumented(t *testing.T) {
	documented := simtest.Samples(t, "moolre")
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	checked := map[string]bool{}
	like := func(name string, status int, body map[string]any) {
		t.Helper()
		want, ok := documented[name]
		if !ok || want.Status != status || want.Body["status"] != body["status"] || want.Body["code"] != body["code"] {
			t.Errorf("%s: HTTP %d %v, documented with %d: %v", name, status, body, want.Status, want.Body)
		}
		checked[name] = true
		simtest.Shaped(t, name, body, want.Body)
	}
	ask := func(name, method, path, body string, headers ...string) map[string]any {
		t.Helper()
		status, answer := exchange(t, s, method, path, body, headers...)
		like(name, status, answer)
		return answer
	}
	const pay, send, state, wallet = "open/transact/payment", "open/transact/transfer", "open/transact/status", "open/account/status"
	ask("payer is prompted", "POST", pay, payment("0551234987", "order-1", ""))
	ask("reference used before", "POST", pay, payment("0551234987", "order-1", ""))
	ask("not found, or not approved yet", "POST", state, question("order-1"))
	c.Advance(3 * time.Second)
	ask("payment status", "POST", state, question("order-1"))
	e, _ := s.Status(Name, "order-1")
	var callback map[string]any
	if err := json.Unmarshal(newMoolre(s, Options{}).callback(e).Body, &callback); err != nil {
		t.Fatal(err)
	}
	like("callback", 0, callback)
	ask("not found, or not approved yet", "POST", state, question("order-9"))
	exchange(t, s, "POST", "sim/v1/moolre", `{"confirm":true}`)
	ask("payer confirms by code", "POST", pay, payment("0551234988", "order-2", ""))
	ask("code is right", "POST", pay, payment("0551234988", "order-2", `,"otpcode":"123456"`))
	ask("payer is prompted", "POST", pay, payment("0551234988", "order-2", ""))
	ask("payer is prompted", "POST", pay, payment("0551234989", "order-3", `,"sessionid":"1"`)) // from USSD
	ask("payout made", "POST", send, payout("0551234987", "payout-1"))
	ask("reference used before", "POST", send, payout("0551234987", "payout-1"))
	c.Advance(3 * time.Second)
	ask("transfer status", "POST", state, question("payout-1"))
	ask("transactions", "POST", wallet, `{"type":2,"accountnumber":"`+account+`"}`)
	ask("balance", "POST", wallet, `{"type":1,"accountnumber":"`+account+`"}`)
	ask("wrong key", "POST", wallet, `{"type":1,"accountnumber":"`+account+`"}`, "X-API-KEY", "x")
	holder := `{"type":1,"receiver":"0551234987","channel":"1","currency":"GHS","accountnumber":"` + account + `"}`
	ask("wallet known", "POST", "open/transact/validate", holder)
	ask("wallet not known", "POST", "open/transact/validate", strings.Replace(holder, "0551234987", "0550000027", 1))
	ask("banks", "GET", "open/transact/data?country=gha&data=banks", "")
	ask("account updated", "POST", "open/account/update", `{"type":1,"accountnumber":"`+account+`","callback":"http://127.0.0.1:1/x"}`)
	checked["access not activated"] = true // the simulated account has access
	for name := range documented {
		if !checked[name] {
			t.Errorf("the simulator is not held to %q", name)
		}
	}
}

// The list of transactions agrees with the moved money, newest first. Its count includes the transactions that it does not show.
func TestList_agreesWithBook(t *testing.T) {
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	for _, reference := range []string{"a", "b", "c"} {
		exchange(t, s, "POST", "open/transact/transfer", payout("0551234987", reference))
		c.Advance(3 * time.Second)
	}
	exchange(t, s, "POST", "open/transact/payment", payment("0240000003", "open", ""))
	_, a := exchange(t, s, "POST", "open/account/status", `{"type":2,"limit":"2","status":"1","accountnumber":"`+account+`"}`)
	data, _ := a["data"].(map[string]any)
	rows, _ := data["transactions"].([]any)
	if data["txcount"] != "3" || len(rows) != 2 {
		t.Fatalf("%v", a)
	}
	for i, reference := range []string{"c", "b"} {
		if row, _ := rows[i].(map[string]any); row["externalref"] != reference || row["amount"] != "5" || row["txstatus"] != 1.0 {
			t.Errorf("%v", row)
		}
	}
}

// Wrong keys, accounts and bodies are refused, and no money moves. The sandbox requires only the user name.
func TestMoolre_refusesWhatIsWrong(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	good := payout("0551234987", "payout-1")
	for _, change := range []struct{ from, to string }{
		{`"channel":"1"`, `"channel":"13"`}, {"GHS", "NGN"}, {`"5"`, `"0"`}, {`"5"`, `"-1"`}, {`"5"`, `"5.001"`}, {account, "1"}, {"0551234987", "055"},
		{`"channel":"1"`, `"channel":"2"`}, {"payout-1", ""}, {`"type":1`, `"type":2`}, {"{", ""},
	} {
		if status, a := exchange(t, s, "POST", "open/transact/transfer", strings.Replace(good, change.from, change.to, 1)); status != 400 || a["status"] == 1.0 {
			t.Errorf("%s: %d %v", change.to, status, a)
		}
	}
	for _, headers := range [][]string{{"X-API-USER", ""}, {"X-API-KEY", ""}, {"X-API-KEY", publicKey}, {"X-API-KEY", "", "X-API-PUBKEY", publicKey}} {
		if status, _ := exchange(t, s, "POST", "open/transact/transfer", good, headers...); status != 401 {
			t.Errorf("%v: %d", headers, status)
		}
	}
	if len(s.All()) != 0 {
		t.Errorf("something moved: %v", s.All())
	}
	exchange(t, s, "POST", "sim/v1/moolre", `{"sandbox":true}`)
	if status, _ := exchange(t, s, "POST", "open/transact/transfer", good, "X-API-KEY", ""); status != 200 {
		t.Errorf("in the sandbox: %d", status)
	}
}

// The controls set the address of callbacks, and whether payers confirm their numbers.
func TestControls_account(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	if status, _ := exchange(t, s, "POST", "sim/v1/moolre", `{"callback_url":"nowhere"}`); status != 422 {
		t.Errorf("a bad address: %d", status)
	}
	exchange(t, s, "POST", "sim/v1/moolre", `{"confirm":true,"callback_url":"http://127.0.0.1:1/x"}`)
	_, a := exchange(t, s, "GET", "sim/v1/moolre", "")
	if data, _ := a["data"].(map[string]any); data["confirm"] != true || data["callback_url"] != "http://127.0.0.1:1/x" {
		t.Errorf("%v", a)
	}
}
