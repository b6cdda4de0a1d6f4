package payments

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/treasury"
)

// file is a batch with a reserve whose row is in memory.
type file struct {
	*node
	rest    money.Pesewas
	refuses *problem.Error
	results []RowResult
}

const fileBatch = "01983bf2-0000-7000-8000-000000000001"

// newFile moves a reserve from the wallet.
func (n *node) newFile(reserve money.Pesewas) *file {
	t := n.fixture.t
	t.Helper()
	m := treasury.Movement{Asset: ledger.TestGHS, From: n.fixture.tenant.Wallet().ID, To: ledger.Reserve(n.fixture.tenant.ID), Amount: reserve,
		Kind: "batch reserve", Subject: fileBatch, Leg: "reserve"}
	if err := n.Move(t.Context(), m, "salaries", "ama"); err != nil {
		t.Fatal(err)
	}
	return &file{node: n, rest: reserve}
}

func (f *file) row(amount money.Pesewas) Row {
	r := f.fixture.payout()
	r.Amount, r.CallbackURL, r.Name = amount, "", "Kofi Mensah"
	return Row{Payout: r, Charges: 10, Plan: 1}
}

func (f *file) rows(list ...Row) Rows {
	return Rows{Caller: idempotency.Caller{Tenant: f.fixture.tenant.ID, Key: "key-1", Daily: 1}, Batch: fileBatch, Rows: list,
		Lock: func(*db.Tx) (money.Pesewas, error) {
			if f.refuses != nil {
				return 0, f.refuses
			}
			return f.rest, nil
		},
		Write: func(tx *db.Tx, results []RowResult) error {
			rest := f.rest
			for _, one := range results {
				if one.Refused == nil {
					rest -= one.Payment.Held()
				}
			}
			tx.AfterCommit(func() { f.rest, f.results = rest, results })
			return nil
		}}
}

// check compares the reserve with its account and verifies the books.
func (f *file) check(want money.Pesewas) {
	f.fixture.t.Helper()
	if has := f.account(ledger.Reserve(f.fixture.tenant.ID)); has != want || f.rest != want {
		f.fixture.t.Errorf("the reserve is %s by the ledger and %s by its row, want %s", has, f.rest, want)
	}
	f.sound()
}

// The reserve pays the rows, each with its given fee and name. A failed row is refunded to the wallet. A row that is
// invalid or repeats a reference is refused and takes nothing from the reserve.
func TestPayRows_reservePays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.first.script(always(pending), always(success))
		n := h.node("a")
		f := n.newFile(100 * money.Cedi)
		first, invalid, again, second := f.row(10*money.Cedi), f.row(1), f.row(5*money.Cedi), f.row(20*money.Cedi)
		again.Reference = first.Reference
		done, cause, err := f.PayRows(t.Context(), f.rows(first, invalid, again, second))
		if err != nil || cause != "" || done != 4 || len(f.results) != 4 {
			t.Fatalf("%d rows done, %q, %v", done, cause, err)
		}
		wantKind(t, f.results[1].Refused, problem.Invalid)
		if taken := wantKind(t, f.results[2].Refused, problem.Duplicate); taken.Data.(book.Payment).ID != f.results[0].Payment.ID {
			t.Error("the duplicate is of another payment")
		}
		f.check(100*money.Cedi - 30*money.Cedi - 20)
		if n.balance() != funds-100*money.Cedi {
			t.Errorf("the wallet has %s", n.balance())
		}
		n.pass(5 * time.Second)
		paid := n.must(book.KindPayout, f.results[0].Payment.ID)
		if paid.Status != book.StatusSuccess || paid.Batch != fileBatch || paid.Charges != 10 || paid.AccountName != "Kofi Mensah" {
			t.Errorf("paid: %+v", paid)
		}
		h.first.script(always(pending), always(failed))
		if done, _, err = f.PayRows(t.Context(), f.rows(f.row(30*money.Cedi))); err != nil || done != 1 {
			t.Fatal(done, err)
		}
		n.pass(5 * time.Second)
		f.check(40*money.Cedi - 30)
		if n.balance() != funds-100*money.Cedi+30*money.Cedi+10 {
			t.Errorf("after a refund the wallet has %s", n.balance())
		}
	})
}

// Rows are accepted up to the first row for which no provider is available. None is accepted if the account may not
// pay. The cause is returned.
func TestPayRows_stopsAtCause(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		f := n.newFile(100 * money.Cedi)
		n.pauseRail("hubtel")
		other := f.row(10 * money.Cedi)
		other.MSISDN, other.Network = telecel, "TELECEL"
		done, cause, err := f.PayRows(t.Context(), f.rows(f.row(10*money.Cedi), other, f.row(10*money.Cedi)))
		if err != nil || done != 1 || cause != CausePaused {
			t.Fatalf("%d rows done, %q, %v", done, cause, err)
		}
		f.check(90*money.Cedi - 10)
		for want, change := range map[RowCause]tenant.Change{CauseStopped: {PayoutsStopped: new(true)}, CauseBlocked: {Blocked: new(true)}} {
			n.set(change)
			if done, cause, err = f.PayRows(t.Context(), f.rows(f.row(10*money.Cedi))); err != nil || done != 0 || cause != want {
				t.Errorf("%s: %d rows done, %v, %v", want, done, cause, err)
			}
			n.set(tenant.Change{PayoutsStopped: new(false), Blocked: new(false)})
		}
		f.check(90*money.Cedi - 10)
	})
}

// If no provider of the channel takes an amount, only its row is refused. The later rows are accepted.
func TestPayRows_amountNotServed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.rails = []provider.Rail{{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), Disburser: h.first, Limits: []provider.Limit{{Operation: "*", Channel: "*", Max: 20 * money.Cedi}}}}
		n := h.node("a")
		f := n.newFile(100 * money.Cedi)
		done, cause, err := f.PayRows(t.Context(), f.rows(f.row(10*money.Cedi), f.row(30*money.Cedi), f.row(20*money.Cedi)))
		if err != nil || done != 3 || cause != "" || f.results[0].Refused != nil || f.results[1].Refused == nil || f.results[2].Refused != nil {
			t.Fatalf("%d rows done, %q, %v: %+v", done, cause, err, f.results)
		}
		f.check(70*money.Cedi - 20)
	})
}

// set changes the tenant and waits until the node sees the change.
func (n *node) set(c tenant.Change) {
	n.fixture.t.Helper()
	if err := n.db.Write(n.fixture.t.Context(), func(tx *db.Tx) error {
		_, _, err := n.tenants.Set(tx, n.fixture.tenant.ID, c)
		return err
	}); err != nil {
		n.fixture.t.Fatal(err)
	}
	n.clock.Advance(2 * time.Second)
}

// A batch that is refused under its lock does not affect a payout in the same transaction.
func TestPayRows_refusedBatch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.stopped("a")
		f := n.newFile(100 * money.Cedi)
		f.refuses = problem.New(problem.Invalid, "batch_cancelled", "The batch was cancelled")
		pay := book.Payment{Tenant: h.tenant.ID, Kind: book.KindPayout, Mode: "test", Channel: "MTN", Account: "233241234567", Amount: 500,
			Rail: "mtn", Status: book.StatusPending}
		rows := f.rows()
		drawing := &book.Drawing{Batch: fileBatch, Lock: rows.Lock, Write: func(*db.Tx, []book.Drawn) error { return nil }}
		for _, to := range []*[]book.Payment{nil, &drawing.Payments} {
			pay.Reference = h.reference()
			n.references.assignIDs(&pay, n.clock.Now())
			if to != nil {
				row := pay
				row.Batch = fileBatch
				*to = append(*to, row)
				pay.Reference = h.reference()
				n.references.assignIDs(&pay, n.clock.Now())
			}
		}
		verdicts, err := n.book.Commit(t.Context(), 0, []*book.Op{{Draw: drawing}, {Accept: &book.Acceptance{Payment: pay}}, {Draw: drawing}})
		if err != nil || len(verdicts) != 3 {
			t.Fatal(verdicts, err)
		}
		for i, code := range []string{"batch_cancelled", "", "batch_cancelled"} {
			if code == "" && verdicts[i].Err != nil || code != "" && problem.From(verdicts[i].Err).Code != code {
				t.Errorf("request %d: %v", i, verdicts[i].Err)
			}
		}
		f.check(100 * money.Cedi)
	})
}

// If answers of the database are lost, each row is accepted once or not at all. The reserve pays exactly the accepted
// rows.
func TestPayRows_lostAnswers(t *testing.T) {
	for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
		for _, boundary := range []db.Boundary{db.BoundaryCommit, db.BoundaryExchange} {
			t.Run(fmt.Sprintf("fault %d at boundary %d", fault, boundary), func(t *testing.T) {
				dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
					h := newFixture(t, d)
					n := h.node("a")
					one := n.newFile(100 * money.Cedi)
					list := []Row{one.row(10 * money.Cedi), one.row(20 * money.Cedi)}
					breakAt(f, boundary, 1, fault)
					done, cause, err := one.PayRows(t.Context(), one.rows(list...))
					f.Decide(nil)
					if err != nil || cause != "" || done != 2 {
						t.Fatalf("%d rows done, %q, %v", done, cause, err)
					}
					one.check(70*money.Cedi - 20)
					if got := len(one.results); got != 2 || one.results[0].Refused != nil {
						t.Errorf("%d results: %v", got, one.results)
					}
				})
			})
		}
	}
}

// If two processes have the same rows, only one of them accepts each row.
func TestPayRows_twoNodes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a, b := h.node("a"), h.node("b")
		f := a.newFile(100 * money.Cedi)
		list := []Row{f.row(10 * money.Cedi), f.row(20 * money.Cedi)}
		var all sync.WaitGroup
		var mu sync.Mutex
		accepted := []string{}
		for _, n := range []*node{a, b} {
			rows := f.rows(list...)
			rows.Write = func(tx *db.Tx, results []RowResult) error {
				tx.AfterCommit(func() {
					mu.Lock()
					defer mu.Unlock()
					for _, one := range results {
						if one.Refused == nil {
							accepted = append(accepted, one.Payment.Reference)
						}
					}
				})
				return nil
			}
			all.Go(func() {
				if _, _, err := n.PayRows(context.WithoutCancel(t.Context()), rows); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		slices.Sort(accepted)
		if !slices.Equal(accepted, []string{list[0].Reference, list[1].Reference}) {
			t.Errorf("accepted were %v", accepted)
		}
		f.rest = 70*money.Cedi - 20
		f.check(f.rest)
	})
}

// A batch pauses only for the documented causes. After any other failure it tries again, also if the next probe of a
// circuit breaker is due.
func TestRowCause_documentedOnly(t *testing.T) {
	refusal := func(cause error, code string, after time.Duration) error {
		e := problem.Wrap(cause, problem.Unavailable, code, "not now")
		e.RetryAfter = after
		return e
	}
	for _, c := range []struct {
		err  error
		want RowCause
	}{
		{refusal(nil, "not_served", 0), CauseNoRoute},
		{refusal(nil, "recovering", 0), CauseRecovering},
		{refusal(route.ErrPaused, "provider_unavailable", 5*time.Minute), CausePaused},
		{refusal(route.ErrCircuitOpen, "provider_unavailable", time.Minute), CauseCircuitOpen},
		{refusal(route.ErrCircuitOpen, "provider_unavailable", shortOutage), ""},
		{refusal(nil, "provider_unavailable", 5*time.Minute), ""},
		{refusal(nil, "database_unavailable", 0), ""},
		{db.ErrAmbiguous, ""},
		{context.DeadlineExceeded, ""},
	} {
		if got := rowCause(c.err); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}
