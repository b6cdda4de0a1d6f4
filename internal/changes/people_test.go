package changes

import (
	"net/netip"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/identitytest"
)

// invite lets a person invite another one.
func (f *fixture) invite(by By, email string, m identity.Membership) (Request, error) {
	return f.Invite(f.t.Context(), by, newID(), email, "Somebody %s", m, "helps out")
}

// failed fails the test unless the call succeeded and the request has the state Failed.
func (f *fixture) failed(request Request, err error) {
	f.t.Helper()
	if err != nil || request.State != Failed {
		f.t.Fatalf("%+v, %v", request, err)
	}
}

func TestInvite_needsTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.clock.Advance(time.Second)
		request, err := f.invite(admin, "new@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: roles.Finance})
		f.asked(request, err, KindInvite, 1)
		if request.Sentence != "Invite new@adom.example (Somebody %s) as finance of Adom Stores (live)" {
			t.Fatal(request.Sentence)
		}
		if request = f.approved(owner, request); request.State != Done || request.Secret != "" {
			t.Fatalf("%+v", request)
		}
		_, err = f.Reveal(t.Context(), owner, Secret, request.ID)
		f.refused(err, problem.Forbidden, "not_your_act")
		token, err := f.Reveal(t.Context(), admin, Secret, request.ID)
		if err != nil {
			t.Fatal(err)
		}
		session, err := f.people.Accept(t.Context(), token, f.code(owner, request), identitytest.Password, "a test", netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		if v := identitytest.Visit(t, f.people, session); v.Role(f.tenant.ID) != roles.Finance || v.Operator() {
			t.Fatalf("%+v", v)
		}
	})
}

func TestRole_grantsNoMoreThanOwn(t *testing.T) {
	eachAlone(t, func(f *fixture) {
		other := f.shop("Other Shop")
		boss := f.join("boss@example.com", roles.Owner)
		admin := f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		for _, r := range []roles.Role{roles.Owner, roles.Approver, roles.Compliance} {
			f.failed(f.invite(f.requester, "x@example.com", identity.Membership{Role: r}))
		}
		f.failed(f.invite(admin, "x@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: roles.Owner}))
		_, err := f.invite(admin, "x@adom.example", identity.Membership{Tenant: other.ID, Role: roles.Support})
		f.refused(err, problem.NotFound, "tenant_not_found")
		_, err = f.invite(admin, "x@adom.example", identity.Membership{Role: roles.Support})
		f.refused(err, problem.NotFound, "tenant_not_found")
		_, err = f.invite(admin, "x@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: roles.Operations})
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		developer := f.member("dev@adom.example", f.tenant.ID, roles.Developer)
		_, err = f.invite(developer, "x@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: roles.Support})
		f.refused(err, problem.Forbidden, "not_allowed")
		request, err := f.invite(f.requester, "x@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: roles.Owner}) // the first person of an account
		f.asked(request, err, KindInvite, 0)
		request, err = f.invite(boss, "y@example.com", identity.Membership{Role: roles.Approver})
		f.asked(request, err, KindInvite, 0)

		// They cannot remove such a role either, or reset its holder, because they would get the link.
		to := identity.Membership{Role: roles.Support}
		f.failed(f.SetRole(f.t.Context(), f.requester, newID(), "boss@example.com", to, roles.Owner, "x"))
		f.failed(f.Reset(f.t.Context(), f.requester, newID(), "boss@example.com", "x"))
		f.failed(f.Disable(f.t.Context(), f.requester, newID(), "boss@example.com", "x"))
		f.failed(f.Reset(f.t.Context(), admin, newID(), "x@adom.example", "x"))
		request, err = f.Reset(f.t.Context(), f.requester, newID(), "x@adom.example", "lost the phone")
		f.asked(request, err, KindReset, 0)
		if request.Secret == "" {
			f.t.Error("no link")
		}
		request, err = f.Reset(f.t.Context(), admin, newID(), "dev@adom.example", "lost the phone")
		f.asked(request, err, KindReset, 0)
		// A person with a role elsewhere does not belong only to the account.
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.Invite(tx, identity.NewInvitation(), "dev@adom.example", "Dev", identity.Membership{Tenant: other.ID, Role: roles.Support})
			return err
		})
		f.failed(f.Reset(f.t.Context(), admin, newID(), "dev@adom.example", "x"))
		f.failed(f.Disable(f.t.Context(), admin, newID(), "dev@adom.example", "x"))
		request, err = f.SetRole(f.t.Context(), admin, newID(), "dev@adom.example", identity.Membership{Tenant: f.tenant.ID}, roles.Developer, "has left")
		f.asked(request, err, KindRole, 0)
		f.failed(f.Disable(f.t.Context(), admin, newID(), "dev@adom.example", "is not here any more"))
		f.failed(f.Reset(f.t.Context(), admin, newID(), "boss@example.com", "x"))
	})
}

func TestRole_notOfOneself(t *testing.T) {
	eachAlone(t, func(f *fixture) {
		boss := f.join("boss@example.com", roles.Owner)
		f.failed(f.SetRole(f.t.Context(), boss, newID(), "boss@example.com", identity.Membership{Role: roles.Support}, roles.Owner, "x"))
		f.failed(f.Reset(f.t.Context(), boss, newID(), "BOSS@example.com ", "x"))
		f.failed(f.Disable(f.t.Context(), boss, newID(), "boss@example.com", "x"))
	})
}

func TestPeople_disableEnableAndChangedRole(t *testing.T) {
	each(t, func(f *fixture) {
		boss := f.join("boss@example.com", roles.Owner)
		sup := f.join("sup@example.com", roles.Support)
		f.clock.Advance(time.Second)
		request, err := f.Disable(t.Context(), boss, newID(), "sup@example.com", "has left")
		f.asked(request, err, KindDisable, 1)
		f.approved(f.first, request)
		if err := f.db.Read(t.Context(), func(tx *db.Tx) error { return f.people.InForce(tx, sup.Visitor) }); !problem.Is(err, problem.Unauthenticated) {
			t.Fatal(err)
		}
		f.clock.Advance(time.Second)
		request, err = f.Enable(t.Context(), boss, newID(), "sup@example.com", "is back")
		f.asked(request, err, KindEnable, 1)
		f.approved(f.first, request)
		one, err := f.SetRole(t.Context(), boss, newID(), "sup@example.com", identity.Membership{Role: roles.Auditor}, roles.Support, "x")
		f.asked(one, err, KindRole, 1)
		two, err := f.SetRole(t.Context(), boss, newID(), "sup@example.com", identity.Membership{Role: roles.SRE}, roles.Support, "x")
		f.asked(two, err, KindRole, 1)
		f.clock.Advance(time.Second)
		f.approved(f.first, one)
		f.failed(f.approved(f.first, two), nil)
	})
}

// A person who was reset after a request was made may not approve it, even if the reset was a request itself.
func TestReset_excludesOlderRequests(t *testing.T) {
	each(t, func(f *fixture) {
		boss := f.join("boss@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		fund := f.fund()
		request, err := f.Reset(t.Context(), boss, newID(), "efua@example.com", "lost the phone")
		f.asked(request, err, KindReset, 1)
		f.clock.Advance(time.Second)
		f.approved(f.first, request)
		token, err := f.Reveal(t.Context(), boss, Secret, request.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Approve(t.Context(), f.second, fund.ID, fund.Digest); !problem.Is(err, problem.Unauthenticated) {
			t.Fatal(err)
		}
		efua := f.again(token, f.code(f.first, request))
		_, err = f.Approve(t.Context(), efua, fund.ID, fund.Digest)
		f.refused(err, problem.Forbidden, "reset_since")
		f.has(0)
	})
}

// eachAlone runs a test on both engines in an installation where no request needs an approval.
func eachAlone(t *testing.T, fn func(f *fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { fn(install(t, d, nil, false)) })
}

// code returns the code of a request's link, as a person is shown it.
func (f *fixture) code(by By, request Request) string {
	f.t.Helper()
	by.Place = request.Place
	code, err := f.Reveal(f.t.Context(), by, Code, request.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return code
}

// again lets a person who was reset use the new link and set up a factor.
func (f *fixture) again(link, code string) By {
	f.t.Helper()
	token, err := f.people.Accept(f.t.Context(), link, code, identitytest.Password, "a test", netip.Addr{})
	if err != nil {
		f.t.Fatal(err)
	}
	v := identitytest.Visit(f.t, f.people, token)
	if err := f.people.BeginFactor(f.t.Context(), v, "", netip.Addr{}); err != nil {
		f.t.Fatal(err)
	}
	waiting, _, err := f.people.PendingFactor(f.t.Context(), v)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.people.ConfirmFactor(f.t.Context(), v, identitytest.Code(f.t, waiting.Key, f.clock.Now()), "", netip.Addr{}); err != nil {
		f.t.Fatal(err)
	}
	return By{Visitor: identitytest.Visit(f.t, f.people, token), Origin: "192.0.2.7"}
}

// The holder of an invitation's link becomes the person, with all roles of that person. So people of an account cannot invite a
// person who has a role elsewhere. A person cannot invite themselves.
func TestInviteLink_needsEveryPermission(t *testing.T) {
	eachAlone(t, func(f *fixture) {
		other := f.shop("Other Shop")
		mallory := f.member("mallory@other.example", other.ID, roles.Owner)
		boss := f.join("boss@example.com", roles.Owner)
		support := identity.Membership{Tenant: other.ID, Role: roles.Support}

		pending, err := f.invite(boss, "pending@example.com", identity.Membership{Role: roles.Owner})
		f.asked(pending, err, KindInvite, 0)
		f.failed(f.invite(mallory, "pending@example.com", support))
		f.failed(f.invite(f.requester, "pending@example.com", support)) // an operator lacks permissions of an owner
		link, err := f.Reveal(t.Context(), boss, Secret, pending.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.people.Accept(t.Context(), link, f.code(boss, pending), identitytest.Password, "a test", netip.Addr{}); err != nil {
			t.Fatalf("the person's own link: %v", err)
		}

		f.tx(func(tx *db.Tx) error {
			_, err := f.people.Reset(tx, identity.NewInvitation(), "pending@example.com")
			return err
		})
		f.failed(f.invite(mallory, "pending@example.com", support))
		f.member("finance@adom.example", f.tenant.ID, roles.Finance)
		f.failed(f.invite(mallory, "finance@adom.example", support))
		members, err := f.people.Members(t.Context(), other.ID, "", 10)
		if err != nil || len(members) != 1 {
			t.Errorf("on the other customer's list are %+v, %v", members, err)
		}

		// A customer has invited an address before the owner of that address was invited.
		request, err := f.invite(mallory, "ceo@example.com", support)
		f.asked(request, err, KindInvite, 0)
		if link, err = f.Reveal(t.Context(), mallory, Secret, request.ID); err != nil {
			t.Fatal(err)
		}
		taken, err := f.people.Accept(t.Context(), link, f.code(mallory, request), identitytest.Password, "a test", netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.invite(boss, "ceo@example.com", identity.Membership{Role: roles.Owner})
		f.refused(err, problem.InProgress, "account_elsewhere")
		if v := identitytest.Visit(t, f.people, taken); v.Operator() {
			t.Errorf("who took the address is %+v", v.Memberships)
		}

		f.failed(f.invite(f.requester, "ama@example.com", identity.Membership{Tenant: other.ID, Role: roles.Owner}))
	})
}

// A person who was invited and never signed in cannot approve, so no request waits for them.
func TestApprovers_withoutUnusedInvitations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := install(t, d, nil, true)
		shop := f.shop("Other Shop")
		owner := f.member("owner@other.example", shop.ID, roles.Owner)
		request, err := f.invite(owner, "never@other.example", identity.Membership{Tenant: shop.ID, Role: roles.Owner})
		f.asked(request, err, KindInvite, 0)
		request, err = f.Reset(t.Context(), owner, newID(), "never@other.example", "the link was lost")
		f.asked(request, err, KindReset, 0)
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.Invite(tx, identity.NewInvitation(), "never.too@other.example", "Never", identity.Membership{Tenant: shop.ID, Role: roles.Owner})
			return err
		})
		f.failed(f.own(owner, 1)) // nobody could satisfy this line
	})
}
