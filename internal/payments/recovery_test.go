package payments

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// startRecovery starts a recovery. It opens the recovery if opened is set.
func (n *node) startRecovery(t *testing.T, opened bool) {
	t.Helper()
	if err := n.lost.Begin(t.Context(), "a test", n.clock.Now().Add(-time.Hour), "", "node"); err != nil {
		t.Fatal(err)
	}
	if opened {
		if err := n.lost.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
	}
	n.seesRecovery(t)
}

// seesRecovery reads the state of the recovery, as a server's watch does.
func (n *node) seesRecovery(t *testing.T) {
	t.Helper()
	if _, err := n.lost.State(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// hasReference makes a rail know one reference and no other.
func (s *scripted) hasReference(reference string, amount money.Pesewas, party string, o provider.Outcome) {
	s.mu.Lock()
	s.gross[reference], s.party[reference] = amount, party
	s.mu.Unlock()
	s.script(always(pending), func(_ int, asked string) provider.Outcome {
		if provider.SameReference(asked, reference) {
			return o
		}
		return notFound
	})
}

func (s *scripted) posted(reference string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submissions[reference]
}

// Before the restore the payout was sent, over this rail or the other. The restored database lacks it. The repeated
// request adopts it with the rail's status.
func TestRecovery_paysOnce(t *testing.T) {
	for _, rail := range []string{"mtn", "hubtel"} {
		for name, tt := range map[string]struct {
			there   provider.Outcome
			status  book.Status
			refused bool
			spent   money.Pesewas
		}{
			"paid":    {success, book.StatusSuccess, false, 1010},
			"pending": {pending, book.StatusPending, false, 1010},
			"failed":  {failed, book.StatusFailed, true, 0},
		} {
			t.Run(rail+" "+name, func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					h := newFixture(t, d)
					h.recovers = true
					n := h.node("a")
					n.startRecovery(t, true)
					n.clock.Advance(10 * time.Minute)
					r := h.payout()
					reference := n.References(h.tenant, book.KindPayout, r.Reference)[0]
					h.first.script(always(pending), always(notFound))
					h.second.script(always(pending), always(notFound))
					has := map[string]*scripted{"mtn": h.first, "hubtel": h.second}[rail]
					has.hasReference(reference, 10*money.Cedi, string(r.MSISDN), tt.there)
					pay, _, err := n.Payout(t.Context(), h.caller(), r)
					if tt.refused {
						pay = wantKind(t, err, problem.Refused).Data.(book.Payment)
					} else if err != nil {
						t.Fatal(err)
					}
					n.pass(2 * time.Second)
					is := n.must(book.KindPayout, pay.ID)
					if is.Status != tt.status || is.Rail != rail || is.ProviderReference != reference {
						t.Errorf("it is %s at %s as %s", is.Status, is.Rail, is.ProviderReference)
					}
					if h.first.posted(reference)+h.second.posted(reference) != 0 {
						t.Error("it was sent again")
					}
					if spent := funds - n.balance(); spent != tt.spent {
						t.Errorf("the wallet is down by %s", spent)
					}
					n.books()
				})
			})
		}
	}
}

// A restore lost a payout after a new master key became active. The repeated request has the same reference as
// before, so the provider recognizes it.
func TestRecovery_rotatedMasterKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ring := func(keys ...string) config.Secret {
			s, err := config.ParseSecret(strings.Join(keys, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first, second := strings.Repeat("1f", config.SecretBytes), strings.Repeat("2e", config.SecretBytes)
		h := newFixture(t, d)
		h.recovers = true
		h.secret = ring(first)
		before := h.stopped("before")
		r := h.payout()
		reference := before.References(h.tenant, book.KindPayout, r.Reference)[0]
		for name, rotated := range map[string]config.Secret{"rotated": ring(second, first), "without the first": ring(second).WithReference(ring(first))} {
			h.secret = rotated
			if got := h.stopped(name).References(h.tenant, book.KindPayout, r.Reference)[0]; got != reference {
				t.Errorf("%s: the reference is %s, and was %s", name, got, reference)
			}
		}
		h.secret = ring(second, first)
		n := h.node("after")
		n.startRecovery(t, true)
		n.clock.Advance(10 * time.Minute)
		h.second.script(always(pending), always(notFound))
		h.first.hasReference(reference, 10*money.Cedi, string(r.MSISDN), success)
		pay, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || h.first.posted(reference) != 0 || is.ProviderReference != reference {
			t.Errorf("it is %s as %s, sent %d times", is.Status, is.ProviderReference, h.first.posted(reference))
		}
		n.books()
	})
}

// If a rail does not answer, or answers not found too early, the request gets a 503 and leaves no row. An operator
// may skip a rail.
func TestRecovery_silentRail(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		n.startRecovery(t, false)
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(unknown))
		r := h.payout()
		turnedAway := func(when string) {
			t.Helper()
			_, _, err := n.Payout(t.Context(), h.caller(), r)
			if !problem.Is(err, problem.Unavailable) {
				t.Errorf("%s: %v", when, err)
			} else if e := problem.From(err); e.Code != "recovering" || e.RetryAfter <= 0 {
				t.Errorf("%s: %s, to come again in %v", when, e.Code, e.RetryAfter)
			}
			if _, err := n.Status(t.Context(), h.tenant.ID, r.Reference); !problem.Is(err, problem.Unavailable) {
				t.Errorf("%s the status is %v", when, err)
			}
			if n.balance() != funds {
				t.Errorf("%s the wallet has %s", when, n.balance())
			}
		}
		turnedAway("closed")
		if posts, asks := h.first.counts(); posts != 0 || asks != 0 {
			t.Errorf("closed: %d POSTs, %d questions for a customer", posts, asks)
		}
		if err := n.lost.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
		n.clock.Advance(10 * time.Minute)
		turnedAway("with a silent rail")
		if err := n.lost.Skip(t.Context(), "hubtel", "test", "it is closed for good", "ama"); err != nil {
			t.Fatal(err)
		}
		h.first.script(always(pending), sequence(notFound, notFound, success))
		if _, _, err := n.Payout(t.Context(), h.caller(), r); err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		if posts, _ := h.first.counts(); posts != 1 || n.balance() != funds-1010 {
			t.Errorf("skipped: %d POSTs, the wallet has %s", posts, n.balance())
		}
		n.books()
	})
}

// A not-found answer counts only if VisibleAfter (V) has passed since the recovery began.
func TestRecovery_notFoundBeforeVisible(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(notFound))
		n.startRecovery(t, true)
		n.clock.Advance(5*time.Minute - time.Second) // V of the slower rail minus a second
		r := h.payout()
		_, _, err := n.Payout(t.Context(), h.caller(), r)
		if e := wantKind(t, err, problem.Unavailable); e.RetryAfter != time.Second {
			t.Errorf("to come again in %v", e.RetryAfter)
		}
		n.clock.Advance(time.Second)
		h.first.script(always(pending), sequence(notFound, notFound, success))
		pay, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Second)
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || h.first.posted(pay.ProviderReference) != 1 {
			t.Errorf("it is %s after %d POSTs", is.Status, h.first.posted(pay.ProviderReference))
		}
		n.books()
	})
}

// Two payments wait for an operator: one that the wallet does not cover, and one that has another amount at the
// provider. Neither gives a 400 or a row.
func TestRecovery_conflictWaits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		n.startRecovery(t, true)
		n.clock.Advance(10 * time.Minute)
		h.second.script(always(pending), always(notFound))
		dear := h.payout()
		dear.Amount = funds
		h.first.hasReference(n.References(h.tenant, book.KindPayout, dear.Reference)[0], funds, string(dear.MSISDN), success)
		_, _, err := n.Payout(t.Context(), h.caller(), dear)
		wantKind(t, err, problem.Unavailable)
		other := h.payout()
		h.first.hasReference(n.References(h.tenant, book.KindPayout, other.Reference)[0], 5*money.Cedi, string(other.MSISDN), success)
		_, _, err = n.Payout(t.Context(), h.caller(), other)
		wantKind(t, err, problem.Unavailable)
		list, err := n.lost.Conflicts(t.Context())
		if err != nil || len(list) != 2 || n.balance() != funds {
			t.Fatalf("%+v, %v, the wallet has %s", list, err, n.balance())
		}
		n.sound()

		// The same request is adopted once the wallet covers it. This resolves the conflict.
		if err := n.Fund(t.Context(), h.tenant.ID, 2*funds, "funded again", "ama"); err != nil {
			t.Fatal(err)
		}
		other.Amount = 5 * money.Cedi
		if _, _, err := n.Payout(t.Context(), h.caller(), other); err != nil {
			t.Fatal(err)
		}
		h.first.hasReference(n.References(h.tenant, book.KindPayout, dear.Reference)[0], funds, string(dear.MSISDN), success)
		if _, _, err := n.Payout(t.Context(), h.caller(), dear); err != nil {
			t.Fatal(err)
		}
		if list, err := n.lost.Conflicts(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		// The next sweep removes a conflict that an earlier version left in the list.
		gone := recovery.Conflict{Tenant: h.tenant.ID, Kind: "payout", Reference: dear.Reference, ProviderReference: n.References(h.tenant, book.KindPayout, dear.Reference)[0], Rail: "mtn"}
		open := recovery.Conflict{Tenant: h.tenant.ID, Kind: "payout", Reference: "never-came-again", ProviderReference: n.References(h.tenant, book.KindPayout, "never-came-again")[0], Rail: "mtn"}
		another := recovery.Conflict{Tenant: h.tenant.ID, Kind: "collection", Reference: dear.Reference, ProviderReference: n.References(h.tenant, book.KindCollection, dear.Reference)[0], Rail: "mtn"}
		for _, c := range []recovery.Conflict{gone, open, another} {
			if err := n.lost.Note(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		n.pass(2 * recheckEvery)
		list, err = n.lost.Conflicts(t.Context())
		kept := slices.ContainsFunc(list, func(c recovery.Conflict) bool { return c.Kind == another.Kind && c.Reference == another.Reference })
		if err != nil || len(list) != 2 || !kept {
			t.Errorf("%+v, %v", list, err)
		}
		if err := n.lost.Dismiss(t.Context(), h.tenant.ID, open.Reference); err != nil {
			t.Fatal(err)
		}
		if err := n.lost.Dismiss(t.Context(), h.tenant.ID, open.Reference); !problem.Is(err, problem.NotFound) {
			t.Errorf("again: %v", err)
		}
		n.sound()
	})
}

// Airtime has only one rail, which refuses a repeated reference. Its report still counts in a recovery. An uncovered
// amount is not answered with a 400, and another amount is not debited.
func TestRecovery_onlyRailHasPayment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		h.rails = []provider.Rail{
			{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Collector: h.first, Disburser: h.first},
			{Name: "hubtel", Mode: "test", VisibleAfter: 5 * time.Minute, UnpaidAfter: 5 * time.Minute, TopUpper: h.second},
		}
		n := h.node("a")
		n.startRecovery(t, true)
		h.second.script(always(pending), always(notFound))
		dear := n.topUp()
		dear.Amount = 50 * money.Cedi
		if err := n.Adjust(t.Context(), h.tenant.ID, -(n.balance() - 10*money.Cedi), "it was funded in the time that is lost", "ama"); err != nil {
			t.Fatal(err)
		}
		_, _, err := n.TopUp(t.Context(), h.caller(), dear)
		wantKind(t, err, problem.Unavailable) // a not-found answer does not count yet
		n.clock.Advance(10 * time.Minute)
		_, _, err = n.TopUp(t.Context(), h.caller(), dear)
		wantKind(t, err, problem.InsufficientFunds)
		h.second.hasReference(n.References(h.tenant, book.KindTopUp, dear.Reference)[0], dear.Amount, string(dear.MSISDN), success)
		_, _, err = n.TopUp(t.Context(), h.caller(), dear)
		wantKind(t, err, problem.Unavailable)

		wrong := n.topUp()
		wrong.Amount = 6 * money.Cedi
		reference := n.References(h.tenant, book.KindTopUp, wrong.Reference)[0]
		h.second.hasReference(reference, 5*money.Cedi, string(wrong.MSISDN), success)
		_, _, err = n.TopUp(t.Context(), h.caller(), wrong)
		wantKind(t, err, problem.Unavailable)
		if list, err := n.lost.Conflicts(t.Context()); err != nil || len(list) != 2 || n.balance() != 10*money.Cedi {
			t.Errorf("%+v, %v; the wallet has %s", list, err, n.balance())
		}
		wrong.Amount = 5 * money.Cedi
		pay, _, err := n.TopUp(t.Context(), h.caller(), wrong)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		if is := n.must(book.KindTopUp, pay.ID); is.Status != book.StatusSuccess || h.second.posted(reference) != 0 || n.balance() != 5*money.Cedi {
			t.Errorf("it is %s after %d POSTs, the wallet has %s", is.Status, h.second.posted(reference), n.balance())
		}

		// A rail that does not answer does not block the payment.
		h.second.script(always(pending), sequence(unknown, success))
		quiet := n.topUp()
		if pay, _, err = n.TopUp(t.Context(), h.caller(), quiet); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if is := n.must(book.KindTopUp, pay.ID); is.Status != book.StatusSuccess || h.second.posted(pay.ProviderReference) != 1 {
			t.Errorf("it is %s after %d POSTs", is.Status, h.second.posted(pay.ProviderReference))
		}
		n.sound()
	})
}

// An offer was made and bought after the backup. A repeated purchase is a 404 only if a rail answers not found after
// VisibleAfter.
func TestRecovery_bundleWithoutOffer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		h.second.sells(pending, oneGiga)
		r := BuyBundle{MSISDN: telecel, ServiceID: n.serviceID("telecel_data"), OfferID: "of-the-life-before", Network: msisdn.Telecel, Reference: h.reference()}
		reference := n.References(h.tenant, book.KindBundle, r.Reference)[0]
		buy := func(want problem.Kind) {
			t.Helper()
			if _, _, err := n.BuyBundle(t.Context(), h.caller(), r); !problem.Is(err, want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		n.startRecovery(t, false)
		buy(problem.Unavailable)
		if err := n.lost.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
		h.second.script(always(pending), always(unknown))
		h.first.script(always(pending), always(notFound))
		buy(problem.Unavailable)
		h.second.script(always(pending), always(notFound))
		n.clock.Advance(10 * time.Minute)
		buy(problem.NotFound)
		h.second.hasReference(reference, oneGiga.Amount, string(telecel), success)
		buy(problem.Unavailable)
		list, err := n.lost.Conflicts(t.Context())
		if err != nil || len(list) != 1 || list[0].Reference != r.Reference {
			t.Errorf("%+v, %v", list, err)
		}
		if n.balance() != funds || len(h.second.shop.bought) != 0 {
			t.Errorf("the wallet has %s, bought %v", n.balance(), h.second.shop.bought)
		}
	})
}

// A payment that is unsent in the backup may have been sent to another rail later. All rails are therefore searched.
func TestRecovery_openPaymentsAreSearched(t *testing.T) {
	for _, network := range []string{"MTN", "TELECEL"} {
		for name, elsewhere := range map[string]bool{"gone elsewhere": true, "never sent": false} {
			t.Run(network+" "+name, func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					h := newFixture(t, d)
					h.recovers = true
					dead := h.stopped("dead")
					pay := dead.crash(t, network)
					dead.startRecovery(t, false)
					own, other := h.first, h.second
					if network != "MTN" {
						own, other = h.second, h.first
					}
					own.script(always(pending), always(notFound))
					other.script(always(pending), always(notFound))
					if elsewhere {
						other.hasReference(pay.ProviderReference, pay.Amount, pay.Account, success)
					}
					n := h.node("heir")
					n.pass(time.Minute)
					if own.posted(pay.ProviderReference)+other.posted(pay.ProviderReference) != 0 {
						t.Error("it was sent while customers are kept out")
					}
					if err := n.lost.Open(t.Context(), "redone", "ama"); err != nil {
						t.Fatal(err)
					}
					n.pass(10 * time.Minute)
					is := n.must(book.KindPayout, pay.ID)
					if elsewhere && (is.Status != book.StatusSuccess || is.Rail == pay.Rail || own.posted(pay.ProviderReference) != 0) {
						t.Errorf("it is %s at %s, sent %d times", is.Status, is.Rail, own.posted(pay.ProviderReference))
					}
					if !elsewhere && own.posted(pay.ProviderReference) == 0 {
						t.Errorf("it is %s and was never sent", is.Status)
					}
					if other.posted(pay.ProviderReference) != 0 {
						t.Error("it was sent to the other rail")
					}
					n.sound()
				})
			})
		}
	}
}

// The provider's id of an adopted payment is stored. Operators need it, and so does a node that takes over the row.
func TestRecovery_storesUpstreamID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		dead := h.stopped("dead")
		open := dead.crash(t, "MTN")
		dead.startRecovery(t, true)
		h.clock.Advance(10 * time.Minute)
		there := pending
		there.UpstreamID = "up-new"
		r := h.payout()
		h.first.script(always(pending), always(notFound))
		h.second.hasReference(dead.References(h.tenant, book.KindPayout, r.Reference)[0], r.Amount, string(r.MSISDN), there)
		gone := make(chan struct{})
		close(gone)
		r.Gone = gone
		pay, _, err := dead.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		there.UpstreamID = "up-open"
		h.second.hasReference(open.ProviderReference, open.Gross(), open.Account, there)
		heir := h.stopped("heir")
		heir.follower.runJob(t.Context(), openJob(open, h.clock.Now(), jobs.Job{Adopted: true}))
		for id, want := range map[string]string{pay.ID: "up-new", open.ID: "up-open"} {
			if is := heir.must(book.KindPayout, id); is.Status != book.StatusPending || is.Rail != "hubtel" || is.UpstreamID != want {
				t.Errorf("it is %s at %s, the provider's id is %q, want %q", is.Status, is.Rail, is.UpstreamID, want)
			}
		}
		heir.sound()
	})
}

// A purchase without any key waits for an operator. A purchase with an Idempotency-Key is searched by the references
// of each day since the backup.
func TestRecovery_purchaseWithoutKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		networks, err := n.routes.Networks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(notFound))
		n.startRecovery(t, true)
		n.clock.Advance(10 * time.Minute)
		buy := AirtimeBuy{Destination: "233241112222", Payer: "233241234567", Network: "MTN", Amount: 500, NetworkID: networks[0].ID}
		_, _, _, err = n.AirtimeBuy(t.Context(), h.caller(), buy)
		wantKind(t, err, problem.Unavailable)
		keyed := h.caller()
		keyed.IdempotencyKey, keyed.BodyHash = "key-of-the-customer", "hash"
		asked := newPayment(keyed, h.tenant, book.KindCollection)
		asked.IdempotencyKey = keyed.IdempotencyKey
		asked.Reference = n.references.generatedReference(asked, n.clock.Now().AddDate(0, 0, -1))
		before := n.references.make(asked)
		h.first.hasReference(before, 500, "233241234567", success)
		if err := n.lost.Begin(t.Context(), "again", time.Time{}, "", "node"); err != nil {
			t.Fatal(err)
		}
		if err := n.lost.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
		n.seesRecovery(t)
		n.clock.Advance(10 * time.Minute)
		pay, topUp, _, err := n.AirtimeBuy(t.Context(), keyed, buy)
		if err != nil || pay.ProviderReference != before || h.first.posted(before) != 0 {
			t.Fatalf("%s, %v, sent %d times", pay.ProviderReference, err, h.first.posted(before))
		}
		// The top-up is also searched by the reference of that day.
		if is := n.must(book.KindTopUp, topUp.ID); is.Reference != asked.Reference || is.ProviderReference != n.References(h.tenant, book.KindTopUp, asked.Reference)[0] {
			t.Errorf("the top-up is %s, at providers %s", is.Reference, is.ProviderReference)
		}
		if err := n.lost.Allow(t.Context(), h.tenant.ID, "looked at the statement", "ama"); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := n.AirtimeBuy(t.Context(), h.caller(), buy); err != nil {
			t.Errorf("allowed: %v", err)
		}
	})
}

// An operator claims a payment of a provider's statement that no client repeats. It is adopted and not sent.
func TestClaim_adoptedNeverSent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		there, nowhere := h.reference(), h.reference()
		if err := n.lost.Make(t.Context(), []recovery.Claim{h.claim(there)}); !problem.Is(err, problem.Invalid) {
			t.Errorf("without a recovery: %v", err)
		}
		n.startRecovery(t, true)
		h.first.script(always(pending), always(notFound))
		h.second.hasReference(n.References(h.tenant, book.KindPayout, there)[0], 1000, "233241234567", success)
		if err := n.lost.Make(t.Context(), []recovery.Claim{h.claim(there), h.claim(nowhere)}); err != nil {
			t.Fatal(err)
		}
		n.adoptsOne(there, nowhere)
		n.books()
	})
}

// claim returns a claim of a payout of 10 cedis.
func (h *fixture) claim(reference string) recovery.Claim {
	return recovery.Claim{Tenant: h.tenant.ID, Kind: "payout", Reference: reference, Amount: 1000, Channel: "MTN", Party: "233241234567", Actor: "ama"}
}

// adoptsOne sweeps two claims. Hubtel has the first payout, which is adopted. No provider has the second, which is
// refused. Nothing is sent.
func (n *node) adoptsOne(there, nowhere string) {
	t, h := n.fixture.t, n.fixture
	t.Helper()
	n.pass(2 * recheckEvery)
	states := map[string]recovery.ClaimState{}
	all, err := n.lost.Claims(t.Context())
	for _, c := range all {
		states[c.Reference] = c.State
	}
	if err != nil || states[there] != recovery.ClaimAdopted || states[nowhere] != recovery.ClaimRefused {
		t.Errorf("%+v, %v", all, err)
	}
	rows, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout})
	if err != nil || len(rows.Rows) != 1 || rows.Rows[0].Status != book.StatusSuccess || rows.Rows[0].Rail != "hubtel" {
		t.Errorf("%+v, %v", rows.Rows, err)
	}
	first, _ := h.first.counts()
	second, _ := h.second.counts()
	if first+second != 0 || n.balance() != funds-1010 {
		t.Errorf("%d POSTs, the wallet has %s", first+second, n.balance())
	}
}

// A claim is adopted also if its provider is paused or has no route.
func TestClaim_needsNoRoute(t *testing.T) {
	for name, away := range map[string]func(n *node){
		"paused": func(n *node) {
			n.pauseRail("mtn")
			n.pauseRail("hubtel")
		},
		"not routed": func(n *node) {
			n.setRoute(route.DisburseWallet, "mtn")
			n.pauseRail("mtn")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.recovers = true
				n := h.node("a")
				n.startRecovery(t, true)
				away(n)
				there, nowhere := h.reference(), h.reference()
				h.first.script(always(pending), always(notFound))
				h.second.hasReference(n.References(h.tenant, book.KindPayout, there)[0], 1000, "233241234567", success)
				if err := n.lost.Make(t.Context(), []recovery.Claim{h.claim(there), h.claim(nowhere)}); err != nil {
					t.Fatal(err)
				}
				n.adoptsOne(there, nowhere)
				n.sound()
			})
		})
	}
}

// The recovery ends while the sweep reads claims. The next claim stays open, and no new payout is sent for it.
func TestClaim_recoveryEndsDuringSweep(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		n.startRecovery(t, true)
		claim := h.claim(h.reference())
		if err := n.lost.Make(t.Context(), []recovery.Claim{claim}); err != nil {
			t.Fatal(err)
		}
		if err := n.lost.End(t.Context(), "all is looked for", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := n.claim(t.Context(), claim); err != nil {
			t.Error(err)
		}
		n.pass(time.Minute)
		all, err := n.lost.Claims(t.Context())
		if err != nil || len(all) != 1 || all[0].State != recovery.ClaimWaiting {
			t.Errorf("%+v, %v", all, err)
		}
		first, _ := h.first.counts()
		second, _ := h.second.counts()
		if first+second != 0 || n.balance() != funds {
			t.Errorf("%d POSTs, the wallet has %s", first+second, n.balance())
		}
		n.sound()
	})
}

// A removed provider account blocks its channels until an operator skips the account.
func TestRecovery_removedProviderAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		h.first.script(always(pending), always(notFound))
		h.second.script(always(pending), always(notFound))
		if err := n.lost.Use(t.Context(), []recovery.Account{{Rail: "paystack", Mode: "test", Fingerprint: "f"}, {Rail: "paystack", Mode: "live", Fingerprint: "g"}}); err != nil {
			t.Fatal(err)
		}
		n.clock.Advance(time.Minute)
		n.startRecovery(t, true)
		n.clock.Advance(10 * time.Minute)
		r := h.payout()
		_, _, err := n.Payout(t.Context(), h.caller(), r)
		wantKind(t, err, problem.Unavailable)
		if err := n.lost.Skip(t.Context(), "paystack", "test", "its statement has nothing", "ama"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.Payout(t.Context(), h.caller(), r); err != nil {
			t.Error(err)
		}
	})
}

// Outside a recovery a payment is sent without a query before it.
func TestPayout_noQueryWithoutRecovery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		n := h.node("a")
		if _, _, err := n.Payout(t.Context(), h.caller(), h.payout()); err != nil {
			t.Fatal(err)
		}
		if _, asks := h.first.counts(); asks != 0 {
			t.Errorf("%d questions", asks)
		}
		if _, err := n.Status(t.Context(), h.tenant.ID, "nobody-has-this-one"); !problem.Is(err, problem.NotFound) {
			t.Errorf("an unknown reference: %v", err)
		}
	})
}
