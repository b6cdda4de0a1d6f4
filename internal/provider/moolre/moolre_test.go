package moolre_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/moolre"
	"github.com/makola/makola/internal/sim"
	simmoolre "github.com/makola/makola/internal/sim/moolre"
	"github.com/makola/makola/internal/test/providertest"
)

// bench is the adapter in front of a simulated Moolre.
type bench struct{ *providertest.Simulated }

func newBench(t *testing.T, habits simmoolre.Options) *bench {
	t.Helper()
	b := &bench{providertest.Simulate(t, simmoolre.Name, sim.Options{}, func(callbackURL string) sim.Part {
		habits.CallbackURL = callbackURL
		return simmoolre.New(habits)
	}, func(base string, o provider.ClientOptions) (provider.Rail, func()) {
		a := moolre.New(simmoolre.Config(base), o)
		return a.Rail(), a.Close
	})}
	account := simmoolre.Config("")
	b.Network, b.Reasonless, b.Signed, b.SilentFailures, b.NoPayoutCallbacks = msisdn.Telecel, true, true, true, true
	b.Secrets = []string{account.PrivateKey.Reveal(), account.PublicKey.Reveal(), account.CallbackSecret.Reveal(), account.AccountNumber, "KWAME"}
	return b
}

func TestMoolre_conforms(t *testing.T) {
	for _, network := range msisdn.Networks() {
		t.Run(string(network), func(t *testing.T) {
			b := newBench(t, simmoolre.Options{})
			b.Network = network
			t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
			t.Run("collector", func(t *testing.T) { providertest.Collector(t, b.Bench) })
			t.Run("names", func(t *testing.T) { providertest.NameResolver(t, b.Bench) })
			t.Run("float", func(t *testing.T) {
				providertest.FloatReader(t, b.Bench, func() []provider.Held {
					return []provider.Held{{Account: provider.AccountDisbursement, Amount: b.Sim.Float(simmoolre.Name)}}
				})
			})
		})
	}
	t.Run("bank", func(t *testing.T) {
		b := newBench(t, simmoolre.Options{})
		b.BankCode = "030402"
		t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
		t.Run("names", func(t *testing.T) { providertest.BankResolver(t, b.Bench) })
	})
}

func (b *bench) send(t *testing.T, reference, code string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Reference: "r", Amount: amount, MSISDN: b.Wallet(code), Network: b.Network})
}

func (b *bench) sent(t *testing.T, reference string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Disburser.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount})
}

func (b *bench) collect(t *testing.T, reference, code string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Collector.Collect(t.Context(), provider.CollectRequest{ProviderReference: reference, Reference: "r", Amount: amount, MSISDN: b.Wallet(code), Network: b.Network})
}

func (b *bench) collected(t *testing.T, reference string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount})
}

func (b *bench) voucher(t *testing.T, reference, code, voucher string, amount money.Pesewas) provider.Outcome {
	return b.Rail.Vouchers.SubmitVoucher(t.Context(), provider.VoucherRequest{ProviderReference: reference, Code: voucher, Reference: "r", Amount: amount, MSISDN: b.Wallet(code), Network: b.Network})
}

// While the prompt is open, Moolre reports the collection as not found and failed. That is never a failure, at any age: the
// payer may still approve.
func TestCollect_openPromptIsNoFailure(t *testing.T) {
	b := newBench(t, simmoolre.Options{})
	reference := uuid.NewString()
	if o := b.collect(t, reference, "003", 500); o.Class != provider.Accepted || o.State != provider.Pending || o.Code != "TR099" {
		t.Fatalf("%+v", o)
	}
	for range 3 {
		if o := b.collected(t, reference, 500); o.Class != provider.Unknown || !o.NotFound || o.Final() || o.Unpaid || o.Code != "SS07" {
			t.Errorf("open: %+v", o)
		}
		b.Advance(24 * time.Hour)
	}
	if !b.Sim.Resolve(simmoolre.Name, reference, sim.Success, "") {
		t.Fatal("the payer cannot approve")
	}
	if o := b.collected(t, reference, 500); o.State != provider.Success || provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 500, Party: b.Wallet("003").International()}) {
		t.Errorf("approved: %+v", o)
	}
	a := moolre.New(config.Moolre{User: "u"}, provider.ClientOptions{Mode: "live"})
	defer a.Close()
	if live := a.Rail(); live.VisibleAfter != 0 || live.MayRepeat != (provider.Requests{}) {
		t.Errorf("an answer about an open prompt may move money: %+v", live)
	}
}

// A payer's first collection waits for the code that Moolre sent. A wrong code is refused, and nothing is final before the
// payer approves. The second collection of the same payer needs no code.
func TestCollect_payerConfirmsByCode(t *testing.T) {
	for _, network := range msisdn.Networks() {
		b := newBench(t, simmoolre.Options{Confirm: true})
		b.Network = network
		reference := uuid.NewString()
		if o := b.collect(t, reference, "000", 500); o.Class != provider.Accepted || o.State != provider.Pending || o.Code != "TP14" || len(b.Sim.All()) != 0 {
			t.Fatalf("%s: %+v", network, o)
		}
		if texts := b.Sim.Messages(string(b.Wallet("000"))); len(texts) != 1 || !strings.Contains(texts[0].Text, "123456") {
			t.Errorf("texts %v", texts)
		}
		if o := b.collected(t, reference, 500); o.Class != provider.Unknown || !o.NotFound {
			t.Errorf("before the code: %+v", o)
		}
		for _, wrong := range []string{"111111", "777333"} {
			if o := b.voucher(t, reference, "000", wrong, 500); o.Class != provider.Rejected || o.Clear || o.Message != "" {
				t.Errorf("wrong code: %+v", o)
			}
		}
		if o := b.voucher(t, reference, "000", "123456", 500); o.Class != provider.Accepted || o.Final() || o.Code != "TR099" {
			t.Errorf("right code: %+v", o)
		}
		if o := b.voucher(t, reference, "000", "123456", 500); o.Class != provider.Rejected {
			t.Errorf("after the prompt: %+v", o)
		}
		b.Advance(time.Minute)
		if o := b.collected(t, reference, 500); o.State != provider.Success || len(b.Sim.Entries(reference)) != 1 {
			t.Errorf("in the end: %+v", o)
		}
		if o := b.collect(t, uuid.NewString(), "000", 500); o.Code != "TR099" {
			t.Errorf("the second collection: %+v", o)
		}
		for _, e := range b.Exchanges() {
			for _, secret := range []string{"123456", "777333", "111111"} {
				if strings.Contains(e.URL+e.Request+e.Answer, secret) {
					t.Errorf("%s shows %s: %s %s", e.Operation, secret, e.Request, e.Answer)
				}
			}
		}
	}
}

// If the answer to a code is lost, the collection stays open. It is safe to send the same code again.
func TestVoucher_answerLost(t *testing.T) {
	b := newBench(t, simmoolre.Options{Confirm: true})
	for _, fault := range []string{"answer_lost", "request_lost", "error_after", "malformed", "outage", "throttle", "unauthorized"} {
		reference := uuid.NewString()
		b.Network = msisdn.MTN
		code := map[string]string{"answer_lost": "000", "request_lost": "011", "error_after": "012", "malformed": "013", "outage": "014", "throttle": "015", "unauthorized": "016"}[fault]
		b.collect(t, reference, code, 500)
		b.Fault("voucher", fault, 2)
		if o := b.voucher(t, reference, code, "123456", 500); o.Class != provider.Unknown {
			t.Errorf("%s: %+v", fault, o)
		}
		b.Clear()
		b.voucher(t, reference, code, "123456", 500)
		b.Advance(time.Minute)
		if o := b.collected(t, reference, 500); o.State != provider.Success || len(b.Sim.Entries(reference)) != 1 {
			t.Errorf("%s: in the end %+v", fault, o)
		}
	}
}

// Moolre may answer an accepted payout with anything, a refusal too. A status query then returns its true state.
func TestDisburse_refusedAndPaid(t *testing.T) {
	b := newBench(t, simmoolre.Options{})
	for _, answer := range simmoolre.RefusalAnswers() {
		reference := uuid.NewString()
		if err := b.Sim.Inject(sim.Fault{Provider: simmoolre.Name, Operation: sim.OpDisburse, Kind: sim.RefuseAfter, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		o := b.send(t, reference, "000", 500)
		if o.Class != provider.Rejected && o.Class != provider.Unknown || o.Clear || o.Unposted || o.Final() || len(b.Sim.Entries(reference)) != 1 {
			t.Errorf("%q: %+v", answer, o)
		}
		b.Advance(time.Minute)
		if o := b.sent(t, reference, 500); o.State != provider.Success {
			t.Errorf("%q: in the end %+v", answer, o)
		}
	}
}

// Only the answer to an unknown reference means that Moolre does not have a payment. For a payout the operator must have
// configured it.
func TestDisburseStatus_saysNothing(t *testing.T) {
	b := newBench(t, simmoolre.Options{})
	reference := uuid.NewString()
	b.send(t, reference, "000", 500)
	b.Advance(time.Minute)
	for _, answer := range simmoolre.StatusAnswers() {
		for op, ask := range map[string]func(*testing.T, string, money.Pesewas) provider.Outcome{sim.OpDisburseStatus: b.sent} {
			if err := b.Sim.Inject(sim.Fault{Provider: simmoolre.Name, Operation: op, Kind: sim.StatusAnswer, Answer: answer}); err != nil {
				t.Fatal(err)
			}
			if o := ask(t, reference, 500); o.Class != provider.Unknown || o.NotFound {
				t.Errorf("%q: %+v", answer, o)
			}
		}
	}
	b.Fault("disburse_status", "status_other", 1)
	if o := b.sent(t, reference, 500); !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 500}) {
		t.Errorf("another payment: %+v, %+v", o, o.Echo)
	}
	account := simmoolre.Config(b.Base)
	account.TransferNotKnown = nil
	a := moolre.New(account, provider.ClientOptions{Mode: "test"})
	defer a.Close()
	if o := a.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: uuid.NewString(), Amount: 500}); o.Class != provider.Unknown || o.NotFound || o.Code != "200:SS07" {
		t.Errorf("without the setting: %+v", o)
	}
}

// A low balance at Moolre does not fail a payout, because the code of that refusal is not documented.
func TestDisburse_balanceTooLow(t *testing.T) {
	b := newBench(t, simmoolre.Options{})
	if err := b.Sim.SetFloat(simmoolre.Name, 499); err != nil {
		t.Fatal(err)
	}
	if o := b.send(t, uuid.NewString(), "000", 500); o.Class != provider.Rejected || o.Clear || o.Unposted || o.Reason == "" {
		t.Errorf("%+v", o)
	}
}

// A callback is accepted only with the account's secret, at either place. A callback about a payment that is not ours is
// accepted, too.
func TestParseCallback_secret(t *testing.T) {
	b := newBench(t, simmoolre.Options{})
	reference := uuid.NewString()
	b.collect(t, reference, "000", 500)
	b.Advance(time.Minute)
	calls := b.Callbacks()
	if len(calls) != 1 {
		t.Fatalf("%d callbacks", len(calls))
	}
	parse := b.Rail.Callbacks.ParseCallback
	changed := func(change func(body, data map[string]any)) provider.CallbackRequest {
		var body map[string]any
		if err := json.Unmarshal(calls[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		data, _ := body["data"].(map[string]any)
		change(body, data)
		r := calls[0]
		r.Body, _ = json.Marshal(body)
		return r
	}
	for name, r := range map[string]provider.CallbackRequest{
		"no secret":         changed(func(body, _ map[string]any) { delete(body, "secret") }),
		"an empty secret":   changed(func(body, _ map[string]any) { body["secret"] = "" }),
		"another secret":    changed(func(body, _ map[string]any) { body["secret"] = "11111111-1111-4111-8111-111111111111" }),
		"a part of it":      changed(func(body, _ map[string]any) { body["secret"] = "00000000-0000-4000-8000-00000000000" }),
		"a list":            changed(func(body, _ map[string]any) { body["secret"] = []string{} }),
		"null":              {Body: []byte("null")},
		"cut off":           {Body: calls[0].Body[:len(calls[0].Body)-10]},
		"nothing":           {},
		"a form":            {Body: []byte("externalref=" + reference)},
		"a longer secret":   changed(func(body, _ map[string]any) { body["secret"] = "00000000-0000-4000-8000-0000000000060" }),
		"a number as order": changed(func(body, _ map[string]any) { body["secret"] = 6 }),
	} {
		if hints, err := parse(r); err == nil || len(hints) != 0 {
			t.Errorf("%s: %v, %v", name, hints, err)
		}
	}
	moved := changed(func(body, data map[string]any) { data["secret"] = body["secret"]; delete(body, "secret") })
	for _, r := range []provider.CallbackRequest{calls[0], moved, calls[0]} {
		if hints, err := parse(r); err != nil || len(hints) != 1 || hints[0].ProviderReference != reference {
			t.Errorf("%v, %v", hints, err)
		}
	}
	if hints, err := parse(changed(func(_, data map[string]any) { data["externalref"] = "order-7" })); err != nil || len(hints) != 0 {
		t.Errorf("not ours: %v, %v", hints, err)
	}
	account := simmoolre.Config(b.Base)
	account.CallbackSecret = ""
	a := moolre.New(account, provider.ClientOptions{Mode: "test"})
	defer a.Close()
	if hints, err := a.ParseCallback(changed(func(body, _ map[string]any) { delete(body, "secret") })); err != nil || len(hints) != 1 {
		t.Errorf("without the setting: %v, %v", hints, err)
	}
}

// The sandbox accepts requests with only the user name. The live host bars them.
func TestSandbox_needsNoKeys(t *testing.T) {
	for _, sandbox := range []bool{true, false} {
		b := newBench(t, simmoolre.Options{Sandbox: sandbox})
		account := simmoolre.Config(b.Base)
		account.PrivateKey, account.PublicKey = "", ""
		a := moolre.New(account, provider.ClientOptions{Mode: "test"})
		want := provider.Barred
		if sandbox {
			want = provider.Accepted
		}
		_, float := a.Float(t.Context())
		pay := a.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: uuid.NewString(), Reference: "r", Amount: 500, MSISDN: b.Wallet("000"), Network: b.Network})
		if float.Class != want || pay.Class != want {
			t.Errorf("sandbox %v: %+v, %+v", sandbox, float, pay)
		}
		a.Close()
	}
}

// The list contains the banks with Moolre's own codes.
func TestBanks_moolreCodes(t *testing.T) {
	b := newBench(t, simmoolre.Options{})
	list, o := b.Rail.BankList.Banks(t.Context())
	if o.Class != provider.Accepted || len(list) != 4 || list[1] != (provider.PayableBank{Code: "030402", Name: "ACCESS BANK GHANA LTD"}) {
		t.Errorf("%v, %+v", list, o)
	}
}
