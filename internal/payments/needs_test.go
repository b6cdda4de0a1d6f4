package payments

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
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

// waitsForVoucher makes a collection from a Telecel wallet, over a provider that may need a voucher and returns answer.
func (h *fixture) waitsForVoucher(answer provider.Outcome) (*node, book.Payment) {
	h.t.Helper()
	h.rails = []provider.Rail{needy(h.first)}
	n := h.node("a")
	n.setRoute(route.Collect, "paystack")
	address, on := "accounts@example.com", true
	n.set(tenant.Change{Email: &address, Voucher: &on})
	in := h.collect()
	in.Network, in.MSISDN = msisdn.Telecel, telecel
	h.first.script(always(answer), always(pending))
	pay, _, err := n.Collect(h.t.Context(), h.caller(), in)
	if err != nil {
		h.t.Fatal(err)
	}
	n.pass(time.Second)
	return n, pay
}

// queried returns the number of queries of a reference.
func (s *scripted) queried(reference string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[reference]
}

// A voucher is sent to the provider of a pending collection of the same account. Whatever the provider answers, the
// status query decides.
func TestVoucher_goesToTheProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n, pay := h.waitsForVoucher(pending)
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
			_, err := n.Voucher(t.Context(), h.tenant.ID, pay.Reference, "123456")
			if c.kind == "" && err != nil || c.kind != "" && !problem.Is(err, c.kind) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := n.Voucher(t.Context(), h.tenant.ID, pay.Reference, "123456"); !problem.Is(err, problem.RateLimited) {
				t.Errorf("%s, twice: %v", name, err)
			}
			if is := n.must(book.KindCollection, pay.ID); is.Status != book.StatusPending {
				t.Errorf("%s: it is %s", name, is.Status)
			}
		}
		h.first.script(always(pending), always(success))
		n.pass(time.Minute)
		if _, err := n.Voucher(t.Context(), h.tenant.ID, pay.Reference, "123456"); !problem.Is(err, problem.Invalid) || n.must(book.KindCollection, pay.ID).Status != book.StatusSuccess {
			t.Errorf("of a final collection: %v", err)
		}
		n.sound()
	})
}

// A voucher is not a submission. Before the collection was submitted, its provider gets no voucher. A voucher could start a
// collection there while another provider is tried.
func TestVoucher_notBeforeTheCollection(t *testing.T) {
	for name, answer := range map[string]provider.Outcome{"not sent": unsent, "barred": barred} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n, pay := h.waitsForVoucher(answer)
				_, before := h.first.counts()
				if _, err := n.Voucher(t.Context(), h.tenant.ID, pay.ID, "123456"); !problem.Is(err, problem.Invalid) {
					t.Errorf("before a submission: %v", err)
				}
				if _, asks := h.first.counts(); asks != before {
					t.Error("the provider got the voucher")
				}
				h.first.script(always(pending), always(pending))
				n.pass(2 * time.Minute)
				if _, err := n.Voucher(t.Context(), h.tenant.ID, pay.ID, "123456"); err != nil {
					t.Errorf("after a submission: %v", err)
				}
				n.sound()
			})
		})
	}
}

// A voucher may start a collection at some providers. They get it only after the row shows that they asked for it: not while the
// submission runs, not if its answer was lost, not if they sent the prompt at once. The row keeps the request.
func TestVoucher_onlyIfAskedFor(t *testing.T) {
	asked := pending
	asked.AwaitsVoucher = true
	for name, tt := range map[string]struct {
		answer provider.Outcome
		taken  bool
	}{"asked": {asked, true}, "prompt sent": {pending, false}, "answer lost": {unknown, false}, "refused": {bare, false}} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				rail := needy(h.first)
				rail.Needs.VoucherStarts = true
				h.rails = []provider.Rail{rail}
				n := h.node("a")
				n.setRoute(route.Collect, "paystack")
				address, on := "accounts@example.com", true
				n.set(tenant.Change{Email: &address, Voucher: &on})
				in := h.collect()
				in.Network, in.MSISDN = msisdn.Telecel, telecel
				runs, answers := make(chan struct{}), make(chan provider.Outcome)
				h.first.slow = func(context.Context) provider.Outcome { runs <- struct{}{}; return <-answers }
				h.first.script(always(pending), always(notFound))
				pay, _, err := n.Collect(t.Context(), h.caller(), in)
				if err != nil {
					t.Fatal(err)
				}
				<-runs
				gives := func(when string, by *node, taken bool) {
					t.Helper()
					reference := "voucher " + pay.AttemptReference
					before := h.first.queried(reference)
					_, err := by.Voucher(t.Context(), h.tenant.ID, pay.ID, "123456")
					if got := h.first.queried(reference) > before; got != taken || !taken && !problem.Is(err, problem.Invalid) {
						t.Errorf("%s: the provider got it: %v; %v", when, got, err)
					}
				}
				gives("while the submission runs", n, false)
				answers <- tt.answer
				n.pass(time.Second)
				gives("after the answer", n, tt.taken)
				gives("at a node without its memory", h.stopped("b"), tt.taken)
				n.sound()
			})
		})
	}
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

// The list of payments that need attention is read in pages, counted up to a limit, and filtered by owner or by no owner.
func TestStuckPage_pagesAndOwners(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.script(always(unknown), always(notFound))
		for range 3 {
			r := h.payout()
			r.MSISDN, r.Network = telecel, msisdn.Telecel
			if _, _, err := n.Payout(t.Context(), h.caller(), r); err != nil {
				t.Fatal(err)
			}
		}
		n.pass(2 * time.Minute)
		all, err := n.Stuck(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("stuck are %v, %v", all, err)
		}
		ama := book.Owner{Person: "p-ama", Name: "Ama"}
		if err := n.Take(t.Context(), all[1].ID, ama, func(*db.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			filter book.StuckFilter
			want   []int
		}{
			{book.StuckFilter{}, []int{0, 1, 2}}, {book.StuckFilter{Owner: "p-ama"}, []int{1}}, {book.StuckFilter{Ownerless: true}, []int{0, 2}}, {book.StuckFilter{Owner: "p-kofi"}, nil},
		} {
			var got []string
			for f := tt.filter; ; {
				f.Limit = 1
				page, err := n.StuckPage(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				got, f.After = append(got, page[0].ID), book.StuckCursor(page[0])
			}
			var want []string
			var sum money.Pesewas
			for _, i := range tt.want {
				want, sum = append(want, all[i].ID), sum+all[i].Amount
			}
			count, total, err := n.CountStuck(t.Context(), tt.filter, 10)
			if !slices.Equal(got, want) || count != len(want) || total != sum || err != nil {
				t.Errorf("%+v: got %v, want %v; %d, %s, %v", tt.filter, got, want, count, total, err)
			}
		}
		if count, _, err := n.CountStuck(t.Context(), book.StuckFilter{}, 2); err != nil || count != 2 {
			t.Errorf("counted up to 2: %d, %v", count, err)
		}
		if _, err := n.StuckPage(t.Context(), book.StuckFilter{After: "yesterday", Limit: 1}); !problem.Is(err, problem.Invalid) {
			t.Errorf("a cursor that is none: %v", err)
		}
		cares, err := n.Cares(t.Context(), []string{all[0].ID, all[1].ID})
		if owners, ownersErr := n.OwnersOfStuck(t.Context(), 5); err != nil || ownersErr != nil || len(cares) != 1 || cares[all[1].ID].Owner.Person != "p-ama" || len(owners) != 1 || owners[0] != ama {
			t.Errorf("%v, %v; %v, %v", cares, err, owners, ownersErr)
		}
	})
}
