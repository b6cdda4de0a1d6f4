package payments

import (
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
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

// A repeated request does not return a refusal that the provider contradicted. It returns the current payment.
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

// A payment settles between the read of its row and the check whether its request is open. The second read is used.
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
			return true // of the row as read
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
		stale = true // as in a transaction with a snapshot before the settlement
		if done, err := b.Accept(t.Context(), again); err != nil || !done.Replayed || done.Payment.ID != first.ID {
			t.Errorf("under the lock: %+v, %v", done, err)
		}
		n.books()
	})
}

// A request answered by its Reference keeps its Idempotency-Key. Another request with the key is refused, and the
// same one is answered again, for every product.
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

// The bank was switched off, or the account's limit lowered, after the first request. A repeated one is still
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
