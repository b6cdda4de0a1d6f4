package pawapay

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/providertest"
)

// recorded is an answer or callback of pawaPay, with its source, the date and the grade of the source, and its meaning. The
// simulator's tests use the same files.
type recorded struct {
	Name, Call, Grade, Source, Date string
	Status                          int
	Reference, Amount, Party        string
	Body                            json.RawMessage
	Want                            struct {
		Class, State, Reason, Code, Upstream, Held string
		Clear, Duplicate                           bool
		NotFound                                   bool `json:"not_found"`
	}
}

// answer returns a complete response.
func answer(status int, body string) provider.Answer {
	return provider.Answer{Written: true, Status: status, Body: []byte(body)}
}

// Every sample is read as its page describes it. Only a sample of pawaPay's own, grade D, may be final.
func TestSamples_readAsDocumented(t *testing.T) {
	providertest.EachRecorded(t, func(r recorded) (name, source, date string) { return r.Name, r.Source, r.Date }, recorded.check)
}

func (r recorded) check(t *testing.T) {
	if r.Call == "callback" {
		a := New(config.PawaPay{}, provider.ClientOptions{})
		defer a.Close()
		hints, err := a.ParseCallback(provider.CallbackRequest{Method: http.MethodPost, Header: http.Header{}, Body: r.Body})
		if err != nil || len(hints) != 1 || hints[0] != (provider.Hint{ProviderReference: r.Reference}) {
			t.Errorf("%v, %v", hints, err)
		}
		return
	}
	o, held := r.read(answer(r.Status, string(r.Body)))
	w := r.Want
	if o.Class.String() != w.Class || w.State != "" && o.State.String() != w.State || o.Reason != w.Reason || o.Code != w.Code || o.UpstreamID != w.Upstream ||
		o.Clear != w.Clear || o.Duplicate != w.Duplicate || o.NotFound != w.NotFound || w.Held != held || o.FeeKnown {
		t.Errorf("%+v (%s), want %+v", o, held, w)
	}
	if (o.Clear || o.Final() || o.NotFound) && r.Grade != "D" {
		t.Errorf("a final meaning of grade %s: %+v", r.Grade, o)
	}
	if r.Call != "status" || o.Class != provider.Accepted {
		return
	}
	amount, err := money.Parse(r.Amount)
	if err != nil || provider.Mismatch(o, provider.Expect{Reference: r.Reference, Amount: amount, Party: r.Party}) {
		t.Errorf("the echo is another payment's: %+v, %v", o.Echo, err)
	}
}

// read returns the sample to the function that reads this call's answers.
func (r recorded) read(a provider.Answer) (o provider.Outcome, held string) {
	switch r.Call {
	case "submit":
		o = submitted(a, r.Reference)
	case "status":
		o = stated(a)
	case "balance":
		var all []provider.Held
		if all, o = balance(a); len(all) == 1 {
			held = all[0].Amount.String()
		}
	}
	return o, held
}
