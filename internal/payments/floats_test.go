package payments

import (
	"maps"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// floats is a node whose payments go to hubtel. Hubtel's sales have an account of their own.
type floats struct {
	*node
	t *testing.T
}

func newFloats(t *testing.T, d *db.DB) floats {
	h := newFixture(t, d)
	h.rails = []provider.Rail{{Name: "hubtel", Mode: "test", VisibleAfter: time.Minute, Collector: h.second, Disburser: h.second, TopUpper: h.second, WalletNames: h.second,
		Bundles: h.second, Accounts: provider.Accounts{Sell: provider.AccountServices}}}
	return floats{h.node("a"), t}
}

// pay accepts a payment of a kind.
func (f floats) pay(kind book.Kind) book.Payment {
	f.t.Helper()
	h := f.fixture
	var pay book.Payment
	var err error
	switch kind {
	case book.KindPayout:
		r := h.payout()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		pay, _, err = f.Payout(f.t.Context(), h.caller(), r)
	case book.KindCollection:
		r := h.collect()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		pay, _, err = f.Collect(f.t.Context(), h.caller(), r)
	default:
		pay, _, err = f.TopUp(f.t.Context(), h.caller(), f.topUp())
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.pass(2 * time.Second)
	return pay
}

// reverse makes the provider reverse a success.
func (f floats) reverse(pay book.Payment) {
	f.t.Helper()
	f.fixture.second.script(always(pending), always(failed))
	if _, err := f.rechecker.recheck(f.t.Context(), f.must(pay.Kind, pay.ID)); err != nil {
		f.t.Fatal(err)
	}
}

// postings compares the legs of a payment that have a float in "from" or "to".
func (f floats) postings(pay book.Payment, want map[string]string) {
	f.t.Helper()
	list, err := f.ledger.OfSubject(f.t.Context(), pay.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range list {
		switch {
		case p.From.IsFloat():
			got[p.Leg] = "from " + string(p.From)
		case p.To.IsFloat():
			got[p.Leg] = "to " + string(p.To)
		}
	}
	if !maps.Equal(got, want) {
		f.t.Errorf("a %s posts %v, want %v", pay.Kind, got, want)
	}
}

// balances compares the floats by account.
func (f floats) balances(want map[string]money.Pesewas) {
	f.t.Helper()
	got, err := f.Floats(f.t.Context(), "hubtel", "test")
	if err != nil || !maps.Equal(got, want) {
		f.t.Errorf("the floats hold %v, want %v (%v)", got, want, err)
	}
	f.sound()
}

// Every posting of a payment uses the provider account that its money moves through.
func TestFloats_accountByKind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFloats(t, d)
		legs := func(account string) map[string]string {
			return map[string]string{"final": "to " + account, "provider_fee": "to " + account, "turned": "from " + account, "turned_provider_fee": "from " + account}
		}
		want := map[book.Kind]map[string]string{
			book.KindPayout: legs("float/hubtel/disbursement"),
			book.KindTopUp:  legs("float/hubtel/services"),
			book.KindCollection: {"final": "from float/hubtel/collection", "final_fee": "from float/hubtel/collection", "provider_fee": "to float/hubtel/collection",
				"turned": "to float/hubtel/collection", "turned_fee": "to float/hubtel/collection", "turned_provider_fee": "from float/hubtel/collection"},
		}
		for _, kind := range []book.Kind{book.KindPayout, book.KindTopUp, book.KindCollection} { // a reversed collection stops payouts
			f.fixture.second.script(always(pending), always(costly(3, 0)))
			pay := f.pay(kind)
			f.reverse(pay)
			f.postings(pay, want[kind])
		}
		f.balances(map[string]money.Pesewas{"collection": 0, "disbursement": 0, "services": 0})
	})
}

const (
	olderNode = `INSERT INTO job_leases (owner, node, epoch, expires_at, level) VALUES ('old/1', 'old', 1, now_micros() + 600000000, 1)`
	olderEnds = `UPDATE job_leases SET expires_at = 0 WHERE owner = 'old/1'`
)

func (f floats) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

// While a node of the previous release runs, postings use one float for each provider. Afterwards they name the
// provider account. If an older payment is reversed then, the sum of the floats is still exact.
func TestFloats_olderNodeLives(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFloats(t, d)
		f.exec(olderNode)
		f.fixture.second.script(always(pending), always(costly(3, 0)))
		before := f.pay(book.KindPayout)
		f.postings(before, map[string]string{"final": "to float/hubtel", "provider_fee": "to float/hubtel"})
		f.balances(map[string]money.Pesewas{"": -before.Amount - 3})

		f.exec(olderEnds)
		f.pass(time.Minute)
		f.fixture.second.script(always(pending), always(costly(3, 0)))
		after := f.pay(book.KindPayout)
		f.postings(after, map[string]string{"final": "to float/hubtel/disbursement", "provider_fee": "to float/hubtel/disbursement"})
		f.balances(map[string]money.Pesewas{"": -before.Amount - 3, "disbursement": -after.Amount - 3})

		f.reverse(before)
		f.postings(before, map[string]string{"final": "to float/hubtel", "provider_fee": "to float/hubtel",
			"turned": "from float/hubtel/disbursement", "turned_provider_fee": "from float/hubtel/disbursement"})
		f.balances(map[string]money.Pesewas{"": -before.Amount - 3, "disbursement": before.Amount - after.Amount})
		if gap, err := f.CheckFloat(t.Context(), "hubtel", "test", -after.Amount-3); err != nil || gap != 0 {
			t.Errorf("all accounts together are off by %s (%v)", gap, err)
		}
	})
}

// The check of the books accepts a provider's float with and without an account. It refuses the float of another
// provider.
func TestFloats_checkedByProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFloats(t, d)
		f.fixture.second.script(always(pending), always(success))
		out, in := f.pay(book.KindPayout), f.pay(book.KindCollection)
		for account, right := range map[string]bool{"float/hubtel": true, "float/hubtel/disbursement": true, "float/mtn": false, "float/mtn/disbursement": false, "float/hubtels/collection": false, "fees": false} {
			f.exec(`UPDATE transfers SET to_account = $1 WHERE subject = $2 AND leg = 'final'`, account, out.ID)
			f.exec(`UPDATE transfers SET from_account = $1 WHERE subject = $2 AND leg = 'final'`, account, in.ID)
			report, err := f.Check(t.Context())
			if want := map[bool]int{true: 0, false: 2}[right]; err != nil || len(report.Problems) != want {
				t.Errorf("final legs of %s: %v (%v)", account, report.Problems, err)
			}
		}
	})
}
