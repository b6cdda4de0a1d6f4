package mtnmomo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/providertest"
)

// recorded is an answer as MTN documents it, with its source, its date and its meaning. The simulator is tested with
// the same files.
type recorded struct {
	Name, Call, Source, Date           string
	Status                             int
	Currency, Reference, Amount, Party string
	Body                               json.RawMessage
	Want                               struct {
		Class, State, Reason, Upstream string
		Clear, Duplicate               bool
		NotFound                       bool `json:"not_found"`
	}
}

// TestSamples_readAsDocumented checks that every documented sample is read as MTN describes it.
func TestSamples_readAsDocumented(t *testing.T) {
	providertest.EachRecorded(t, func(r recorded) (name, source, date string) { return r.Name, r.Source, r.Date }, recorded.check)
}

func (r recorded) check(t *testing.T) {
	a := New(config.MTN{
		URL: "http://127.0.0.1:1", Currency: r.Currency, CollectionUser: "u", CollectionKey: "k", CollectionAPIKey: "a",
		DisbursementUser: "u", DisbursementKey: "k", DisbursementAPIKey: "a",
	}, provider.ClientOptions{})
	resource, question := strings.CutSuffix(r.Call, "_status")
	product := map[string]*mtnProduct{a.collection.path: a.collection, a.disbursement.path: a.disbursement, refund: a.disbursement}[resource]
	if product == nil {
		t.Fatalf("nobody reads %q", r.Call)
	}
	var o provider.Outcome
	if said := answer(r.Status, string(r.Body)); question {
		o = product.answered(said)
	} else {
		o = submitted(product.name, said)
	}
	w := r.Want
	if o.Class.String() != w.Class || w.State != "" && o.State.String() != w.State || o.Reason != w.Reason || o.UpstreamID != w.Upstream ||
		o.Clear != w.Clear || o.Duplicate != w.Duplicate || o.NotFound != w.NotFound {
		t.Errorf("%+v, want %+v", o, w)
	}
	if o.Class != provider.Accepted || !question {
		return
	}
	amount, err := money.Parse(r.Amount)
	if err != nil || provider.Mismatch(o, provider.Expect{Reference: r.Reference, Amount: amount, Party: r.Party}) {
		t.Errorf("the echo is another payment's: %+v, %v", o.Echo, err)
	}
}
