package payments

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

func noWrites(*db.Tx) error { return nil }

func noRowWrites(*db.Tx, book.Payment) error { return nil }

// approvalFixture requires approval of every payout within a day.
func approvalFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := newFixture(t, d)
	h.approval = func(context.Context, Requester, book.Payment) (*PendingApproval, error) {
		return &PendingApproval{Until: h.clock.Now().Add(24 * time.Hour), Write: noWrites}, nil
	}
	return h
}

// pendingPayout accepts a payout that awaits approval.
func (n *node) pendingPayout(t *testing.T) book.Payment {
	t.Helper()
	pay, replayed, err := n.Payout(t.Context(), n.fixture.caller(), n.fixture.payout())
	if err != nil || replayed || !pay.AwaitsApproval() || pay.Status != book.StatusPending {
		t.Fatalf("%+v, %v", pay, err)
	}
	return pay
}

func TestApproval_pendingIsDebitedNotSent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := approvalFixture(t, d)
		n := h.node("a")
		r := h.payout()
		pay, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil || pay.PublicStatus() != "pending" || n.balance() != funds-1010 {
			t.Fatalf("%+v, %v, the wallet has %s", pay, err, n.balance())
		}
		// A repeated request, a hint, a query and another node change nothing.
		if again, replayed, err := n.Payout(t.Context(), h.caller(), r); !problem.Is(err, problem.Duplicate) && (!replayed || again.ID != pay.ID) {
			t.Errorf("the request again: %+v, %v, %v", again, replayed, err)
		}
		rail, _ := n.routes.Rail("mtn", "test")
		if err := n.Hint(t.Context(), rail, []provider.Hint{{ProviderReference: pay.ProviderReference}}); err != nil {
			t.Error(err)
		}
		if is, err := n.Status(t.Context(), h.tenant.ID, r.Reference); err != nil || is.PublicStatus() != "pending" {
			t.Errorf("its status: %+v, %v", is, err)
		}
		_, err = n.Resolve(t.Context(), pay.ID, true, "statement", "ama")
		wantKind(t, err, problem.Invalid)
		if problem.From(err).Code != "payment_waits" {
			t.Error(err)
		}
		n.pass(time.Hour)
		other := h.node("b")
		other.pass(time.Hour)
		if posts, asks := h.first.counts(); posts+asks != 0 || n.jobsLeft() != 0 || len(h.hooks.of(r.Reference)) != 0 {
			t.Errorf("%d POSTs, %d questions, %d jobs, webhooks %v", posts, asks, n.jobsLeft(), h.hooks.of(r.Reference))
		}
		if is := n.must(book.KindPayout, pay.ID); !is.AwaitsApproval() || n.balance() != funds-1010 {
			t.Errorf("%+v, the wallet has %s", is, n.balance())
		}
		n.books()
		if report, err := n.Check(t.Context()); err != nil || !report.OK() {
			t.Error(report.Problems, err)
		}
	})
}

func TestApprove_sentOnce(t *testing.T) {
	for _, network := range []string{"MTN", "TELECEL"} {
		t.Run(network, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := approvalFixture(t, d)
				n := h.node("a")
				h.first.script(always(pending), always(success))
				h.second.script(always(pending), always(success))
				a := &request{requester: &Requester{}, awaitsSubmission: true}
				a.Payment = newPayment(h.caller(), h.tenant, book.KindPayout)
				a.Payment.Channel, a.Payment.Account, a.Payment.Reference, a.Payment.Amount, a.Payment.Charges = network, "233241234567", h.reference(), 10*money.Cedi, 10
				a.Payment.CallbackURL = h.hooks.URL
				done, err := n.accept(t.Context(), a)
				if err != nil || !done.Payment.AwaitsApproval() {
					t.Fatal(done, err)
				}
				pay := done.Payment
				n.pass(time.Hour)
				var won atomic.Int64
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						if err := n.Approve(context.WithoutCancel(t.Context()), pay.ID, noRowWrites); err == nil {
							won.Add(1)
						}
					})
				}
				all.Wait()
				n.pass(time.Minute)
				posts := h.first.posted(pay.ProviderReference) + h.second.posted(pay.ProviderReference)
				if is := n.must(book.KindPayout, pay.ID); won.Load() != 1 || posts != 1 || is.Status != book.StatusSuccess || is.AwaitsApproval() || n.balance() != funds-1010 {
					t.Errorf("%d approvals, %d POSTs, %+v", won.Load(), posts, is)
				}
				if told := h.hooks.of(pay.Reference); !slices.Equal(told, []string{"success"}) {
					t.Errorf("told %v", told)
				}
				n.books()
			})
		})
	}
}

// The node that approved dies before the job's first run.
func TestApprove_sentOnceAfterCrash(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := approvalFixture(t, d)
		dead := h.stopped("dead")
		pay := dead.pendingPayout(t)
		h.clock.Advance(time.Hour)
		if err := dead.Approve(t.Context(), pay.ID, noRowWrites); err != nil {
			t.Fatal(err)
		}
		if dead.jobsLeft() != 1 {
			t.Fatalf("%d jobs", dead.jobsLeft())
		}
		h.first.script(always(success), always(notFound))
		n := h.node("b")
		n.pass(5 * time.Minute)
		if is := n.must(book.KindPayout, pay.ID); h.first.posted(pay.ProviderReference) != 1 || is.Status != book.StatusSuccess {
			t.Errorf("%d POSTs, %+v", h.first.posted(pay.ProviderReference), is)
		}
		n.books()
	})
}

// The first of several concurrent decisions counts: the payout is sent or refunded, never both.
func TestApproval_concurrentDecisions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := approvalFixture(t, d)
		one, two := h.node("a"), h.node("b")
		h.first.script(always(success), always(success))
		for range 10 {
			had := one.balance()
			pay := one.pendingPayout(t)
			var approved, rejected atomic.Int64
			var all sync.WaitGroup
			for i := range 6 {
				n := []*node{one, two}[i%2]
				all.Go(func() {
					ctx := context.WithoutCancel(t.Context())
					if i < 3 {
						if n.Approve(ctx, pay.ID, noRowWrites) == nil {
							approved.Add(1)
						}
					} else if n.Disapprove(ctx, pay.ID, noWrites) == nil {
						rejected.Add(1)
					}
				})
			}
			all.Wait()
			one.pass(time.Minute)
			two.quiet()
			is, posts := one.must(book.KindPayout, pay.ID), h.first.posted(pay.ProviderReference)
			want, spent := book.StatusSuccess, money.Pesewas(1010)
			if rejected.Load() == 1 {
				want, spent = book.StatusFailed, 0
			}
			if approved.Load()+rejected.Load() != 1 || is.Status != want || posts != int(approved.Load()) || had-one.balance() != spent {
				t.Fatalf("%d approvals, %d rejections, %d POSTs, %s spent, %+v", approved.Load(), rejected.Load(), posts, had-one.balance(), is)
			}
		}
		one.books()
	})
}

func TestDisapprove_refundsAndNotifies(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := approvalFixture(t, d)
		n := h.node("a")
		pay := n.pendingPayout(t)
		n.pass(time.Hour)
		if err := n.Disapprove(t.Context(), pay.ID, func(*db.Tx) error { return errors.New("no") }); err == nil || n.balance() != funds-1010 {
			t.Fatalf("%v, the wallet has %s", err, n.balance())
		}
		if err := n.Disapprove(t.Context(), pay.ID, noWrites); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusFailed || is.Reason != provider.ReasonNotApproved || is.AwaitsApproval() || n.balance() != funds {
			t.Errorf("%+v, the wallet has %s", is, n.balance())
		}
		if told := h.hooks.of(pay.Reference); !slices.Equal(told, []string{"failed"}) {
			t.Errorf("told %v", told)
		}
		for name, err := range map[string]error{"approved": n.Approve(t.Context(), pay.ID, noRowWrites), "rejected": n.Disapprove(t.Context(), pay.ID, noWrites)} {
			if problem.From(err).Code != CodeNotWaiting {
				t.Errorf("%s again: %v", name, err)
			}
		}
		if posts, _ := h.first.counts(); posts != 0 || n.balance() != funds {
			t.Errorf("%d POSTs, the wallet has %s", posts, n.balance())
		}
		n.books()
	})
}

// The payout was approved and sent before the restore. It is pending again, and must not be refunded.
func TestRecovery_disapproveAdoptsSent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := approvalFixture(t, d)
		h.recovers = true
		n := h.node("a")
		pay, never := n.pendingPayout(t), n.pendingPayout(t)
		n.startRecovery(t, false)
		reject := func(when string, pay book.Payment, want problem.Kind) {
			t.Helper()
			if err := n.Disapprove(t.Context(), pay.ID, noWrites); !problem.Is(err, want) {
				t.Errorf("%s: %v", when, err)
			}
			if is := n.must(book.KindPayout, pay.ID); !is.AwaitsApproval() {
				t.Errorf("%s: %+v", when, is)
			}
		}
		reject("closed", pay, problem.Unavailable)
		if err := n.lost.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(unknown))
		n.clock.Advance(10 * time.Minute)
		reject("with a silent rail", pay, problem.Unavailable)
		there := pending
		there.UpstreamID = "up-held"
		h.second.hasReference(pay.ProviderReference, 10*money.Cedi, "233241234567", there)
		if err := n.Disapprove(t.Context(), pay.ID, noWrites); err != nil {
			t.Fatal(err)
		}
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusPending || is.UpstreamID != "up-held" {
			t.Errorf("it is %s, the provider's id is %q", is.Status, is.UpstreamID)
		}
		h.second.hasReference(pay.ProviderReference, 10*money.Cedi, "233241234567", success)
		n.pass(time.Minute)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || is.Rail != "hubtel" || h.first.posted(pay.ProviderReference)+h.second.posted(pay.ProviderReference) != 0 {
			t.Errorf("%+v", is)
		}
		if err := n.Disapprove(t.Context(), never.ID, noWrites); err != nil {
			t.Fatal(err)
		}
		if is := n.must(book.KindPayout, never.ID); is.Status != book.StatusFailed || n.balance() != funds-1010 {
			t.Errorf("%+v, the wallet has %s", is, n.balance())
		}
		n.books()
	})
}

// The payout was approved before the restore, and is approved again.
func TestRecovery_approveAdoptsSent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := approvalFixture(t, d)
		h.recovers = true
		n := h.node("a")
		pay := n.pendingPayout(t)
		n.startRecovery(t, true)
		n.clock.Advance(10 * time.Minute)
		h.first.script(always(pending), always(notFound))
		h.second.hasReference(pay.ProviderReference, 10*money.Cedi, "233241234567", success)
		if err := n.Approve(t.Context(), pay.ID, noRowWrites); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || is.Rail != "hubtel" || h.first.posted(pay.ProviderReference)+h.second.posted(pay.ProviderReference) != 0 {
			t.Errorf("%+v", is)
		}
		n.books()
	})
}
