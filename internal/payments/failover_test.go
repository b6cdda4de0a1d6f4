package payments

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// behaviours has the letters for the behaviour of a rail with one payment. With a capital letter the rail moves the money.
const behaviours = "dbrvLPO"

// behaves scripts a rail. The amount of a payment selects the behaviour; at is the rail's position in the route. d:
// no connection; b: 403; r: a documented refusal; v: the first submission has no effect and its answer is lost, and
// the next one is paid; L: the answer is lost and the money moves; P: paid; O: twice no connection, then paid.
func (s *scripted) behaves(at int, repeats bool, moved map[string]int) {
	kind := func(reference string) (byte, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		amount, known := s.gross[reference]
		combination := int(amount - MinPayout)
		for range at {
			combination /= len(behaviours)
		}
		return behaviours[combination%len(behaviours)], known
	}
	move := func(reference string, answer provider.Outcome) provider.Outcome {
		s.mu.Lock()
		defer s.mu.Unlock()
		if moved[reference]++; moved[reference] > 1 && repeats {
			moved[reference] = 1
			return repeated
		}
		return answer
	}
	s.script(func(n int, reference string) provider.Outcome {
		k, _ := kind(reference)
		switch {
		case k == 'd', k == 'O' && n <= 2:
			return unsent
		case k == 'b':
			return barred
		case k == 'r':
			return rejected
		case k == 'v' && n == 1:
			return unknown
		case k == 'L':
			return move(reference, unknown)
		}
		return move(reference, pending)
	}, func(_ int, reference string) provider.Outcome {
		s.mu.Lock()
		defer s.mu.Unlock()
		if moved[reference] > 0 {
			return success
		}
		return notFound
	})
}

// Three rails serve one network. Each may refuse a payment, not answer, or be away for a while. The money moves at
// most once, and the wallet gets it back only if it never moved.
func TestFailover_threeRails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		third := newScripted()
		h.rails = []provider.Rail{
			{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Disburser: h.first},
			{Name: "hubtel", Mode: "test", VisibleAfter: 5 * time.Minute, Disburser: h.second},
			{Name: "paystack", Mode: "test", MayRepeat: provider.AllRequests(), Disburser: third},
		}
		moved := []map[string]int{{}, {}, {}}
		h.first.behaves(0, true, moved[0])
		h.second.behaves(1, false, moved[1])
		third.behaves(2, true, moved[2])
		n := h.node("a")
		n.setRoute(route.DisburseWallet, "mtn", "hubtel", "paystack")

		all := len(behaviours) * len(behaviours) * len(behaviours)
		for i := range all {
			r := h.payout()
			r.CallbackURL, r.Amount = "", MinPayout+money.Pesewas(i*37%all) // shuffled, because ten failures in a row open a breaker
			_, _, err := n.Payout(t.Context(), h.caller(), r)
			for tries := 0; problem.Is(err, problem.Unavailable) && tries < 100; tries++ {
				n.pass(time.Minute)
				_, _, err = n.Payout(t.Context(), h.caller(), r)
			}
			if err != nil && problem.From(err).Kind != problem.Refused {
				t.Fatalf("%d: %v", i, err)
			}
		}
		n.pass(3 * time.Hour)
		ends := map[book.Status]int{}
		for page := 1; ; page++ {
			list, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Page: page, Size: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, pay := range list.Rows {
				times := 0
				for _, at := range moved {
					times += at[pay.AttemptReference]
				}
				ends[pay.Status]++
				ok := map[book.Status]bool{book.StatusSuccess: times == 1, book.StatusFailed: times == 0, book.StatusPending: times <= 1}[pay.Status]
				if !ok {
					c := int(pay.Amount - MinPayout)
					b := len(behaviours)
					t.Errorf("%c %c %c: the money moved %d times, and the payout is %s at %s", behaviours[c%b], behaviours[c/b%b], behaviours[c/b/b], times, pay.Status, pay.Rail)
				}
			}
			if len(list.Rows) < 100 {
				break
			}
		}
		if ends[book.StatusSuccess] < all/3 || ends[book.StatusFailed] == 0 || ends[book.StatusSuccess]+ends[book.StatusFailed]+ends[book.StatusPending] != all {
			t.Errorf("of %d: %v", all, ends)
		}
		n.sound()
	})
}

// A payout to a bank account goes to the rail that returned its holder's name. It goes to another rail only if the
// same name is returned for the bank code with which that rail pays.
func TestPayout_bankAtNamingRail(t *testing.T) {
	for _, c := range []struct {
		name, holder, rail string
		names              provider.Outcome
	}{
		{"the same name", "akosua  test", "hubtel", provider.Outcome{Class: provider.Accepted}},
		{"another name", "KOFI TEST", "paystack", provider.Outcome{Class: provider.Accepted}},
		{"no name", "", "paystack", provider.Outcome{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.rails = []provider.Rail{
					{Name: "hubtel", Mode: "test", Disburser: h.second, BankNames: h.second},
					{Name: "paystack", Mode: "test", MayRepeat: provider.AllRequests(), Disburser: h.first, BankNames: h.first},
				}
				n := h.node("a")
				n.setRoute(route.DisburseBank, "paystack", "hubtel")
				n.setRoute(route.BankName, "hubtel")
				h.first.shop.outcome = provider.Outcome{Class: provider.Accepted}
				h.second.shop.outcome, h.second.shop.holder = c.names, c.holder
				h.first.script(always(unsent), always(notFound))
				h.second.script(always(pending), always(success))
				pay, _, err := n.Payout(t.Context(), h.caller(), Payout{Amount: 10 * money.Cedi, Reference: h.reference(), BankID: n.bankID("040100"), AccountNumber: "1234567"})
				if err != nil || pay.AccountName != "AKOSUA TEST" {
					t.Fatalf("%+v, %v", pay, err)
				}
				n.pass(10 * time.Second)
				if is := n.must(book.KindPayout, pay.ID); is.Rail != c.rail {
					t.Errorf("it is %s at %s", is.Status, is.Rail)
				}
				n.sound()
			})
		})
	}
}

// A row that only another rail can pay waits while that rail does not answer the lookup, and no set asks it twice.
func TestPayRows_silentLookup(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.rails = []provider.Rail{
			{Name: "hubtel", Mode: "test", Disburser: h.second, BankNames: h.second},
			{Name: "paystack", Mode: "test", Disburser: h.first, BankNames: h.first,
				Limits: []provider.Limit{{Operation: string(route.DisburseBank), Channel: route.Any, Max: 5 * money.Cedi}}},
		}
		n := h.node("a")
		n.setRoute(route.DisburseBank, "paystack", "hubtel")
		tn, err := n.tenants.Get(t.Context(), h.caller().Tenant)
		if err != nil {
			t.Fatal(err)
		}
		row := Row{Payout: Payout{Amount: 10 * money.Cedi, Reference: h.reference(), BankID: n.bankID("040100"), AccountNumber: "1234567", Name: "AKOSUA TEST"}, Rail: "paystack"}
		silent := map[string]bool{}
		prepare := func() (*request, *problem.Error, error) {
			return n.prepareRow(t.Context(), tn, Rows{Caller: h.caller()}, row, silent)
		}
		h.second.shop.outcome, h.second.shop.holder = provider.Outcome{}, ""
		if _, refused, err := prepare(); refused != nil || rowCause(err) != CauseNoRoute || !silent["hubtel"] {
			t.Errorf("silent: refused %v, error %v", refused, err)
		}
		h.second.shop.outcome, h.second.shop.holder = provider.Outcome{Class: provider.Accepted}, "AKOSUA TEST"
		if _, refused, err := prepare(); refused != nil || rowCause(err) != CauseNoRoute {
			t.Errorf("the rail was asked again: refused %v, error %v", refused, err)
		}
		clear(silent)
		if a, refused, err := prepare(); refused != nil || err != nil || a.Payment.Rail != "hubtel" {
			t.Errorf("answered: refused %v, error %v", refused, err)
		} else {
			a.probe.GiveBack(t.Context())
		}
		h.second.shop.holder = "KOFI TEST"
		if _, refused, err := prepare(); refused == nil || len(silent) != 0 {
			t.Errorf("another name: not refused, error %v", err)
		}
	})
}

// A rail gets no amount below its minimum or above its maximum. The next rail gets it; if there is none, the error
// names the amount.
func TestPayout_limitsOfRails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		limit := func(lo, hi money.Pesewas) []provider.Limit {
			return []provider.Limit{{Operation: "disburse_wallet", Channel: "MTN", Min: lo, Max: hi}}
		}
		h.rails = []provider.Rail{
			{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Disburser: h.first, Limits: limit(5*money.Cedi, 10*money.Cedi)},
			{Name: "hubtel", Mode: "test", VisibleAfter: 5 * time.Minute, Disburser: h.second, Limits: limit(0, 20*money.Cedi)},
		}
		n := h.node("a")
		n.setRoute(route.DisburseWallet, "mtn", "hubtel")
		for amount, rail := range map[money.Pesewas]string{499: "hubtel", 500: "mtn", 1000: "mtn", 1001: "hubtel", 2000: "hubtel", 2001: ""} {
			r := h.payout()
			r.Amount = amount
			pay, _, err := n.Payout(t.Context(), h.caller(), r)
			if pay.Rail != rail || rail == "" && (!problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "amount")) {
				t.Errorf("%s went to %q, %v", amount, pay.Rail, err)
			}
		}
		n.sound()
	})
}

// A payout was sent over one of four rails. Then the database was restored to an earlier time. The repeated request adopts the
// payout from the rail that has it. If no rail has it, it is sent once, after each rail's VisibleAfter.
func TestFailover_acrossARestore(t *testing.T) {
	names := []string{"mtn", "hubtel", "paystack", "moolre"}
	for holder, name := range append(names, "nobody") {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				h.recovers = true
				all := []*scripted{h.first, h.second, newScripted(), newScripted()}
				h.rails = []provider.Rail{
					{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Disburser: all[0]},
					{Name: "hubtel", Mode: "test", VisibleAfter: 5 * time.Minute, Disburser: all[1]},
					{Name: "paystack", Mode: "test", MayRepeat: provider.Requests{Disburse: true}, Disburser: all[2]},
					{Name: "moolre", Mode: "test", MayDouble: provider.Requests{Disburse: true}, Disburser: all[3]},
				}
				n := h.node("a")
				n.setRoute(route.DisburseWallet, names...)
				n.startRecovery(t, true)
				r := h.payout()
				reference := n.References(h.tenant, book.KindPayout, r.Reference)[0]
				for i, rail := range all {
					rail.script(always(pending), always(notFound))
					if i == holder {
						rail.hasReference(reference, r.Amount, string(r.MSISDN), success)
					}
				}
				posts := 0
				if holder == len(names) {
					_, _, err := n.Payout(t.Context(), h.caller(), r)
					wantKind(t, err, problem.Unavailable) // Paystack's VisibleAfter is an hour, because nobody has measured it
					n.clock.Advance(2 * time.Hour)
					all[0].script(always(pending), func(_ int, reference string) provider.Outcome {
						if all[0].posted(reference) == 0 {
							return notFound
						}
						return success
					})
					posts, holder = 1, 0
				}
				pay, _, err := n.Payout(t.Context(), h.caller(), r)
				if err != nil {
					t.Fatal(err)
				}
				n.pass(10 * time.Second)
				sent := 0
				for _, rail := range all {
					sent += rail.posted(reference)
				}
				if is := n.must(book.KindPayout, pay.ID); is.Status != book.StatusSuccess || is.Rail != names[holder] || sent != posts {
					t.Errorf("it is %s at %s, sent %d times", is.Status, is.Rail, sent)
				}
				n.sound()
			})
		})
	}
}
