package pawapay

import (
	"testing"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

const reference = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"

// A response that pawaPay does not document is never final.
func TestSubmitted_undocumentedIsNotFinal(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		class  provider.Class
	}{
		"a code of no list":              {200, `{"payoutId":"` + reference + `","status":"REJECTED","failureReason":{"failureCode":"NEW_CODE"}}`, provider.Rejected},
		"a rejection without a code":     {200, `{"payoutId":"` + reference + `","status":"REJECTED"}`, provider.Unknown},
		"a used id by the guide":         {200, `{"payoutId":"` + reference + `","status":"REJECTED","failureReason":{"failureCode":"INVALID_INPUT"}}`, provider.Rejected},
		"a documented code under 400":    {400, `{"payoutId":"` + reference + `","status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, provider.Rejected},
		"a documented code under 500":    {500, `{"payoutId":"` + reference + `","status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, provider.Unknown},
		"a documented code under 202":    {202, `{"payoutId":"` + reference + `","status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, provider.Rejected},
		"a rejection of another payment": {200, `{"payoutId":"f4401bd2-1568-4140-bf2d-eb77d2b2b630","status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, provider.Unknown},
		"another payment accepted":       {200, `{"payoutId":"f4401bd2-1568-4140-bf2d-eb77d2b2b630","status":"ACCEPTED"}`, provider.Unknown},
		"a status of no list":            {200, `{"payoutId":"` + reference + `","status":"COMPLETED"}`, provider.Unknown},
		"a gateway's page":               {404, `<html>`, provider.Rejected},
		"nothing":                        {200, ``, provider.Unknown},
	} {
		if o := submitted(answer(c.status, c.body), reference); o.Class != c.class || o.Clear || o.Final() || o.NotFound {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A query proves nothing if it does not find the payment, has an unknown status, or is only a 404.
func TestStated_undocumentedIsNotFinal(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"a bare 404":             {404, ``},
		"not found under 404":    {404, `{"status":"NOT_FOUND"}`},
		"not found with data":    {200, `{"status":"NOT_FOUND","data":{"status":"COMPLETED"}}`},
		"a new status":           {200, `{"status":"FOUND","data":{"payoutId":"` + reference + `","status":"REVERSED","amount":"1","currency":"GHS"}}`},
		"rejected":               {200, `{"status":"FOUND","data":{"payoutId":"` + reference + `","status":"REJECTED","amount":"1","currency":"GHS"}}`},
		"the old list":           {200, `[{"payoutId":"` + reference + `","status":"COMPLETED"}]`},
		"a status without FOUND": {200, `{"data":{"payoutId":"` + reference + `","status":"COMPLETED"}}`},
	} {
		if o := stated(answer(c.status, c.body)); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for _, amount := range []string{`"15.001"`, `"x"`, `-15`, `1500`, `null`} {
		o := stated(answer(200, `{"status":"FOUND","data":{"payoutId":"`+reference+`","status":"COMPLETED","amount":`+amount+`,"currency":"GHS"}}`))
		if !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 1500}) {
			t.Errorf("amount %s: %+v", amount, o.Echo)
		}
	}
}

// Amounts and texts have the forms that pawaPay accepts.
func TestRequest_forms(t *testing.T) {
	for amount, want := range map[money.Pesewas]string{1500: "15", 1550: "15.5", 1505: "15.05", 100: "1", 5: "0.05", 1_000_000: "10000"} {
		if got := amountText(amount); got != want {
			t.Errorf("%v is %s, want %s", amount, got, want)
		}
	}
	for label, want := range map[string]string{"Wages": "Wages", "Ama's shop & sons: \"rent\" <é>": "Amas shop sons rent", "abc": "", "": "", "Invoice 2026/11-0042 of the market": "Invoice 2026 11 0042 o"} {
		if got := message(label); got != want {
			t.Errorf("%q is %q, want %q", label, got, want)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	for _, body := range []string{"", "null", `{"status":"ACCEPTED"}`, `{"status":"FOUND","data":{"payoutId":"` + reference + `","status":"COMPLETED","amount":"0.8","currency":"GHS"}}`,
		`{"status":"NOT_FOUND"}`, `{"status":"FOUND","data":{"status":"FAILED"}}`, `{"balances":[{"country":"GHA","balance":"1","currency":"GHS","provider":""}]}`} {
		f.Add(200, body)
		f.Add(404, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		o := stated(answer(status, body))
		if o.Class != provider.Accepted && o.Class != provider.Unknown || o.NotFound && o.Class != provider.Unknown {
			t.Fatalf("%+v", o)
		}
		if o.State == provider.Success && !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 80}) &&
			(o.Echo == nil || !o.Echo.AmountTold || o.Echo.Amount != 80) {
			t.Fatalf("a success without its amount: %+v", o)
		}
		if o := submitted(answer(status, body), reference); o.Final() || o.Clear && o.Class != provider.Rejected {
			t.Fatalf("%+v", o)
		}
		balance(answer(status, body))
		publicKeys(answer(status, body))
	})
}
