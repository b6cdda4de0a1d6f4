package paystack

import (
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"

	"github.com/makola/makola/internal/provider"
)

// TestSamples_readAsDocumented reads Paystack's own samples in testdata. These cases are variations, and answers that must stay
// unknown.

const (
	reference = "0b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21"
	plain     = `0b9e1c9e8f1d4c7b9d530c4f9a8e7d21`
)

func answer(status int, body string) provider.Answer {
	return provider.Answer{Status: status, Body: []byte(body), Written: true, Header: http.Header{}}
}

func signedWith(key string, body []byte) http.Header {
	mac := hmac.New(sha512.New, []byte(key))
	mac.Write(body)
	return http.Header{signature: {hex.EncodeToString(mac.Sum(nil))}}
}

func TestSubmitted_classes(t *testing.T) {
	const taken = `{"status":true,"message":"Transfer has been queued","data":{"id":7,"reference":"` + plain + `","amount":80,"currency":"GHS","status":"`
	for _, c := range []struct {
		name          string
		answer        provider.Answer
		class         provider.Class
		reason        string
		clear, double bool
	}{
		{name: "pending", class: provider.Accepted, answer: answer(200, taken+`pending"}}`)},
		{name: "received", class: provider.Accepted, answer: answer(200, taken+`received"}}`)},
		{name: "paid at once is still asked about", class: provider.Accepted, answer: answer(200, taken+`success"}}`)},
		{name: "failed at once is still asked about", class: provider.Accepted, answer: answer(200, taken+`failed"}}`)},
		{name: "OTP", class: provider.Unknown, reason: provider.ReasonSetup, answer: answer(200, taken+`otp"}}`)},
		{name: "a status that is not documented", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, taken+`finished"}}`)},
		{name: "no status", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"status":true,"message":"x","data":{"reference":"`+plain+`"}}`)},
		{name: "no data", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"status":true,"message":"x"}`)},
		{name: "another reference", class: provider.Unknown, reason: provider.ReasonMismatch, answer: answer(200, `{"status":true,"message":"x","data":{"reference":"other-reference-1","status":"pending"}}`)},
		{name: "status as a text", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(400, `{"status":"false","message":"x"}`)},
		{name: "refused under 200", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"status":false,"message":"Recipient specified is invalid","code":"invalid_transfer_recipient"}`)},
		{name: "taken under 400", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(400, taken+`pending"}}`)},
		{name: "documented refusal", class: provider.Rejected, clear: true, reason: provider.ReasonPayeeNotFound, answer: answer(400, `{"status":false,"message":"Recipient specified is invalid","code":"invalid_transfer_recipient"}`)},
		{name: "documented refusal under another status", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(422, `{"status":false,"message":"Recipient specified is invalid","code":"invalid_transfer_recipient"}`)},
		{name: "the words of the refusal without its code", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(400, `{"status":false,"message":"Recipient specified is invalid"}`)},
		{name: "duplicate", class: provider.Accepted, double: true, answer: answer(400, `{"status":false,"message":"x","code":"duplicate_transfer_reference"}`)},
		{name: "balance", class: provider.Rejected, reason: provider.ReasonFloat, answer: answer(400, `{"status":false,"message":"Your balance is not enough to fulfil this request"}`)},
		{name: "key, under 400", class: provider.Rejected, reason: provider.ReasonSetup, answer: answer(400, `{"status":false,"message":"Invalid key"}`)},
		{name: "another code", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(400, `{"status":false,"message":"x","code":"insufficient_balance"}`)},
		{name: "HTML, HTTP 400", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(400, `<html>`)},
		{name: "empty, HTTP 404", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(404, ``)},
		{name: "empty", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, ``)},
		{name: "half an answer", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"status":true,"mess`)},
		{name: "refusal under HTTP 500", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(500, `{"status":false,"message":"x","code":"invalid_transfer_recipient"}`)},
		{name: "503", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(503, `<html>`)},
		{name: "redirect", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(302, ``)},
		{name: "timeout", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: provider.Answer{Written: true, Err: context.DeadlineExceeded}},
		{name: "too many", class: provider.Barred, reason: provider.ReasonUnavailable, answer: answer(429, ``)},
		{name: "no connection", class: provider.NotSent, reason: provider.ReasonUnavailable, answer: provider.Answer{Err: errors.New("connection refused")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := submitted(c.answer, reference)
			if o.Class != c.class || o.Reason != c.reason || o.Clear != c.clear || o.Duplicate != c.double || o.Final() {
				t.Errorf("%+v, want %v %q clear %v duplicate %v", o, c.class, c.reason, c.clear, c.double)
			}
		})
	}
}

func TestDisbursed_states(t *testing.T) {
	body := func(status string) string {
		return `{"status":true,"message":"Transfer retrieved","data":{"id":7,"reference":"` + plain + `","amount":80,"currency":"GHS","status":"` + status +
			`","fee_charged":100,"recipient":{"details":{"account_number":"0551234987"}}}}`
	}
	want := provider.Expect{Reference: reference, Amount: 80, Party: "233551234987"}
	for status, state := range map[string]provider.State{"success": provider.Success, "failed": provider.Failed, "reversed": provider.Failed,
		"abandoned": provider.Failed, "blocked": provider.Failed, "rejected": provider.Failed, "pending": provider.Pending, "received": provider.Pending} {
		if o := disbursed(answer(200, body(status))); o.Class != provider.Accepted || o.State != state || provider.Mismatch(o, want) {
			t.Errorf("%s: %+v, %+v", status, o, o.Echo)
		}
	}
	for name, a := range map[string]provider.Answer{
		"otp": answer(200, body("otp")), "empty status": answer(200, body("")), "odd status": answer(200, body("queued?")),
		"refused": answer(200, `{"status":false,"message":"Transfer not found"}`), "HTML": answer(404, `<html>Transfer not found`),
		"other words": answer(404, `{"status":false,"message":"Not found"}`), "other status": answer(400, `{"status":false,"message":"Transfer not found"}`),
		"a gateway's 404": answer(404, `{"message":"Transfer not found"}`), "key": answer(400, `{"status":false,"message":"Invalid key"}`),
		"cut off": {Status: 404, Written: true, Err: errors.New("unexpected EOF"), Body: []byte(`{"status":false,"message":"Transfer not found"}`)},
	} {
		if o := disbursed(a); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// An answer is final only if it is about the payment that was asked about.
func FuzzDisbursed(f *testing.F) {
	for _, body := range []string{"", "null", `{"status":true,"data":{"status":"success","amount":80}}`, `{"status":true,"data":{"status":"failed"}}`,
		`{"status":true,"data":{"status":"success","reference":"` + plain + `","amount":"80","currency":"GHS"}}`, `{"status":false,"message":"Transfer not found"}`} {
		f.Add(200, body)
		f.Add(404, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		o := disbursed(answer(status, body))
		if o.Class != provider.Accepted && o.Class != provider.Unknown || o.NotFound && o.Class != provider.Unknown {
			t.Fatalf("%+v", o)
		}
		if o.State == provider.Success && !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 80}) &&
			(o.Echo == nil || !o.Echo.AmountTold || o.Echo.Amount != 80) {
			t.Fatalf("a success without its amount: %+v", o)
		}
		submitted(answer(status, body), reference)
		charged(answer(status, body), reference)
		if c := collected(answer(status, body)); c.Class != provider.Accepted && c.Class != provider.Unknown {
			t.Fatalf("%+v", c)
		}
		refundFound(answer(status, body), reference, 80)
		accountName(answer(status, body))
		balance(answer(status, body))
		recipientCode(answer(status, body))
	})
}

func TestCollected_states(t *testing.T) {
	body := func(status, more string) string {
		return `{"status":true,"message":"Verification successful","data":{"id":7,"reference":"` + plain + `","currency":"GHS","status":"` + status + `"` + more + `}}`
	}
	const paid = `,"amount":1000,"fees":20,"requested_amount":1000`
	want := provider.Expect{Reference: reference, Amount: 1000}
	for _, c := range []struct {
		name, body       string
		class            provider.Class
		state            provider.State
		fee              int64
		unpaid, mismatch bool
	}{
		{name: "paid", body: body("success", paid), class: provider.Accepted, state: provider.Success, fee: 20},
		{name: "the payer paid the fees", body: body("success", `,"amount":1020,"fees":20,"requested_amount":1000`), class: provider.Accepted, state: provider.Success},
		{name: "paid in part", body: body("success", `,"amount":900,"fees":20,"requested_amount":1000`), class: provider.Accepted, state: provider.Success, fee: 20, mismatch: true},
		{name: "paid, amount not told", body: body("success", ""), class: provider.Accepted, state: provider.Success, mismatch: true},
		{name: "failed", body: body("failed", paid), class: provider.Accepted, state: provider.Failed},
		{name: "reversed", body: body("reversed", paid), class: provider.Accepted, state: provider.Failed},
		{name: "abandoned is no failure by itself", body: body("abandoned", paid), class: provider.Accepted, unpaid: true},
		{name: "ongoing", body: body("ongoing", paid), class: provider.Accepted},
		{name: "a step that nobody takes", body: body("send_pin", paid)},
		{name: "a status that is not documented", body: body("done", paid)},
	} {
		o := collected(answer(200, c.body))
		if c.state == provider.Success && o.FeeKnown != (c.name != "paid, amount not told") {
			t.Errorf("%s: fee known %v", c.name, o.FeeKnown)
		}
		if o.Class != c.class || o.State != c.state || o.Unpaid != c.unpaid || c.state == provider.Success && int64(o.Fee) != c.fee || provider.Mismatch(o, want) != c.mismatch {
			t.Errorf("%s: %+v, %+v", c.name, o, o.Echo)
		}
	}
	for name, a := range map[string]provider.Answer{
		"HTML": answer(400, `<html>Transaction reference is invalid`), "other status": answer(404, `{"status":false,"message":"Transaction reference is invalid"}`),
		"the words of clients": answer(400, `{"status":false,"message":"Transaction reference not found"}`), "key": answer(400, `{"status":false,"message":"Invalid key"}`),
		"refused under 200": answer(200, `{"status":false,"message":"Transaction reference is invalid"}`), "cut off": {Status: 400, Written: true, Err: errors.New("unexpected EOF"), Body: []byte(`{"status":false,"message":"Transaction reference is invalid"}`)},
	} {
		if o := collected(a); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
