package lookup

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

const (
	telecel msisdn.MSISDN = "233201234567"
	bank    string        = "040100" // a bank that hubtel can pay
)

// rail is a provider that gives the same answer to every request.
type rail struct {
	outcome provider.Outcome
	name    string
	offers  []provider.Offer
	asked   int
}

func (r *rail) WalletName(context.Context, msisdn.Network, msisdn.MSISDN) (string, provider.Outcome) {
	r.asked++
	return r.name, r.outcome
}

func (r *rail) BankName(context.Context, string, string) (string, provider.Outcome) {
	r.asked++
	return r.name, r.outcome
}

func (r *rail) Offers(context.Context, provider.OffersRequest) ([]provider.Offer, string, provider.Outcome) {
	r.asked++
	return r.offers, r.name, r.outcome
}

func (r *rail) BuyBundle(context.Context, provider.BundleRequest) provider.Outcome {
	panic("a lookup buys nothing")
}

func (r *rail) BundleStatus(context.Context, provider.StatusRequest) provider.Outcome {
	panic("a lookup follows nothing")
}

// answers sets the answer of a rail.
func (r *rail) answers(o provider.Outcome, name string, offers ...provider.Offer) {
	*r = rail{outcome: o, name: name, offers: offers}
}

var (
	accepted = provider.Outcome{Class: provider.Accepted}
	rejected = provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonPayeeNotFound}
	silent   = provider.Outcome{}
	oneGiga  = provider.Offer{Display: "1GB", Value: "data_1", Amount: 10 * money.Cedi}
)

// fixture has two tenants and two rails. For names of MTN's wallets the second rail comes first; the first rail
// serves everything.
type fixture struct {
	*Lookups
	t             *testing.T
	first, second *rail
	shop, stall   tenant.Tenant
}

func open(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	c, log := clock.NewManual(morning), slog.New(slog.NewTextHandler(t.Output(), nil))
	f := &fixture{t: t, first: &rail{}, second: &rail{}}
	routes := route.New(d, c, log, []string{"mtn", "hubtel"}, []provider.Rail{
		{Name: "hubtel", Mode: "test", WalletNames: f.first, BankNames: f.first, Bundles: f.first},
		{Name: "mtn", Mode: "test", WalletNames: f.second},
	})
	tenants := tenant.New(d, ledger.New(d, c, "a"), c)
	f.Lookups = New(d, tenants, routes, c)
	if err := routes.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, made := range []*tenant.Tenant{&f.shop, &f.stall} {
			var err error
			if *made, err = tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Test}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) service(key string) route.Service {
	f.t.Helper()
	all, err := f.routes.Services(f.t.Context())
	i := slices.IndexFunc(all, func(s route.Service) bool { return s.Key == key })
	if err != nil || i < 0 {
		f.t.Fatalf("service %s: %v", key, err)
	}
	return all[i]
}

func (f *fixture) bank(code string) string {
	f.t.Helper()
	all, err := f.routes.Catalogue(f.t.Context())
	i := slices.IndexFunc(all.Banks, func(b route.Bank) bool { return b.Code == code })
	if err != nil || i < 0 {
		f.t.Fatalf("bank %s: %v", code, err)
	}
	return all.Banks[i].ID
}

// offered returns the only package that telecel is offered.
func (f *fixture) offered() Offer {
	f.t.Helper()
	f.first.answers(accepted, "AKOSUA TEST", oneGiga)
	all, holder, err := f.Offers(f.t.Context(), f.shop.ID, f.service("telecel_data").ID, telecel)
	if err != nil || len(all) != 1 || holder != "AKOSUA TEST" {
		f.t.Fatalf("%v of %q, %v", all, holder, err)
	}
	return all[0]
}

// refused checks the kind of err and the fields that it names.
func (f *fixture) refused(what string, err error, kind problem.Kind, fields ...string) {
	f.t.Helper()
	if !problem.Is(err, kind) || !slices.Equal(problem.From(err).FieldNames(), fields) {
		f.t.Errorf("%s: %v, want %s on %v", what, err, kind, fields)
	}
}

func TestWalletName_firstAnsweringRail(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		ask := func(network msisdn.Network, number msisdn.MSISDN) (string, error) {
			return f.WalletName(t.Context(), f.shop.ID, network, number)
		}
		f.first.answers(accepted, "AKOSUA TEST")
		if name, err := ask("", telecel); name != "AKOSUA TEST" || err != nil {
			t.Errorf("with a network that is guessed: %q, %v", name, err)
		}
		_, err := ask("", "233231234567")
		f.refused("a number of no network", err, problem.Invalid, "phone_number")
		if name, err := ask(msisdn.Telecel, "233231234567"); name != "AKOSUA TEST" || err != nil {
			t.Errorf("the same number with a network: %q, %v", name, err)
		}
		f.first.answers(silent, "")
		_, err = ask(msisdn.Telecel, telecel)
		f.refused("no answer", err, problem.Unavailable)
		f.second.answers(silent, "")
		f.first.answers(accepted, "ESI TEST")
		if name, err := ask(msisdn.MTN, "233241234567"); name != "ESI TEST" || err != nil || f.second.asked != 1 {
			t.Errorf("after a rail that does not answer: %q, %v, %d questions to that one", name, err, f.second.asked)
		}
		f.first.answers(rejected, "")
		_, err = ask(msisdn.Telecel, telecel)
		f.refused("a number that the network does not know", err, problem.Invalid, "phone_number")
	})
}

func TestBankName_accountCheckedFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.first.answers(accepted, "AKOSUA TEST")
		for _, tt := range []struct {
			name, bank, account string
			fields              []string
		}{
			{"short account", f.bank(bank), "123456", []string{"account_number"}},
			{"long account", f.bank(bank), "12345678901234567", []string{"account_number"}},
			{"account with signs", f.bank(bank), "1234-5678", []string{"account_number"}},
			{"unknown bank", "no-such-bank", "1234567", []string{"bank_id"}},
			{"both", "no-such-bank", "123456", []string{"account_number", "bank_id"}},
		} {
			f.refused(tt.name, f.CheckBankAccount(t.Context(), tt.bank, tt.account), problem.Invalid, tt.fields...)
			_, err := f.BankName(t.Context(), f.shop.ID, tt.bank, tt.account)
			f.refused(tt.name, err, problem.Invalid, tt.fields...)
		}
		if f.first.asked != 0 {
			t.Errorf("%d questions", f.first.asked)
		}
		if name, err := f.BankName(t.Context(), f.shop.ID, f.bank(bank), "1234567"); name != "AKOSUA TEST" || err != nil || f.first.asked != 1 {
			t.Errorf("%q, %v after %d questions", name, err, f.first.asked)
		}
		f.first.answers(rejected, "")
		_, err := f.BankName(t.Context(), f.shop.ID, f.bank(bank), "1234567")
		f.refused("an account that the bank does not know", err, problem.Invalid, "account_number")
	})
}

func TestOffers_havePriceAndID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.first.answers(accepted, "", oneGiga, provider.Offer{Display: "free", Value: "data_0"})
		service := f.service("telecel_data")
		all, holder, err := f.Offers(t.Context(), f.shop.ID, service.ID, telecel)
		if err != nil || len(all) != 1 || holder != "" {
			t.Fatalf("%+v of %q, %v", all, holder, err)
		}
		kept, err := f.Offer(t.Context(), f.shop.ID, all[0].ID, service.ID, telecel)
		if err != nil || kept.ExpiresAt.Sub(morning) != OfferTime || !kept.ExpiresAt.Equal(all[0].ExpiresAt) {
			t.Fatalf("%+v, %v", kept, err)
		}
		kept.ExpiresAt = all[0].ExpiresAt
		want := Offer{ID: all[0].ID, Tenant: f.shop.ID, ServiceID: service.ID, MSISDN: telecel, Network: msisdn.Telecel, Rail: "hubtel",
			Display: "1GB", Value: "data_1", Amount: 10 * money.Cedi, ExpiresAt: all[0].ExpiresAt}
		if kept != want || all[0] != want {
			t.Errorf("kept %+v, offered %+v, want %+v", kept, all[0], want)
		}
		ask := func(service string, number msisdn.MSISDN) error {
			_, _, err := f.Offers(t.Context(), f.shop.ID, service, number)
			return err
		}
		f.refused("no such service", ask("no-such-service", telecel), problem.NotFound)
		f.refused("a number in another form", ask(service.ID, "0201234567"), problem.Invalid, "phone_number")
		f.first.answers(rejected, "")
		f.refused("a number that is offered nothing", ask(service.ID, telecel), problem.Invalid, "phone_number")
		f.first.answers(silent, "")
		f.refused("no answer", ask(service.ID, telecel), problem.Unavailable)
	})
}

// If the clock is set back, no price is kept for longer than an hour.
func TestOffer_clockSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		o := f.offered()
		f.clock.Set(-30 * time.Second)
		if _, err := f.Offer(t.Context(), f.shop.ID, o.ID, o.ServiceID, telecel); err != nil {
			t.Fatal(err)
		}
		f.clock.Set(-time.Hour)
		_, err := f.Offer(t.Context(), f.shop.ID, o.ID, o.ServiceID, telecel)
		f.refused("made in an hour", err, problem.NotFound)
	})
}

func TestOffer_boundAndValidAnHour(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		o := f.offered()
		get := func(tenant, id, service string, number msisdn.MSISDN) error {
			_, err := f.Offer(t.Context(), tenant, id, service, number)
			return err
		}
		f.refused("unknown", get(f.shop.ID, "no-such-offer", o.ServiceID, telecel), problem.NotFound)
		f.refused("another tenant's", get(f.stall.ID, o.ID, o.ServiceID, telecel), problem.NotFound)
		f.refused("another number's", get(f.shop.ID, o.ID, o.ServiceID, "233207654321"), problem.NotFound)
		f.refused("another service's", get(f.shop.ID, o.ID, f.service("mtn_data").ID, telecel), problem.NotFound)
		f.clock.Advance(OfferTime - time.Microsecond)
		if err := get(f.shop.ID, o.ID, o.ServiceID, telecel); err != nil {
			t.Errorf("in its last moment: %v", err)
		}
		f.clock.Advance(time.Microsecond)
		f.refused("expired", get(f.shop.ID, o.ID, o.ServiceID, telecel), problem.NotFound)
	})
}

func TestOffer_priceCheckedAtPurchase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		o := f.offered()
		still := func(o Offer) error { return f.StillOffered(t.Context(), "test", f.service("telecel_data"), o) }
		if err := still(o); err != nil {
			t.Errorf("as it was offered: %v", err)
		}
		dearer := oneGiga
		dearer.Amount++
		f.first.answers(accepted, "", dearer)
		f.refused("dearer now", still(o), problem.NotFound)
		f.first.answers(accepted, "")
		f.refused("gone", still(o), problem.NotFound)
		f.first.answers(rejected, "")
		f.refused("nothing for the number", still(o), problem.NotFound)
		f.first.answers(silent, "")
		f.refused("no answer", still(o), problem.Unavailable)
		o.Rail = "mtn"
		f.refused("a rail that sells none any more", still(o), problem.NotFound)
		o.Rail = "no-such-rail"
		f.refused("a rail that was removed", still(o), problem.NotFound)
	})
}

func TestOffer_expiredStaysADay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.offered()
		rows := func() (n int64) {
			if err := f.Prune(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := d.ReadOne(t.Context(), `SELECT count(*) FROM offers`, nil, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		f.clock.Advance(OfferTime + offerKept)
		if n := rows(); n != 1 {
			t.Errorf("%d rows a day after the offer ended", n)
		}
		f.clock.Advance(time.Microsecond)
		f.offered()
		if n := rows(); n != 1 {
			t.Errorf("%d rows, want the young one alone", n)
		}
	})
}
