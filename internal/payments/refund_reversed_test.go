package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// TestRefund_reversedAfterSuccess: the provider shows our refund as a reversal only after the refund succeeded. The money leaves
// the wallet once. The reversal is explained if the refunds over this rail sum up to the collection. An operator decides about any
// other reversal.
func TestRefund_reversedAfterSuccess(t *testing.T) {
	for _, tt := range []struct {
		name     string
		network  msisdn.Network
		amounts  []money.Pesewas // amounts of the refunds in their order; 0 is the whole collection
		disputed bool
	}{
		{"whole", msisdn.MTN, []money.Pesewas{0}, false},
		{"in parts", msisdn.MTN, []money.Pesewas{4 * money.Cedi, 6 * money.Cedi}, false},
		{"only a part", msisdn.MTN, []money.Pesewas{4 * money.Cedi}, true},
		{"by a payout", msisdn.Telecel, []money.Pesewas{0}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				of := n.collected(tt.network)
				rail := h.first
				if tt.network == msisdn.Telecel {
					rail = h.second
				}
				var refunded money.Pesewas
				rail.script(always(pending), always(success))
				for _, amount := range tt.amounts {
					r := h.refund(of)
					r.Amount = amount
					pay := n.refunds(r)
					n.pass(time.Minute)
					if pay = n.must(book.KindPayout, pay.ID); pay.Status != book.StatusSuccess {
						t.Fatalf("the refund is %s", pay.Status)
					}
					refunded += pay.Amount
				}
				held := n.balance()
				rail.script(always(pending), func(_ int, reference string) provider.Outcome {
					if reference == of.ProviderReference {
						return provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonReversed}
					}
					return success
				})
				for range 3 {
					n.rechecks.soon(n.must(book.KindCollection, of.ID))
					n.pass(time.Hour)
				}
				if n.balance() != held || n.receivable() != 0 || n.account(ledger.Suspense) != 0 {
					t.Errorf("the wallet went from %s to %s, %s are in suspense", held, n.balance(), n.account(ledger.Suspense))
				}
				if seen := n.must(book.KindCollection, of.ID); seen.ContradictedAt.IsZero() == tt.disputed || seen.Status != book.StatusSuccess {
					t.Errorf("the collection is %s, contradicted at %v", seen.Status, seen.ContradictedAt)
				}
				if account, err := n.tenants.Get(t.Context(), h.tenant.ID); err != nil || account.PayoutsStopped {
					t.Error("the payouts are stopped", err)
				}
				next := h.refund(of)
				next.Amount = money.Cedi
				_, _, err := n.Refund(t.Context(), h.caller(), next)
				wantKind(t, err, problem.Invalid)
				n.wantRefunded(of, refunded)
			})
		})
	}
}
