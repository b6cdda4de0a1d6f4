package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// failsAirtime buys airtime that is paid by mobile money and is not delivered.
func (n *node) failsAirtime(t *testing.T) (of, topUp book.Payment) {
	t.Helper()
	h := n.fixture
	h.first.script(always(pending), always(success))
	h.second.script(always(pending), always(pending))
	of, topUp, _, err := n.AirtimeBuy(t.Context(), h.caller(), n.airtime())
	if err != nil {
		t.Fatal(err)
	}
	n.pass(5 * time.Second)
	return n.must(book.KindCollection, of.ID), topUp
}

// refundOfAirtime returns the refund of a collection that paid for airtime. found is false if there is none.
func (n *node) refundOfAirtime(t *testing.T, of book.Payment) (pay book.Payment, found bool) {
	t.Helper()
	list, err := n.RefundsOf(t.Context(), of.ID, 10)
	if err != nil || len(list) > 1 {
		t.Fatalf("%d refunds, %v", len(list), err)
	}
	if len(list) == 1 {
		pay, found = list[0], true
	}
	return pay, found
}

// TestRefund_airtimeGoesToThePayer: if the account is set up for it, one transaction fails the airtime and accepts
// the refund to its payer. If a refund is not possible, the wallet keeps the money.
func TestRefund_airtimeGoesToThePayer(t *testing.T) {
	yes, payer := true, tenant.RefundToPayer
	for _, tt := range []struct {
		name  string
		set   tenant.Change
		fee   money.Pesewas
		empty bool // the wallet is empty
		want  bool
	}{
		{"to the payer", tenant.Change{RefundAirtime: &payer}, 0, false, true},
		{"to the payer, from an empty wallet", tenant.Change{RefundAirtime: &payer}, 0, true, true},
		{"the wallet does not cover the fee", tenant.Change{RefundAirtime: &payer}, 30, true, false},
		{"payouts are stopped", tenant.Change{RefundAirtime: &payer, PayoutsStopped: &yes}, 0, false, false},
		{"to the wallet", tenant.Change{}, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				n.refundFee(tt.fee)
				n.set(tt.set)
				of, topUp := n.failsAirtime(t)
				if tt.empty {
					if err := n.Adjust(t.Context(), h.tenant.ID, -n.balance(), "a test", "ama"); err != nil {
						t.Fatal(err)
					}
				}
				before := n.balance()
				h.second.script(always(pending), always(failed))
				n.pass(20 * time.Second)
				if is := n.must(book.KindTopUp, topUp.ID); is.Status != book.StatusFailed {
					t.Fatalf("the top-up is %s", is.Status)
				}
				pay, found := n.refundOfAirtime(t, of)
				if found != tt.want {
					t.Fatalf("a refund is there: %v", found)
				}
				if !found {
					if n.balance() != before+of.Amount {
						t.Errorf("the wallet went from %s to %s", before, n.balance())
					}
					n.wantRefunded(of, 0)
					return
				}
				if pay.Reference != n.references.airtimeRefund(of) || pay.Amount != of.Amount || pay.Account != of.Account || pay.Status != book.StatusSuccess {
					t.Errorf("the refund is %+v", pay)
				}
				if n.balance() != before || h.first.posted(ofRefund+pay.ProviderReference) != 1 {
					t.Errorf("the wallet went from %s to %s, refunded %d times", before, n.balance(), h.first.posted(ofRefund+pay.ProviderReference))
				}
				n.wantRefunded(of, of.Amount)
			})
		})
	}
}

// TestRefund_airtimeKilled breaks the connection at every boundary while airtime fails. The payer is refunded once,
// and only if the top-up has failed.
func TestRefund_airtimeKilled(t *testing.T) {
	payer := tenant.RefundToPayer
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := newFixture(t, d)
		n := h.node("a")
		n.set(tenant.Change{RefundAirtime: &payer})
		for _, boundary := range []db.Boundary{db.BoundaryExchange, db.BoundaryCommit} {
			for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
				for nth := 1; nth <= 3; nth++ {
					of, topUp := n.failsAirtime(t)
					h.second.script(always(pending), always(failed))
					breakAt(f, boundary, nth, fault)
					n.pass(20 * time.Second)
					f.Decide(nil)
					n.pass(20 * time.Second)
					if is := n.must(book.KindTopUp, topUp.ID); is.Status != book.StatusFailed {
						t.Errorf("%v %v at %d: the top-up is %s", boundary, fault, nth, is.Status)
					}
					pay, found := n.refundOfAirtime(t, of)
					if !found || pay.Status != book.StatusSuccess || h.first.posted(ofRefund+pay.ProviderReference) != 1 {
						t.Errorf("%v %v at %d: refunded %v, %s", boundary, fault, nth, found, pay.Status)
					}
					n.wantRefunded(of, of.Amount)
				}
			}
		}
		if n.balance() != funds {
			t.Errorf("the wallet has %s", n.balance())
		}
	})
}

// TestRefund_airtimeInRecovery: the payer of airtime was refunded before the restore. The top-up fails again and
// adopts that refund.
func TestRefund_airtimeInRecovery(t *testing.T) {
	payer := tenant.RefundToPayer
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		n.set(tenant.Change{RefundAirtime: &payer})
		of, topUp := n.failsAirtime(t)
		reference := n.References(h.tenant, book.KindPayout, n.references.airtimeRefund(of))[0]
		h.first.mu.Lock()
		h.first.gross[ofRefund+reference] = of.Amount
		h.first.mu.Unlock()
		h.first.script(always(pending), func(_ int, asked string) provider.Outcome {
			if asked == ofRefund+reference {
				return success
			}
			return notFound
		})
		h.second.script(always(pending), func(_ int, asked string) provider.Outcome {
			if asked == topUp.ProviderReference {
				return failed
			}
			return notFound
		})
		n.startRecovery(t, true)
		n.clock.Advance(10 * time.Minute)
		n.pass(time.Minute)
		pay, found := n.refundOfAirtime(t, of)
		if !found || pay.Status != book.StatusSuccess || h.first.posted(ofRefund+reference)+h.first.posted(reference)+h.second.posted(reference) != 0 {
			t.Errorf("refunded %v, %s", found, pay.Status)
		}
		n.wantRefunded(of, of.Amount)
	})
}
