package hubtel_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/hubtel"
	"github.com/makola/makola/internal/sim"
	simhubtel "github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/test/providertest"
)

// bench is the adapter connected to a simulated Hubtel.
type bench struct{ *providertest.Simulated }

func newBench(t *testing.T, o sim.Options, habits simhubtel.Options) *bench {
	t.Helper()
	b := &bench{providertest.Simulate(t, simhubtel.Name, o, func(string) sim.Part { return simhubtel.New(habits) },
		func(base string, o provider.ClientOptions) (provider.Rail, func()) {
			a := hubtel.New(simhubtel.Config(base), o)
			return a.Rail(), a.Close
		})}
	b.Network, b.Reasonless = msisdn.Telecel, true
	b.Secrets = []string{providertest.Token, simhubtel.Config("").ClientSecret.Reveal(), "Basic ", "KWAME"}
	return b
}

func TestHubtel_conformsToEveryRole(t *testing.T) {
	for _, network := range msisdn.Networks() {
		t.Run(string(network), func(t *testing.T) {
			b := newBench(t, sim.Options{}, simhubtel.Options{})
			b.Network = network
			t.Run("collector", func(t *testing.T) { providertest.Collector(t, b.Bench) })
			t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
			t.Run("topupper", func(t *testing.T) { providertest.TopUpper(t, b.Bench) })
			t.Run("bundle seller", func(t *testing.T) { providertest.BundleSeller(t, b.Bench) })
			t.Run("names", func(t *testing.T) { providertest.NameResolver(t, b.Bench) })
			t.Run("float", func(t *testing.T) {
				providertest.FloatReader(t, b.Bench, func() []provider.Held { return accounts(b.Sim) })
			})
		})
	}
	t.Run("bank", func(t *testing.T) {
		b := newBench(t, sim.Options{}, simhubtel.Options{})
		b.BankCode = "300304"
		t.Run("disburser", func(t *testing.T) { providertest.Disburser(t, b.Bench) })
		t.Run("names", func(t *testing.T) { providertest.BankResolver(t, b.Bench) })
	})
}

// TestCharges_equalHubtelsBook: the charges that the adapter reports add up to those in Hubtel's own book, for every
// product. No status contains the commission of a sale.
func TestCharges_equalHubtelsBook(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	ctx, rail := t.Context(), b.Rail
	before := b.Sim.Float(simhubtel.Name)
	var want money.Pesewas
	final := func(ask func() provider.Outcome) provider.Outcome {
		t.Helper()
		b.Advance(time.Minute)
		o := ask()
		if o.State != provider.Success || !o.FeeKnown {
			t.Fatalf("%+v", o)
		}
		return o
	}
	wallet, callback := b.Wallet("000"), "http://127.0.0.1:1/"
	status := func(reference string, amount money.Pesewas) provider.StatusRequest {
		return provider.StatusRequest{ProviderReference: reference, Amount: amount, MSISDN: wallet}
	}

	for _, amount := range []money.Pesewas{10, 101, 1999, 1_500_000} {
		reference := uuid.NewString()
		rail.Collector.Collect(ctx, provider.CollectRequest{ProviderReference: reference, Amount: amount, MSISDN: wallet, Network: msisdn.Telecel, Reference: "ref", CallbackURL: callback})
		o := final(func() provider.Outcome { return rail.Collector.CollectStatus(ctx, status(reference, amount)) })
		want += amount - o.Fee

		reference = uuid.NewString()
		rail.Disburser.Disburse(ctx, provider.DisburseRequest{ProviderReference: reference, Amount: amount, MSISDN: wallet, Network: msisdn.Telecel, Reference: "ref", CallbackURL: callback})
		o = final(func() provider.Outcome { return rail.Disburser.DisburseStatus(ctx, status(reference, amount)) })
		want -= amount + o.Fee

		reference = uuid.NewString()
		rail.TopUpper.TopUp(ctx, provider.TopUpRequest{ProviderReference: reference, Amount: amount, MSISDN: wallet, Network: msisdn.Telecel, CallbackURL: callback})
		o = final(func() provider.Outcome { return rail.TopUpper.TopUpStatus(ctx, status(reference, amount)) })
		want -= amount + o.Fee
	}
	offers, holder, o := rail.Bundles.Offers(ctx, provider.OffersRequest{Network: msisdn.Telecel, MSISDN: wallet})
	if o.Class != provider.Accepted || holder != "KWAME TEST 000" {
		t.Fatalf("holder %q, %+v", holder, o)
	}
	for _, offer := range offers {
		reference := uuid.NewString()
		rail.Bundles.BuyBundle(ctx, provider.BundleRequest{ProviderReference: reference, MSISDN: wallet, Network: msisdn.Telecel, Offer: offer, CallbackURL: callback})
		o := final(func() provider.Outcome { return rail.Bundles.BundleStatus(ctx, status(reference, offer.Amount)) })
		want -= offer.Amount + o.Fee
	}
	if got := b.Sim.Float(simhubtel.Name) - before; got != want {
		t.Errorf("the book moved by %v, the outcomes say %v", got, want)
	}
	if held, _ := rail.Floats.Float(ctx); !slices.Equal(held, accounts(b.Sim)) {
		t.Errorf("float %v, the book has %v", held, accounts(b.Sim))
	}
}

// TestUnpaid_isNotFinal: Hubtel reports Unpaid for open and for failed collections. The adapter never reads it as a
// failure, whatever the age of the payment.
func TestUnpaid_isNotFinal(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	reference, sent := uuid.NewString(), b.Clock.Now()
	b.Rail.Collector.Collect(t.Context(), provider.CollectRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("020"), Network: b.Network, Reference: "r", CallbackURL: "http://127.0.0.1:1/"})
	ask := func(sentAt time.Time) provider.Outcome {
		return b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("020"), SentAt: sentAt})
	}
	b.Advance(10*time.Minute - time.Second)
	if o := ask(sent); o.Class != provider.Accepted || o.State != provider.Pending {
		t.Errorf("a second before its age: %+v", o)
	}
	b.Advance(time.Second)
	if o := ask(time.Time{}); o.State != provider.Pending {
		t.Errorf("when it is not known how old it is: %+v", o)
	}
	if o := ask(sent); o.State != provider.Pending || !o.Unpaid || o.Reason != provider.ReasonExpired {
		t.Errorf("at its age: %+v", o)
	}
}

// TestStatus_otherAmountIsAMismatch: another amount is found for every fee, and for small payments too.
func TestStatus_otherAmountIsAMismatch(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	for _, amount := range []money.Pesewas{10, 99, 100, 101, 299, 300, 12_345} {
		reference := uuid.NewString()
		b.Rail.Collector.Collect(t.Context(), provider.CollectRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet("001"), Network: b.Network, Reference: "r", CallbackURL: "http://127.0.0.1:1/"})
		ask := func() provider.Outcome {
			return b.Rail.Collector.CollectStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet("001")})
		}
		want := provider.Expect{Reference: reference, Amount: amount, Party: b.Wallet("001").International()}
		b.Fault("collect_status", "status_wrong_amount", 1)
		if o := ask(); o.State != provider.Success || !provider.Mismatch(o, want) {
			t.Errorf("%s: an answer about another amount is %+v with the echo %+v", amount, o, o.Echo)
		}
		if o := ask(); o.State != provider.Success || provider.Mismatch(o, want) {
			t.Errorf("%s: the true answer is %+v with the echo %+v", amount, o, o.Echo)
		}
	}
}

// TestStatus_paidDespiteRefusal: Hubtel may refuse a request although it has carried it out. A status query then returns the
// true state, at each of its hosts.
func TestStatus_paidDespiteRefusal(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	wallet, callback, clear := b.Wallet("000"), "http://127.0.0.1:1/", 0
	for op, do := range map[string]struct {
		submit func(reference string) provider.Outcome
		status func(context.Context, provider.StatusRequest) provider.Outcome
	}{
		sim.OpCollect: {func(reference string) provider.Outcome {
			return b.Rail.Collector.Collect(t.Context(), provider.CollectRequest{ProviderReference: reference, Amount: 500, MSISDN: wallet, Network: b.Network, Reference: "r", CallbackURL: callback})
		}, b.Rail.Collector.CollectStatus},
		sim.OpDisburse: {func(reference string) provider.Outcome {
			return b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Amount: 500, MSISDN: wallet, Network: b.Network, Reference: "r", CallbackURL: callback})
		}, b.Rail.Disburser.DisburseStatus},
		sim.OpTopUp: {func(reference string) provider.Outcome {
			return b.Rail.TopUpper.TopUp(t.Context(), provider.TopUpRequest{ProviderReference: reference, Amount: 500, MSISDN: wallet, Network: b.Network, CallbackURL: callback})
		}, b.Rail.TopUpper.TopUpStatus},
	} {
		for _, answer := range simhubtel.RefusalAnswers() {
			reference := uuid.NewString()
			if err := b.Sim.Inject(sim.Fault{Provider: simhubtel.Name, Operation: op, Kind: sim.RefuseAfter, Answer: answer}); err != nil {
				t.Fatal(err)
			}
			o := do.submit(reference)
			if o.Class != provider.Rejected && o.Class != provider.Unknown || o.Unposted || o.Final() || len(b.Sim.Entries(reference)) != 1 {
				t.Errorf("%s %q: %+v", op, answer, o)
			}
			if o.Clear {
				clear++
			}
			if o.Clear && (strings.Contains(answer, "html") || strings.Contains(answer, "empty") || strings.Contains(answer, "9999") || op == sim.OpTopUp && strings.HasSuffix(answer, "4000")) {
				t.Errorf("%s %q is clear: %+v", op, answer, o)
			}
			b.Advance(time.Minute)
			if o := do.status(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 500, MSISDN: wallet}); o.State != provider.Success {
				t.Errorf("%s %q: in the end %+v", op, answer, o)
			}
		}
	}
	if clear < 3*12 {
		t.Errorf("%d clear refusals on three hosts", clear)
	}
}

// TestStatus_inconclusiveResponses: only the configured answer means "not known".
func TestStatus_inconclusiveResponses(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	reference := uuid.NewString()
	b.Rail.TopUpper.TopUp(t.Context(), provider.TopUpRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("000"), Network: b.Network, CallbackURL: "http://127.0.0.1:1/"})
	b.Advance(time.Minute)
	ask := func() provider.Outcome {
		return b.Rail.TopUpper.TopUpStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("000")})
	}
	for _, answer := range simhubtel.StatusAnswers() {
		if err := b.Sim.Inject(sim.Fault{Provider: simhubtel.Name, Kind: sim.StatusAnswer, Answer: answer}); err != nil {
			t.Fatal(err)
		}
		if o := ask(); o.Class != provider.Unknown || o.NotFound {
			t.Errorf("%q: %+v", answer, o)
		}
	}
	b.Fault("topup_status", "status_other", 1)
	if o := ask(); !provider.Mismatch(o, provider.Expect{Reference: reference, Amount: 500}) {
		t.Errorf("another's payment: %+v, %+v", o, o.Echo)
	}
	b.Fault("topup_status", "status_unfulfilled", 1)
	if o := ask(); o.Class != provider.Accepted || o.State != provider.Pending || o.Unpaid || o.Code != "paid_not_fulfilled" {
		t.Errorf("paid, not delivered: %+v", o)
	}
	if o := ask(); o.State != provider.Success {
		t.Errorf("in the end %+v", o)
	}
}

// TestSubmission_withoutCallbackURL: the adapter does not send a request that Hubtel would refuse.
func TestSubmission_withoutCallbackURL(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	reference := uuid.NewString()
	o := b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet("000"), Network: b.Network, Reference: "r"})
	if o.Class != provider.NotSent || !strings.Contains(o.Message, "callback URL") || len(b.Sim.Entries(reference)) != 0 {
		t.Errorf("%+v", o)
	}
}

// TestReference_usedOnce: a reference can be used once, whatever the result of its first request was.
func TestReference_usedOnce(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	send := func(reference, code string, amount money.Pesewas) provider.Outcome {
		return b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet(code), Network: b.Network, Reference: "r", CallbackURL: "http://127.0.0.1:1/"})
	}
	refused, unpaid, failed := uuid.NewString(), uuid.NewString(), uuid.NewString()
	if o := send(refused, "030", 100); o.Class != provider.Rejected || o.Reason != provider.ReasonRefused {
		t.Errorf("refused: %+v", o)
	}
	if err := b.Sim.SetFloat(simhubtel.Name, 99); err != nil {
		t.Fatal(err)
	}
	if o := send(unpaid, "000", 100); o.Class != provider.Rejected || o.Reason != provider.ReasonFloat || o.Code != "4075" {
		t.Errorf("float too low: %+v", o)
	}
	if err := b.Sim.SetFloat(simhubtel.Name, 10_000); err != nil {
		t.Fatal(err)
	}
	if o := send(failed, "024", 100); o.Class != provider.Accepted {
		t.Errorf("accepted: %+v", o)
	}
	b.Advance(time.Minute)
	pending := uuid.NewString()
	if o := send(pending, "000", 100); o.Class != provider.Accepted {
		t.Errorf("accepted: %+v", o)
	}
	// After a restore we may not know that the request was sent before. The refusal of a duplicate is therefore an
	// ordinary refusal, and only a status query decides.
	if o := send(pending, "000", 100); o.Class != provider.Rejected || o.Duplicate || o.Unposted {
		t.Errorf("a duplicate: %+v", o)
	}
	for _, reference := range []string{refused, unpaid, failed} {
		if o := send(reference, "000", 100); o.Class != provider.Rejected || o.Duplicate || o.Code != "4000" {
			t.Errorf("used again: %+v", o)
		}
		if e := b.Sim.Entries(reference); len(e) > 0 && e[0].Status == sim.Success {
			t.Errorf("paid: %+v", e)
		}
	}
}

// TestOffers_changedPriceIsRefused: a package is bought only if it is offered at that price at that moment.
func TestOffers_changedPriceIsRefused(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	b.Network = msisdn.MTN
	ask := provider.OffersRequest{Network: b.Network, MSISDN: b.Wallet("000")}
	offers, _, _ := b.Rail.Bundles.Offers(t.Context(), ask)
	other, _, _ := b.Rail.Bundles.Offers(t.Context(), provider.OffersRequest{Network: b.Network, MSISDN: "233241234568"})
	if len(offers) == 0 || len(other) == 0 || len(offers) == len(other) && offers[0] == other[0] && offers[1] == other[1] {
		t.Errorf("two numbers are offered %v and %v", offers, other)
	}
	buy := func(rail provider.Rail, offer provider.Offer) (string, provider.Outcome) {
		reference := uuid.NewString()
		return reference, rail.Bundles.BuyBundle(t.Context(), provider.BundleRequest{ProviderReference: reference, MSISDN: b.Wallet("000"), Network: b.Network, Offer: offer, CallbackURL: "http://127.0.0.1:1/"})
	}
	dearer, gone := offers[1], offers[0]
	b.Fault("offers", "offers_change", 2)
	for _, offer := range []provider.Offer{dearer, gone} {
		if reference, o := buy(b.Rail, offer); o.Class != provider.Rejected || o.Reason != provider.ReasonOfferGone || len(b.Sim.Entries(reference)) != 0 {
			t.Errorf("%v changed: %+v", offer, o)
		}
	}
	for _, fault := range []string{"outage", "malformed", "answer_lost", "forbidden"} {
		b.Fault("offers", fault, 20)
		if reference, o := buy(b.Rail, dearer); o.Class != provider.NotSent || len(b.Sim.Entries(reference)) != 0 {
			t.Errorf("%s while asking: %+v", fault, o)
		}
		b.Clear()
	}
	forged := dearer
	forged.Amount--
	if _, o := buy(b.Rail, forged); o.Reason != provider.ReasonOfferGone {
		t.Errorf("a price of one's own: %+v", o)
	}
	if _, o := buy(b.Rail, dearer); o.Class != provider.Accepted {
		t.Errorf("as it stands: %+v", o)
	}
	broadband, _, o := b.Rail.Bundles.Offers(t.Context(), provider.OffersRequest{Service: "mtn_broadband", Network: b.Network, MSISDN: b.Wallet("000")})
	if o.Class != provider.Accepted || len(broadband) == 0 || broadband[0] == offers[0] {
		t.Errorf("another service: %v, %+v", broadband, o)
	}
	if _, _, o := b.Rail.Bundles.Offers(t.Context(), provider.OffersRequest{Service: "none", Network: b.Network, MSISDN: b.Wallet("000")}); o.Class != provider.Rejected || o.Reason != provider.ReasonSetup {
		t.Errorf("a service that is not set up: %+v", o)
	}
}

// TestGateway_addressNotListed: Hubtel's gateway answers with HTML to addresses that it does not know.
func TestGateway_addressNotListed(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{Allowed: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	reference := uuid.NewString()
	o := b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Amount: 100, MSISDN: b.Wallet("000"), Network: b.Network, Reference: "r", CallbackURL: "http://127.0.0.1:1/"})
	if o.Class != provider.Barred || len(b.Sim.Entries(reference)) != 0 {
		t.Errorf("%+v", o)
	}
	if o := b.Rail.Disburser.DisburseStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 100}); o.Class != provider.Unknown {
		t.Errorf("a question: %+v", o)
	}
}

// TestAirtime_otherNetworkFailsLater: airtime for a number of another network is accepted and fails later.
func TestAirtime_otherNetworkFailsLater(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	reference := uuid.NewString()
	o := b.Rail.TopUpper.TopUp(t.Context(), provider.TopUpRequest{ProviderReference: reference, Amount: 100, MSISDN: "233241234567", Network: msisdn.Telecel, CallbackURL: "http://127.0.0.1:1/"})
	if o.Class != provider.Accepted {
		t.Fatalf("%+v", o)
	}
	b.Advance(time.Minute)
	o = b.Rail.TopUpper.TopUpStatus(t.Context(), provider.StatusRequest{ProviderReference: reference, Amount: 100, MSISDN: "233241234567"})
	if o.State != provider.Pending || !o.Unpaid {
		t.Errorf("%+v", o)
	}
}

// TestBankAccount_keepsLettersAndZeros: letters and leading zeros of an account number reach Hubtel unchanged.
func TestBankAccount_keepsLettersAndZeros(t *testing.T) {
	b := newBench(t, sim.Options{}, simhubtel.Options{})
	accounts := []string{"0012345678901", "00AB12345", "1234567", "1234567890123456"}
	for _, account := range accounts {
		reference := uuid.NewString()
		name, o := b.Rail.BankNames.BankName(t.Context(), "300304", account)
		if o.Class != provider.Accepted || name == "" {
			t.Errorf("%s: %q, %+v", account, name, o)
		}
		o = b.Rail.Disburser.Disburse(t.Context(), provider.DisburseRequest{ProviderReference: reference, Amount: 100, BankCode: "300304", Account: account, Name: name, Reference: "r", CallbackURL: "http://127.0.0.1:1/"})
		if e := b.Sim.Entries(reference); o.Class != provider.Accepted || len(e) != 1 || e[0].Party != account {
			t.Errorf("%s: %+v, %+v", account, o, e)
		}
	}
	for _, e := range b.Exchanges() {
		for _, account := range accounts {
			if strings.Contains(e.URL+e.Request+e.Answer, account) {
				t.Errorf("%s shows the account %s: %s %s %s", e.Operation, account, e.URL, e.Request, e.Answer)
			}
		}
	}
	if _, o := b.Rail.BankNames.BankName(t.Context(), "999999", "0012345678901"); o.Class != provider.Rejected {
		t.Errorf("no such bank: %+v", o)
	}
}

// accounts returns our balances in the simulator.
func accounts(s *sim.Sim) []provider.Held {
	in, out := s.Accounts(simhubtel.Name)
	return []provider.Held{{Account: provider.AccountCollection, Amount: in}, {Account: provider.AccountDisbursement, Amount: out}}
}
