package changes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
)

// key requests a key of the account in the name of a person.
func (f *fixture) key(by By, scopes ...access.Scope) (Request, error) {
	return f.CreateKey(f.t.Context(), by, newID(), f.tenant.ID, KeyOrder{Scopes: scopes}, "for the shop")
}

// works reports whether a key is valid for the account.
func (f *fixture) works(text string) bool {
	f.t.Helper()
	c, err := f.Access.Authenticate(f.t.Context(), text)
	return err == nil && c.Tenant == f.tenant.ID
}

func TestKeyCreate_payingNeedsTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.key(f.requester, access.Payout, access.Read)
		f.asked(request, err, KindCreateKey, 1)
		_, err = f.Reveal(t.Context(), f.requester, Secret, request.ID)
		f.refused(err, problem.NotFound, "act_not_found")
		f.clock.Advance(time.Second)
		done := f.approved(f.first, request)
		if done.State != Done || done.Secret != "" {
			t.Fatalf("the checker has %+v", done)
		}
		_, err = f.Reveal(t.Context(), f.first, Secret, request.ID)
		f.refused(err, problem.Forbidden, "not_your_act")
		elsewhere := f.requester
		elsewhere.Place = f.tenant.ID
		_, err = f.Reveal(t.Context(), elsewhere, Secret, request.ID)
		f.refused(err, problem.NotFound, "act_not_found")
		text, err := f.Reveal(t.Context(), f.requester, Secret, request.ID)
		if err != nil || !f.works(text) || !strings.HasPrefix(text, "mk_live_") {
			t.Fatal(err)
		}
		if again, err := f.Reveal(t.Context(), f.requester, Secret, request.ID); err != nil || again != text { // the answer was lost, so the page is requested again
			t.Fatal(err)
		}
		f.clock.Advance(time.Minute)
		_, err = f.Reveal(t.Context(), f.requester, Secret, request.ID)
		f.refused(err, problem.Gone, "secret_shown")
		shown := 0
		for _, e := range f.entries() {
			if e.Action == "act.reveal" && e.Actor == "ama@example.com" {
				shown++
			}
			if strings.Contains(fmt.Sprint(e.Details), text) {
				t.Error("the key is in the audit log")
			}
		}
		if shown != 1 {
			t.Errorf("%d reveals are in the audit log", shown)
		}
		if err := f.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := 0
		if err := f.db.Read(t.Context(), func(tx *db.Tx) error { _, err := tx.One("SELECT count(*) FROM act_secrets", nil, &left); return err }); err != nil || left != 0 {
			t.Fatal(left, err)
		}
	})
}

func TestKeyCreate_collectingIsImmediate(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.key(f.requester, access.Read, access.Collect)
		f.asked(request, err, KindCreateKey, 0)
		if !f.works(request.Secret) {
			t.Fatal("the maker has no key")
		}
		if text, err := f.Reveal(t.Context(), f.requester, Secret, request.ID); err != nil || text != request.Secret {
			t.Fatal(err)
		}
		for _, scopes := range [][]access.Scope{nil, {access.All}, {access.Airtime}, {access.Read, access.Payout}} {
			request, err := f.key(f.requester, scopes...)
			f.asked(request, err, KindCreateKey, 1)
		}
	})
}

// A person cannot give a key a scope that their own role lacks. The role is checked when the key is made.
func TestKeyCreate_scopesOfTheRequester(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		developer, finance := f.member("dev@adom.example", f.tenant.ID, roles.Developer), f.member("fin@adom.example", f.tenant.ID, roles.Finance)
		f.clock.Advance(time.Second)
		for _, scopes := range [][]access.Scope{nil, {access.Payout}, {access.Read, access.Airtime}} {
			_, err := f.key(developer, scopes...)
			f.refused(err, problem.Forbidden, "scope_beyond")
		}
		_, err := f.key(finance, access.Read)
		f.refused(err, problem.Forbidden, "scope_beyond")
		request, err := f.key(developer, access.Read, access.Webhooks)
		f.asked(request, err, KindCreateKey, 0)
		paying, err := f.key(admin, access.Payout)
		f.asked(paying, err, KindCreateKey, 1)
		keys, err := f.Access.Keys(t.Context(), f.tenant.ID)
		if err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.SetRole(tx, "admin@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: roles.Developer})
			return err
		})
		if paying = f.approved(owner, paying); paying.State != Failed {
			t.Fatalf("%+v", paying)
		}
		if keys, err = f.Access.Keys(t.Context(), f.tenant.ID); err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
	})
}

func TestKey_rotatedAndRevoked(t *testing.T) {
	each(t, func(f *fixture) {
		other := f.shop("Other Shop")
		request, err := f.key(f.requester, access.Payout)
		f.asked(request, err, KindCreateKey, 1)
		f.clock.Advance(time.Second)
		f.approved(f.first, request)
		old, err := f.Reveal(t.Context(), f.requester, Secret, request.ID)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := f.Access.Keys(t.Context(), f.tenant.ID)
		if err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
		id := keys[0].ID
		request, err = f.SetKey(t.Context(), f.requester, newID(), f.tenant.ID, id, 500_00, "a bound")
		f.asked(request, err, KindSetKey, 0)
		request, err = f.SetKey(t.Context(), f.requester, newID(), f.tenant.ID, id, 600_00, "more")
		f.asked(request, err, KindSetKey, 1)
		_, err = f.RotateKey(t.Context(), f.requester, newID(), f.tenant.ID, id, 8*24*time.Hour, "x")
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		_, err = f.RotateKey(t.Context(), f.requester, newID(), other.ID, id, time.Hour, "x")
		f.refused(err, problem.NotFound, "key_not_found")
		_, err = f.RevokeKey(t.Context(), f.requester, newID(), other.ID, id, "x")
		f.refused(err, problem.NotFound, "key_not_found")
		request, err = f.RotateKey(t.Context(), f.requester, newID(), f.tenant.ID, id, time.Hour, "every year")
		f.asked(request, err, KindRotateKey, 1)
		f.clock.Advance(time.Second)
		f.approved(f.first, request)
		text, err := f.Reveal(t.Context(), f.requester, Secret, request.ID)
		if err != nil || !f.works(text) || !f.works(old) {
			t.Fatal(err)
		}
		f.clock.Advance(time.Hour)
		if f.works(old) || !f.works(text) {
			t.Fatal("the old one works after its hour")
		}
		if keys, err = f.Access.Keys(t.Context(), f.tenant.ID); err != nil || len(keys) != 2 || keys[1].Daily != 500_00 {
			t.Fatal(keys, err)
		}
	})
}

func TestKeyRevoke_isImmediate(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.key(f.requester, access.Read)
		f.asked(request, err, KindCreateKey, 0)
		keys, err := f.Access.Keys(t.Context(), f.tenant.ID)
		if err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
		gone, err := f.RevokeKey(t.Context(), f.requester, newID(), f.tenant.ID, keys[0].ID, "leaked")
		f.asked(gone, err, KindRevokeKey, 0)
		f.clock.Advance(access.Freshness)
		if f.works(request.Secret) {
			t.Fatal("works still")
		}
	})
}

func TestWebhookSecret_changedByItsPeople(t *testing.T) {
	each(t, func(f *fixture) {
		developer, support := f.member("dev@adom.example", f.tenant.ID, roles.Developer), f.member("sup@adom.example", f.tenant.ID, roles.Support)
		f.clock.Advance(time.Second)
		before, err := f.Webhooks.Secret(t.Context(), f.tenant.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.RotateSecret(t.Context(), support, newID(), f.tenant.ID, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		request, err := f.RotateSecret(t.Context(), developer, newID(), f.tenant.ID, "a laptop was lost")
		f.asked(request, err, KindRotateSecret, 0)
		after, err := f.Webhooks.Secret(t.Context(), f.tenant.ID)
		if err != nil || after.Current == before.Current || after.Former != before.Current {
			t.Fatal(err)
		}
	})
}

func TestSenderID_reviewedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		s, _, err := f.Senders.Request(t.Context(), idempotency.Caller{Tenant: f.tenant.ID}, "ADOM", "receipts")
		if err != nil {
			t.Fatal(err)
		}
		esi, auditor := f.join("esi@example.com", roles.Compliance), f.join("yaw@example.com", roles.Auditor)
		_, err = f.ReviewSender(t.Context(), auditor, newID(), s.ID, senderid.Approved, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		_, err = f.ReviewSender(t.Context(), esi, newID(), newID(), senderid.Approved, "x")
		if !problem.Is(err, problem.NotFound) {
			t.Fatal(err)
		}
		request, err := f.ReviewSender(t.Context(), esi, newID(), s.ID, senderid.Approved, "the name of the shop")
		f.asked(request, err, KindApproveSender, 0)
		if s, err = f.Senders.Find(t.Context(), s.ID); err != nil || s.Status != senderid.Approved || s.Reviewer != "esi@example.com" {
			t.Fatalf("%+v, %v", s, err)
		}
		request, err = f.ReviewSender(t.Context(), esi, newID(), s.ID, senderid.Rejected, "no")
		if err != nil || request.State != Failed {
			t.Fatalf("%+v, %v", request, err)
		}
	})
}

// A secret that was sealed under another master key is not shown as a wrong text.
func TestSecret_otherMasterKeyIsHidden(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.key(f.requester, access.Read)
		f.asked(request, err, KindCreateKey, 0)
		other, err := config.NewSecret([]byte(strings.Repeat("x", config.SecretBytes)))
		if err != nil {
			t.Fatal(err)
		}
		f.Seal = NewSealer(other)
		_, err = f.Reveal(t.Context(), f.requester, Secret, request.ID)
		f.refused(err, problem.Unavailable, "secret_unreadable")
	})
}

// The secret is not shown if the session has ended or the requester has lost the role.
func TestSecret_needsPermissionWhenShown(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.key(f.requester, access.Read)
		f.asked(request, err, KindCreateKey, 0)
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.SetRole(tx, "ama@example.com", identity.Membership{Role: roles.Support})
			return err
		})
		_, err = f.Reveal(t.Context(), f.requester, Secret, request.ID)
		f.refused(err, problem.Forbidden, "not_allowed")
	})
}
