package mtnmomo

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/provider"
)

func products() (collection, disbursement *mtnProduct) {
	a := New(config.MTN{
		URL: "http://127.0.0.1:1", Currency: "GHS", CollectionUser: "u", CollectionKey: "k", CollectionAPIKey: "a",
		DisbursementUser: "u", DisbursementKey: "k", DisbursementAPIKey: "a",
	}, provider.ClientOptions{})
	return a.collection, a.disbursement
}

func answer(status int, body string) provider.Answer {
	return provider.Answer{Status: status, Body: []byte(body), Written: true}
}

// TestSubmission_responsesClassified checks the class of each response in MTN's table.
func TestSubmission_responsesClassified(t *testing.T) {
	const u, acc, rej, bar = provider.Unknown, provider.Accepted, provider.Rejected, provider.Barred
	for _, c := range []struct {
		product string
		status  int
		body    string
		class   provider.Class
		reason  string
	}{
		{"collection", 202, ``, acc, ""},
		{"collection", 409, `{"code":"RESOURCE_ALREADY_EXIST","message":"Duplicated reference id. Creation of resource failed."}`, acc, ""},
		{"collection", 409, `{"message":"Duplicated reference id. Creation of resource failed.","status":"RESOURCE_ALREADY_EXIST"}`, acc, ""},
		{"collection", 409, `{"code":"CONFLICT"}`, rej, "invalid_request"},
		{"collection", 409, ``, rej, "invalid_request"},
		{"collection", 400, ``, rej, "invalid_request"},
		{"collection", 400, `<html>`, rej, "invalid_request"},
		{"collection", 400, `{"code":"PAYER_NOT_FOUND","message":"Payee does not exist"}`, rej, "payer_not_found"},
		{"disbursement", 400, `{"code":"PAYEE_NOT_ALLOWED_TO_RECEIVE","message":""}`, rej, "account_barred"},
		{"disbursement", 400, `{"code":"NOT_ENOUGH_FUNDS"}`, rej, "service_float_low"},
		{"collection", 400, `{"code":"NOT_ENOUGH_FUNDS"}`, rej, "insufficient_funds"},
		{"collection", 400, `{"code":"INVALID_REFERENCE_ID"}`, rej, "invalid_request"},
		{"collection", 401, `{"error":"invalid_token"}`, bar, "provider_unavailable"},
		{"disbursement", 403, `{"code":"FORBIDDEN IP"}`, bar, "provider_unavailable"},
		{"disbursement", 429, `{"statusCode":429,"message":"Rate limit is exceeded."}`, bar, "provider_unavailable"},
		{"collection", 500, `{"code":"INTERNAL_PROCESSING_ERROR","message":"An internal error occurred while processing."}`, u, "provider_unavailable"},
		{"collection", 500, `{"code":"NOT_ALLOWED_TARGET_ENVIRONMENT","message":"Access to target environment is forbidden."}`, rej, "service_not_set_up"},
		{"disbursement", 500, `{"code":"PAYEE_NOT_FOUND","message":"Payee does not exist"}`, rej, "payee_not_found"},
		{"collection", 500, ``, u, "provider_unavailable"},
		{"collection", 502, `<html>`, u, "provider_unavailable"},
		{"collection", 503, `{"code":"SERVICE_UNAVAILABLE"}`, u, "provider_unavailable"},
		{"collection", 504, ``, u, "provider_unavailable"},
		{"collection", 404, `{"statusCode":404,"message":"Resource not found"}`, rej, "invalid_request"},
		{"collection", 405, ``, rej, "invalid_request"},
		{"collection", 400, `"PAYER_NOT_FOUND"`, rej, "payer_not_found"},
		{"collection", 502, `{"code":"PAYER_NOT_FOUND"}`, u, "provider_unavailable"},
		{"collection", 200, `{"status":"SUCCESSFUL"}`, u, "provider_unavailable"},
		{"collection", 201, ``, u, "provider_unavailable"},
		{"collection", 302, ``, u, "provider_unavailable"},
	} {
		o := submitted(c.product, answer(c.status, c.body))
		if o.Class != c.class || o.Reason != c.reason || o.State != provider.Pending {
			t.Errorf("%s %d %s: class %v, reason %q", c.product, c.status, c.body, o.Class, o.Reason)
		}
		// A refusal is clear only with a code of MTN's own, because any gateway may return an HTTP status.
		if own := c.reason != "invalid_request" && strings.HasPrefix(c.body, "{"); o.Clear != (c.class == rej && own) {
			t.Errorf("%s %d %s: clear is %v", c.product, c.status, c.body, o.Clear)
		}
		if o.Duplicate != (c.class == acc && c.status == 409) {
			t.Errorf("%d %s: duplicate is %v", c.status, c.body, o.Duplicate)
		}
	}
}

// TestStatus_documentedBodies reads bodies from MTN's documents and from live systems.
func TestStatus_documentedBodies(t *testing.T) {
	const paid = `"amount":"100","currency":"GHS","externalId":"5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0c","payer":{"partyIdType":"MSISDN","partyId":"233244000000"},"payerMessage":"x","payeeNote":"y"`
	const sent = `"amount":"100.50","currency":"GHS","externalId":"5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0c","payee":{"partyIdType":"MSISDN","partyId":"233244000000"}`
	collection, disbursement := products()
	for _, c := range []struct {
		name    string
		product *mtnProduct
		status  int
		body    string
		class   provider.Class
		state   provider.State
		reason  string
		found   bool
	}{
		{"success", collection, 200, `{` + paid + `,"financialTransactionId":"363440463","status":"SUCCESSFUL"}`, provider.Accepted, provider.Success, "", true},
		{"the specification's example, all numbers", collection, 200, `{"amount":100,"currency":"GHS","financialTransactionId":23503452,"externalId":947354,"payer":{"partyIdType":"MSISDN","partyId":4656473839},"status":"SUCCESSFUL"}`, provider.Accepted, provider.Success, "", true},
		{"pending", collection, 200, `{` + paid + `,"status":"PENDING"}`, provider.Accepted, provider.Pending, "", true},
		{"created", collection, 200, `{"status":"CREATED"}`, provider.Accepted, provider.Pending, "", true},
		{"reason as object", collection, 200, `{` + paid + `,"status":"FAILED","reason":{"code":"PAYER_NOT_FOUND","message":"Payee does not exist"}}`, provider.Accepted, provider.Failed, "payer_not_found", true},
		{"reason as text", collection, 200, `{` + paid + `,"status":"FAILED","reason":"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED"}`, provider.Accepted, provider.Failed, "insufficient_funds", true},
		{"rejected by the payer", collection, 200, `{` + paid + `,"status":"FAILED","reason":"APPROVAL_REJECTED"}`, provider.Accepted, provider.Failed, "declined_by_payer", true},
		{"not approved in time", collection, 200, `{` + paid + `,"status":"FAILED","reason":"COULD_NOT_PERFORM_TRANSACTION"}`, provider.Accepted, provider.Failed, "prompt_expired", true},
		{"unlisted reason", collection, 200, `{` + paid + `,"status":"FAILED","reason":"SOMETHING_NEW"}`, provider.Accepted, provider.Failed, "unknown_error", true},
		{"no reason", collection, 200, `{` + paid + `,"status":"FAILED","reason":null}`, provider.Accepted, provider.Failed, "unknown_error", true},
		{"our own funds", disbursement, 200, `{` + sent + `,"status":"FAILED","reason":"NOT_ENOUGH_FUNDS"}`, provider.Accepted, provider.Failed, "service_float_low", true},
		{"payee", disbursement, 200, `{` + sent + `,"financialTransactionId":"1","status":"SUCCESSFUL"}`, provider.Accepted, provider.Success, "", true},
		{"a payout that repeats a payer", disbursement, 200, `{` + paid + `,"status":"SUCCESSFUL"}`, provider.Unknown, 0, "unknown_error", true},
		{"nothing repeated", collection, 200, `{"status":"SUCCESSFUL"}`, provider.Unknown, 0, "unknown_error", true},
		{"failed, nothing repeated", disbursement, 200, `{"status":"FAILED","reason":"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED"}`, provider.Unknown, 0, "unknown_error", true},
		{"undocumented status", collection, 200, `{` + paid + `,"status":"CANCELLED"}`, provider.Unknown, 0, "unknown_error", true},
		{"lower case", collection, 200, `{` + paid + `,"status":"successful"}`, provider.Unknown, 0, "unknown_error", true},
		{"empty", collection, 200, ``, provider.Unknown, 0, "unknown_error", true},
		{"torn", collection, 200, `{` + paid + `,"status":"SUCCESSFUL"`, provider.Unknown, 0, "unknown_error", true},
		{"an array", collection, 200, `[{` + paid + `,"status":"SUCCESSFUL"}]`, provider.Unknown, 0, "unknown_error", true},
		{"accepted is no status", collection, 202, `{` + paid + `,"status":"SUCCESSFUL"}`, provider.Unknown, 0, "provider_unavailable", true},
		{"not found", collection, 404, `{"code":"RESOURCE_NOT_FOUND","message":"Requested resource was not found."}`, provider.Unknown, 0, "provider_unavailable", false},
		{"the code of 404 without its object", collection, 404, `"RESOURCE_NOT_FOUND"`, provider.Unknown, 0, "provider_unavailable", true},
		{"404, empty", collection, 404, ``, provider.Unknown, 0, "provider_unavailable", true},
		{"404, HTML", collection, 404, `<html>`, provider.Unknown, 0, "provider_unavailable", true},
		{"the gateway's own 404", collection, 404, `{"statusCode":404,"message":"Resource not found"}`, provider.Unknown, 0, "provider_unavailable", true},
		{"code of 404 under 500", collection, 500, `{"code":"RESOURCE_NOT_FOUND"}`, provider.Unknown, 0, "provider_unavailable", true},
		{"500 says nothing", collection, 500, `{"code":"PAYER_NOT_FOUND"}`, provider.Unknown, 0, "provider_unavailable", true},
	} {
		o := c.product.answered(answer(c.status, c.body))
		if o.Class != c.class || o.State != c.state || o.Reason != c.reason || o.NotFound == c.found {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
	o := disbursement.answered(answer(200, `{`+sent+`,"status":"FAILED","reason":"EXPIRED"}`))
	want := provider.Expect{Reference: "5D6A0BD70F024A5CA3B41AD2B1D8EF0C", Amount: 10050, Party: "0244000000"}
	if provider.Mismatch(o, want) {
		t.Errorf("the same payment does not match: %+v", o.Echo)
	}
	for _, other := range []provider.Expect{
		{Reference: "5d6a0bd7-0f02-4a5c-a3b4-1ad2b1d8ef0d", Amount: 10050, Party: "0244000000"},
		{Reference: want.Reference, Amount: 10051, Party: "0244000000"},
		{Reference: want.Reference, Amount: 10050, Party: "0244000001"},
		{Reference: want.Reference, Amount: 10050, Party: "0244000000", Currency: "EUR"},
	} {
		if !provider.Mismatch(o, other) {
			t.Errorf("another payment matches: %+v", other)
		}
	}
	for _, body := range []string{strings.Replace(sent, "100.50", "100.505", 1), strings.Replace(sent, "100.50", "-5", 1), strings.Replace(sent, "100.50", "x", 1)} {
		if o := disbursement.answered(answer(200, `{`+body+`,"status":"FAILED"}`)); !provider.Mismatch(o, want) {
			t.Errorf("an unreadable amount was believed: %s", body)
		}
	}
}

func TestNote_allowedCharacters(t *testing.T) {
	for in, want := range map[string]string{
		"Ama's shop & sons": "Ama s shop sons", "": "Payment", "'''": "Payment", "a\nb": "a b", strings.Repeat("x", 200): strings.Repeat("x", 160),
		"École 5": "cole 5",
	} {
		if got := note(in, "Payment"); got != want {
			t.Errorf("note(%q) = %q", in, got)
		}
	}
}

// FuzzAnswers: a damaged answer of MTN is never read as a final status that it does not contain.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{``, `{}`, `null`, `"x"`, `{"status":"SUCCESSFUL"}`, `{"code":"RESOURCE_ALREADY_EXIST"}`, `{"status":"FAILED","reason":{"code":7}}`,
		`{"amount":"1.00","currency":"GHS","externalId":"x","payer":{"partyId":"233244000000"},"status":"SUCCESSFUL"}`, `{"amount":1e3,"status":"FAILED","reason":[]}`} {
		for _, status := range []int{200, 202, 400, 404, 409, 500} {
			f.Add(status, s)
		}
	}
	collection, disbursement := products()
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := answer(status, body)
		for _, p := range []*mtnProduct{collection, disbursement} {
			o := submitted(p.name, a)
			switch {
			case o.Class == provider.Rejected && (status < 400 || status > 500),
				o.Clear && (o.Class != provider.Rejected || !refusals[o.Code]),
				o.Class == provider.NotSent,
				o.Class == provider.Barred && status != 401 && status != 403 && status != 429,
				o.Class == provider.Accepted && status != 202 && !strings.Contains(body, "RESOURCE_ALREADY_EXIST") && !strings.Contains(body, `\u`),
				o.State != provider.Pending:
				t.Errorf("%d %q as a submission's answer: %+v", status, body, o)
			}
			s := p.answered(a)
			switch {
			case s.Class != provider.Accepted && s.Class != provider.Unknown,
				s.Class == provider.Accepted && (status != 200 || s.Echo == nil),
				s.Final() && (s.Echo.Reference == "" || s.Echo.Party == "" || !s.Echo.AmountTold || s.Echo.Currency == ""),
				s.State == provider.Success && !strings.Contains(body, "SUCCESSFUL") && !strings.Contains(body, `\u`),
				s.State == provider.Failed && s.Reason == "",
				len([]rune(s.Message)) > 200, len([]rune(s.Code)) > 200:
				t.Errorf("%d %q as a status: %+v", status, body, s)
			}
		}
		collection.adapter.ParseCallback(provider.CallbackRequest{Method: "POST", Body: []byte(body)})
	})
}
