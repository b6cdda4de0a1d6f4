package roles

import (
	"slices"
	"testing"
)

// Each permission occurs once in the policy, with a meaning, and names each role of a site at most once.
func TestPolicy_namesKnownRolesOnce(t *testing.T) {
	seen := map[Permission]bool{}
	for _, g := range Policy() {
		if seen[g.Permission] || g.Means == "" {
			t.Errorf("%s is listed twice or has no meaning", g.Permission)
		}
		seen[g.Permission] = true
		for s, roles := range map[Site][]Role{TenantSite: g.Tenant, InstallationSite: g.Installation} {
			for n, r := range roles {
				if !r.ExistsAt(s) || slices.Contains(roles[:n], r) {
					t.Errorf("%s: %s is no role of %s, or is listed twice", g.Permission, r, s)
				}
			}
		}
	}
}

// The owner has every permission that any other role of the site has.
func TestOwner_hasEveryPermission(t *testing.T) {
	for _, g := range Policy() {
		if len(g.Tenant) > 0 && !Can(TenantSite, Owner, g.Permission) || len(g.Installation) > 0 && !Can(InstallationSite, Owner, g.Permission) {
			t.Errorf("the owner lacks %s", g.Permission)
		}
	}
}

// The SRE role cannot read amounts, balances or phone numbers.
func TestSRE_readsNoMoneyOrNumbers(t *testing.T) {
	for _, p := range []Permission{ReadPayments, ReadNumbers, ReadBalances, ReadTransfers, ReadMessages, ReadTreasury, ExportPayments, ViewAs} {
		if Can(InstallationSite, SRE, p) {
			t.Errorf("the SRE has %s", p)
		}
	}
}

// Support and auditors read only, and see no full phone numbers.
func TestSupport_andAuditorsReadOnly(t *testing.T) {
	for _, s := range []Site{TenantSite, InstallationSite} {
		for _, r := range []Role{Support, Auditor} {
			if Can(s, r, ReadNumbers) || Can(s, r, ReplayWebhooks) {
				t.Errorf("%s of %s sees full numbers or replays webhooks", r, s)
			}
		}
	}
	if Can(TenantSite, Support, ExportPayments) || Can(InstallationSite, Support, ExportPayments) {
		t.Error("support downloads lists")
	}
}

// An operator on the pages of a tenant has only permissions of both the operator's role and the tenant's auditor. Each role
// with view-as needs a second factor.
func TestViewAs_givesNoMoreThanTheRole(t *testing.T) {
	for _, p := range []Permission{ReadAccess, ReadPeople, ExportPayments, ReadBalances, ReadAudit, ReadNumbers} {
		if Support.MayViewAs(p) {
			t.Errorf("support has %s on the pages of a tenant", p)
		}
	}
	if !Support.MayViewAs(ReadPayments) || !Owner.MayViewAs(ReadAccess) || Owner.MayViewAs(ReadNumbers) || Auditor.MayViewAs(ReadPayments) {
		t.Error("view-as is not the intersection of the role and the tenant's auditor")
	}
	for _, r := range At(InstallationSite) {
		if Can(InstallationSite, r, ViewAs) && !r.NeedsFactor(InstallationSite) {
			t.Errorf("%s has view-as without a second factor", r)
		}
	}
}

// A permission or role that the policy does not list is refused.
func TestCan_refusesUnlisted(t *testing.T) {
	if Can(TenantSite, Owner, "money.print") || Can(TenantSite, "", ReadPayments) || Can(InstallationSite, Admin, ReadPayments) {
		t.Error("allowed")
	}
}

func TestAbout_describesEveryRole(t *testing.T) {
	for _, site := range []Site{TenantSite, InstallationSite} {
		for _, r := range At(site) {
			if r.About() == "" {
				t.Errorf("the role %s has no description", r)
			}
		}
	}
}
