package payments

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// The provider refuses and then answers no query, and the node dies. The next node reads the refusal from the row. It
// submits nothing, and refunds when the provider does not know the payment.
func TestRefusal_keptOverTakeover(t *testing.T) {
	for _, network := range []string{"MTN", "TELECEL"} {
		for name, tt := range map[string]struct {
			answer provider.Outcome
			status book.Status
		}{
			"not known": {notFound, book.StatusFailed}, "was paid": {success, book.StatusSuccess}, "nobody answers": {unknown, book.StatusPending},
		} {
			t.Run(network+" "+name, func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					h := newFixture(t, d)
					rail := h.first
					if network != "MTN" {
						rail = h.second
					}
					rail.script(always(rejected), always(unknown))
					dying := h.stopped("dying")
					_, pay := dying.accepted(t, network, false)
					for range 2 { // the submission, and the query in the line of queries
						dying.follower.runJob(t.Context(), jobs.Job{ID: pay.ID, Subject: pay.ID})
					}
					row := dying.must(book.KindPayout, pay.ID)
					if row.Refusal != book.RefusalClear || row.RefusalReason != rejected.Reason || row.Status != book.StatusPending {
						t.Fatalf("the row says %q for %q, and %s", row.Refusal, row.RefusalReason, row.Status)
					}
					rail.script(always(pending), always(tt.answer))
					n := h.node("heir")
					n.pass(10 * time.Second)
					if is := n.must(book.KindPayout, pay.ID); is.Status != tt.status {
						t.Errorf("it is %s, want %s", is.Status, tt.status)
					} else if is.Status == book.StatusFailed && is.Reason != rejected.Reason {
						t.Errorf("it failed for %q", is.Reason)
					}
					if posts, _ := rail.counts(); posts != 1 {
						t.Errorf("%d POSTs", posts)
					}
					n.books()
				})
			})
		}
	}
}

// The provider has the payment that it refused. A later not-found answer, which another node gets, does not refund
// it.
func TestRefusal_removedByAcknowledgement(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.second.script(always(rejected), sequence(unknown, pending, notFound))
		dying := h.stopped("dying")
		_, pay := dying.accepted(t, "TELECEL", false)
		job := jobs.Job{ID: pay.ID, Subject: pay.ID}
		dying.follower.runJob(t.Context(), job)
		dying.follower.runJob(t.Context(), job)
		h.clock.Advance(time.Second)
		dying.follower.runJob(t.Context(), job)
		if row := dying.must(book.KindPayout, pay.ID); row.Refusal != book.RefusalNone {
			t.Fatalf("the row says %q", row.Refusal)
		}
		n := h.node("heir")
		n.pass(time.Hour)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusPending || n.balance() != funds-pay.Held() {
			t.Errorf("it is %s, the wallet has %s", is.Status, n.balance())
		}
		n.sound()
	})
}

// After a long silence of the provider, queries are rare. The first answer causes queries of all waiting payments.
func TestQueries_firstAnswerAfterSilence(t *testing.T) {
	const held = 40
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(rejected), always(unknown))
		var ids []string
		for range held {
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, pay.ID)
		}
		n.pass(2 * time.Hour)
		if waits := n.rails.queries.unanswered()[book.RailName{Provider: "mtn", Mode: "test"}]; waits != held {
			t.Errorf("%d payments wait for an answer, want %d", waits, held)
		}
		_, before := h.first.counts()
		n.pass(10 * time.Minute)
		if _, after := h.first.counts(); after-before < 10*held-held {
			t.Errorf("%d questions in ten minutes about %d refusals: they are asked about each minute", after-before, held)
		}
		h.first.script(always(rejected), always(notFound))
		one := n.must(book.KindPayout, ids[0])
		rail, _ := n.routes.Rail("mtn", "test")
		if err := n.Hint(t.Context(), rail, []provider.Hint{{ProviderReference: one.ProviderReference}}); err != nil {
			t.Fatal(err)
		}
		n.pass(hintTime)
		for _, id := range ids {
			if is := n.must(book.KindPayout, id); is.Status != book.StatusFailed {
				t.Errorf("%s is %s", id, is.Status)
			}
		}
		if waits := n.rails.queries.unanswered()[book.RailName{Provider: "mtn", Mode: "test"}]; waits != 0 {
			t.Errorf("%d payments wait for an answer", waits)
		}
		n.books()
	})
}

// A client's status request queries the provider and returns the confirmed refusal.
func TestStatus_confirmsRefusal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(rejected), always(unknown))
		pay, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Second)
		if row := n.must(book.KindCollection, pay.ID); row.Refusal != book.RefusalClear || row.Status != book.StatusPending {
			t.Fatalf("%s, refusal %q", row.Status, row.Refusal)
		}
		h.first.script(always(rejected), always(notFound))
		is, err := n.Status(t.Context(), h.tenant.ID, pay.Reference)
		if err != nil || is.Status != book.StatusInvalid || is.Reason != rejected.Reason {
			t.Errorf("%s for %q, %v", is.Status, is.Reason, err)
		}
		n.books()
	})
}

// A usual refusal costs one query and is returned in the answer.
func TestRefusal_costsOneQuery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.script(always(rejected), always(notFound))
		if _, _, err := n.Payout(t.Context(), h.caller(), h.toTelecel()); err == nil {
			t.Error("the refusal was not told in the answer")
		}
		if posts, asks := h.second.counts(); posts != 1 || asks != 1 {
			t.Errorf("%d POSTs and %d questions", posts, asks)
		}
		n.books()
	})
}

// The provider reports success, failed, success, failed; or failed, paid, failed. The money moves to suspense once.
// Every report is stored.
func TestContradictions_allStored(t *testing.T) {
	for _, first := range []provider.Outcome{success, failed} {
		t.Run(first.State.String()+" at first", func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.first.script(always(pending), always(first))
				pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(2 * time.Second)
				words := map[provider.State]provider.Outcome{provider.Success: success, provider.Failed: failed}
				last, suspense := first.State, money.Pesewas(0)
				for i := range 4 {
					n.clock.Advance(time.Second)
					last = provider.Success + provider.Failed - last
					h.first.script(always(pending), always(words[last]))
					for range 2 { // a repeated report is one contradiction
						if _, err := n.rechecker.recheck(t.Context(), n.must(book.KindPayout, pay.ID)); err != nil {
							t.Fatal(err)
						}
					}
					all, err := n.Contradictions(t.Context())
					if err != nil || len(all) != i+1 || all[0].Reported != last || all[0].Payment.ID != pay.ID {
						t.Fatalf("after word %d: %v, %v", i+2, all, err)
					}
					if suspense == 0 {
						suspense = n.account(ledger.Suspense)
					}
					if is := n.account(ledger.Suspense); is == 0 || is != suspense {
						t.Errorf("suspense has %s after word %d, had %s", is, i+2, suspense)
					}
				}
				// A decision causes another query, and its answer is stored as well.
				if err := n.Decide(t.Context(), pay.ID, true, "by the statement", "ama"); err != nil {
					t.Fatal(err)
				}
				last = provider.Success + provider.Failed - last
				h.first.script(always(pending), always(words[last]))
				n.pass(2 * recheckEvery)
				if all, err := n.Contradictions(t.Context()); err != nil || len(all) != 5 || all[0].Reported != last {
					t.Errorf("after the decision: %v, %v", all, err)
				}
				n.sound()
			})
		})
	}
}

// The provider returns to its first report. Its book and our float agree again, and nobody gains or loses.
func TestUphold_returnsToFloat(t *testing.T) {
	for _, first := range []provider.Outcome{costly(7, 3), failed} {
		t.Run(first.State.String()+" at first", func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.first.script(always(pending), always(first))
				pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(2 * time.Second)
				float, wallet := n.account(ledger.FloatAt("mtn", "disbursement")), n.balance()
				uphold := func() error { return n.Uphold(t.Context(), pay.ID, "the statement of the month", "ama") }
				if err := uphold(); !problem.Is(err, problem.Invalid) {
					t.Errorf("before any contradiction: %v", err)
				}
				second := costly(7, 3)
				if first.State == provider.Success {
					second = failed
				}
				for _, word := range []provider.Outcome{second, first} {
					n.clock.Advance(time.Second)
					h.first.script(always(pending), always(word))
					if _, err := n.rechecker.recheck(t.Context(), n.must(book.KindPayout, pay.ID)); err != nil {
						t.Fatal(err)
					}
					if word.State == second.State {
						if err := uphold(); !problem.Is(err, problem.Invalid) {
							t.Errorf("while the provider says the opposite: %v", err)
						}
					}
				}
				if err := uphold(); err != nil {
					t.Fatal(err)
				}
				if err := uphold(); !problem.Is(err, problem.Duplicate) {
					t.Errorf("again: %v", err)
				}
				if is := n.account(ledger.FloatAt("mtn", "disbursement")); is != float || n.account(ledger.Suspense) != 0 || n.balance() != wallet {
					t.Errorf("float %s, was %s; suspense %s; wallet %s, was %s", is, float, n.account(ledger.Suspense), n.balance(), wallet)
				}
				n.sound()
			})
		})
	}
}

// A provider reverses a collection and then reports it as paid. The account still owes the uncovered amount. When the
// amount is recovered, nobody gains or loses.
func TestUphold_creditsCollectionAgain(t *testing.T) {
	for name, spent := range map[string]bool{"the wallet covered it": false, "the wallet was empty": true} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				paid := costly(7, 3)
				h.first.script(always(pending), always(paid))
				pay, _, err := n.Collect(t.Context(), h.caller(), h.collect())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(2 * time.Second)
				out := money.Pesewas(0)
				if spent {
					out = n.balance() - 1*money.Cedi
					if err := n.Adjust(t.Context(), pay.Tenant, -out, "spent elsewhere", "ama"); err != nil {
						t.Fatal(err)
					}
				}
				float, wallet, fees := n.account(ledger.FloatAt("mtn", "collection")), n.balance(), n.account(ledger.Fees)
				uphold := func() error { return n.Uphold(t.Context(), pay.ID, "the statement of the month", "ama") }
				for _, word := range []provider.Outcome{failed, paid} {
					if err := uphold(); !problem.Is(err, problem.Invalid) {
						t.Errorf("before the provider has come back: %v", err)
					}
					n.clock.Advance(time.Second)
					h.first.script(always(pending), always(word))
					if _, err := n.rechecker.recheck(t.Context(), n.must(book.KindCollection, pay.ID)); err != nil {
						t.Fatal(err)
					}
				}
				if spent == (n.account(ledger.Receivable(pay.Tenant)) == 0) {
					t.Errorf("it owes %s", -n.account(ledger.Receivable(pay.Tenant)))
				}
				if err := n.Decide(t.Context(), pay.ID, true, "the statement of the month", "ama"); !problem.Is(err, problem.Invalid) {
					t.Errorf("nothing of a collection is in suspense: %v", err)
				}
				if err := uphold(); err != nil {
					t.Fatal(err)
				}
				if err := uphold(); !problem.Is(err, problem.Duplicate) {
					t.Errorf("again: %v", err)
				}
				if spent {
					if _, err := n.Recover(t.Context(), pay.Tenant, "agreed", "ama", func(*db.Tx, money.Pesewas) error { return nil }); err != nil {
						t.Fatal(err)
					}
				}
				if n.account(ledger.FloatAt("mtn", "collection")) != float || n.balance() != wallet || n.account(ledger.Fees) != fees || n.account(ledger.Receivable(pay.Tenant)) != 0 {
					t.Errorf("float %s, was %s; wallet %s, was %s; fees %s, were %s; owed %s", n.account(ledger.FloatAt("mtn", "collection")), float, n.balance(), wallet,
						n.account(ledger.Fees), fees, -n.account(ledger.Receivable(pay.Tenant)))
				}
				n.sound()
			})
		})
	}
}

// The payer pays after the purchase has failed. The wallet is credited, the customer gets a webhook, and operators
// see the contradiction.
func TestAirtimeBuy_paidLate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		networks, err := n.routes.Networks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.first.script(always(pending), always(failed))
		r := AirtimeBuy{Destination: "233241112222", Payer: "233241234567", Network: "MTN", Amount: 500, NetworkID: networks[0].ID,
			Reference: h.reference(), CallbackURL: h.hooks.URL}
		pay, _, _, err := n.AirtimeBuy(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		h.first.script(always(pending), always(success))
		if _, err := n.rechecker.recheck(t.Context(), n.must(book.KindCollection, pay.ID)); err != nil {
			t.Fatal(err)
		}
		n.quiet()
		if told := h.hooks.of(r.Reference); !slices.Equal(told, []string{"failed", "success"}) {
			t.Errorf("the customer was told %v", told)
		}
		if n.balance() != funds+500 {
			t.Errorf("the wallet has %s", n.balance())
		}
		all, err := n.Contradictions(t.Context())
		if err != nil || len(all) != 1 || all[0].Event != book.EventPaidLate || all[0].Payment.ID != pay.ID {
			t.Errorf("operators see %v, %v", all, err)
		}
		n.books()
	})
}

// In an earlier version each attempt had its own reference. An open payment on its second attempt is queried by that
// attempt's reference.
func TestAttempt_referenceOfEarlierVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		dying := h.stopped("dying")
		pay := dying.crash(t, "TELECEL")
		earlier := dying.references.ofAttempt(pay, 2)
		if _, err := d.Exec(t.Context(), `UPDATE payments SET attempt = 2, attempt_reference = $1, sending_at = $2 WHERE id = $3`, earlier, db.Micros(h.clock.Now()), pay.ID); err != nil {
			t.Fatal(err)
		}
		h.second.gross[earlier], h.second.party[earlier] = pay.Amount, pay.Account
		h.second.script(always(pending), func(_ int, reference string) provider.Outcome {
			if reference != earlier {
				t.Errorf("asked for %s, want %s", reference, earlier)
			}
			return success
		})
		n := h.node("heir")
		n.pass(2 * time.Second)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess {
			t.Errorf("it is %s", is.Status)
		}
		for _, reference := range []string{earlier, pay.ProviderReference} {
			if found, ok, err := n.ByProviderReference(t.Context(), reference); err != nil || !ok || found.ID != pay.ID {
				t.Errorf("by %s: %v, %v", reference, ok, err)
			}
		}
		n.books()
	})
}

// The number of concurrent queries to one rail is limited for all callers together.
func TestQueries_limitedByRail(t *testing.T) {
	var q queries
	rail := provider.Rail{Name: "mtn", Mode: "test"}
	var leaves []func()
	for range queriesPerRail {
		leave, err := q.enter(t.Context(), rail)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	full := make(chan error, 1)
	go func() {
		leave, err := q.enter(t.Context(), rail)
		if err == nil {
			leave()
		}
		full <- err
	}()
	if leave, err := q.enter(t.Context(), provider.Rail{Name: "hubtel", Mode: "test"}); err != nil {
		t.Errorf("another rail: %v", err)
	} else {
		leave()
	}
	select {
	case err := <-full:
		t.Fatalf("one more was let in: %v", err)
	default:
	}
	leaves[0]()
	if err := <-full; err != nil {
		t.Errorf("after one has left: %v", err)
	}
	for _, id := range []string{"a", "b"} {
		if woken := q.record(railKind{"mtn", "test", book.KindPayout}, id, false); len(woken) != 0 {
			t.Errorf("silence wakes %v", woken)
		}
	}
	if woken := q.record(railKind{"mtn", "test", book.KindCollection}, "c", true); len(woken) != 0 {
		t.Errorf("another interface's answer wakes %v", woken)
	}
	if woken := fmt.Sprint(q.record(railKind{"mtn", "test", book.KindPayout}, "a", true)); woken != "[b]" {
		t.Errorf("the answer wakes %v", woken)
	}
}
