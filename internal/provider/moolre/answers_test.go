package moolre

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/provider"
)

// TestSamples_readAsDocumented reads Moolre's own samples in testdata. These cases are variations, and answers that must stay
// unknown.

const (
	reference = "0b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21"
	plain     = `0b9e1c9e8f1d4c7b9d530c4f9a8e7d21`
)

// answer returns a complete answer.
func answer(status int, body string) provider.Answer {
	return provider.Answer{Written: true, Status: status, Body: []byte(body), Header: http.Header{}}
}

// No response to a submission is final, and no refusal counts as clear, whatever its HTTP status.
func TestSubmitted_classes(t *testing.T) {
	const (
		unknown = provider.ReasonUnknown
		refused = provider.ReasonRefused
		away    = provider.ReasonUnavailable
	)
	paid := func(envelope, state, more string) string {
		return `{"status":` + envelope + `,"code":"OBGH01","message":["Pay out Successful"],"data":{"txstatus":` + state + `,"transactionid":"7"` + more + `}}`
	}
	ours := `,"externalref":"` + plain + `"`
	for _, c := range []struct {
		name             string
		answer           provider.Answer
		collect, payout  provider.Class
		reason, ofPayout string // of the collection, and of the payout
	}{
		{"prompt", answer(200, `{"status":1,"code":"TR099","data":"x"}`), provider.Accepted, provider.Unknown, "", unknown},
		{"prompt, status as a text", answer(200, `{"status":"1","code":"TR099","data":"x"}`), provider.Accepted, provider.Unknown, "", unknown},
		{"prompt under 400", answer(400, `{"status":1,"code":"TR099","data":"x"}`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"prompt with status 0", answer(200, `{"status":0,"code":"TR099","data":"x"}`), provider.Rejected, provider.Rejected, refused, refused},
		{"paid at once is still asked about", answer(200, paid(`"1"`, "1", ours)), provider.Unknown, provider.Accepted, unknown, ""},
		{"pending", answer(200, paid("1", "0", ours)), provider.Unknown, provider.Accepted, unknown, ""},
		{"pending as a text", answer(200, paid("1", `"0"`, ours)), provider.Unknown, provider.Accepted, unknown, ""},
		{"pending with status 0", answer(200, paid("0", "0", ours)), provider.Rejected, provider.Accepted, refused, ""},
		{"failed at once is asked about", answer(200, paid("1", "2", ours)), provider.Unknown, provider.Unknown, unknown, unknown},
		{"failed and refused is asked about", answer(200, paid("0", "2", ours)), provider.Rejected, provider.Rejected, refused, refused},
		{"a state that is not documented", answer(200, paid("1", "3", ours)), provider.Unknown, provider.Unknown, unknown, unknown},
		{"another reference", answer(200, paid("1", "1", `,"externalref":"other"`)), provider.Unknown, provider.Unknown, unknown, provider.ReasonMismatch},
		{"no data", answer(200, `{"status":1,"code":"OBGH01","data":null}`), provider.Unknown, provider.Accepted, unknown, ""},
		{"data is a text", answer(200, `{"status":1,"code":"OBGH01","data":"all"}`), provider.Unknown, provider.Accepted, unknown, ""},
		{"refused under 200", answer(200, `{"status":0,"code":"X1","message":["No","balance"]}`), provider.Rejected, provider.Rejected, refused, refused},
		{"refused under 400, status as a text", answer(400, `{"status":"0","code":"TP13","message":"x"}`), provider.Rejected, provider.Rejected, refused, refused},
		{"access refused under 200", answer(200, `{"status":0,"code":"AIN04","message":"x"}`), provider.Rejected, provider.Rejected, provider.ReasonSetup, provider.ReasonSetup},
		{"access refused", answer(401, `{"status":0,"code":"AIN04","message":"x"}`), provider.Barred, provider.Barred, away, away},
		{"a code that is not documented", answer(200, `{"status":1,"code":"X1"}`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"no code", answer(200, `{"status":1}`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"no status", answer(200, `{"code":"TR099"}`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"status true", answer(200, `{"status":true,"code":"TR099"}`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"status 2", answer(200, `{"status":2,"code":"TR099"}`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"HTML, HTTP 400", answer(400, `<html>`), provider.Rejected, provider.Rejected, refused, refused},
		{"empty", answer(200, ``), provider.Unknown, provider.Unknown, unknown, unknown},
		{"half an answer", answer(200, `{"status":1,"co`), provider.Unknown, provider.Unknown, unknown, unknown},
		{"refusal under HTTP 500", answer(500, `{"status":0,"code":"TP13"}`), provider.Unknown, provider.Unknown, away, away},
		{"redirect", answer(302, ``), provider.Unknown, provider.Unknown, away, away},
		{"timeout", provider.Answer{Written: true, Err: context.DeadlineExceeded}, provider.Unknown, provider.Unknown, away, away},
		{"too many", answer(429, ``), provider.Barred, provider.Barred, away, away},
		{"no connection", provider.Answer{Err: errors.New("connection refused")}, provider.NotSent, provider.NotSent, away, away},
	} {
		for kind, o := range map[string]provider.Outcome{"collection": prompted(c.answer), "payout": transferred(c.answer, reference)} {
			class, reason := c.collect, c.reason
			if kind == "payout" {
				class, reason = c.payout, c.ofPayout
			}
			if o.Class != class || o.Reason != reason || o.Clear || o.Duplicate || o.Unposted || o.Final() {
				t.Errorf("%s, %s: %+v, want %v %q", c.name, kind, o, class, reason)
			}
		}
	}
}

// Only a documented state under the right reference is final. SS07 is never a failure.
func TestStated_states(t *testing.T) {
	body := func(status, code, data string) string {
		return `{"status":` + status + `,"code":"` + code + `","message":"x","data":` + data + `}`
	}
	ours := func(state string) string {
		return `{"txstatus":` + state + `,"transactionid":"7","externalref":"` + plain + `","amount":"0.80","payer":"233551234987","payee":"0551234987"}`
	}
	set := []config.Reply{{Status: 404, Code: "SS07"}, {Status: 200, Code: "SS08"}}
	want := provider.Expect{Reference: reference, Amount: 80, Party: "233551234987"}
	for _, c := range []struct {
		name               string
		status             int
		body               string
		class              provider.Class
		state              provider.State
		unknownC, unknownP bool // not found, for a collection and a payout
		differs            bool
	}{
		{name: "success", status: 200, body: body("1", "SS01", ours("1")), class: provider.Accepted, state: provider.Success},
		{name: "success, all as texts", status: 200, body: body(`"1"`, "SS01", ours(`"1"`)), class: provider.Accepted, state: provider.Success},
		{name: "success with status 0", status: 200, body: body("0", "SS01", ours("1"))},
		{name: "success without its amount", status: 200, body: body("1", "SS01", `{"txstatus":1,"transactionid":"7","externalref":"`+plain+`"}`), class: provider.Accepted, state: provider.Success, differs: true},
		{name: "another payment's success", status: 200, body: body("1", "SS01", `{"txstatus":1,"transactionid":"7","externalref":"other","amount":"0.80"}`), class: provider.Accepted, state: provider.Success, differs: true},
		{name: "another amount", status: 200, body: body("1", "SS01", `{"txstatus":1,"transactionid":"7","externalref":"`+plain+`","amount":0.81}`), class: provider.Accepted, state: provider.Success, differs: true},
		{name: "a name as the payee", status: 200, body: body("1", "SS01", `{"txstatus":1,"transactionid":"7","externalref":"`+plain+`","amount":0.8,"payer":"AMA","payee":"AMA"}`), class: provider.Accepted, state: provider.Success},
		{name: "pending", status: 200, body: body("1", "SS02", ours("0")), class: provider.Accepted},
		{name: "failed", status: 200, body: body("1", "SS03", ours("2")), class: provider.Accepted, state: provider.Failed},
		{name: "failed, with status 0", status: 200, body: body("0", "SS03", ours("2")), class: provider.Accepted, state: provider.Failed},
		{name: "failed, and not seen to exist", status: 200, body: body("1", "SS03", `{"txstatus":2}`)},
		{name: "failed, without an id", status: 200, body: body("1", "SS03", `{"txstatus":2,"transactionid":"0","externalref":"`+plain+`","amount":"0.80"}`)},
		{name: "another payment's failure", status: 200, body: body("1", "SS03", `{"txstatus":2,"transactionid":"7","externalref":"other","amount":"0.80"}`)},
		{name: "state 3", status: 200, body: body("1", "SS01", ours("3"))},
		{name: "no state", status: 200, body: body("1", "SS01", `{"transactionid":"7","externalref":"`+plain+`","amount":"0.80"}`)},
		{name: "SS07", status: 200, body: body("0", "SS07", `{"txstatus":2}`), unknownC: true},
		{name: "SS07 without data", status: 200, body: body("0", "SS07", "null"), unknownC: true},
		{name: "SS07 with status 1", status: 200, body: body("1", "SS07", `{"txstatus":"2"}`), unknownC: true},
		{name: "SS07 about our payment", status: 200, body: body("1", "SS07", ours("2")), unknownC: true},
		{name: "SS07 that was paid", status: 200, body: body("1", "SS07", ours("1"))},
		{name: "SS07 that is pending", status: 200, body: body("1", "SS07", ours("0"))},
		{name: "SS07 under 400", status: 400, body: body("0", "SS07", "null"), unknownC: true},
		{name: "SS07 under 404, as set", status: 404, body: body("0", "SS07", "null"), unknownC: true, unknownP: true},
		{name: "another code, as set", status: 200, body: body("0", "SS08", "null"), unknownP: true},
		{name: "another code, as set, of our payment", status: 200, body: body("0", "SS08", ours("1"))},
		{name: "SS07 under 500", status: 500, body: body("0", "SS07", "null")},
		{name: "SS07 under 401", status: 401, body: body("0", "SS07", "null")},
		{name: "access refused", status: 200, body: body("0", "AIN04", `"all"`)},
		{name: "HTML", status: 404, body: "<html>SS07"},
		{name: "empty", status: 200},
		{name: "no envelope", status: 200, body: ours("1")},
	} {
		a := answer(c.status, c.body)
		for kind, o := range map[string]provider.Outcome{"collection": collected(a, reference), "payout": disbursed(a, reference, set)} {
			notFound := c.unknownC
			if kind == "payout" {
				notFound = c.unknownP
			}
			if o.Class != c.class || o.State != c.state || o.NotFound != notFound || o.Unpaid || o.FeeKnown || o.Class == provider.Accepted && provider.Mismatch(o, want) != c.differs {
				t.Errorf("%s, %s: %+v, %+v", c.name, kind, o, o.Echo)
			}
		}
	}
	cut := answer(200, body("0", "SS07", "null"))
	cut.Err = errors.New("unexpected EOF")
	if o := collected(cut, reference); o.Class != provider.Unknown || o.NotFound {
		t.Errorf("cut off: %+v", o)
	}
}

func TestBalance_readsAmounts(t *testing.T) {
	for text, want := range map[string]string{`10.67`: "10.67", `"10.67"`: "10.67", `10`: "10.00", `10.5`: "10.50", `10.679`: "10.67", `0`: "0.00",
		`-1`: "", `-0.5`: "", `"x"`: "", `null`: "", `1e3`: "", `"1,000.00"`: "", `"10.6x"`: ""} {
		held, o := balance(answer(200, `{"status":1,"code":"SW01","data":{"balance":`+text+`}}`))
		if want == "" && (len(held) != 0 || o.Class == provider.Accepted) || want != "" && (len(held) != 1 || held[0].Amount.String() != want) {
			t.Errorf("%s: %v, %+v", text, held, o)
		}
	}
	for _, a := range []provider.Answer{answer(400, `{"status":1,"code":"SW01","data":{"balance":1}}`), answer(200, `{"status":0,"code":"SW01","data":{"balance":1}}`), answer(200, `{"status":1,"code":"SW02","data":{"balance":1}}`)} {
		if held, o := balance(a); held != nil || o.Class == provider.Accepted {
			t.Errorf("%s: %v, %+v", a.Body, held, o)
		}
	}
}

// An answer is final only if it names the queried payment, and never under SS07.
func FuzzStated(f *testing.F) {
	for _, body := range []string{"", "null", `{"status":1,"code":"SS01","data":{"txstatus":1,"amount":"0.80"}}`, `{"status":1,"code":"SS03","data":{"txstatus":2}}`,
		`{"status":"1","code":"SS01","data":{"txstatus":"1","externalref":"` + plain + `","amount":0.8,"transactionid":7}}`, `{"status":0,"code":"SS07","data":{"txstatus":2}}`,
		`{"status":1,"code":["SS07"],"message":[["a"]],"data":[]}`} {
		f.Add(200, body)
		f.Add(404, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := answer(status, body)
		for _, o := range []provider.Outcome{collected(a, reference), disbursed(a, reference, []config.Reply{{Status: 200, Code: "SS07"}})} {
			if o.Class != provider.Accepted && o.Class != provider.Unknown || o.NotFound && o.Class != provider.Unknown || o.Final() && o.Code == "SS07" {
				t.Fatalf("%+v", o)
			}
			if o.State == provider.Success && !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 80}) && (o.Echo == nil || !o.Echo.AmountTold || o.Echo.Amount != 80) {
				t.Fatalf("a success without its amount: %+v", o)
			}
		}
		for _, o := range []provider.Outcome{prompted(a), transferred(a, reference), confirmed(a)} {
			if o.Final() || o.Clear || o.Unposted {
				t.Fatalf("%+v", o)
			}
		}
		holder(a)
		balance(a)
		bankList(a)
	})
}
