package changes

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// set lets a person request settings of the account.
func (f *fixture) set(by By, pairs ...string) (Request, error) {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return f.SetTenant(f.t.Context(), by, newID(), f.tenant.ID, values, "as agreed")
}

// asked fails the test unless a request of a kind needs a number of approvals, or is done if that is zero.
func (f *fixture) asked(request Request, err error, kind string, needs int) Request {
	f.t.Helper()
	state := Waiting
	if needs == 0 {
		state = Done
	}
	if err != nil || request.Kind != kind || request.Needs != needs || request.State != state {
		f.t.Fatalf("%+v, %v; want %s, %d checks", request, err, kind, needs)
	}
	return request
}

// approved lets the first approver approve a request.
func (f *fixture) approved(by By, request Request) Request {
	f.t.Helper()
	request, err := f.Approve(f.t.Context(), by, request.ID, request.Digest)
	if err != nil {
		f.t.Fatal(err)
	}
	return request
}

func (f *fixture) now() tenant.Tenant {
	f.t.Helper()
	f.clock.Advance(tenant.Freshness)
	t, err := f.Tenants.Get(f.t.Context(), f.tenant.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return t
}

func TestTenantCreate_needsTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		form := newID()
		id := tenant.IDOf(form)
		values := map[string]string{"collections": "on", "transfer_limit": "200.00", PayoutIPs: "10.0.0.0/8 192.0.2.1", "quota_contacts": "7"}
		request, err := f.CreateTenant(t.Context(), f.requester, form, "", "New Shop", "live", values, "contract 12")
		f.asked(request, err, KindCreateTenant, 1)
		if _, err := f.Tenants.Get(t.Context(), id); !problem.Is(err, problem.NotFound) {
			t.Fatal("made before it was checked", err)
		}
		f.clock.Advance(time.Second)
		if request = f.approved(f.first, request); request.State != Done {
			t.Fatalf("%+v", request)
		}
		made, err := f.Tenants.Get(t.Context(), id)
		if err != nil || made.Name != "New Shop" || made.Mode != tenant.Live || !made.CollectionsEnabled || made.PayoutLimitWallet != 200_00 || made.Quotas.Contacts != 7 || made.PayoutsStopped || made.Blocked {
			t.Fatalf("%+v, %v", made, err)
		}
		list, err := f.Access.PayoutIPs(t.Context(), id)
		if err != nil || len(list) != 2 || list[0] != netip.MustParsePrefix("10.0.0.0/8") {
			t.Fatal(list, err)
		}
		again, err := f.CreateTenant(t.Context(), f.requester, newID(), id, "New Shop", "live", nil, "once more")
		f.asked(again, err, KindCreateTenant, 1)
		if again = f.approved(f.first, again); again.State != Failed || !strings.Contains(again.Note, "already") {
			t.Fatalf("%+v", again)
		}
		test, err := f.CreateTenant(t.Context(), f.requester, newID(), "", "A Trial", "test", nil, "trial")
		f.asked(test, err, KindCreateTenant, 0)
		for _, wrong := range []map[string]string{{"blocked": "perhaps"}, {"transfer_limit": "0"}, {"transfer_limit": "x"}, {"nothing": "1"}, {PayoutIPs: "10.1.1.1/8"}, {"quota_groups": "-3"}} {
			if _, err := f.CreateTenant(t.Context(), f.requester, newID(), "", "X", "test", wrong, "x"); !problem.Is(err, problem.Invalid) {
				t.Errorf("%v: %v", wrong, err)
			}
		}
	})
}

// A change that gives an account more must be approved by a second person. A change that only restricts the account is applied at
// once.
func TestTenantSet_restrictionIsImmediate(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.set(f.requester, "transfer_limit", "20000.00", "collections", "on")
		f.asked(request, err, KindTenant, 1)
		if f.now().CollectionsEnabled {
			t.Fatal("in force before it was checked")
		}
		f.approved(f.first, request)
		if is := f.now(); is.PayoutLimitWallet != 20_000_00 || !is.CollectionsEnabled {
			t.Fatalf("%+v", is)
		}
		request, err = f.set(f.requester, "transfer_limit", "100.00", "collections", "off", "payouts", "off", "listed", "spending")
		f.asked(request, err, KindTenant, 0)
		if is := f.now(); is.PayoutLimitWallet != 100_00 || is.CollectionsEnabled || !is.PayoutsStopped || is.Listed != tenant.ListedSpending {
			t.Fatalf("%+v", is)
		}
		for _, more := range [][]string{{"payouts", "on"}, {"transfer_limit", "100.01"}, {"collections", "off", "payouts", "on"}, {"name", "Adom Shops"}, {"quota_groups", "3"}, {"duplicates", "repeat"}, {PayoutIPs, "192.0.2.7"}} {
			request, err := f.set(f.requester, more...)
			if err != nil || request.Needs != 1 {
				t.Errorf("%v needs %d, %v", more, request.Needs, err)
			}
		}
		if log := f.entries(); log[len(log)-1].Action != "act.make" {
			t.Fatalf("%+v", log)
		}
		_, err = f.set(f.requester, "collections", "off")
		f.refused(err, problem.Invalid, "nothing_changed")
	})
}

func TestTenantSet_complianceOnlyBlocks(t *testing.T) {
	each(t, func(f *fixture) {
		by := f.join("esi@example.com", roles.Compliance)
		request, err := f.set(by, Blocked, "on")
		f.asked(request, err, KindBlock, 0)
		if !f.now().Blocked {
			t.Fatal("not blocked")
		}
		request, err = f.set(by, Blocked, "off")
		f.asked(request, err, KindBlock, 1)
		f.approved(f.first, request)
		if f.now().Blocked {
			t.Fatal("still blocked")
		}
		_, err = f.set(by, Blocked, "on", "payouts", "off")
		f.refused(err, problem.Forbidden, "not_allowed")
		_, err = f.set(by, PayoutIPs, "192.0.2.1")
		f.refused(err, problem.Forbidden, "not_allowed")
	})
}

func TestTenantSet_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		one, err := f.set(f.requester, "transfer_limit", "20000.00")
		f.asked(one, err, KindTenant, 1)
		two, err := f.set(f.requester, "transfer_limit", "30000.00")
		f.asked(two, err, KindTenant, 1)
		ips, err := f.set(f.requester, PayoutIPs, "192.0.2.1")
		f.asked(ips, err, KindAddresses, 1)
		f.clock.Advance(time.Second)
		f.approved(f.first, one)
		if two = f.approved(f.first, two); two.State != Failed {
			t.Fatalf("%+v", two)
		}
		f.tx(func(tx *db.Tx) error {
			_, err := f.Access.SetPayoutIPs(tx, f.tenant.ID, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")})
			return err
		})
		if ips = f.approved(f.first, ips); ips.State != Failed {
			t.Fatalf("%+v", ips)
		}
		if is := f.now(); is.PayoutLimitWallet != 20_000_00 {
			t.Fatalf("%+v", is)
		}
		if list, err := f.Access.PayoutIPs(t.Context(), f.tenant.ID); err != nil || len(list) != 1 || list[0].String() != "198.51.100.0/24" {
			t.Fatal(list, err)
		}
	})
}

func TestTenantSet_ownSettingsOnly(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		developer := f.member("dev@adom.example", f.tenant.ID, roles.Developer)
		f.clock.Advance(time.Second)
		request, err := f.set(owner, "fee_bearer", "customer")
		f.asked(request, err, KindSettings, 1)
		f.approved(admin, request)
		if f.now().FeeBearer != tenant.Customer {
			t.Fatal("not set")
		}
		for _, not := range [][]string{{"transfer_limit", "1000000.00"}, {Blocked, "on"}, {"quota_contacts", "none"}, {"fee_bearer", "merchant", "collections", "on"}} {
			if _, err = f.set(owner, not...); !problem.Is(err, problem.Invalid) {
				t.Fatalf("%v: %v", not, err)
			}
		}
		_, err = f.set(developer, "fee_bearer", "merchant")
		f.refused(err, problem.Forbidden, "not_allowed")
		request, err = f.set(developer, PayoutIPs, "192.0.2.0/24")
		f.asked(request, err, KindAddresses, 1)
		f.clock.Advance(time.Second)
		if request = f.approved(admin, request); request.State != Done {
			t.Fatalf("%+v", request)
		}
		f.clock.Advance(time.Second)
		request, err = f.set(developer, PayoutIPs, "")
		f.asked(request, err, KindAddresses, 0)
		other := f.shop("Other Shop")
		_, err = f.SetTenant(t.Context(), owner, newID(), other.ID, map[string]string{"fee_bearer": "customer"}, "theirs")
		f.refused(err, problem.NotFound, "tenant_not_found")
		_, err = f.CreateTenant(t.Context(), owner, newID(), f.tenant.ID, "Mine", "live", nil, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		found := false
		for _, e := range f.entries() {
			found = found || e.Action == KindSettings && e.Actor == "admin@adom.example" && e.Changes()[0] == (audit.Change{What: "fee_bearer", Before: "merchant", After: "customer"})
		}
		if !found {
			t.Errorf("%+v", f.entries())
		}
	})
}
