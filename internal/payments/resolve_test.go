package payments

import (
	"context"
	"sync"
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
	"github.com/makola/makola/internal/test/dbtest"
)

// blockSubmission blocks the next submission at a rail until leave is called. Then the rail answers it.
func (s *scripted) blockSubmission(t *testing.T, answer provider.Outcome) (entered <-chan struct{}, leave func()) {
	in, out := make(chan struct{}), make(chan struct{})
	leave = sync.OnceFunc(func() { close(out) })
	t.Cleanup(leave)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = func(context.Context) provider.Outcome {
		s.mu.Lock()
		s.slow = nil
		s.mu.Unlock()
		close(in)
		<-out
		return answer
	}
	return in, leave
}

// sentAgain returns a payout that is being submitted again. It succeeds after leave is called.
func (n *node) sentAgain(t *testing.T) (pay book.Payment, leave func()) {
	t.Helper()
	h := n.fixture
	h.first.script(always(unknown), always(notFound))
	pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
	if err != nil {
		t.Fatal(err)
	}
	n.pass(8 * time.Minute)
	entered, leave := h.first.blockSubmission(t, success)
	n.clock.Advance(2 * time.Minute) // the query before the second submission
	<-entered
	return pay, leave
}

// refusesDecision verifies that an operator cannot resolve the payment now.
func (n *node) refusesDecision(t *testing.T, id string) {
	t.Helper()
	for _, paid := range []bool{false, true} {
		_, err := n.Resolve(t.Context(), id, paid, "by the statement", "ama", func(*db.Tx) error {
			t.Error("it was audited")
			return nil
		})
		if e := wantKind(t, err, problem.InProgress); e.RetryAfter <= 0 || e.RetryAfter > onItsWay+time.Second {
			t.Errorf("to be asked again in %v", e.RetryAfter)
		}
	}
}

// If an operator refunds a payment, no submission may still pay it: neither one that runs on another node nor a later
// one.
func TestResolve_submissionRunning(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			h := newFixture(t, d)
			n, other := h.node("a"), h.stopped("b")
			pay, leave := n.sentAgain(t)
			other.refusesDecision(t, pay.ID)
			leave()
			n.quiet()
			if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || n.balance() != funds-pay.Amount-pay.Charges {
				t.Errorf("it is %s, the wallet has %s", is.Status, n.balance())
			}
			n.sound()
		})
	})
	t.Run("for the first time, late", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			h := newFixture(t, d)
			n, other := h.stopped("a"), h.stopped("b")
			late := n.late(t)
			entered, leave := h.first.blockSubmission(t, success)
			done := make(chan struct{})
			go func() {
				defer close(done)
				n.follower.runJob(t.Context(), late)
			}()
			<-entered
			other.refusesDecision(t, late.ID)
			leave()
			<-done
			if is := n.must(book.KindPayout, late.ID); is.Status != book.StatusSuccess {
				t.Errorf("it is %s", is.Status)
			}
			n.sound()
		})
	})
	t.Run("for the first time, after the word", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			h := newFixture(t, d)
			n, other := h.stopped("a"), h.stopped("b")
			late := n.late(t)
			n.pauseRail("mtn")
			for range 2 { // its follower pauses for two minutes
				n.follower.runJob(t.Context(), late)
				n.clock.Advance(onItsWay)
			}
			n.follower.runJob(t.Context(), late)
			n.resumeRail("mtn")
			if _, err := other.Resolve(t.Context(), late.ID, false, "it was never sent", "ama"); err != nil {
				t.Fatal(err)
			}
			n.follower.runJob(t.Context(), late)
			if posts, _ := h.first.counts(); posts != 0 || n.balance() != funds {
				t.Errorf("%d POSTs, the wallet has %s", posts, n.balance())
			}
			n.sound()
		})
	})
}

// A follower flags a payment after it saw its submission end. The flag does not depend on clocks. It does not cover a
// later submission, even by a node of the previous release.
func TestResolve_laterSubmission(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	p := &Payments{clock: clock.NewManual(now)}
	ahead, later := now.Add(time.Hour), now.Add(2*time.Hour)
	for _, tt := range []struct {
		sent, waited time.Time
		taken        bool
	}{{time.Time{}, time.Time{}, false}, {time.Time{}, now, true}, {ahead, time.Time{}, false}, {ahead, now, false}, {ahead, ahead, true}, {later, ahead, false}} {
		err := p.resolvable(book.Payment{Status: book.StatusPending, CreatedAt: now, SendingAt: tt.sent, WaitedFor: tt.waited}, success)
		if (err == nil) != tt.taken {
			t.Errorf("sent at %v, waited for %v: %v", tt.sent, tt.waited, err)
		}
	}
}

// Setting the clock forward during a submission does not let an operator resolve the payment.
func TestResolve_clockSetForward(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, other := h.node("a"), h.stopped("b")
		pay, leave := n.sentAgain(t)
		n.clock.Set(time.Hour)
		other.refusesDecision(t, pay.ID)
		leave()
		n.hint(pay)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess {
			t.Errorf("it is %s", is.Status)
		}
		n.sound()
	})
}

// A node that takes over flags the payment two minutes later. It needs no configuration of the provider, and does not
// depend on its clock.
func TestResolve_afterRestart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.second.script(always(unknown), always(unknown))
		n := h.node("a")
		r := h.payout()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		pay, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.queue.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.clock.Set(-24 * time.Hour)
		h.rails = []provider.Rail{{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), Collector: h.first, Disburser: h.first}}
		heir := h.node("b")
		heir.pass(onItsWay - time.Second)
		heir.refusesDecision(t, pay.ID)
		heir.pass(railTime + time.Second)
		if _, err := heir.Resolve(t.Context(), pay.ID, false, "not in the statement", "ama"); err != nil {
			t.Errorf("two minutes after the restart: %v", err)
		}
		heir.sound()
	})
}

// late accepts a payout whose job runs only after minutes in the queue.
func (n *node) late(t *testing.T) jobs.Job {
	t.Helper()
	_, pay := n.accepted(t, "MTN", false)
	n.clock.Advance(3 * time.Minute)
	return jobs.Job{ID: pay.ID, Subject: pay.ID}
}

// A node that was paused before its submission does not submit when it resumes.
func TestSubmission_lateAfterFlag(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.stopped("a")
		rail, _ := n.routes.Rail("mtn", "test")
		pay := n.must(book.KindPayout, n.late(t).ID)
		for _, tt := range []struct {
			marked time.Duration // time before now
			class  provider.Class
			posts  int
		}{{leaveTime - time.Second, provider.Accepted, 1}, {leaveTime, provider.NotSent, 1}} {
			o := n.rails.submit(t.Context(), rail, pay, momentOf(n.clock).Add(-tt.marked))
			if posts, _ := h.first.counts(); o.Class != tt.class || posts != tt.posts {
				t.Errorf("marked %v ago: %v after %d POSTs", tt.marked, o.Class, posts)
			}
		}
	})
}

// A node is frozen during its submission. It continues after an operator's refund and reports that the payment was
// paid.
func TestResolve_contradictedByFrozenNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, other := h.node("a"), h.stopped("b")
		pay, leave := n.sentAgain(t)
		h.first.script(always(unknown), always(unknown))
		job := openJob(pay, h.clock.Now(), jobs.Job{Adopted: true})
		other.follower.runJob(t.Context(), job) // the other node takes over
		n.clock.Advance(onItsWay)
		other.follower.runJob(t.Context(), job)
		if _, err := other.Resolve(t.Context(), pay.ID, false, "by the statement", "ama"); err != nil {
			t.Fatal(err)
		}
		h.first.script(always(unknown), always(success))
		leave()
		n.quiet()
		n.pass(hintTime)
		is := n.must(book.KindPayout, pay.ID)
		if is.Status != book.StatusFailed || is.ContradictedAt.IsZero() || n.account(ledger.Suspense) != -pay.Amount {
			t.Errorf("it is %s, turned at %v, suspense has %s", is.Status, is.ContradictedAt, n.account(ledger.Suspense))
		}
		n.sound()
	})
}
