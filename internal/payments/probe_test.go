package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// A half-open breaker allows one request, its probe, and waits 30 s for a report. A request that does not submit must
// return the probe. Otherwise a working provider stays unavailable.

// halfOpen opens the breaker of the second rail and waits until it is half-open.
func (n *node) halfOpen(op route.Operation) {
	n.fixture.t.Helper()
	rail, _ := n.routes.Rail("hubtel", "test")
	for range 10 {
		n.routes.Report(rail, op, provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable}, 0)
	}
	n.clock.Advance(16 * time.Second)
}

// submitsNext verifies that the next payout is submitted now.
func (n *node) submitsNext(t *testing.T) {
	t.Helper()
	before, _ := n.fixture.second.counts()
	if _, _, err := n.Payout(t.Context(), n.fixture.caller(), n.fixture.toTelecel()); err != nil {
		t.Fatalf("the next payout: %v", err)
	}
	n.quiet()
	if posts, _ := n.fixture.second.counts(); posts != before+1 {
		t.Errorf("the next payout was submitted %d times", posts-before)
	}
}

func TestProbe_returnedByRequest(t *testing.T) {
	for name, submitsNothing := range map[string]func(*testing.T, *node){
		"a payment that a recovery adopts": func(t *testing.T, n *node) {
			n.startRecovery(t, true)
			n.clock.Advance(10 * time.Minute)
			r := n.fixture.toTelecel()
			reference := n.References(n.fixture.tenant, book.KindPayout, r.Reference)[0]
			n.fixture.second.hasReference(reference, r.Amount, string(r.MSISDN), pending)
			if _, _, err := n.Payout(t.Context(), n.fixture.caller(), r); err != nil || n.fixture.second.posted(reference) != 0 {
				t.Fatalf("%v, submitted %d times", err, n.fixture.second.posted(reference))
			}
		},
		"a payment that a recovery keeps waiting": func(t *testing.T, n *node) {
			n.startRecovery(t, true)
			n.clock.Advance(10 * time.Minute)
			n.fixture.second.script(always(pending), always(unknown))
			_, _, err := n.Payout(t.Context(), n.fixture.caller(), n.fixture.toTelecel())
			if problem.From(err).Code != "recovering" {
				t.Fatal(err)
			}
			n.fixture.second.script(always(pending), always(notFound))
		},
		"a payment without funds": func(t *testing.T, n *node) {
			r := n.fixture.toTelecel()
			r.Amount = 2 * funds
			_, _, err := n.Payout(t.Context(), n.fixture.caller(), r)
			wantKind(t, err, problem.InsufficientFunds)
		},
		"a repeated request": func(t *testing.T, n *node) {
			r := n.fixture.toTelecel()
			r.Reference = "sent-before-01"
			_, _, err := n.Payout(t.Context(), n.fixture.caller(), r)
			wantKind(t, err, problem.Duplicate)
		},
		"an order whose top-up waits for its collection": func(t *testing.T, n *node) {
			n.halfOpen(route.TopUp)
			for range 2 {
				if _, _, _, err := n.AirtimeBuy(t.Context(), n.fixture.caller(), n.airtime()); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.recovers = true
				n := h.node("a")
				h.first.script(always(pending), always(notFound))
				h.second.script(always(pending), always(notFound))
				r := h.toTelecel()
				r.Reference = "sent-before-01"
				if _, _, err := n.Payout(t.Context(), h.caller(), r); err != nil {
					t.Fatal(err)
				}
				n.quiet()
				n.halfOpen(route.DisburseWallet)
				submitsNothing(t, n)
				n.submitsNext(t)
			})
		})
	}
}

func TestProbe_returnedByJob(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		dead := h.stopped("dead")
		dead.crash(t, "TELECEL")
		dead.startRecovery(t, false) // the recovery is closed: nothing may be submitted
		n := h.node("heir")
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(notFound))
		n.halfOpen(route.DisburseWallet)
		n.pass(time.Minute)
		if posts, _ := h.second.counts(); posts != 0 {
			t.Fatal("it was submitted while the recovery is closed")
		}
		if _, probe, err := n.routes.Choose(t.Context(), route.DisburseWallet, "TELECEL", h.tenant.ID, "test"); err != nil || probe == nil {
			t.Errorf("the next request: %v, its probe is %v", err, probe)
		}
	})
}

func TestProbe_bundle(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.sells(pending, provider.Offer{Display: "1GB", Value: "data_1", Amount: 10 * money.Cedi})
		offer := n.offered("telecel_data", telecel)
		n.halfOpen(route.Bundle)
		for range 2 { // the first request closes the breaker
			r := BuyBundle{MSISDN: telecel, ServiceID: n.serviceID("telecel_data"), OfferID: offer.ID, Network: msisdn.Telecel}
			if _, _, err := n.BuyBundle(t.Context(), h.caller(), r); err != nil {
				t.Fatal(err)
			}
			n.quiet()
		}
		if len(h.second.shop.bought) != 2 {
			t.Errorf("%d bought", len(h.second.shop.bought))
		}
	})
}
