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

// A node that was paused may have an old copy of a row, because another node has continued. Writes are therefore
// guarded.

// A node is paused before it flags an unrepeatable submission. Another node takes over, flags the submission and
// sends it. The first node then does not send it.
func TestAttemptChange_takenOverBefore(t *testing.T) {
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

// A flag and the answer to its COMMIT are both lost. The row then differs from the expected one only by the flag.
func TestAttemptChange_lostCommitAnswer(t *testing.T) {
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

// A collection's refusal is written without a read of its row. Meanwhile another node has prompted the payer again.
// The payer may pay, so the refusal does not count.
func TestRefusal_ofItsSubmissions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, heir := h.stopped("a"), h.stopped("b")
		in, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		row := in
		row.Submissions++
		done, err := heir.book.Settle(t.Context(), book.Settlement{Payment: in, Event: book.EventRepeated, Known: true, Change: &book.AttemptChange{Row: row, WasAttempt: 1, WasSubmissions: 1}})
		if err != nil || !done.Changed {
			t.Fatalf("sent again: %v, %v", done.Changed, err)
		}
		for _, tt := range []struct {
			of   book.Payment
			want book.Status
		}{{in, book.StatusPending}, {row, book.StatusInvalid}} {
			_, err := n.book.Settle(t.Context(), book.Settlement{Payment: tt.of, Event: book.EventFailed, Known: true, Reason: rejected.Reason, Outcome: rejected, Submissions: tt.of.Submissions})
			if is := n.must(book.KindCollection, in.ID).Status; err != nil || is != tt.want {
				t.Errorf("refused of %d POSTs it is %s, want %s (%v)", tt.of.Submissions, is, tt.want, err)
			}
		}
		n.sound()
	})
}

// A node is paused while it gives up a failing submission. Another node takes over and sends the payment, so it is
// not refunded.
func TestDeadline_ofItsSubmissions(t *testing.T) {
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
			(&run{f: n.follower, a: a.attempt, row: pay, rail: rail}).scheduleRetry(t.Context(), 0)
			posts, _ := tt.rail.counts()
			if is := n.must(book.KindPayout, pay.ID); posts != 1 || is.Status != book.StatusPending || n.balance() != left {
				t.Errorf("after %d POSTs to %s it is %s, the wallet has %s", posts, tt.name, is.Status, n.balance())
			}
		}
		n.sound()
	})
}

// The clock of the operator's node is ahead by the allowed skew. The submission may still be running, so the payment
// is not resolved.
func TestResolve_clockAhead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		here := h.clock
		h.clock = clock.NewManual(morning)
		other := h.stopped("b")
		h.clock = here
		pay, leave := n.sentAgain(t)
		other.clock.Advance(here.Now().Add(leaveTime + submitTime - time.Second + clock.Skew).Sub(morning))
		other.refusesDecision(t, pay.ID)
		leave()
		n.quiet()
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || n.balance() != funds-pay.Held() {
			t.Errorf("it is %s, the wallet has %s", is.Status, n.balance())
		}
		n.sound()
	})
}

// A bundle that its provider cannot receive is not rerouted, because the offer is that provider's.
func TestReroute_neverBundle(t *testing.T) {
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

// After a reroute, the submission to the second provider has no answer. It counts as possibly paid, although the
// submission to the first was not sent.
func TestRefusal_afterReroute(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		n.hubtelFirst(route.DisburseWallet)
		h.second.script(always(unsent), always(unknown))
		h.first.script(sequence(unknown, rejected), always(notFound))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		is := n.must(book.KindPayout, pay.ID)
		if is.Rail != "mtn" || is.Submissions < 2 || is.Status != book.StatusPending || n.balance() != funds-pay.Held() {
			t.Errorf("after %d POSTs to %s it is %s, the wallet has %s", is.Submissions, is.Rail, is.Status, n.balance())
		}
		n.sound()
	})
}

// Two refusals of repeated submissions prove nothing if the provider knew the payment between them.
func TestRefusal_repeatedButKnownBetween(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(sequence(unknown, rejected), sequence(notFound, pending, notFound))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(3 * time.Minute)
		if is := n.must(book.KindPayout, pay.ID); is.Submissions != 3 || is.Status != book.StatusPending {
			t.Errorf("after %d POSTs it is %s", is.Submissions, is.Status)
		}
		n.sound()
	})
}

// A payment found paid posts the provider's costs, so that the float agrees with the provider's book.
func TestFoundPaid_postsCosts(t *testing.T) {
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

// A reversed collection takes money from the wallet or leaves a debt, but leaves nothing in suspense.
func TestReversedCollection_notInSuspense(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), sequence(success, failed))
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

// An operator's action is undone if its audit row cannot be written.
func TestOperator_auditFailureUndoes(t *testing.T) {
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

// setRoute routes an operation to rails, the preferred rail first.
func (n *node) setRoute(op route.Operation, rails ...string) {
	n.fixture.t.Helper()
	if err := n.db.Write(n.fixture.t.Context(), func(tx *db.Tx) error {
		return n.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: "test", Operation: op, Channel: route.Any, Providers: rails, Actor: "ama"})
	}); err != nil {
		n.fixture.t.Fatal(err)
	}
}
