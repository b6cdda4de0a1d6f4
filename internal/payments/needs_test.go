package payments

import (
	"context"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// needy is a rail that requires the account's e-mail address, and vouchers on Telecel's network.
func needy(s *scripted) provider.Rail {
	return provider.Rail{Name: "paystack", Mode: "test", MayRepeat: provider.Requests{Disburse: true}, MayDouble: provider.Requests{Collect: true, Refund: true},
		Collector: s, Disburser: s, Refunder: s, Needs: provider.AccountNeeds{Email: true, Vouchers: []msisdn.Network{msisdn.Telecel}}, Vouchers: s}
}

func (s *scripted) SubmitVoucher(_ context.Context, r provider.VoucherRequest) provider.Outcome {
	return s.ask(provider.StatusRequest{ProviderReference: "voucher " + r.ProviderReference})
}

// A rail gets collections only of accounts that have what it requires. Other collections go to the next rail, also if
// the account loses its address before the submission.
func TestCollect_railNeedsOfTheAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.rails = []provider.Rail{needy(h.first), {Name: "hubtel", Mode: "test", VisibleAfter: 5 * time.Minute, Collector: h.second}}
		n := h.node("a")
		n.setRoute(route.Collect, "paystack", "hubtel")
		h.second.script(always(pending), always(success))
		h.first.script(always(pending), always(success))
		address, none, on := "accounts@example.com", "", true
		goes := func(name string, network msisdn.Network, want string) {
			t.Helper()
			in := h.collect()
			if in.Network = network; network == msisdn.Telecel {
				in.MSISDN = telecel
			}
			pay, _, err := n.Collect(t.Context(), h.caller(), in)
			if err != nil || pay.Rail != want {
				t.Errorf("%s: to %q, %v", name, pay.Rail, err)
			}
			n.pass(5 * time.Second)
		}
		goes("nothing", msisdn.Telecel, "hubtel")
		n.set(tenant.Change{Voucher: &on})
		goes("vouchers alone", msisdn.Telecel, "hubtel")
		n.set(tenant.Change{Email: &address})
		goes("both", msisdn.Telecel, "paystack")
		off := false
		n.set(tenant.Change{Voucher: &off})
		goes("an address alone", msisdn.Telecel, "hubtel")
		n.set(tenant.Change{Email: &none})
		posts, _ := h.first.counts()
		if o := n.rails.submit(t.Context(), needy(h.first), book.Payment{Tenant: h.tenant.ID, Kind: book.KindCollection, Channel: "MTN"}, momentOf(h.clock)); o.Class != provider.NotSent {
			t.Errorf("without an address: %+v", o)
		}
		if now, _ := h.first.counts(); now != posts {
			t.Error("something was sent")
		}
		n.sound()
	})
}

// A voucher is sent to the provider of a pending collection of the same account. Whatever the provider answers, the
// status query decides.
func TestVoucher_goesToTheProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.rails = []provider.Rail{needy(h.first)}
		n := h.node("a")
		n.setRoute(route.Collect, "paystack")
		address, on := "accounts@example.com", true
		n.set(tenant.Change{Email: &address, Voucher: &on})
		in := h.collect()
		in.Network, in.MSISDN = msisdn.Telecel, telecel
		h.first.script(always(pending), always(pending))
		pay, _, err := n.Collect(t.Context(), h.caller(), in)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(time.Second)
		stranger := n.newTenant(0)
		if _, err := n.Voucher(t.Context(), stranger.ID, pay.ID, "123456"); !problem.Is(err, problem.NotFound) {
			t.Errorf("of another account: %v", err)
		}
		for name, c := range map[string]struct {
			answer provider.Outcome
			kind   problem.Kind
		}{"taken": {pending, ""}, "refused": {bare, problem.Invalid}, "silent": {unknown, problem.Unavailable}} {
			h.first.script(always(pending), always(c.answer))
			n.clock.Advance(hintTime)
			_, err := n.Voucher(t.Context(), h.tenant.ID, in.Reference, "123456")
			if c.kind == "" && err != nil || c.kind != "" && !problem.Is(err, c.kind) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := n.Voucher(t.Context(), h.tenant.ID, in.Reference, "123456"); !problem.Is(err, problem.RateLimited) {
				t.Errorf("%s, twice: %v", name, err)
			}
			if is := n.must(book.KindCollection, pay.ID); is.Status != book.StatusPending {
				t.Errorf("%s: it is %s", name, is.Status)
			}
		}
		h.first.script(always(pending), always(success))
		n.pass(time.Minute)
		if _, err := n.Voucher(t.Context(), h.tenant.ID, in.Reference, "123456"); !problem.Is(err, problem.Invalid) || n.must(book.KindCollection, pay.ID).Status != book.StatusSuccess {
			t.Errorf("of a final collection: %v", err)
		}
		n.sound()
	})
}

// A rail that may carry out a request twice is searched first in a recovery. It gets a request only after it reports
// that it does not know it. That holds also if it is the only rail.
func TestRecovery_doublesAreSearchedFor(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.recovers = true
		h.rails = []provider.Rail{needy(h.first)}
		n := h.node("a")
		n.setRoute(route.Collect, "paystack")
		address := "accounts@example.com"
		n.set(tenant.Change{Email: &address})
		n.startRecovery(t, true)
		in := h.collect()
		for name, answer := range map[string]provider.Outcome{"silent": unknown, "not known yet": notFound} {
			h.first.script(always(pending), always(answer))
			if _, _, err := n.Collect(t.Context(), h.caller(), in); !problem.Is(err, problem.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		n.clock.Advance(2 * time.Hour)
		h.first.script(always(pending), func(_ int, reference string) provider.Outcome {
			if h.first.posted(reference) == 0 {
				return notFound
			}
			return success
		})
		pay, _, err := n.Collect(t.Context(), h.caller(), in)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if is := n.must(book.KindCollection, pay.ID); is.Status != book.StatusSuccess || h.first.posted(pay.ProviderReference) != 1 {
			t.Errorf("it is %s after %d POSTs", is.Status, h.first.posted(pay.ProviderReference))
		}
		n.sound()
	})
}

// A callback about a refund names the collection. It brings forward the query of the refund.
func TestHint_ofARefund(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		of := n.collected(msisdn.MTN)
		h.first.script(always(pending), always(pending))
		pay := n.refunds(h.refund(of))
		n.pass(40 * time.Second) // the next query is half a minute away
		h.first.script(always(pending), always(success))
		rail, _ := n.routes.Rail("mtn", "test")
		if err := n.Hint(t.Context(), rail, []provider.Hint{{ProviderReference: of.ProviderReference, OfRefund: true}}); err != nil {
			t.Fatal(err)
		}
		n.quiet()
		if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess {
			t.Errorf("the refund is %s", is.Status)
		}
		n.sound()
	})
}
