package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"testing"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/apitest"
)

// TestAPI_badInput derives every kind of bad request from the OpenAPI document and sends it over a connection to a full server
// on both engines. Each request gets the right error. At the end the wallet is unchanged, nothing is recorded, and a valid
// request succeeds.
func TestAPI_badInput(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *stage, document *apitest.Document) {
		a := &actor{stage: s, t: t, vars: map[string]string{"ref": "bad-input-0001"}}
		a.catalogue()
		a.enter(map[string]string{"fund": "20000.00"})
		a.sender("AdomStores")
		a.group()
		host := s.app.ready.APIURL[:len(s.app.ready.APIURL)-len("/api/v1")]
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		t.Cleanup(client.CloseIdleConnections)
		for _, c := range document.BadInput(a.example) {
			status, header, body := a.send(client, host, c)
			if err := c.CheckRefusal(status, header, body); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		a.unharmed()
	})
}

// example returns a valid request of an operation. The suite makes one part of it invalid at a time.
func (a *actor) example(operation string) apitest.Example {
	q := func(name string) string {
		text, err := json.Marshal(a.vars[name])
		a.must(err)
		return string(text)
	}
	phone, reference := `"0240000001"`, q("ref")
	query := func(pairs ...string) apitest.Example {
		e := apitest.Example{Query: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			e.Query[pairs[i]] = pairs[i+1]
		}
		return e
	}
	batchPath := map[string]string{"batch_id": "00000000-0000-4000-8000-000000000001"}
	examples := map[string]apitest.Example{
		"collect": {Body: map[string]string{"amount": "10.5", "phone_number": phone, "network": `"MTN"`, "transaction_id": reference,
			"callback_url": `"https://shop.example/hook"`, "reference": `"Order 17"`}},
		"payoutToWallet": {Body: map[string]string{"amount": `"10.00"`, "account_number": phone, "account_name": `"Kwame"`, "channel": `"MTN"`, "client_reference": reference,
			"callback_url": `"https://shop.example/hook"`, "carriermomo_account_type": `"subscriber"`}},
		"payoutToBank": {Body: map[string]string{"amount": `"10.00"`, "account_number": `"0011223344556"`, "bank_id": q("bank"), "account_name": `"Kwame"`,
			"client_reference": reference, "callback_url": `"https://shop.example/hook"`}},
		// The collection does not exist, so a valid request is a 404.
		"refund": {Body: map[string]string{"transaction_id": `"00000000-0000-4000-8000-000000000001"`, "amount": `"5.00"`, "client_reference": reference,
			"reason": `"Out of stock"`, "callback_url": `"https://shop.example/hook"`}},
		// The collection does not exist, so a valid request is a 404.
		"submitVoucher": {Body: map[string]string{"transaction_id": `"00000000-0000-4000-8000-000000000001"`, "code": `"123456"`}},
		"makeBatch":     {Body: map[string]string{"name": `"Salaries"`, "again": `"They were not paid"`, "rows": `[{"account_number":"0240000001","channel":"MTN","amount":"5.00"}]`}},
		// The batch does not exist, so a valid request is a 404.
		"listBatches": query("status", "finished", "page", "1", "page_size", "10"),
		"batchStatus": {Path: batchPath}, "batchRows": {Path: batchPath, Query: map[string]string{"status": "failed", "page": "1", "page_size": "10"}},
		"submitBatch": {Path: batchPath, Body: map[string]string{"again": `"They were not paid"`}}, "pauseBatch": {Path: batchPath, Body: map[string]string{}},
		"resumeBatch": {Path: batchPath, Body: map[string]string{}}, "cancelBatch": {Path: batchPath, Body: map[string]string{"reason": `"Wrong month"`}},
		"sendAirtime": {Body: map[string]string{"amount": "5", "phone_number": phone, "network_id": q("network.mtn"), "transaction_id": reference,
			"callback_url": `"https://shop.example/hook"`}},
		"buyAirtime": {Body: map[string]string{"amount": "5", "destination": phone, "phoneNumber": phone, "network": `"MTN"`, "network_id": q("network.mtn"), "type": `"momo"`,
			"name": `"Ama"`, "transaction_id": reference, "callback_url": `"https://shop.example/hook"`}},
		// The package does not exist. A valid request is a 404, and an invalid request fails with its own error first.
		"buyData": {Body: map[string]string{"phone_number": phone, "service_id": q("service.mtn_data"), "package_id": `"00000000-0000-4000-8000-000000000001"`, "network": `"MTN"`,
			"type": `"e_wallet"`, "name": `"Ama"`, "client_reference": reference}},
		"webhooksList":         query("status", "failed", "page_size", "10", "before", "1770000000000000:00000000-0000-4000-8000-000000000001"),
		"webhooksOfPayment":    {Path: map[string]string{"transaction_id": "00000000-0000-4000-8000-000000000001"}},
		"webhookReplay":        {Path: map[string]string{"transaction_id": "00000000-0000-4000-8000-000000000001"}, Body: map[string]string{"webhook_id": `"00000000-0000-4000-8000-000000000002"`}},
		"webhooksReplayFailed": {Body: map[string]string{"from": `"2026-01-31"`}},
		"webhookSecret":        query(), "addresses": query(),
		"refusedRequests":    {Path: map[string]string{"request_id": "req_of_nothing_0001"}},
		"paymentStatus":      {Path: map[string]string{"transaction_id": a.vars["ref"]}},
		"airtimeStatus":      {Path: map[string]string{"transaction_id": a.vars["ref"]}},
		"dataStatus":         {Path: map[string]string{"ext_transaction_id": a.vars["ref"]}},
		"dataOffers":         {Path: map[string]string{"service_id": a.vars["service.mtn_data"], "phone_number": "0240000001"}},
		"collectionsHistory": query(), "transfersHistory": query(), "banksList": query(), "banks": query(), "balance": query(), "statement": query("balance", "sms", "from", "2026-01-01", "to", "2026-01-31", "page", "1", "page_size", "10"), "limits": query(), "airtimeNetworks": query(), "dataServices": query(),
		"bankName":   query("account_number", "0011223344556", "bank_id", a.vars["bank"]),
		"walletName": query("phone_number", "0240000001"),
	}
	maps.Copy(examples, a.textExamples())
	e, ok := examples[operation]
	if !ok {
		a.t.Fatalf("no good request of %s is known: add one here", operation)
	}
	return e
}

// send makes a request over the wire. A limited endpoint would soon answer every request with 429, so send advances the clock
// when the limit is reached.
func (a *actor) send(client *http.Client, host string, c apitest.Case) (int, http.Header, []byte) {
	a.t.Helper()
	for {
		r, err := http.NewRequestWithContext(context.Background(), c.Method, host+c.URL, bytes.NewReader(c.Body))
		a.must(err)
		r.Header.Set("x-api-key", a.key)
		r.Header.Set("Content-Type", "application/json")
		for name, value := range c.Header {
			r.Header.Set(name, value)
		}
		answer, err := client.Do(r)
		if err != nil {
			a.t.Fatalf("%s: %v", c.Name, err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		a.must(err)
		if answer.StatusCode != http.StatusTooManyRequests {
			return answer.StatusCode, answer.Header, body
		}
		a.stage.advanceTo(a.t, answer.Header.Get("Retry-After"))
	}
}

// unharmed checks that the bad requests changed nothing.
func (a *actor) unharmed() {
	a.t.Helper()
	a.stage.settle(a.t)
	a.ask("GET", "/account-api/balance", "", nil)
	a.answered(200, nil, `{"message":"*","data":{"wallet_balance":20000,"...":0}}`)
	for _, path := range []string{"/payment-api/collections/history", "/payment-api/transfers/history"} {
		a.ask("GET", path, "", nil)
		a.answered(200, nil, `{"data":[],"meta":{"total":0,"...":0},"...":0}`)
	}
	a.ask("GET", "/account-api/balance", "", nil)
	a.answered(200, nil, `{"message":"*","data":{"sms_balance":100,"...":0}}`)
	a.ask("GET", "/sms-api/contact/getGroups", "", nil)
	a.answered(200, nil, `{"message":"*","data":[{"name":"Customers","group_icon":"group_icon_1","contacts_count":1,"...":0}]}`)
	a.ask("GET", "/sms-api/senderIds", "", nil)
	a.answered(200, nil, `{"message":"*","data":[{"id":"$sender","...":0}]}`)
	if taken := a.stage.sim.Centre.Totals().Submitted; taken != 0 {
		a.t.Errorf("an operator was sent %d segments", taken)
	}
	if entries := a.stage.sim.All(); len(entries) != 0 {
		a.t.Errorf("a provider was sent %+v", entries)
	}
	if report, err := a.stage.app.ledger.Check(context.Background()); err != nil || !report.OK() {
		a.t.Errorf("the ledger does not add up: %v %v", err, report.Problems)
	}
	clearing, err := a.stage.app.ledger.Balance(context.Background(), ledger.Key{Asset: ledger.TestGHS, ID: ledger.Clearing})
	a.must(err)
	if clearing != 0 {
		a.t.Errorf("%d pesewas are in clearing", clearing)
	}
	a.ask("POST", "/payment-api/send/mobilemoney", `{"amount":1,"account_number":"0240000001","channel":"MTN","client_reference":"bad-input-0001"}`, nil)
	a.answered(200, nil, "")
}
