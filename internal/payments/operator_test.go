package payments

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/treasury"
)

// costly returns a success with the provider's fee and commission.
func costly(fee, commission money.Pesewas) provider.Outcome {
	o := success
	o.Fee, o.Commission, o.FeeKnown = fee, commission, true
	return o
}

// sound runs every check of the product.
func (n *node) sound() {
	t := n.fixture.t
	t.Helper()
	n.books()
	report, err := n.Check(t.Context())
	if err != nil || !report.OK() {
		t.Errorf("the payments: %v, %v", report.Problems, err)
	}
}

// An operator's decision ends a payment of unknown outcome.
func TestResolve_unknownOutcome(t *testing.T) {
	for _, paid := range []bool{true, false} {
		t.Run(fmt.Sprint("paid ", paid), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.second.script(always(unknown), always(notFound))
				r := h.payout()
				r.MSISDN, r.Network = telecel, msisdn.Telecel
				pay, _, err := n.Payout(t.Context(), h.caller(), r)
				if err != nil {
					t.Fatal(err)
				}
				_, err = n.Resolve(t.Context(), pay.ID, paid, "by the statement", "ama")
				wantKind(t, err, problem.InProgress)
				n.pass(2 * time.Minute)
				stuck, err := n.Stuck(t.Context())
				if err != nil || len(stuck) != 1 || stuck[0].ID != pay.ID {
					t.Fatalf("stuck are %v, %v", stuck, err)
				}
				if _, err := n.Resolve(t.Context(), pay.ID, paid, "", "ama"); !problem.Is(err, problem.Invalid) {
					t.Errorf("without a reason: %v", err)
				}
				if _, err := n.Resolve(t.Context(), "no-such-payment", paid, "by the statement", "ama"); !problem.Is(err, problem.NotFound) {
					t.Errorf("no such payment: %v", err)
				}
				broken := errors.New("the audit log is full")
				if _, err := n.Resolve(t.Context(), pay.ID, paid, "by the statement", "ama", func(*db.Tx) error { return broken }); !errors.Is(err, broken) {
					t.Errorf("without its audit entry: %v", err)
				}
				audited := 0
				done, err := n.Resolve(t.Context(), pay.ProviderReference, paid, "by the statement", "ama", func(*db.Tx) error { audited++; return nil })
				if err != nil || audited != 1 || done.Note != "by the statement" {
					t.Fatalf("%+v, audited %d, %v", done, audited, err)
				}
				want, left := "failed", funds
				if paid {
					want, left = "success", funds-pay.Amount-pay.Charges
				}
				if done.PublicStatus() != want || n.balance() != left {
					t.Errorf("%s, the wallet has %s, want %s and %s", done.PublicStatus(), n.balance(), want, left)
				}
				_, err = n.Resolve(t.Context(), pay.ID, !paid, "no, otherwise", "ama")
				wantKind(t, err, problem.Duplicate)
				if stuck, err := n.Stuck(t.Context()); err != nil || len(stuck) != 0 {
					t.Errorf("stuck are %v, %v", stuck, err)
				}
				n.pass(time.Minute)
				if n.jobsLeft() != 0 {
					t.Error("the job is left")
				}
				n.sound()
			})
		})
	}
}

func TestTransfer_betweenWallets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		other := n.newTenant(0)
		pay, err := n.Transfer(t.Context(), h.tenant.ID, other.ID, 30*money.Cedi, "a gift", "ama")
		if err != nil || pay.PublicStatus() != "success" || pay.Charges != 0 {
			t.Fatalf("%+v, %v", pay, err)
		}
		page, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Status: "success"})
		if err != nil || page.Total != 1 || page.Rows[0].Channel != book.ChannelWallet || page.Rows[0].AccountName != other.Name {
			t.Errorf("%+v, %v", page, err)
		}
		got, err := n.ledger.Balance(t.Context(), other.Wallet())
		if err != nil || got != int64(30*money.Cedi) || n.balance() != funds-30*money.Cedi {
			t.Errorf("%d and %s, %v", got, n.balance(), err)
		}
		page, err = n.History(t.Context(), other.ID, book.Filter{Kind: book.KindPayout, Status: "success"})
		if err != nil || page.Total != 1 || !page.Rows[0].Received() || page.Rows[0].AccountName != h.tenant.Name || page.Rows[0].Reference != pay.Reference || page.Rows[0].Parent != pay.ID {
			t.Errorf("%+v, %v", page, err)
		}
		n.books()
		_, err = n.Transfer(t.Context(), h.tenant.ID, other.ID, funds, "too much", "ama")
		wantKind(t, err, problem.InsufficientFunds)
		_, err = n.Transfer(t.Context(), h.tenant.ID, h.tenant.ID, 1, "to itself", "ama")
		wantKind(t, err, problem.Invalid)
		_, err = n.Transfer(t.Context(), h.tenant.ID, "nobody", 1, "to nobody", "ama")
		wantKind(t, err, problem.NotFound)
		var live tenant.Tenant
		if err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
			live, err = n.tenants.Create(tx, tenant.Tenant{Name: "Adom Stores, live", Mode: tenant.Live})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, err = n.Transfer(t.Context(), h.tenant.ID, live.ID, 1, "test money into live", "ama")
		wantKind(t, err, problem.Invalid)
		n.sound()
	})
}

// The float agrees with a model of the provider's book after successes, fees, commissions and a reversal.
func TestFloat_agreesWithProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		theirs := 500 * money.Cedi
		agrees := func(after string) {
			t.Helper()
			gap, err := n.CheckFloat(t.Context(), "hubtel", "test", theirs)
			if err != nil || gap != 0 {
				t.Errorf("after %s the float is off by %s (%v)", after, gap, err)
			}
		}
		if err := n.AddFloat(t.Context(), treasury.Float{Provider: "hubtel", Mode: tenant.Test}, theirs, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		agrees("the first deposit")
		if err := n.AddFloat(t.Context(), treasury.Float{Provider: "hubtel", Mode: tenant.Test}, -theirs/2, "taken out", "ama"); err != nil {
			t.Fatal(err)
		}
		theirs /= 2
		agrees("a withdrawal")
		h.rails = []provider.Rail{} // as in a command, which has no rails
		command := h.stopped("command")
		for _, each := range []*node{n, command} {
			e := wantKind(t, each.AddFloat(t.Context(), treasury.Float{Provider: "nobody", Mode: tenant.Test}, 0, "paid in", "ama"), problem.Invalid)
			if got := e.FieldNames(); !slices.Equal(got, []string{"amount", "provider"}) {
				t.Errorf("refused for %v", got)
			}
			wantKind(t, each.AddFloat(t.Context(), treasury.Float{Provider: "nobody", Mode: tenant.Test}, theirs, "paid in", "ama"), problem.Invalid)
		}

		h.second.script(always(pending), always(costly(5, 0)))
		r := h.payout()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		out, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		theirs -= r.Amount + 5
		agrees("a payout")

		c := h.collect()
		c.MSISDN, c.Network = telecel, msisdn.Telecel
		in, _, err := n.Collect(t.Context(), h.caller(), c)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		theirs += c.Amount - 5
		agrees("a collection")

		h.second.script(always(pending), always(costly(0, 28)))
		if _, _, err := n.TopUp(t.Context(), h.caller(), n.topUp()); err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		theirs -= 5*money.Cedi - 28
		agrees("a top-up")

		h.second.script(always(pending), always(failed))
		for _, pay := range []book.Payment{n.must(book.KindPayout, out.ID), n.must(book.KindCollection, in.ID)} {
			for range 2 { // the second recheck changes nothing
				if _, err := n.rechecker.recheck(t.Context(), pay); err != nil {
					t.Fatal(err)
				}
			}
		}
		theirs += r.Amount + 5 - (c.Amount - 5)
		agrees("both were reversed")
		n.sound()
	})
}

// Resolving a payout by a statement posts the provider's costs from it.
func TestResolvePaid_postsStatedCosts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.script(always(unknown), always(notFound))
		r := h.payout()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		pay, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Minute)
		if _, err := n.ResolvePaid(t.Context(), pay.ID, -1, 0, "by the statement", "ama"); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
		if _, err := n.ResolvePaid(t.Context(), pay.ID, 5, 2, "by the statement", "ama"); err != nil {
			t.Fatal(err)
		}
		if gap, err := n.CheckFloat(t.Context(), "hubtel", "test", 2-5-r.Amount); err != nil || gap != 0 {
			t.Errorf("the float is off by %s (%v)", gap, err)
		}
		n.sound()
	})
}

// A provider's later report never changes a status silently. It goes through suspense to an operator.
func TestContradiction_goesThroughSuspense(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		pay := func(ask provider.Outcome) book.Payment {
			t.Helper()
			h.first.script(always(pending), always(ask))
			out, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			n.pass(2 * time.Second)
			return n.must(book.KindPayout, out.ID)
		}
		look := func(pay book.Payment, ask provider.Outcome) book.Payment {
			t.Helper()
			h.first.script(always(pending), always(ask))
			if _, err := n.rechecker.recheck(t.Context(), pay); err != nil {
				t.Fatal(err)
			}
			return n.must(pay.Kind, pay.ID)
		}
		decide := func(pay book.Payment, tenants bool) error {
			return n.Decide(t.Context(), pay.ID, tenants, "agreed with the provider", "ama")
		}
		const amount, fee = 10 * money.Cedi, 10
		done := pay(success)
		if err := decide(done, true); !problem.Is(err, problem.Invalid) {
			t.Errorf("nothing in suspense: %v", err)
		}
		reversed := look(done, failed)
		if reversed.Status != book.StatusSuccess || reversed.ContradictedAt.IsZero() || n.account(ledger.Suspense) != amount {
			t.Errorf("reversed: %s, suspense has %s", reversed.Status, n.account(ledger.Suspense))
		}
		if err := decide(reversed, true); err != nil || n.account(ledger.Suspense) != 0 || n.balance() != funds-fee {
			t.Errorf("%v, suspense has %s, the wallet %s", err, n.account(ledger.Suspense), n.balance())
		}
		h.clock.Advance(time.Millisecond) // the next recheck is due at another time
		if err := decide(reversed, false); !problem.Is(err, problem.Duplicate) {
			t.Errorf("decided twice: %v", err)
		}

		found := look(pay(failed), success)
		if found.Status != book.StatusFailed || found.ContradictedAt.IsZero() || n.account(ledger.Suspense) != -amount {
			t.Errorf("found paid: %s, suspense has %s", found.Status, n.account(ledger.Suspense))
		}
		if err := decide(found, true); err != nil || n.account(ledger.Suspense) != 0 || n.balance() != funds-fee-amount {
			t.Errorf("%v, suspense has %s, the wallet %s", err, n.account(ledger.Suspense), n.balance())
		}
		all, err := n.Contradictions(t.Context())
		if err != nil || len(all) != 2 {
			t.Errorf("contradicted are %v, %v", all, err)
		}
		n.sound()
	})
}

// A collection that was paid after it failed is credited once, less the charges. The customer gets a webhook.
func TestCollection_paidLate(t *testing.T) {
	for status, reason := range map[book.Status]string{
		book.StatusFailed: provider.ReasonFunds, book.StatusDeclined: provider.ReasonExpired, book.StatusInvalid: provider.ReasonPayerNotFound,
	} {
		t.Run(string(status), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				h.first.script(always(pending), always(provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: reason}))
				in, _, err := n.Collect(t.Context(), h.caller(), h.collect())
				if err != nil {
					t.Fatal(err)
				}
				n.pass(10 * time.Second)
				ended := n.must(book.KindCollection, in.ID)
				if ended.Status != status || n.balance() != funds {
					t.Fatalf("at first it is %s, the wallet has %s", ended.Status, n.balance())
				}
				h.first.script(always(pending), always(success))
				for range 2 {
					if _, err := n.rechecker.recheck(t.Context(), ended); err != nil {
						t.Fatal(err)
					}
				}
				n.quiet()
				if got := n.must(book.KindCollection, in.ID); got.Status != book.StatusSuccess || n.balance() != funds+in.Net() {
					t.Errorf("then it is %s, the wallet has %s", got.Status, n.balance())
				}
				if told := h.hooks.of(in.Reference); !slices.Equal(told, []string{"failed", "success"}) {
					t.Errorf("the customer was told %v", told)
				}
				n.books()
			})
		})
	}
}

// A reversed collection debits the wallet up to its balance and stops the tenant's payouts.
func TestReversedCollection_limitedByWallet(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		poor := n.newTenant(0)
		c := idempotency.Caller{Tenant: poor.ID}
		h.first.script(always(pending), always(success))
		in, _, err := n.Collect(t.Context(), c, h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		const net = 10*money.Cedi - 10
		if err := n.Adjust(t.Context(), poor.ID, -(net - 3*money.Cedi), "spent", "ama"); err != nil {
			t.Fatal(err)
		}
		h.first.script(always(pending), always(failed))
		in, _, err = n.Get(t.Context(), poor.ID, book.KindCollection, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.rechecker.recheck(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		left, err := n.ledger.Balance(t.Context(), poor.Wallet())
		if owes := n.account(ledger.Receivable(poor.ID)); err != nil || left != 0 || owes != -(net-3*money.Cedi) {
			t.Errorf("the wallet has %d, the tenant owes %s (%v)", left, -owes, err)
		}
		n.pass(2 * time.Second)
		_, _, err = n.Payout(t.Context(), c, h.payout())
		wantKind(t, err, problem.Forbidden)
		n.sound()

		// An operator recovers the debt up to the wallet's balance.
		recovers := func(want, leaves money.Pesewas) {
			t.Helper()
			told := money.Pesewas(0)
			taken, err := n.Recover(t.Context(), poor.ID, "agreed", "ama", func(_ *db.Tx, taken money.Pesewas) error { told = taken; return nil })
			if owes := -n.account(ledger.Receivable(poor.ID)); err != nil || taken != want || told != want || owes != leaves {
				t.Errorf("took %s (told %s), owed %s afterwards: %v", taken, told, owes, err)
			}
		}
		_, err = n.Recover(t.Context(), poor.ID, "agreed", "ama", nil)
		wantKind(t, err, problem.InsufficientFunds)
		_, err = n.Recover(t.Context(), poor.ID, "", "ama", nil)
		wantKind(t, err, problem.Invalid)
		if err := n.Fund(t.Context(), poor.ID, 2*money.Cedi, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		recovers(2*money.Cedi, net-5*money.Cedi)
		if err := n.Fund(t.Context(), poor.ID, net, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		recovers(net-5*money.Cedi, 0)
		_, err = n.Recover(t.Context(), poor.ID, "agreed", "ama", nil)
		wantKind(t, err, problem.Invalid)
		if left, err := n.ledger.Balance(t.Context(), poor.Wallet()); err != nil || left != int64(5*money.Cedi) {
			t.Errorf("the wallet has %d, %v", left, err)
		}
		n.sound()
	})
}

// Every final payment is queried again a day later, and once more if the provider did not answer.
func TestRecheck_afterADay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(success))
		quick, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		h.second.script(always(pending), always(pending))
		r := h.payout()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		late, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(20 * time.Hour)
		if _, err := n.Resolve(t.Context(), late.ID, true, "by the statement", "ama"); err != nil {
			t.Fatal(err)
		}
		_, first := h.first.counts()
		h.first.script(always(pending), always(unknown)) // no answers for a while
		h.second.script(always(pending), always(costly(7, 0)))
		n.pass(6 * time.Hour)
		_, tries := h.first.counts()
		if tries == first {
			t.Error("nobody looked again")
		}
		h.first.script(always(pending), always(failed))
		n.pass(recheckPause + recheckEvery)
		if is := n.must(book.KindPayout, quick.ID); is.ContradictedAt.IsZero() {
			t.Error("the reversal was not seen")
		}
		_, asked := h.first.counts()
		if n.account(ledger.ProviderFees("hubtel")) != 0 {
			t.Error("the late one was looked at too early")
		}
		n.pass(20 * time.Hour)
		if _, again := h.first.counts(); again != asked {
			t.Errorf("asked %d times more", again-asked)
		}
		// Costs that the operator did not know are posted when the provider reports them.
		if is := n.account(ledger.ProviderFees("hubtel")); is != -7 {
			t.Errorf("the provider's fee is booked as %s", is)
		}
		_, seconds := h.second.counts()
		n.pass(72 * time.Hour)
		if _, again := h.second.counts(); again != seconds {
			t.Errorf("asked %d times more about the late one", again-seconds)
		}
		n.sound()
	})
}

// The check finds every fault that the test creates.
func TestCheck_findsEveryFault(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		open, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.quiet()
		h.first.script(always(pending), always(success))
		for range 3 {
			if _, _, err := n.Collect(t.Context(), h.caller(), h.collect()); err != nil {
				t.Fatal(err)
			}
		}
		other := n.newTenant(0)
		if _, err := n.Transfer(t.Context(), h.tenant.ID, other.ID, 1, "a gift", "ama"); err != nil {
			t.Fatal(err)
		}
		in, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindCollection})
		if err != nil {
			t.Fatal(err)
		}
		n.pass(500 * time.Millisecond)
		for _, row := range in.Rows {
			if _, err := n.Status(t.Context(), h.tenant.ID, row.ID); err != nil {
				t.Fatal(err)
			}
		}
		n.sound()
		paid := in.Rows[0].ID
		for what, spoil := range map[string]string{
			"a status":          `UPDATE payments SET status = 'failed', settled_at = 1 WHERE id = '` + open.ID + `'`,
			"another status":    `UPDATE payments SET status = 'declined' WHERE id = '` + paid + `'`,
			"an amount":         `UPDATE payments SET amount = amount + 1 WHERE id = '` + paid + `'`,
			"an open amount":    `UPDATE payments SET amount = amount + 1 WHERE id = '` + open.ID + `'`,
			"charges":           `UPDATE payments SET charges = charges + 1 WHERE id = '` + paid + `'`,
			"a bearer":          `UPDATE payments SET fee_bearer = 'customer' WHERE id = '` + paid + `'`,
			"a mode":            `UPDATE payments SET mode = 'live' WHERE id = '` + paid + `'`,
			"a rail":            `UPDATE payments SET rail = 'hubtel' WHERE id = '` + paid + `'`,
			"the other wallet":  `UPDATE payments SET account = 'x' WHERE channel = 'WALLET' AND parent = ''`,
			"a side":            `UPDATE payments SET parent = 'x' WHERE channel = 'WALLET' AND parent = ''`,
			"a hold":            `DELETE FROM transfers WHERE leg = 'hold' AND subject = '` + open.ID + `'`,
			"a hold's fee":      `DELETE FROM transfers WHERE leg = 'fee' AND subject = '` + open.ID + `'`,
			"a final leg":       `DELETE FROM transfers WHERE leg = 'final' AND subject = '` + paid + `'`,
			"a final leg's fee": `DELETE FROM transfers WHERE leg = 'final_fee' AND subject = '` + paid + `'`,
			"a second hold":     `UPDATE transfers SET subject = '` + paid + `' WHERE leg = 'hold' AND subject = '` + open.ID + `'`,
			"a counter":         `UPDATE payment_counters SET n = n + 1 WHERE level = 1`,
			"a bit":             `UPDATE payment_counters SET n = n + 4 WHERE level = 0`,
			"a list's end":      `UPDATE payment_ends SET total = total + 1`,
			"a list's time":     `UPDATE payment_ends SET last_at = last_at + 1`,
			"a day":             `UPDATE payment_days SET first = first + 1`,
			"a row":             `DELETE FROM payments WHERE id = '` + paid + `'`,
		} {
			stop := errors.New("put it back")
			err := n.db.Write(t.Context(), func(tx *db.Tx) error {
				if rows, err := tx.Exec(spoil); err != nil || rows == 0 {
					t.Errorf("%s: %d rows, %v", what, rows, err)
				}
				report, err := n.CheckIn(tx)
				if err != nil {
					return err
				}
				if report.OK() {
					t.Errorf("nobody sees that %s is wrong", what)
				}
				return stop
			})
			if !errors.Is(err, stop) {
				t.Fatal(what, err)
			}
		}
		n.sound()
	})
}

func TestMetrics_outcomesAndUnknown(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		if err := n.AddFloat(t.Context(), treasury.Float{Provider: "hubtel", Mode: tenant.Test}, 500*money.Cedi, "paid in", "ama"); err != nil {
			t.Fatal(err)
		}
		h.first.script(always(pending), always(success))
		if _, _, err := n.Payout(t.Context(), h.caller(), h.payout()); err != nil {
			t.Fatal(err)
		}
		h.second.script(always(unknown), always(notFound))
		r := h.payout()
		r.MSISDN, r.Network = telecel, msisdn.Telecel
		if _, _, err := n.Payout(t.Context(), h.caller(), r); err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Minute)
		unknown, err := n.Unknown(t.Context())
		if none, there := unknown[book.RailName{Provider: "mtn", Mode: "test"}]; err != nil || !there || none != (book.Unknown{}) {
			t.Errorf("nothing is unknown at this rail: %v, %+v, %v", there, none, err)
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(n.Collectors()...)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				line := f.GetName()
				for _, l := range m.GetLabel() {
					line += " " + l.GetValue()
				}
				if strings.HasSuffix(line, "oldest_seconds test hubtel") && m.GetGauge().GetValue() >= 240 {
					line += " old"
				}
				if g, c := m.GetGauge(), m.GetCounter(); g != nil && g.GetValue() == 500 || c != nil && c.GetValue() == 1 || g != nil && g.GetValue() == 1 {
					line += " as wanted"
				}
				lines = append(lines, line)
			}
		}
		for _, want := range []string{
			"makola_payments_total MTN payout mtn success as wanted", "makola_payments_total TELECEL payout hubtel pending as wanted",
			"makola_unknown_outcome test hubtel as wanted", "makola_unknown_outcome test mtn", "makola_unknown_outcome_oldest_seconds test hubtel old",
			"makola_payment_amount_ghs_total disbursement test MTN payout mtn", "makola_provider_float_ghs unassigned test hubtel as wanted",
			"makola_provider_float_ghs disbursement test hubtel", "makola_provider_float_ghs collection test mtn", "makola_payment_settle_seconds MTN payout mtn",
		} {
			if !slices.Contains(lines, want) {
				t.Errorf("there is no %q in\n%s", want, strings.Join(lines, "\n"))
			}
		}
	})
}

// An operator can contradict a wrong resolution. Its money goes through suspense to the party that an operator
// selects.
func TestContradict_wrongResolution(t *testing.T) {
	for _, paid := range []bool{true, false} { // how it was resolved
		for _, tenants := range []bool{true, false} {
			t.Run(fmt.Sprintf("paid %t, the customer's %t", paid, tenants), func(t *testing.T) {
				dbtest.Each(t, func(t *testing.T, d *db.DB) {
					h := newFixture(t, d)
					n := h.node("a")
					h.second.script(always(unknown), always(notFound))
					r := h.payout()
					r.MSISDN, r.Network = telecel, msisdn.Telecel
					pay, _, err := n.Payout(t.Context(), h.caller(), r)
					if err != nil {
						t.Fatal(err)
					}
					n.pass(3 * time.Minute)
					_, err = n.Contradict(t.Context(), pay.ID, !paid, "it is open", "ama")
					wantKind(t, err, problem.Invalid)
					resolved, err := n.Resolve(t.Context(), pay.ID, paid, "line 117", "ama")
					if err != nil || resolved.Reason != provider.ReasonResolved {
						t.Fatalf("%+v, %v", resolved, err)
					}
					n.pass(time.Minute)
					_, err = n.Contradict(t.Context(), pay.ID, paid, "the same word", "ama")
					wantKind(t, err, problem.Invalid)
					_, err = n.Contradict(t.Context(), pay.ID, !paid, "", "ama")
					wantKind(t, err, problem.Invalid)
					turned, err := n.Contradict(t.Context(), pay.ID, !paid, "line 711", "ama")
					if err != nil || turned.ContradictedAt.IsZero() || turned.Status != resolved.Status || turned.Note != "line 711" || turned.Reason != provider.ReasonResolved {
						t.Fatalf("%+v, %v", turned, err)
					}
					_, err = n.Contradict(t.Context(), pay.ID, !paid, "line 711", "ama", func(*db.Tx) error {
						t.Error("a second contradiction ran")
						return nil
					})
					wantKind(t, err, problem.Duplicate)
					hangs := pay.Amount // the provider reversed it
					if !paid {
						hangs = -pay.Amount // the provider paid it after the refund
					}
					if got := n.account(ledger.Suspense); got != hangs {
						t.Errorf("suspense holds %s, not %s", got, hangs)
					}
					if err := n.Decide(t.Context(), pay.ID, tenants, "agreed", "ama"); err != nil {
						t.Fatal(err)
					}
					wantKind(t, n.Decide(t.Context(), pay.ID, tenants, "again", "ama"), problem.Duplicate)
					left := funds // the money is as if the payment was never paid, or never refunded
					if paid {
						left -= pay.Amount + pay.Charges
					}
					if tenants {
						left += hangs
					}
					if got := n.balance(); got != left || n.account(ledger.Suspense) != 0 {
						t.Errorf("resolved as paid %v, for the customer %v: the wallet has %s, not %s, suspense %s", paid, tenants, got, left, n.account(ledger.Suspense))
					}
					n.pass(time.Minute)
					n.sound()
				})
			})
		}
	}
}
