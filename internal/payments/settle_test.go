package payments

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// The table has each answer of a payer and its result.
func TestCollection_outcomes(t *testing.T) {
	declined := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonDeclined}
	nobody := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonPayerNotFound}
	tests := []struct {
		name      string
		bearer    tenant.FeeBearer
		post, ask func(int, string) provider.Outcome
		status    book.Status
		credited  money.Pesewas
		asked     money.Pesewas // amount on the payer's prompt
		told      string
	}{
		{"paid, the merchant bears the fee", tenant.Merchant, always(pending), always(success), book.StatusSuccess, 990, 1000, "success"},
		{"paid, the payer bears the fee", tenant.Customer, always(pending), always(success), book.StatusSuccess, 1000, 1010, "success"},
		{"declined", tenant.Merchant, always(pending), always(declined), book.StatusDeclined, 0, 1000, "failed"},
		{"no such payer", tenant.Merchant, always(pending), always(nobody), book.StatusInvalid, 0, 1000, "failed"},
		{"refused by the provider", tenant.Merchant, always(rejected), always(notFound), book.StatusInvalid, 0, 1000, "failed"},
		{"failed", tenant.Merchant, always(pending), always(failed), book.StatusFailed, 0, 1000, "failed"},
		{"lost, found paid", tenant.Merchant, always(unknown), sequence(unknown, success), book.StatusSuccess, 990, 1000, "success"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				if err := d.Write(t.Context(), func(tx *db.Tx) error {
					_, _, err := n.tenants.Set(tx, h.tenant.ID, tenant.Change{FeeBearer: &tt.bearer})
					return err
				}); err != nil {
					t.Fatal(err)
				}
				h.first.script(tt.post, tt.ask)
				r := h.collect()
				pay, _, err := n.Collect(t.Context(), h.caller(), r)
				if err != nil || pay.Status != book.StatusPending {
					t.Fatalf("the answer is %s, %v; a provider's no comes later", pay.Status, err)
				}
				n.pass(10 * time.Second)
				got := n.must(book.KindCollection, pay.ID)
				if got.Status != tt.status {
					t.Errorf("the row is %s, want %s", got.Status, tt.status)
				}
				if credited := n.balance() - funds; credited != tt.credited {
					t.Errorf("the wallet got %s, want %s", credited, tt.credited)
				}
				if gross := h.first.gross[pay.ProviderReference]; gross != tt.asked {
					t.Errorf("the payer was asked for %s, want %s", gross, tt.asked)
				}
				if told := h.hooks.of(r.Reference); !slices.Equal(told, []string{tt.told}) {
					t.Errorf("the customer was told %v", told)
				}
				if tt.credited > 0 && (n.account(ledger.FloatAt("mtn", "collection")) != -tt.asked || n.account(ledger.Fees) != 10) {
					t.Errorf("float %s, fees %s", n.account(ledger.FloatAt("mtn", "collection")), n.account(ledger.Fees))
				}
				n.books()
			})
		})
	}
}

// Nothing was written to the first rail's socket, so the second rail gets the next attempt. The customer's reference
// does not change.
func TestReroute_unsentSubmission(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(unsent), always(unknown))
		h.second.script(always(pending), always(success))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.quiet()
		// A failure of the abandoned attempt settles nothing.
		if done, err := n.book.Settle(t.Context(), book.Settlement{Payment: pay, Event: book.EventFailed, Reason: provider.ReasonFunds}); err != nil || done.Changed {
			t.Fatalf("a failure of the first attempt: changed %v, %v", done.Changed, err)
		}
		n.pass(time.Second)
		got := n.must(book.KindPayout, pay.ID)
		if got.Status != book.StatusSuccess || got.Rail != "hubtel" || got.Attempt != 2 || got.ProviderReference != pay.ProviderReference {
			t.Errorf("%s on %s, attempt %d, shown as %s (was %s)", got.Status, got.Rail, got.Attempt, got.ProviderReference, pay.ProviderReference)
		}
		if got.AttemptReference != got.ProviderReference || h.second.submissions[got.AttemptReference] != 1 {
			t.Errorf("the second rail was posted %v, the attempt is %s", h.second.submissions, got.AttemptReference)
		}
		for _, reference := range []string{got.ProviderReference, got.AttemptReference} {
			if found, ok, err := n.ByProviderReference(t.Context(), reference); err != nil || !ok || found.ID != pay.ID {
				t.Errorf("by %s: %v, %v", reference, ok, err)
			}
		}
		if n.account(ledger.FloatAt("mtn", "disbursement")) != 0 || n.account(ledger.FloatAt("hubtel", "disbursement")) != got.Amount {
			t.Errorf("floats %s and %s", n.account(ledger.FloatAt("mtn", "disbursement")), n.account(ledger.FloatAt("hubtel", "disbursement")))
		}
		n.books()
	})
}

// After a 401, 403 or 429 the payment stays at its rail, because the submission was written.
func TestReroute_notAfterBarred(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(sequence(barred, unsent, pending), always(success))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		got := n.must(book.KindPayout, pay.ID)
		if got.Status != book.StatusSuccess || got.Rail != "mtn" || got.Attempt != 1 {
			t.Errorf("%s on %s, attempt %d", got.Status, got.Rail, got.Attempt)
		}
		if posts, _ := h.second.counts(); posts != 0 {
			t.Errorf("the other rail had %d POSTs", posts)
		}
		n.books()
	})
}

// New payments wait for a paused rail. Payments that the rail already has are queried.
func TestPausedRail_getsNoNewRequest(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(sequence(pending), always(pending))
		had, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		h.first.script(always(barred), always(success))
		waits, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pauseRail("mtn")
		h.first.script(always(pending), always(success))
		n.pass(5 * time.Minute)
		if got := n.must(book.KindPayout, had.ID); got.Status != book.StatusSuccess {
			t.Errorf("what was sent before is %s", got.Status)
		}
		if posts := h.first.submissions[waits.ProviderReference]; posts != 1 {
			t.Errorf("%d POSTs while the rail was paused, want the first alone", posts)
		}
		n.resumeRail("mtn")
		n.pass(2 * time.Minute)
		if got := n.must(book.KindPayout, waits.ID); got.Status != book.StatusSuccess || h.first.submissions[waits.ProviderReference] != 2 {
			t.Errorf("after the pause: %s, %d POSTs", got.Status, h.first.submissions[waits.ProviderReference])
		}
		n.books()
	})
}

// The rail was chosen when the payer was prompted. It is paused when the payer has paid, so it gets no submission.
func TestPausedRail_airtimePaidNow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pause  time.Duration
		posts  int
		child  book.Status
		wallet money.Pesewas
	}{
		{"until it ends", 5 * time.Minute, 1, book.StatusSuccess, funds},
		{"until it has waited too long", unsentTime + time.Minute, 0, book.StatusFailed, funds + 20*money.Cedi},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.second.script(always(pending), always(success))
				pay, topUp, _, err := n.AirtimeBuy(t.Context(), h.caller(), n.airtime())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(time.Minute)
				n.pauseRail("hubtel")
				n.pass(2 * time.Second)
				h.first.script(always(pending), always(success))
				n.pass(tt.pause)
				if got := n.must(book.KindCollection, pay.ID); got.Status != book.StatusSuccess {
					t.Fatalf("the collection is %s", got.Status)
				}
				if posts, _ := h.second.counts(); posts != 0 {
					t.Errorf("%d POSTs while the rail was paused", posts)
				}
				n.resumeRail("hubtel")
				n.pass(2 * time.Minute)
				if posts, _ := h.second.counts(); posts != tt.posts {
					t.Errorf("%d POSTs, want %d", posts, tt.posts)
				}
				if got := n.must(book.KindTopUp, topUp.ID); got.Status != tt.child || n.balance() != tt.wallet {
					t.Errorf("the top-up is %s, the wallet has %s", got.Status, n.balance())
				}
				n.books()
			})
		})
	}
}

// The job, a status request and an operator settle the same payout at once, on two nodes and with different results.
// Only one of them succeeds.
func TestSettle_concurrentReports(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a, b := h.node("a"), h.node("b")
		for range 5 {
			pay, _, err := a.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			before := a.balance()
			var mu sync.Mutex
			changed := map[book.Event]int{}
			var group sync.WaitGroup
			for i, n := range []*node{a, b, a, b, a, b} {
				e := book.EventFailed
				if i >= 4 {
					e = book.EventSucceeded
				}
				group.Go(func() {
					done, err := n.book.Settle(context.Background(), book.Settlement{Payment: pay, Event: e, Known: i%3 == 0, Reason: provider.ReasonFunds, Outcome: success})
					if err != nil {
						t.Error(err)
						return
					}
					if done.Payment.Status.Open() {
						t.Errorf("the row is still %s", done.Payment.Status)
					}
					if done.Changed {
						mu.Lock()
						changed[e]++
						mu.Unlock()
					}
				})
			}
			group.Wait()
			if changed[book.EventFailed]+changed[book.EventSucceeded] != 1 {
				t.Fatalf("settled %v", changed)
			}
			got := a.must(book.KindPayout, pay.ID)
			back := a.balance() - before
			if got.Status == book.StatusFailed && back != pay.Held() || got.Status == book.StatusSuccess && back != 0 {
				t.Errorf("a %s payout gave %s back", got.Status, back)
			}
		}
		a.quiet()
		b.quiet()
		a.books()
	})
}

// A hint about a payment in memory counts only if it is from the current provider, also after a reroute.
func TestHint_ofOtherProvider(t *testing.T) {
	for holder, tt := range map[string]struct{ other, after string }{"mtn": {"hubtel", ""}, "hubtel": {"mtn", "mtn"}} {
		t.Run(holder, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				if tt.after != "" { // the payment starts at the other provider, which never gets it
					h.first.script(always(unsent), always(notFound))
				}
				pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(20 * time.Second)
				if is := n.must(book.KindPayout, pay.ID); is.Rail != holder || is.Status != book.StatusPending {
					t.Fatalf("it is %s at %s", is.Status, is.Rail)
				}
				asks := func() int {
					_, first := h.first.counts()
					_, second := h.second.counts()
					return first + second
				}
				for _, hint := range []struct {
					by, mode string
					want     int
				}{{tt.other, "test", 0}, {holder, "live", 0}, {holder, "test", 1}} {
					before := asks()
					if err := n.Hint(t.Context(), provider.Rail{Name: hint.by, Mode: hint.mode}, []provider.Hint{{ProviderReference: pay.ProviderReference}}); err != nil {
						t.Fatal(err)
					}
					n.quiet()
					if got := asks() - before; got != hint.want {
						t.Errorf("a hint of %s %s: %d questions, want %d", hint.by, hint.mode, got, hint.want)
					}
				}
			})
		})
	}
}

// A hint causes a query at once, but at most one in two seconds. Its content is ignored.
func TestHint_bringsQueryForward(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		rail, _ := n.routes.Rail("mtn", "test")
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(20 * time.Second) // it was queried after 1, 3, 7 and 15 s; the next query is due at 30 s
		_, before := h.first.counts()
		hint := func() {
			t.Helper()
			if err := n.Hint(t.Context(), rail, []provider.Hint{{ProviderReference: provider.PlainReference(pay.ProviderReference)}, {ProviderReference: "nobody's"}}); err != nil {
				t.Fatal(err)
			}
			n.quiet()
		}
		want := func(asks int) {
			t.Helper()
			if _, got := h.first.counts(); got-before != asks {
				t.Errorf("%d questions, want %d", got-before, asks)
			}
		}
		hint()
		want(1)
		hint()
		hint()
		want(1)
		n.pass(2 * time.Second)
		want(2)
		h.first.script(always(pending), always(success))
		n.pass(2 * time.Second)
		hint()
		want(3)
		if got := n.must(book.KindPayout, pay.ID); got.Status != book.StatusSuccess {
			t.Errorf("after the hint the payout is %s", got.Status)
		}
		// A final payment is queried again as well.
		h.first.script(always(pending), always(failed))
		hint()
		want(3)
		n.pass(2 * time.Second)
		want(4)
		if got := n.must(book.KindPayout, pay.ID); got.Status != book.StatusSuccess || got.ContradictedAt.IsZero() {
			t.Errorf("the reversed payout is %s, turned at %v", got.Status, got.ContradictedAt)
		}
		if n.account(ledger.Suspense) != pay.Amount {
			t.Errorf("suspense holds %s", n.account(ledger.Suspense))
		}
		n.books()
	})
}

// Another process settled one row of an optimistic batch. The batch settles the other rows and skips this one.
func TestCommit_optimisticBatchRetried(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		var ops []*book.Op
		var all []book.Payment
		for range 3 {
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pay)
			ops = append(ops, &book.Op{Settle: &book.Settlement{Payment: pay, Event: book.EventSucceeded, Known: true, At: n.clock.Now(), Outcome: success}})
		}
		if done, err := n.book.Settle(t.Context(), book.Settlement{Payment: all[1], Event: book.EventFailed, Reason: provider.ReasonFunds}); err != nil || !done.Changed {
			t.Fatalf("changed %v, %v", done.Changed, err)
		}
		verdicts, err := n.book.Commit(t.Context(), 0, ops)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []book.Status{book.StatusSuccess, book.StatusFailed, book.StatusSuccess} {
			v := verdicts[i]
			if v.Err != nil || v.Value.Payment.Status != want || v.Value.Changed != (want == book.StatusSuccess) {
				t.Errorf("payment %d: %s, changed %v, %v", i, v.Value.Payment.Status, v.Value.Changed, v.Err)
			}
		}
		n.quiet()
		n.books()
	})
}

// If one transaction has two final reports about one row, the first one counts. The same holds for changes of the
// attempt.
func TestSettle_twoReportsInOneBatch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		for _, known := range []bool{true, false} {
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			row := pay
			row.Submissions++
			marked := &book.Op{Settle: &book.Settlement{Payment: pay, Event: book.EventRepeated, Known: known, At: n.clock.Now(), Change: &book.AttemptChange{Row: row, WasAttempt: 1, WasSubmissions: 1}}}
			again := &book.Op{Settle: &book.Settlement{Payment: pay, Event: book.EventRepeated, Known: known, At: n.clock.Now(), Change: &book.AttemptChange{Row: row, WasAttempt: 1, WasSubmissions: 1}}}
			verdicts, err := n.book.Commit(t.Context(), 0, []*book.Op{marked, again})
			if err != nil || !verdicts[0].Value.Changed || verdicts[1].Value.Changed {
				t.Fatalf("two marks: %v, %v, %v", verdicts[0].Value.Changed, verdicts[1].Value.Changed, err)
			}
			if posts := n.must(book.KindPayout, pay.ID).Submissions; posts != 2 {
				t.Errorf("two nodes raised posts to %d, want 2 by one of them", posts)
			}
			won := &book.Op{Settle: &book.Settlement{Payment: row, Event: book.EventSucceeded, Known: known, At: n.clock.Now(), Outcome: success}}
			lost := &book.Op{Settle: &book.Settlement{Payment: row, Event: book.EventReversed, Known: known, At: n.clock.Now(), Outcome: failed}}
			if verdicts, err = n.book.Commit(t.Context(), 0, []*book.Op{won, lost}); err != nil || !verdicts[0].Value.Changed || verdicts[1].Value.Changed {
				t.Fatalf("two words: %v, %v, %v", verdicts[0].Value.Changed, verdicts[1].Value.Changed, err)
			}
			n.quiet()
			n.books()
		}
	})
}

// An unrepeatable submission is flagged in the database before it is sent to the provider.
func TestAttemptChange_beforeSubmission(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		posts := 0
		h.second.script(func(_ int, reference string) provider.Outcome {
			posts++
			row, found, err := n.ByProviderReference(context.Background(), reference)
			if err != nil || !found || row.SendingAt.IsZero() || row.Submissions != posts {
				t.Errorf("POST %d: found %v, marked at %v, posts %d, %v", posts, found, row.SendingAt, row.Submissions, err)
			}
			if posts < 3 {
				return barred
			}
			return pending
		}, always(success))
		r := h.payout()
		r.Network, r.MSISDN = "TELECEL", "233201234567"
		pay, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.quiet()
		if row := n.must(book.KindPayout, pay.ID); !row.SendingAt.IsZero() || row.Unsent != 0 || row.Class != provider.Barred {
			t.Errorf("between the tries: marked at %v, %d unsent, %s; a takeover could not send it", row.SendingAt, row.Unsent, row.Class)
		}
		n.pass(10 * time.Second)
		if row := n.must(book.KindPayout, pay.ID); row.Status != book.StatusSuccess || posts != 3 {
			t.Errorf("%s after %d POSTs", row.Status, posts)
		}
		n.books()
	})
}

// The money of the purchase moves correctly through the rows of the collection and of the top-up.
func TestAirtimeBuy_money(t *testing.T) {
	tests := []struct {
		name     string
		collects func(int, string) provider.Outcome
		tops     func(int, string) provider.Outcome
		payment  book.Status
		airtime  book.Status
		credited money.Pesewas // left in the wallet
	}{
		{"paid and sent", always(success), always(success), book.StatusSuccess, book.StatusSuccess, 0},
		{"paid, not sent: the money stays with the merchant", always(success), always(failed), book.StatusSuccess, book.StatusFailed, 500},
		{"not paid", always(failed), always(success), book.StatusFailed, book.StatusFailed, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				networks, err := n.routes.Networks(t.Context())
				if err != nil || len(networks) == 0 {
					t.Fatalf("%d networks, %v", len(networks), err)
				}
				h.first.script(always(pending), tt.collects)
				h.second.script(always(pending), tt.tops)
				pay, airtime, _, err := n.AirtimeBuy(t.Context(), h.caller(), AirtimeBuy{Destination: "233241112222", Payer: "233241234567", Network: "MTN",
					Amount: 500, NetworkID: networks[0].ID, Reference: h.reference(), CallbackURL: h.hooks.URL})
				if err != nil {
					t.Fatal(err)
				}
				if pay.PublicStatus() != "pending" || airtime.PublicStatus() != "pending" || n.balance() != funds {
					t.Errorf("at first: %s, %s, %s", pay.PublicStatus(), airtime.PublicStatus(), n.balance())
				}
				n.pass(10 * time.Second)
				payment, topUp := n.must(book.KindCollection, pay.ID), n.must(book.KindTopUp, airtime.ID)
				if payment.Status != tt.payment || topUp.Status != tt.airtime {
					t.Errorf("payment %s, airtime %s", payment.Status, topUp.Status)
				}
				if got := n.balance() - funds; got != tt.credited {
					t.Errorf("the wallet has %s more, want %s", got, tt.credited)
				}
				want := map[book.Status]string{book.StatusSuccess: "success", book.StatusFailed: "failed"}[tt.airtime]
				if told := h.hooks.of(pay.Reference); !slices.Equal(told, []string{want}) {
					t.Errorf("the customer was told %v, want %s once", told, want)
				}
				if posts, _ := h.second.counts(); (posts == 1) != (tt.payment == book.StatusSuccess) {
					t.Errorf("%d top-ups were sent", posts)
				}
				n.books()

				// If the payer pays after the failure, the wallet is credited and nothing is bought.
				if tt.payment == book.StatusFailed {
					h.first.script(always(pending), always(success))
					rail, _ := n.routes.Rail("mtn", "test")
					if err := n.Hint(t.Context(), rail, []provider.Hint{{ProviderReference: payment.ProviderReference}}); err != nil {
						t.Fatal(err)
					}
					n.pass(hintTime)
					if got := n.must(book.KindCollection, pay.ID); got.Status != book.StatusSuccess || n.balance() != funds+500 {
						t.Errorf("paid late: %s, %s", got.Status, n.balance())
					}
					if got := n.must(book.KindTopUp, airtime.ID); got.Status != book.StatusFailed {
						t.Errorf("paid late, the airtime is %s", got.Status)
					}
					n.books()
				}
			})
		})
	}
}
