package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// Rows are read in the forms that people write. If a row cannot be paid, the error names the field.
func TestDraft_readsRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		b, err := n.upload("Salaries", strings.Join([]string{
			"Name;MoMo No.;Network;Amount (GHS);Staff ID;Narration",
			"Ama;'0241234567;mtn;GHS 1,200.50;staff-7;May",
			"Kofi;2.33241234568E+11;VODAFONE;₵ 10;salary-2026-11;",
			"Esi;2.33E+11;MTN;10;;",
			"Yaw;0241234569;;10;;",
			"Abena;0241234570;MTN;1.200,00;;",
			"Kwame;0241234571;MTN;0.10;;",
			"Total;;;1,230.60;;",
		}, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1)
		if err != nil || len(rows) != 6 || b.Lines != 6 {
			t.Fatalf("%d rows (%v)", len(rows), err)
		}
		if r := rows[0]; r.State != RowReady || r.Account != "233241234567" || r.Channel != "MTN" || r.Amount != 120_050 || r.Reference != "" || r.Note != "staff-7 May" || r.Charges != 10*money.Cedi {
			t.Errorf("the first row is %+v", r)
		}
		if r := rows[1]; r.State != RowReady || r.Account != "233241234568" || r.Channel != "TELECEL" || r.Reference != "salary-2026-11" {
			t.Errorf("the second row is %+v", r)
		}
		for i, field := range []string{"number", "network", "amount", "amount"} {
			if r := rows[i+2]; r.State != RowBad || len(r.Problems[field]) == 0 || len(r.Problems) != 1 {
				t.Errorf("row %d is %s by %v, want %s", i+3, r.State, r.Problems, field)
			}
		}
		if !slices.Equal(b.Notes, []string{"line 8 has the total GHS 1,230.60, which equals the sum of the rows"}) {
			t.Errorf("noted is %q", b.Notes)
		}
		_, err = n.Request(t.Context(), b.Tenant, b.ID, "")
		wantCode(t, err, "bad_rows")
	})
}

// If a total differs from the sum of the rows, the draft has a note.
func TestDraft_comparesTotals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		b, err := n.upload("Salaries", file(3)+"Total,,,7.00\n")
		if err != nil || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "GHS 7.00") || !strings.Contains(b.Notes[0], "GHS 9.00") {
			t.Errorf("noted is %q (%v)", b.Notes, err)
		}
	})
}

// The same file returns the same draft for every person, also if it is uploaded several times at once. After the batch was
// sent, the file is refused.
func TestDraft_sameFileOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		nodes := []*node{n, f.stopped("b"), f.stopped("c")}
		var mu sync.Mutex
		var all sync.WaitGroup
		ids := map[string]bool{}
		for _, one := range nodes {
			all.Go(func() {
				b, err := one.upload("Salaries  November", file(20))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[b.ID] = true
			})
		}
		all.Wait()
		if len(ids) != 1 || n.countRows() != 20 {
			t.Fatalf("%d drafts with %d rows", len(ids), n.countRows())
		}
		b := n.requested("salaries november", file(20))
		if !ids[b.ID] {
			t.Error("the name's spaces and capitals make another batch")
		}
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		_, err := n.upload("Salaries November", file(20))
		if old := wantCode(t, err, "duplicate_batch").Data.(Batch); old.ID != b.ID {
			t.Errorf("the duplicate is of %s", old.ID)
		}
		again, _, err := n.ReadFile(t.Context(), Upload{Tenant: b.Tenant, Name: b.Name, Requester: "ama", Again: "a second salary"}, strings.NewReader(file(20)), sheet.Options{})
		if err != nil || again.Code == b.Code || again.Repetition != 1 {
			t.Fatalf("again: %+v (%v)", again, err)
		}
		if again, err = n.Request(t.Context(), again.Tenant, again.ID, ""); err != nil || again.Overlap != 20 {
			t.Fatalf("%d rows overlap (%v)", again.Overlap, err)
		}
		if err := n.start(again); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if paid, _ := f.bank.sum(); paid != 40 {
			t.Errorf("%d rows were paid", paid)
		}
		n.sound()
	})
}

const countAllRows = `SELECT count(*) FROM batch_rows`

// countRows counts the stored rows of all batches, and the rows without a batch.
func (n *node) countRows() (count int) {
	n.f.t.Helper()
	if _, err := n.db.ReadOne(n.f.t.Context(), countAllRows, nil, &count); err != nil {
		n.f.t.Fatal(err)
	}
	return count
}

// A corrected file may pay rows twice. Its draft names the rows that were paid. They are left out, or paid again with a reason.
func TestDraft_correctedFile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		b := n.requested("November", file(20))
		for _, name := range []string{"November, corrected", "the same under another name"} {
			draft, err := n.upload(name, file(20)+"Late,0249999999,MTN,5\n")
			if err != nil {
				t.Fatal(err)
			}
			_, err = n.Request(t.Context(), draft.Tenant, draft.ID, "")
			if e := wantCode(t, err, "rows_paid_before"); !strings.Contains(e.Message, "20 of 21 rows (GHS 230.00)") {
				t.Error(e.Message)
			}
		}
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		draft, err := n.upload("November, corrected", file(20)+"Late,0249999999,MTN,5\n")
		if err != nil {
			t.Fatal(err)
		}
		overlaps, err := n.Overlaps(t.Context(), draft.Tenant, draft.ID)
		if err != nil || !slices.ContainsFunc(overlaps, func(o Overlap) bool { return o.ID == b.ID && o.Rows == 20 && o.Amount == b.Amount }) {
			t.Errorf("%+v (%v)", overlaps, err)
		}
		warnings, err := n.Warnings(t.Context(), draft.Tenant, draft.ID, 1)
		if err != nil || len(warnings) != 20 {
			t.Errorf("%d warnings (%v)", len(warnings), err)
		}
		if dropped, err := n.KeepNew(t.Context(), draft.Tenant, draft.ID); err != nil || dropped != 20 {
			t.Fatalf("%d rows were dropped (%v)", dropped, err)
		}
		if draft, err = n.Request(t.Context(), draft.Tenant, draft.ID, ""); err != nil || draft.Ready != 1 || draft.Overlap != 0 {
			t.Fatalf("%+v (%v)", draft, err)
		}
		if err := n.start(draft); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if paid, _ := f.bank.sum(); paid != 21 {
			t.Errorf("%d rows were paid", paid)
		}
		n.sound()
	})
}

// If two requests have the same rows, the second is refused when it starts, because the first has paid them.
func TestStart_rowsPaidMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		first, err := n.upload("First", file(5))
		if err != nil {
			t.Fatal(err)
		}
		second := n.requested("Second", file(5))
		if first, err = n.Request(t.Context(), first.Tenant, first.ID, "both are due"); err != nil || first.Overlap != 5 {
			t.Fatal(first.Overlap, err)
		}
		if err := n.start(first); err != nil {
			t.Fatal(err)
		}
		wantCode(t, n.start(second), "changed_since")
		wantCode(t, n.start(first), "batch_status")
		n.pass(time.Minute)
		if paid, _ := f.bank.sum(); paid != 5 {
			t.Errorf("%d rows were paid", paid)
		}
		n.sound()
	})
}

// A row can be corrected and dropped only while the batch is a draft. A withdrawn request is a draft again.
func TestMend_onlyDrafts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		b, err := n.upload("Salaries", file(2)+"Yaw,0241234569,,10\nEsi,,MTN,\n")
		if err != nil {
			t.Fatal(err)
		}
		row, err := n.Mend(t.Context(), b.Tenant, b.ID, 3, Given{Name: "Yaw", Number: "0241234569", Network: "MTN", Amount: "12"})
		if err != nil || row.State != RowReady || row.Amount != 12*money.Cedi || row.Charges != 12 {
			t.Errorf("mended: %+v (%v)", row, err)
		}
		if err := n.Drop(t.Context(), b.Tenant, b.ID, 4); err != nil {
			t.Error(err)
		}
		if err := n.Drop(t.Context(), b.Tenant, b.ID, 5); !problem.Is(err, problem.NotFound) {
			t.Error(err)
		}
		was := b.Code
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil || b.Ready != 3 || b.Amount != 17*money.Cedi || b.Code == was {
			t.Fatalf("%+v (%v)", b, err)
		}
		for _, err := range []error{n.Drop(t.Context(), b.Tenant, b.ID, 1), n.Discard(t.Context(), b.Tenant, b.ID)} {
			if !problem.Is(err, problem.Invalid) {
				t.Error(err)
			}
		}
		if err := n.db.Write(t.Context(), func(tx *db.Tx) error { return n.Withdraw(tx, b.Tenant, b.ID) }); err != nil {
			t.Fatal(err)
		}
		wantCode(t, n.start(b), "batch_status")
		if err := n.Discard(t.Context(), b.Tenant, b.ID); err != nil || n.countRows() != 0 {
			t.Errorf("%d rows are left (%v)", n.countRows(), err)
		}
	})
}

// Drafts above the limit and refused files store nothing.
func TestDraft_limits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		for name, text := range map[string]string{"empty": "", "heading": "number,network,amount\n", "pdf": "%PDF-1.7 number,amount", "html": "<html>", "no amount": "number,network\n0241234567,MTN\n",
			"zip": "PK\x03\x04 nothing", "rows": "number,network,amount\n" + strings.Repeat("0241234567,MTN,1\n", MaxRows+1)} {
			if _, err := n.upload(name, text); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n.countRows() != 0 {
			t.Errorf("%d rows are left", n.countRows())
		}
		for i := range maxDrafts {
			if _, err := n.upload(fmt.Sprint("Draft ", i), file(1)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := n.upload("one more", file(1))
		wantCode(t, err, "too_many_drafts")
		if n.countRows() != maxDrafts {
			t.Errorf("%d rows are stored", n.countRows())
		}
		n.leap(draftTime)
		if n.countRows() != 0 {
			t.Errorf("%d rows of drafts are left after a week", n.countRows())
		}
	})
}

// If storing a file is interrupted, no rows remain.
func TestDraft_brokenOff(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		n := newFixture(t, d).stopped("a")
		for _, rows := range []int{10, 2500} {
			failures := 0
			f.Decide(func(at db.Boundary) db.Fault {
				if at == db.BoundaryCommit {
					if failures++; failures == 3 && rows == 2500 || failures == 2 && rows == 10 {
						return db.FaultAfter
					}
				}
				return db.FaultNone
			})
			b, err := n.upload("Salaries", file(rows))
			f.Decide(nil)
			if err != nil && !errors.Is(err, db.ErrAmbiguous) {
				t.Fatal(err)
			}
			if err == nil && b.Lines != n.countRows() || err != nil && n.countRows() != 0 {
				t.Errorf("%d rows are stored (%v)", n.countRows(), err)
			}
			again, err := n.upload("Salaries", file(rows))
			if err != nil || again.Lines != rows || n.countRows() != rows {
				t.Fatalf("%d rows, %d are stored (%v)", again.Lines, n.countRows(), err)
			}
			if err := n.Discard(t.Context(), again.Tenant, again.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A request prices the rows by the current fees, not by the fees of the draft.
func TestRequest_pricesAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).node("a")
		b, err := n.upload("Salaries", file(20))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.plan(b.Tenant, []tenant.Rule{{Product: tenant.Payout, Flat: 50}}); err != nil {
			t.Fatal(err)
		}
		n.f.clock.Advance(time.Minute)
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil || b.Charges != 20*50 {
			t.Fatalf("the fees are %s (%v)", b.Charges, err)
		}
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if n.wallet() != funds-b.Total() || n.is(b.ID).Status != Finished {
			t.Errorf("the wallet has %s", n.wallet())
		}
		n.sound()
	})
}

// If no provider of a row's channel accepts the amount, the row has an error in the draft. It is ready after its amount is
// corrected.
func TestDraft_providersLimits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.limits = []provider.Limit{{Operation: string(route.DisburseWallet), Channel: "MTN", Min: 5 * money.Cedi, Max: 100 * money.Cedi}}
		n := f.stopped("a")
		b, err := n.upload("Salaries", "number,network,amount\n0240000001,MTN,4.99\n0240000002,MTN,5\n0240000003,MTN,100.01\n0240000004,MTN,100\n")
		if err != nil {
			t.Fatal(err)
		}
		rows, err := n.BadRows(t.Context(), b, 0, 10)
		if err != nil || len(rows) != 2 || rows[0].Line != 1 || rows[1].Line != 3 || !strings.Contains(fmt.Sprint(rows[0].Problems), "amount") || !strings.Contains(fmt.Sprint(rows[0].Problems), "outside the limits of every provider") {
			t.Fatalf("%+v, %v", rows, err)
		}
		n.pauseRail(true)
		b, err = n.upload("Paused", "number,network,amount\n0240000001,MTN,4.99\n0240000002,MTN,5\n")
		if rows, bad := n.BadRows(t.Context(), b, 0, 10); err != nil || bad != nil || len(rows) != 1 {
			t.Errorf("while the provider is paused: %+v, %v, %v", rows, err, bad)
		}
	})
}
