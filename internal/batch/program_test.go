package batch

import (
	"fmt"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// key creates an API key of the tenant, and returns its caller.
func (n *node) key() idempotency.Caller {
	n.f.t.Helper()
	minted, err := n.access.Mint(access.NewKey{Tenant: n.f.tenant.ID, Scopes: []access.Scope{access.Batches}})
	if err == nil {
		err = n.db.Write(n.f.t.Context(), func(tx *db.Tx) error {
			n.access.CreateKey(tx, minted)
			return nil
		})
	}
	if err != nil {
		n.f.t.Fatal(err)
	}
	return idempotency.Caller{Tenant: n.f.tenant.ID, Key: minted.Key.ID}
}

// people returns the rows of a program.
func people(n int) []Given {
	list := make([]Given, n)
	for i := range list {
		list[i] = Given{Number: fmt.Sprintf("024%07d", i+1), Network: "MTN", Amount: "5.00"}
	}
	return list
}

// byKey creates a batch with a key and submits it.
func (n *node) byKey(caller idempotency.Caller, name string, rows int) Batch {
	n.f.t.Helper()
	b, _, err := n.Make(n.f.t.Context(), Upload{Tenant: caller.Tenant, Requester: caller.Key, Key: caller.Key, Name: name, Once: caller}, people(rows))
	if err != nil {
		n.f.t.Fatal(err)
	}
	f, err := n.Freeze(n.f.t.Context(), b.Tenant, b.ID, "")
	if err == nil {
		err = n.Submit(n.f.t.Context(), f, Order{Reason: "Batch " + name, Actor: "key"}, nil)
	}
	if err != nil {
		n.f.t.Fatal(err)
	}
	return n.is(b.ID)
}

// A key can change batches that a key created. It cannot resume a batch that a person paused, and cannot change a batch of people.
func TestProgram_leavesPeopleAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		caller := n.key()
		b := n.byKey(caller, "Salaries", 3)
		if err := n.Pause(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		_, _, err := n.ResumeFor(t.Context(), caller, b.ID)
		wantCode(t, err, "batch_paused_by_person")
		if is, replayed, err := n.PauseFor(t.Context(), caller, b.ID); err != nil || !replayed || is.Cause != CausePerson {
			t.Errorf("paused by a key: %s, %v, %v", is.Cause, replayed, err)
		}
		if err := n.Resume(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		if is, _, err := n.PauseFor(t.Context(), caller, b.ID); err != nil || is.Cause != CauseProgram {
			t.Errorf("paused by a key: %s, %v", is.Cause, err)
		}
		if is, _, err := n.ResumeFor(t.Context(), caller, b.ID); err != nil || is.Status != Running {
			t.Errorf("resumed by a key: %s, %v", is.Status, err)
		}
		is, _, err := n.CancelFor(t.Context(), caller, b.ID, "", "key")
		if err != nil || is.Status != Cancelled || is.Rest != 0 || n.wallet() != funds {
			t.Errorf("cancelled: %s with %s left, the wallet has %s, %v", is.Status, is.Rest, n.wallet(), err)
		}
		theirs := n.requested("Winners", fileFrom(7, 2))
		if err := n.start(theirs); err != nil {
			t.Fatal(err)
		}
		_, _, err = n.PauseFor(t.Context(), caller, theirs.ID)
		wantCode(t, err, "batch_of_people")
		_, _, err = n.CancelFor(t.Context(), caller, theirs.ID, "", "key")
		wantCode(t, err, "batch_of_people")
		n.sound()
	})
}

// A repeated request with the same Idempotency-Key changes nothing and returns the batch, also after its rows were sent. Another
// body with the same key is refused. After a refused request the key may be used again.
func TestProgram_idempotencyKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		n.answers = idempotency.NewAnswers(d, n.clock)
		caller := n.key()
		caller.IdempotencyKey, caller.BodyHash = "first", "make"
		bad := people(2)
		bad[1].Amount = "0.01"
		up := Upload{Tenant: caller.Tenant, Requester: caller.Key, Key: caller.Key, Name: "Salaries", Once: caller}
		_, _, err := n.Make(t.Context(), up, bad)
		if e := problem.From(err); e == nil || len(e.Fields["rows.2.amount"]) != 1 || len(e.Fields) != 1 {
			t.Fatalf("a bad row is answered %v", err)
		}
		b := n.byKey(caller, "Salaries", 2)
		for range 2 {
			if again, replayed, err := n.Make(t.Context(), up, people(2)); err != nil || !replayed || again.ID != b.ID {
				t.Fatalf("repeated: %s, %v, %v", again.ID, replayed, err)
			}
		}
		up.Once.BodyHash = "other"
		_, _, err = n.Make(t.Context(), up, people(3))
		wantCode(t, err, "idempotency_key_mismatch")
		up.Once = idempotency.Caller{Tenant: caller.Tenant, Key: caller.Key}
		_, _, err = n.Make(t.Context(), up, people(2))
		if e := wantCode(t, err, "duplicate_batch"); e.Data.(Batch).ID != b.ID {
			t.Errorf("the duplicate is %+v", e.Data)
		}
		pause := caller
		pause.IdempotencyKey, pause.BodyHash = "pause", "pause"
		if _, replayed, err := n.PauseFor(t.Context(), pause, b.ID); err != nil || replayed {
			t.Fatal(replayed, err)
		}
		if _, _, err := n.ResumeFor(t.Context(), idempotency.Caller{Tenant: caller.Tenant, Key: caller.Key}, b.ID); err != nil {
			t.Fatal(err)
		}
		if is, replayed, err := n.PauseFor(t.Context(), pause, b.ID); err != nil || !replayed || is.Status != Running {
			t.Errorf("a repeated pause: %s, %v, %v", is.Status, replayed, err)
		}
	})
}

// A draft of people is a duplicate for a key, because the key cannot send it. A draft of a key is a duplicate for people and for
// other keys.
func TestProgram_draftsOfOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		first, second := n.key(), n.key()
		theirs, err := n.upload("Salaries", file(2))
		if err != nil {
			t.Fatal(err)
		}
		rows := []Given{{Number: "0240000001", Network: "MTN", Amount: "2.00", Name: "Person 1"}, {Number: "0240000002", Network: "MTN", Amount: "3.00", Name: "Person 2"}}
		made := func(by idempotency.Caller, name string) (Batch, bool, error) {
			return n.Make(t.Context(), Upload{Tenant: by.Tenant, Requester: by.Key, Key: by.Key, Name: name}, rows)
		}
		_, _, err = made(first, "Salaries")
		if e := wantCode(t, err, "duplicate_batch"); e.Data.(Batch).ID != theirs.ID {
			t.Errorf("the duplicate is %+v", e.Data)
		}
		own, _, err := made(first, "Bonuses")
		if err != nil {
			t.Fatal(err)
		}
		if again, replayed, err := made(first, "Bonuses"); err != nil || !replayed || again.ID != own.ID {
			t.Errorf("the key's own draft: %s, %v, %v", again.ID, replayed, err)
		}
		_, _, err = made(second, "Bonuses")
		wantCode(t, err, "duplicate_batch")
		_, err = n.upload("Bonuses", file(2))
		wantCode(t, err, "duplicate_batch")
		if again, err := n.upload("Salaries", file(2)); err != nil || again.ID != theirs.ID {
			t.Errorf("the people's own draft: %s, %v", again.ID, err)
		}
	})
}

// A key discards its own draft by cancelling it. Drafts of people stay. A later request of the discarded draft is refused.
func TestProgram_cancelsDraft(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		caller := n.key()
		b, _, err := n.Make(t.Context(), Upload{Tenant: caller.Tenant, Requester: caller.Key, Key: caller.Key, Name: "Salaries"}, people(2))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := n.upload("Bonuses", file(2))
		if err != nil {
			t.Fatal(err)
		}
		if is, _, err := n.CancelFor(t.Context(), caller, b.ID, "", "key"); err != nil || is.Status != Cancelled {
			t.Errorf("%s, %v", is.Status, err)
		}
		_, _, err = n.CancelFor(t.Context(), caller, b.ID, "", "key")
		wantCode(t, err, "batch_not_found")
		_, _, err = n.CancelFor(t.Context(), caller, theirs.ID, "", "key")
		wantCode(t, err, "batch_of_people")
		if is := n.is(theirs.ID); is.Status != Draft || n.countRows() != 2 {
			t.Errorf("the draft of people is %s, %d rows are stored", is.Status, n.countRows())
		}
	})
}

// A list of overlaps is cached while the compared batches are unchanged.
func TestOverlaps_followBatches(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		overlaps := func(b Batch, want int) {
			t.Helper()
			list, err := n.Overlaps(t.Context(), b.Tenant, b.ID)
			rows := 0
			for _, o := range list {
				rows += o.Rows
			}
			if err != nil || rows != want {
				t.Errorf("%d rows overlap (%v), want %d", rows, err, want)
			}
		}
		draft, err := n.upload("Draft", fileFrom(1, 10))
		if err != nil {
			t.Fatal(err)
		}
		overlaps(draft, 0)
		first := n.requested("First", fileFrom(1, 4))
		overlaps(draft, 4)
		overlaps(draft, 4)
		if err := n.Drop(t.Context(), draft.Tenant, draft.ID, 1); err != nil {
			t.Fatal(err)
		}
		overlaps(draft, 3)
		if err := n.db.Write(t.Context(), func(tx *db.Tx) error { return n.Withdraw(tx, first.Tenant, first.ID) }); err != nil {
			t.Fatal(err)
		}
		overlaps(draft, 0)
	})
}

// After a restore a client repeats its request with the same Idempotency-Key. The answer is not the draft that the recovery voided.
func TestProgram_keyOfVoidDraft(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		n.answers = idempotency.NewAnswers(d, n.clock)
		caller := n.key()
		caller.IdempotencyKey, caller.BodyHash = "first", "make"
		up := Upload{Tenant: caller.Tenant, Requester: caller.Key, Key: caller.Key, Name: "Salaries", Once: caller}
		old, _, err := n.Make(t.Context(), up, people(2))
		if err == nil {
			err = n.db.Write(t.Context(), func(tx *db.Tx) error { RecoveryBegan(tx, n.clock); return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		b, replayed, err := n.Make(t.Context(), up, people(2))
		if err != nil || replayed || b.ID == old.ID || b.Status != Draft || b.Code != old.Code {
			t.Fatalf("%s %s, replayed %v, %v", b.ID, b.Status, replayed, err)
		}
		if again, replayed, err := n.Make(t.Context(), up, people(2)); err != nil || !replayed || again.ID != b.ID {
			t.Errorf("repeated: %s, %v, %v", again.ID, replayed, err)
		}
	})
}

// A revoked key sends nothing more: its draft is refused, and its running batch is paused.
func TestProgram_keyRevoked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		caller := n.key()
		runs := n.byKey(caller, "Salaries", 3)
		up := Upload{Tenant: caller.Tenant, Requester: caller.Key, Key: caller.Key, Name: "More"}
		draft, _, err := n.Make(t.Context(), up, people(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.db.Write(t.Context(), func(tx *db.Tx) error {
			_, err := n.access.RevokeKey(tx, caller.Tenant, caller.Key)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		n.clock.Advance(2 * time.Second)
		f, err := n.Freeze(t.Context(), draft.Tenant, draft.ID, "another time")
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, n.Submit(t.Context(), f, Order{Reason: "more", Actor: "key"}, nil), "key_revoked")
		if err := n.queue.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Second)
		if is := n.is(runs.ID); is.Status != Paused || is.Cause != CauseKey || is.Accepted != 0 || is.Rest != is.Total() {
			t.Errorf("the running batch is %s (%s), %d accepted, %s left", is.Status, is.Cause, is.Accepted, is.Rest)
		}
		if is := n.is(draft.ID); is.Status != Draft {
			t.Errorf("the draft is %s", is.Status)
		}
		n.sound()
	})
}

// Rows are listed by their result, in pages.
func TestFind_byStatus(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).node("a")
		b := n.byKey(n.key(), "Salaries", 5)
		n.pass(10 * time.Second)
		b = n.is(b.ID)
		for status, want := range map[string]int{"": 5, "success": 5, "failed": 0, "pending": 0, "ready": 0, "returned": 0, "bad": 0} {
			list, total, err := n.Find(t.Context(), b, status, 2, 2)
			if err != nil || total != want || len(list) != min(max(want-2, 0), 2) {
				t.Errorf("%q: %d of %d, want %d in all (%v)", status, len(list), total, want, err)
			}
			if len(list) == 2 && (list[0].Line != 3 || list[1].Line != 4) {
				t.Errorf("%q: rows %d and %d", status, list[0].Line, list[1].Line)
			}
		}
	})
}

// A restored database from before a draft has no Idempotency-Key of it. The repeated request then makes a new draft with the same
// code, so its payouts get the same references. Rows of a batch that the database still has are reported as paid.
func TestRecovery_sameIdempotencyKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		send := func(n *node, name string) Batch {
			n.answers = idempotency.NewAnswers(n.db, n.clock)
			caller := n.key()
			caller.IdempotencyKey, caller.BodyHash = "draft "+name, name
			return n.byKey(caller, name, 20)
		}
		n := f.node("a")
		b := send(n, "Salaries")
		n.pass(time.Minute)
		again := f.restored().node("b")
		if err := again.lost.Begin(t.Context(), "a restore", time.Time{}, "a restore", "ama"); err != nil {
			t.Fatal(err)
		}
		if err := again.lost.Open(t.Context(), "all is done again", "ama"); err != nil {
			t.Fatal(err)
		}
		same := send(again, "Salaries")
		if same.ID == b.ID || same.Code != b.Code {
			t.Errorf("the code was %s and is %s", b.Code, same.Code)
		}
		again.pass(5 * time.Minute)
		if is := again.is(same.ID); is.Status != Finished || is.Accepted != 20 || again.wallet() != funds-same.Total() {
			t.Errorf("%s by %q, %d accepted, the wallet has %s", is.Status, is.Cause, is.Accepted, again.wallet())
		}
		f.bank.wantOnePost(t)
		other, _, err := again.Make(t.Context(), Upload{Tenant: same.Tenant, Requester: same.Key, Key: same.Key, Name: "Wages"}, people(20))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := again.Overlaps(t.Context(), other.Tenant, other.ID); err != nil || len(list) != 1 || list[0].ID != same.ID || list[0].Rows != 20 {
			t.Errorf("the overlaps are %+v, %v", list, err)
		}
		_, err = again.Freeze(t.Context(), other.Tenant, other.ID, "")
		wantCode(t, err, "rows_paid_before")
		again.sound()
	})
}
