package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
)

// A node whose clock runs days ahead accepts one payment. Later payments keep their own times and days, and are
// rechecked in turn.
func TestAccept_clockAhead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		here := h.clock
		h.clock = clock.NewManual(morning.AddDate(0, 0, 3))
		ahead := h.stopped("ahead")
		h.clock = here
		h.first.script(always(pending), always(success))
		payout := func(n *node) book.Payment {
			t.Helper()
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			return pay
		}
		days := func(from, to int, want int64) {
			t.Helper()
			page, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, From: morning.AddDate(0, 0, from), To: morning.AddDate(0, 0, to)})
			if err != nil || page.Total != want {
				t.Errorf("from day %d to day %d there are %d, want %d (%v)", from, to, page.Total, want, err)
			}
		}
		payout(n)
		ahead.crash(t, "MTN")
		for day := range 2 {
			for range 2 {
				now := n.clock.Now()
				pay := payout(n)
				if is := n.must(book.KindPayout, pay.ID); !is.CreatedAt.Equal(now) {
					t.Errorf("accepted at %v, it says %v", now, is.CreatedAt)
				}
				n.pass(time.Minute)
			}
			days(day, day, 2+int64(1-day)*2) // the early payment was accepted on the first day
			days(0, 9, 4+int64(day)*2)
			days(day+1, 9, 0)
			n.sound()
			n.pass(24 * time.Hour)
		}
		_, before := h.first.counts()
		h.first.script(always(pending), always(failed))
		n.pass(book.RecheckSlack + recheckEvery)
		if _, after := h.first.counts(); after == before {
			t.Error("nobody looked again")
		}
		reversed, err := n.Contradictions(t.Context())
		if err != nil || len(reversed) == 0 {
			t.Errorf("%d reversals were seen (%v)", len(reversed), err)
		}
		n.pass(72 * time.Hour)
		for range 2 { // the day that began early has come
			payout(n)
			n.pass(24 * time.Hour)
		}
		days(0, 9, 8)
		n.sound()
	})
}
