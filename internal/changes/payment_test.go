package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// silent is a provider whose answers are all lost, or that always reports pending.
type silent struct {
	pending bool
	paid    bool // it reports every payout as paid
}

// BankName returns the one name that the rail knows.
func (s *silent) BankName(context.Context, string, string) (string, provider.Outcome) {
	return "BADU, KOFI", provider.Outcome{Class: provider.Accepted}
}

func (s *silent) Disburse(context.Context, provider.DisburseRequest) provider.Outcome {
	if s.pending {
		return provider.Outcome{Class: provider.Accepted}
	}
	return provider.Outcome{}
}

func (s *silent) DisburseStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	if s.paid {
		return provider.Outcome{Class: provider.Accepted, State: provider.Success,
			Echo: &provider.Echo{Reference: r.ProviderReference, Amount: r.Amount, AmountTold: true, Currency: "GHS", Party: string(r.MSISDN)}}
	}
	return provider.Outcome{}
}

// paying prepares the account for a number of payouts of GHS 10.00.
func (f *fixture) paying(count int) {
	f.t.Helper()
	ctx := f.t.Context()
	f.tx(func(tx *db.Tx) error {
		if _, err := f.Webhooks.EnsureSecret(tx, f.tenant.ID); err != nil {
			return err
		}
		_, err := f.Tenants.SetFeePlan(tx, f.tenant.ID, time.Time{}, tenant.DemoPlan())
		return err
	})
	if err := f.routes.Seed(ctx); err != nil {
		f.t.Fatal(err)
	}
	if err := f.Treasury.Fund(ctx, f.tenant.ID, money.Pesewas(count)*20*money.Cedi, "before the test", "ama"); err != nil {
		f.t.Fatal(err)
	}
}

// unknown makes payouts of GHS 10.00 whose answers were lost long ago. No job of them is running.
func (f *fixture) unknown(count int) (list []book.Payment) {
	f.t.Helper()
	ctx := f.t.Context()
	f.paying(count)
	if err := f.queue.Start(ctx); err != nil {
		f.t.Fatal(err)
	}
	for i := range count {
		pay, _, err := f.Payments.Payout(ctx, idempotency.Caller{Tenant: f.tenant.ID, Key: "key-1"},
			payments.Payout{Amount: 10 * money.Cedi, Reference: fmt.Sprintf("reference-%06d", i), MSISDN: "233201234567", Network: msisdn.Telecel})
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, pay)
	}
	if err := f.queue.Stop(context.WithoutCancel(ctx)); err != nil {
		f.t.Fatal(err)
	}
	f.clock.Advance(2 * time.Minute)
	f.waited()
	return list
}

// waited flags the payments, as the process does that has followed them for two minutes.
func (f *fixture) waited() {
	f.t.Helper()
	f.tx(func(tx *db.Tx) error {
		tx.Defer("UPDATE payments SET waited_for = CASE WHEN sending_at = 0 THEN created_at ELSE sending_at END", -1)
		return nil
	})
}

// payment returns the current row.
func (f *fixture) payment(id string) book.Payment {
	f.t.Helper()
	p, err := f.Payments.Find(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// wallet returns the balance of the account.
func (f *fixture) wallet() money.Pesewas {
	f.t.Helper()
	n, err := f.ledger.Balance(f.t.Context(), f.tenant.Wallet())
	if err != nil {
		f.t.Fatal(err)
	}
	return money.Pesewas(n)
}

// sound fails the test unless the books agree.
func (f *fixture) sound() {
	f.t.Helper()
	if r, err := f.ledger.Check(f.t.Context()); err != nil || !r.OK() {
		f.t.Fatal(r, err)
	}
	if r, err := f.Payments.Check(f.t.Context()); err != nil || !r.OK() {
		f.t.Fatal(r.Problems, err)
	}
}

func TestResolve_needsTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		for i, pay := range f.unknown(2) {
			paid, had := i == 0, f.wallet()
			id := newID()
			request, err := f.Resolve(t.Context(), f.requester, id, pay.ProviderReference, Statement{Paid: paid}, "statement of 3 March")
			f.asked(request, err, KindResolve, 1)
			if request.Tenant != f.tenant.ID || request.Amount != 10*money.Cedi || !strings.Contains(request.Sentence, "the payout "+pay.Reference+" of Adom Stores (live) as "+paidWord(paid)+" from the statement of hubtel: GHS 10.00") {
				t.Fatalf("%+v", request)
			}
			if strings.Contains(request.Sentence, "233201234567") || strings.Contains(string(request.Payload), "233201234567") {
				t.Error("a whole number is in the act")
			}
			if f.payment(pay.ID).Status != book.StatusPending || f.wallet() != had {
				t.Fatal("ended before it was checked")
			}
			var won atomic.Int64
			var all sync.WaitGroup
			for _, by := range []By{f.first, f.second, f.first, f.second} {
				all.Go(func() {
					_, err := f.Approve(context.WithoutCancel(t.Context()), by, request.ID, request.Digest)
					if err == nil {
						won.Add(1)
					} else if !problem.Is(err, problem.Duplicate) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			f.is(request.ID, Done)
			want, now := had, "success"
			if !paid {
				want, now = had+pay.Amount+pay.Charges, "failed"
			}
			if is := f.payment(pay.ID); won.Load() != 1 || is.PublicStatus() != now || is.Note != "statement of 3 March" || f.wallet() != want {
				t.Fatalf("%d approvals, %+v, the wallet has %s, want %s", won.Load(), is, f.wallet(), want)
			}
			if e := f.entries()[0]; e.Action != KindResolve || e.Subject != request.ID || e.Changes()[0] != (audit.Change{What: "status", Before: "pending", After: now}) {
				t.Fatalf("%+v", e)
			}
			// The same form is sent again, and then another form for the resolved payment.
			if same, err := f.Resolve(t.Context(), f.requester, id, pay.ID, Statement{Paid: paid}, "statement of 3 March"); err != nil || same.ID != id || same.State != Done {
				t.Errorf("%+v, %v", same, err)
			}
			_, err = f.Resolve(t.Context(), f.requester, id, pay.ID, Statement{Paid: !paid}, "statement of 3 March")
			f.refused(err, problem.Duplicate, "payment_final")
			_, err = f.Resolve(t.Context(), f.requester, newID(), pay.ID, Statement{Paid: paid}, "again")
			f.refused(err, problem.Duplicate, "payment_final")
		}
		f.sound()
	})
}

// A statement proves nothing about a submission that was sent after it.
func TestResolve_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		for i, pay := range f.unknown(3) {
			request, err := f.Resolve(t.Context(), f.requester, newID(), pay.ID, Statement{}, "not in the statement")
			f.asked(request, err, KindResolve, 1)
			f.tx(func(tx *db.Tx) error {
				tx.Defer([]string{"UPDATE payments SET posts = posts + 1 WHERE id = $1", "UPDATE payments SET attempt = attempt + 1 WHERE id = $1",
					"UPDATE payments SET rail = 'mtn' WHERE id = $1"}[i], 1, pay.ID)
				return nil
			})
			had := f.wallet()
			request = f.approved(f.first, request)
			if request.State != Failed || !strings.Contains(request.Note, "changed") || f.payment(pay.ID).Status != book.StatusPending || f.wallet() != had {
				t.Fatalf("%d: %+v", i, request)
			}
		}
	})
}

func TestResolve_refusedInFlight(t *testing.T) {
	each(t, func(f *fixture) {
		pay := f.unknown(1)[0]
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE payments SET sending_at = $2 WHERE id = $1", 1, pay.ID, f.clock.Now())
			return nil
		})
		_, err := f.Resolve(t.Context(), f.requester, newID(), pay.ID, Statement{}, "x")
		f.refused(err, problem.InProgress, "payment_in_progress")
		f.clock.Advance(2 * time.Minute)
		_, err = f.Resolve(t.Context(), f.requester, newID(), pay.ID, Statement{}, "x") // the time of the clock is not sufficient
		f.refused(err, problem.InProgress, "payment_in_progress")
		f.waited()
		request, err := f.Resolve(t.Context(), f.requester, newID(), pay.ID, Statement{}, "x")
		f.asked(request, err, KindResolve, 1)
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE payments SET sending_at = $2 WHERE id = $1", 1, pay.ID, f.clock.Now())
			return nil
		})
		_, err = f.Approve(t.Context(), f.first, request.ID, request.Digest) // it is too early, so the request waits
		f.refused(err, problem.InProgress, "payment_in_progress")
		f.is(request.ID, Waiting)
	})
}

// The provider's fee and commission are booked as the statement lists them.
func TestResolve_booksProviderCosts(t *testing.T) {
	each(t, func(f *fixture) {
		pay := f.unknown(1)[0]
		fee, commission, below := money.Pesewas(30), money.Pesewas(5), money.Pesewas(-1)
		for _, s := range []Statement{{Fee: &fee}, {Commission: &fee}, {Paid: true, Fee: &below}, {Paid: true, Commission: &below}} {
			_, err := f.Resolve(t.Context(), f.requester, newID(), pay.ID, s, "x")
			f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		}
		request, err := f.Resolve(t.Context(), f.requester, newID(), pay.ID, Statement{Paid: true, Fee: &fee, Commission: &commission}, "line 7")
		f.asked(request, err, KindResolve, 1)
		if !strings.HasSuffix(request.Sentence, "GHS 10.00; provider's fee GHS 0.30, commission GHS 0.05") {
			t.Error(request.Sentence)
		}
		if request = f.approved(f.first, request); request.State != Done {
			t.Fatalf("%+v", request)
		}
		n, err := f.ledger.Balance(t.Context(), ledger.Key{Asset: pay.Money(), ID: ledger.ProviderFees("hubtel")})
		if err != nil || n != 30 && n != -30 {
			t.Errorf("the provider took %d, %v", n, err)
		}
		f.sound()
	})
}

// resolved makes an unknown payout, and two people resolve it.
func (f *fixture) resolved(pay book.Payment, paid bool) {
	f.t.Helper()
	request, err := f.Resolve(f.t.Context(), f.requester, newID(), pay.ID, Statement{Paid: paid}, "statement")
	f.asked(request, err, KindResolve, 1)
	f.approved(f.first, request)
}

// contradicted lets two people reverse a resolution.
func (f *fixture) contradicted(pay book.Payment, paid bool) {
	f.t.Helper()
	request, err := f.Contradict(f.t.Context(), f.requester, newID(), pay.ID, paid, "read the wrong line")
	f.asked(request, err, KindContradict, 1)
	if request = f.approved(f.first, request); request.State != Done {
		f.t.Fatalf("%+v", request)
	}
}

func TestReopen_emptiesSuspenseOnce(t *testing.T) {
	each(t, func(f *fixture) {
		for i, pay := range f.unknown(4) {
			paid, side := i%2 == 0, []Side{Customer, House}[i/2]
			_, err := f.Decide(t.Context(), f.requester, newID(), pay.ID, side, "x")
			f.refused(err, problem.Invalid, "nothing_in_suspense")
			f.resolved(pay, paid)
			wrong, err := f.Contradict(t.Context(), f.requester, newID(), pay.ID, paid, "x") // the resolution had this outcome
			f.asked(wrong, err, KindContradict, 1)
			f.failed(f.approved(f.first, wrong), nil)
			late, err := f.Contradict(t.Context(), f.requester, newID(), pay.ID, !paid, "x")
			f.asked(late, err, KindContradict, 1)
			f.contradicted(pay, !paid)
			f.failed(f.approved(f.first, late), nil) // it no longer applies
			_, err = f.Contradict(t.Context(), f.requester, newID(), pay.ID, !paid, "x")
			f.refused(err, problem.Duplicate, "contradicted_before")

			had := f.wallet()
			one, err := f.Decide(t.Context(), f.requester, newID(), pay.ID, side, "as agreed")
			f.asked(one, err, KindDecide, 1)
			two, err := f.Decide(t.Context(), f.requester, newID(), pay.ID, House, "the other way")
			f.asked(two, err, KindDecide, 1)
			if one = f.approved(f.first, one); one.State != Done {
				t.Fatalf("%+v", one)
			}
			f.failed(f.approved(f.second, two), nil)
			want := had
			switch {
			case side == Customer && paid:
				want += pay.Amount
			case side == Customer:
				want -= pay.Amount
			}
			if f.wallet() != want {
				t.Fatalf("%d: the wallet has %s, want %s", i, f.wallet(), want)
			}
			n, err := f.ledger.Balance(t.Context(), ledger.Key{Asset: pay.Money(), ID: ledger.Suspense})
			if err != nil || n != 0 {
				t.Fatalf("suspense has %d, %v", n, err)
			}
		}
		_, err := f.Decide(t.Context(), f.requester, newID(), newID(), Customer, "x")
		f.refused(err, problem.NotFound, "payment_not_found")
		_, err = f.Decide(t.Context(), f.requester, newID(), newID(), "us", "x")
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		f.sound()
	})
}

// A later report of the provider may give the amount to another party.
func TestSuspense_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		pay := f.unknown(1)[0]
		f.resolved(pay, true)
		f.contradicted(pay, false)
		had := f.wallet()
		request, err := f.Decide(t.Context(), f.requester, newID(), pay.ID, Customer, "as agreed")
		f.asked(request, err, KindDecide, 1)
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE payments SET last_word = 'success' WHERE id = $1", 1, pay.ID)
			return nil
		})
		f.failed(f.approved(f.first, request), nil)
		if f.wallet() != had {
			t.Fatal("paid out")
		}
		request, err = f.Decide(t.Context(), f.requester, newID(), pay.ID, Provider, "it came back to its word")
		f.asked(request, err, KindDecide, 1)
		if request = f.approved(f.first, request); request.State != Done || f.wallet() != had {
			t.Fatalf("%+v", request)
		}
		f.sound()
	})
}

// The account at the provider is the last member of the payload. Requests from before this member existed are read unchanged.
func TestFloat_bookedInItsAccount(t *testing.T) {
	each(t, func(f *fixture) {
		treasurer := f.join("esi@example.com", roles.Treasury)
		at := treasury.Float{Provider: "hubtel", Account: "disbursement", Mode: tenant.Live}
		request, err := f.AddFloat(t.Context(), treasurer, newID(), "slip 1", at, 700, "transfer of 3 March")
		f.asked(request, err, KindAddFloat, 1)
		if want := `{"provider":"hubtel","mode":"live","pesewas":700,"reference":"slip 1","account":"disbursement"}`; string(request.Payload) != want {
			t.Errorf("the payload is %s", request.Payload)
		}
		if want := "Book that GHS 7.00 (live) was paid in at hubtel disbursement, reference \"slip 1\""; request.Sentence != want {
			t.Errorf("the sentence is %q", request.Sentence)
		}
		f.approved(f.first, request)
		if n, err := f.ledger.Balance(t.Context(), at.Key()); err != nil || n != -700 || at.Key().ID != "float/hubtel/disbursement" {
			t.Errorf("%s has %d, %v", at.Key().ID, n, err)
		}
		var before floated
		if err := json.Unmarshal([]byte(`{"provider":"hubtel","mode":"live","pesewas":700}`), &before); err != nil || before.float().Key().ID != "float/hubtel" {
			t.Errorf("a payload of before is %+v, %v", before, err)
		}
		if again, err := json.Marshal(before); err != nil || string(again) != `{"provider":"hubtel","mode":"live","pesewas":700}` {
			t.Errorf("a payload of before becomes %s, %v", again, err)
		}
		at.Account = "savings"
		_, err = f.AddFloat(t.Context(), treasurer, newID(), "", at, 700, "x")
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		f.sound()
	})
}

func TestFloat_bookedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		treasurer := f.join("esi@example.com", roles.Treasury)
		f.clock.Advance(time.Second)
		float := func() int64 {
			n, err := f.ledger.Balance(t.Context(), ledger.Key{Asset: f.tenant.Money(), ID: ledger.Float("hubtel")})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for i, amount := range []money.Pesewas{50_000, -20_000} {
			request, err := f.AddFloat(t.Context(), treasurer, newID(), "", treasury.Float{Provider: "hubtel", Mode: tenant.Live}, amount, "transfer of 3 March")
			f.asked(request, err, KindAddFloat, 1)
			if want := []string{"Book that GHS 500.00 (live) was paid in at hubtel", "Book that GHS 200.00 (live) was taken out at hubtel"}[i]; request.Sentence != want || request.Amount <= 0 || request.Tenant != "" {
				t.Fatalf("%+v", request)
			}
			had := float()
			f.approved(f.first, request)
			_, err = f.Approve(t.Context(), f.second, request.ID, request.Digest)
			f.refused(err, problem.Duplicate, "act_ended")
			if float() != had-int64(amount) {
				t.Errorf("the float went from %d to %d", had, float())
			}
			if b, found, err := f.ledger.Booked(t.Context(), KindAddFloat, request.ID); err != nil || !found || b.Amount != int64(amount) || b.Request != request.ID {
				t.Errorf("%+v, %v", b, err)
			}
		}
		log, err := f.log.List(t.Context(), audit.Filter{Limit: 1})
		if err != nil || log[0].Action != KindAddFloat || log[0].Changes()[0] != (audit.Change{What: "float at hubtel", Before: "GHS 500.00", After: "GHS 300.00"}) {
			t.Fatalf("%+v, %v", log, err)
		}
		for _, wrong := range []func() error{
			func() error {
				_, err := f.AddFloat(t.Context(), treasurer, newID(), "", treasury.Float{Provider: "vodafone", Mode: tenant.Live}, 1, "x")
				return err
			},
			func() error {
				_, err := f.AddFloat(t.Context(), treasurer, newID(), "", treasury.Float{Provider: "hubtel", Mode: "real"}, 1, "x")
				return err
			},
			func() error {
				_, err := f.AddFloat(t.Context(), treasurer, newID(), "", treasury.Float{Provider: "hubtel", Mode: tenant.Live}, 0, "x")
				return err
			},
		} {
			f.refused(wrong(), problem.Invalid, problem.CodeInvalidFields)
		}
		_, err = f.Fund(t.Context(), treasurer, newID(), f.tenant.ID, 1, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		_, err = f.AddFloat(t.Context(), f.first, newID(), "", treasury.Float{Provider: "hubtel", Mode: tenant.Live}, 1, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		f.sound()
	})
}

func TestCredits_soldAndReturnedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		credits := func() int64 {
			n, err := f.ledger.Balance(t.Context(), f.tenant.SMSCredits())
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		sell, err := f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 1000, 3500, "paid by bank")
		f.asked(sell, err, KindSellCredits, 1)
		if !strings.HasPrefix(sell.Sentence, "Sell 1,000") && !strings.HasPrefix(sell.Sentence, "Sell 1000") || !strings.HasSuffix(sell.Sentence, "to Adom Stores (live) for GHS 35.00") {
			t.Error(sell.Sentence)
		}
		if credits() != 0 {
			t.Fatal("given before it was checked")
		}
		f.approved(f.first, sell)
		if credits() != 1000 {
			t.Fatal(credits())
		}
		back, err := f.RefundCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 600, 2100, "returned")
		f.asked(back, err, KindRefundCredits, 1)
		more, err := f.RefundCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 600, 2100, "returned again")
		f.asked(more, err, KindRefundCredits, 1)
		if back = f.approved(f.first, back); back.State != Done || credits() != 400 {
			t.Fatalf("%+v, %d", back, credits())
		}
		if b, found, err := f.ledger.Booked(t.Context(), KindRefundCredits, back.ID); err != nil || !found || b.Amount != -600 {
			t.Errorf("%+v, %v", b, err)
		}
		if _, err := f.Approve(t.Context(), f.first, more.ID, more.Digest); !problem.Is(err, problem.InsufficientCredits) { // more than the account has
			t.Fatal(err)
		}
		f.is(more.ID, Waiting)
		if credits() != 400 {
			t.Fatal(credits())
		}
		renamed, err := f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 5, 0, "a gift")
		f.asked(renamed, err, KindSellCredits, 1)
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE tenants SET name = 'Another Shop' WHERE id = $1", 1, f.tenant.ID)
			return nil
		})
		f.failed(f.approved(f.first, renamed), nil)
		if credits() != 400 {
			t.Fatal(credits())
		}
		for _, n := range []int64{0, -1, 1_000_000_001} {
			_, err = f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, n, 1, "x")
			f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		}
		_, err = f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 1, -1, "x")
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		f.sound()
	})
}

// Credits without a price have a value when the policy compares amounts.
func TestCredits_lowPriceNeedsApproval(t *testing.T) {
	each(t, func(f *fixture) {
		f.line(Line{Kind: KindSellCredits, Approvers: 0})
		f.line(Line{Kind: KindSellCredits, From: 10_000, Approvers: 1})
		request, err := f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 9_999, 0, "a gift")
		f.asked(request, err, KindSellCredits, 0)
		request, err = f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 10_000, 0, "a gift")
		f.asked(request, err, KindSellCredits, 1)
		request, err = f.SellCredits(t.Context(), f.requester, newID(), "", f.tenant.ID, 1, 10_000, "dear")
		f.asked(request, err, KindSellCredits, 1)
	})
}
