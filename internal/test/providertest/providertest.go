// Package providertest holds one conformance suite for each provider role. An adapter passes when its suites do. The
// suites run it against a provider that misbehaves in every known way, and compare its outcomes with the rules of
// package provider. Above all, an outcome that allows a refund (Rejected, NotSent) is checked against the provider's
// own book, which must not have moved anything.
package providertest

import (
	"context"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Bench is an adapter with its simulated provider. Faults have the simulator's names.
type Bench struct {
	Rail provider.Rail
	// Unreachable is the same rail with an address at which nothing listens.
	Unreachable provider.Rail
	Network     msisdn.Network
	// BankCode, when set, makes Disburser send to bank accounts.
	BankCode string
	// Signed means that the provider signs its callbacks, so that a forged one is refused.
	Signed bool
	// Reasonless means that the provider's status answers give no reason for a failure.
	Reasonless bool

	// SilentFailures means that the provider sends no callback about a failed collection.
	SilentFailures bool
	// NoPayoutCallbacks means that the provider sends no callbacks about payouts.
	NoPayoutCallbacks bool
	// RefundsByCollection means that the provider's callbacks about refunds name the collection.
	RefundsByCollection bool

	// Tamper changes the provider's responses.
	Tamper *Tamper
	// Fault arms a fault for the next count requests of an operation.
	Fault func(operation, fault string, count int)
	// Clear disarms all faults.
	Clear func()
	// Advance moves the provider's clock and returns after every due event.
	Advance func(time.Duration)
	// Moved returns the entries of the provider's book with a reference.
	Moved func(reference string) []Movement
	// CallbackURL is the address of callbacks. Callbacks returns the callbacks since its last call.
	CallbackURL string
	Callbacks   func() []provider.CallbackRequest
	// Exchanges returns the exchanges that the adapter's client recorded so far.
	Exchanges func() []provider.Exchange
	// Secrets must not appear in any exchange.
	Secrets []string
}

// Nowhere returns an address at which nothing listens during the test: the near end of a connection, so that no other
// process gets the port.
func Nowhere(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = l.Close()
	})
	return near.LocalAddr().String()
}

// Movement is one entry of the provider's book.
type Movement struct {
	Amount money.Pesewas
	Status string // pending, success, failed
}

// Wallet is the number of the bench's network with a magic code.
func (b Bench) Wallet(code string) msisdn.MSISDN {
	prefix := map[msisdn.Network]string{msisdn.MTN: "23324", msisdn.Telecel: "23320", msisdn.AirtelTigo: "23327"}[b.Network]
	return msisdn.MSISDN(prefix + "0000" + code)
}

// Account is a bank account with a magic code.
func (b Bench) Account(code string) string { return "144100" + "0000" + code }

// questions is the number of requests that a fault must affect for one query. The transport repeats the query
// on every idle connection that turns out to be closed.
const questions = 20

// mover is a common view of the roles that move money.
type mover struct {
	b        Bench
	op       string // operation as faults name it
	submit   func(ctx context.Context, rail provider.Rail, reference string, amount money.Pesewas, code string) provider.Outcome
	status   func(ctx context.Context, reference string, amount money.Pesewas, code string) provider.Outcome
	party    func(code string) string
	repeats  bool                          // Rail.MayRepeat has the role's requests
	hinted   func(reference string) string // the reference that callbacks name; nil: the payment's
	failures map[string]string             // magic code to reason, failing after acceptance
	refusals []string                      // magic codes of immediate refusals
}

// Collector holds a rail's Collector to its role.
func Collector(t *testing.T, b Bench) {
	m := mover{
		b: b, op: "collect", repeats: b.Rail.MayRepeat.Collect,
		submit: func(ctx context.Context, rail provider.Rail, reference string, amount money.Pesewas, code string) provider.Outcome {
			return rail.Collector.Collect(ctx, provider.CollectRequest{
				ProviderReference: reference, Reference: "client-ref-0001", Amount: amount, MSISDN: b.Wallet(code), Network: b.Network,
				Label: "Ama's shop & sons: \"rent\" <é>", Email: "accounts@example.com", CallbackURL: b.CallbackURL,
			})
		},
		status: func(ctx context.Context, reference string, amount money.Pesewas, code string) provider.Outcome {
			return b.Rail.Collector.CollectStatus(ctx, provider.StatusRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet(code)})
		},
		party: func(code string) string { return b.Wallet(code).International() },
		failures: map[string]string{
			"020": provider.ReasonDeclined, "021": provider.ReasonExpired, "022": provider.ReasonFunds, "023": provider.ReasonPIN,
			"024": provider.ReasonPayerNotFound, "025": provider.ReasonLimit, "026": provider.ReasonBarred,
		},
	}
	m.run(t)
}

// Disburser holds a rail's Disburser to its role.
func Disburser(t *testing.T, b Bench) {
	request := func(reference string, amount money.Pesewas, code string) provider.DisburseRequest {
		r := provider.DisburseRequest{
			ProviderReference: reference, Reference: "client-ref-0001", Amount: amount, Name: "KWAME TEST " + code,
			Label: "Wages", CallbackURL: b.CallbackURL, AccountType: "agent", Network: b.Network,
		}
		if b.BankCode != "" {
			r.BankCode, r.Account = b.BankCode, b.Account(code)
		} else {
			r.MSISDN = b.Wallet(code)
		}
		return r
	}
	m := mover{
		b: b, op: "disburse", repeats: b.Rail.MayRepeat.Disburse,
		submit: func(ctx context.Context, rail provider.Rail, reference string, amount money.Pesewas, code string) provider.Outcome {
			return rail.Disburser.Disburse(ctx, request(reference, amount, code))
		},
		status: func(ctx context.Context, reference string, amount money.Pesewas, code string) provider.Outcome {
			r := request(reference, amount, code)
			return b.Rail.Disburser.DisburseStatus(ctx, provider.StatusRequest{
				ProviderReference: reference, Amount: amount, MSISDN: r.MSISDN, Account: r.Account,
			})
		},
		party: func(code string) string {
			if b.BankCode != "" {
				return b.Account(code)
			}
			return b.Wallet(code).International()
		},
		failures: map[string]string{"024": provider.ReasonPayeeNotFound, "025": provider.ReasonLimit, "026": provider.ReasonBarred},
		refusals: []string{"030"},
	}
	m.run(t)
}

// Refunder holds a rail's Refunder to its role. Each refund is of a collection of its own.
func Refunder(t *testing.T, b Bench) {
	collections := map[string]string{} // by the reference of the refund
	collected := func(reference string, amount money.Pesewas, code string) string {
		if collections[reference] == "" {
			of := uuid.NewString()
			r := provider.CollectRequest{ProviderReference: of, Reference: "client-ref-0001", Email: "accounts@example.com", Amount: amount, MSISDN: b.Wallet(code), Network: b.Network}
			if o := b.Rail.Collector.Collect(context.Background(), r); o.Class != provider.Accepted {
				t.Errorf("collection to refund: %+v", o)
			}
			b.Advance(time.Minute)
			collections[reference] = of
		}
		return collections[reference]
	}
	m := mover{
		b: b, op: "disburse", repeats: b.Rail.MayRepeat.Refund,
		submit: func(ctx context.Context, rail provider.Rail, reference string, amount money.Pesewas, code string) provider.Outcome {
			return rail.Refunder.Refund(ctx, provider.RefundRequest{ProviderReference: reference, Collected: collected(reference, amount, code),
				Reference: "client-ref-0001", Amount: amount, Label: "Ama's shop & sons: \"late\" <é>", CallbackURL: b.CallbackURL})
		},
		status: func(ctx context.Context, reference string, amount money.Pesewas, code string) provider.Outcome {
			return b.Rail.Refunder.RefundStatus(ctx, provider.StatusRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet(code), Collected: collections[reference]})
		},
		hinted: func(reference string) string {
			if b.RefundsByCollection {
				return collections[reference]
			}
			return reference
		},
		party:    func(code string) string { return b.Wallet(code).International() },
		refusals: []string{"030"},
	}
	m.run(t)
	t.Run("more than was collected", func(t *testing.T) {
		reference := uuid.NewString()
		collected(reference, 100, "000")
		m.accepted(t, reference, 101, "000")
		if o := m.settled(t, reference, 101, "000"); o.State != provider.Failed {
			t.Errorf("%+v", o)
		}
	})
}

// TopUpper holds a rail's TopUpper to its role.
func TopUpper(t *testing.T, b Bench) {
	m := mover{
		b: b, op: "topup", repeats: b.Rail.MayRepeat.Sell,
		submit: func(ctx context.Context, rail provider.Rail, reference string, amount money.Pesewas, code string) provider.Outcome {
			return rail.TopUpper.TopUp(ctx, provider.TopUpRequest{
				ProviderReference: reference, Amount: amount, MSISDN: b.Wallet(code), Network: b.Network, CallbackURL: b.CallbackURL,
			})
		},
		status: func(ctx context.Context, reference string, amount money.Pesewas, code string) provider.Outcome {
			return b.Rail.TopUpper.TopUpStatus(ctx, provider.StatusRequest{ProviderReference: reference, Amount: amount, MSISDN: b.Wallet(code)})
		},
		party:    func(code string) string { return b.Wallet(code).International() },
		failures: map[string]string{"024": provider.ReasonPayeeNotFound},
		refusals: []string{"030"},
	}
	m.run(t)
}

// BundleSeller holds a rail's BundleSeller to its role.
func BundleSeller(t *testing.T, b Bench) {
	offer := func(t *testing.T, code string) provider.Offer {
		t.Helper()
		offers, _, o := b.Rail.Bundles.Offers(context.Background(), provider.OffersRequest{Network: b.Network, MSISDN: b.Wallet(code)})
		if o.Class != provider.Accepted || len(offers) == 0 {
			t.Fatalf("offers: %+v, %d of them", o, len(offers))
		}
		for _, f := range offers {
			if f.Display == "" || f.Value == "" || f.Amount <= 0 {
				t.Errorf("an offer is not whole: %+v", f)
			}
		}
		return offers[0]
	}
	m := mover{
		b: b, op: "bundle", repeats: b.Rail.MayRepeat.Sell,
		party:    func(code string) string { return b.Wallet(code).International() },
		failures: map[string]string{"024": provider.ReasonPayeeNotFound},
		refusals: []string{"030"},
	}
	m.submit = func(ctx context.Context, rail provider.Rail, reference string, amount money.Pesewas, code string) provider.Outcome {
		// The price is that of the offer; amount matters only for the status.
		return rail.Bundles.BuyBundle(ctx, provider.BundleRequest{
			ProviderReference: reference, MSISDN: b.Wallet(code), Network: b.Network, Offer: offer(t, code), CallbackURL: b.CallbackURL,
		})
	}
	m.status = func(ctx context.Context, reference string, amount money.Pesewas, code string) provider.Outcome {
		return b.Rail.Bundles.BundleStatus(ctx, provider.StatusRequest{ProviderReference: reference, Amount: offer(t, code).Amount, MSISDN: b.Wallet(code)})
	}
	m.run(t)
}

func (m mover) run(t *testing.T) {
	t.Run("success", m.success)
	t.Run("failures", m.fail)
	t.Run("refusals", m.refuse)
	t.Run("faults on the way", m.faults)
	t.Run("answer that never comes", m.silence)
	t.Run("nothing listens", m.unreachable)
	t.Run("given up before the start", m.cancelled)
	t.Run("the same reference again", m.repeat)
	t.Run("status under faults", m.badStatus)
	t.Run("taken back", m.reversed)
	if m.op != "disburse" || !m.b.NoPayoutCallbacks {
		t.Run("callbacks", m.callbacks)
	}
	t.Run("exchanges", m.exchanges)
	t.Run("hostile answers", m.hostileSubmissions)
	t.Run("hostile statuses", m.hostileStatuses)
}

// amount is different each time, so that an answer about another payment shows.
func amount() money.Pesewas { return money.Pesewas(100 + rand.IntN(9000)) }

// moved returns the status in the book for a reference, and the number of entries.
func (m mover) moved(reference string) (status string, entries int) {
	list := m.b.Moved(reference)
	if len(list) > 0 {
		status = list[0].Status
	}
	return status, len(list)
}

// check compares the outcome of a submission with the provider's book.
func (m mover) check(t *testing.T, reference string, o provider.Outcome) {
	t.Helper()
	_, entries := m.moved(reference)
	switch {
	case entries > 1:
		t.Errorf("the provider has the reference %d times", entries)
	case entries == 1 && (o.Class == provider.Rejected || o.Class == provider.NotSent):
		t.Errorf("class %v (%s %s), but the provider's book has the payment", o.Class, o.Code, o.Message)
	case (o.Clear || o.Unposted) && o.Class != provider.Rejected:
		t.Errorf("a refusal's word with class %v", o.Class)
	case len([]rune(o.Message)) > 200:
		t.Errorf("message of %d characters", len([]rune(o.Message)))
	case o.Reason != "" && provider.Sentence(o.Reason) == provider.Sentence("no such reason") && o.Reason != provider.ReasonUnknown:
		t.Errorf("reason %q has no sentence", o.Reason)
	}
}

// checkStatus checks that the outcome of a status query is one that the role allows.
func (m mover) checkStatus(t *testing.T, o provider.Outcome) {
	t.Helper()
	if o.Class != provider.Accepted && o.Class != provider.Unknown {
		t.Errorf("a status query came to %v", o.Class)
	}
	if o.NotFound && o.Class != provider.Unknown {
		t.Errorf("not found came with class %v", o.Class)
	}
	if o.Unpaid && (o.Class != provider.Accepted || o.State != provider.Pending) {
		t.Errorf("unpaid came with class %v, state %v", o.Class, o.State)
	}
}

func (m mover) expect(reference string, a money.Pesewas, code string) provider.Expect {
	if list := m.b.Moved(reference); m.op == "bundle" && len(list) == 1 {
		a = list[0].Amount
	}
	return provider.Expect{Reference: reference, Amount: a, Party: m.party(code)}
}

// accepted submits a payment that must be accepted.
func (m mover) accepted(t *testing.T, reference string, a money.Pesewas, code string) {
	t.Helper()
	o := m.submit(context.Background(), m.b.Rail, reference, a, code)
	m.check(t, reference, o)
	if o.Class != provider.Accepted || o.State != provider.Pending || o.Duplicate {
		t.Fatalf("submission of %s: %+v", code, o)
	}
}

// settled polls, and moves the clock, until the provider reports a final status. Some providers report a failed
// payment with the status of an open one; then the book must show the failure.
func (m mover) settled(t *testing.T, reference string, a money.Pesewas, code string) provider.Outcome {
	t.Helper()
	var o provider.Outcome
	for range 40 {
		o = m.status(context.Background(), reference, a, code)
		m.checkStatus(t, o)
		if s, _ := m.moved(reference); o.Final() || o.Unpaid && s == "failed" {
			if provider.Mismatch(o, m.expect(reference, a, code)) {
				t.Errorf("the echo %+v is not what was asked", o.Echo)
			}
			return o
		}
		m.b.Advance(30 * time.Second)
	}
	t.Fatalf("no final word, last %+v", o)
	return o
}

func (m mover) success(t *testing.T) {
	for _, code := range []string{"000", "001", "002", "004", "005", "008"} {
		reference, a := uuid.NewString(), amount()
		m.accepted(t, reference, a, code)
		if code == "000" {
			o := m.status(context.Background(), reference, a, code)
			m.checkStatus(t, o)
			if o.Class == provider.Accepted && o.State != provider.Pending {
				t.Errorf("settled at once: %+v", o)
			}
		}
		o := m.settled(t, reference, a, code)
		if o.State != provider.Success || o.Reason != "" || o.UpstreamID == "" {
			t.Errorf("%s: %+v", code, o)
		}
		if s, n := m.moved(reference); s != "success" || n != 1 {
			t.Errorf("%s: the book has %d entries, %s", code, n, s)
		}
	}
}

func (m mover) fail(t *testing.T) {
	for code, reason := range m.failures {
		reference, a := uuid.NewString(), amount()
		m.accepted(t, reference, a, code)
		o := m.settled(t, reference, a, code)
		if m.b.Reasonless && o.Reason != "" {
			reason = o.Reason
		}
		if o.State != provider.Failed && !o.Unpaid || o.Reason != reason {
			t.Errorf("%s: state %v, reason %q, want %q (%s)", code, o.State, o.Reason, reason, o.Code)
		}
	}
}

func (m mover) refuse(t *testing.T) {
	for _, code := range m.refusals {
		reference, a := uuid.NewString(), amount()
		o := m.submit(context.Background(), m.b.Rail, reference, a, code)
		m.check(t, reference, o)
		if o.Class != provider.Rejected || o.Reason == "" {
			t.Errorf("%s: %+v", code, o)
		}
	}
}

// faults submits with each fault, and checks that the class is not more certain than the fault allows.
func (m mover) faults(t *testing.T) {
	for _, c := range []struct {
		fault string
		want  provider.Class
		done  bool // the provider has the payment nevertheless
	}{
		{"answer_lost", provider.Unknown, true},
		{"request_lost", provider.Unknown, false},
		{"error_before", provider.Unknown, false},
		{"error_after", provider.Unknown, true},
		{"malformed", provider.Unknown, true},
		{"outage", provider.Unknown, false},
		{"throttle", provider.Barred, false},
		{"unauthorized", provider.Barred, false},
		{"forbidden", provider.Barred, false},
	} {
		t.Run(c.fault, func(t *testing.T) {
			defer m.b.Clear()
			reference, a := uuid.NewString(), amount()
			if m.op == "bundle" { // opens the connection, so that the fault affects the purchase
				m.submit(context.Background(), m.b.Rail, uuid.NewString(), a, "000")
			}
			m.b.Fault(m.op, c.fault, 2)
			o := m.submit(context.Background(), m.b.Rail, reference, a, "000")
			m.check(t, reference, o)
			if o.Class != c.want {
				t.Errorf("got %+v, want class %v", o, c.want)
			}
			if _, n := m.moved(reference); (n == 1) != c.done {
				t.Errorf("the book has %d entries", n)
			}
			m.b.Clear()
			if c.done {
				if o := m.settled(t, reference, a, "000"); o.State != provider.Success {
					t.Errorf("later: %+v", o)
				}
			} else if o := m.status(context.Background(), reference, a, "000"); o.Class != provider.Unknown {
				t.Errorf("status of what is not there: %+v", o)
			}
		})
	}
}

// silence cancels a request while the provider has it and does not answer.
func (m mover) silence(t *testing.T) {
	defer m.b.Clear()
	reference, a := uuid.NewString(), amount()
	m.b.Fault(m.op, "slow", 1)
	ctx, giveUp := context.WithTimeout(context.Background(), time.Minute)
	defer giveUp()
	done := make(chan provider.Outcome, 1)
	go func() { done <- m.submit(ctx, m.b.Rail, reference, a, "000") }()
	for ctx.Err() == nil {
		if _, n := m.moved(reference); n == 1 {
			break
		}
		runtime.Gosched()
	}
	giveUp()
	o := <-done
	m.check(t, reference, o)
	if o.Class != provider.Unknown {
		t.Errorf("got %+v", o)
	}
}

func (m mover) unreachable(t *testing.T) {
	reference := uuid.NewString()
	o := m.submit(context.Background(), m.b.Unreachable, reference, amount(), "000")
	m.check(t, reference, o)
	if o.Class != provider.NotSent {
		t.Errorf("got %+v", o)
	}
}

func (m mover) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	reference := uuid.NewString()
	o := m.submit(ctx, m.b.Rail, reference, amount(), "000")
	m.check(t, reference, o)
	if o.Class != provider.NotSent {
		t.Errorf("got %+v", o)
	}
}

// repeat submits a reference twice. Only a provider with a distinct "duplicate" answer may get a reference twice.
// Others refuse it like any other request, which proves nothing.
func (m mover) repeat(t *testing.T) {
	reference, a := uuid.NewString(), amount()
	m.accepted(t, reference, a, "000")
	o := m.submit(context.Background(), m.b.Rail, reference, a, "000")
	if o.Class != provider.Rejected || o.Unposted || m.repeats {
		m.check(t, reference, o)
	}
	if m.repeats != (o.Class == provider.Accepted && o.Duplicate) {
		t.Errorf("MayRepeat is %v, the duplicate came to %+v", m.repeats, o)
	}
	if o := m.settled(t, reference, a, "000"); o.State != provider.Success {
		t.Errorf("later: %+v", o)
	}
}

// badStatus checks that a failed status query proves nothing about the payment.
func (m mover) badStatus(t *testing.T) {
	reference, a := uuid.NewString(), amount()
	m.accepted(t, reference, a, "000")
	m.b.Advance(time.Minute)
	for _, fault := range []string{"answer_lost", "request_lost", "error_before", "error_after", "malformed", "outage", "throttle", "unauthorized", "forbidden", "status_not_found"} {
		m.b.Fault(m.op+"_status", fault, questions)
		o := m.status(context.Background(), reference, a, "000")
		m.checkStatus(t, o)
		if o.Class != provider.Unknown {
			t.Errorf("%s: %+v", fault, o)
		}
		m.b.Clear()
	}
	m.b.Fault(m.op+"_status", "status_wrong_amount", 1)
	if o := m.status(context.Background(), reference, a, "000"); !provider.Mismatch(o, m.expect(reference, a, "000")) {
		t.Errorf("an answer about another amount was believed: %+v", o)
	}
	m.b.Clear()
	if o := m.settled(t, reference, a, "000"); o.State != provider.Success {
		t.Errorf("in the end: %+v", o)
	}
	unknown := m.status(context.Background(), uuid.NewString(), a, "000")
	m.checkStatus(t, unknown)
	if unknown.Final() || !unknown.NotFound {
		t.Errorf("a payment that never was: %+v", unknown)
	}
}

func (m mover) reversed(t *testing.T) {
	defer m.b.Clear()
	reference, a := uuid.NewString(), amount()
	m.b.Fault(m.op, "reverse", 1)
	m.accepted(t, reference, a, "001")
	if o := m.settled(t, reference, a, "001"); o.State != provider.Success {
		t.Fatalf("at first: %+v", o)
	}
	m.b.Advance(time.Hour)
	if o := m.status(context.Background(), reference, a, "001"); o.Class != provider.Accepted || o.State != provider.Failed {
		t.Errorf("after the reversal: %+v", o)
	}
}

// callbacks checks that every callback, true or false, is a hint for the right payment. If callbacks are signed, a
// forged callback must be refused.
func (m mover) callbacks(t *testing.T) {
	parse := m.b.Rail.Callbacks.ParseCallback
	for _, c := range []struct {
		code, fault string
		least       int
	}{{"000", "", 1}, {"004", "", 2}, {"005", "", 0}, {"008", "", 2}, {"020", "", 1}, {"000", "callback_forged", 2},
		{"000", "callback_duplicate", 2}, {"000", "callback_missing", 0}, {"000", "callback_late", 1}, {"000", "callback_early", 1}} {
		m.b.Callbacks()
		reference, a := uuid.NewString(), amount()
		if c.fault != "" {
			m.b.Fault(m.op, c.fault, 1)
		}
		m.accepted(t, reference, a, c.code)
		m.b.Advance(time.Minute)
		m.b.Advance(time.Minute)
		got := m.b.Callbacks()
		if m.b.SilentFailures && m.op == "collect" { // no false callbacks, because each would be a failure here
			c.least = map[string]int{"020": 0, "008": 1}[c.code]
			if c.code == "000" || c.code == "004" {
				c.least = map[string]int{"": 1, "callback_forged": 1, "callback_late": 1, "callback_early": 1, "callback_duplicate": 2}[c.fault]
			}
			if c.code == "004" {
				c.least = 2
			}
		}
		if len(got) != c.least {
			t.Errorf("%s %s: %d callbacks", c.code, c.fault, len(got))
		}
		named := reference
		if m.hinted != nil {
			named = m.hinted(reference)
		}
		forged := 0 // number of signed callbacks, which arrive in any order
		if m.b.Signed && c.fault == "callback_forged" && len(got) > 1 {
			forged = 1
		}
		for _, r := range got {
			hints, err := parse(r)
			if err != nil && len(hints) == 0 && forged > 0 {
				forged--
				continue
			}
			if err != nil || len(hints) != 1 || !provider.SameReference(hints[0].ProviderReference, named) {
				t.Errorf("%s: hints %v, error %v, from %s", c.code, hints, err, r.Body)
			}
		}
		if forged > 0 {
			t.Error("a forged callback was taken")
		}
	}
	for _, body := range []string{"", "null", "[]", "{}", "<html>", `{"externalId":7}`, strings.Repeat("[", 10000)} {
		hints, err := parse(provider.CallbackRequest{Method: "POST", Body: []byte(body)})
		if err == nil && len(hints) > 0 {
			t.Errorf("%.20q gave hints %v", body, hints)
		}
	}
}

// exchanges checks that the operators' log contains neither personal data nor credentials.
func (m mover) exchanges(t *testing.T) {
	reference, a := uuid.NewString(), amount()
	m.accepted(t, reference, a, "000")
	m.settled(t, reference, a, "000")
	all := m.b.Exchanges()
	if !slices.ContainsFunc(all, func(e provider.Exchange) bool {
		return provider.SameReference(e.Reference, reference) && e.Status >= 200 && e.Status < 300 && e.Written && e.Operation != ""
	}) {
		t.Error("the exchange was not recorded")
	}
	for _, e := range all {
		text := e.URL + e.Request + e.Answer + e.Err
		for _, secret := range append([]string{m.party("000"), m.b.Wallet("000").Local()}, m.b.Secrets...) {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s: %s", e.Operation, secret, text)
			}
		}
	}
}

// NameResolver holds a rail's NameResolver to its role.
func NameResolver(t *testing.T, b Bench) {
	resolve := func(code string) (string, provider.Outcome) {
		return b.Rail.WalletNames.WalletName(context.Background(), b.Network, b.Wallet(code))
	}
	resolver(t, b, "wallet_name", resolve)
}

// BankResolver holds a rail's BankResolver to its role.
func BankResolver(t *testing.T, b Bench) {
	resolve := func(code string) (string, provider.Outcome) {
		return b.Rail.BankNames.BankName(context.Background(), b.BankCode, b.Account(code))
	}
	resolver(t, b, "bank_name", resolve)
}

func resolver(t *testing.T, b Bench, op string, resolve func(code string) (string, provider.Outcome)) {
	if name, o := resolve("024"); o.Class != provider.Accepted || name != "KWAME TEST 024" || o.Name != name {
		t.Errorf("a known one: %q, %+v", name, o)
	}
	if name, o := resolve("027"); o.Class != provider.Rejected || name != "" {
		t.Errorf("an unknown one: %q, %+v", name, o)
	}
	for _, fault := range []string{"answer_lost", "request_lost", "error_before", "error_after", "malformed", "outage", "throttle", "unauthorized", "forbidden"} {
		b.Fault(op, fault, questions)
		if name, o := resolve("000"); o.Class == provider.Accepted || o.Class == provider.Rejected || name != "" {
			t.Errorf("%s: %q, %+v", fault, name, o)
		}
		b.Clear()
	}
}

// FloatReader holds a rail's FloatReader to its role: it reads each of the rail's accounts. want returns their
// balances in the provider's own book.
func FloatReader(t *testing.T, b Bench, want func() []provider.Held) {
	got, o := b.Rail.Floats.Float(context.Background())
	if o.Class != provider.Accepted || !slices.Equal(got, want()) {
		t.Errorf("float %v, want %v (%+v)", got, want(), o)
	}
	for _, held := range got {
		if !slices.Contains(b.Rail.Accounts.Names(), held.Account) {
			t.Errorf("the rail posts nothing to its account %s", held.Account)
		}
	}
	for _, fault := range []string{"answer_lost", "error_after", "malformed", "outage", "throttle", "unauthorized", "forbidden"} {
		b.Fault("balance", fault, questions)
		if got, o := b.Rail.Floats.Float(context.Background()); o.Class == provider.Accepted || got != nil {
			t.Errorf("%s: %v, %+v", fault, got, o)
		}
		b.Clear()
	}
}
