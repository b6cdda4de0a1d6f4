package payments

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// crash leaves the row, hold and job of an accepted payout without anything in memory, as a dead node does.
func (n *node) crash(t *testing.T, network string) book.Payment {
	t.Helper()
	_, pay := n.accepted(t, network, false)
	return pay
}

// accepted accepts a payout without running its job. waits is set if the request waits for the answer.
func (n *node) accepted(t *testing.T, network string, waits bool) (*request, book.Payment) {
	t.Helper()
	h := n.fixture
	pay := newPayment(h.caller(), h.tenant, book.KindPayout)
	pay.Channel, pay.Account, pay.Reference, pay.Amount, pay.Charges = network, "233241234567", h.reference(), 10*money.Cedi, 10
	a := &request{Acceptance: book.Acceptance{Payment: pay}, awaitsSubmission: waits}
	done, err := n.accept(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return a, done.Payment
}

// Another node continues the payouts of a dead node and pays at most once. The node dies at each point in turn.
func TestTakeover_paysAtMostOnce(t *testing.T) {
	tests := []struct {
		name    string
		network string
		marked  bool // the dead node had flagged the submission
		paid    bool // the provider has the payment
		posts   int
		status  book.Status
	}{
		{"may repeat, was not sent", "MTN", false, false, 1, book.StatusSuccess},
		{"may repeat, was sent", "MTN", false, true, 0, book.StatusSuccess},
		{"may not repeat, not marked", "TELECEL", false, false, 1, book.StatusSuccess},
		{"may not repeat, marked, was sent", "TELECEL", true, true, 0, book.StatusSuccess},
		{"may not repeat, marked, not known", "TELECEL", true, false, 0, book.StatusPending},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				dead := h.stopped("dead")
				pay := dead.crash(t, tt.network)
				if tt.marked {
					row := pay
					row.SendingAt = dead.clock.Now()
					if done, err := dead.book.Settle(t.Context(), book.Settlement{Payment: pay, Event: book.EventSending, Change: &book.AttemptChange{Row: row, WasAttempt: 1, WasSubmissions: 1}}); err != nil || !done.Changed {
						t.Fatalf("marked %v, %v", done.Changed, err)
					}
				}
				rail := h.first
				if tt.network != "MTN" {
					rail = h.second
				}
				rail.gross[pay.ProviderReference], rail.party[pay.ProviderReference] = pay.Amount, pay.Account
				sent := tt.paid
				rail.script(func(int, string) provider.Outcome {
					rail.mu.Lock()
					defer rail.mu.Unlock()
					sent = true
					return pending
				}, func(int, string) provider.Outcome {
					rail.mu.Lock()
					defer rail.mu.Unlock()
					if sent {
						return success
					}
					return notFound
				})
				n := h.node("heir")
				n.pass(10 * time.Second)
				if got := n.must(book.KindPayout, pay.ID); got.Status != tt.status {
					t.Errorf("the payout is %s, want %s", got.Status, tt.status)
				}
				if posts, _ := rail.counts(); posts != tt.posts {
					t.Errorf("%d POSTs, want %d", posts, tt.posts)
				}
				n.books()
			})
		})
	}
}

// A paused rail gets no payout that a dead node accepted and never sent.
func TestTakeover_pausedRail(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pause  time.Duration
		posts  int
		status book.Status
	}{
		{"until it ends", 5 * time.Minute, 1, book.StatusSuccess},
		{"until it has waited too long", unsentTime + time.Minute, 0, book.StatusFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.second.script(always(pending), always(success))
				pay := h.stopped("dead").crash(t, "TELECEL")
				n := h.stopped("heir")
				n.pauseRail("hubtel")
				if err := n.queue.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				n.pass(tt.pause)
				if posts, asks := h.second.counts(); posts != 0 || asks != 0 {
					t.Errorf("%d POSTs and %d questions while the rail was paused", posts, asks)
				}
				n.resumeRail("hubtel")
				n.pass(2 * time.Minute)
				if posts, _ := h.second.counts(); posts != tt.posts {
					t.Errorf("%d POSTs, want %d", posts, tt.posts)
				}
				if got := n.must(book.KindPayout, pay.ID); got.Status != tt.status {
					t.Errorf("the payout is %s, want %s", got.Status, tt.status)
				}
				n.books()
			})
		})
	}
}

// A node is blocked in its submission. Another node takes over, submits again, and the payment is paid. Then the
// first node gets a refusal, which changes nothing.
func TestTakeover_pausedNodeResumes(t *testing.T) {
	for _, word := range []provider.Outcome{rejected, unsent, success, pending, unknown} {
		t.Run(word.Class.String()+" "+word.State.String(), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				paused, heir := h.node("paused"), h.stopped("heir")
				entered, leave := make(chan struct{}), make(chan struct{})
				h.first.script(nil, sequence(notFound, notFound, pending))
				h.first.slow = func(context.Context) provider.Outcome {
					close(entered)
					<-leave
					return word
				}
				answer := make(chan error, 1)
				r := h.payout()
				go func() {
					_, _, err := paused.Payout(t.Context(), h.caller(), r)
					answer <- err
				}()
				<-entered
				h.first.mu.Lock()
				h.first.slow, h.first.onSubmit = nil, always(pending)
				h.first.mu.Unlock()
				h.expireLease("paused")
				if err := heir.queue.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				heir.quiet()
				if posts, _ := h.first.counts(); posts != 2 {
					t.Fatalf("%d POSTs after the takeover, want 2", posts)
				}
				before := heir.balance()
				close(leave)
				if err := <-answer; err != nil {
					t.Errorf("the request was answered %v", err)
				}
				paused.quiet()
				rows, err := heir.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Reference: r.Reference})
				if err != nil || len(rows.Rows) != 1 {
					t.Fatalf("%d rows, %v", len(rows.Rows), err)
				}
				want := book.StatusPending
				if word.State == provider.Success {
					want = book.StatusSuccess
				}
				if got := rows.Rows[0]; got.Status != want || heir.balance() != before {
					t.Errorf("the payout is %s, the wallet went from %s to %s", got.Status, before, heir.balance())
				}
				h.first.script(always(pending), always(success))
				heir.pass(time.Minute)
				paused.quiet() // if it settled the payment, it also delivered the webhook
				if got := heir.must(book.KindPayout, rows.Rows[0].ID); got.Status != book.StatusSuccess {
					t.Errorf("in the end the payout is %s", got.Status)
				}
				if told := h.hooks.of(r.Reference); !slices.Equal(told, []string{"success"}) {
					t.Errorf("the customer was told %v", told)
				}
				heir.books()
			})
		})
	}
}

// A node queries its refused submission and is blocked. Another node takes over and submits again. The not-found
// answer concerns only the first submission, so nothing is refunded.
func TestTakeover_lateConfirmationOfRefusal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		paused, heir := h.node("paused"), h.stopped("heir")
		entered, leave := make(chan struct{}), make(chan struct{})
		h.first.script(sequence(rejected, pending), func(n int, _ string) provider.Outcome {
			switch {
			case n == 1:
				close(entered)
				<-leave
				return notFound
			case n <= 3:
				return notFound
			}
			return pending
		})
		r, answer := h.payout(), make(chan error, 1)
		go func() {
			_, _, err := paused.Payout(t.Context(), h.caller(), r)
			answer <- err
		}()
		<-entered
		h.expireLease("paused")
		if err := heir.queue.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		heir.quiet()
		if posts, _ := h.first.counts(); posts != 2 {
			t.Fatalf("%d POSTs after the takeover, want 2", posts)
		}
		before := heir.balance()
		close(leave)
		if err := <-answer; err != nil {
			t.Errorf("the request was answered %v", err)
		}
		paused.quiet()
		rows, err := heir.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Reference: r.Reference})
		if err != nil || len(rows.Rows) != 1 || rows.Rows[0].Status != book.StatusPending || heir.balance() != before {
			t.Fatalf("%+v, %v; the wallet went from %s to %s", rows.Rows, err, before, heir.balance())
		}
		h.first.script(always(pending), always(success))
		heir.pass(time.Minute)
		paused.quiet()
		if got := heir.must(book.KindPayout, rows.Rows[0].ID); got.Status != book.StatusSuccess {
			t.Errorf("in the end the payout is %s", got.Status)
		}
		heir.books()
	})
}

// expireLease ends a node's lease, as the passing of time would.
func (h *fixture) expireLease(node string) {
	h.t.Helper()
	if err := h.db.Write(h.t.Context(), func(tx *db.Tx) error {
		n, err := tx.Exec("UPDATE job_leases SET expires_at = 1 WHERE node = $1 AND expires_at > 0", node)
		if n != 1 {
			h.t.Errorf("%d leases of %s", n, node)
		}
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}
