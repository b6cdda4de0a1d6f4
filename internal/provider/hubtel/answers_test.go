package hubtel

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// Hubtel's documented answers are in testdata, and TestSamples_readAsDocumented reads them. Here are variations of
// them, and answers that must stay unknown.

const reference = "0b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21"
const plain = `0b9e1c9e8f1d4c7b9d530c4f9a8e7d21`

func answer(status int, body string) provider.Answer {
	return provider.Answer{Status: status, Body: []byte(body), Written: true, Header: http.Header{}}
}

// believed returns an outcome as its caller takes it: an answer about another payment does not count as an answer.
func believed(o provider.Outcome, want order, party string) provider.Outcome {
	if provider.Mismatch(o, provider.Expect{Reference: want.reference, Amount: want.amount, Party: party}) {
		return provider.Outcome{Reason: provider.ReasonMismatch}
	}
	return o
}

func TestSubmission_responsesClassified(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer provider.Answer
		to     product
		class  provider.Class
		reason string
		bare   bool // a refusal that is not clear
	}{
		{name: "success at once is still asked about", class: provider.Accepted, answer: answer(200, `{"responseCode":"0000","data":{"clientReference":"`+plain+`"}}`)},
		{name: "another's reference", class: provider.Unknown, reason: provider.ReasonMismatch, answer: answer(200, `{"ResponseCode":"0001","Data":{"ClientReference":"somebodyelses"}}`)},
		{name: "a refusal of another's reference", class: provider.Unknown, reason: provider.ReasonMismatch, answer: answer(200, `{"ResponseCode":"2001","Data":{"ClientReference":"somebodyelses"}}`)},
		{name: "wrong PIN", class: provider.Rejected, reason: provider.ReasonPIN, answer: answer(200, `{"ResponseCode":"2001","Message":"Wrong PIN entered","Data":null}`)},
		{name: "no funds", class: provider.Rejected, reason: provider.ReasonFunds, answer: answer(200, `{"ResponseCode":"2001","Message":"Insufficient funds"}`)},
		{name: "limit", class: provider.Rejected, reason: provider.ReasonLimit, answer: answer(200, `{"ResponseCode":"2001","Message":"MTN Mobile Money user has reached counter or balance limits"}`)},
		{name: "payer unknown", class: provider.Rejected, reason: provider.ReasonPayerNotFound, answer: answer(200, `{"ResponseCode":"2001","Data":{"Description":"MTN exception: Account holder with FRI not found"}}`)},
		{name: "payee unknown", to: payout, class: provider.Rejected, reason: provider.ReasonPayeeNotFound, answer: answer(200, `{"ResponseCode":"3050","Message":"Mobile Number is not registered for Mobile Payment."}`)},
		{name: "session", class: provider.Rejected, reason: provider.ReasonExpired, answer: answer(200, `{"ResponseCode":"2001","Message":"USSD session timeout"}`)},
		{name: "no better reason", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(200, `{"ResponseCode":"2001","Message":"Vodafone Cash transaction failed"}`)},
		{name: "validation, HTTP 400", class: provider.Rejected, reason: provider.ReasonInvalidRequest, answer: answer(400, `{"ResponseCode":"4000","Message":"Validation errors."}`)},
		{name: "fees not set", class: provider.Rejected, reason: provider.ReasonSetup, answer: answer(200, `{"ResponseCode":"4070","Message":"Fees not set for given conditions"}`)},
		{name: "not set up", class: provider.Rejected, reason: provider.ReasonSetup, answer: answer(400, `{"ResponseCode":"4101"}`)},
		{name: "not permitted", class: provider.Rejected, reason: provider.ReasonSetup, answer: answer(200, `{"ResponseCode":"4103"}`)},

		{name: "something went wrong", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"ResponseCode":"5000","Message":"Something went wrong"}`)},
		{name: "state unknown", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"ResponseCode":"0005"}`)},
		{name: "a code that is not documented", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"ResponseCode":"2999"}`)},
		{name: "a code that is not documented, HTTP 400", class: provider.Rejected, bare: true, reason: provider.ReasonRefused, answer: answer(400, `{"ResponseCode":"2999"}`)},
		{name: "something went wrong, HTTP 400", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(400, `{"ResponseCode":"5000"}`)},
		{name: "state unknown, HTTP 400", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(400, `{"ResponseCode":"0005"}`)},
		{name: "an acceptance, HTTP 400", class: provider.Accepted, answer: answer(400, `{"ResponseCode":"0001"}`)},
		{name: "general failure", class: provider.Rejected, reason: provider.ReasonRefused, answer: answer(200, `{"ResponseCode":"2000","Message":"failed"}`)},
		{name: "the payer's funds", class: provider.Rejected, reason: provider.ReasonFunds, answer: answer(200, `{"ResponseCode":"2050"}`)},
		{name: "not registered at MTN", class: provider.Rejected, reason: provider.ReasonPayerNotFound, answer: answer(200, `{"ResponseCode":"2051"}`)},
		{name: "not registered at Telecel", class: provider.Rejected, reason: provider.ReasonPayerNotFound, answer: answer(200, `{"ResponseCode":"2200"}`)},
		{name: "not registered at Telecel, the other code", to: payout, class: provider.Rejected, reason: provider.ReasonPayeeNotFound, answer: answer(200, `{"ResponseCode":"2201"}`)},
		{name: "validation, the other code", class: provider.Rejected, reason: provider.ReasonInvalidRequest, answer: answer(400, `{"ResponseCode":"4010"}`)},
		{name: "no permission", to: payout, class: provider.Rejected, reason: provider.ReasonSetup, answer: answer(200, `{"ResponseCode":"4105"}`)},
		{name: "validation of a sale, or try again later", to: sale, class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"ResponseCode":"4000"}`)},
		{name: "validation of a sale, HTTP 400", to: sale, class: provider.Rejected, bare: true, reason: provider.ReasonInvalidRequest, answer: answer(400, `{"ResponseCode":"4000"}`)},
		{name: "a sale's other validation", to: sale, class: provider.Rejected, reason: provider.ReasonInvalidRequest, answer: answer(400, `{"ResponseCode":"4010"}`)},
		{name: "HTML, HTTP 400", class: provider.Rejected, bare: true, reason: provider.ReasonRefused, answer: answer(400, `<html>`)},
		{name: "empty, HTTP 400", class: provider.Rejected, bare: true, reason: provider.ReasonRefused, answer: answer(400, ``)},
		{name: "a refusal under HTTP 500", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(500, `{"ResponseCode":"2001"}`)},
		{name: "an acceptance under HTTP 502", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(502, `{"ResponseCode":"0001"}`)},
		{name: "503 in HTML", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(503, `<html>`)},
		{name: "404 in HTML", class: provider.Rejected, bare: true, reason: provider.ReasonRefused, answer: answer(404, `<html>`)},
		{name: "empty", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, ``)},
		{name: "half an answer", class: provider.Unknown, reason: provider.ReasonUnknown, answer: answer(200, `{"ResponseCode":"0001","Da`)},
		{name: "no code", class: provider.Rejected, bare: true, reason: provider.ReasonRefused, answer: answer(400, `{"Message":"bad"}`)},
		{name: "redirect", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: answer(302, ``)},
		{name: "timeout after the request was written", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: provider.Answer{Written: true, Err: context.DeadlineExceeded}},
		{name: "cut off while answering", class: provider.Unknown, reason: provider.ReasonUnavailable, answer: provider.Answer{Status: 200, Body: []byte(`{"ResponseCode":"2001"}`), Written: true, Err: errors.New("unexpected EOF")}},

		{name: "address not listed", class: provider.Barred, reason: provider.ReasonUnavailable, answer: answer(403, `<html><head><title>403 Forbidden</title></head></html>`)},
		{name: "wrong credential", class: provider.Barred, reason: provider.ReasonUnavailable, answer: answer(401, `{"Message":"Unauthorized"}`)},
		{name: "too many", class: provider.Barred, reason: provider.ReasonUnavailable, answer: answer(429, ``)},
		{name: "no connection", class: provider.NotSent, reason: provider.ReasonUnavailable, answer: provider.Answer{Err: errors.New("connection refused")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := submitted(c.answer, order{reference: reference, amount: 80, product: c.to})
			if o.Class != c.class || o.Reason != c.reason {
				t.Errorf("%v %q, want %v %q", o.Class, o.Reason, c.class, c.reason)
			}
			if o.Clear != (c.class == provider.Rejected && !c.bare) {
				t.Errorf("clear is %v", o.Clear)
			}
			if o.State != provider.Pending {
				t.Errorf("the answer to a request is never the last word, got %v", o.State)
			}
		})
	}
}

func statusBody(code, status, more string) string {
	return `{"message":"Successful","responseCode":"` + code + `","data":{"date":"2024-04-25T21:45:48.4740964Z","status":"` + status + `","transactionId":"7fd01221faeb41469daec7b3561bddc5","externalTransactionId":"0000006824852622","paymentMethod":"mobilemoney","clientReference":"` + plain + `","currencyCode":null` + more + `}}`
}

// TestStatus_ofCollectionsAndSales: collections and sales have the same status interface.
func TestStatus_ofCollectionsAndSales(t *testing.T) {
	const whole = `,"amount":0.1,"charges":0.02,"amountAfterCharges":0.08,"isFulfilled":null`
	taught := []config.Reply{{Status: 404, Code: "3000"}, {Status: 200, Code: "0000"}}
	for _, c := range []struct {
		name   string
		answer provider.Answer
		of     product
		class  provider.Class
		state  provider.State
		reason string
		fee    money.Pesewas
		known  bool
		unpaid bool
	}{
		{name: "refunded", answer: answer(200, statusBody("0000", "Refunded", whole)), class: provider.Accepted, state: provider.Failed, reason: provider.ReasonReversed},
		{name: "a sale refunded", of: sale, answer: answer(200, statusBody("0000", "Refunded", whole)), class: provider.Accepted, state: provider.Failed, reason: provider.ReasonRefused},
		{name: "a sale paid, and nothing said of its delivery", of: sale, answer: answer(200, statusBody("0000", "Paid", whole)), class: provider.Accepted},
		{name: "a sale delivered", of: sale, answer: answer(200, statusBody("0000", "Paid", `,"amount":0.1,"charges":0.01,"amountAfterCharges":0.1,"isFulfilled":true`)), class: provider.Accepted, state: provider.Success, fee: 1, known: true},
		{name: "a sale delivered that is not paid", of: sale, answer: answer(200, statusBody("0000", "Unpaid", `,"amount":0.1,"isFulfilled":true`)), class: provider.Accepted, unpaid: true, reason: provider.ReasonRefused},
		{name: "unpaid with the callback's code", answer: answer(200, `{"message":"The customer entered an invalid PIN","responseCode":"2001","data":{"status":"Unpaid","clientReference":"`+plain+`","amount":0.1}}`), class: provider.Accepted, unpaid: true, reason: provider.ReasonPIN},
		{name: "the payer bears the charges, on top", answer: answer(200, statusBody("0000", "Paid", `,"amount":0.1,"charges":0.02,"amountAfterCharges":0.1`)), class: provider.Accepted, state: provider.Success, fee: 0, known: true},
		{name: "the payer bears the charges, within", answer: answer(200, statusBody("0000", "Paid", `,"amount":0.12,"charges":0.02,"amountAfterCharges":0.1`)), class: provider.Accepted, state: provider.Success, fee: 0, known: true},
		{name: "charges alone", answer: answer(200, statusBody("0000", "Paid", `,"amount":"0.10","charges":"0.020"`)), class: provider.Accepted, state: provider.Success, fee: 2, known: true},
		{name: "no charges told", answer: answer(200, statusBody("0000", "Paid", `,"amount":0.1`)), class: provider.Accepted, state: provider.Success},

		{name: "another amount", answer: answer(200, statusBody("0000", "Paid", `,"amount":0.2`)), reason: provider.ReasonMismatch},
		{name: "a third decimal", answer: answer(200, statusBody("0000", "Paid", `,"amount":0.104`)), reason: provider.ReasonMismatch},
		{name: "an amount that is none", answer: answer(200, statusBody("0000", "Paid", `,"amount":"ten"`)), reason: provider.ReasonMismatch},
		{name: "another currency", answer: answer(200, `{"responseCode":"0000","data":{"status":"Paid","clientReference":"`+plain+`","currencyCode":"USD","amount":0.1}}`), reason: provider.ReasonMismatch},
		{name: "another reference", answer: answer(200, `{"responseCode":"0000","data":{"status":"Paid","clientReference":"other","amount":0.1}}`), reason: provider.ReasonMismatch},
		{name: "no reference", answer: answer(200, `{"responseCode":"0001","data":{"status":"Paid","amount":0.1}}`), reason: provider.ReasonUnknown},
		{name: "paid under a failing code", answer: answer(200, statusBody("2001", "Paid", whole)), reason: provider.ReasonUnknown},
		{name: "a word nobody documented", answer: answer(200, statusBody("0000", "Settling", whole)), reason: provider.ReasonUnknown},
		{name: "the question is not permitted", answer: answer(200, `{"responseCode":"4103","message":"no","data":null}`), reason: provider.ReasonUnknown},
		{name: "refusal of the question with an echo", answer: answer(200, statusBody("4000", "Unpaid", whole)), class: provider.Accepted, unpaid: true, reason: provider.ReasonExpired},
		{name: "not found, as taught", answer: answer(404, `{"message":"Not found","responseCode":"3000","data":null}`), reason: provider.ReasonUnknown},
		{name: "not found, taught as an answer about nothing", answer: answer(200, `{"message":"Successful","responseCode":"0000","data":null}`), reason: provider.ReasonUnknown},
		{name: "a taught answer about a payment", answer: answer(404, `{"message":"Not found","responseCode":"3000","data":{"status":"Unpaid","clientReference":"`+plain+`"}}`), reason: provider.ReasonUnavailable},
		{name: "404, another code", answer: answer(404, `{"message":"Transaction not found","responseCode":"4004"}`), reason: provider.ReasonUnavailable},
		{name: "404, no code", answer: answer(404, `{"message":"Transaction not found"}`), reason: provider.ReasonUnavailable},
		{name: "404, empty", answer: answer(404, ``), reason: provider.ReasonUnavailable},
		{name: "404, HTML", answer: answer(404, `<html>`), reason: provider.ReasonUnavailable},
		{name: "the taught code under another status", answer: answer(200, `{"message":"Transaction not found","responseCode":"3000","data":null}`), reason: provider.ReasonUnknown},
		{name: "the taught answer, cut off", answer: provider.Answer{Status: 404, Body: []byte(`{"responseCode":"3000"}`), Written: true, Err: errors.New("unexpected EOF")}, reason: provider.ReasonUnavailable},
		{name: "address not listed", answer: answer(403, `<html>`), reason: provider.ReasonUnavailable},
		{name: "rubbish", answer: answer(200, `{"status":"SUCC<html>`), reason: provider.ReasonUnknown},
		{name: "no answer", answer: provider.Answer{Err: errors.New("refused")}, reason: provider.ReasonUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := order{reference: reference, amount: 10, product: c.of}
			o := believed(paid(c.answer, want, taught), want, "233200010000")
			if o.Class != c.class || o.State != c.state || o.Reason != c.reason || o.Unpaid != c.unpaid {
				t.Errorf("%v %v %q %v, want %v %v %q %v", o.Class, o.State, o.Reason, o.Unpaid, c.class, c.state, c.reason, c.unpaid)
			}
			if o.Fee != c.fee || o.FeeKnown != c.known {
				t.Errorf("fee %v %v, want %v %v", o.Fee, o.FeeKnown, c.fee, c.known)
			}
			if o.NotFound != strings.HasPrefix(c.name, "not found") {
				t.Errorf("not found: %v", o.NotFound)
			}
			if o := paid(c.answer, want, nil); o.NotFound {
				t.Errorf("not found, and nobody taught it: %+v", o)
			}
		})
	}
}

// TestUnknownResponse_namesItsSetting: an answer that is not understood is reported in the form in which it can be
// set.
func TestUnknownResponse_namesItsSetting(t *testing.T) {
	for _, c := range []struct {
		answer provider.Answer
		code   string
	}{
		{answer(404, `{"message":"Not found","responseCode":"3000","data":null}`), "404:3000"},
		{answer(200, `{"message":"Not found","responseCode":"2001","data":null}`), "200:2001"},
		{answer(404, `<html>`), "404"},
	} {
		o := paid(c.answer, order{reference: reference}, nil)
		if o.Code != c.code || o.NotFound {
			t.Errorf("%+v, want the code %s", o, c.code)
		}
		var set config.Reply
		if set.UnmarshalText([]byte(o.Code)) == nil {
			if o := paid(c.answer, order{reference: reference}, []config.Reply{set}); !o.NotFound {
				t.Errorf("set to %s it is still not understood: %+v", set, o)
			}
		}
	}
}

func sendBody(status, more string) string {
	return `{"ResponseCode":"success","Data":{"TransactionId":"09f84e20a283942e807128e8c21d0303","networkTransactionId":"142116938399","ClientReference":"` + plain + `","Channel":"vodafone-gh","CreatedAt":"2021-08-23 11:31:06","transactionStatus":"` + status + `"` + more + `}}`
}

func TestStatus_ofPayouts(t *testing.T) {
	const documented = `,"Amount":0.8,"Fees":0.010,"CustomerNumber":"233200010000"`
	for _, c := range []struct {
		name, body string
		class      provider.Class
		state      provider.State
		reason     string
		fee        money.Pesewas
	}{
		{"documented", sendBody("success", documented), provider.Accepted, provider.Success, "", 1},
		{"members in the other case", sendBody("success", `,"amount":0.8,"fees":0.01,"customerNumber":"0200010000"`), provider.Accepted, provider.Success, "", 1},
		{"pending", sendBody("pending", documented), provider.Accepted, provider.Pending, "", 0},
		{"failed", sendBody("failed", documented), provider.Accepted, provider.Failed, provider.ReasonRefused, 0},
		{"another payee", sendBody("success", `,"Amount":0.8,"CustomerNumber":"233200010001"`), provider.Unknown, provider.Pending, provider.ReasonMismatch, 0},
		{"another amount", sendBody("success", `,"Amount":0.81`), provider.Unknown, provider.Pending, provider.ReasonMismatch, 0},
		{"an amount of another kind", sendBody("success", `,"Amount":{}`), provider.Unknown, provider.Pending, provider.ReasonMismatch, 0},
		{"success under a failing code", strings.Replace(sendBody("success", documented), `"ResponseCode":"success"`, `"ResponseCode":"2001"`, 1), provider.Unknown, provider.Pending, provider.ReasonUnknown, 0},
		{"failed under no code of a payment", strings.Replace(sendBody("failed", documented), `"ResponseCode":"success"`, `"ResponseCode":"5000"`, 1), provider.Unknown, provider.Pending, provider.ReasonUnknown, 0},
		{"no word", sendBody("", documented), provider.Unknown, provider.Pending, provider.ReasonUnknown, 0},
		{"about nothing", `{"ResponseCode":"success","Data":null}`, provider.Unknown, provider.Pending, provider.ReasonUnknown, 0},
		{"a list", `{"ResponseCode":"success","Data":[]}`, provider.Unknown, provider.Pending, provider.ReasonUnknown, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := order{reference: reference, amount: 80}
			o := believed(disbursed(answer(200, c.body), want, nil), want, "233200010000")
			if o.Class != c.class || o.State != c.state || o.Reason != c.reason || o.Fee != c.fee {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestNameQuery_responsesClassified(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer provider.Answer
		bank   bool
		want   string
		class  provider.Class
	}{
		{name: "wallet", answer: answer(200, `{"message":"Success","responseCode":"0000","data":{"isRegistered":true,"name":"JOE DOE","status":"active","profile":"Subscriber"}}`), want: "JOE DOE", class: provider.Accepted},
		{name: "not registered", answer: answer(200, `{"message":"Success","responseCode":"0000","data":{"isRegistered":false,"name":"","status":""}}`), class: provider.Rejected},
		{name: "not registered by code", answer: answer(200, `{"message":"no","responseCode":"3050","data":null}`), class: provider.Rejected},
		{name: "no name", answer: answer(200, `{"responseCode":"0000","data":{"isRegistered":true,"name":null}}`), class: provider.Unknown},
		{name: "something went wrong", answer: answer(200, `{"responseCode":"5000"}`), class: provider.Unknown},
		{name: "down", answer: answer(503, `{"responseCode":"2001"}`), class: provider.Unknown},
		{name: "not listed", answer: answer(403, `<html>`), class: provider.Barred},
		{name: "bank", bank: true, answer: answer(200, `{"message":"Success","responseCode":"0000","data":{"name":" AMA  MENSAH "}}`), want: "AMA  MENSAH", class: provider.Accepted},
		{name: "a code of its own under HTTP 424", bank: true, answer: answer(424, `{"responseCode":"3000"}`), class: provider.Unknown},
		{name: "a wallet's 2001 under HTTP 200", answer: answer(200, `{"responseCode":"2001","data":null}`), class: provider.Unknown},
		{name: "404 in HTML", answer: answer(404, `<html>`), class: provider.Unknown},
		{name: "no such account", bank: true, answer: answer(200, `{"message":"failed","responseCode":"2001","data":null}`), class: provider.Rejected},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := walletName
			if c.bank {
				read = bankName
			}
			got, o := read(c.answer)
			if got != c.want || o.Class != c.class || o.Name != c.want {
				t.Errorf("%q %+v", got, o)
			}
		})
	}
}

func TestOffers_withoutPriceAreOmitted(t *testing.T) {
	list, o := offers(answer(200, `{"ResponseCode":"0000","Message":"success","Label":"","Data":[{"Display":"1.19GB","Value":"flexi_data_bundle","Amount":20.0},{"Display":"free","Value":"x","Amount":0},{"Display":"odd","Value":"y","Amount":1.005},{"Display":"25 MB","Value":"25 MB","Amount":"0.5"}]}`))
	if o.Class != provider.Accepted || len(list) != 2 || list[0] != (provider.Offer{Display: "1.19GB", Value: "flexi_data_bundle", Amount: 2000}) || list[1].Amount != 50 {
		t.Errorf("%+v %+v", list, o)
	}
	for body, class := range map[string]provider.Class{
		`{"ResponseCode":"0000","Data":[]}`:                         provider.Accepted,
		`{"ResponseCode":"0000","Data":{}}`:                         provider.Unknown,
		`{"ResponseCode":"4000","Message":"destination"}`:           provider.Rejected,
		`{"ResponseCode":"5000"}`:                                   provider.Unknown,
		`{"ResponseCode":"0005","Data":[{"Value":"a","Amount":1}]}`: provider.Unknown,
	} {
		if list, o := offers(answer(200, body)); o.Class != class || len(list) != 0 {
			t.Errorf("%s: %+v %+v", body, list, o)
		}
	}
	if got := holderName(answer(200, `{"ResponseCode":"0000","Message":"success","Label":"","Data":[{"Display":"name","Value":"JOE DOE","Amount":0}]}`)); got != "JOE DOE" {
		t.Errorf("holder %q", got)
	}
}

func TestBalance_readFromItsEnvelope(t *testing.T) {
	if held, o := balance(answer(200, `{"responseCode":"0000","message":"Success","data":{"amount":123.50}}`)); held != 12350 || o.Class != provider.Accepted {
		t.Errorf("%v %+v", held, o)
	}
	for _, body := range []string{`{"responseCode":"0000","data":{}}`, `{"responseCode":"2001","data":{"amount":1}}`, `{"responseCode":"0000","data":{"amount":"x"}}`} {
		if _, o := balance(answer(200, body)); o.Class == provider.Accepted {
			t.Errorf("%s is a balance: %+v", body, o)
		}
	}
}

func TestDescription_allowedCharacters(t *testing.T) {
	for label, want := range map[string]string{
		"":                         "Payment ref-123456789",
		"Union Dues & fees 100%":   "Union Dues fees 100",
		"Kɔfi's order #12\nline 2": "K fi s order 12 line 2",
	} {
		if got := description(label, "ref-123456789"); got != want {
			t.Errorf("%q became %q, want %q", label, got, want)
		}
	}
}

// FuzzAnswers: a body never moves money that the rules do not allow to move. A status answer is final only if it
// repeats our reference and amount.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		statusBody("0000", "Paid", `,"amount":0.1`), sendBody("failed", `,"Amount":0.1`), statusBody("0000", "Paid", `,"isFulfilled":true,"charges":"1e400"`),
		`{"ResponseCode":"0001","Data":{"TransactionId":"a\u0000b"}}`,
		`{"ResponseCode":4000,"Data":"x"}`, `{"ResponseCode":"0000","Data":[{"Display":1,"Value":null,"Amount":-1}]}`, `null`, `[]`, "\xff\xfe",
	} {
		f.Add(200, body)
		f.Add(400, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := answer(status, body)
		want := order{reference: reference, amount: 10}
		for _, o := range []provider.Outcome{submitted(a, want), paid(a, want, nil), disbursed(a, want, nil), paid(a, order{reference: reference, amount: 10, product: sale}, nil)} {
			o = believed(o, want, "233200010000")
			if o.Final() {
				if status != http.StatusOK || o.Echo == nil || !provider.SameReference(o.Echo.Reference, reference) || o.Echo.AmountTold && o.Echo.Amount != 10 {
					t.Errorf("final: %+v of %d %q", o, status, body)
				}
			}
			if o.Class == provider.NotSent || o.NotFound {
				t.Errorf("not sent, or not found though nobody taught it: %+v", o)
			}
			if o.Unpaid && (o.Class != provider.Accepted || o.State != provider.Pending) || o.Clear && o.Class != provider.Rejected {
				t.Errorf("a word that belongs to another class: %+v", o)
			}
			if o.Fee < 0 || o.Commission < 0 && o.FeeKnown {
				t.Errorf("negative: %+v", o)
			}
			if o.UpstreamID != provider.Clip(o.UpstreamID) {
				t.Errorf("an id that is not text: %q", o.UpstreamID)
			}
			if len([]rune(o.Message)) > 200 {
				t.Errorf("message of %d", len(o.Message))
			}
		}
		list, _ := offers(a)
		for _, offer := range list {
			if offer.Amount <= 0 || offer.Value == "" {
				t.Errorf("offer %+v", offer)
			}
		}
		walletName(a)
		bankName(a)
		holderName(a)
		balance(a)
		(&Adapter{}).ParseCallback(provider.CallbackRequest{Body: []byte(body)})
	})
}
