package payments

import (
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// For each answer of a provider, the test compares the number of possible submissions, the final row and the wallet.
func TestPayout_outcomes(t *testing.T) {
	const amount, fee = 10 * money.Cedi, 10 * money.Cedi / 100
	tests := []struct {
		name      string
		network   string // MTN uses the rail that refuses duplicates; TELECEL does not
		post, ask func(int, string) provider.Outcome
		after     time.Duration
		refused   bool
		status    book.Status
		reason    string
		posts     int
		spent     money.Pesewas // taken from the wallet
		escalated bool
	}{
		{name: "success when asked", network: "MTN", post: always(pending), ask: always(success), after: time.Second,
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "failure when asked", network: "MTN", post: always(pending), ask: sequence(pending, failed), after: 3 * time.Second,
			status: book.StatusFailed, reason: provider.ReasonFunds, posts: 1},
		{name: "refused outright", network: "MTN", post: always(rejected), ask: always(notFound),
			refused: true, status: book.StatusFailed, reason: provider.ReasonPayeeNotFound, posts: 1},
		{name: "refused outright without duplicates", network: "TELECEL", post: always(rejected), ask: always(notFound),
			refused: true, status: book.StatusFailed, reason: provider.ReasonPayeeNotFound, posts: 1},
		{name: "refused outright, and has failed", network: "TELECEL", post: always(rejected), ask: always(failed),
			refused: true, status: book.StatusFailed, reason: provider.ReasonFunds, posts: 1},
		{name: "refused outright, and was paid", network: "TELECEL", post: always(rejected), ask: always(success),
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "refused outright, and is on its way", network: "MTN", post: always(rejected), ask: sequence(pending, notFound, success), after: 4 * time.Second,
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "refused outright, nobody answers: holds", network: "TELECEL", post: always(rejected), ask: always(unknown), after: 30 * time.Second,
			status: book.StatusPending, posts: 1, spent: amount + fee},
		{name: "refused outright, nobody answers for a minute: operators are called", network: "MTN", post: always(rejected), ask: always(unknown), after: 3 * time.Minute,
			status: book.StatusPending, posts: 1, spent: amount + fee, escalated: true},
		{name: "refused outright, answered after a silence", network: "MTN", post: always(rejected), ask: sequence(unknown, unknown, notFound), after: 4 * time.Second,
			status: book.StatusFailed, reason: provider.ReasonPayeeNotFound, posts: 1},
		{name: "a gateway refuses, nothing was done", network: "MTN", post: always(bare), ask: always(notFound), after: 4 * time.Minute,
			status: book.StatusFailed, reason: provider.ReasonInvalidRequest, posts: -1},
		{name: "a gateway refuses, nothing was done: holds at first", network: "MTN", post: always(bare), ask: always(notFound), after: 30 * time.Second,
			status: book.StatusPending, posts: -1, spent: amount + fee},
		{name: "a gateway refuses, then it goes through", network: "MTN", post: sequence(bare, pending), ask: sequence(notFound, success), after: 3 * time.Second,
			status: book.StatusSuccess, posts: 2, spent: amount + fee},
		{name: "a gateway refuses, and it was paid", network: "TELECEL", post: always(bare), ask: always(success),
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "a gateway refuses, not known without duplicates: an operator", network: "TELECEL", post: always(bare), ask: always(notFound), after: 24 * time.Hour,
			status: book.StatusPending, posts: 1, spent: amount + fee, escalated: true},
		{name: "pending for ever", network: "MTN", post: always(pending), ask: always(pending), after: 48 * time.Hour,
			status: book.StatusPending, posts: 1, spent: amount + fee, escalated: true},

		{name: "accepted, not readable yet, paid", network: "MTN", post: always(pending), ask: sequence(notFound, notFound, success), after: 7 * time.Second,
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "accepted, not known for 50 seconds: asked again", network: "MTN", post: always(pending), ask: always(notFound), after: 50 * time.Second,
			status: book.StatusPending, posts: 1, spent: amount + fee},
		{name: "accepted, not known for a minute: sent again", network: "MTN", post: always(pending), ask: sequence(notFound, notFound, notFound, notFound, notFound, notFound, pending), after: time.Minute,
			status: book.StatusPending, posts: 2, spent: amount + fee},

		{name: "answer lost, was paid", network: "MTN", post: always(unknown), ask: always(success), after: time.Second,
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "answer lost, not found, sent again, paid", network: "MTN", post: sequence(unknown, pending), ask: sequence(notFound, success), after: 3 * time.Second,
			status: book.StatusSuccess, posts: 2, spent: amount + fee},
		{name: "answer lost, sent again, is a duplicate, paid", network: "MTN", post: sequence(unknown, repeated), ask: sequence(notFound, success), after: 3 * time.Second,
			status: book.StatusSuccess, posts: 2, spent: amount + fee},
		{name: "answer lost, refused when sent again: holds", network: "MTN", post: sequence(unknown, rejected), ask: always(notFound), after: 50 * time.Second,
			status: book.StatusPending, spent: amount + fee, posts: 2},
		{name: "answer lost, refused again and again without being known", network: "MTN", post: sequence(unknown, rejected), ask: always(notFound), after: 4 * time.Minute,
			status: book.StatusFailed, reason: provider.ReasonPayeeNotFound, posts: 2},
		{name: "answer lost, refused twice, asked in vain between: holds", network: "MTN", post: sequence(unknown, rejected),
			ask:   sequence(notFound, unknown, unknown, unknown, unknown, unknown, notFound, unknown),
			after: 3 * time.Minute, status: book.StatusPending, posts: 2, spent: amount + fee, escalated: true},
		{name: "answer lost, refused when sent again, was paid", network: "MTN", post: sequence(unknown, rejected), ask: sequence(notFound, success), after: 3 * time.Second,
			status: book.StatusSuccess, posts: 2, spent: amount + fee},
		{name: "answer lost, not found without duplicates: holds for ever", network: "TELECEL", post: always(unknown), ask: always(notFound), after: 72 * time.Hour,
			status: book.StatusPending, posts: 1, spent: amount + fee, escalated: true},
		{name: "answer lost without duplicates, was paid", network: "TELECEL", post: always(unknown), ask: sequence(notFound, unknown, success), after: 7 * time.Second,
			status: book.StatusSuccess, posts: 1, spent: amount + fee},
		{name: "answer lost without duplicates, had failed", network: "TELECEL", post: always(unknown), ask: sequence(notFound, failed), after: 3 * time.Second,
			status: book.StatusFailed, reason: provider.ReasonFunds, posts: 1},

		{name: "turned away, then accepted", network: "TELECEL", post: sequence(barred, barred, pending), ask: always(success), after: 5 * time.Second,
			status: book.StatusSuccess, posts: 3, spent: amount + fee},
		{name: "turned away, then refused: either may have arrived", network: "TELECEL", post: sequence(barred, rejected), ask: always(notFound), after: 4 * time.Minute,
			status: book.StatusPending, posts: 2, spent: amount + fee, escalated: true},
		{name: "turned away, then refused, not known for long", network: "TELECEL", post: sequence(barred, rejected), ask: always(notFound), after: 7 * time.Minute,
			status: book.StatusFailed, reason: provider.ReasonPayeeNotFound, posts: 2},
		{name: "turned away for 29 minutes: tried on", network: "MTN", post: always(barred), ask: always(unknown), after: 29 * time.Minute,
			status: book.StatusPending, posts: -1, spent: amount + fee},
		{name: "turned away for half an hour, nobody answers: holds", network: "MTN", post: always(barred), ask: always(unknown), after: 5 * time.Hour,
			status: book.StatusPending, posts: -1, spent: amount + fee, escalated: true},
		{name: "turned away for half an hour, not known", network: "MTN", post: always(barred), ask: always(notFound), after: 33 * time.Minute,
			status: book.StatusFailed, reason: provider.ReasonUnavailable, posts: -1},
		{name: "turned away for half an hour, not known, without duplicates", network: "TELECEL", post: always(barred), ask: always(notFound), after: 37 * time.Minute,
			status: book.StatusFailed, reason: provider.ReasonUnavailable, posts: -1},
		{name: "turned away for half an hour, and it was paid", network: "TELECEL", post: always(barred), ask: always(success), after: 31 * time.Minute,
			status: book.StatusSuccess, posts: -1, spent: amount + fee},
		{name: "turned away, then lost: holds", network: "TELECEL", post: sequence(barred, unknown), ask: always(unknown), after: 2 * time.Hour,
			status: book.StatusPending, posts: 2, spent: amount + fee, escalated: true},
		{name: "lost, then turned away for hours: holds", network: "MTN", post: sequence(unknown, barred), ask: always(notFound), after: 2 * time.Hour,
			status: book.StatusPending, posts: -1, spent: amount + fee, escalated: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.first.script(tt.post, tt.ask)
				h.second.script(tt.post, tt.ask)
				r := h.payout()
				rail := h.first
				if tt.network != "MTN" {
					r.Network, r.MSISDN = "TELECEL", "233201234567"
					rail = h.second
				}
				pay, _, err := n.Payout(t.Context(), h.caller(), r)
				if tt.refused {
					e := wantKind(t, err, problem.Refused)
					pay = e.Data.(book.Payment)
				} else if err != nil {
					t.Fatal(err)
				}
				n.pass(tt.after)
				got := n.must(book.KindPayout, pay.ID)
				if got.Status != tt.status || got.Reason != tt.reason || got.Refused != tt.refused {
					t.Errorf("the row is %s (%q, refused %v), want %s (%q, refused %v)", got.Status, got.Reason, got.Refused, tt.status, tt.reason, tt.refused)
				}
				if posts, _ := rail.counts(); tt.posts >= 0 && posts != tt.posts {
					t.Errorf("%d POSTs, want %d", posts, tt.posts)
				}
				if spent := funds - n.balance(); spent != tt.spent {
					t.Errorf("the wallet is down by %s, want %s", spent, tt.spent)
				}
				if escalated := !got.EscalatedAt.IsZero(); escalated != tt.escalated {
					t.Errorf("escalated is %v, want %v", escalated, tt.escalated)
				}
				if open := n.jobsLeft(); open != map[bool]int{true: 1}[got.Status.Open()] {
					t.Errorf("%d jobs for a %s payment", open, got.Status)
				}
				if got.Status == book.StatusSuccess {
					if f := n.account(ledger.FloatAt(got.Rail, "disbursement")); f != amount {
						t.Errorf("float %s, want %s", f, money.Pesewas(amount))
					}
					if f := n.account(ledger.Fees); f != fee {
						t.Errorf("fees %s, want %s", f, money.Pesewas(fee))
					}
				}
				told := map[book.Status][]string{book.StatusSuccess: {"success"}, book.StatusFailed: {"failed"}}[got.Status]
				if tt.refused {
					told = nil // the answer reported it
				}
				if tt.refused {
					told = nil // the answer reported it
				}
				if is := h.hooks.of(got.Reference); !slices.Equal(is, told) {
					t.Errorf("the customer was told %v, want %v", is, told)
				}
				n.books()
			})
		})
	}
}
