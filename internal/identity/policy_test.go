package identity

import (
	"slices"
	"testing"
)

func TestThePolicyNamesKnownRolesOnce(t *testing.T) {
	seen := map[Permission]bool{}
	for _, g := range Policy() {
		if seen[g.Permission] || g.Means == "" {
			t.Errorf("%s stands twice or without meaning", g.Permission)
		}
		seen[g.Permission] = true
		for s, roles := range map[Site][]Role{TenantSite: g.Tenant, InstallationSite: g.Installation} {
			for n, r := range roles {
				if !r.at(s) || slices.Contains(roles[:n], r) {
					t.Errorf("%s: %s is no role of %s, or stands twice", g.Permission, r, s)
				}
			}
		}
	}
}

func TestOwnersMayWhateverAnyRoleMay(t *testing.T) {
	for _, g := range Policy() {
		if len(g.Tenant) > 0 && !Can(TenantSite, Owner, g.Permission) || len(g.Installation) > 0 && !Can(InstallationSite, Owner, g.Permission) {
			t.Errorf("the owner lacks %s", g.Permission)
		}
	}
}

func TestTheSREReadsNeitherMoneyNorNumbers(t *testing.T) {
	for _, p := range []Permission{ReadPayments, ReadNumbers, ReadBalances, ReadTransfers, ReadMessages, ReadTreasury, ExportPayments, ViewAs} {
		if Can(InstallationSite, SRE, p) {
			t.Errorf("the SRE has %s", p)
		}
	}
}

func TestSupportAndAuditorsReadAlone(t *testing.T) {
	for _, s := range []Site{TenantSite, InstallationSite} {
		for _, r := range []Role{Support, Auditor} {
			if Can(s, r, ReadNumbers) || Can(s, r, ReplayWebhooks) {
				t.Errorf("%s of %s sees whole numbers or makes deliveries", r, s)
			}
		}
	}
	if Can(TenantSite, Support, ExportPayments) || Can(InstallationSite, Support, ExportPayments) {
		t.Error("support takes lists away")
	}
}

// An operator on a tenant's pages has no right that the role lacks, nor one that the tenant's auditor lacks, and every role
// that can look needs a second factor.
func TestViewAs_givesNoMoreThanTheRole(t *testing.T) {
	for _, p := range []Permission{ReadAccess, ReadPeople, ExportPayments, ReadBalances, ReadAudit, ReadNumbers} {
		if Support.MayViewAs(p) {
			t.Errorf("support has %s on the pages of a tenant", p)
		}
	}
	if !Support.MayViewAs(ReadPayments) || !Owner.MayViewAs(ReadAccess) || Owner.MayViewAs(ReadNumbers) || Auditor.MayViewAs(ReadPayments) {
		t.Error("view-as is not the intersection of the role and the tenant's auditor")
	}
	for _, r := range Roles(InstallationSite) {
		if Can(InstallationSite, r, ViewAs) && !r.NeedsFactor(InstallationSite) {
			t.Errorf("%s looks at tenants' pages without a second factor", r)
		}
	}
}

func TestWhatIsNotInThePolicyIsRefused(t *testing.T) {
	if Can(TenantSite, Owner, "money.print") || Can(TenantSite, "", ReadPayments) || Can(InstallationSite, Admin, ReadPayments) {
		t.Error("allowed")
	}
}
