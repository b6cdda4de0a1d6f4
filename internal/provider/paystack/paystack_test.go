package paystack_test

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
	"github.com/makola/makola/internal/provider/paystack"
	"github.com/makola/makola/internal/sim"
	simpaystack "github.com/makola/makola/internal/sim/paystack"
	"github.com/makola/makola/internal/test/providertest"
)

// bench is the adapter in front of a simulated Paystack.
type bench struct{ *providertest.Simulated }

func newBench(t *testing.T, habits simpaystack.Options) *bench {
	t.Helper()
	b := &bench{providertest.Simulate(t, simpaystack.Name, sim.Options{}, func(callbackURL string) sim.Part {
		habits.EventURL = callbackURL
		return simpaystack.New(habits)
	}, func(base string, o provider.ClientOptions) (provider.Rail, func()) {
		a := paystack.New(simpaystack.Config(base), o)
		return a.Rail(), a.Close
	})}
	b.Network, b.Reasonless, b.Signed, b.SilentFailures, b.RefundsByCollection = msisdn.Telecel, true, true, true, true
	b.Secrets = []string{simpaystack.Config("").SecretKey.Reveal(), "Bearer ", "KWAME"}
	return b
}

// refunds returns the bench without the events of the collections that are refunded.
func (b *bench) refunds() providertest.Bench {
	of := b.Bench
	of.Callbacks = func() []provider.CallbackRequest {
		return slices.DeleteFunc(b.Callbacks(), func(r provider.CallbackRequest) bool { return strings.Contains(string(r.Body), `"charge.success"`) })
	}
	return of
}

func (b *bench) send(t *testing.T, reference, code string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Reference: "r", Amount: amount, MSISDN: b.Wallet(code), Network: b.Network})
}

func (b *bench) status(t *testing.T, reference, code string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Disburser.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet(code)})
}

func TestPaystack_conforms(t *testing.T) {
	for _, network := range msisdn.Networks() {
		t.Run(string(network), func(t *testing.T) {
			b := newBench(t, simpaystack.Options{})
			b.Network = network
			t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
			t.Run("names", func(t *testing.T) { providertest.NameResolver(t, b.Bench) })
			if network != msisdn.Telecel { // a payer's voucher completes these charges, see TestCollect_byVoucher
				t.Run("collector", func(t *testing.T) { providertest.Collector(t, b.Bench) })
				t.Run("refunder", func(t *testing.T) { providertest.Refunder(t, b.refunds()) })
			}
			t.Run("float", func(t *testing.T) {
				providertest.FloatReader(t, b.Bench, func() []provider.Held {
					return []provider.Held{{Account: provider.AccountDisbursement, Amount: b.Sim.Float(simpaystack.Name)}}
				})
			})
		})
	}
	t.Run("bank", func(t *testing.T) {
		b := newBench(t, simpaystack.Options{})
		b.BankCode = "040100"
		t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
		t.Run("names", func(t *testing.T) { providertest.BankResolver(t, b.Bench) })
	})
}

// If a recipient cannot be created, no transfer was sent, whatever happened to the request.
func TestDisburse_withoutRecipient(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	for _, fault := range []string{"answer_lost", "request_lost", "error_before", "error_after", "malformed", "outage", "throttle", "unauthorized", "forbidden"} {
		b.Fault("recipient", fault, 20)
		reference := uuid.NewString()
		if o := b.send(t, reference, "000", 500); o.Class != provider.NotSent || len(b.Sim.Entries(reference)) != 0 {
			t.Errorf("%s: %+v", fault, o)
		}
		b.Clear()
	}
}

// A transfer that waits for an OTP is neither paid nor failed, at any age. The message names the mistake in the configuration.
func TestDisburse_waitsForOTP(t *testing.T) {
	b := newBench(t, simpaystack.Options{OTP: true})
	reference := uuid.NewString()
	setUp := func(when string, o provider.Outcome) {
		t.Helper()
		if o.Class != provider.Unknown || o.NotFound || o.Reason != provider.ReasonSetup || o.Code != "otp" {
			t.Errorf("%s: %+v", when, o)
		}
	}
	setUp("submitted", b.send(t, reference, "000", 500))
	for range 3 {
		b.Advance(48 * time.Hour)
		setUp("asked", b.status(t, reference, "000", 500))
	}
	if o := b.send(t, reference, "000", 500); !o.Duplicate {
		t.Errorf("again: %+v", o)
	}
	finalize := strings.NewReader(`{"transfer_code":"TRF_51a0000000000001","otp":"123456"}`)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, b.Base+"/paystack/transfer/finalize_transfer", finalize)
	r.Header.Set("Authorization", "Bearer "+simpaystack.Config("").SecretKey.Reveal())
	if a, err := http.DefaultClient.Do(r); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("finalize: %v, %v", a, err)
	}
	if o := b.status(t, reference, "000", 500); o.State != provider.Success {
		t.Errorf("in the end: %+v", o)
	}
}

// A low balance at Paystack does not fail a payout, because Paystack itself does not document that answer.
func TestDisburse_balanceTooLow(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	if err := b.Sim.SetFloat(simpaystack.Name, 599); err != nil {
		t.Fatal(err)
	}
	reference := uuid.NewString()
	if o := b.send(t, reference, "000", 500); o.Class != provider.Rejected || o.Clear || o.Unposted || o.Reason != provider.ReasonFloat {
		t.Errorf("%+v", o)
	}
	if err := b.Sim.SetFloat(simpaystack.Name, 600); err != nil {
		t.Fatal(err)
	}
	if o := b.send(t, reference, "000", 500); o.Class != provider.Accepted || o.Duplicate {
		t.Errorf("with enough: %+v", o)
	}
}

// The charges of the outcomes add up to Paystack's own book, and its ledger chains to the balance.
func TestDisburse_chargesAddUp(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	before, want := b.Sim.Float(simpaystack.Name), money.Pesewas(0)
	for i, amount := range []money.Pesewas{10, 101, 1999, 1_500_000} {
		reference := uuid.NewString()
		r := provider.DisburseRequest{ProviderReference: reference, Reference: "r", Amount: amount, MSISDN: b.Wallet("000"), Network: b.Network}
		if i%2 == 1 {
			r.MSISDN, r.Network, r.BankCode, r.Account, r.Name = "", "", "040100", "0012345678901", "KWAME MENSAH"
		}
		b.Rail.Disburser.Disburse(t.Context(), r)
		b.Advance(time.Minute)
		o := b.Rail.Disburser.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount})
		if o.State != provider.Success || !o.FeeKnown {
			t.Fatalf("%+v", o)
		}
		want += amount + o.Fee
	}
	if got := before - b.Sim.Float(simpaystack.Name); got != want || want == 0 {
		t.Errorf("the book moved by %v, the outcomes report %v", got, want)
	}
}

// Paystack may answer an accepted transfer with anything. A status query then returns its true state.
func TestDisburse_refusedAndPaid(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	clear := 0
	for _, answer := range simpaystack.RefusalAnswers() {
		reference := uuid.NewString()
		if err := b.Sim.Inject(sim.Fault{Provider: simpaystack.Name, Operation: sim.OpDisburse, Kind: sim.RefuseAfter, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		o := b.send(t, reference, "000", 500)
		if o.Class != provider.Rejected && o.Class != provider.Unknown || o.Unposted || o.Final() || len(b.Sim.Entries(reference)) != 1 {
			t.Errorf("%q: %+v", answer, o)
		}
		if o.Clear {
			clear++
		}
		b.Advance(time.Minute)
		if o := b.status(t, reference, "000", 500); o.State != provider.Success {
			t.Errorf("%q: in the end %+v", answer, o)
		}
	}
	if clear != 2 { // the default refusal, and the same refusal by name
		t.Errorf("%d clear refusals, but one code is documented", clear)
	}
}

// Only the documented answer means that Paystack does not have the transfer.
func TestDisburseStatus_saysNothing(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	reference := uuid.NewString()
	b.send(t, reference, "000", 500)
	b.Advance(time.Minute)
	for _, answer := range simpaystack.StatusAnswers() {
		if err := b.Sim.Inject(sim.Fault{Provider: simpaystack.Name, Operation: sim.OpDisburseStatus, Kind: sim.StatusAnswer, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		if o := b.status(t, reference, "000", 500); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%q: %+v", answer, o)
		}
	}
	b.Fault("disburse_status", "status_other", 1)
	if o := b.status(t, reference, "000", 500); !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 500}) {
		t.Errorf("another payment: %+v, %+v", o, o.Echo)
	}
}

// Account numbers are sent unchanged and appear in no log. An unknown bank has no names.
func TestDisburse_bankAccountsAreText(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	accounts := []string{"0012345678901", "00AB12345", "1234567", "1234567890123456"}
	for _, account := range accounts {
		reference := uuid.NewString()
		name, o := b.Rail.BankNames.BankName(t.Context(), "040100", account)
		if o.Class != provider.Accepted || name == "" {
			t.Errorf("%s: %q, %+v", account, name, o)
		}
		o = b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Amount: 100, BankCode: "040100", Account: account, Name: name, Reference: "r"})
		if e := b.Sim.Entries(reference); o.Class != provider.Accepted || len(e) != 1 || e[0].Party != account {
			t.Errorf("%s: %+v, %+v", account, o, e)
		}
		b.Advance(time.Minute)
		b.Rail.Disburser.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 100, Account: account})
	}
	for _, e := range b.Exchanges() {
		for _, account := range accounts {
			if strings.Contains(e.URL+e.Request+e.Answer, account) {
				t.Errorf("%s shows the account %s: %s %s %s", e.Operation, account, e.URL, e.Request, e.Answer)
			}
		}
	}
	if _, o := b.Rail.BankNames.BankName(t.Context(), "300304", "0012345678901"); o.Class != provider.Rejected {
		t.Errorf("the code of another system: %+v", o)
	}
}

// A signed event about a payment that is not ours is accepted, because Paystack would repeat it for days. An event with a wrong
// signature is refused.
func TestParseCallback_signature(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	reference := uuid.NewString()
	b.send(t, reference, "000", 500)
	b.Advance(time.Minute)
	events := b.Callbacks()
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	parse := b.Rail.Callbacks.ParseCallback
	for name, spoil := range map[string]func(*provider.CallbackRequest){
		"no signature":    func(r *provider.CallbackRequest) { r.Header = http.Header{} },
		"empty signature": func(r *provider.CallbackRequest) { r.Header = http.Header{"X-Paystack-Signature": {""}} },
		"half a signature": func(r *provider.CallbackRequest) {
			r.Header.Set("X-Paystack-Signature", r.Header.Get("X-Paystack-Signature")[:64])
		},
		"another amount":    func(r *provider.CallbackRequest) { r.Body = []byte(strings.Replace(string(r.Body), "500", "501", 1)) },
		"one byte more":     func(r *provider.CallbackRequest) { r.Body = append(slices.Clone(r.Body), ' ') },
		"no hex":            func(r *provider.CallbackRequest) { r.Header.Set("X-Paystack-Signature", "zz") },
		"another's address": func(r *provider.CallbackRequest) { r.Header.Set("X-Paystack-Signature", strings.Repeat("0", 128)) },
	} {
		r := provider.CallbackRequest{Method: events[0].Method, Header: events[0].Header.Clone(), Body: slices.Clone(events[0].Body)}
		spoil(&r)
		if hints, err := parse(r); err == nil || len(hints) != 0 {
			t.Errorf("%s: %v, %v", name, hints, err)
		}
	}
	for range 3 { // repeated, it says the same
		if hints, err := parse(events[0]); err != nil || len(hints) != 1 || hints[0].ProviderReference != reference {
			t.Errorf("%v, %v", hints, err)
		}
	}
}

// charge requests money from a payer.
func (b *bench) charge(t *testing.T, reference, code string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Collector.Collect(t.Context(), provider.CollectRequest{ProviderReference: reference, Reference: "r", Amount: amount,
		MSISDN: b.Wallet(code), Network: b.Network, Email: "accounts@example.com"})
}

func (b *bench) charged(t *testing.T, reference string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount})
}

// A payer on Telecel enters a voucher. No log contains it. A wrong voucher fails the charge. A charge without a voucher counts
// as unpaid after a while.
func TestCollect_byVoucher(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	give := func(reference, code string) provider.Outcome {
		return b.Rail.Vouchers.SubmitVoucher(t.Context(), provider.VoucherRequest{ProviderReference: reference, Code: code})
	}
	for _, c := range []struct {
		name, voucher string
		class         provider.Class
		state         provider.State
		unpaid        bool
	}{
		{"right", "123456", provider.Accepted, provider.Success, false},
		{"wrong", "777333", provider.Rejected, provider.Failed, false},
		{"none", "", 0, provider.Pending, true},
	} {
		reference := uuid.NewString()
		if o := b.charge(t, reference, "000", 500); o.Class != provider.Accepted || o.State != provider.Pending || o.Code != "send_otp" {
			t.Fatalf("%s: %+v", c.name, o)
		}
		if o := b.charged(t, reference, 500); o.Class != provider.Accepted || o.State != provider.Pending || o.Unpaid {
			t.Errorf("%s: before the voucher %+v", c.name, o)
		}
		if c.voucher != "" {
			if o := give(reference, c.voucher); o.Class != c.class || o.Final() || o.Message != "" {
				t.Errorf("%s: %+v", c.name, o)
			}
			if o := give(reference, "123456"); o.Class != provider.Rejected {
				t.Errorf("%s: again %+v", c.name, o)
			}
		}
		b.Advance(4 * time.Minute)
		if o := b.charged(t, reference, 500); o.State != c.state || o.Unpaid != c.unpaid {
			t.Errorf("%s: in the end %+v", c.name, o)
		}
	}
	if o := give(uuid.NewString(), "123456"); o.Class != provider.Rejected {
		t.Errorf("of no charge: %+v", o)
	}
	for _, e := range b.Exchanges() {
		for _, secret := range []string{"123456", "777333", "accounts@example.com"} {
			if strings.Contains(e.URL+e.Request+e.Answer, secret) {
				t.Errorf("%s shows %s: %s %s", e.Operation, secret, e.Request, e.Answer)
			}
		}
	}
}

// The charges in the outcomes add up to the charges in Paystack's own book. If the payer pays the fees, we pay none.
func TestCollect_chargesAddUp(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	b.Network = msisdn.MTN
	before, want := b.Sim.Float(simpaystack.Name), money.Pesewas(0)
	for _, amount := range []money.Pesewas{10, 101, 1999, 1_500_000} {
		reference := uuid.NewString()
		b.charge(t, reference, "000", amount)
		b.Advance(time.Minute)
		o := b.charged(t, reference, amount)
		if o.State != provider.Success || !o.FeeKnown || provider.Mismatch(o, provider.Expect{Reference: reference, Amount: amount}) {
			t.Fatalf("%+v", o)
		}
		want += amount - o.Fee
	}
	if got := b.Sim.Float(simpaystack.Name) - before; got != want || want == 0 {
		t.Errorf("the book moved by %v, the outcomes report %v", got, want)
	}
}

// Paystack carries out a repeated refund twice. The query then reports a contradiction and not a success.
func TestRefund_twiceIsAContradiction(t *testing.T) {
	b := newBench(t, simpaystack.Options{})
	b.Network = msisdn.MTN
	of, reference := uuid.NewString(), uuid.NewString()
	b.charge(t, of, "000", 1000)
	b.Advance(time.Minute)
	refund := provider.RefundRequest{ProviderReference: reference, Collected: of, Reference: "r", Amount: 400}
	status := func() provider.Outcome {
		return b.Rail.Refunder.RefundStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Collected: of, Amount: 400})
	}
	if o := status(); !o.NotFound {
		t.Errorf("before: %+v", o)
	}
	b.Rail.Refunder.Refund(t.Context(), refund)
	b.Advance(time.Minute)
	if o := status(); o.State != provider.Success || provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 400}) {
		t.Errorf("once: %+v", o)
	}
	b.Rail.Refunder.Refund(t.Context(), refund)
	if o := status(); o.Class != provider.Unknown || o.NotFound || o.Reason != provider.ReasonMismatch {
		t.Errorf("twice: %+v", o)
	}
	other := b.Rail.Refunder.RefundStatus(t.Context(), provider.StatusRequest{ProviderReference: uuid.NewString(), Collected: uuid.NewString(), Amount: 400})
	if other.Class != provider.Unknown || other.NotFound {
		t.Errorf("of a collection that Paystack does not have: %+v", other)
	}
}
