package changes

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
)

// order returns a payout of GHS 10.00 whose client has disconnected. No queue runs here, and nobody waits for the answer.
func (f *fixture) order() payments.Payout {
	gone := make(chan struct{})
	close(gone)
	return payments.Payout{Gone: gone, Amount: 10 * money.Cedi, Reference: newID(), Name: "Kofi Boateng", MSISDN: "233201234567", Network: msisdn.Telecel}
}

func (f *fixture) byKey(key string) idempotency.Caller {
	return idempotency.Caller{Tenant: f.tenant.ID, Key: key}
}

// heldPayout returns the request of a key's payout that awaits approval.
func (f *fixture) heldPayout(key string) (Request, error) {
	f.t.Helper()
	pay, _, err := f.Payments.Payout(f.t.Context(), f.byKey(key), f.order())
	if err != nil || !pay.AwaitsApproval() {
		f.t.Fatalf("%+v, %v", pay, err)
	}
	return f.Store.Get(f.t.Context(), pay.ID)
}

// The reason of a payout's request shows no phone number that the customer's reference contains.
func TestHeldPayout_masksItsReference(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		order := f.order()
		order.Reference = "pay-0201234567-march"
		pay, _, err := f.Payments.Payout(t.Context(), f.byKey(f.keyOf("", f.owner.Visitor.Person.ID)), order)
		if err != nil || !pay.AwaitsApproval() {
			t.Fatalf("%+v, %v", pay, err)
		}
		request, err := f.Store.Get(t.Context(), pay.ID)
		if err != nil || strings.Contains(request.Reason, "0201234567") || request.Reason != "Reference ****rch" {
			t.Errorf("%q, %v", request.Reason, err)
		}
	})
}

// keyOf creates a key of the account for a member, requested by a person.
func (f *fixture) keyOf(member, requester string) string {
	f.t.Helper()
	m, err := f.Access.Mint(access.NewKey{Tenant: f.tenant.ID, Live: true, Member: member, Scopes: []access.Scope{access.Payout}})
	if err != nil {
		f.t.Fatal(err)
	}
	m.Key.Creator = requester
	f.tx(func(tx *db.Tx) error { f.Access.CreateKey(tx, m); return nil })
	return m.Key.ID
}

// team is an account with its people. Its payouts from GHS 5.00 on need approvers.
type team struct {
	*fixture
	owner, admin, signatory, finance By
}

func eachTeam(t *testing.T, approvers int, fn func(f *team)) {
	each(t, func(f *fixture) {
		m := &team{fixture: f}
		m.owner, m.admin = f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		m.signatory, m.finance = f.member("signatory@adom.example", f.tenant.ID, roles.Signatory), f.member("finance@adom.example", f.tenant.ID, roles.Finance)
		f.paying(20)
		f.line(Line{Kind: KindSendPayout, Tenant: f.tenant.ID, Own: true, From: 5 * money.Cedi, Approvers: approvers})
		f.clock.Advance(2 * time.Second)
		fn(m)
	})
}

func TestHeldPayout_approvedOnce(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		f.rail.pending = true
		had := f.wallet()
		request, err := f.heldPayout(f.keyOf("", f.owner.Visitor.Person.ID))
		if err != nil || request.Kind != KindSendPayout || request.State != Waiting || request.Needs != 1 || request.Amount != 10*money.Cedi || request.Place != f.tenant.ID || request.Requester != f.owner.Visitor.Person.ID ||
			!strings.HasPrefix(request.RequesterName, "key mk_live_") || request.Sentence != "Send GHS 10.00 to TELECEL 233****4567, with a fee of GHS 0.10" {
			t.Fatalf("%+v, %v", request, err)
		}
		if strings.Contains(string(request.Payload), "233201234567") {
			t.Error("a whole number is in the act")
		}
		if f.wallet() != had-10*money.Cedi-10 {
			t.Errorf("the wallet has %s", f.wallet())
		}
		var won atomic.Int64
		var all sync.WaitGroup
		for _, by := range []By{f.admin, f.signatory, f.admin, f.signatory} {
			all.Go(func() {
				done, err := f.Approve(context.WithoutCancel(t.Context()), by, request.ID, request.Digest)
				if err == nil && done.State == Done {
					won.Add(1)
				} else if !problem.Is(err, problem.Duplicate) {
					t.Error(done, err)
				}
			})
		}
		all.Wait()
		f.is(request.ID, Done)
		if pay := f.payment(request.ID); won.Load() != 1 || pay.AwaitsApproval() || pay.Status != book.StatusPending {
			t.Errorf("%d approvals, %+v", won.Load(), pay)
		}
		log := f.entries()
		if log[0].Action != KindSendPayout || log[0].Changes()[0] != (audit.Change{What: "payout", Before: "waits for approval", After: "is sent"}) || log[1].Action != "act.make" || log[1].Actor != request.RequesterName || log[1].Person != "" {
			t.Errorf("%+v", log[:2])
		}
		f.sound()
	})
}

// A payout by a page or key is not approved by its requester, by another account, by the installation, by a role without the
// permission, or by a person who got the role later.
func TestHeldPayout_notByItsRequester(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		byPage, err := f.onPage(f.admin, newID(), nil)
		if err != nil || byPage.State != Waiting || byPage.Requester != f.admin.Visitor.Person.ID || byPage.RequesterName != "admin@adom.example" || byPage.Origin != "192.0.2.9" {
			t.Fatal(byPage, err)
		}
		byKey, err := f.heldPayout(f.keyOf("Owner@adom.example", f.admin.Visitor.Person.ID))
		if err != nil {
			t.Fatal(err)
		}
		other := f.shop("Other Shop")
		stranger, operator := f.member("admin@other.example", other.ID, roles.Admin), f.join("boss@example.com", roles.Owner)
		late := f.member("late@adom.example", f.tenant.ID, roles.Signatory)
		refused := func(by By, request Request, place, code string) {
			t.Helper()
			by.Place = place
			_, err := f.Approve(t.Context(), by, request.ID, request.Digest)
			if e := problem.From(err); e == nil || e.Code != code {
				t.Errorf("%s: %v, want %s", by.Visitor.Person.Email, err, code)
			}
			f.is(request.ID, Waiting)
		}
		here := f.tenant.ID
		refused(f.admin, byPage, here, "own_act")
		refused(f.admin, byKey, here, "own_act") // the person who created the key
		refused(f.owner, byKey, here, "own_act") // the owner of the key
		refused(f.finance, byKey, here, "not_allowed")
		refused(late, byKey, here, "role_younger")
		refused(stranger, byKey, other.ID, "act_not_found")
		refused(stranger, byKey, here, "not_allowed")
		refused(operator, byKey, roles.Installation, "act_not_found")
		refused(operator, byKey, here, "not_allowed")
		stale := byKey
		stale.Digest = strings.Repeat("0", 64)
		refused(f.signatory, stale, here, "act_changed")
		for _, request := range []Request{byPage, byKey} {
			if done, err := f.Approve(t.Context(), f.signatory, request.ID, request.Digest); err != nil || done.State != Done {
				t.Error(done, err)
			}
		}
		f.sound()
	})
}

func TestHeldPayout_endReleasesTheHold(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		had := f.wallet()
		key := f.keyOf("", f.owner.Visitor.Person.ID)
		for name, end := range map[State]func(request Request) error{
			Rejected: func(request Request) error {
				_, err := f.Reject(t.Context(), f.signatory, request.ID, request.Digest, "not agreed")
				return err
			},
			Withdrawn: func(request Request) error {
				_, err := f.Withdraw(t.Context(), f.admin, request.ID, request.Digest)
				f.refused(err, problem.Forbidden, "not_your_act")
				_, err = f.Withdraw(t.Context(), f.owner, request.ID, request.Digest)
				return err
			},
			Expired: func(request Request) error {
				f.tx(func(tx *db.Tx) error {
					tx.Defer("UPDATE acts SET expires_at = $2 WHERE id = $1", 1, request.ID, f.clock.Now())
					return nil
				})
				_, err := f.Approve(t.Context(), f.signatory, request.ID, request.Digest)
				f.refused(err, problem.Gone, "act_expired")
				return f.Expire(t.Context())
			},
		} {
			request, err := f.heldPayout(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(request); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			f.is(request.ID, name)
			if pay := f.payment(request.ID); pay.Status != book.StatusFailed || pay.Reason != provider.ReasonNotApproved || f.wallet() != had {
				t.Errorf("%s: %+v, the wallet has %s of %s", name, pay, f.wallet(), had)
			}
			if err := f.Expire(t.Context()); err != nil || f.wallet() != had {
				t.Errorf("%s: %v, the wallet has %s", name, err, f.wallet())
			}
		}
		f.sound()
	})
}

// If the clock is set forward, a payout that awaits approval does not expire at once. It expires if it is not approved within
// the next day.
func TestExpire_clockSetForward(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		request, err := f.heldPayout(f.keyOf("", f.owner.Visitor.Person.ID))
		if err != nil {
			t.Fatal(err)
		}
		f.clock.Set(48 * time.Hour)
		for _, is := range []State{Waiting, Expired} {
			if err := f.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.is(request.ID, is)
			f.clock.Advance(Lasts)
		}
		f.sound()
	})
}

// If the payout is refused when it is approved, the request and the payout fail, and no money stays on hold.
func TestHeldPayout_revokedOrStopped(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		had := f.wallet()
		key := f.keyOf("", "")
		for i, note := range []string{"revoked", "Payouts"} {
			request, err := f.heldPayout(key)
			if err != nil {
				t.Fatal(err)
			}
			f.tx(func(tx *db.Tx) error {
				if i == 0 {
					_, err := f.Access.RevokeKey(tx, f.tenant.ID, key)
					return err
				}
				f.Tenants.StopPayouts(tx, f.tenant.ID)
				return nil
			})
			if done, err := f.Approve(t.Context(), f.signatory, request.ID, request.Digest); err != nil || done.State != Failed || !strings.Contains(done.Note, note) {
				t.Errorf("%+v, %v", done, err)
			}
			if pay := f.payment(request.ID); pay.Status != book.StatusFailed || f.wallet() != had {
				t.Errorf("%+v, the wallet has %s", pay, f.wallet())
			}
			key = f.keyOf("", "")
		}
		f.sound()
	})
}

func TestHeldPayout_policyLine(t *testing.T) {
	eachTeam(t, 2, func(f *team) {
		key := f.keyOf("", "")
		small := f.order()
		small.Amount = 4_99
		if pay, _, err := f.Payments.Payout(t.Context(), f.byKey(key), small); err != nil || pay.AwaitsApproval() {
			t.Errorf("below the line: %+v, %v", pay, err)
		}
		request, err := f.heldPayout(key)
		if err != nil || request.Needs != 2 {
			t.Fatal(request, err)
		}
		for _, by := range []By{f.signatory, f.admin} {
			if pay := f.payment(request.ID); !pay.AwaitsApproval() {
				t.Error("it went with one approval of two")
			}
			if _, err := f.Approve(t.Context(), by, request.ID, request.Digest); err != nil {
				t.Fatal(err)
			}
		}
		if pay := f.payment(request.ID); pay.AwaitsApproval() {
			t.Errorf("%+v", pay)
		}
		// If too few people are left who may approve, the payout is refused at once.
		f.tx(func(tx *db.Tx) error {
			for _, email := range []string{"admin@adom.example", "signatory@adom.example"} {
				if _, err := f.people.Disable(tx, email); err != nil {
					return err
				}
			}
			return nil
		})
		had, order := f.wallet(), f.order()
		_, _, err = f.Payments.Payout(t.Context(), f.byKey(key), order)
		f.refused(err, problem.Forbidden, "too_few_people")
		if f.wallet() != had {
			t.Errorf("the wallet has %s of %s", f.wallet(), had)
		}
		f.line(Line{Kind: KindSendPayout, Tenant: f.tenant.ID, Own: true, From: 5 * money.Cedi, Approvers: Default})
		f.clock.Advance(2 * time.Second)
		if pay, _, err := f.Payments.Payout(t.Context(), f.byKey(key), order); err != nil || pay.AwaitsApproval() {
			t.Errorf("without a line: %+v, %v", pay, err)
		}
	})
}

// A fault at any boundary of the database leaves a rejected payout either refunded once or waiting.
func TestReject_interruptedReleasesOnce(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		key, had := f.keyOf("", ""), f.wallet()
		for n := range mostBoundaries {
			request, err := f.heldPayout(key)
			if err != nil {
				t.Fatal(err)
			}
			hit, left := false, n
			f.faults.Decide(func(db.Boundary) db.Fault {
				if left--; left == -1 {
					hit = true
					return []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}[n%3]
				}
				return db.FaultNone
			})
			_, err = f.Reject(t.Context(), f.signatory, request.ID, request.Digest, "not agreed")
			f.faults.Decide(nil)
			now, getErr := f.Store.Get(t.Context(), request.ID)
			if getErr != nil {
				t.Fatal(getErr)
			}
			if pay := f.payment(request.ID); pay.AwaitsApproval() != (now.State == Waiting) {
				t.Fatalf("%d: the act is %s, and the payout %+v: %v", n, now.State, pay, err)
			}
			if now.State == Waiting {
				if _, err := f.Reject(t.Context(), f.signatory, request.ID, request.Digest, "not agreed"); err != nil {
					t.Fatal(err)
				}
			}
			if f.is(request.ID, Rejected); f.wallet() != had {
				t.Fatalf("%d: the wallet has %s of %s", n, f.wallet(), had)
			}
			if !hit {
				if n < 5 {
					t.Errorf("%d boundaries", n)
				}
				break
			}
		}
		f.sound()
	})
}

// A person who is named on an older key cannot approve its requests, in any spelling of the free text.
func TestKeyText_namesTheApprover(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		for _, text := range []string{"Owner@adom.example", "Admin <owner@adom.example>", "owner\u200b@adom.example", "\u043ewner@adom.example"} {
			request, err := f.heldPayout(f.keyOf(text, f.admin.Visitor.Person.ID))
			if err != nil {
				t.Fatal(err)
			}
			by := f.owner
			by.Place = f.tenant.ID
			_, err = f.Approve(t.Context(), by, request.ID, request.Digest)
			f.refused(err, problem.Forbidden, "own_act")
			f.is(request.ID, Waiting)
		}
		f.sound()
	})
}

// The people who made, rotated or own a key cannot approve its requests. They are compared by id, so a changed e-mail address
// does not matter. A label does not identify a person.
func TestKeyHolders_cannotApprove(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		here := func(by By) By { by.Place = f.tenant.ID; return by }
		second := f.member("second@adom.example", f.tenant.ID, roles.Admin)
		f.clock.Advance(time.Second)
		order := KeyOrder{Member: " Signatory@adom.example", Label: "second's till", Scopes: []access.Scope{access.Payout}}
		request, err := f.CreateKey(t.Context(), here(f.owner), newID(), f.tenant.ID, order, "till")
		f.asked(request, err, KindCreateKey, 1)
		f.approved(here(f.admin), request)
		keys, err := f.Access.Keys(t.Context(), f.tenant.ID)
		if err != nil || len(keys) != 1 || keys[0].Person != f.signatory.Visitor.Person.ID || keys[0].Label != "second's till" {
			t.Fatalf("%+v, %v", keys, err)
		}
		request, err = f.RotateKey(t.Context(), here(f.admin), newID(), f.tenant.ID, keys[0].ID, time.Hour, "yearly")
		f.asked(request, err, KindRotateKey, 1)
		f.approved(here(f.owner), request)
		keys, err = f.Access.Keys(t.Context(), f.tenant.ID)
		if err != nil || len(keys) != 2 {
			t.Fatal(keys, err)
		}
		held, err := f.heldPayout(keys[1].ID)
		if err != nil || held.Member != "" || len(held.Barred) != 3 {
			t.Fatalf("%+v, %v", held, err)
		}
		for name, by := range map[string]By{"maker of the first": f.owner, "rotator": f.admin, "member": f.signatory} {
			_, err := f.Approve(t.Context(), here(by), held.ID, held.Digest)
			if e := problem.From(err); e == nil || e.Code != "own_act" {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.rail.pending = true
		if done, err := f.Approve(t.Context(), here(second), held.ID, held.Digest); err != nil || done.State != Done {
			t.Error(done, err)
		}
		for _, who := range []string{"Signatory", "signatory@adom", "nobody@adom.example", f.first.Visitor.Person.ID, "signatory@adom.example "} {
			_, err := f.CreateKey(t.Context(), here(f.owner), newID(), f.tenant.ID, KeyOrder{Member: who, Scopes: []access.Scope{access.Payout}}, "till")
			if found := who == "signatory@adom.example "; (err == nil) != found {
				t.Errorf("member %q: %v", who, err)
			}
		}
		f.sound()
	})
}

// A key can request only payouts and batches. Other kinds of requests refuse a key as the requester.
func TestKeys_requestPayoutsAlone(t *testing.T) {
	each(t, func(f *fixture) {
		for name, k := range f.kinds {
			_, err := f.Store.Planned(t.Context(), k.Rule, Request{ID: newID(), Kind: name, Tenant: f.tenant.ID, Place: f.tenant.ID, Key: "a key"})
			if refused := err != nil && problem.From(err).Code == "person_needed"; refused == (name == KindSendPayout || name == KindSendBatch) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
