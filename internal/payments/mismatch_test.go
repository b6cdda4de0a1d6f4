package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// If a status answer has another amount, account or reference, operators are alerted and no money moves.
func TestMismatch_inStatusQuery(t *testing.T) {
	echoes := map[string]provider.Echo{
		"amount":    {Amount: 1, AmountTold: true},
		"currency":  {Reference: "", Amount: 1000, AmountTold: true, Currency: "EUR"},
		"party":     {Amount: 1000, AmountTold: true, Party: "233240000001"},
		"reference": {Reference: "00000000-0000-4000-8000-000000000000"},
	}
	for name, echo := range echoes {
		for _, word := range []provider.Outcome{success, failed} {
			t.Run(name+" "+word.State.String(), func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					h := newFixture(t, d)
					n := h.node("a")
					strange := word // the engines run in parallel: each needs its own copy
					strange.Echo = &echo
					h.first.script(always(pending), always(strange))
					pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
					if err != nil {
						t.Fatal(err)
					}
					n.pass(time.Hour)
					got := n.must(book.KindPayout, pay.ID)
					if got.Status != book.StatusPending || got.EscalatedAt.IsZero() || got.Reason != provider.ReasonMismatch {
						t.Errorf("%s, escalated %v, reason %q", got.Status, got.EscalatedAt, got.Reason)
					}
					if n.balance() != funds-pay.Held() {
						t.Errorf("the wallet has %s", n.balance())
					}
					n.books()
				})
			})
		}
	}
}

// If the answer to a submission has another amount, account or reference, operators are alerted and no money moves.
func TestMismatch_inSubmission(t *testing.T) {
	for _, word := range []provider.Outcome{success, failed} {
		t.Run(word.State.String(), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				strange := word // the engines run in parallel: each needs its own copy
				strange.Echo = &provider.Echo{Amount: 1, AmountTold: true}
				h.first.script(always(strange), always(unknown))
				pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(time.Hour)
				got := n.must(book.KindPayout, pay.ID)
				if got.Status != book.StatusPending || got.EscalatedAt.IsZero() || got.Reason != provider.ReasonMismatch {
					t.Errorf("%s, escalated %v, reason %q", got.Status, got.EscalatedAt, got.Reason)
				}
				if n.balance() != funds-pay.Held() {
					t.Errorf("the wallet has %s", n.balance())
				}
				n.books()
			})
		})
	}
}
