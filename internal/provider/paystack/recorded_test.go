package paystack

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/providertest"
)

// recorded is an answer or event of Paystack, with its source, the date and the grade of the source, and its meaning. The
// simulator's tests use the same files.
type recorded struct {
	Name, Call, Grade, Source, Date string
	Status                          int
	Reference, Amount, Party        string
	Body                            json.RawMessage
	Want                            struct {
		Class, State, Reason, Code, Name, Upstream, Held string
		Clear, Duplicate                                 bool
		NotFound                                         bool `json:"not_found"`
		Fee                                              *string
	}
}

// Every sample is read as its page describes it. Only a sample of Paystack's own, grade D, may be final.
func TestSamples_readAsDocumented(t *testing.T) {
	providertest.EachRecorded(t, func(r recorded) (name, source, date string) { return r.Name, r.Source, r.Date }, recorded.check)
}

func (r recorded) check(t *testing.T) {
	if r.Call == "event" {
		r.checkEvent(t)
		return
	}
	o, code, known := r.read(answer(r.Status, string(r.Body)))
	if !known {
		return // this sample is only for the simulator
	}
	w := r.Want
	if w.Class == "" {
		if code != w.Code {
			t.Errorf("%q, want %q", code, w.Code)
		}
		return
	}
	if o.Class.String() != w.Class || w.State != "" && o.State.String() != w.State || o.Reason != w.Reason || o.Code != w.Code || o.Name != w.Name ||
		o.UpstreamID != w.Upstream || o.Clear != w.Clear || o.Duplicate != w.Duplicate || o.NotFound != w.NotFound || w.Held != code {
		t.Errorf("%+v (%s), want %+v", o, code, w)
	}
	if (o.Clear || o.Final() || o.NotFound) && r.Name != "" && r.Grade != "D" && r.Call != "name" {
		t.Errorf("a final meaning of grade %s: %+v", r.Grade, o)
	}
	if o.FeeKnown != (w.Fee != nil) || w.Fee != nil && o.Fee.String() != *w.Fee {
		t.Errorf("fee %v %v, want %v", o.Fee, o.FeeKnown, w.Fee)
	}
	if r.Call != "disburse_status" || o.Class != provider.Accepted {
		return
	}
	amount, err := money.Parse(r.Amount)
	if err != nil || provider.Mismatch(o, provider.Expect{Reference: r.Reference, Amount: amount, Party: r.Party}) {
		t.Errorf("the echo is another payment's: %+v, %v", o.Echo, err)
	}
}

// checkEvent compares a signed event with its payment. The samples have references of other businesses, which give no hint.
func (r recorded) checkEvent(t *testing.T) {
	a := New(config.Paystack{SecretKey: "sk_test_sample"}, provider.ClientOptions{})
	hints, err := a.ParseCallback(provider.CallbackRequest{Method: http.MethodPost, Header: signedWith("sk_test_sample", r.Body), Body: r.Body})
	if err != nil || len(hints) != 0 {
		t.Errorf("%v, %v", hints, err)
	}
	var event struct {
		Data struct {
			Reference text `json:"reference"`
			Collected text `json:"transaction_reference"`
		}
	}
	err = json.Unmarshal(r.Body, &event)
	if named := string(event.Data.Reference + event.Data.Collected); err != nil || named != r.Reference {
		t.Errorf("the event names %q, %v", named, err)
	}
}

// read returns the sample to the function that reads this call's answers.
func (r recorded) read(a provider.Answer) (o provider.Outcome, code string, known bool) {
	switch r.Call {
	case "recipient":
		code, o = recipientCode(a)
	case "disburse":
		o = submitted(a, r.Reference)
	case "disburse_status":
		o = disbursed(a)
	case "collect":
		o = charged(a, r.Reference)
	case "voucher":
		o = vouched(a, r.Reference)
	case "check", "collect_status":
		o = collected(a)
	case "refund":
		o = refunded(a, provider.RefundRequest{ProviderReference: r.Reference, Collected: "makola-sample-000001"})
	case "refund_status":
		amount, _ := money.Parse(r.Amount)
		o = refundFound(a, r.Reference, amount)
	case "name":
		_, o = accountName(a)
	case "banks":
		var list []provider.PayableBank
		if list, o = bankList(a); len(list) == 1 {
			code = list[0].Code
		}
	case "balance":
		var held []provider.Held
		if held, o = balance(a); len(held) == 1 {
			code = held[0].Amount.String()
		}
	default:
		return o, "", false
	}
	return o, code, true
}
