package changes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
)

// ofUnknown has the kinds whose examples need payouts of unknown outcome.
var ofUnknown = []string{KindResolve, KindContradict, KindDecide, KindPair, KindPairAll, KindEndByLine, KindEndAllByLine}

// difference is an exception that a test stores together with its own line.
type difference struct {
	source, kind, payment, ending string
	delta                         money.Pesewas
	uploader                      string
	at                            int64 // microseconds
}

// differs stores an exception with its line, and returns its id, which is also the id of the line and of the statement.
func (f *fixture) differs(x difference) (id string) {
	f.t.Helper()
	id = newID()
	amount, ended := max(x.delta, -x.delta), 0
	if x.ending != "" {
		ended = 1
	}
	f.tx(func(tx *db.Tx) error {
		if _, err := tx.Exec(`INSERT INTO statement_exceptions (id, source, kind, line, payment, amount, delta, reason, at, opened_at, ended_at, ending)
			VALUES ($1, $2, $3, $1, $4, $5, $6, 'The sides differ.', 1, 1, $7, $8)`, id, x.source, x.kind, x.payment, int64(amount), int64(x.delta), ended, x.ending); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO statement_lines (id, source, identity, statement, file_row, day, at, amount, fee, fee_known, their_id, reference, settlement, status, type, party, narrative, judged)
			VALUES ($1, $2, $1, $1, 2, 1, $3, $4, 0, 0, $1, '', '', 'success', '', '', '', 1)`, id, x.source, x.at, int64(x.delta)); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO statements (id, source, file_name, digest, state, uploader, uploader_name, lines, added, changed, first_at, last_at, opening, closing, chains, uploaded_at, read_at)
			VALUES ($1, $2, 'november.csv', $1, 'read', $3, 'Kojo', 1, 1, 0, 1, 1, 0, 0, 0, 1, 1)`, id, x.source, x.uploader)
		return err
	})
	return id
}

const (
	mtnSource    = "live/mtn/collection"
	hubtelSource = "live/hubtel/disbursement"
)

func providerFeesKey(x *examples) ledger.Key {
	return ledger.Key{Asset: x.tenant.Money(), ID: ledger.ProviderFees("mtn")}
}

// exceptionExamples returns examples of the kinds about exceptions of statements.
func exceptionExamples() map[string]example {
	of := func(kind string, x difference, more ...string) func(*examples, string) (Request, error) {
		return func(e *examples, id string) (Request, error) {
			return e.request(kind, id, append([]string{"exception", e.differs(x)}, more...)...)
		}
	}
	credit := difference{source: mtnSource, kind: "theirs_only", delta: 500}
	waiting := credit
	waiting.ending = "suspense"
	return map[string]example{
		KindWriteOff: {ask: of(KindWriteOff, credit)},
		KindBookFee:  {has: providerFeesKey, by: -5, ask: of(KindBookFee, difference{source: mtnSource, kind: "fee", delta: -5})},
		KindSuspend:  {has: suspenseKey, by: 500, ask: of(KindSuspend, credit)},
		KindRelease:  {has: feesKey, by: 500, ask: of(KindRelease, waiting, "for", "house")},
		KindAdopt: {has: walletKey, by: 500, ask: func(x *examples, id string) (Request, error) {
			return of(KindAdopt, credit, "wallet", x.tenant.ID)(x, id)
		}},
		KindPair: {ask: func(x *examples, id string) (Request, error) {
			return of(KindPair, difference{source: hubtelSource, kind: "theirs_only", delta: -10 * money.Cedi}, "payment", x.next())(x, id)
		}},
		KindPairAll: {ask: func(x *examples, id string) (Request, error) {
			line := x.differs(difference{source: hubtelSource, kind: "theirs_only", delta: -10 * money.Cedi})
			return x.request(KindPairAll, id, "pairs", line+"="+x.next())
		}},
		KindEndAllByLine: {ask: func(x *examples, id string) (Request, error) {
			x.differs(difference{source: hubtelSource, kind: "ours_only", payment: x.next()})
			return x.request(KindEndAllByLine, id, "source", hubtelSource, "kind", "ours_only")
		}},
		KindEndByLine: {has: walletKey, by: int64(10*money.Cedi) + 10, ask: func(x *examples, id string) (Request, error) {
			return of(KindEndByLine, difference{source: hubtelSource, kind: "ours_only", payment: x.next()})(x, id)
		}},
	}
}

// balance returns the balance of an account of the ledger.
func (f *fixture) balance(id ledger.AccountID) int64 {
	f.t.Helper()
	n, err := f.ledger.Balance(f.t.Context(), ledger.Key{Asset: f.tenant.Money(), ID: id})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// approved requests a change and lets another person approve it.
func (x *examples) approved(kind string, pairs ...string) {
	x.t.Helper()
	request, err := x.request(kind, newID(), pairs...)
	if err != nil || request.State != Waiting {
		x.t.Fatalf("%s: %+v, %v", kind, request, err)
	}
	seen, err := x.Review(x.t.Context(), x.first.Place, request.ID)
	if err == nil {
		request, err = x.Approve(x.t.Context(), x.first, request.ID, seen.Shown)
	}
	if err != nil || request.State != Done {
		x.t.Fatalf("%s: %+v, %v", kind, request, err)
	}
}

func (f *fixture) treasurer() *examples {
	x := &examples{fixture: f}
	x.boss = f.join("treasurer@example.com", roles.Treasury)
	return x
}

// Money that matches no payment of ours is moved into suspense, and from there to the customer, once. Afterwards the books
// agree with the statement, and suspense is empty.
func TestSuspend_andRelease(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		in := f.differs(difference{source: mtnSource, kind: "theirs_only", delta: 700})
		out := f.differs(difference{source: mtnSource, kind: "theirs_only", delta: -300})
		x.approved(KindSuspend, "source", mtnSource, "kind", "theirs_only")
		if f.balance(ledger.Suspense) != 400 || f.balance("float/mtn/collection") != -400 {
			f.t.Fatal(f.balance(ledger.Suspense), f.balance("float/mtn/collection"))
		}
		if _, err := x.request(KindRelease, newID(), "exception", in, "for", "customer"); !problem.Is(err, problem.Invalid) {
			f.t.Error("without an account", err)
		}
		x.approved(KindRelease, "exception", in, "for", "customer", "wallet", f.tenant.ID)
		x.approved(KindRelease, "exception", out, "for", "charge")
		if f.balance(ledger.Suspense) != 0 || f.balance(f.tenant.Wallet().ID) != 700 || f.balance("provider_fees/mtn") != -300 {
			f.t.Error(f.balance(ledger.Suspense), f.balance(f.tenant.Wallet().ID), f.balance("provider_fees/mtn"))
		}
		for _, again := range [][]string{{KindSuspend, "exception", in}, {KindRelease, "exception", in, "for", "house"}, {KindAdopt, "exception", in, "wallet", f.tenant.ID}} {
			if _, err := x.request(again[0], newID(), again[1:]...); !problem.Is(err, problem.NotFound) {
				f.t.Errorf("%v a second time: %v", again, err)
			}
		}
	})
}

// A person who imported a line may not approve its resolution.
func TestExceptions_uploaderApprovesNothing(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		id := f.differs(difference{source: mtnSource, kind: "theirs_only", delta: 700, uploader: f.first.Visitor.Person.ID})
		for _, pairs := range [][]string{{KindSuspend}, {KindAdopt, "wallet", f.tenant.ID}, {KindWriteOff}} {
			request, err := x.request(pairs[0], newID(), append(pairs[1:], "exception", id)...)
			if err != nil {
				f.t.Fatal(err)
			}
			if done, err := f.Approve(t.Context(), f.first, request.ID, request.Digest); err == nil {
				f.t.Errorf("%s was approved: %+v", pairs[0], done)
				return
			}
			if _, err := f.Withdraw(t.Context(), x.boss, request.ID, request.Digest); err != nil {
				f.t.Fatal(err)
			}
		}
	})
}

// A statement can resolve a payment of unknown outcome, and reverse an operator's decision. It never changes an outcome that
// the provider reported.
func TestEndByLine_neverOverrulesTheProvider(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(3)
		settled, decided := pays[0].ID, pays[1].ID
		line := f.differs(difference{source: hubtelSource, kind: "state", payment: settled, delta: -10 * money.Cedi})
		x.approved(KindEndByLine, "exception", line)
		if p, err := f.Payments.Find(t.Context(), settled); err != nil || p.Status != book.StatusSuccess || p.LastReported != "" {
			f.t.Fatal(p.Status, p.LastReported, err)
		}
		if _, err := f.Payments.Resolve(t.Context(), decided, true, "another line", "ama"); err != nil {
			f.t.Fatal(err)
		}
		missing := f.differs(difference{source: hubtelSource, kind: "ours_only", payment: decided, delta: 10 * money.Cedi})
		x.approved(KindEndByLine, "exception", missing)
		if p, err := f.Payments.Find(t.Context(), decided); err != nil || p.ContradictedAt.IsZero() {
			f.t.Fatal(p.Status, err)
		}
		reported := pays[2].ID
		f.tx(func(tx *db.Tx) error { // as the provider's answer does, without a note of an operator
			_, err := tx.Exec(`UPDATE payments SET status = 'success', settled_at = created_at + 1 WHERE id = $1`, reported)
			return err
		})
		again := f.differs(difference{source: hubtelSource, kind: "ours_only", payment: reported, delta: 10 * money.Cedi})
		if _, err := x.request(KindEndByLine, newID(), "exception", again); err == nil || problem.From(err).Code != "provider_reported" {
			f.t.Errorf("a payment that its provider reported: %v", err)
		}
	})
}

// A credit at a bank pays for one deposit. The deposit has the amount and bank account of the line, and a second deposit is
// refused.
func TestFund_fromOneCreditOnce(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.account("gcb")
		x.boss = f.requester
		line := f.differs(difference{source: "live/bank/gcb", kind: "theirs_only", delta: 900, at: 1})
		fund := func(amount, line string) error {
			_, err := x.request(KindFund, newID(), "tenant", f.tenant.ID, "amount", amount, "line", line)
			return err
		}
		if err := fund("9.01", line); !problem.Is(err, problem.Invalid) {
			f.t.Errorf("another amount: %v", err)
		}
		debit := f.differs(difference{source: "live/bank/gcb", kind: "theirs_only", delta: -900})
		if err := fund("9.00", debit); !problem.Is(err, problem.Invalid) {
			f.t.Errorf("money that left: %v", err)
		}
		other, err := x.request(KindFund, newID(), "tenant", f.tenant.ID, "amount", "9.00", "line", line)
		if err != nil {
			f.t.Fatal(err)
		}
		x.approved(KindFund, "tenant", f.tenant.ID, "amount", "9.00", "line", line)
		if f.balance(f.tenant.Wallet().ID) != 900 || f.balance("bank/gcb") != -900 {
			f.t.Error(f.balance(f.tenant.Wallet().ID), f.balance("bank/gcb"))
		}
		if done, err := f.Approve(t.Context(), f.first, other.ID, other.Digest); err == nil && done.State == Done {
			f.t.Error("a second deposit used the line")
		}
		if err := fund("9.00", line); !problem.Is(err, problem.Duplicate) {
			f.t.Errorf("a third deposit: %v", err)
		}
		if e, err := f.Reconcile.Exception(context.WithoutCancel(t.Context()), line); err != nil || e.Ending != reconcile.EndedFunded {
			f.t.Error(e, err)
		}
		if f.balance(f.tenant.Wallet().ID) != 900 {
			f.t.Error(f.balance(f.tenant.Wallet().ID))
		}
	})
}

// One request changes at most 500 exceptions, and all of them or none.
func TestExceptions_manyAtOnce(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		var last string
		for i := range 20 {
			last = f.differs(difference{source: mtnSource, kind: "fee", delta: money.Pesewas(-1 - i)})
		}
		request, err := x.request(KindBookFee, newID(), "source", mtnSource)
		if err != nil {
			f.t.Fatal(err)
		}
		f.tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE statement_exceptions SET delta = -1000, amount = 1000 WHERE id = $1`, last)
			return err
		})
		if done, err := f.Approve(t.Context(), f.first, request.ID, request.Digest); err == nil && done.State == Done {
			f.t.Fatal("other fees were booked", done)
		}
		if f.balance("provider_fees/mtn") != 0 {
			f.t.Error(f.balance("provider_fees/mtn"))
		}
		x.approved(KindBookFee, "source", mtnSource)
		if want := fmt.Sprint(-1000 - 19*20/2); fmt.Sprint(f.balance("provider_fees/mtn")) != want {
			f.t.Error(f.balance("provider_fees/mtn"), want)
		}
	})
}

// One request puts all unmatched credits of a statement account into one wallet, and lists each credit. Debits stay open. The same
// request again finds nothing.
func TestAdopt_manyAtOnce(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		for _, delta := range []money.Pesewas{500, 700, 90_000, -300} {
			f.differs(difference{source: mtnSource, kind: "theirs_only", delta: delta})
		}
		f.differs(difference{source: hubtelSource, kind: "theirs_only", delta: 11})
		request, err := x.request(KindAdopt, newID(), "source", mtnSource, "most", "10.00", "wallet", f.tenant.ID)
		if err != nil || request.Amount != 1200 {
			f.t.Fatalf("%+v, %v", request, err)
		}
		seen, err := f.Review(t.Context(), f.first.Place, request.ID)
		if err != nil {
			f.t.Fatal(err)
		}
		lines := 0
		for _, fact := range seen.Now.List {
			if strings.HasPrefix(fact.Name, "Exception ") && strings.Contains(fact.Value, "november.csv, row 2: The sides differ.") {
				lines++
			}
		}
		if lines != 2 {
			f.t.Errorf("%d lines are listed: %+v", lines, seen.Facts.List)
		}
		if request, err = f.Approve(t.Context(), f.first, request.ID, seen.Shown); err != nil || request.State != Done {
			f.t.Fatalf("%+v, %v", request, err)
		}
		if f.balance(f.tenant.Wallet().ID) != 1200 || f.balance("float/mtn/collection") != -1200 {
			f.t.Error(f.balance(f.tenant.Wallet().ID), f.balance("float/mtn/collection"))
		}
		if _, err := x.request(KindAdopt, newID(), "source", mtnSource, "most", "10.00", "wallet", f.tenant.ID); !problem.Is(err, problem.NotFound) {
			f.t.Errorf("a second time: %v", err)
		}
	})
}

// A request for several matches names each exception and each payment once, and only open exceptions.
func TestPairAll_refusals(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		line := f.differs(difference{source: hubtelSource, kind: "theirs_only", delta: -1000})
		other := f.differs(difference{source: hubtelSource, kind: "theirs_only", delta: -1000})
		payment := newID()
		for name, pairs := range map[string]string{
			"none": " ", "no payment": line, "an empty payment": line + "=", "twice the exception": line + "=a " + line + "=b", "twice the payment": line + "=a " + other + "=a",
			"too many": strings.Repeat(line+"=x ", maxPairs+1), "not there": newID() + "=" + payment + " " + line + "=" + payment,
		} {
			if _, err := x.request(KindPairAll, newID(), "pairs", pairs); !problem.Is(err, problem.Invalid) {
				f.t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := x.request(KindPairAll, newID(), "pairs", line+"="+payment); !problem.Is(err, problem.NotFound) {
			f.t.Errorf("an unknown payment: %v", err)
		}
	})
}

// One request sets the outcomes of many payments from the statement. It sets only payments that a statement can resolve, each once,
// and only after the approval. A payment that changes before the approval keeps its exception.
func TestEndAllByLine_oneByOne(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(4)
		var ids []string
		for _, pay := range pays {
			ids = append(ids, f.differs(difference{source: hubtelSource, kind: "state", payment: pay.ID, delta: -10 * money.Cedi}))
		}
		f.tx(func(tx *db.Tx) error { // as the provider's answer does, without a note of an operator
			_, err := tx.Exec(`UPDATE payments SET status = 'success', settled_at = created_at + 1 WHERE id = $1`, pays[3].ID)
			return err
		})
		request, err := x.request(KindEndAllByLine, newID(), "source", hubtelSource, "kind", "state")
		if err != nil || request.Amount != 30*money.Cedi {
			f.t.Fatalf("%+v, %v", request, err)
		}
		if _, err := x.request(KindEndAllByLine, newID(), "source", hubtelSource, "kind", "fee"); !problem.Is(err, problem.Invalid) {
			f.t.Errorf("differences of fees: %v", err)
		}
		settles := func() {
			if err := f.SettleApproved(t.Context()); err != nil {
				f.t.Fatal(err)
			}
		}
		settles()
		if p, err := f.Payments.Find(t.Context(), pays[0].ID); err != nil || !p.Status.Open() {
			f.t.Fatalf("settled without an approval: %s, %v", p.Status, err)
		}
		seen, err := f.Review(t.Context(), f.first.Place, request.ID)
		if err == nil {
			request, err = f.Approve(t.Context(), f.first, request.ID, seen.Shown)
		}
		if err != nil || request.State != Done {
			f.t.Fatalf("%+v, %v", request, err)
		}
		if _, err := f.Payments.Resolve(t.Context(), pays[2].ID, false, "another line", "ama"); err != nil {
			f.t.Fatal(err)
		}
		settles()
		settles()
		for i, want := range []struct {
			status book.Status
			ending reconcile.Ending
			note   bool
		}{{book.StatusSuccess, reconcile.EndedSettled, false}, {book.StatusSuccess, reconcile.EndedSettled, false}, {book.StatusFailed, "", true}, {book.StatusSuccess, "", false}} {
			p, err := f.Payments.Find(t.Context(), pays[i].ID)
			e, exceptionErr := f.Reconcile.Exception(t.Context(), ids[i])
			if err != nil || exceptionErr != nil || p.Status != want.status || e.Ending != want.ending || (e.Note != "") != want.note || (e.Ending == "") != (e.Request == "") {
				f.t.Errorf("payment %d is %s, its exception %+v: %v %v", i, p.Status, e, err, exceptionErr)
			}
		}
	})
}

// A partial reversal does not reverse the whole payment.
func TestEndByLine_partOfAPayment(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pay := x.unknown(1)[0]
		if _, err := f.Payments.Resolve(t.Context(), pay.ID, true, "the first statement", "ama"); err != nil {
			f.t.Fatal(err)
		}
		part := f.differs(difference{source: hubtelSource, kind: "state", payment: pay.ID, delta: 4 * money.Cedi})
		if _, err := x.request(KindEndByLine, newID(), "exception", part); err == nil || problem.From(err).Code != "partly_reversed" {
			f.t.Errorf("a part of the payment: %v", err)
		}
		x.approved(KindSuspend, "exception", part)
		whole := f.differs(difference{source: hubtelSource, kind: "state", payment: pay.ID, delta: 10 * money.Cedi})
		x.approved(KindEndByLine, "exception", whole)
	})
}

// rerouted changes a payment into a payment that was rerouted from another provider. It returns the reference of the abandoned
// attempt.
func (f *fixture) rerouted(pay book.Payment, from string) (given string) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) error {
		if _, err := tx.Exec(`INSERT INTO attempts (tenant, kind, payment, number, rail, provider_reference, posts, class, reason, ended_at) VALUES ($1, $2, $3, 1, $4, $5, 1, '', '', 1)`,
			pay.Tenant, string(pay.Kind), pay.ID, from, pay.ProviderReference); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE payments SET attempt = 2, attempt_reference = $2 WHERE id = $1`, pay.ID, newID())
		return err
	})
	return pay.ProviderReference
}

// named gives the line of an exception a reference of ours.
func (f *fixture) named(line, reference string) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE statement_lines SET reference = $2 WHERE id = $1`, line, reference)
		return err
	})
}

// A line about an abandoned attempt proves nothing about the present attempt of the payment, whether the providers are the same or
// not.
func TestEndByLine_attemptThatWasGivenUp(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(3)
		state := difference{source: hubtelSource, kind: "state", delta: -10 * money.Cedi}
		elsewhere, same, present := state, state, state
		elsewhere.source, elsewhere.payment = "live/mtn/disbursement", pays[0].ID
		same.payment, present.payment = pays[1].ID, pays[2].ID
		missing := difference{source: elsewhere.source, kind: "ours_only", payment: pays[0].ID}
		given := f.rerouted(pays[1], "hubtel")
		f.rerouted(pays[2], "mtn")
		other, abandoned, current := f.differs(elsewhere), f.differs(same), f.differs(present)
		f.named(other, f.rerouted(pays[0], "mtn"))
		f.named(abandoned, given)
		f.named(current, f.payment(pays[2].ID).AttemptReference)
		for name, c := range map[string]struct{ exception, code string }{
			"paid at another provider":    {other, "another_provider"},
			"missing at another provider": {f.differs(missing), "another_provider"},
			"paid at the same provider":   {abandoned, "attempt_given_up"},
		} {
			if _, err := x.request(KindEndByLine, newID(), "exception", c.exception); err == nil || problem.From(err).Code != c.code {
				f.t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := x.request(KindEndAllByLine, newID(), "source", elsewhere.source, "kind", "state"); err == nil || problem.From(err).Code != "another_provider" {
			f.t.Errorf("all of another provider: %v", err)
		}
		request, err := x.request(KindEndAllByLine, newID(), "source", hubtelSource, "kind", "state")
		if err != nil || request.Amount != 10*money.Cedi {
			f.t.Errorf("all of the provider: %+v, %v", request, err)
		}
	})
}

// settlesAll stores exceptions of payments, requests the outcomes of all of them, and approves the request.
func (x *examples) settlesAll(pays []book.Payment, delta money.Pesewas) (ids []string) {
	x.t.Helper()
	for _, pay := range pays {
		ids = append(ids, x.differs(difference{source: hubtelSource, kind: "state", payment: pay.ID, delta: delta}))
	}
	x.approved(KindEndAllByLine, "source", hubtelSource, "kind", "state")
	return ids
}

// submitted changes a payment so that its submission may still be running. People see no difference.
func (f *fixture) submitted(pay book.Payment) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE payments SET waited_for = -1 WHERE id = $1`, pay.ID)
		return err
	})
}

// A request leaves out a payment whose submission may still be running. Such a payment does not delay the others of an approved
// request.
func TestSettleApproved_goesOn(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(3)
		f.submitted(pays[2])
		ids := x.settlesAll(pays, -10*money.Cedi)
		if e, err := f.Reconcile.Exception(t.Context(), ids[2]); err != nil || e.Request != "" {
			f.t.Errorf("the request names a payment that may be on its way: %+v, %v", e, err)
		}
		f.submitted(pays[0])
		if err := f.SettleApproved(t.Context()); !problem.Is(err, problem.InProgress) {
			f.t.Errorf("settled all: %v", err)
		}
		for i, open := range []bool{true, false, true} {
			if p := f.payment(pays[i].ID); p.Status.Open() != open {
				f.t.Errorf("payment %d is %s", i, p.Status)
			}
		}
		f.waited()
		if err := f.SettleApproved(t.Context()); err != nil || f.payment(pays[0].ID).Status.Open() {
			f.t.Errorf("the next run: %v", err)
		}
	})
}

// If another person contradicts a payment after the approval, its exception is no longer flagged for settlement.
func TestSettleApproved_contradictedMeanwhile(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(1)
		if _, err := f.Payments.Resolve(t.Context(), pays[0].ID, true, "the first statement", "ama"); err != nil {
			f.t.Fatal(err)
		}
		id := x.settlesAll(pays, 10*money.Cedi)[0]
		if _, err := f.Payments.Contradict(t.Context(), pays[0].ID, false, "another statement", "ama"); err != nil {
			f.t.Fatal(err)
		}
		if err := f.SettleApproved(t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if e, err := f.Reconcile.Exception(t.Context(), id); err != nil || e.Request != "" || !e.EndedAt.IsZero() || !strings.HasPrefix(e.Note, "Not settled: ") {
			f.t.Errorf("%+v, %v", e, err)
		}
	})
}

// A line with another amount than the payment sets no outcome, unless the difference is the provider's fee.
func TestEndByLine_anotherAmount(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(4)
		f.tx(func(tx *db.Tx) error { // payouts of 10.00 at a provider whose statement deducts the fee from the amount
			_, err := tx.Exec(`UPDATE payments SET rail = 'paystack' WHERE id = $1 OR id = $2`, pays[2].ID, pays[3].ID)
			return err
		})
		paystack := "live/paystack/disbursement"
		f.differs(difference{source: hubtelSource, kind: "state", payment: pays[0].ID, delta: -10 * money.Cedi})
		other := []string{
			f.differs(difference{source: hubtelSource, kind: "state", payment: pays[1].ID, delta: -1 * money.Cedi}),
			f.differs(difference{source: paystack, kind: "state", payment: pays[3].ID, delta: -1 * money.Cedi}),
		}
		f.differs(difference{source: paystack, kind: "state", payment: pays[2].ID, delta: -11 * money.Cedi})
		for _, exception := range other {
			if _, err := x.request(KindEndByLine, newID(), "exception", exception); err == nil || problem.From(err).Code != "another_amount" {
				f.t.Errorf("another amount: %v", err)
			}
		}
		for _, source := range []string{hubtelSource, paystack} {
			request, err := x.request(KindEndAllByLine, newID(), "source", source, "kind", "state")
			if err != nil || request.Amount != 10*money.Cedi {
				f.t.Errorf("all of %s: %+v, %v", source, request, err)
			}
		}
	})
}

// A payment that its provider does not have does not end as not paid while the provider before it has paid: neither by a request, nor by one
// that was made before that statement was imported.
func TestEndByLine_paidByTheProviderBefore(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(2)
		for i, pay := range pays {
			missing := f.differs(difference{source: hubtelSource, kind: "ours_only", payment: pay.ID})
			given := f.rerouted(pay, "mtn")
			kind, pairs := KindEndByLine, []string{"exception", missing}
			if i == 1 {
				kind, pairs = KindEndAllByLine, []string{"source", hubtelSource, "kind", "ours_only"}
			}
			before, err := x.request(kind, newID(), pairs...)
			if err != nil {
				f.t.Fatal(err)
			}
			if i == 1 { // marked only: the outcome is set later
				if before, err = f.Approve(t.Context(), f.first, before.ID, before.Digest); err != nil || before.State != Done {
					f.t.Fatalf("%+v, %v", before, err)
				}
			}
			f.named(f.differs(difference{source: "live/mtn/disbursement", kind: "state", payment: pay.ID, delta: -10 * money.Cedi}), given)
			if _, err := x.request(KindEndByLine, newID(), "exception", missing); err == nil || problem.From(err).Code != "paid_elsewhere" {
				f.t.Errorf("requested: %v", err)
			}
			if i == 0 {
				if before, err = f.Approve(t.Context(), f.first, before.ID, before.Digest); err == nil && before.State != Failed {
					f.t.Errorf("an earlier request: %+v", before)
				}
			} else if err := f.SettleApproved(t.Context()); err != nil {
				f.t.Error(err)
			}
			e, err := f.Reconcile.Exception(t.Context(), missing)
			if err != nil || !e.EndedAt.IsZero() || e.Request != "" || (i == 1) != strings.Contains(e.Note, "live/mtn/disbursement") {
				f.t.Errorf("the exception is %+v, %v", e, err)
			}
			if p := f.payment(pay.ID); !p.Status.Open() {
				f.t.Errorf("the payment is %s", p.Status)
			}
		}
	})
}

// The statement of a provider that takes its fee out of the amount is the record of the fee: it is booked with the outcome, also if the
// statement takes back a resolution.
func TestEndByLine_netOfTheFee(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		f.rail.pending = true
		pays := x.unknown(2)
		if _, err := f.Payments.Resolve(t.Context(), pays[1].ID, false, "the first statement", "ama"); err != nil {
			f.t.Fatal(err)
		}
		for i, pay := range pays {
			f.tx(func(tx *db.Tx) error {
				_, err := tx.Exec(`UPDATE payments SET rail = 'paystack' WHERE id = $1`, pay.ID)
				return err
			})
			line := f.differs(difference{source: "live/paystack/disbursement", kind: "state", payment: pay.ID, delta: -10*money.Cedi - 50})
			x.approved(KindEndByLine, "exception", line)
			if got := f.balance("provider_fees/paystack"); got != int64(-50*(i+1)) {
				f.t.Errorf("the fees are %d after %d payments", got, i+1)
			}
		}
	})
}
