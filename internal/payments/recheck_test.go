package payments

import (
	"context"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// pay creates count payouts in their order and returns their ids.
func (n *node) pay(count int, r Payout) (ids []string) {
	t := n.fixture.t
	t.Helper()
	for range count {
		r.Reference = n.fixture.reference()
		r.CallbackURL = "" // webhooks are not compared
		pay, _, err := n.Payout(t.Context(), n.fixture.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, pay.ID)
	}
	return ids
}

// toTelecel returns a payout that goes to the second rail.
func (h *fixture) toTelecel() Payout {
	r := h.payout()
	r.MSISDN, r.Network = telecel, msisdn.Telecel
	return r
}

func (n *node) rechecksPlanned() (count int) {
	t := n.fixture.t
	t.Helper()
	if _, err := n.db.ReadOne(t.Context(), `SELECT count(*) FROM payment_looks`, nil, &count); err != nil {
		t.Fatal(err)
	}
	return count
}

// A recheck runs at its time, even if the clock moves before the queue begins to wait.
func TestRecheckQueue_clockMovesMeanwhile(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC))
	q := newRecheckQueue(c, func(context.Context, book.Payment) {})
	defer q.close()
	for range 1000 {
		due := c.Elapsed() + hintTime
		q.soon(book.Payment{ID: "one"})
		for c.Waiting() == 0 && c.Elapsed() < due { // the clock also moves between the queue's reading of the time and its wait
			c.Advance(1)
		}
		c.Advance(due - c.Elapsed())
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := q.quiet(ctx)
		cancel()
		if err != nil {
			t.Fatal("a due recheck did not run: ", err)
		}
	}
}

// A provider that does not answer for a day does not delay the reversals of another provider. It does not get the
// same queries in every sweep.
func TestRecheck_silentProviderDelaysNone(t *testing.T) {
	const many = recheckBatch + recheckSilent + 5
	for name, open := range map[string]time.Duration{"final at once": 0, "final late": 3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				if err := n.Fund(t.Context(), h.tenant.ID, 10_000*money.Cedi, "paid in", "ama"); err != nil {
					t.Fatal(err)
				}
				// The payments of the silent provider come first.
				h.second.script(always(pending), always(pending))
				silent := n.pay(many, h.toTelecel())
				h.first.script(always(pending), always(pending))
				taken := n.pay(1, h.payout())[0]
				n.pass(open)
				h.second.script(always(success), always(success))
				n.pass(open)
				h.first.script(always(success), always(success))
				n.pass(2*open + time.Minute)
				for _, id := range append(silent, taken) {
					if is := n.must(book.KindPayout, id); is.Status != book.StatusSuccess {
						t.Fatalf("a payment is %s", is.Status)
					}
				}
				h.first.script(always(pending), always(failed))
				h.second.script(always(pending), always(unknown))
				n.pass(24*time.Hour + book.RecheckSlack + recheckEvery)
				if is := n.must(book.KindPayout, taken); is.ContradictedAt.IsZero() {
					t.Error("a reversal was not seen, because another provider does not answer")
				}
				_, before := h.second.counts()
				n.pass(time.Hour)
				_, after := h.second.counts()
				if sweeps := int(time.Hour / recheckEvery); after-before > sweeps*(recheckBatch+recheckSilent) {
					t.Errorf("a silent provider was asked %d times in an hour", after-before)
				}
				// Each payment is queried when it is due, and its last report counts.
				h.second.script(always(pending), always(costly(7, 0)))
				n.pass(recheckPause + 2*recheckEvery)
				if left := n.rechecksPlanned(); left != 0 {
					t.Errorf("%d looks are left", left)
				}
				for _, id := range silent {
					fee, _, err := n.book.Costs(t.Context(), n.must(book.KindPayout, id))
					if err != nil || fee != 7 {
						t.Fatalf("the provider's fee is booked as %s, %v", fee, err)
					}
				}
				_, asked := h.second.counts()
				n.pass(72 * time.Hour)
				if _, again := h.second.counts(); again != asked {
					t.Errorf("asked %d times more", again-asked)
				}
				n.books()
			})
		})
	}
}

// Queries to a provider that never answers end after a day.
func TestRecheck_givenUpAfterADay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		if err := n.Fund(t.Context(), h.tenant.ID, 10_000*money.Cedi, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		h.second.script(always(success), always(unknown))
		n.pay(recheckSilent+3, h.toTelecel())
		n.pass(book.RecheckAfter + book.RecheckSlack + 2*recheckEvery)
		if _, asked := h.second.counts(); asked < recheckSilent || n.rechecksPlanned() == 0 {
			t.Errorf("asked %d times, %d looks are planned", asked, n.rechecksPlanned())
		}
		n.pass(book.RecheckAfter + recheckPause)
		if left := n.rechecksPlanned(); left != 0 {
			t.Errorf("%d looks are left", left)
		}
		_, asked := h.second.counts()
		n.pass(24 * time.Hour)
		if _, again := h.second.counts(); again != asked {
			t.Errorf("asked %d times more", again-asked)
		}
		n.sound()
	})
}

// A payment that its recheck changed gets another recheck.
func TestRecheck_afterContradiction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		in, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(3 * time.Hour)
		h.first.script(always(pending), always(provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonExpired}))
		n.pass(5 * time.Hour)
		if is := n.must(book.KindCollection, in.ID); is.Status != book.StatusDeclined || !is.SettledLate() {
			t.Fatalf("it is %s", is.Status)
		}
		h.first.script(always(pending), always(success))
		n.pass(book.RecheckAfter)
		if is := n.must(book.KindCollection, in.ID); is.Status != book.StatusSuccess || n.balance() != funds+in.Net() {
			t.Fatalf("it is %s, the wallet has %s", is.Status, n.balance())
		}
		h.first.script(always(pending), always(failed))
		n.pass(book.RecheckAfter + recheckEvery)
		if is := n.must(book.KindCollection, in.ID); is.ContradictedAt.IsZero() || n.balance() != funds {
			t.Errorf("taken back, and nobody saw it: the wallet has %s", n.balance())
		}
		if left := n.rechecksPlanned(); left != 0 {
			t.Errorf("%d looks are left", left)
		}
		n.sound()
	})
}
