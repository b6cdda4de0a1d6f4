package moolre

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/providertest"
)

// recorded is an answer or callback of Moolre, with its source, the date and the grade of the source, and its meaning. The
// simulator's tests use the same files.
type recorded struct {
	Name, Call, Grade, Source, Date string
	Status                          int
	Reference, Amount, Party        string
	Body                            json.RawMessage
	Want                            struct {
		Class, State, Reason, Code, Name, Upstream, Held string
		NotFound                                         bool `json:"not_found"`
	}
}

// Every sample is read as its page describes it. Only a sample of Moolre's own, grade D, may be final, and no refusal is.
func TestSamples_readAsDocumented(t *testing.T) {
	providertest.EachRecorded(t, func(r recorded) (name, source, date string) { return r.Name, r.Source, r.Date }, recorded.check)
}

func (r recorded) check(t *testing.T) {
	if r.Call == "callback" {
		a := New(config.Moolre{CallbackSecret: "00000000-0000-4000-8000-000000000006"}, provider.ClientOptions{})
		defer a.Close()
		hints, err := a.ParseCallback(provider.CallbackRequest{Method: http.MethodPost, Header: http.Header{}, Body: r.Body})
		if err != nil || len(hints) != 1 || hints[0] != (provider.Hint{ProviderReference: r.Reference}) {
			t.Errorf("%v, %v", hints, err)
		}
		return
	}
	o, held, known := r.read(answer(r.Status, string(r.Body)))
	if !known {
		return // this sample is only for the simulator
	}
	w := r.Want
	if o.Class.String() != w.Class || w.State != "" && o.State.String() != w.State || o.Reason != w.Reason || o.Code != w.Code || o.Name != w.Name ||
		o.UpstreamID != w.Upstream || o.NotFound != w.NotFound || w.Held != held || o.FeeKnown || o.Clear || o.Duplicate {
		t.Errorf("%+v (%s), want %+v", o, held, w)
	}
	if (o.Final() || o.NotFound) && r.Grade != "D" {
		t.Errorf("a final meaning of grade %s: %+v", r.Grade, o)
	}
	if !strings.HasSuffix(r.Call, "_status") || o.Class != provider.Accepted {
		return
	}
	amount, err := money.Parse(r.Amount)
	if err != nil || provider.Mismatch(o, provider.Expect{Reference: r.Reference, Amount: amount, Party: r.Party}) {
		t.Errorf("the echo is another payment's: %+v, %v", o.Echo, err)
	}
}

// read passes the sample to the function that reads the answers to this call.
func (r recorded) read(a provider.Answer) (o provider.Outcome, held string, known bool) {
	switch r.Call {
	case "collect":
		o = prompted(a)
	case "voucher":
		o = confirmed(a)
		o.Message = ""
	case "collect_status":
		o = collected(a, r.Reference)
	case "disburse":
		o = transferred(a, r.Reference)
	case "disburse_status":
		o = disbursed(a, r.Reference, nil)
	case "name":
		_, o = holder(a)
	case "balance":
		var all []provider.Held
		if all, o = balance(a); len(all) == 1 {
			held = all[0].Amount.String()
		}
	case "banks":
		list, outcome := bankList(a)
		for _, b := range list {
			held = strings.TrimSpace(held + " " + b.Code)
		}
		o = outcome
	default:
		return o, "", false
	}
	return o, held, true
}
