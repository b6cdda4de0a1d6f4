package batch

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// A file is read, requested and started, and each row is paid once. The reserve is empty at the end, and the books agree with the
// provider's.
func TestBatch_paysEachRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		b := n.requested("Salaries November", file(250))
		if b.Ready != 250 || b.Amount == 0 || b.Charges == 0 || b.Status != Requested {
			t.Fatalf("requested: %+v", b)
		}
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		is := n.is(b.ID)
		if is.Status != Finished || is.Accepted != 250 || is.Rest != 0 {
			t.Errorf("%s: %d accepted, %s left", is.Status, is.Accepted, is.Rest)
		}
		if paid, amount := f.bank.sum(); paid != 250 || amount != b.Amount {
			t.Errorf("paid were %d rows, %s of %s", paid, amount, b.Amount)
		}
		if n.wallet() != funds-b.Total() {
			t.Errorf("the wallet has %s", n.wallet())
		}
		results, err := n.Results(t.Context(), b.Tenant, b.ID, 1)
		if err != nil || len(results) != 250 || results[7].Status != "success" || results[7].Reference != "b-"+b.Code+"-8" {
			t.Errorf("%d results, the eighth is %+v (%v)", len(results), results[7], err)
		}
		n.sound()
	})
}

// The money of a row that fails at the provider returns to the wallet. The money of a row whose reference was used returns at the
// end of the batch.
func TestBatch_failedAndRefusedRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.bank.answer = func(_, party string) provider.Outcome {
			if party == "233240000003" {
				return provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonPayeeNotFound}
			}
			return provider.Outcome{Class: provider.Accepted}
		}
		n := f.node("a")
		text := "number,network,amount,reference\n0240000001,MTN,10,first-reference\n0240000002,MTN,20,first-reference\n0240000003,MTN,30,\n"
		b := n.requested("Winners", text)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Minute)
		results, err := n.Results(t.Context(), b.Tenant, b.ID, 1)
		if err != nil || results[0].Status != "success" || results[1].Status != "refused" || results[2].Status != "failed" {
			t.Fatalf("%+v (%v)", results, err)
		}
		if n.wallet() != funds-10*money.Cedi-10 {
			t.Errorf("the wallet has %s", n.wallet())
		}
		n.sound()
	})
}

// The counts of a batch are those of the rows, also if nodes of the version before accepted or settled a part of them.
func TestNumbers_versionBefore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.bank.answer = func(_, party string) provider.Outcome {
			if party == "233240000003" {
				return provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonPayeeNotFound}
			}
			return provider.Outcome{Class: provider.Accepted}
		}
		n := f.node("a")
		b := n.requested("Winners", "number,network,amount,reference\n0240000001,MTN,10,\n0240000002,MTN,20,\n0240000003,MTN,30,\n0240000004,MTN,40,\n")
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Minute)
		if err := d.Read(t.Context(), func(tx *db.Tx) error {
			var wrong int
			_, err := tx.One("SELECT count(*) FROM payments WHERE batch_status <> status", nil, &wrong)
			if err == nil && wrong != 0 {
				t.Errorf("%d rows have another status in the index", wrong)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, written := range []string{"batch_status", "CASE WHEN amount < 2500 THEN 'pending' ELSE batch_status END", "''", "'pending'"} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				rows, err := tx.Exec("UPDATE payments SET batch_status = "+written+" WHERE batch = $1", b.ID)
				if err == nil && rows != 4 {
					t.Errorf("%d rows", rows)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			is, err := n.Numbers(t.Context(), n.is(b.ID))
			if err != nil || is.Rows["success"] != 3 || is.Rows["failed"] != 1 || is.Rows["pending"] != 0 {
				t.Errorf("%s: %v, %v", written, is.Rows, err)
			}
			if open, err := n.payments.OpenOfBatch(t.Context(), b.ID, 10); err != nil || open != 0 {
				t.Errorf("%s: %d are open, %v", written, open, err)
			}
		}
		n.sound()
	})
}

// If payouts are stopped, the batch is paused with the cause. After it is resumed, it continues where it stopped.
func TestBatch_pausesWithCause(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		b := n.requested("Salaries", file(30))
		n.set(tenant.Change{Blocked: new(true)})
		wantCode(t, n.start(b), "account_blocked")
		n.set(tenant.Change{Blocked: new(false)})
		n.pauseRail(true)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Second)
		if is := n.is(b.ID); is.Status != Paused || is.Cause != Cause(payments.CausePaused) || is.Accepted != 0 || is.Rest != b.Total() {
			t.Fatalf("%s by %s, %d accepted", is.Status, is.Cause, is.Accepted)
		}
		n.sound()
		n.pauseRail(false)
		n.set(tenant.Change{PayoutsStopped: new(true)})
		for _, cause := range []Cause{"payouts_stopped", ""} {
			if cause == "" {
				n.set(tenant.Change{PayoutsStopped: new(false)})
			}
			if err := n.Resume(t.Context(), b.Tenant, b.ID, nil); err != nil {
				t.Fatal(err)
			}
			n.pass(10 * time.Second)
			if is := n.is(b.ID); is.Cause != cause {
				t.Errorf("%s by %q, want %q", is.Status, is.Cause, cause)
			}
		}
		if is := n.is(b.ID); is.Status != Finished || is.Accepted != 30 {
			t.Errorf("%s, %d accepted", is.Status, is.Accepted)
		}
		n.sound()
	})
}

// When a batch is cancelled, the money of unaccepted rows is returned. Accepted rows are paid.
func TestBatch_cancelGivesBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		b := n.requested("Salaries", file(250))
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.run(t.Context(), b.Tenant, b.ID)
		if err := n.Cancel(t.Context(), b.Tenant, b.ID, "the wrong month", "kofi", nil); err != nil {
			t.Fatal(err)
		}
		wantCode(t, n.Cancel(t.Context(), b.Tenant, b.ID, "again", "kofi", nil), "batch_status")
		is := n.is(b.ID)
		if is.Status != Cancelled || is.Accepted != setRows || is.Rest != 0 {
			t.Fatalf("%s, %d accepted, %s left", is.Status, is.Accepted, is.Rest)
		}
		n.run(t.Context(), b.Tenant, b.ID)
		heir := f.node("b")
		heir.pass(time.Minute)
		if paid, _ := f.bank.sum(); paid != setRows || heir.wallet() != funds-heir.spent(b) {
			t.Errorf("%d rows were paid, the wallet has %s", paid, heir.wallet())
		}
		if n.is(b.ID).Accepted != setRows {
			t.Error("rows were accepted after the end")
		}
		heir.sound()
	})
}

// A process has read the batch before it was paused, or before another process accepted its rows. It accepts nothing.
func TestRun_staleReading(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n, other := f.stopped("a"), f.stopped("b")
		b := n.requested("Salaries", file(250))
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		old := n.is(b.ID)
		other.run(t.Context(), b.Tenant, b.ID)
		if _, err := n.runBlock(t.Context(), old); err != nil || n.is(b.ID).Accepted != setRows {
			t.Errorf("after another process %d rows are accepted (%v)", n.is(b.ID).Accepted, err)
		}
		old = n.is(b.ID)
		if err := other.Pause(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := n.runBlock(t.Context(), old); err != nil || n.is(b.ID).Accepted != setRows {
			t.Errorf("after a pause %d rows are accepted (%v)", n.is(b.ID).Accepted, err)
		}
		n.sound()
	})
}

// One run of the job accepts all sets of a block. It stops when the batch has the maximum number of payouts without an outcome.
func TestRun_blockAndBackPressure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		b := n.requested("Salaries", file(1500))
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.runSets, n.maxOpen = blockRows/setRows, 1001
		for i, want := range []int{1000, 1500, 1500} {
			if n.run(t.Context(), b.Tenant, b.ID); n.is(b.ID).Accepted != want {
				t.Errorf("after %d runs %d rows are accepted, want %d", i+1, n.is(b.ID).Accepted, want)
			}
		}
		other := n.requested("Bonuses", fileFrom(1, 300))
		if err := n.start(other); err != nil {
			t.Fatal(err)
		}
		n.runSets, n.maxOpen = 1, 150
		for _, want := range []int{100, 200, 200} {
			if n.run(t.Context(), b.Tenant, other.ID); n.is(other.ID).Accepted != want {
				t.Errorf("%d rows are accepted, want %d", n.is(other.ID).Accepted, want)
			}
		}
		n.sound()
		heir := f.node("b")
		heir.pass(time.Minute)
		if is := heir.is(other.ID); is.Status != Finished || is.Accepted != 300 {
			t.Errorf("%s, %d accepted", is.Status, is.Accepted)
		}
		heir.sound()
	})
}
