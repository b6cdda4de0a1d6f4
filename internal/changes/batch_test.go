package changes

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

// draft uploads rows with number, network and amount.
func (f *fixture) draft(name string, rows ...string) batch.Batch {
	f.t.Helper()
	text := "number,network,amount\n" + strings.Join(rows, "\n") + "\n"
	b, _, err := f.Batches.ReadFile(f.t.Context(), batch.Upload{Tenant: f.tenant.ID, Name: name, Requester: "ama"}, strings.NewReader(text), sheet.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// sendBatch requests a draft.
func (f *fixture) sendBatch(by By, b batch.Batch) Request {
	f.t.Helper()
	r, err := f.Do(f.t.Context(), by, KindSendBatch, newID(), Values{FieldTenant: b.Tenant, "batch": b.ID}, "salaries of November")
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) batchIs(b batch.Batch, want batch.Status) {
	f.t.Helper()
	if is, err := f.Batches.Get(f.t.Context(), b.Tenant, b.ID); err != nil || is.Status != want {
		f.t.Fatalf("the batch is %s (%v), want %s", is.Status, err, want)
	}
}

// A batch awaits the approval of another person of the account for 72 hours. The approval starts it.
func TestBatch_approvedByAnother(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.paying(20)
		f.clock.Advance(2 * time.Second)
		had, b := f.wallet(), f.draft("Salaries", "0201234567,TELECEL,10", "0201234568,TELECEL,20.50")
		r := f.sendBatch(owner, b)
		if r.State != Waiting || r.Needs != 1 || r.Amount != 3050+31 || r.ExpiresAt.Sub(r.MadeAt) != 72*time.Hour || !strings.Contains(r.Sentence, "Pay 2 people of the batch Salaries: GHS 30.50") {
			t.Fatalf("%+v", r)
		}
		f.batchIs(b, batch.Requested)
		if strings.Contains(string(r.Payload)+r.Facts.text(), "0201234567") {
			t.Error("a whole number is in the request")
		}
		if again := f.sendBatch(owner, b); again.ID != r.ID {
			t.Error("the same request was made twice")
		}
		_, err := f.Approve(t.Context(), owner, r.ID, r.Digest)
		if !problem.Is(err, problem.Forbidden) {
			t.Fatal(err)
		}
		done, err := f.Approve(t.Context(), admin, r.ID, r.Digest)
		if err != nil || done.State != Done || f.wallet() != had-r.Amount {
			t.Fatalf("%+v, %v, the wallet has %s", done, err, f.wallet())
		}
		f.batchIs(b, batch.Running)
		f.sound()
	})
}

// If a request is rejected, withdrawn or refused, the batch is a draft again. If the wallet does not cover the batch, the request
// stays waiting.
func TestBatch_draftAgain(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.paying(20)
		f.clock.Advance(2 * time.Second)
		b := f.draft("Salaries", "0201234567,TELECEL,10")
		r := f.sendBatch(owner, b)
		if _, err := f.Reject(t.Context(), admin, r.ID, r.Digest, "the wrong month"); err != nil {
			t.Fatal(err)
		}
		f.batchIs(b, batch.Draft)
		r = f.sendBatch(owner, b)
		if _, err := f.Withdraw(t.Context(), owner, r.ID, r.Digest); err != nil {
			t.Fatal(err)
		}
		f.batchIs(b, batch.Draft)
		large := f.draft("Winners", "0201234567,TELECEL,15000")
		waits := f.sendBatch(owner, large)
		_, err := f.Approve(t.Context(), admin, waits.ID, waits.Digest)
		f.refused(err, problem.InsufficientFunds, "insufficient_wallet_balance")
		f.is(waits.ID, Waiting)
		f.batchIs(large, batch.Requested)
		r = f.sendBatch(owner, b)
		f.clock.Advance(batchLasts + time.Minute)
		if err := f.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.is(r.ID, Expired)
		f.batchIs(b, batch.Draft)
		f.sound()
	})
}

// A batch needs the larger of two numbers of approvers: of the line for batches by its total, and of the line for payouts by its
// largest row.
func TestBatch_stricterLineWins(t *testing.T) {
	each(t, func(f *fixture) {
		owner := f.member("owner@adom.example", f.tenant.ID, roles.Owner)
		f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.member("signatory@adom.example", f.tenant.ID, roles.Signatory)
		f.paying(20)
		f.line(Line{Kind: KindSendBatch, Tenant: f.tenant.ID, Own: true, From: 50 * money.Cedi, Approvers: 2})
		f.line(Line{Kind: KindSendPayout, Tenant: f.tenant.ID, Own: true, From: 20 * money.Cedi, Approvers: 2})
		f.clock.Advance(2 * time.Second)
		for rows, want := range map[string]int{
			"0201234567,TELECEL,10":                                               1,
			"0201234567,TELECEL,20":                                               2,
			"0201234567,TELECEL,19\n0201234568,TELECEL,19":                        1,
			"0201234567,TELECEL,19\n0201234568,TELECEL,19\n0201234569,TELECEL,19": 2,
		} {
			r := f.sendBatch(owner, f.draft("Batch of "+rows[:30-9], rows))
			if r.Needs != want {
				t.Errorf("%q needs %d, want %d", rows, r.Needs, want)
			}
			if _, err := f.Withdraw(t.Context(), owner, r.ID, r.Digest); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A batch that a key submits begins at once, unless the account's policy requires approval. If the wallet does not cover the
// batch, it stays a draft. A batch of another key is not found.
func TestBatch_byKey(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.paying(20)
		f.clock.Advance(2 * time.Second)
		key := f.keyOf("", owner.Visitor.Person.ID)
		upload := func(name, number, amount string) batch.Batch {
			b, _, err := f.Batches.Make(t.Context(), batch.Upload{Tenant: f.tenant.ID, Name: name, Requester: key, Key: key}, []batch.Given{{Number: number, Network: "TELECEL", Amount: amount}})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b, large := upload("Salaries", "0201234567", "10"), upload("Winners", "0201234568", "15000")
		submit := func(id, key string) (replayed bool, err error) {
			_, replayed, err = f.SubmitBatch(t.Context(), Submission{Caller: idempotency.Caller{Tenant: b.Tenant, Key: key}, Batch: id, Origin: "192.0.2.1"})
			return replayed, err
		}
		_, err := submit(b.ID, f.keyOf("", ""))
		f.refused(err, problem.NotFound, "batch_not_found")
		for _, again := range []bool{false, true} {
			if replayed, err := submit(b.ID, key); err != nil || replayed != again {
				t.Fatal(replayed, err)
			}
		}
		f.batchIs(b, batch.Running)
		_, err = submit(large.ID, key)
		f.refused(err, problem.InsufficientFunds, "insufficient_wallet_balance")
		f.batchIs(large, batch.Draft)
		f.line(Line{Kind: KindSendBatch, Tenant: f.tenant.ID, Own: true, Approvers: 1})
		f.clock.Advance(2 * time.Second)
		waits := upload("Bonuses", "0201234569", "10")
		if _, err := submit(waits.ID, key); err != nil {
			t.Fatal(err)
		}
		r, found, err := f.RequestOfBatch(t.Context(), b.Tenant, waits.ID)
		if err != nil || !found || r.Needs != 1 || r.Key != key {
			t.Fatalf("%+v, %v, %v", r, found, err)
		}
		if done, err := f.Approve(t.Context(), admin, r.ID, r.Digest); err != nil || done.State != Done {
			t.Fatal(done, err)
		}
		f.batchIs(waits, batch.Running)
		f.sound()
	})
}
