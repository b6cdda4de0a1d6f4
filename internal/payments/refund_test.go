package payments

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// collected makes a collection of GHS 10.00 and lets its payer pay it, at MTN or at Telecel.
func (n *node) collected(network msisdn.Network) book.Payment {
	h := n.fixture
	h.t.Helper()
	in, rail := h.collect(), h.first
	if network == msisdn.Telecel {
		in.MSISDN, in.Network, rail = telecel, network, h.second
	}
	rail.script(always(pending), always(success))
	pay, _, err := n.Collect(h.t.Context(), h.caller(), in)
	if err != nil {
		h.t.Fatal(err)
	}
	n.pass(5 * time.Second)
	if pay = n.must(book.KindCollection, pay.ID); pay.Status != book.StatusSuccess {
		h.t.Fatalf("the collection is %s", pay.Status)
	}
	return pay
}

// refund is a request to refund a whole collection.
func (h *fixture) refund(of book.Payment) Refund {
	return Refund{Collection: of.Reference, Reference: h.reference(), Reason: "Out of stock", CallbackURL: h.hooks.URL}
}

// refunds accepts a refund.
func (n *node) refunds(r Refund) book.Payment {
	h := n.fixture
	h.t.Helper()
	pay, _, err := n.Refund(h.t.Context(), h.caller(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	return pay
}

// wantRefunded compares the refunded amount of a collection and verifies all books.
func (n *node) wantRefunded(of book.Payment, want money.Pesewas) {
	h := n.fixture
	h.t.Helper()
	if got := n.must(book.KindCollection, of.ID).Refunded; got != want {
		h.t.Errorf("%s of the collection are refunded, want %s", got, want)
	}
	n.sound()
}

// TestRefund_paysTheCollectionBack: a refund takes its amount and its fee from the wallet, and its amount from the
// collection. It uses the refund of the rail that collected, or else a payout to the payer. A failed refund returns
// both amounts.
func TestRefund_paysTheCollectionBack(t *testing.T) {
	for _, tt := range []struct {
		network msisdn.Network
		way     book.RefundWay
		state   provider.Outcome
	}{
		{msisdn.MTN, book.RefundByRail, success}, {msisdn.MTN, book.RefundByRail, failed},
		{msisdn.Telecel, book.RefundByPayout, success}, {msisdn.Telecel, book.RefundByPayout, failed},
	} {
		t.Run(fmt.Sprint(tt.network, " ", tt.state.State), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				n.refundFee(25)
				of := n.collected(tt.network)
				before := n.balance()
				rail, as := h.first, ofRefund
				if tt.way == book.RefundByPayout {
					rail, as = h.second, ""
				}
				rail.script(always(pending), always(pending))
				r := h.refund(of)
				pay := n.refunds(r)
				if pay.Kind != book.KindPayout || pay.RefundOf != of.ID || pay.RefundWay != tt.way || pay.Account != of.Account || pay.Amount != of.Amount || pay.Charges != 25 {
					t.Errorf("the refund is %+v", pay)
				}
				if got := before - n.balance(); got != pay.Held() {
					t.Errorf("the wallet is down by %s", got)
				}
				n.wantRefunded(of, of.Amount)
				rail.script(always(pending), always(tt.state))
				n.pass(10 * time.Second)
				is := n.must(book.KindPayout, pay.ID)
				want, spent, status := money.Pesewas(0), money.Pesewas(0), "failed"
				if tt.state.State == provider.Success {
					want, spent, status = of.Amount, pay.Held(), "success"
				}
				if string(is.Status) != status || rail.posted(as+is.ProviderReference) != 1 || before-n.balance() != spent {
					t.Errorf("it is %s, sent %d times, for %s", is.Status, rail.posted(as+is.ProviderReference), before-n.balance())
				}
				if told := h.hooks.of(r.Reference); len(told) != 1 || told[0] != status {
					t.Errorf("the customer was told %v", told)
				}
				n.wantRefunded(of, want)
				if n.jobsLeft() != 0 {
					t.Error("a job is left")
				}
			})
		})
	}
}

// refundFee sets a flat fee for refunds.
func (n *node) refundFee(flat money.Pesewas) {
	h := n.fixture
	h.t.Helper()
	if err := n.db.Write(h.t.Context(), func(tx *db.Tx) error {
		_, err := n.tenants.SetFeePlan(tx, h.tenant.ID, time.Time{}, append(tenant.DemoPlan(), tenant.Rule{Product: tenant.Refund, Flat: flat}))
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

// exec runs a statement that our code never runs.
func (n *node) exec(sql string, args ...any) error {
	_, err := n.db.Exec(n.fixture.t.Context(), sql, args...)
	return err
}

// isCheck reports whether a CHECK of the schema refused a statement.
func isCheck(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "check constraint")
}

// TestRefund_amounts: the refunds of a collection run one after another, and are together at most its amount.
func TestRefund_amounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		refused := func(amount money.Pesewas, kind problem.Kind, text string) {
			t.Helper()
			r := h.refund(of)
			r.Amount = amount
			_, _, err := n.Refund(t.Context(), h.caller(), r)
			if e := wantKind(t, err, kind); !strings.Contains(e.Message, text) {
				t.Errorf("%s: %s", amount, e.Message)
			}
		}
		refused(of.Amount+1, problem.Invalid, "must be at most 10.00")
		refused(MinRefund-1, problem.Invalid, "must be at least 0.10")
		refused(-of.Amount, problem.Invalid, "must be at least 0.10")
		part := h.refund(of)
		part.Amount = 6 * money.Cedi
		h.first.script(always(pending), always(pending))
		n.refunds(part)
		refused(money.Cedi, problem.InProgress, "still open")
		n.wantRefunded(of, 6*money.Cedi)
		h.first.script(always(pending), always(success))
		n.pass(10 * time.Second)
		refused(0, problem.Invalid, "must be at most 4.00")
		refused(401, problem.Invalid, "must be at most 4.00")
		rest := h.refund(of)
		rest.Amount = 4 * money.Cedi
		n.refunds(rest)
		n.pass(10 * time.Second)
		refused(MinRefund, problem.Invalid, "must be at most 0.00")
		n.wantRefunded(of, of.Amount)
		if err := n.exec(`UPDATE payments SET refunded = amount + 1 WHERE id = $1`, of.ID); !isCheck(err) {
			t.Errorf("the schema lets more be refunded than was collected: %v", err)
		}
	})
}

// TestRefund_wrongStates: only a successful collection can be refunded. It must have no contradiction, and no top-up
// other than a failed one.
func TestRefund_wrongStates(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		refused := func(when, id string, kind problem.Kind) {
			t.Helper()
			_, _, err := n.Refund(t.Context(), h.caller(), Refund{Collection: id, Reference: h.reference()})
			if !problem.Is(err, kind) {
				t.Errorf("%s: %v, want %s", when, err, kind)
			}
		}
		open, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		refused("open", open.ID, problem.Invalid)
		h.first.script(always(pending), always(failed))
		n.pass(10 * time.Second)
		refused("failed", open.ID, problem.Invalid)
		h.first.script(always(pending), always(success))
		out, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		refused("a payout", out.ID, problem.NotFound)
		refused("unknown", "nothing-like-it", problem.NotFound)
		of := n.collected(msisdn.MTN)
		h.first.script(always(pending), always(failed))
		n.rechecks.soon(of)
		n.pass(5 * time.Second)
		no := false
		n.set(tenant.Change{PayoutsStopped: &no}) // the reversal stopped the payouts
		refused("reversed", of.ID, problem.Invalid)
		if got := n.must(book.KindCollection, of.ID); got.ContradictedAt.IsZero() {
			t.Error("the collection was not reversed")
		}
		n.sound()
	})
}

// TestRefund_ofAirtime: a collection that paid for airtime can be refunded once the airtime has failed.
func TestRefund_ofAirtime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(success))
		h.second.script(always(pending), always(pending))
		of, topUp, _, err := n.AirtimeBuy(t.Context(), h.caller(), n.airtime())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Second)
		r := Refund{Collection: of.ID, Reference: h.reference()}
		_, _, err = n.Refund(t.Context(), h.caller(), r)
		wantKind(t, err, problem.Invalid)
		h.second.script(always(pending), always(failed))
		n.pass(10 * time.Second)
		if is := n.must(book.KindTopUp, topUp.ID); is.Status != book.StatusFailed {
			t.Fatalf("the top-up is %s", is.Status)
		}
		n.refunds(r)
		n.pass(10 * time.Second)
		n.wantRefunded(of, of.Amount)
	})
}

// TestRefund_namesOneCollection: a text is refused if it is the client's reference of one collection and the id of
// another.
func TestRefund_namesOneCollection(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		in := h.collect()
		in.Reference = of.ProviderReference
		if _, _, err := n.Collect(t.Context(), h.caller(), in); err != nil {
			t.Fatal(err)
		}
		_, _, err := n.Refund(t.Context(), h.caller(), Refund{Collection: of.ProviderReference, Reference: h.reference()})
		wantKind(t, err, problem.Invalid)
		n.refunds(Refund{Collection: of.ID, Reference: h.reference()})
		n.quiet()
		n.wantRefunded(of, of.Amount)
	})
}

// TestRefund_obeysTheRulesOfPayouts: a refund is refused if payouts are stopped, the key's daily limit is reached, or
// the wallet does not cover it. It leaves no row.
func TestRefund_obeysTheRulesOfPayouts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		yes, no := true, false
		n.set(tenant.Change{PayoutsStopped: &yes})
		_, _, err := n.Refund(t.Context(), h.caller(), h.refund(of))
		wantKind(t, err, problem.Forbidden)
		n.set(tenant.Change{PayoutsStopped: &no})
		c := h.caller()
		c.Daily = of.Amount - 1
		_, _, err = n.Refund(t.Context(), c, h.refund(of))
		wantKind(t, err, problem.Forbidden)
		if err := n.Adjust(t.Context(), h.tenant.ID, -n.balance(), "a test", "ama"); err != nil {
			t.Fatal(err)
		}
		_, _, err = n.Refund(t.Context(), h.caller(), h.refund(of))
		wantKind(t, err, problem.InsufficientFunds)
		n.wantRefunded(of, 0)
	})
}

// TestRefund_repeats: a repeated request returns the same refund, even if its collection can no longer be refunded.
func TestRefund_repeats(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of, other := n.collected(msisdn.MTN), n.collected(msisdn.MTN)
		r := h.refund(of)
		c := h.caller()
		c.IdempotencyKey, c.BodyHash = "key-of-the-refund", "1"
		pay, _, err := n.Refund(t.Context(), c, r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if again, replayed, err := n.Refund(t.Context(), c, r); err != nil || !replayed || again.ID != pay.ID {
			t.Errorf("by its key: %v, %v", replayed, err)
		}
		_, _, err = n.Refund(t.Context(), h.caller(), r)
		if e := wantKind(t, err, problem.Duplicate); e.Data.(book.Payment).ID != pay.ID {
			t.Errorf("the duplicate is %+v", e.Data)
		}
		n.setDuplicates(tenant.RepeatDuplicates)
		if again, replayed, err := n.Refund(t.Context(), h.caller(), r); err != nil || !replayed || again.ID != pay.ID {
			t.Errorf("by its reference: %v, %v", replayed, err)
		}
		for name, differs := range map[string]func(r *Refund){
			"another collection": func(r *Refund) { r.Collection = other.ID },
			"another amount":     func(r *Refund) { r.Amount = money.Cedi },
		} {
			changed := r
			differs(&changed)
			if _, _, err := n.Refund(t.Context(), h.caller(), changed); !problem.Is(err, problem.Duplicate) {
				t.Errorf("%s: %v", name, err)
			}
		}
		plain := Payout{Amount: of.Amount, Reference: r.Reference, MSISDN: of.MSISDN(), Network: msisdn.MTN, CallbackURL: r.CallbackURL}
		if _, _, err := n.Payout(t.Context(), h.caller(), plain); !problem.Is(err, problem.Duplicate) {
			t.Errorf("a payout under its reference: %v", err)
		}
		n.wantRefunded(of, of.Amount)
		n.wantRefunded(other, 0)
	})
}

// TestRefund_atOnce: of fifty refunds of one collection on two nodes at once, one is accepted.
func TestRefund_atOnce(t *testing.T) {
	for _, amount := range []money.Pesewas{0, money.Cedi} {
		t.Run(amount.String(), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				nodes := []*node{h.node("a"), h.node("b")}
				of := nodes[0].collected(msisdn.MTN)
				before := nodes[0].balance()
				h.first.script(always(pending), always(pending))
				requests := make([]Refund, 50)
				for i := range requests {
					requests[i] = h.refund(of)
					requests[i].Amount = amount
				}
				var group sync.WaitGroup
				errs := make([]error, len(requests))
				for i, r := range requests {
					group.Go(func() { _, _, errs[i] = nodes[i%2].Refund(t.Context(), h.caller(), r) })
				}
				group.Wait()
				accepted := 0
				for _, err := range errs {
					if err == nil {
						accepted++
					} else if !problem.Is(err, problem.InProgress) && !problem.Is(err, problem.Invalid) {
						t.Error(err)
					}
				}
				want := amount
				if want == 0 {
					want = of.Amount
				}
				if accepted != 1 || before-nodes[0].balance() != want {
					t.Errorf("%d accepted, the wallet is down by %s", accepted, before-nodes[0].balance())
				}
				nodes[0].wantRefunded(of, want)
			})
		})
	}
}

// TestRefund_reversedByProvider: a provider may report our refund as a reversal. That takes nothing from the wallet,
// at any time. A reversal that our own refunds do not explain posts nothing and goes to an operator.
func TestRefund_reversedByProvider(t *testing.T) {
	for _, tt := range []struct {
		name     string
		network  msisdn.Network
		amount   money.Pesewas
		refund   provider.Outcome // outcome of the refund after the reversal was reported
		disputed bool
		reversed bool // whether the collection is reversed in the end
	}{
		{"while it is open", msisdn.MTN, 0, success, false, false},
		{"and the refund fails", msisdn.MTN, 0, failed, false, true},
		{"of a part", msisdn.MTN, money.Cedi, success, true, false},
		{"of a payout elsewhere", msisdn.Telecel, 0, success, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				of := n.collected(tt.network)
				rail := h.first
				if tt.network == msisdn.Telecel {
					rail = h.second
				}
				taken := func(refund provider.Outcome) {
					rail.script(always(pending), func(_ int, reference string) provider.Outcome {
						if reference == of.ProviderReference {
							return provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonReversed}
						}
						return refund
					})
				}
				taken(pending)
				r := h.refund(of)
				r.Amount = tt.amount
				pay := n.refunds(r)
				held := n.balance()
				n.rechecks.soon(of)
				n.pass(5 * time.Second)
				seen := n.must(book.KindCollection, of.ID)
				if n.balance() != held || seen.ContradictedAt.IsZero() == tt.disputed || n.receivable() != 0 {
					t.Errorf("the wallet went from %s to %s, contradicted at %v", held, n.balance(), seen.ContradictedAt)
				}
				if stopped, err := n.tenants.Get(t.Context(), h.tenant.ID); err != nil || stopped.PayoutsStopped {
					t.Error("the payouts are stopped", err)
				}
				taken(tt.refund)
				n.pass(time.Minute)
				n.rechecks.soon(of)
				n.pass(time.Hour)
				seen = n.must(book.KindCollection, of.ID)
				switch is := n.must(book.KindPayout, pay.ID); {
				case is.Status.Open():
					t.Error("the refund is open")
				case tt.reversed && (seen.ContradictedAt.IsZero() || n.balance() != held+pay.Held()-of.Net()):
					t.Errorf("a reversal that no refund explains: contradicted at %v, the wallet has %s", seen.ContradictedAt, n.balance())
				case !tt.reversed && n.balance() != held:
					t.Errorf("the wallet went from %s to %s", held, n.balance())
				}
				if list, err := n.Contradictions(t.Context()); err != nil || tt.disputed && (len(list) != 1 || list[0].Event != book.EventDisputed) {
					t.Errorf("operators see %+v, %v", list, err)
				}
				if tt.disputed {
					next := h.refund(of)
					next.Amount = money.Cedi
					_, _, err := n.Refund(t.Context(), h.caller(), next)
					wantKind(t, err, problem.Invalid)
					rail.script(always(pending), always(success))
					n.rechecks.soon(seen)
					n.pass(5 * time.Second)
					wantKind(t, n.Uphold(t.Context(), of.ID, "it is back", "ama"), problem.Invalid)
				}
				n.sound()
			})
		})
	}
}

// receivable returns the debt of the fixture's tenant.
func (n *node) receivable() money.Pesewas { return n.account(ledger.Receivable(n.fixture.tenant.ID)) }

// TestRefund_foundPaid: a refund that failed and was then found paid counts in the total of later refunds.
func TestRefund_foundPaid(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		h.first.script(always(pending), always(failed))
		pay := n.refunds(h.refund(of))
		n.pass(10 * time.Second)
		n.wantRefunded(of, 0)
		h.first.script(always(pending), always(success))
		n.rechecks.soon(n.must(book.KindPayout, pay.ID))
		n.pass(5 * time.Second)
		if is := n.must(book.KindPayout, pay.ID); is.ContradictedAt.IsZero() {
			t.Fatal("it was not found paid")
		}
		_, _, err := n.Refund(t.Context(), h.caller(), h.refund(of))
		wantKind(t, err, problem.Invalid)
		n.sound()
	})
}

// TestRefund_recoveryAsksBothWays: before the restore the payer was refunded, by the rail's refund or by a payout.
// The repeated request adopts that refund.
func TestRefund_recoveryAsksBothWays(t *testing.T) {
	for _, way := range []book.RefundWay{book.RefundByRail, book.RefundByPayout} {
		t.Run(string(way), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.recovers = true
				n := h.node("a")
				of := n.collected(msisdn.MTN)
				n.startRecovery(t, true)
				n.clock.Advance(10 * time.Minute)
				r := h.refund(of)
				reference := n.References(h.tenant, book.KindPayout, r.Reference)[0]
				as, party := ofRefund, ""
				if way == book.RefundByPayout {
					as, party = "", of.Account
				}
				h.second.script(always(pending), always(notFound))
				h.first.mu.Lock()
				h.first.gross[as+reference], h.first.party[as+reference] = of.Amount, party
				h.first.mu.Unlock()
				h.first.script(always(pending), func(_ int, asked string) provider.Outcome {
					if asked == as+reference {
						return success
					}
					return notFound
				})
				pay := n.refunds(r)
				n.pass(5 * time.Second)
				if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || is.RefundWay != way || is.Rail != "mtn" {
					t.Errorf("it is %s by %s at %s", is.Status, is.RefundWay, is.Rail)
				}
				if h.first.posted(reference)+h.first.posted(ofRefund+reference)+h.second.posted(reference) != 0 {
					t.Error("it was sent again")
				}
				n.wantRefunded(of, of.Amount)
			})
		})
	}
}

// TestRefund_killed breaks the connection at every boundary of a refund. No money moves twice, and all books agree.
func TestRefund_killed(t *testing.T) {
	for name, end := range map[string]provider.Outcome{"paid": success, "failed": failed} {
		t.Run(name, func(t *testing.T) {
			dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
				h := newFixture(t, d)
				n := h.node("a")
				for _, boundary := range []db.Boundary{db.BoundaryExchange, db.BoundaryCommit} {
					for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
						for nth := 1; nth <= 4; nth++ {
							of := n.collected(msisdn.MTN)
							before := n.balance()
							h.first.script(always(pending), func(_ int, reference string) provider.Outcome {
								if strings.HasPrefix(reference, ofRefund) {
									return end
								}
								return success
							})
							r := h.refund(of)
							breakAt(f, boundary, nth, fault)
							pay, _, err := n.Refund(t.Context(), h.caller(), r)
							f.Decide(nil)
							if err != nil { // the same request is repeated
								if pay, _, err = n.Refund(t.Context(), h.caller(), r); problem.Is(err, problem.Duplicate) {
									pay, err = problem.From(err).Data.(book.Payment), nil
								}
							}
							if err != nil {
								t.Fatalf("%v %v at %d: %v", boundary, fault, nth, err)
							}
							n.pass(20 * time.Second)
							spent := before - n.balance()
							if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess && is.Status != book.StatusFailed || (is.Status == book.StatusSuccess) != (spent == of.Amount) {
								t.Errorf("%v %v at %d: it is %s, for %s", boundary, fault, nth, is.Status, spent)
							}
							if h.first.posted(ofRefund+pay.ProviderReference) > 1 {
								t.Errorf("%v %v at %d: sent %d times", boundary, fault, nth, h.first.posted(ofRefund+pay.ProviderReference))
							}
							n.wantRefunded(of, spent)
						}
					}
				}
			})
		})
	}
}

// TestRefund_nodeDies: if the node of a refund dies, another node continues it in the same way.
func TestRefund_nodeDies(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		first := h.node("a")
		of := first.collected(msisdn.MTN)
		dead := h.stopped("dead")
		tt, err := dead.tenants.Get(t.Context(), h.tenant.ID)
		if err != nil {
			t.Fatal(err)
		}
		a, err := dead.refundRequest(t.Context(), h.caller(), tt, h.refund(of))
		if err != nil {
			t.Fatal(err)
		}
		a.awaitsSubmission = false
		done, err := dead.accept(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if job := book.JobOf(done.Payment, dead.clock.Now()); job.Kind != book.RefundJobKind {
			t.Errorf("its job is a %s, which a node of the release before would run as a payout", job.Kind)
		}
		h.first.script(always(pending), sequence(notFound, success))
		heir := h.node("heir")
		heir.pass(10 * time.Second)
		if is := heir.must(book.KindPayout, done.Payment.ID); is.Status != book.StatusSuccess || h.first.posted(ofRefund+is.ProviderReference) != 1 || h.first.posted(is.ProviderReference) != 0 {
			t.Errorf("it is %s", is.Status)
		}
		heir.wantRefunded(of, of.Amount)
	})
}

// TestRefund_oldNodeIsRefused: a node that does not know refunds cannot change a refund or a refunded collection. The
// schema refuses it.
func TestRefund_oldNodeIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		h.first.script(always(pending), always(pending))
		pay := n.refunds(h.refund(of))
		n.quiet()
		for _, sql := range []string{
			`UPDATE payments SET status = 'failed', settled_at = 1 WHERE id = $1`,
			`UPDATE payments SET status = 'success', settled_at = 1 WHERE id = $1`,
			`UPDATE payments SET held_until = 1 WHERE id = $1`,
		} {
			if err := n.exec(sql, pay.ID); !isCheck(err) {
				t.Errorf("%s: %v", sql, err)
			}
		}
		const reversal = `UPDATE payments SET turned_at = 1, last_word = '' WHERE id = $1`
		if err := n.exec(reversal, of.ID); !isCheck(err) {
			t.Errorf("%s: %v", reversal, err)
		}
		n.wantRefunded(of, of.Amount)
	})
}

// TestRefund_checkFindsEachFault: the check of the books compares collections with their refunds.
func TestRefund_checkFindsEachFault(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		pay := n.refunds(h.refund(of))
		n.pass(10 * time.Second)
		n.wantRefunded(of, of.Amount)
		for _, broken := range []struct{ sql, id string }{
			{`UPDATE payments SET refunded = refunded - 1 WHERE id = $1`, of.ID},
			{`UPDATE payments SET refund_of = 'gone' WHERE id = $1`, pay.ID},
		} {
			if err := n.exec(broken.sql, broken.id); err != nil {
				t.Fatal(err)
			}
			if report, err := n.Check(t.Context()); err != nil || report.OK() {
				t.Errorf("%s is not found, %v", broken.sql, err)
			}
		}
	})
}
