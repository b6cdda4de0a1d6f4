package payments

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

// TestOutcomesOfACollection is the table of how a payer's answer ends.
func TestOutcomesOfACollection(t *testing.T) {
	declined := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonDeclined}
	nobody := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonPayerNotFound}
	tests := []struct {
		name      string
		bearer    tenant.FeeBearer
		post, ask func(int, string) provider.Outcome
		status    Status
		credited  money.Pesewas
		asked     money.Pesewas // what the payer was asked for
		told      string
	}{
		{"paid, the merchant bears the fee", tenant.Merchant, always(pending), always(success), StatusSuccess, 990, 1000, "success"},
		{"paid, the payer bears the fee", tenant.Customer, always(pending), always(success), StatusSuccess, 1000, 1010, "success"},
		{"declined", tenant.Merchant, always(pending), always(declined), StatusDeclined, 0, 1000, "failed"},
		{"no such payer", tenant.Merchant, always(pending), always(nobody), StatusInvalid, 0, 1000, "failed"},
		{"refused by the provider", tenant.Merchant, always(rejected), always(notFound), StatusInvalid, 0, 1000, "failed"},
		{"failed", tenant.Merchant, always(pending), always(failed), StatusFailed, 0, 1000, "failed"},
		{"lost, found paid", tenant.Merchant, always(unknown), inTurn(unknown, success), StatusSuccess, 990, 1000, "success"},
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
				if err != nil || pay.Status != StatusPending {
					t.Fatalf("the answer is %s, %v; a provider's no comes later", pay.Status, err)
				}
				n.pass(10 * time.Second)
				got := n.must(KindCollection, pay.ID)
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
				if tt.credited > 0 && (n.account(ledger.Float("mtn")) != -tt.asked || n.account(ledger.Fees) != 10) {
					t.Errorf("float %s, fees %s", n.account(ledger.Float("mtn")), n.account(ledger.Fees))
				}
				n.books()
			})
		})
	}
}

// TestWhatNeverLeftTakesAnotherRail: nothing was written to the first rail's socket, so the second
// one gets an attempt of its own; the customer's reference for it stays.
func TestWhatNeverLeftTakesAnotherRail(t *testing.T) {
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
		// A failure of the attempt that was left settles nothing.
		if done, err := n.settle(t.Context(), settlement{payment: pay, event: EventFailed, reason: provider.ReasonFunds}); err != nil || done.changed {
			t.Fatalf("a failure of the first attempt: changed %v, %v", done.changed, err)
		}
		n.pass(time.Second)
		got := n.must(KindPayout, pay.ID)
		if got.Status != StatusSuccess || got.Rail != "hubtel" || got.Attempt != 2 || got.ProviderReference != pay.ProviderReference {
			t.Errorf("%s on %s, attempt %d, shown as %s (was %s)", got.Status, got.Rail, got.Attempt, got.ProviderReference, pay.ProviderReference)
		}
		if got.AttemptReference != got.ProviderReference || h.second.posts[got.AttemptReference] != 1 {
			t.Errorf("the second rail was posted %v, the attempt is %s", h.second.posts, got.AttemptReference)
		}
		for _, reference := range []string{got.ProviderReference, got.AttemptReference} {
			if found, ok, err := n.byProviderReference(t.Context(), reference); err != nil || !ok || found.ID != pay.ID {
				t.Errorf("by %s: %v, %v", reference, ok, err)
			}
		}
		if n.account(ledger.Float("mtn")) != 0 || n.account(ledger.Float("hubtel")) != got.Amount {
			t.Errorf("floats %s and %s", n.account(ledger.Float("mtn")), n.account(ledger.Float("hubtel")))
		}
		n.books()
	})
}

// TestNoRerouteAfterARefusalToListen: 401, 403 or 429 came back, so something
// was written; the payment stays on its rail.
func TestNoRerouteAfterARefusalToListen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(inTurn(turnedOff, unsent, pending), always(success))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		got := n.must(KindPayout, pay.ID)
		if got.Status != StatusSuccess || got.Rail != "mtn" || got.Attempt != 1 {
			t.Errorf("%s on %s, attempt %d", got.Status, got.Rail, got.Attempt)
		}
		if posts, _ := h.second.counts(); posts != 0 {
			t.Errorf("the other rail had %d POSTs", posts)
		}
		n.books()
	})
}

// TestAPausedRailGetsNothingNew: what waits for it goes on waiting, what it has
// is asked about.
func TestAPausedRailGetsNothingNew(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(inTurn(pending), always(pending))
		had, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		h.first.script(always(turnedOff), always(success))
		waits, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pauseRail("mtn")
		h.first.script(always(pending), always(success))
		n.pass(5 * time.Minute)
		if got := n.must(KindPayout, had.ID); got.Status != StatusSuccess {
			t.Errorf("what was sent before is %s", got.Status)
		}
		if posts := h.first.posts[waits.ProviderReference]; posts != 1 {
			t.Errorf("%d POSTs while the rail was paused, want the first alone", posts)
		}
		n.resumeRail("mtn")
		n.pass(2 * time.Minute)
		if got := n.must(KindPayout, waits.ID); got.Status != StatusSuccess || h.first.posts[waits.ProviderReference] != 2 {
			t.Errorf("after the pause: %s, %d POSTs", got.Status, h.first.posts[waits.ProviderReference])
		}
		n.books()
	})
}

// TestAPausedRailGetsNoAirtimeThatIsPaidForNow: its rail was chosen when the payer was
// asked, and is paused when he has paid.
func TestAPausedRailGetsNoAirtimeThatIsPaidForNow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pause  time.Duration
		posts  int
		child  Status
		wallet money.Pesewas
	}{
		{"until it ends", 5 * time.Minute, 1, StatusSuccess, funds},
		{"until it has waited too long", unsentTime + time.Minute, 0, StatusFailed, funds + 20*money.Cedi},
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
				if got := n.must(KindCollection, pay.ID); got.Status != StatusSuccess {
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
				if got := n.must(KindTopUp, topUp.ID); got.Status != tt.child || n.balance() != tt.wallet {
					t.Errorf("the top-up is %s, the wallet has %s", got.Status, n.balance())
				}
				n.books()
			})
		})
	}
}

// TestOneWordCounts: the job, a status call and an operator settle the same
// payout at once, on two nodes and in contradiction. One of them does.
func TestOneWordCounts(t *testing.T) {
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
			changed := map[Event]int{}
			var group sync.WaitGroup
			for i, n := range []*node{a, b, a, b, a, b} {
				e := EventFailed
				if i >= 4 {
					e = EventSucceeded
				}
				group.Go(func() {
					done, err := n.settle(context.Background(), settlement{payment: pay, event: e, known: i%3 == 0, reason: provider.ReasonFunds, outcome: success})
					if err != nil {
						t.Error(err)
						return
					}
					if done.payment.Status.Open() {
						t.Errorf("the row is still %s", done.payment.Status)
					}
					if done.changed {
						mu.Lock()
						changed[e]++
						mu.Unlock()
					}
				})
			}
			group.Wait()
			if changed[EventFailed]+changed[EventSucceeded] != 1 {
				t.Fatalf("settled %v", changed)
			}
			got := a.must(KindPayout, pay.ID)
			back := a.balance() - before
			if got.Status == StatusFailed && back != pay.Held() || got.Status == StatusSuccess && back != 0 {
				t.Errorf("a %s payout gave %s back", got.Status, back)
			}
		}
		a.quiet()
		b.quiet()
		a.books()
	})
}

// TestHintsMoveAQuestionForward: at once, but not twice within two seconds, and
// whatever they claim.
func TestHintsMoveAQuestionForward(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		rail, _ := n.routes.Rail("mtn", "test")
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(20 * time.Second) // asked at 1, 3, 7, 15; the next is at 30
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
		if got := n.must(KindPayout, pay.ID); got.Status != StatusSuccess {
			t.Errorf("after the hint the payout is %s", got.Status)
		}
		// A final one is asked about again, too.
		h.first.script(always(pending), always(failed))
		hint()
		want(3)
		n.pass(2 * time.Second)
		want(4)
		if got := n.must(KindPayout, pay.ID); got.Status != StatusSuccess || got.ContradictedAt.IsZero() {
			t.Errorf("the reversed payout is %s, turned at %v", got.Status, got.ContradictedAt)
		}
		if n.account(ledger.Suspense) != pay.Amount {
			t.Errorf("suspense holds %s", n.account(ledger.Suspense))
		}
		n.books()
	})
}

// TestABlindBatchThatIsWrongIsJudgedAnew: one row of a batch was settled by
// somebody else meanwhile; the others settle, and it is left alone.
func TestABlindBatchThatIsWrongIsJudgedAnew(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		var ops []*op
		var all []Payment
		for range 3 {
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pay)
			ops = append(ops, &op{settle: &settlement{payment: pay, event: EventSucceeded, known: true, at: n.clock.Now(), outcome: success}})
		}
		if done, err := n.settle(t.Context(), settlement{payment: all[1], event: EventFailed, reason: provider.ReasonFunds}); err != nil || !done.changed {
			t.Fatalf("changed %v, %v", done.changed, err)
		}
		verdicts, err := n.runBatch(t.Context(), 0, ops)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Status{StatusSuccess, StatusFailed, StatusSuccess} {
			v := verdicts[i]
			if v.Err != nil || v.Value.payment.Status != want || v.Value.changed != (want == StatusSuccess) {
				t.Errorf("payment %d: %s, changed %v, %v", i, v.Value.payment.Status, v.Value.changed, v.Err)
			}
		}
		n.quiet()
		n.books()
	})
}

// TestTwoWordsInOneBatch: of two final words about one row in one transaction
// the first counts, and so does a mark.
func TestTwoWordsInOneBatch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		for _, known := range []bool{true, false} {
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			row := pay
			row.Posts++
			marked := &op{settle: &settlement{payment: pay, event: EventRepeated, known: known, at: n.clock.Now(), mark: &mark{row: row, wasAttempt: 1, wasPosts: 1}}}
			again := &op{settle: &settlement{payment: pay, event: EventRepeated, known: known, at: n.clock.Now(), mark: &mark{row: row, wasAttempt: 1, wasPosts: 1}}}
			verdicts, err := n.runBatch(t.Context(), 0, []*op{marked, again})
			if err != nil || !verdicts[0].Value.changed || verdicts[1].Value.changed {
				t.Fatalf("two marks: %v, %v, %v", verdicts[0].Value.changed, verdicts[1].Value.changed, err)
			}
			if posts := n.must(KindPayout, pay.ID).Posts; posts != 2 {
				t.Errorf("two nodes raised posts to %d, want 2 by one of them", posts)
			}
			won := &op{settle: &settlement{payment: row, event: EventSucceeded, known: known, at: n.clock.Now(), outcome: success}}
			lost := &op{settle: &settlement{payment: row, event: EventReversed, known: known, at: n.clock.Now(), outcome: failed}}
			if verdicts, err = n.runBatch(t.Context(), 0, []*op{won, lost}); err != nil || !verdicts[0].Value.changed || verdicts[1].Value.changed {
				t.Fatalf("two words: %v, %v, %v", verdicts[0].Value.changed, verdicts[1].Value.changed, err)
			}
			n.quiet()
			n.books()
		}
	})
}

// TestTheMarkComesFirst: what may never be sent twice is marked in the database
// before the provider hears of it.
func TestTheMarkComesFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		posts := 0
		h.second.script(func(_ int, reference string) provider.Outcome {
			posts++
			row, found, err := n.byProviderReference(context.Background(), reference)
			if err != nil || !found || row.SendingAt.IsZero() || row.Posts != posts {
				t.Errorf("POST %d: found %v, marked at %v, posts %d, %v", posts, found, row.SendingAt, row.Posts, err)
			}
			if posts < 3 {
				return turnedOff
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
		if row := n.must(KindPayout, pay.ID); !row.SendingAt.IsZero() || row.Unsent != 0 || row.Class != provider.Barred {
			t.Errorf("between the tries: marked at %v, %d unsent, %s; a takeover could not send it", row.SendingAt, row.Unsent, row.Class)
		}
		n.pass(10 * time.Second)
		if row := n.must(KindPayout, pay.ID); row.Status != StatusSuccess || posts != 3 {
			t.Errorf("%s after %d POSTs", row.Status, posts)
		}
		n.books()
	})
}

// TestAnAirtimePurchaseByMobileMoney follows the money through both rows.
func TestAnAirtimePurchaseByMobileMoney(t *testing.T) {
	tests := []struct {
		name     string
		collects func(int, string) provider.Outcome
		tops     func(int, string) provider.Outcome
		payment  Status
		airtime  Status
		credited money.Pesewas // left in the wallet
	}{
		{"paid and sent", always(success), always(success), StatusSuccess, StatusSuccess, 0},
		{"paid, not sent: the money stays with the merchant", always(success), always(failed), StatusSuccess, StatusFailed, 500},
		{"not paid", always(failed), always(success), StatusFailed, StatusFailed, 0},
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
				if pay.Word() != "pending" || airtime.Word() != "pending" || n.balance() != funds {
					t.Errorf("at first: %s, %s, %s", pay.Word(), airtime.Word(), n.balance())
				}
				n.pass(10 * time.Second)
				payment, topUp := n.must(KindCollection, pay.ID), n.must(KindTopUp, airtime.ID)
				if payment.Status != tt.payment || topUp.Status != tt.airtime {
					t.Errorf("payment %s, airtime %s", payment.Status, topUp.Status)
				}
				if got := n.balance() - funds; got != tt.credited {
					t.Errorf("the wallet has %s more, want %s", got, tt.credited)
				}
				want := map[Status]string{StatusSuccess: "success", StatusFailed: "failed"}[tt.airtime]
				if told := h.hooks.of(pay.Reference); !slices.Equal(told, []string{want}) {
					t.Errorf("the customer was told %v, want %s once", told, want)
				}
				if posts, _ := h.second.counts(); (posts == 1) != (tt.payment == StatusSuccess) {
					t.Errorf("%d top-ups were sent", posts)
				}
				n.books()

				// Paid after all: credited, and nothing is bought.
				if tt.payment == StatusFailed {
					h.first.script(always(pending), always(success))
					rail, _ := n.routes.Rail("mtn", "test")
					if err := n.Hint(t.Context(), rail, []provider.Hint{{ProviderReference: payment.ProviderReference}}); err != nil {
						t.Fatal(err)
					}
					n.pass(hintTime)
					if got := n.must(KindCollection, pay.ID); got.Status != StatusSuccess || n.balance() != funds+500 {
						t.Errorf("paid late: %s, %s", got.Status, n.balance())
					}
					if got := n.must(KindTopUp, airtime.ID); got.Status != StatusFailed {
						t.Errorf("paid late, the airtime is %s", got.Status)
					}
					n.books()
				}
			})
		})
	}
}

// TestArrowsAreWhole holds the table to what the code needs of it.
func TestArrowsAreWhole(t *testing.T) {
	type start struct {
		kind  Kind
		from  Status
		event Event
	}
	seen := map[start]bool{}
	for _, a := range Arrows {
		for _, k := range a.Kinds {
			s := start{k, a.From, a.Event}
			if seen[s] {
				t.Errorf("two arrows begin with %v", s)
			}
			seen[s] = true
			got, ok := arrow(k, a.From, a.Event)
			if !ok || got.Event != a.Event {
				t.Errorf("the arrow of %v is not found", s)
			}
			for _, p := range a.Postings {
				account(p.From, Payment{Tenant: "t", Rail: "r"})
				account(p.To, Payment{Tenant: "t", Rail: "r"})
			}
			// Each settler of an open payment posts the leg that all others
			// would post: the ledger lets one of them win.
			if a.From == StatusPending && !a.To[0].Open() && len(a.Postings) > 0 &&
				!slices.ContainsFunc(a.Postings, func(p Posting) bool { return p.Leg == LegFinal }) {
				t.Errorf("%v settles without the leg %s", s, LegFinal)
			}
			// No final payment becomes open again.
			if !a.From.Open() && a.From != "" {
				for _, to := range a.To {
					if to.Open() {
						t.Errorf("%v ends %s", s, to)
					}
				}
			}
		}
	}
	for _, k := range []Kind{KindCollection, KindPayout, KindTopUp, KindBundle} {
		for _, e := range []Event{EventAccepted, EventSucceeded, EventFailed} {
			from := StatusPending
			if e == EventAccepted {
				from = ""
			}
			if !seen[start{k, from, e}] {
				t.Errorf("a %s cannot be %s", k, e)
			}
		}
	}
	if problem.From(duplicate(Payment{Kind: KindPayout})).Message == problem.From(duplicate(Payment{Kind: KindTopUp})).Message {
		t.Error("payouts and top-ups call their references by different names")
	}
}
