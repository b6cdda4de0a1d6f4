package payments

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/treasury"
)

// A teller is the provider behind a scripted rail. It has a book of its own by reference. While noisy is set, it
// loses requests and answers at every possible point.
type teller struct {
	mu      sync.Mutex
	rail    *scripted
	kind    func(reference string) book.Kind
	repeats bool // it refuses duplicates distinctly
	random  *rand.Rand
	noisy   bool
	entries map[string]*entry
	opening money.Pesewas
}

type entry struct {
	kind            book.Kind
	amount          money.Pesewas
	fee, commission money.Pesewas
	state           provider.State
	reversed        bool
}

func (e *entry) outcome() provider.Outcome {
	o := provider.Outcome{Class: provider.Accepted, State: e.state}
	if o.Final() {
		o.Fee, o.Commission, o.FeeKnown = e.fee, e.commission, true
	}
	if e.state == provider.Failed {
		o.Reason = provider.ReasonFunds
	}
	return o
}

func (t *teller) post(_ int, reference string) provider.Outcome {
	k := t.kind(reference)
	t.rail.mu.Lock()
	amount := t.rail.gross[reference]
	t.rail.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[reference]; e != nil {
		if t.repeats {
			return repeated
		}
		return rejected // like all its refusals
	}
	fate := 9
	if t.noisy {
		fate = t.random.IntN(12)
	}
	switch fate {
	case 0:
		return unsent
	case 1:
		return barred
	case 2:
		return rejected
	case 3:
		return unknown
	}
	e := &entry{kind: k, amount: amount}
	if k == book.KindTopUp || k == book.KindBundle {
		e.commission = money.Percent(amount, 550)
	} else {
		e.fee = money.Percent(amount, 50)
	}
	t.entries[reference] = e
	switch fate {
	case 4, 5:
		return unknown
	case 6:
		e.state = provider.Success
	}
	return e.outcome()
}

func (t *teller) ask(_ int, reference string) provider.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[reference]
	switch {
	case t.noisy && t.random.IntN(4) == 0:
		return unknown
	case e == nil:
		return notFound
	case e.state == provider.Pending && t.random.IntN(2) == 0:
		e.state = []provider.State{provider.Success, provider.Success, provider.Failed}[t.random.IntN(3)]
	}
	return e.outcome()
}

// reverse reverses one success.
func (t *teller) reverse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		if e.state == provider.Success {
			e.state, e.reversed = provider.Failed, true
			return
		}
	}
}

// book returns our balance in the provider's book.
func (t *teller) book() money.Pesewas {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.opening
	for _, e := range t.entries {
		switch {
		case e.state != provider.Success:
		case e.kind == book.KindCollection:
			sum += e.amount - e.fee
		default:
			sum += e.commission - e.amount - e.fee
		}
	}
	return sum
}

func (t *teller) did(reference string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[reference]
	return e != nil && e.state == provider.Success
}

// Customers, providers and operators act at random. Afterwards every check passes, and each provider's book agrees
// with ours.
func TestPayments_random(t *testing.T) {
	var mu sync.Mutex
	reached := map[string]int{}
	t.Run("seeds", func(t *testing.T) { // t.Run returns after the parallel subtests have ended
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					one := randomRun(t, d, rand.New(rand.NewPCG(seed, 7)))
					mu.Lock()
					defer mu.Unlock()
					for what, times := range one {
						reached[what] += times
					}
				})
			})
		}
	})
	t.Log(reached)
	for _, what := range []string{"collection success", "payout success", "payout failed", "topup success", "topup failed", "bundle success", "reversed", "resolved", "posted again", "rerouted"} {
		if reached[what] == 0 {
			t.Errorf("no payment was ever %s", what)
		}
	}
}

const everyPayment = `SELECT id FROM payments`

// reach counts the payments by their result.
func (n *node) reach() map[string]int {
	reached := map[string]int{}
	ctx := n.fixture.t.Context()
	var ids []string
	err := n.db.Read(ctx, func(tx *db.Tx) error {
		ids = nil
		return tx.Query(everyPayment, nil, func(r *db.Row) error {
			var id string
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	rows, err := n.ByIDs(ctx, ids)
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	for _, pay := range rows {
		reached[string(pay.Kind)+" "+string(pay.Status)]++
		for what, is := range map[string]bool{
			"reversed": pay.Status == book.StatusSuccess && !pay.ContradictedAt.IsZero(), "found paid": pay.Status == book.StatusFailed && !pay.ContradictedAt.IsZero(),
			"resolved": pay.Note == "by the statement", "posted again": pay.Submissions > 1, "rerouted": pay.Attempt > 1, "refused": pay.Refused,
		} {
			if is {
				reached[what]++
			}
		}
	}
	return reached
}

func randomRun(t *testing.T, d *db.DB, r *rand.Rand) map[string]int {
	h := newFixture(t, d)
	n := h.node("a")
	tellers := map[string]*teller{
		"mtn":    {rail: h.first, repeats: true},
		"hubtel": {rail: h.second},
	}
	for name, one := range tellers {
		one.random, one.noisy, one.entries, one.opening = rand.New(rand.NewPCG(r.Uint64(), 1)), true, map[string]*entry{}, 900*money.Cedi
		one.kind = func(reference string) book.Kind {
			pay, _, err := n.ByProviderReference(t.Context(), reference)
			if err != nil {
				t.Error(err)
			}
			return pay.Kind
		}
		one.rail.script(one.post, one.ask)
		if err := n.AddFloat(t.Context(), treasury.Float{Provider: name, Mode: tenant.Test}, one.opening, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
	}
	h.second.sells(pending, oneGiga)
	other := n.newTenant(50 * money.Cedi)
	given := money.Pesewas(0)
	accepted := map[book.Kind]int64{}
	for range 60 {
		kinds, err := n.randomStep(r)
		if err != nil && !problem.Is(err, problem.InsufficientFunds) && !problem.Is(err, problem.Refused) && !problem.Is(err, problem.Forbidden) && !problem.Is(err, problem.Unavailable) {
			t.Fatal(err)
		}
		if err == nil || problem.Is(err, problem.Refused) {
			for _, k := range kinds {
				accepted[k]++
			}
		}
		if r.IntN(10) == 0 {
			amount := money.Pesewas(1 + r.IntN(500))
			if _, err := n.Transfer(t.Context(), h.tenant.ID, other.ID, amount, "a gift", "ama"); err == nil {
				given += amount
				accepted[book.KindPayout]++
			}
		}
		if r.IntN(15) == 0 {
			tellers[[]string{"mtn", "hubtel"}[r.IntN(2)]].reverse()
		}
		n.pass(time.Duration(r.IntN(20_000)) * time.Millisecond)
	}
	for _, one := range tellers {
		one.mu.Lock()
		one.noisy = false
		one.mu.Unlock()
	}
	n.pass(3 * time.Hour)
	stuck, err := n.Stuck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pay := range stuck {
		if _, err := n.Resolve(t.Context(), pay.ID, tellers[pay.Rail].did(pay.AttemptReference), "by the statement", "ama"); err != nil {
			t.Errorf("resolve %s: %v", pay.ID, err)
		}
	}
	n.pass(52 * time.Hour) // this is long enough for all rechecks
	n.sound()
	reached := n.reach()
	if left := n.jobsLeft(); left != 0 {
		t.Errorf("%d jobs are left", left)
	}
	for name, one := range tellers {
		if gap, err := n.CheckFloat(t.Context(), name, "test", one.book()); err != nil || gap != 0 {
			t.Errorf("the float at %s is off by %s (%v)", name, gap, err)
		}
	}
	for _, k := range []book.Kind{book.KindCollection, book.KindPayout, book.KindTopUp, book.KindBundle} {
		page, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: k})
		if err != nil || page.Total != accepted[k] {
			t.Errorf("%d of kind %s in the history, accepted were %d (%v)", page.Total, k, accepted[k], err)
		}
	}
	has, err := n.ledger.Balance(t.Context(), other.Wallet())
	if err != nil || money.Pesewas(has) != 50*money.Cedi+given {
		t.Errorf("the other wallet has %d, want %s (%v)", has, 50*money.Cedi+given, err)
	}
	return reached
}

// randomStep makes one request of a customer and returns the kinds of its payments.
func (n *node) randomStep(r *rand.Rand) (kinds []book.Kind, err error) {
	h, ctx := n.fixture, n.fixture.t.Context()
	network, number := msisdn.MTN, msisdn.MSISDN("233241234567")
	if r.IntN(2) == 0 {
		network, number = msisdn.Telecel, telecel
	}
	amount := money.Pesewas(50 + r.IntN(5_000))
	switch r.IntN(8) {
	case 0, 1:
		_, _, err = n.Payout(ctx, h.caller(), Payout{Amount: amount, Reference: h.reference(), MSISDN: number, Network: network})
		return []book.Kind{book.KindPayout}, err
	case 2:
		_, _, err = n.Payout(ctx, h.caller(), Payout{Amount: amount, Reference: h.reference(), BankID: n.bankID("040100"), AccountNumber: "1234567"})
		return []book.Kind{book.KindPayout}, err
	case 3:
		_, _, err = n.Collect(ctx, h.caller(), Collect{Amount: amount, Reference: h.reference(), MSISDN: number, Network: network})
		return []book.Kind{book.KindCollection}, err
	case 4:
		_, _, _, err = n.AirtimeBuy(ctx, h.caller(), AirtimeBuy{Destination: telecel, Payer: number, Network: network, Amount: amount, NetworkID: n.networkID(msisdn.Telecel)})
		return []book.Kind{book.KindCollection, book.KindTopUp}, err
	case 5:
		_, _, err = n.TopUp(ctx, h.caller(), n.topUp())
		return []book.Kind{book.KindTopUp}, err
	case 6:
		offers, _, err := n.lookups.Offers(ctx, h.tenant.ID, n.serviceID("telecel_data"), telecel)
		if err != nil {
			return nil, err
		}
		_, _, err = n.BuyBundle(ctx, h.caller(), BuyBundle{MSISDN: telecel, ServiceID: n.serviceID("telecel_data"), OfferID: offers[0].ID, Network: msisdn.Telecel})
		return []book.Kind{book.KindBundle}, err
	}
	page, err := n.History(ctx, h.tenant.ID, book.Filter{Kind: book.KindCollection, Status: "pending"})
	if err == nil && len(page.Rows) > 0 {
		_, err = n.Status(ctx, h.tenant.ID, page.Rows[r.IntN(len(page.Rows))].ID)
	}
	return nil, err
}
