package batch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// A process dies at any boundary of the database, and another process completes the batch. Each row is paid once, and the books
// agree to the pesewa. In the gate only some of the boundaries are tested.
func TestRun_killedAtEveryBoundary(t *testing.T) {
	for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter} {
		for _, boundary := range []db.Boundary{db.BoundaryCommit, db.BoundaryExchange} {
			t.Run(fmt.Sprintf("fault %d at boundary %d", fault, boundary), func(t *testing.T) {
				dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
					h := newFixture(t, d)
					dying := h.stopped("a")
					dying.pace.most = 5
					ends := dying.receives()
					want := 0
					for nth, hit := 1, true; hit; nth = matrix.Next(nth) {
						b := dying.requested(fmt.Sprint("Salaries ", nth), fileFrom(nth, 11))
						hit = dying.diesAt(b, f, boundary, nth, fault)
						heir := h.node(fmt.Sprint("heir ", nth))
						if b = heir.is(b.ID); b.Status == Requested {
							if err := heir.start(b); err != nil {
								t.Fatal(err)
							}
						}
						heir.pass(time.Minute)
						want += 11
						if is := heir.is(b.ID); is.Status != Finished || is.Accepted != 11 {
							t.Errorf("died at %d: %s by %q, %d accepted", nth, is.Status, is.Cause, is.Accepted)
						}
						if e := ends.wantOne(t, b.ID); e.Status != Finished || e.Accepted != 11 {
							t.Errorf("died at %d: the event is %+v", nth, e)
						}
						if paid, amount := h.bank.sum(); paid != want || heir.wallet() != funds-amount-money.Pesewas(paid)*10 {
							t.Fatalf("died at %d: %d of %d rows were paid, the wallet has %s", nth, paid, want, heir.wallet())
						}
						if nth > 60 {
							t.Fatal("it never comes to an end")
						}
						if err := heir.queue.Stop(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					h.bank.wantOnePost(t)
					dying.sound()
				})
			})
		}
	}
}

// diesAt starts a batch and accepts its rows until a boundary is passed for the nth time. From there on everything fails. It
// reports whether the boundary was reached.
func (n *node) diesAt(b Batch, f *db.Faults, at db.Boundary, nth int, fault db.Fault) (hit bool) {
	ctx := n.f.t.Context()
	passed := 0
	f.Decide(func(is db.Boundary) db.Fault {
		if hit {
			return db.FaultBefore
		}
		if is == at {
			passed++
		}
		if passed == nth {
			hit = true
			return fault
		}
		return db.FaultNone
	})
	defer f.Decide(nil)
	if err := n.start(b); err != nil {
		return hit
	}
	for range 5 {
		n.run(ctx, b.Tenant, b.ID)
	}
	return hit
}

// A full disk stops a batch between two rows. When there is space again, it continues, and each row is paid once.
func TestRun_diskFull(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.Open(t, db.SQLite))
	n := f.stopped("a")
	n.pace.most = 50
	b := n.requested("Salaries", file(400))
	if err := n.start(b); err != nil {
		t.Fatal(err)
	}
	n.run(t.Context(), b.Tenant, b.ID)
	pages := func(most int) {
		if _, err := n.db.Exec(t.Context(), "PRAGMA max_page_count = "+strconv.Itoa(most)); err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // not below the number of existing pages
	for range 20 {
		n.run(t.Context(), b.Tenant, b.ID)
	}
	full := n.is(b.ID)
	if full.Status != Running || full.Accepted == 400 || !n.db.Short() {
		t.Fatalf("on a full disk it is %s by %q, %d accepted", full.Status, full.Cause, full.Accepted)
	}
	if err := n.start(b); err == nil {
		t.Error("it was started twice")
	}
	n.sound()
	pages(1 << 30)
	f.clock.Advance(2 * time.Minute)
	heir := f.node("b")
	heir.pass(5 * time.Minute)
	if is := heir.is(b.ID); is.Status != Finished || is.Accepted != 400 || heir.wallet() != funds-b.Total() {
		t.Errorf("%s by %q, %d accepted, the wallet has %s", is.Status, is.Cause, is.Accepted, heir.wallet())
	}
	if paid, amount := f.bank.sum(); paid != 400 || amount != b.Amount {
		t.Errorf("%d rows were paid, GHS %s", paid, amount)
	}
	heir.sound()
}

// Clock steps in either direction neither lose a row nor pay it twice. After a step back, a paused batch is not cancelled before
// seven days have passed.
func TestRun_clockSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		n.pace.most = 20
		b := n.requested("Salaries", file(200))
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		for _, step := range []time.Duration{-2 * time.Hour, 3 * time.Hour, -time.Hour} {
			n.quiet()
			f.clock.Set(step)
			f.clock.Advance(2 * time.Second)
		}
		n.pass(10 * time.Minute)
		if is := n.is(b.ID); is.Status != Finished || is.Accepted != 200 || n.wallet() != funds-b.Total() {
			t.Errorf("%s by %q, %d accepted, the wallet has %s", is.Status, is.Cause, is.Accepted, n.wallet())
		}
		f.bank.wantOnePost(t)
		n.pauseRail(true)
		paused := n.requested("Bonuses", fileFrom(1, 20))
		if err := n.start(paused); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		f.clock.Set(-6 * time.Hour)
		n.leap(pauseTime - 2*time.Hour)
		if is := n.is(paused.ID); is.Status != Paused {
			t.Errorf("it is %s before seven days", is.Status)
		}
		n.pass(8 * time.Hour)
		if is := n.is(paused.ID); is.Status != Cancelled {
			t.Errorf("it is %s after seven days", is.Status)
		}
		n.sound()
	})
}

// Two processes run the same batch while a person cancels it. No row is paid twice, and the money of unaccepted rows
// is returned.
func TestRun_atOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		a, b, person := f.stopped("a"), f.stopped("b"), f.stopped("c")
		a.pace.most, b.pace.most = 10, 10
		for round := range 4 {
			of := a.requested(fmt.Sprint("Round ", round), fileFrom(round, 80))
			if err := a.start(of); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for _, n := range []*node{a, b} {
				all.Go(func() {
					for n.is(of.ID).Status == Running {
						n.run(t.Context(), of.Tenant, of.ID)
					}
				})
			}
			all.Go(func() {
				if round == 0 {
					return
				}
				for person.is(of.ID).Accepted == 0 {
				}
				if err := person.Cancel(t.Context(), of.Tenant, of.ID, "a mistake", "kofi", nil); err != nil && !problem.Is(err, problem.Invalid) && !problem.Is(err, problem.InProgress) {
					t.Error(err)
				}
			})
			all.Wait()
			person.sound()
		}
		heir := f.node("d")
		heir.pass(time.Minute)
		paid, amount := f.bank.sum()
		if heir.wallet() != funds-amount-money.Pesewas(paid)*10 {
			t.Errorf("%d rows were paid, the wallet has %s", paid, heir.wallet())
		}
		f.bank.wantOnePost(t)
		heir.sound()
	})
}

// A recovery voids unsent batches and pauses running ones. A resumed batch adopts rows that a provider has from before the restore.
// It does not send them again.
func TestRecovery_sameFilePaysOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		b := n.requested("Salaries", file(40))
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		// The restored database has the account but not the batch.
		again := f.restored().node("b")
		if err := again.lost.Begin(t.Context(), "a restore", time.Time{}, "a restore", "ama"); err != nil {
			t.Fatal(err)
		}
		same := again.requested("Salaries", file(40))
		if same.Code != b.Code {
			t.Fatalf("the same file has the codes %s and %s", b.Code, same.Code)
		}
		wantCode(t, again.start(same), "recovering")
		if err := again.lost.Open(t.Context(), "all is done again", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := again.start(same); err != nil {
			t.Fatal(err)
		}
		again.pass(5 * time.Minute)
		if is := again.is(same.ID); is.Status != Finished || is.Accepted != 40 || again.wallet() != funds-same.Total() {
			t.Errorf("%s by %q, %d accepted, the wallet has %s", is.Status, is.Cause, is.Accepted, again.wallet())
		}
		f.bank.wantOnePost(t)
		again.sound()
	})
}

// A database is restored from the middle of a batch. After it is resumed, the batch adopts rows that were sent before the restore,
// also rows that the database lacks.
func TestRecovery_fromTheMiddle(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		lost := n.requested("Salaries", file(250))
		if err := n.start(lost); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		old := f.restored()
		restored := old.stopped("b")
		b := restored.requested("Salaries", file(250))
		if err := restored.start(b); err != nil {
			t.Fatal(err)
		}
		restored.run(t.Context(), b.Tenant, b.ID)
		err := restored.lost.Begin(t.Context(), "a restore", time.Time{}, "a restore", "ama", func(tx *db.Tx) error { RecoveryBegan(tx, old.clock); return nil })
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, restored.Resume(t.Context(), b.Tenant, b.ID, nil), "recovering")
		if rows, err := Undecided(t.Context(), restored.db); err != nil || rows != 150 {
			t.Errorf("%d rows are undecided (%v)", rows, err)
		}
		if err := restored.lost.Open(t.Context(), "all is done again", "ama"); err != nil {
			t.Fatal(err)
		}
		heir := old.node("c")
		old.clock.Advance(2 * time.Second)
		if err := heir.Resume(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		heir.pass(10 * time.Minute)
		if is := heir.is(b.ID); is.Status != Finished || is.Accepted != 250 || heir.wallet() != funds-b.Total() {
			t.Errorf("%s by %q, %d accepted, the wallet has %s", is.Status, is.Cause, is.Accepted, heir.wallet())
		}
		f.bank.wantOnePost(t)
		heir.sound()
	})
}

// At the beginning of a recovery, drafts and requests become void. Running and paused batches are paused by the recovery.
func TestRecoveryBegan_stopsAll(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		draft, err := n.upload("Draft", fileFrom(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		requested, running, paused := n.requested("Requested", fileFrom(2, 2)), n.requested("Running", fileFrom(3, 2)), n.requested("Paused", fileFrom(4, 2))
		err = errors.Join(n.start(running), n.start(paused), n.Pause(t.Context(), paused.Tenant, paused.ID, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.db.Write(t.Context(), func(tx *db.Tx) error { RecoveryBegan(tx, f.clock); return nil }); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]Status{draft.ID: Void, requested.ID: Void, running.ID: Paused, paused.ID: Paused} {
			if is := n.is(id); is.Status != want || is.Status == Paused && is.Cause != CauseRecovery {
				t.Errorf("%s is %s by %q", is.Name, is.Status, is.Cause)
			}
		}
		if rows, err := Undecided(t.Context(), d); err != nil || rows != 4 {
			t.Errorf("%d rows are undecided (%v)", rows, err)
		}
		heir := f.node("b")
		heir.leap(pauseTime) // the recovery may last as long as needed
		if err := errors.Join(heir.Resume(t.Context(), running.Tenant, running.ID, nil), heir.Cancel(t.Context(), paused.Tenant, paused.ID, "not now", "ama", nil)); err != nil {
			t.Fatal(err)
		}
		heir.pass(time.Minute)
		if rows, err := Undecided(t.Context(), d); err != nil || rows != 0 || heir.is(running.ID).Status != Finished {
			t.Errorf("%d rows are undecided (%v)", rows, err)
		}
		if _, err := heir.upload("Draft", fileFrom(1, 2)); err != nil {
			t.Errorf("the file of a void draft: %v", err)
		}
		heir.sound()
	})
}

const tamper = `UPDATE batch_rows SET amount = amount + 1 WHERE batch = $1 AND line = 150`

// If rows were changed in the database, they are not paid. The batch is paused before the first row of their block.
func TestRun_alteredRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		b := n.requested("Salaries", file(200))
		err := errors.Join(n.start(b), n.db.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(tamper, b.ID)
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
		n.run(t.Context(), b.Tenant, b.ID)
		if is := n.is(b.ID); is.Status != Paused || is.Cause != CauseAltered || is.Accepted != 0 {
			t.Errorf("%s by %q, %d accepted", is.Status, is.Cause, is.Accepted)
		}
		if err := n.Cancel(t.Context(), b.Tenant, b.ID, "altered", "ama", nil); err != nil || n.wallet() != funds {
			t.Errorf("the wallet has %s (%v)", n.wallet(), err)
		}
		n.sound()
	})
}

// If the wallet does not cover the batch, or the fees changed since the request, the batch stays requested and no money moves.
func TestStart_refusals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		large := n.requested("Too large", "number,network,amount\n"+strings.Repeat("0240000001,MTN,15000\n", 67))
		if err := n.start(large); !problem.Is(err, problem.InsufficientFunds) {
			t.Error(err)
		}
		b := n.requested("Salaries", fileFrom(1, 20))
		b.Digest = large.Digest
		wantCode(t, n.start(b), "changed_since")
		b = n.is(b.ID)
		if err := n.plan(f.tenant.ID, []tenant.Rule{{Product: tenant.Payout, Flat: 50}}); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(time.Minute)
		wantCode(t, n.start(b), "changed_since")
		for _, id := range []string{large.ID, b.ID} {
			if is := n.is(id); is.Status != Requested || is.Rest != 0 {
				t.Errorf("%s is %s", is.Name, is.Status)
			}
		}
		if n.wallet() != funds {
			t.Errorf("the wallet has %s", n.wallet())
		}
		n.sound()
	})
}

// A batch that was paused for seven days is cancelled.
func TestSweep_cancelsLongPaused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		b := n.requested("Salaries", file(10))
		n.pauseRail(true)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.leap(pauseTime - 2*time.Hour)
		if is := n.is(b.ID); is.Status != Paused {
			t.Errorf("before seven days it is %s", is.Status)
		}
		n.pass(2 * time.Hour)
		if is := n.is(b.ID); is.Status != Cancelled || n.wallet() != funds {
			t.Errorf("after seven days it is %s, the wallet has %s", is.Status, n.wallet())
		}
		n.sound()
	})
}
