package hubtel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/providertest"
)

// recorded is an answer or callback as Hubtel documents it, with its source, its date and its meaning. The simulator
// is tested with the same files.
type recorded struct {
	Name, Call, Source, Date string
	Status                   int
	Reference, Party         string
	Amount                   money.Pesewas
	Body                     json.RawMessage
	Want                     struct {
		Class, State, Reason, Code, Name, Upstream string
		Clear, Unpaid                              bool
		Fee                                        *string
		Offers                                     int
	}
}

func (r *recorded) UnmarshalJSON(b []byte) error {
	type plain recorded
	var in struct {
		plain
		Amount string
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*r = recorded(in.plain)
	if in.Amount == "" {
		return nil
	}
	var err error
	r.Amount, err = money.Parse(in.Amount)
	return err
}

// TestSamples_readAsDocumented checks that every documented sample is read as its page describes it.
func TestSamples_readAsDocumented(t *testing.T) {
	providertest.EachRecorded(t, func(r recorded) (name, source, date string) { return r.Name, r.Source, r.Date }, recorded.check)
}

func (r recorded) check(t *testing.T) {
	if r.Call == "callback" {
		var e envelope
		if err := json.Unmarshal(r.Body, &e); err != nil || string(e.payload().ClientReference) != r.Reference {
			t.Errorf("the callback names %q, %v", e.payload().ClientReference, err)
		}
		return
	}
	o, offers, known := r.read(answer(r.Status, string(r.Body)))
	if !known {
		t.Fatalf("nobody reads %q", r.Call)
	}
	w := r.Want
	if w.Class != "" && (o.Class.String() != w.Class || o.Reason != w.Reason || o.Clear != w.Clear || o.Unpaid != w.Unpaid || o.UpstreamID != w.Upstream) {
		t.Errorf("%+v, want %+v", o, w)
	}
	if w.State != "" && o.State.String() != w.State || o.Name != w.Name || offers != w.Offers || w.Code != "" && o.Code != w.Code {
		t.Errorf("%+v, want %+v", o, w)
	}
	if o.FeeKnown != (w.Fee != nil) || w.Fee != nil && o.Fee.String() != *w.Fee {
		t.Errorf("fee %v %v, want %v", o.Fee, o.FeeKnown, w.Fee)
	}
	if strings.HasSuffix(r.Call, "_status") && provider.Mismatch(o, provider.Expect{Reference: r.Reference, Amount: r.Amount, Party: r.Party}) {
		t.Errorf("the echo is another payment's: %+v", o.Echo)
	}
}

// read passes the sample to the code that reads the answers of its call.
func (r recorded) read(a provider.Answer) (o provider.Outcome, offered int, known bool) {
	want := order{reference: r.Reference, amount: r.Amount, product: map[string]product{"disburse": payout, "topup": sale, "topup_status": sale, "bundle_status": sale}[r.Call]}
	switch r.Call {
	case "collect", "disburse", "topup":
		o = submitted(a, want)
	case "collect_status", "topup_status", "bundle_status":
		o = paid(a, want, nil)
	case "disburse_status":
		o = disbursed(a, want, nil)
	case "wallet_name":
		_, o = walletName(a)
	case "bank_name":
		_, o = bankName(a)
	case "sim_name":
		o.Name = holderName(a)
	case "offers":
		var list []provider.Offer
		list, o = offers(a)
		offered = len(list)
	default:
		return o, 0, false
	}
	return o, offered, true
}
