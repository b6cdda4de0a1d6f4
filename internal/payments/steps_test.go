package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// unpaid is Hubtel's status of open and of failed payments.
var unpaid = provider.Outcome{Class: provider.Accepted, Unpaid: true}

// Pauses between queries are durations. If the clock is set back by a day, they do not become longer, neither the
// planned ones nor those after a callback.
func TestClockSetBack_paymentsArePolled(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		asked, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		n.clock.Set(-24 * time.Hour)
		h.first.script(always(pending), always(success))
		n.pass(10 * time.Second)
		if is := n.must(book.KindCollection, asked.ID); is.Status != book.StatusSuccess {
			t.Errorf("asked by the schedule: %s", is.Status)
		}
		h.first.script(always(pending), always(pending))
		hinted, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(20 * time.Minute)
		n.hint(hinted)
		n.pass(hintTime)
		n.clock.Set(-24 * time.Hour)
		h.first.script(always(pending), always(success))
		n.hint(hinted)
		n.pass(hintTime)
		if is := n.must(book.KindCollection, hinted.ID); is.Status != book.StatusSuccess {
			t.Errorf("asked after a callback: %s", is.Status)
		}
		n.sound()
	})
}

// hint is a callback about a payment.
func (n *node) hint(pay book.Payment) {
	n.fixture.t.Helper()
	n.queue.Wake(pay.ID)
	n.quiet()
}

// Unpaid fails a payment after an elapsed time. If the clock is set forward, once or between two answers, the payment
// does not fail.
func TestClockSetForward_unpaidStaysOpen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.second.script(always(pending), always(unpaid))
		n := h.node("a")
		in := h.collect()
		in.MSISDN, in.Network = telecel, msisdn.Telecel
		collection, _, err := n.Collect(t.Context(), h.caller(), in)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			n.pass(20 * time.Second)
			n.clock.Set(time.Hour)
			n.hint(collection)
			if _, err := n.Status(t.Context(), h.tenant.ID, collection.ID); err != nil {
				t.Fatal(err)
			}
		}
		if is := n.must(book.KindCollection, collection.ID); is.Status != book.StatusPending {
			t.Errorf("after a minute it is %s", is.Status)
		}
		n.pass(40 * time.Minute)
		if is := n.must(book.KindCollection, collection.ID); is.Status != book.StatusDeclined && is.Status != book.StatusFailed {
			t.Errorf("after forty minutes it is %s", is.Status)
		}
		n.sound()
	})
}

// A bare refusal that is repeated counts after VisibleAfter (V), and barred submissions are retried for thirty
// minutes. Neither time is shorter if the clock is set forward.
func TestClockSetForward_refusalWaits(t *testing.T) {
	for _, tt := range []struct {
		name string
		post provider.Outcome
		ends time.Duration
	}{{"a bare refusal", bare, 3 * time.Minute}, {"turned away", barred, unsentTime + 5*time.Minute}, {"not sent", unsent, unsentTime + time.Minute}} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.first.script(always(tt.post), always(notFound))
				h.second.script(always(tt.post), always(notFound))
				n := h.node("a")
				pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
				if err != nil {
					t.Fatal(err)
				}
				for range 4 {
					n.pass(10 * time.Second)
					n.clock.Set(time.Hour)
					n.hint(pay)
				}
				n.pass(10 * time.Second)
				if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusPending || n.balance() != funds-pay.Held() {
					t.Errorf("after 50 s it is %s, the wallet has %s", is.Status, n.balance())
				}
				for range tt.ends / time.Minute {
					n.pass(time.Minute)
					n.hint(pay)
				}
				if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusFailed || n.balance() != funds {
					t.Errorf("at the end it is %s, the wallet has %s", is.Status, n.balance())
				}
				n.sound()
			})
		})
	}
}

// A process that takes over does not count the time before it read the row.
func TestRestart_agesStartAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.second.script(always(pending), always(unpaid))
		n := h.shaped(quietOptions("a"))
		in := h.collect()
		in.MSISDN, in.Network = telecel, msisdn.Telecel
		pay, _, err := n.Collect(t.Context(), h.caller(), in)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Minute)
		if err := n.queue.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(24 * time.Hour)
		heir := h.node("b")
		heir.pass(unpaidApart + time.Minute)
		if is := heir.must(book.KindCollection, pay.ID); is.Status != book.StatusPending {
			t.Errorf("eleven minutes after the restart it is %s", is.Status)
		}
		heir.pass(30 * time.Minute)
		if is := heir.must(book.KindCollection, pay.ID); is.Status.Open() {
			t.Errorf("forty minutes after the restart it is %s", is.Status)
		}
		heir.sound()
	})
}

// In a recovery, a not-found answer and a refusal without a query count V after this process saw the recovery begin.
// Setting the clock changes nothing. For a process that starts later, V starts again.
func TestClockSetForward_recoveryWaits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const v = 5 * time.Minute // V of the slower rail
		h := newFixture(t, d)
		h.recovers = true
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(notFound))
		n := h.node("a")
		n.startRecovery(t, true)
		rail, _ := n.routes.Rail("hubtel", "test")
		first := func(on *node, want bool) {
			t.Helper()
			if is := on.recovered.firstOfRecovery(t.Context(), rail); is != want {
				t.Errorf("%v after it began it is the first of the recovery: %v", n.clock.Elapsed(), is)
			}
		}
		refused := func(wait time.Duration) {
			t.Helper()
			_, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if e := wantKind(t, err, problem.Unavailable); e.RetryAfter != wait {
				t.Errorf("to come again in %v, want %v", e.RetryAfter, wait)
			}
		}
		n.clock.Advance(time.Minute)
		n.clock.Set(time.Hour)
		first(n, true)
		refused(v - time.Minute)
		n.clock.Set(-24 * time.Hour)
		n.clock.Advance(v - time.Minute)
		first(n, false)
		if _, _, err := n.Payout(t.Context(), h.caller(), h.payout()); err != nil {
			t.Error(err)
		}
		later := h.stopped("b")
		n.clock.Set(48 * time.Hour)
		first(later, true)
		n.clock.Advance(v)
		first(later, false)
	})
}

// A final payment is queried again a day after acceptance or late settlement, because the provider may reverse it
// until then. Setting the clock forward does not bring this query forward.
func TestClockSetForward_recheckWaits(t *testing.T) {
	for name, open := range map[string]time.Duration{"final at once": 0, "final late": 3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				id := n.pay(1, h.payout())[0]
				n.pass(open)
				h.first.script(always(pending), always(success))
				n.pass(open + time.Minute)
				n.pass(2 * recheckEvery)
				if is := n.must(book.KindPayout, id); is.Status != book.StatusSuccess {
					t.Fatalf("it is %s", is.Status)
				}
				if err := n.queue.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				sweep := func() (asked int) {
					t.Helper()
					_, before := h.first.counts()
					if err := n.rechecker.sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
					_, after := h.first.counts()
					return after - before
				}
				n.clock.Set(26 * time.Hour)
				for range 3 {
					n.clock.Advance(recheckEvery)
					if asked := sweep(); asked != 0 {
						t.Errorf("asked %d times when the clock was set", asked)
					}
				}
				h.first.script(always(pending), always(failed))
				n.clock.Advance(book.RecheckAfter)
				sweep()
				n.clock.Advance(2 * time.Hour)
				sweep()
				if is := n.must(book.KindPayout, id); is.ContradictedAt.IsZero() {
					t.Error("a reversal a day later was not seen")
				}
				n.books()
			})
		})
	}
}
