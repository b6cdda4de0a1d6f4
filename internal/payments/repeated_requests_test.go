package payments

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

func (n *node) setDuplicates(d tenant.Duplicates) {
	t := n.fixture.t
	t.Helper()
	err := n.db.Write(t.Context(), func(tx *db.Tx) error {
		_, _, err := n.tenants.Set(tx, n.fixture.tenant.ID, tenant.Change{Duplicates: &d})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If the provider contradicted a refusal, a repeated request gets the current payment instead of the refusal.
func TestRepeat_contradictedRefusal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(rejected), always(failed))
		r := h.payout()
		_, _, err := n.Payout(t.Context(), h.caller(), r)
		first := wantKind(t, err, problem.Refused)
		_, replayed, err := n.Payout(t.Context(), h.caller(), r)
		if again := wantKind(t, err, problem.Refused); again.Message != first.Message || !replayed {
			t.Errorf("it hears %q, then %q; replayed %v", first.Message, again.Message, replayed)
		}
		h.first.script(always(rejected), always(success))
		n.pass(24*time.Hour + book.RecheckSlack + recheckEvery)
		if is := n.must(book.KindPayout, first.Data.(book.Payment).ID); is.ContradictedAt.IsZero() {
			t.Fatal("the contradiction was not seen")
		}
		for _, setting := range []tenant.Duplicates{tenant.RefuseDuplicates, tenant.RepeatDuplicates} {
			n.setDuplicates(setting)
			_, _, err = n.Payout(t.Context(), h.caller(), r)
			if e := wantKind(t, err, problem.Duplicate); e.Data.(book.Payment).Status != book.StatusFailed {
				t.Errorf("it is shown %+v", e.Data)
			}
		}
		if posts, _ := h.first.counts(); posts != 1 {
			t.Errorf("%d POSTs, want 1", posts)
		}
		n.books()
	})
}

// A repeated request waits while the first one waits for its provider.
func TestRepeat_whileFirstWaits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		n.setDuplicates(tenant.RepeatDuplicates)
		entered, leave := make(chan struct{}), make(chan struct{})
		h.first.script(func(int, string) provider.Outcome {
			close(entered)
			<-leave
			return rejected
		}, always(failed))
		r := h.payout()
		answer := make(chan error, 1)
		go func() {
			_, _, err := n.Payout(t.Context(), h.caller(), r)
			answer <- err
		}()
		<-entered
		_, _, err := n.Payout(t.Context(), h.caller(), r)
		if e := wantKind(t, err, problem.InProgress); e.RetryAfter <= 0 {
			t.Error("it is not said when to come again")
		}
		close(leave)
		wantKind(t, <-answer, problem.Refused)
		_, replayed, err := n.Payout(t.Context(), h.caller(), r)
		if wantKind(t, err, problem.Refused); !replayed {
			t.Error("the refusal was not marked as replayed")
		}
		n.books()
	})
}

// A repeated request at another node waits for the first one and returns its answer. It is found by key or by
// reference.
func TestRepeat_otherNodeWaits(t *testing.T) {
	for name, keyed := range map[string]bool{"by key": true, "by reference": false} {
		for answer, outcomes := range map[string][2]provider.Outcome{"refused": {rejected, failed}, "paid": {success, success}} {
			t.Run(name+" "+answer, func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					two := newTwoNodes(t, d, keyed, outcomes[1])
					first := two.request(two.a, nil)
					<-two.entered
					again := two.request(two.b, nil)
					two.passes(2*time.Second, again)
					two.answer <- outcomes[0]
					want := <-first
					two.a.quiet()
					got := two.next(again)
					if !got.replayed || got.pay.ID != want.pay.ID || problem.Is(got.err, problem.Refused) != problem.Is(want.err, problem.Refused) ||
						(got.err == nil) != (answer == "paid") {
						t.Errorf("the first request got %v, the repeated one %v", want, got)
					}
					if posts, _ := two.fixture.first.counts(); posts != 1 {
						t.Errorf("%d submissions, want 1", posts)
					}
					two.a.books()
				})
			})
		}
	}
}

// A repeated request waits up to 8 s itself. It is answered with a pending payment only if the first request can no
// longer be waiting.
func TestRepeat_otherNodeGivesUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		two := newTwoNodes(t, d, true, pending)
		first := two.request(two.a, nil)
		<-two.entered
		atOnce := two.request(two.b, nil)
		two.passes(answerTime-time.Millisecond, atOnce)
		if got := two.next(atOnce); !problem.Is(got.err, problem.InProgress) || problem.From(got.err).RetryAfter <= 0 {
			t.Errorf("after 8 s the repeated request got %v", got)
		}
		want := <-first
		two.fixture.clock.Advance(refusalWait)
		if got := two.ask(two.b, nil); got.err != nil || !got.replayed || got.pay.ID != want.pay.ID {
			t.Errorf("a later request got %v, the first one %v", got, want)
		}
		two.answer <- pending
		two.a.books()
	})
}

// A repeated request stops waiting if its client leaves, its own node answers the first request, or too many requests
// wait.
func TestRepeat_waitEndsEarly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		two := newTwoNodes(t, d, true, pending)
		first := two.request(two.a, nil)
		<-two.entered
		if got := two.ask(two.a, nil); !problem.Is(got.err, problem.InProgress) {
			t.Errorf("at the same node: %v", got)
		}
		gone := make(chan struct{})
		leaves := two.request(two.b, gone)
		two.passes(time.Second, leaves)
		close(gone)
		if got := <-leaves; !problem.Is(got.err, problem.InProgress) {
			t.Errorf("without its client: %v", got)
		}
		for range maxWaitingRepeats {
			two.b.repeats.waiting <- struct{}{}
		}
		if got := two.ask(two.b, nil); !problem.Is(got.err, problem.InProgress) {
			t.Errorf("beyond the limit: %v", got)
		}
		two.answer <- pending
		<-first
		two.a.books()
	})
}

// The node of the first request is lost. The node that takes over knows that no request waits at the lost node.
func TestRepeat_firstNodeIsLost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		dead := h.stopped("dead")
		dead.setDuplicates(tenant.RepeatDuplicates)
		_, pay := dead.accepted(t, "MTN", true)
		h.first.script(always(pending), always(pending))
		heir := h.stopped("heir")
		r := Payout{Amount: pay.Amount, Reference: pay.Reference, MSISDN: msisdn.MSISDN(pay.Account), Network: msisdn.MTN}
		again := make(chan repeatAnswer, 1)
		go func() {
			pay, replayed, err := heir.Payout(t.Context(), h.caller(), r)
			again <- repeatAnswer{pay, replayed, err}
		}()
		clocktest.Await(t, "the repeated request to wait", func() bool { _, any := h.clock.Next(); return any })
		if err := heir.queue.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		heir.quiet()
		got := nextAnswer(t, h, again)
		if got.err != nil || !got.replayed || got.pay.ID != pay.ID || h.clock.Now().Sub(pay.CreatedAt) >= answerTime {
			t.Errorf("after %s the repeated request got %v", h.clock.Now().Sub(pay.CreatedAt), got)
		}
		heir.books()
	})
}

// twoNodes are a node that processes a payout and a node that gets the same request again. The test decides when the
// provider answers.
type twoNodes struct {
	t       *testing.T
	fixture *fixture
	a, b    *node
	entered chan struct{}
	answer  chan provider.Outcome
	caller  idempotency.Caller
	payout  Payout
}

type repeatAnswer struct {
	pay      book.Payment
	replayed bool
	err      error
}

func (a repeatAnswer) String() string {
	return fmt.Sprintf("%s %s, replayed %v, %v", a.pay.ID, a.pay.Status, a.replayed, a.err)
}

func newTwoNodes(t *testing.T, d *db.DB, keyed bool, later provider.Outcome) *twoNodes {
	h := newFixture(t, d)
	two := &twoNodes{t: t, fixture: h, a: h.node("a"), b: h.stopped("b"), entered: make(chan struct{}), answer: make(chan provider.Outcome, 1)}
	two.caller, two.payout = h.caller(), h.payout()
	if keyed {
		two.caller.IdempotencyKey, two.caller.BodyHash = "key of a payout", "hash"
	} else {
		two.a.setDuplicates(tenant.RepeatDuplicates)
	}
	h.first.script(func(int, string) provider.Outcome {
		close(two.entered)
		select {
		case o := <-two.answer:
			return o
		case <-t.Context().Done(): // the test has failed
			return unknown
		}
	}, always(later))
	return two
}

func (two *twoNodes) ask(n *node, gone chan struct{}) repeatAnswer {
	r := two.payout
	r.Gone = gone
	pay, replayed, err := n.Payout(two.t.Context(), two.caller, r)
	return repeatAnswer{pay, replayed, err}
}

func (two *twoNodes) request(n *node, gone chan struct{}) chan repeatAnswer {
	answer := make(chan repeatAnswer, 1)
	go func() { answer <- two.ask(n, gone) }()
	return answer
}

func (two *twoNodes) next(waiting chan repeatAnswer) repeatAnswer {
	two.t.Helper()
	return nextAnswer(two.t, two.fixture, waiting)
}

// nextAnswer ends the pause of a waiting request and returns its answer.
func nextAnswer(t *testing.T, h *fixture, waiting chan repeatAnswer) (got repeatAnswer) {
	t.Helper()
	clocktest.Await(t, "the next pause", func() bool {
		next, any := h.clock.Next()
		return any && next.Sub(h.clock.Now()) <= repeatPause || len(waiting) > 0
	})
	if next, any := h.clock.Next(); any && len(waiting) == 0 {
		h.clock.Advance(max(time.Microsecond, next.Sub(h.clock.Now())))
	}
	return <-waiting
}

// passes advances the clock while a repeated request waits. It moves the clock only after the next pause of the
// request has begun.
func (two *twoNodes) passes(d time.Duration, waiting chan repeatAnswer) {
	two.t.Helper()
	for end := two.fixture.clock.Now().Add(d); two.fixture.clock.Now().Before(end); {
		clocktest.Await(two.t, "a pause of the repeated request", func() bool {
			next, any := two.fixture.clock.Next()
			return any && next.Sub(two.fixture.clock.Now()) <= repeatPause || len(waiting) > 0
		})
		if len(waiting) > 0 {
			two.t.Fatalf("the repeated request did not wait: %+v", <-waiting)
		}
		next, _ := two.fixture.clock.Next()
		two.fixture.clock.Advance(max(time.Microsecond, min(next.Sub(two.fixture.clock.Now()), end.Sub(two.fixture.clock.Now()))))
	}
}

// A payment settles after its row is read and before the check whether its request is open. The second read is used.
func TestRepeat_settlesMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(success))
		c := h.caller()
		c.IdempotencyKey, c.BodyHash = "key-of-the-payout", "hash"
		first, _, err := n.Payout(t.Context(), c, h.payout())
		if err != nil {
			t.Fatal(err)
		}
		settle := sync.OnceValue(func() bool {
			n.pass(time.Minute)
			return true // for the row that was read
		})
		stale := false
		b := book.New(book.Deps{DB: d, Ledger: n.ledger, Tenants: n.Payments.tenants, Jobs: n.queue, Webhooks: n.webhooks, Clock: h.clock},
			book.Hooks{RequestOpen: func(p book.Payment) bool {
				was := stale
				stale = false
				return was || p.Status.Open() && settle()
			}, Account: n.rails.account})
		again := &book.Acceptance{Payment: newPayment(c, h.tenant, book.KindPayout)}
		if old, replayed, err := b.Earlier(t.Context(), again); err != nil || !replayed || old.ID != first.ID || old.Status != book.StatusSuccess {
			t.Errorf("before the checks: %+v, replayed %v, %v", old, replayed, err)
		}
		stale = true // as in a transaction whose snapshot is older than the settlement
		if done, err := b.Accept(t.Context(), again); err != nil || !done.Replayed || done.Payment.ID != first.ID {
			t.Errorf("under the lock: %+v, %v", done, err)
		}
		n.books()
	})
}

// A request that was answered by its Reference keeps its Idempotency-Key. A different request with the key is
// refused, and the same request is answered again. That holds for every product.
func TestRepeat_keyIsBoundToRequest(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		n.setDuplicates(tenant.RepeatDuplicates)
		keyed := func(key string) idempotency.Caller {
			return idempotency.Caller{Tenant: h.tenant.ID, IdempotencyKey: key, BodyHash: "hash"}
		}
		payout, refused, collection := h.payout(), h.payout(), h.collect()
		for name, ask := range map[string]func(c idempotency.Caller, other bool) (replayed bool, err error){
			"payout": func(c idempotency.Caller, other bool) (replayed bool, err error) {
				r := payout
				if other {
					r = h.payout()
				}
				h.first.script(always(pending), always(pending))
				_, replayed, err = n.Payout(t.Context(), c, r)
				return replayed, err
			},
			"refused payout": func(c idempotency.Caller, other bool) (replayed bool, err error) {
				r := refused
				if other {
					r = h.payout()
				}
				h.first.script(always(rejected), always(notFound))
				if _, replayed, err = n.Payout(t.Context(), c, r); problem.Is(err, problem.Refused) {
					err = nil
				}
				return replayed, err
			},
			"collection": func(c idempotency.Caller, other bool) (replayed bool, err error) {
				r := collection
				if other {
					r = h.collect()
				}
				h.first.script(always(pending), always(pending))
				_, replayed, err = n.Collect(t.Context(), c, r)
				return replayed, err
			},
		} {
			key := keyed("key of a " + name)
			if replayed, err := ask(h.caller(), false); err != nil || replayed {
				t.Fatalf("%s: replayed %v, %v", name, replayed, err)
			}
			for range 2 {
				if replayed, err := ask(key, false); err != nil || !replayed {
					t.Errorf("%s: the same with a key is replayed %v, %v", name, replayed, err)
				}
			}
			mismatch := key
			mismatch.BodyHash = "another"
			if _, err := ask(mismatch, true); err == nil || problem.From(err).Code != "idempotency_key_mismatch" {
				t.Errorf("%s: another request under its key: %v", name, err)
			}
		}
		n.books()
	})
}

// After the first request the bank was switched off, or the account's limit was lowered. A repeated request is still
// answered.
func TestRepeat_limitsChanged(t *testing.T) {
	for name, change := range map[string]func(n *node, tx *db.Tx) error{
		"the bank is inactive": func(n *node, tx *db.Tx) error {
			return n.routes.EditBank(tx, "040100", route.Edit{Status: route.Inactive})
		},
		"the limit is lower": func(n *node, tx *db.Tx) error {
			limit := 1 * money.Cedi
			_, _, err := n.tenants.Set(tx, n.fixture.tenant.ID, tenant.Change{PayoutLimitBank: &limit})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.second.sells(pending)
				r := Payout{Amount: 10 * money.Cedi, Reference: h.reference(), BankID: n.bankID("040100"), AccountNumber: "00A1234567890"}
				c := h.caller()
				c.IdempotencyKey, c.BodyHash = "key-of-a-payout", "hash"
				pay, _, err := n.Payout(t.Context(), c, r)
				if err != nil {
					t.Fatal(err)
				}
				n.quiet()
				spent := funds - n.balance()
				if err := n.db.Write(t.Context(), func(tx *db.Tx) error { return change(n, tx) }); err != nil {
					t.Fatal(err)
				}
				n.pass(2 * time.Second)
				again, replayed, err := n.Payout(t.Context(), c, r)
				if err != nil || !replayed || again.ID != pay.ID || funds-n.balance() != spent {
					t.Errorf("replayed %v: %s, %v", replayed, again.ID, err)
				}
				r.Reference = h.reference()
				_, _, err = n.Payout(t.Context(), h.caller(), r)
				wantKind(t, err, problem.Invalid)
				n.books()
			})
		})
	}
}
