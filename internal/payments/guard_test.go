package payments

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/treasury"
)

// What a node knows of a row may be old: it was paused, and another one has gone on. So the
// writes say what they expect.

// TestAMarkIsMadeOnce: a node is paused before it marks what must not be sent twice. Another
// one takes the payment over, marks it and sends it: then the first one does not.
func TestAMarkIsMadeOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, heir := h.stopped("a"), h.stopped("b")
		_, pay := n.accepted(t, "TELECEL", false)
		heir.follower.runJob(t.Context(), openJob(pay, h.clock.Now(), jobs.Job{Adopted: true}))
		n.follower.runJob(t.Context(), jobs.Job{ID: pay.ID, Subject: pay.ID})
		if posts, _ := h.second.counts(); posts != 1 {
			t.Errorf("%d POSTs", posts)
		}
		n.sound()
	})
}

// TestAMarkIsThereWhateverItsCommitSaid: the answer to the COMMIT of a mark is lost, and the mark
// with it. Nothing but the mark tells the row from what it was.
func TestAMarkIsThereWhateverItsCommitSaid(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := newFixture(t, d)
		n := h.stopped("a")
		h.second.script(func(_ int, reference string) provider.Outcome {
			row, found, err := n.ByProviderReference(context.Background(), reference)
			if err != nil || !found || row.SendingAt.IsZero() {
				t.Errorf("POSTed while the row is marked at %v (%v, %v)", row.SendingAt, found, err)
			}
			return pending
		}, always(pending))
		for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter} {
			_, pay := n.accepted(t, "TELECEL", false)
			breakAt(f, db.BoundaryCommit, 1, fault)
			n.follower.runJob(t.Context(), jobs.Job{ID: pay.ID, Subject: pay.ID})
			f.Decide(nil)
		}
		if posts, _ := h.second.counts(); posts != 2 {
			t.Errorf("%d POSTs", posts)
		}
		n.sound()
	})
}

// TestARefusalIsOfItsPosts: a collection's refusal is written without a look at its row.
// Another node has asked the payer once more since, who may pay.
func TestARefusalIsOfItsPosts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, heir := h.stopped("a"), h.stopped("b")
		in, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		row := in
		row.Posts++
		done, err := heir.book.Settle(t.Context(), book.Settlement{Payment: in, Event: book.EventRepeated, Known: true, Mark: &book.Mark{Row: row, WasAttempt: 1, WasPosts: 1}})
		if err != nil || !done.Changed {
			t.Fatalf("sent again: %v, %v", done.Changed, err)
		}
		for _, tt := range []struct {
			of   book.Payment
			want book.Status
		}{{in, book.StatusPending}, {row, book.StatusInvalid}} {
			_, err := n.book.Settle(t.Context(), book.Settlement{Payment: tt.of, Event: book.EventFailed, Known: true, Reason: rejected.Reason, Outcome: rejected, Posts: tt.of.Posts})
			if is := n.must(book.KindCollection, in.ID).Status; err != nil || is != tt.want {
				t.Errorf("refused of %d POSTs it is %s, want %s (%v)", tt.of.Posts, is, tt.want, err)
			}
		}
		n.sound()
	})
}

// TestGivingUpIsOfItsPosts: a node is paused as it gives up what it could not send. Another one
// takes the payment over and sends it, again or for the first time: then it is not given back.
func TestGivingUpIsOfItsPosts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, heir := h.stopped("a"), h.stopped("b")
		left := funds
		for _, tt := range []struct {
			network, name string
			rail          *scripted
		}{{"MTN", "mtn", h.first}, {"TELECEL", "hubtel", h.second}} {
			tt.rail.script(always(pending), always(notFound))
			a, pay := n.accepted(t, tt.network, false)
			left -= pay.Held()
			n.pauseRail(tt.name)
			h.clock.Advance(chosenTime)
			n.follower.runJob(t.Context(), jobs.Job{ID: pay.ID, Subject: pay.ID})
			h.clock.Advance(unsentTime)
			n.resumeRail(tt.name)
			heir.follower.runJob(t.Context(), openJob(pay, h.clock.Now(), jobs.Job{Adopted: true}))
			rail, _ := n.routes.Rail(tt.name, "test")
			(&run{f: n.follower, a: a.attempt, row: pay, rail: rail}).unsentYet(t.Context(), 0)
			posts, _ := tt.rail.counts()
			if is := n.must(book.KindPayout, pay.ID); posts != 1 || is.Status != book.StatusPending || n.balance() != left {
				t.Errorf("after %d POSTs to %s it is %s, the wallet has %s", posts, tt.name, is.Status, n.balance())
			}
		}
		n.sound()
	})
}

// TestAWordByAClockThatIsAhead: an operator's node runs ahead of the one that sends, by as
// much as clocks may differ, and it may still be on its way.
func TestAWordByAClockThatIsAhead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		here := h.clock
		h.clock = clock.NewManual(morning)
		other := h.stopped("b")
		h.clock = here
		pay, leave := n.sentAgain(t)
		other.clock.Advance(here.Now().Add(leaveTime + submitTime - time.Second + clock.Skew).Sub(morning))
		other.refusesWord(t, pay.ID)
		leave()
		n.quiet()
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || n.balance() != funds-pay.Held() {
			t.Errorf("it is %s, the wallet has %s", is.Status, n.balance())
		}
		n.sound()
	})
}

// TestAnOfferIsOneProviders: an order that cannot be sent to the provider of its offer is not
// given to another one that sells packages.
func TestAnOfferIsOneProviders(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.rails = []provider.Rail{{Name: "mtn", Mode: "test", Bundles: h.first}, {Name: "hubtel", Mode: "test", Bundles: h.second}}
		n := h.node("a")
		n.hubtelFirst(route.Bundle)
		h.first.sells(pending, oneGiga)
		h.second.sells(pending, oneGiga)
		service := n.serviceID("telecel_data")
		all, _, err := n.lookups.Offers(t.Context(), h.tenant.ID, service, telecel)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		h.second.script(always(unsent), always(unknown))
		pay, _, err := n.BuyBundle(t.Context(), h.caller(), BuyBundle{MSISDN: telecel, ServiceID: service, OfferID: all[0].ID, Network: msisdn.Telecel})
		if err != nil || pay.Rail != "hubtel" {
			t.Fatalf("%+v, %v", pay, err)
		}
		n.pass(time.Minute)
		others, _ := h.first.counts()
		if is := n.must(book.KindBundle, pay.ID); others != 0 || is.Rail != "hubtel" || is.Status != book.StatusPending {
			t.Errorf("%d POSTs to another provider; it is %s at %s", others, is.Status, is.Rail)
		}
		n.sound()
	})
}

// TestARefusalAfterARerouteIsOfItsPosts: what another provider could not be sent says nothing
// of this one, which may have the POST that it did not answer.
func TestARefusalAfterARerouteIsOfItsPosts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		n.hubtelFirst(route.DisburseWallet)
		h.second.script(always(unsent), always(unknown))
		h.first.script(inTurn(unknown, rejected), always(notFound))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		is := n.must(book.KindPayout, pay.ID)
		if is.Rail != "mtn" || is.Posts < 2 || is.Status != book.StatusPending || n.balance() != funds-pay.Held() {
			t.Errorf("after %d POSTs to %s it is %s, the wallet has %s", is.Posts, is.Rail, is.Status, n.balance())
		}
		n.sound()
	})
}

// TestRefusedAgainThoughKnownBetween: two refusals of what was sent again prove nothing where
// the provider knew the payment between them, if only once.
func TestRefusedAgainThoughKnownBetween(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(inTurn(unknown, rejected), inTurn(notFound, pending, notFound))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(3 * time.Minute)
		if is := n.must(book.KindPayout, pay.ID); is.Posts != 3 || is.Status != book.StatusPending {
			t.Errorf("after %d POSTs it is %s", is.Posts, is.Status)
		}
		n.sound()
	})
}

// TestWhatIsFoundPaidHasItsCosts: the float agrees with the provider's book, which has what the
// provider took and gave for it.
func TestWhatIsFoundPaidHasItsCosts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(failed))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(time.Second)
		h.first.script(always(pending), always(costly(5, 2)))
		for range 2 {
			if _, err := n.rechecker.recheck(t.Context(), n.must(book.KindPayout, pay.ID)); err != nil {
				t.Fatal(err)
			}
		}
		if gap, err := n.CheckFloat(t.Context(), "mtn", "test", 2-5-pay.Amount); err != nil || gap != 0 {
			t.Errorf("the float is off by %s (%v)", gap, err)
		}
		if is := n.account(ledger.Suspense); is != -pay.Amount {
			t.Errorf("suspense has %s", is)
		}
		n.sound()
	})
}

// TestNothingOfACollectionIsInSuspense: what a reversed one took back was the tenant's or is owed.
func TestNothingOfACollectionIsInSuspense(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), inTurn(success, failed))
		in, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(time.Second)
		if _, err := n.rechecker.recheck(t.Context(), n.must(book.KindCollection, in.ID)); err != nil {
			t.Fatal(err)
		}
		if is := n.must(book.KindCollection, in.ID); is.ContradictedAt.IsZero() || n.balance() != funds {
			t.Fatalf("turned at %v, the wallet has %s", is.ContradictedAt, n.balance())
		}
		for _, tenants := range []bool{true, false} {
			err := n.Decide(t.Context(), in.ID, tenants, "agreed with the provider", "ama")
			wantKind(t, err, problem.Invalid)
		}
		if is := n.account(ledger.Suspense); is != 0 || n.balance() != funds {
			t.Errorf("suspense has %s, the wallet %s", is, n.balance())
		}
		n.sound()
	})
}

// TestNothingIsBookedUnaudited: what an operator does is written down with who did it, or not done.
func TestNothingIsBookedUnaudited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		other := n.newTenant(0)
		full := errors.New("the audit log is full")
		audit := func(*db.Tx) error { return full }
		_, given := n.Transfer(t.Context(), h.tenant.ID, other.ID, 5, "a gift", "ama", audit)
		for what, err := range map[string]error{
			"transfer":  given,
			"fund":      n.Fund(t.Context(), h.tenant.ID, 5, "paid in", "ama", audit),
			"adjust":    n.Adjust(t.Context(), h.tenant.ID, -5, "a mistake", "ama", audit),
			"add float": n.AddFloat(t.Context(), treasury.Float{Provider: "mtn", Mode: tenant.Test}, 5, "paid in", "ama", audit),
		} {
			if !errors.Is(err, full) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n.balance() != funds || n.account(ledger.Float("mtn")) != 0 {
			t.Errorf("the wallet has %s, the float %s", n.balance(), n.account(ledger.Float("mtn")))
		}
		n.sound()
	})
}

// hubtelFirst routes an operation to both rails.
func (n *node) hubtelFirst(op route.Operation) {
	n.fixture.t.Helper()
	n.setRoute(op, "hubtel", "mtn")
}

// setRoute routes an operation to rails, best first.
func (n *node) setRoute(op route.Operation, rails ...string) {
	n.fixture.t.Helper()
	if err := n.db.Write(n.fixture.t.Context(), func(tx *db.Tx) error {
		return n.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: "test", Operation: op, Channel: route.Any, Providers: rails, Actor: "ama"})
	}); err != nil {
		n.fixture.t.Fatal(err)
	}
}
