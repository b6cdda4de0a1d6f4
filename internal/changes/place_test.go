package changes

import (
	"context"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/identitytest"
)

// member creates a person of a tenant, who makes requests there.
func (f *fixture) member(email, tenant string, role roles.Role) By {
	f.t.Helper()
	one := identitytest.Join(f.t, f.db, f.clock, f.people, email, identity.Membership{Tenant: tenant, Role: role})
	return By{Visitor: one.Visitor, Origin: "192.0.2.9", Place: tenant}
}

// shop makes another tenant.
func (f *fixture) shop(name string) (t tenant.Tenant) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) (err error) {
		t, err = f.Tenants.Create(tx, tenant.Tenant{Name: name, Mode: tenant.Live})
		return err
	})
	return t
}

// own requests a line of the policy for a tenant's own requests.
func (f *fixture) own(by By, approvers int) (Request, error) {
	return f.SetPolicy(f.t.Context(), by, newID(), Line{Kind: KindPolicy, Approvers: approvers}, "as agreed")
}

func TestPlace_tenantsOwnPeople(t *testing.T) {
	each(t, func(f *fixture) {
		other := f.shop("Other Shop")
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		stranger, operator := f.member("admin@other.example", other.ID, roles.Admin), f.join("boss@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		request, err := f.own(owner, 1)
		if err != nil || request.State != Waiting || request.Needs != 1 || request.Place != f.tenant.ID || request.Tenant != f.tenant.ID ||
			request.Sentence != "Approval policy needs 1 approver, in this account" {
			t.Fatalf("%+v, %v", request, err)
		}
		approve := func(by By, place string) error {
			by.Place = place
			_, err := f.Approve(t.Context(), by, request.ID, request.Digest)
			return err
		}
		f.refused(approve(stranger, other.ID), problem.NotFound, "act_not_found")
		f.refused(approve(stranger, f.tenant.ID), problem.Forbidden, "not_allowed")
		f.refused(approve(operator, roles.Installation), problem.NotFound, "act_not_found")
		f.refused(approve(operator, f.tenant.ID), problem.Forbidden, "not_allowed")
		f.refused(approve(owner, f.tenant.ID), problem.Forbidden, "own_act")
		for _, by := range []By{stranger, operator} {
			_, err = f.Reject(t.Context(), by, request.ID, request.Digest, "no")
			f.refused(err, problem.NotFound, "act_not_found")
			_, err = f.Withdraw(t.Context(), by, request.ID, request.Digest)
			f.refused(err, problem.NotFound, "act_not_found")
			for _, end := range []func(*db.Tx) error{
				func(tx *db.Tx) error { return f.Store.Withdraw(tx, by, request) },
				func(tx *db.Tx) error {
					return f.Store.Reject(tx, by, Rule{Check: roles.ApprovePolicy}, request, "no")
				},
			} {
				if f.Store.Write(t.Context(), end) == nil {
					t.Error("the store takes what is done elsewhere")
				}
			}
		}
		elsewhere := owner // the requester also has a page of the installation open
		elsewhere.Place = roles.Installation
		f.refused(f.Store.Write(t.Context(), func(tx *db.Tx) error { return f.Store.Withdraw(tx, elsewhere, request) }), problem.NotFound, "act_not_found")
		if err := approve(admin, f.tenant.ID); err != nil {
			t.Fatal(err)
		}
		f.is(request.ID, Done)
		lines, err := f.Store.Policy(t.Context())
		if err != nil || len(lines) != 1 || lines[0] != (Line{Kind: KindPolicy, Tenant: f.tenant.ID, Own: true, Approvers: 1}) {
			t.Fatalf("%+v, %v", lines, err)
		}
		for place, want := range map[string]int{f.tenant.ID: 1, other.ID: 0, roles.Installation: 0} {
			if list, err := f.Store.List(t.Context(), Filter{Place: place, Limit: 10}); err != nil || len(list) != want {
				t.Errorf("%q lists %d, %v", place, len(list), err)
			}
		}
	})
}

func TestPlace_ownAccountOnly(t *testing.T) {
	each(t, func(f *fixture) {
		other := f.shop("Other Shop")
		owner := f.member("owner@adom.example", f.tenant.ID, roles.Owner)
		f.clock.Advance(time.Second)
		_, err := f.Fund(t.Context(), owner, newID(), f.tenant.ID, 100, "for me")
		f.refused(err, problem.Forbidden, "not_allowed")
		_, err = f.Fund(t.Context(), owner, newID(), other.ID, 100, "for them")
		f.refused(err, problem.NotFound, "tenant_not_found")
		request, err := f.SetPolicy(t.Context(), owner, newID(), Line{Kind: KindPolicy, Tenant: other.ID}, "for them")
		if err != nil || request.Tenant != f.tenant.ID || request.State != Done {
			t.Fatalf("a line of another account is one of their own: %+v, %v", request, err)
		}
		_, err = f.SetPolicy(t.Context(), owner, newID(), Line{Kind: KindFund}, "x")
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
		boss := f.join("boss@example.com", roles.Owner)
		_, err = f.SetPolicy(t.Context(), boss, newID(), Line{Kind: KindPolicy, Tenant: f.tenant.ID, Own: true}, "x")
		f.refused(err, problem.Invalid, problem.CodeInvalidFields)
	})
}

// Only the tenant's own people count as its approvers, and lines of the installation do not apply to them.
func TestPlace_tenantPolicy(t *testing.T) {
	each(t, func(f *fixture) {
		f.join("boss@example.com", roles.Owner)
		f.line(Line{Kind: KindPolicy, Approvers: 2})
		f.line(Line{Kind: KindPolicy, Tenant: f.tenant.ID, Approvers: 2})
		owner := f.member("owner@adom.example", f.tenant.ID, roles.Owner)
		f.clock.Advance(time.Second)
		request, err := f.own(owner, 1)
		if err != nil || request.State != Failed { // nobody else could approve the next request
			t.Fatalf("%+v, %v", request, err)
		}
		f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.clock.Advance(time.Second)
		if request, err = f.own(owner, 0); err != nil || request.Needs != 1 {
			t.Fatalf("%+v, %v", request, err)
		}
		rule, _ := f.Rule(KindPolicy)
		own := Line{Kind: KindPolicy, Tenant: f.tenant.ID, Own: true, Approvers: 1}
		f.line(own)
		own.Approvers = 2
		f.refused(f.db.Write(t.Context(), func(tx *db.Tx) error { _, err := f.Store.SetLine(tx, rule, own); return err }), problem.Forbidden, "policy_locks_out")
		own.Approvers = Default
		f.line(own)
		own.Approvers = 0
		f.line(own)
		if request, err = f.own(owner, 0); err != nil || request.Needs != 0 {
			t.Fatalf("%+v, %v", request, err)
		}
	})
}

// A role that may make or approve requests of a kind can open the pages for it.
func TestPlace_permissionsReachPages(t *testing.T) {
	for name, k := range New(Deps{}).kinds {
		for _, site := range []roles.Site{roles.TenantSite, roles.InstallationSite} {
			for _, r := range roles.At(site) {
				if roles.Can(site, r, k.Rule.Make) && !(roles.Can(site, r, roles.RequestChanges) && roles.Can(site, r, roles.ReadChanges)) {
					t.Errorf("%s: %s of the %s makes it, and cannot withdraw it", name, r, site)
				}
				if roles.Can(site, r, k.Rule.Check) && !(roles.Can(site, r, roles.ApproveChanges) && roles.Can(site, r, roles.ReadChanges)) {
					t.Errorf("%s: %s of the %s checks it, and cannot reach it", name, r, site)
				}
			}
		}
		if k.Title == "" {
			t.Errorf("%s does nothing that the policy could name", name)
		}
	}
}

// changeCatalogue requests the change of an entry of the catalogues by the values of its form.
func changeCatalogue(ctx context.Context, a *Changes, by By, id string, c route.CatalogueChange, reason string) (Request, error) {
	switch c.Kind {
	case route.BankCodeEntry:
		return a.Do(ctx, by, KindBankCode, id, Values{"bank": c.Key, "provider": c.Provider, "code": c.Value}, reason)
	case route.PrefixEntry:
		return a.Do(ctx, by, KindPrefix, id, Values{"prefix": c.Key, "network": c.Value}, reason)
	}
	return a.Do(ctx, by, KindCatalogue, id, Values{"catalogue": string(c.Kind), "key": c.Key, "id": c.Edit.ID, "name": c.Edit.Name, "status": c.Edit.Status}, reason)
}

// refundFor requests a refund of a collection for its account. amount 0 is all that is left.
func refundFor(ctx context.Context, a *Changes, by By, id string, of book.Payment, amount money.Pesewas, reference, reason string) (Request, error) {
	v := Values{FieldTenant: of.Tenant, "collection": of.ID, referenceField.Name: reference}
	if amount != 0 {
		v["amount"] = amount.String()
	}
	return a.Do(ctx, by, KindOperatorRefund, id, v, reason)
}
