package apitest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// samples are valid values by kind.
var samples = map[string]string{
	"amount": "5.5", "phone": `"0240000000"`, "network": `"MTN"`, "reference": `"order-20260001"`, "wanted": `"order-20260001"`, "email": `"ama@shop.example"`, "url": `"https://shop.example/hook"`,
	"label": `"Kwame"`, "account": `"0011223344556"`, "id": `"00000000-0000-0000-0000-000000000000"`, "lookup": `"00000000-0000-0000-0000-000000000000"`, "cursor": `"1:x"`, "day": `"2026-01-31"`,
	"request": `"00000000-0000-0000-0000-000000000000"`, "code": `"1234"`, "message": `"Your order is ready"`, "otp": `"Your code is <%otp_code%>"`, "sender": `"AdomStores"`,
	"numbers": `["0240000000"]`, "ids": `["00000000-0000-0000-0000-000000000000"]`, "objects": `[{"phone_number":"0240000000"}]`, "payees": `[{"account_number":"0240000000","channel":"MTN","amount":5}]`, "number": "5",
}

// idle are operations whose body may be empty.
var idle = []string{"updateContact", "webhookReplay", "submitBatch", "pauseBatch", "resumeBatch", "cancelBatch"}

func sample(o Operation) Example {
	e := Example{Path: map[string]string{}, Query: map[string]string{}, Body: map[string]string{}}
	for _, f := range o.Fields {
		value := samples[f.Kind]
		if len(f.Enum) > 0 {
			value = quote(f.Enum[0])
		}
		switch f.In {
		case "path":
			e.Path[f.Name] = strings.Trim(value, `"`)
		case "body":
			e.Body[f.Name] = value
		case "query":
			if f.Required {
				e.Query[f.Name] = strings.Trim(value, `"`)
			}
		}
	}
	return e
}

func load(t *testing.T) *Document {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The document declares every part that the tests need.
func TestDocument_isComplete(t *testing.T) {
	kinds := []string{"amount", "phone", "network", "reference", "url", "label", "choice", "account", "id", "lookup", "day", "number", "cursor",
		"wanted", "email", "request", "code", "message", "otp", "sender", "numbers", "ids", "objects", "payees"}
	for _, o := range load(t).Operations {
		if o.ID == "" || o.op.Summary == "" || len(o.op.Tags) != 1 {
			t.Errorf("%s %s lacks an id, a summary or a tag", o.Method, o.Path)
		}
		for _, f := range o.Fields {
			if f.In != "header" && !slices.Contains(kinds, f.Kind) {
				t.Errorf("%s: %s has the kind %q, for which no bad input is made", o.ID, f.Name, f.Kind)
			}
			if f.Kind == "choice" && len(f.Enum) == 0 || f.Kind == "amount" && f.Minimum == "" {
				t.Errorf("%s: %s does not say its bounds", o.ID, f.Name)
			}
			if strings.Contains(o.Path, "{"+f.Name+"}") != (f.In == "path") {
				t.Errorf("%s: %s is in the path by name only", o.ID, f.Name)
			}
		}
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable} {
			if o.op.Responses.Status(status) == nil {
				t.Errorf("%s does not list %d", o.ID, status)
			}
		}
	}
}

// The examples of the document match its schemas.
func TestDocument_examplesAreValid(t *testing.T) {
	d := load(t)
	for _, o := range d.Operations {
		if o.op.RequestBody == nil {
			continue
		}
		body, err := json.Marshal(o.op.RequestBody.Value.Content.Get("application/json").Example)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.CheckRequest(o, body); err != nil {
			t.Errorf("%s: %v", o.ID, err)
		}
		g := generator{o: o, good: sample(o)}
		if err := d.CheckRequest(o, g.body("", "")); err != nil {
			t.Errorf("%s: the samples are no good request: %v", o.ID, err)
		}
		if err := d.CheckRequest(o, []byte(`{}`)); err == nil && !slices.Contains(idle, o.ID) {
			t.Errorf("%s: an empty object passes", o.ID)
		}
	}
}

// There is bad input for every field of every endpoint.
func TestBadInput_coversEveryField(t *testing.T) {
	d := load(t)
	cases := d.BadInput(func(id string) Example {
		o, _ := d.Operation(id)
		return sample(o)
	})
	names, fields := map[string]bool{}, map[string]int{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("%s is made twice", c.Name)
		}
		names[c.Name] = true
		if _, err := url.Parse("http://x" + c.URL); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if len(c.Status) == 0 || slices.ContainsFunc(c.Status, func(s int) bool { return s < 400 || s > 499 }) {
			t.Errorf("%s may answer %v", c.Name, c.Status)
		}
		fields[c.Operation+" "+c.Field]++
	}
	for _, o := range d.Operations {
		for _, f := range o.Fields {
			if f.In != "path" && f.Kind != "lookup" && fields[o.ID+" "+f.Name] < 3 {
				t.Errorf("%s: %s has %d cases", o.ID, f.Name, fields[o.ID+" "+f.Name])
			}
		}
	}
	t.Logf("%d cases", len(cases))
}

// CheckAnswer finds answers that differ from the document.
func TestCheckAnswer_findsDifferences(t *testing.T) {
	d := load(t)
	o, ok := d.Match(http.MethodPost, "/api/v1/payment-api/send/mobilemoney")
	if !ok || o.ID != "payoutToWallet" {
		t.Fatalf("matched %q", o.ID)
	}
	if o, ok := d.Match(http.MethodGet, "/api/v1/payment-api/checkstatus/abc/"); !ok || o.ID != "paymentStatus" {
		t.Fatalf("matched %q", o.ID)
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}, "Cache-Control": {"no-store"}}
	good := `{"message":"Sent Successfully","data":{"client_reference":"x","transaction_id":"y","amount":"1.00","charges":0.1,"channel":"MTN","account_number":"233240000000"}}`
	if err := d.CheckAnswer(o, 200, header, []byte(good)); err != nil {
		t.Error(err)
	}
	for what, bad := range map[string]string{
		"message": strings.Replace(good, "Sent S", "Sent s", 1), "type": strings.Replace(good, `"1.00"`, `1.00`, 1), "charges": strings.Replace(good, `0.1`, `"0.1"`, 1),
		"missing": strings.Replace(good, `"channel":"MTN",`, ``, 1), "undeclared": strings.Replace(good, `"charges"`, `"fee":1,"charges"`, 1),
		"local": strings.Replace(good, "233240000000", "0240000000", 1), "cut": good[:40],
	} {
		if err := d.CheckAnswer(o, 200, header, []byte(bad)); err == nil {
			t.Errorf("%s: %s passes", what, bad)
		}
	}
	if err := d.CheckAnswer(o, 201, header, []byte(good)); err == nil {
		t.Error("a status that is not listed passes")
	}
	if err := d.CheckAnswer(o, 200, http.Header{}, []byte(good)); err == nil {
		t.Error("an answer without headers passes")
	}
	if err := d.CheckAnswer(o, 422, header, []byte(`{"message":"m","code":"invalid_fields","request_id":"r","errors":{"x":["y"]}}`)); err != nil {
		t.Error(err)
	}
	if err := d.CheckAnswer(o, 422, header, []byte(`{"message":"m","code":"invalid_fields","data":null,"request_id":"r","errors":{"x":["y"]}}`)); err == nil {
		t.Error("a refusal whose data is null passes")
	}
	if err := d.CheckAnswer(o, 422, header, []byte(`{"message":"m","code":"made_up","request_id":"r"}`)); err == nil {
		t.Error("a code that is not listed passes")
	}
}

// Undeclared and missing headers are found.
func TestCheckHeaders_findsDifferences(t *testing.T) {
	d := load(t)
	header := func(more ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}, "Cache-Control": {"no-store"}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	limits := []string{"RateLimit", `"hourly";r=59;t=3600`, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "59", "RateLimit-Policy"}
	const refusal = `{"message":"m","code":"invalid_fields","request_id":"r"}`
	const down = `{"message":"m","code":"database_unavailable","request_id":"r"}`
	for _, c := range []struct {
		operation string
		status    int
		header    http.Header
		body      string
		good      bool
	}{
		{"requestSender", 422, header(append(limits, `"hourly";q=60;w=3600`)...), refusal, true},
		{"requestSender", 422, header(append(limits, `"hourly";q=61;w=3600`)...), refusal, false},
		{"requestSender", 422, header(), refusal, false},
		{"balance", 503, header("Retry-After", "2"), down, true},
		{"balance", 503, header(), down, false},
		{"balance", 500, header("Retry-After", "2"), down, false},
		{"paymentStatus", 200, header("Idempotent-Replayed", "true"),
			`{"message":"m","data":{"status":"pending","transaction_id":"x","ext_transaction_id":"y","amount":"1.00","type":"transfer"}}`, false},
	} {
		o, _ := d.Operation(c.operation)
		if err := d.CheckAnswer(o, c.status, c.header, []byte(c.body)); (err == nil) != c.good {
			t.Errorf("%s %d with %v: %v", c.operation, c.status, c.header, err)
		}
	}
}

// CheckWebhook finds webhooks that differ from the document.
func TestCheckWebhook_findsDifferences(t *testing.T) {
	d := load(t)
	header := http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {"1"}, "Webhook-Timestamp": {"1"}, "Webhook-Signature": {"v1,YQ=="}}
	good := `{"amount":"1.00","charges":"0.10","status":"failed","transaction_id":"x","ext_transaction_id":"y"}`
	if err := d.CheckWebhook(header, []byte(good)); err != nil {
		t.Error(err)
	}
	for what, bad := range map[string]string{
		"a number": strings.Replace(good, `"1.00"`, `1.00`, 1), "a status": strings.Replace(good, "failed", "declined", 1),
		"less": strings.Replace(good, `"charges":"0.10",`, "", 1), "more": strings.Replace(good, `"charges"`, `"fee":1,"charges"`, 1),
	} {
		if err := d.CheckWebhook(header, []byte(bad)); err == nil {
			t.Errorf("%s passes", what)
		}
	}
	header.Del("Webhook-Signature")
	if err := d.CheckWebhook(header, []byte(good)); err == nil {
		t.Error("a webhook without a signature passes")
	}
}

// CheckRefusal finds refusals that differ from their case.
func TestCheckRefusal_findsDifferences(t *testing.T) {
	c := Case{Status: []int{422}, Field: "amount"}
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}, "Cache-Control": {"no-store"}}
	good := `{"message":"The amount field is required","code":"invalid_fields","request_id":"req_1","errors":{"amount":["is required"]}}`
	if err := c.CheckRefusal(422, header, []byte(good)); err != nil {
		t.Error(err)
	}
	for what, bad := range map[string]string{
		"another field": strings.Replace(good, `{"amount"`, `{"phone"`, 1), "another id": strings.Replace(good, "req_1", "req_2", 1),
		"a trap": strings.Replace(good, "The amount", "The route amount", 1), "no JSON": "amount",
		"null data": strings.Replace(good, `"errors"`, `"data":null,"errors"`, 1),
	} {
		if err := c.CheckRefusal(422, header, []byte(bad)); err == nil {
			t.Errorf("%s passes", what)
		}
	}
	if err := c.CheckRefusal(500, header, []byte(good)); err == nil {
		t.Error("a 500 passes")
	}
	if nudge("0.50", -1) != "0.49" || nudge("100.00", 1) != "100.01" || nudge("15000.00", 1) != "15000.01" {
		t.Error("limits are nudged wrongly")
	}
}

// A member that is an alternative spelling of another one needs no declaration, but must have the same value.
func TestUndeclared_knowsSecondSpellings(t *testing.T) {
	s := &openapi3.Schema{
		Properties: openapi3.Schemas{"campaignId": {Value: &openapi3.Schema{}}},
		Extensions: map[string]any{"x-same-as": map[string]any{"campaign_id": "campaignId"}},
	}
	for _, c := range []struct {
		value map[string]any
		good  bool
	}{
		{map[string]any{"campaignId": "a", "campaign_id": "a"}, true},
		{map[string]any{"campaignId": "a", "campaign_id": "b"}, false},
		{map[string]any{"campaignId": "a", "CampaignID": "a"}, false},
	} {
		if err := undeclared("", s, c.value); (err == nil) != c.good {
			t.Errorf("%v: %v", c.value, err)
		}
	}
}
