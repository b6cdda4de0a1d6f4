package payments

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// shop has the scripted responses of a rail to lookups of names and packages.
type shop struct {
	offers  []provider.Offer
	outcome provider.Outcome // outcome of queries for names and offers
	bought  []provider.BundleRequest
	holder  string // of every account; empty: AKOSUA TEST
}

func (s *scripted) WalletName(context.Context, msisdn.Network, msisdn.MSISDN) (string, provider.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shop.name(), s.shop.outcome
}

func (s *scripted) BankName(context.Context, string, string) (string, provider.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shop.name(), s.shop.outcome
}

func (s *shop) name() string {
	if s.outcome.Class == provider.Accepted {
		return cmp.Or(s.holder, "AKOSUA TEST")
	}
	return ""
}

func (s *scripted) Offers(context.Context, provider.OffersRequest) ([]provider.Offer, string, provider.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shop.offers), s.shop.name(), s.shop.outcome
}

func (s *scripted) BuyBundle(ctx context.Context, r provider.BundleRequest) provider.Outcome {
	s.mu.Lock()
	s.shop.bought = append(s.shop.bought, r)
	s.mu.Unlock()
	return s.post(ctx, r.ProviderReference, r.Offer.Amount, string(r.MSISDN))
}

func (s *scripted) BundleStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	return s.ask(r)
}

func (s *scripted) sells(o provider.Outcome, offers ...provider.Offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shop.offers, s.shop.outcome = offers, o
}

const telecel msisdn.MSISDN = "233201234567"

func (n *node) networkID(network msisdn.Network) string {
	n.fixture.t.Helper()
	all, err := n.routes.Networks(n.fixture.t.Context())
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	for _, one := range all {
		if one.Network == network {
			return one.ID
		}
	}
	n.fixture.t.Fatalf("no network %s", network)
	return ""
}

func (n *node) serviceID(key string) string {
	n.fixture.t.Helper()
	all, err := n.routes.Services(n.fixture.t.Context())
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	for _, one := range all {
		if one.Key == key {
			return one.ID
		}
	}
	n.fixture.t.Fatalf("no service %s", key)
	return ""
}

func (n *node) bankID(code string) string {
	n.fixture.t.Helper()
	all, err := n.routes.Catalogue(n.fixture.t.Context())
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	for _, one := range all.Banks {
		if one.Code == code {
			return one.ID
		}
	}
	n.fixture.t.Fatalf("no bank %s", code)
	return ""
}

func (n *node) topUp() TopUp {
	return TopUp{MSISDN: telecel, Amount: 5 * money.Cedi, NetworkID: n.networkID(msisdn.Telecel), Reference: n.fixture.reference()}
}

func TestTopUp_debitsAndRefunds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		r := n.topUp()
		pay, _, err := n.TopUp(t.Context(), h.caller(), r)
		if err != nil || pay.PublicStatus() != "submitted" || pay.Details.NetworkID != r.NetworkID {
			t.Fatalf("%+v, %v", pay, err)
		}
		if is := n.balance(); is != funds-r.Amount {
			t.Fatalf("the wallet has %s after a top-up of %s", is, r.Amount)
		}
		_, _, err = n.TopUp(t.Context(), h.caller(), r)
		if old, ok := wantKind(t, err, problem.Duplicate).Data.(book.Payment); !ok || old.ID != pay.ID {
			t.Fatalf("the duplicate's data is %v", problem.From(err).Data)
		}
		n.quiet()
		// The provider reports the failure during the customer's status request.
		h.second.script(always(pending), always(failed))
		now, err := n.StatusTopUp(t.Context(), h.tenant.ID, r.Reference)
		if err != nil || now.PublicStatus() != "failed" || now.Reason != provider.ReasonFunds {
			t.Fatalf("%s %s, %v", now.PublicStatus(), now.Reason, err)
		}
		if is := n.balance(); is != funds {
			t.Fatalf("the wallet has %s after the refund", is)
		}
		if _, err := n.StatusTopUp(t.Context(), h.tenant.ID, "none-of-this-name"); !problem.Is(err, problem.NotFound) {
			t.Fatal(err)
		}
		n.books()
	})
}

func TestTopUp_refusals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		for field, spoil := range map[string]func(*TopUp){
			"amount":         func(r *TopUp) { r.Amount = MinTopUp - 1 },
			"phone_number":   func(r *TopUp) { r.MSISDN = "0201234567" },
			"network_id":     func(r *TopUp) { r.NetworkID = "no-such-network" },
			"transaction_id": func(r *TopUp) { r.Reference = "short" },
			"callback_url":   func(r *TopUp) { r.CallbackURL = "ftp://example.org" },
		} {
			r := n.topUp()
			spoil(&r)
			_, _, err := n.TopUp(t.Context(), h.caller(), r)
			if names := wantKind(t, err, problem.Invalid).FieldNames(); !slices.Equal(names, []string{field}) {
				t.Errorf("the bad fields are %v, want %s", names, field)
			}
		}
		r := n.topUp()
		r.Amount = MaxTopUp + 1
		if _, _, err := n.TopUp(t.Context(), h.caller(), r); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
		poor := n.newTenant(4 * money.Cedi)
		r = n.topUp()
		_, _, err := n.TopUp(t.Context(), idempotency.Caller{Tenant: poor.ID}, r)
		wantKind(t, err, problem.InsufficientFunds)
		if err := n.Fund(t.Context(), poor.ID, 1*money.Cedi, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.TopUp(t.Context(), idempotency.Caller{Tenant: poor.ID}, r); err != nil {
			t.Errorf("the same reference after a refusal: %v", err)
		}
		if posts, _ := h.second.counts(); posts > 1 {
			t.Errorf("%d POSTs", posts)
		}
		n.quiet()
		n.books()
	})
}

// The network was switched off or renumbered after the first request. A repeated request returns the same top-up,
// because its money was debited. A new request is refused, and the error names all faults.
func TestTopUp_repeatedWithoutNetwork(t *testing.T) {
	for name, edit := range map[string]route.Edit{"inactive": {Status: route.Inactive}, "gone": {ID: "another-id"}} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				r := n.topUp()
				c := h.caller()
				c.IdempotencyKey, c.BodyHash = "key-of-a-top-up", "hash"
				pay, _, err := n.TopUp(t.Context(), c, r)
				if err != nil {
					t.Fatal(err)
				}
				n.quiet()
				if err := n.db.Write(t.Context(), func(tx *db.Tx) error { return n.routes.EditNetwork(tx, msisdn.Telecel, edit) }); err != nil {
					t.Fatal(err)
				}
				again, replayed, err := n.TopUp(t.Context(), c, r)
				if err != nil || !replayed || again.ID != pay.ID {
					t.Errorf("replayed %v: %s, %v", replayed, again.ID, err)
				}
				_, _, err = n.TopUp(t.Context(), h.caller(), r)
				wantKind(t, err, problem.Duplicate)
				other := r
				other.Reference, other.Amount = h.reference(), MinTopUp-1
				_, _, err = n.TopUp(t.Context(), h.caller(), other)
				if names := wantKind(t, err, problem.Invalid).FieldNames(); !slices.Equal(names, []string{"amount", "network_id"}) {
					t.Errorf("the bad fields are %v", names)
				}
				if is := n.balance(); is != funds-r.Amount {
					t.Errorf("the wallet has %s", is)
				}
				n.books()
			})
		})
	}
}

func (n *node) airtime() AirtimeBuy {
	return AirtimeBuy{Destination: telecel, Payer: "233241234567", Network: msisdn.MTN, Amount: 20 * money.Cedi, NetworkID: n.networkID(msisdn.Telecel)}
}

// The collection and its top-up are tested with every pair of outcomes.
func TestAirtimeBuy_outcomes(t *testing.T) {
	expired := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonExpired}
	for _, tt := range []struct {
		name          string
		collect       provider.Outcome // answer to a query
		topUp         provider.Outcome
		late          bool // the collection is paid after its failure
		status, child string
		posts         int // number of top-ups that were sent
		wallet        money.Pesewas
	}{
		{name: "paid and sent", collect: success, topUp: success, status: "success", child: "success", posts: 1},
		{name: "paid, not sent", collect: success, topUp: failed, status: "success", child: "failed", posts: 1, wallet: 20 * money.Cedi},
		{name: "not paid", collect: expired, topUp: success, status: "declined", child: "failed"},
		{name: "paid too late", collect: expired, topUp: success, late: true, status: "success", child: "failed", wallet: 20 * money.Cedi},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.first.script(always(pending), always(pending))
				h.second.script(always(pending), always(tt.topUp))
				pay, topUp, replayed, err := n.AirtimeBuy(t.Context(), h.caller(), n.airtime())
				if err != nil || replayed {
					t.Fatal(replayed, err)
				}
				if pay.PublicStatus() != "pending" || topUp.PublicStatus() != "pending" || pay.Charges != 0 || pay.Reference != topUp.Reference || len(pay.Reference) < 12 {
					t.Fatalf("collection %+v, top-up %+v", pay, topUp)
				}
				n.quiet()
				if posts, _ := h.second.counts(); posts != 0 {
					t.Fatal("airtime was sent before it was paid for")
				}
				h.first.script(always(pending), always(tt.collect))
				if now, err := n.Status(t.Context(), h.tenant.ID, pay.Reference); err != nil || now.Kind != book.KindCollection {
					t.Fatalf("%+v, %v", now, err)
				}
				n.pass(10 * time.Second)
				if tt.late {
					h.first.script(always(pending), always(success))
					late := n.must(book.KindCollection, pay.ID)
					if _, err := n.rechecker.recheck(t.Context(), late); err != nil {
						t.Fatal(err)
					}
					n.quiet()
				}
				child, err := n.StatusTopUp(t.Context(), h.tenant.ID, pay.Reference)
				if err != nil || child.ID != topUp.ID {
					t.Fatalf("%+v, %v", child, err)
				}
				if is := n.must(book.KindCollection, pay.ID).PublicStatus(); is != tt.status || child.PublicStatus() != tt.child {
					t.Errorf("the collection is %s and the top-up %s, want %s and %s", is, child.PublicStatus(), tt.status, tt.child)
				}
				if posts, _ := h.second.counts(); posts != tt.posts {
					t.Errorf("%d top-ups were sent, want %d", posts, tt.posts)
				}
				if is := n.balance(); is != funds+tt.wallet {
					t.Errorf("the wallet has %s, want %s", is, funds+tt.wallet)
				}
				n.books()
			})
		})
	}
}

func TestAirtimeBuy_refusalsAndReplays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		r := n.airtime()
		r.NetworkID = "no-such-network"
		_, _, _, err := n.AirtimeBuy(t.Context(), h.caller(), r)
		wantKind(t, err, problem.NotFound)

		r = n.airtime()
		r.Reference = h.reference()
		c := h.caller()
		c.IdempotencyKey, c.BodyHash = "key-of-airtime", "hash"
		pay, topUp, _, err := n.AirtimeBuy(t.Context(), c, r)
		if err != nil {
			t.Fatal(err)
		}
		again, child, replayed, err := n.AirtimeBuy(t.Context(), c, r)
		if err != nil || !replayed || again.ID != pay.ID || child.ID != topUp.ID {
			t.Fatalf("replayed %v: %s and %s, %v", replayed, again.ID, child.ID, err)
		}
		r.NetworkID = "no-such-network" // the reference is checked first
		_, _, _, err = n.AirtimeBuy(t.Context(), h.caller(), r)
		wantKind(t, err, problem.Duplicate)

		if _, err := n.db.Exec(t.Context(), `UPDATE tenants SET collections_enabled = 0 WHERE id = $1`, h.tenant.ID); err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second) // a tenant is cached for at most a second
		_, _, _, err = n.AirtimeBuy(t.Context(), h.caller(), n.airtime())
		wantKind(t, err, problem.Forbidden)
	})
}

// The error distinguishes a network without airtime from one without collections.
func TestAirtimeBuy_networkWithoutAirtime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.rails = []provider.Rail{{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), Collector: h.first}}
		n := h.node("a")
		_, _, _, err := n.AirtimeBuy(t.Context(), h.caller(), n.airtime())
		if names := wantKind(t, err, problem.Invalid).FieldNames(); !slices.Equal(names, []string{"network_id"}) {
			t.Errorf("the bad fields are %v", names)
		}
		r := n.airtime()
		r.Payer, r.Network = telecel, msisdn.Telecel
		_, _, _, err = n.AirtimeBuy(t.Context(), h.caller(), r)
		if names := wantKind(t, err, problem.Invalid).FieldNames(); !slices.Equal(names, []string{"network"}) {
			t.Errorf("the bad fields are %v", names)
		}
	})
}

var oneGiga = provider.Offer{Display: "1GB", Value: "data_1", Amount: 10 * money.Cedi}

// offered fetches the packages of a number and returns the first.
func (n *node) offered(service string, number msisdn.MSISDN) lookup.Offer {
	n.fixture.t.Helper()
	all, holder, err := n.lookups.Offers(n.fixture.t.Context(), n.fixture.tenant.ID, n.serviceID(service), number)
	if err != nil || len(all) == 0 || holder != "AKOSUA TEST" {
		n.fixture.t.Fatalf("%v of %q, %v", all, holder, err)
	}
	return all[0]
}

func TestBundle_quotedPrice(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.sells(pending, oneGiga, provider.Offer{Display: "free", Value: "data_0"})
		all, _, err := n.lookups.Offers(t.Context(), h.tenant.ID, n.serviceID("telecel_data"), telecel)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v: what has no price cannot be bought", all, err)
		}
		r := BuyBundle{MSISDN: telecel, ServiceID: n.serviceID("telecel_data"), OfferID: all[0].ID, Network: msisdn.Telecel}
		pay, _, err := n.BuyBundle(t.Context(), h.caller(), r)
		if err != nil || pay.Amount != oneGiga.Amount || pay.PublicStatus() != "submitted" || pay.ClientReference() != "" || pay.Rail != "hubtel" {
			t.Fatalf("%+v, %v", pay, err)
		}
		n.quiet()
		if b := h.second.shop.bought; len(b) != 1 || b[0].Service != "telecel_data" || b[0].Offer.Value != oneGiga.Value || b[0].Offer.Amount != oneGiga.Amount {
			t.Fatalf("bought %+v", b)
		}
		if is := n.balance(); is != funds-oneGiga.Amount {
			t.Fatalf("the wallet has %s", is)
		}
		h.second.script(always(pending), always(failed))
		now, err := n.StatusBundle(t.Context(), h.tenant.ID, pay.ProviderReference)
		if err != nil || now.PublicStatus() != "failed" || n.balance() != funds {
			t.Fatalf("%s, %v, the wallet has %s", now.PublicStatus(), err, n.balance())
		}
		// A package may be bought again within its 60 minutes.
		h.second.script(always(pending), always(success))
		h.clock.Advance(59 * time.Minute)
		if _, _, err := n.BuyBundle(t.Context(), h.caller(), r); err != nil {
			t.Fatalf("bought again: %v", err)
		}
		n.pass(10 * time.Second)
		if is := n.balance(); is != funds-oneGiga.Amount {
			t.Fatalf("the wallet has %s", is)
		}
		n.books()
	})
}

func TestBundle_foreignOfferRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.sells(pending, oneGiga)
		good := BuyBundle{MSISDN: telecel, ServiceID: n.serviceID("telecel_data"), OfferID: n.offered("telecel_data", telecel).ID, Network: msisdn.Telecel}
		stranger := n.newTenant(funds)
		ours := h.tenant
		h.tenant = stranger
		foreign := n.offered("telecel_data", telecel)
		h.tenant = ours
		for _, tt := range []struct {
			name  string
			spoil func(*BuyBundle)
			shop  provider.Outcome
			sells []provider.Offer
			want  problem.Kind
		}{
			{"unknown", func(r *BuyBundle) { r.OfferID = "no-such-package" }, pending, []provider.Offer{oneGiga}, problem.NotFound},
			{"another tenant's", func(r *BuyBundle) { r.OfferID = foreign.ID }, pending, []provider.Offer{oneGiga}, problem.NotFound},
			{"another number's", func(r *BuyBundle) { r.MSISDN = "233207654321" }, pending, []provider.Offer{oneGiga}, problem.NotFound},
			{"another service's", func(r *BuyBundle) { r.ServiceID, r.Network = n.serviceID("mtn_data"), msisdn.MTN }, pending, []provider.Offer{oneGiga}, problem.NotFound},
			{"no such service", func(r *BuyBundle) { r.ServiceID = "no-such-service" }, pending, []provider.Offer{oneGiga}, problem.NotFound},
			{"another network", func(r *BuyBundle) { r.Network = msisdn.MTN }, pending, []provider.Offer{oneGiga}, problem.Invalid},
			{"dearer now", func(*BuyBundle) {}, pending, []provider.Offer{{Display: "1GB", Value: "data_1", Amount: 11 * money.Cedi}}, problem.NotFound},
			{"gone", func(*BuyBundle) {}, pending, nil, problem.NotFound},
			{"nothing for the number", func(*BuyBundle) {}, rejected, nil, problem.NotFound},
			{"nobody answers", func(*BuyBundle) {}, unknown, nil, problem.Unavailable},
		} {
			h.second.sells(tt.shop, tt.sells...)
			r := good
			tt.spoil(&r)
			if _, _, err := n.BuyBundle(t.Context(), h.caller(), r); !problem.Is(err, tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		}
		h.second.sells(pending, oneGiga)
		h.clock.Advance(lookup.OfferTime)
		if _, _, err := n.BuyBundle(t.Context(), h.caller(), good); !problem.Is(err, problem.NotFound) {
			t.Errorf("expired: %v", err)
		}
		if n.balance() != funds || len(h.second.shop.bought) != 0 {
			t.Errorf("the wallet has %s, bought %v", n.balance(), h.second.shop.bought)
		}
	})
}

// Two requests without an Idempotency-Key are two purchases. Two requests with the same key are one purchase, even
// after the offer has expired.
func TestBundle_boughtTwiceAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.sells(pending, oneGiga)
		r := BuyBundle{MSISDN: telecel, ServiceID: n.serviceID("telecel_data"), OfferID: n.offered("telecel_data", telecel).ID, Network: msisdn.Telecel}
		buy := func(c idempotency.Caller) map[string]int {
			ids := map[string]int{}
			var mu sync.Mutex
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					pay, _, err := n.BuyBundle(t.Context(), c, r)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					ids[pay.ID]++
				})
			}
			group.Wait()
			return ids
		}
		if ids := buy(h.caller()); len(ids) != 2 {
			t.Errorf("without a key: %v", ids)
		}
		c := h.caller()
		c.IdempotencyKey, c.BodyHash = "one-package", "hash"
		ids := buy(c)
		if len(ids) != 1 {
			t.Errorf("with a key: %v", ids)
		}
		n.quiet()
		if is := n.balance(); is != funds-3*oneGiga.Amount {
			t.Errorf("the wallet has %s", is)
		}
		h.clock.Advance(2 * lookup.OfferTime)
		pay, replayed, err := n.BuyBundle(t.Context(), c, r)
		if err != nil || !replayed || ids[pay.ID] == 0 {
			t.Errorf("replayed %v, %v", replayed, err)
		}
		c.BodyHash = "another"
		_, _, err = n.BuyBundle(t.Context(), c, r)
		wantKind(t, err, problem.Invalid)
		// A day later the key may be used again and gives another Reference.
		h.clock.Advance(24 * time.Hour)
		r.OfferID = n.offered("telecel_data", telecel).ID
		next, replayed, err := n.BuyBundle(t.Context(), c, r)
		if err != nil || replayed || next.ProviderReference == pay.ProviderReference {
			t.Errorf("replayed %v, %v", replayed, err)
		}
		n.quiet()
		n.books()
	})
}

func TestPayout_toBanks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		good := Payout{Amount: 100 * money.Cedi, BankID: n.bankID("040100"), AccountNumber: "00A1234567890", Name: "said otherwise", Reference: h.reference()}
		for _, tt := range []struct {
			name, field string
			spoil       func(*Payout)
			shop        provider.Outcome
			want        problem.Kind
		}{
			{"short account", "account_number", func(r *Payout) { r.AccountNumber = "123456" }, pending, problem.Invalid},
			{"long account", "account_number", func(r *Payout) { r.AccountNumber = "12345678901234567" }, pending, problem.Invalid},
			{"account with signs", "account_number", func(r *Payout) { r.AccountNumber = "1234-5678" }, pending, problem.Invalid},
			{"unknown bank", "bank_id", func(r *Payout) { r.BankID = "no-such-bank" }, pending, problem.Invalid},
			{"bank that nobody reaches", "bank_id", func(r *Payout) { r.BankID = n.bankID("010100") }, pending, problem.Invalid},
			{"unknown account", "account_number", func(*Payout) {}, rejected, problem.Invalid},
			{"resolver down", "", func(*Payout) {}, unknown, problem.Unavailable},
		} {
			h.second.sells(tt.shop)
			r := good
			tt.spoil(&r)
			_, _, err := n.Payout(t.Context(), h.caller(), r)
			if !problem.Is(err, tt.want) || tt.field != "" && !slices.Equal(problem.From(err).FieldNames(), []string{tt.field}) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if n.balance() != funds {
				t.Fatalf("%s: the wallet was debited", tt.name)
			}
		}
		h.second.sells(pending)
		h.second.script(always(pending), always(success))
		pay, _, err := n.Payout(t.Context(), h.caller(), good)
		if err != nil || pay.AccountName != "AKOSUA TEST" || pay.Account != good.AccountNumber || pay.Channel != book.ChannelBank {
			t.Fatalf("%+v, %v", pay, err)
		}
		n.pass(5 * time.Second)
		page, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Status: "success"})
		if err != nil || len(page.Rows) != 1 || page.Rows[0].Channel != book.ChannelBank || page.Rows[0].Account != good.AccountNumber {
			t.Fatalf("%+v, %v", page, err)
		}
		n.books()
	})
}

// Ids of a collection and of a payout are equal in every possible way. A query matches our own ids first.
func TestStatus_ownIDsFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		payout := h.payout()
		out, _, err := n.Payout(t.Context(), h.caller(), payout)
		if err != nil {
			t.Fatal(err)
		}
		collect := h.collect()
		collect.Reference = payout.Reference
		in, _, err := n.Collect(t.Context(), h.caller(), collect)
		if err != nil {
			t.Fatal(err)
		}
		trap := h.collect()
		trap.Reference = out.ProviderReference // a client's reference that equals our id of another payment
		if _, _, err := n.Collect(t.Context(), h.caller(), trap); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]string{
			payout.Reference: in.ID, out.ID: out.ID, in.ID: in.ID, out.ProviderReference: out.ID, in.ProviderReference: in.ID,
		} {
			if pay, err := n.Status(t.Context(), h.tenant.ID, id); err != nil || pay.ID != want {
				t.Errorf("%s finds %s, want %s (%v)", id, pay.ID, want, err)
			}
		}
		stranger := n.newTenant(0)
		for _, id := range []string{payout.Reference, out.ID, out.ProviderReference} {
			if _, err := n.Status(t.Context(), stranger.ID, id); !problem.Is(err, problem.NotFound) {
				t.Errorf("another tenant finds %s: %v", id, err)
			}
		}
		n.quiet()
	})
}

// If a reported status cannot be settled, the customer gets the stored status and the failure is logged.
func TestStatus_failedSettlementIsLogged(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := newFixture(t, d)
		n := h.stopped("a")
		var lines bytes.Buffer
		n.follower.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
		pay, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		h.first.hasReference(pay.ProviderReference, pay.Gross(), pay.Account, success)
		f.Decide(func(b db.Boundary) db.Fault {
			if b == db.BoundaryCommit {
				return db.FaultBefore
			}
			return db.FaultNone
		})
		is, err := n.Status(t.Context(), h.tenant.ID, pay.ID)
		f.Decide(nil)
		if err != nil || is.Status != book.StatusPending {
			t.Errorf("%s, %v", is.Status, err)
		}
		if !strings.Contains(lines.String(), pay.ID) {
			t.Errorf("the log has %q", lines.String())
		}
		n.books()
	})
}

// Status requests cause at most one query of the provider in two seconds.
func TestStatus_queriesOnceIn2s(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		r := h.collect()
		if _, _, err := n.Collect(t.Context(), h.caller(), r); err != nil {
			t.Fatal(err)
		}
		n.quiet()
		_, before := h.first.counts()
		for range 5 {
			if pay, err := n.Status(t.Context(), h.tenant.ID, r.Reference); err != nil || pay.PublicStatus() != "pending" {
				t.Fatalf("%s, %v", pay.PublicStatus(), err)
			}
		}
		if _, asks := h.first.counts(); asks-before != 1 {
			t.Errorf("%d questions for five calls at once", asks-before)
		}
		h.clock.Advance(2 * time.Second)
		n.quiet()
		h.first.script(always(pending), always(success))
		if pay, err := n.Status(t.Context(), h.tenant.ID, r.Reference); err != nil || pay.PublicStatus() != "success" {
			t.Errorf("%s, %v", pay.PublicStatus(), err)
		}
		if is, want := n.balance(), funds+r.Amount-10; is != want {
			t.Errorf("the wallet has %s as success is told, want %s", is, want)
		}
	})
}
