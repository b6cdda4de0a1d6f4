package pawapay_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/pawapay"
	"github.com/makola/makola/internal/sim"
	simpawapay "github.com/makola/makola/internal/sim/pawapay"
	"github.com/makola/makola/internal/test/providertest"
)

// bench is the adapter in front of a simulated pawaPay.
type bench struct{ *providertest.Simulated }

func newBench(t *testing.T, habits simpawapay.Options) *bench {
	t.Helper()
	b := &bench{providertest.Simulate(t, simpawapay.Name, sim.Options{}, func(callbackURL string) sim.Part {
		habits.CallbackURL = callbackURL
		return simpawapay.New(habits)
	}, func(base string, o provider.ClientOptions) (provider.Rail, func()) {
		a := pawapay.New(simpawapay.Config(base), o)
		return a.Rail(), a.Close
	})}
	b.Network, b.Reasonless, b.Signed = msisdn.Telecel, true, true
	b.Secrets = []string{simpawapay.Config("").Token.Reveal(), "Bearer "}
	return b
}

// refunds returns the bench without the callbacks of refunded deposits.
func (b *bench) refunds() providertest.Bench {
	of := b.Bench
	of.Callbacks = func() []provider.CallbackRequest {
		return slices.DeleteFunc(b.Callbacks(), func(r provider.CallbackRequest) bool { return strings.Contains(string(r.Body), `"depositId"`) })
	}
	return of
}

func TestPawaPay_conforms(t *testing.T) {
	for _, network := range msisdn.Networks() {
		t.Run(string(network), func(t *testing.T) {
			b := newBench(t, simpawapay.Options{})
			b.Network = network
			t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
			t.Run("collector", func(t *testing.T) { providertest.Collector(t, b.Bench) })
			t.Run("refunder", func(t *testing.T) { providertest.Refunder(t, b.refunds()) })
			t.Run("float", func(t *testing.T) {
				providertest.FloatReader(t, b.Bench, func() []provider.Held {
					return []provider.Held{{Account: provider.AccountDisbursement, Amount: b.Sim.Float(simpawapay.Name)}}
				})
			})
		})
	}
}

func (b *bench) send(t *testing.T, reference string, to msisdn.MSISDN, amount money.Pesewas) provider.Outcome {
	return b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Reference: "r", Amount: amount, MSISDN: to, Network: b.Network})
}

func (b *bench) status(t *testing.T, reference string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Disburser.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount})
}

// pawaPay has two answers to a used id: it ignores the repeat, or it rejects it. Neither pays twice, and the rejection is not final.
func TestRepeat_twoAnswers(t *testing.T) {
	for rejects, want := range map[bool]provider.Class{false: provider.Accepted, true: provider.Rejected} {
		b := newBench(t, simpawapay.Options{RejectRepeats: rejects})
		reference := uuid.NewString()
		b.send(t, reference, b.Wallet("000"), 500)
		for range 2 {
			o := b.send(t, reference, b.Wallet("000"), 500)
			if o.Class != want || o.Clear || o.Unposted || o.Final() || o.Duplicate == rejects {
				t.Errorf("rejects %v: %+v", rejects, o)
			}
			b.Advance(time.Minute)
		}
		if o := b.status(t, reference, 500); o.State != provider.Success || len(b.Sim.Entries(reference)) != 1 {
			t.Errorf("rejects %v: in the end %+v", rejects, o)
		}
	}
}

// pawaPay may return anything for an accepted payout, even a refusal. A status query then returns the true state. A refusal is
// clear only with a listed code and HTTP 200.
func TestDisburse_refusedAndPaid(t *testing.T) {
	b := newBench(t, simpawapay.Options{})
	clear := 0
	for _, answer := range simpawapay.RefusalAnswers() {
		reference := uuid.NewString()
		if err := b.Sim.Inject(sim.Fault{Provider: simpawapay.Name, Operation: sim.OpDisburse, Kind: sim.RefuseAfter, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		o := b.send(t, reference, b.Wallet("000"), 500)
		if o.Class != provider.Rejected && o.Class != provider.Unknown || o.Unposted || o.Final() || len(b.Sim.Entries(reference)) != 1 {
			t.Errorf("%q: %+v", answer, o)
		}
		if o.Clear {
			clear++
		}
		b.Advance(time.Minute)
		if o := b.status(t, reference, 500); o.State != provider.Success {
			t.Errorf("%q: in the end %+v", answer, o)
		}
	}
	if clear != 4 { // the default, and the three listed ones by name
		t.Errorf("%d clear refusals", clear)
	}
}

// Only the documented response means that pawaPay does not have the payment.
func TestDisburseStatus_saysNothing(t *testing.T) {
	b := newBench(t, simpawapay.Options{})
	reference := uuid.NewString()
	b.send(t, reference, b.Wallet("000"), 500)
	b.Advance(time.Minute)
	for _, answer := range simpawapay.StatusAnswers() {
		if err := b.Sim.Inject(sim.Fault{Provider: simpawapay.Name, Operation: sim.OpDisburseStatus, Kind: sim.StatusAnswer, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		if o := b.status(t, reference, 500); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%q: %+v", answer, o)
		}
	}
	b.Fault("disburse_status", "status_other", 1)
	if o := b.status(t, reference, 500); !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 500}) {
		t.Errorf("another payment: %+v, %+v", o, o.Echo)
	}
}

// The documented test numbers have the documented outcomes. A payment without a final status stays open.
func TestNumbers_endAsDocumented(t *testing.T) {
	b := newBench(t, simpawapay.Options{})
	type result struct {
		state  provider.State
		reason string
	}
	const (
		mtn     = "593456"
		at      = "273456"
		telecel = "503456"
	)
	networks := map[string]msisdn.Network{mtn: msisdn.MTN, at: msisdn.AirtelTigo, telecel: msisdn.Telecel}
	open := result{provider.Pending, ""}
	failed := func(reason string) result { return result{provider.Failed, reason} }
	done := result{provider.Success, ""}
	for prefix, numbers := range map[string]map[string]result{
		mtn:     {"019": failed(provider.ReasonLimit), "029": failed(provider.ReasonPayerNotFound), "039": failed(provider.ReasonDeclined), "069": failed(provider.ReasonRefused), "129": open, "789": done},
		at:      {"069": failed(provider.ReasonRefused), "129": open, "789": done},
		telecel: {"039": failed(provider.ReasonDeclined), "049": failed(provider.ReasonFunds), "069": failed(provider.ReasonRefused), "129": open, "789": done},
	} {
		for number, want := range numbers {
			reference := uuid.NewString()
			b.Rail.Collector.Collect(t.Context(), provider.CollectRequest{ProviderReference: reference, Amount: 500, MSISDN: msisdn.MSISDN("233" + prefix + number), Network: networks[prefix]})
			b.Advance(24 * time.Hour)
			o := b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 500})
			if o.Class != provider.Accepted || (result{o.State, o.Reason}) != want {
				t.Errorf("deposit of %s%s: %+v, want %+v", prefix, number, o, want)
			}
		}
	}
	for prefix, numbers := range map[string]map[string]result{
		mtn:     {"089": failed(provider.ReasonPayeeNotFound), "119": failed(provider.ReasonRefused), "129": open, "789": done},
		at:      {"089": failed(provider.ReasonPayeeNotFound), "099": failed(provider.ReasonBarred), "119": failed(provider.ReasonRefused), "129": open, "789": done},
		telecel: {"089": failed(provider.ReasonPayeeNotFound), "099": failed(provider.ReasonBarred), "119": failed(provider.ReasonRefused), "129": open, "789": done},
	} {
		b.Network = networks[prefix]
		for number, want := range numbers {
			reference := uuid.NewString()
			b.send(t, reference, msisdn.MSISDN("233"+prefix+number), 500)
			b.Advance(24 * time.Hour)
			if o := b.status(t, reference, 500); o.Class != provider.Accepted || (result{o.State, o.Reason}) != want {
				t.Errorf("payout to %s%s: %+v, want %+v", prefix, number, o, want)
			}
		}
	}
}

// A callback is accepted only with pawaPay's signature over its body and its address. A callback about a payment that is not
// ours is accepted, too.
func TestParseCallback_signature(t *testing.T) {
	b := newBench(t, simpawapay.Options{})
	reference := uuid.NewString()
	b.send(t, reference, b.Wallet("000"), 500)
	b.Advance(time.Minute)
	calls := b.Callbacks()
	if len(calls) != 1 {
		t.Fatalf("%d callbacks", len(calls))
	}
	parse := b.Rail.Callbacks.ParseCallback
	header := func(name, value string) func(*provider.CallbackRequest) {
		return func(r *provider.CallbackRequest) { r.Header.Set(name, value) }
	}
	for name, spoil := range map[string]func(*provider.CallbackRequest){
		"no signature":       func(r *provider.CallbackRequest) { r.Header = http.Header{} },
		"an empty signature": header("Signature", ""),
		"no base64":          header("Signature", "sig-pp=:zz!:"),
		"another signature":  header("Signature", "sig-pp=:MEUCIQDzN3l1Xn6Yz0Kf5j5e3f1Y9i1r2eXkq3bq9a7dQ1p2mQIgJ1x3p7r9v0b2d4f6h8j0l2n4p6r8t0v2x4z6b8d0f2h=:"),
		"no components":      header("Signature-Input", "sig-pp=();keyid=\"x\""),
		"an unknown key": func(r *provider.CallbackRequest) {
			r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), "KEY:", "KEY:0", 1))
		},
		"without the digest": func(r *provider.CallbackRequest) {
			r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), ` "content-digest"`, "", 1))
		},
		"another digest":       header("Content-Digest", "sha-512=:AAAA:"),
		"another amount":       func(r *provider.CallbackRequest) { r.Body = []byte(strings.Replace(string(r.Body), "5.00", "6.00", 1)) },
		"another host":         func(r *provider.CallbackRequest) { r.Host = "elsewhere.example" },
		"another path":         func(r *provider.CallbackRequest) { r.Path += "x" },
		"another method":       func(r *provider.CallbackRequest) { r.Method = http.MethodPut },
		"another date":         header("Signature-Date", "2020-01-01T00:00:00.000Z"),
		"another content type": header("Content-Type", "text/plain"),
	} {
		r := calls[0]
		r.Header, r.Body = calls[0].Header.Clone(), slices.Clone(calls[0].Body)
		spoil(&r)
		if hints, err := parse(r); err == nil || len(hints) != 0 {
			t.Errorf("%s: %v, %v", name, hints, err)
		}
	}
	for range 3 { // a repeated callback has the same result
		if hints, err := parse(calls[0]); err != nil || len(hints) != 1 || hints[0].ProviderReference != reference {
			t.Errorf("%v, %v", hints, err)
		}
	}
	asked := 0
	for _, e := range b.Exchanges() {
		if e.Operation == "public_keys" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("pawaPay was asked for its keys %d times", asked)
	}
}

// If signatures are not required, a callback without a signature is a hint. A wrong signature is refused in any case.
func TestParseCallback_unsigned(t *testing.T) {
	b := newBench(t, simpawapay.Options{Unsigned: true})
	account := simpawapay.Config(b.Base)
	account.SignedCallbacks = false
	a := pawapay.New(account, provider.ClientOptions{Mode: "test"})
	defer a.Close()
	reference := uuid.NewString()
	b.send(t, reference, b.Wallet("000"), 500)
	b.Advance(time.Minute)
	calls := b.Callbacks()
	if len(calls) != 1 {
		t.Fatalf("%d callbacks", len(calls))
	}
	if hints, err := a.ParseCallback(calls[0]); err != nil || len(hints) != 1 || hints[0].ProviderReference != reference {
		t.Errorf("%v, %v", hints, err)
	}
	if _, err := b.Rail.Callbacks.ParseCallback(calls[0]); err == nil {
		t.Error("taken where signatures are expected")
	}
	calls[0].Header.Set("Signature", "sig-pp=:AAAA:")
	if _, err := a.ParseCallback(calls[0]); err == nil {
		t.Error("a wrong signature was taken")
	}
}

// pawaPay does not reach bank accounts, so nothing is sent.
func TestDisburse_noBanks(t *testing.T) {
	b := newBench(t, simpawapay.Options{})
	o := b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: uuid.NewString(), Amount: 500, BankCode: "040100", Account: "0012345678901"})
	if o.Class != provider.Rejected || !o.Unposted || len(b.Sim.All()) != 0 {
		t.Errorf("%+v", o)
	}
}
