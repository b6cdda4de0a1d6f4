package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
)

// finds reports whether a search leads to a payment or lists it.
func (b *browsed) finds(base, text, id string) bool {
	b.t.Helper()
	p := b.do(http.MethodGet, base+"/search?q="+text, nil)
	if p.StatusCode != http.StatusOK && p.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("%s: %d %s", text, p.StatusCode, p.text)
	}
	return strings.HasSuffix(p.Header.Get("Location"), id) || strings.Contains(p.text, "/payments/"+id)
}

// A masked number cannot be found by guessing. Without the permission the search ignores numbers. With it a person may search for
// thirty different numbers an hour, and the audit log records each as a hash.
func TestSearch_byNumberNeedsThePermission(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	const number, local = "233240000001", "0240000001"
	if _, err := b.db.Exec(t.Context(), `UPDATE payments SET account_name = 'Efua Sutherland' WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	walk := func(site roles.Site, tenant, base string, each ...roles.Role) {
		t.Helper()
		for _, role := range each {
			if !roles.Can(site, role, roles.ReadPayments) {
				continue
			}
			b.become(string(role)+"-at-"+string(site)+"@example.com", identity.Membership{Tenant: tenant, Role: role})
			may := roles.Can(site, role, roles.SearchNumbers)
			for _, text := range []string{number, local, "%2B233-24-000-0001", "240000001", "efua", "Sutherland"} {
				if b.finds(base, text, id) != may {
					t.Errorf("%s at %s searches %s: found %v, may %v", role, site, text, !may, may)
				}
			}
			if !b.finds(base, id, id) {
				t.Errorf("%s at %s does not find the payment by its id", role, site)
			}
		}
	}
	walk(roles.TenantSite, demoTenant, "/app/"+demoTenant, roles.Owner, roles.Admin, roles.Finance, roles.Signatory, roles.Developer, roles.Support, roles.Auditor)
	walk(roles.InstallationSite, roles.Installation, "/ops", roles.Owner, roles.Operations, roles.Approver, roles.Compliance, roles.Treasury, roles.Support, roles.Auditor)
	b.become("viewer@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Operations})
	if b.finds("/app/"+demoTenant, local, id) {
		t.Error("an operator who looks at the tenant's pages finds the number")
	}

	b.become("guesser@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Support})
	for n := range identity.SearchesOfNumbers.Most {
		for range 2 {
			b.want(http.StatusOK, fmt.Sprintf("/ops/search?q=02499%05d", n))
		}
	}
	b.want(http.StatusTooManyRequests, "/ops/search?q="+local)
	b.want(http.StatusOK, "/ops/search?q=0249900000")
	entries, err := b.audit.List(t.Context(), audit.Filter{Actor: "guesser@example.com", Action: "numbers.search", Limit: 500})
	if err != nil || len(entries) != identity.SearchesOfNumbers.Most {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		if len(e.Subject) != 32 || strings.Contains(fmt.Sprint(e), "99000") {
			t.Errorf("%+v", e)
		}
	}
}

// References are found whole or by their first characters. A reference that contains a phone number is masked like a number,
// and only people who may search for numbers find it.
func TestSearch_byReference(t *testing.T) {
	t.Parallel()
	b := browse(t)
	id := b.paid()
	refer := func(reference string) {
		t.Helper()
		if _, err := b.db.Exec(t.Context(), `UPDATE payments SET reference = $2 WHERE id = $1`, id, reference); err != nil {
			t.Fatal(err)
		}
	}
	refer("invoice-2026-0017")
	b.become("dev@example.com", identity.Membership{Tenant: demoTenant, Role: roles.Developer})
	base := "/app/" + demoTenant
	for text, want := range map[string]bool{"invoice-2026-0017": true, "invoic": true, "invoice-2026": true, "invoi": false, "nvoice-2026": false} {
		if b.finds(base, text, id) != want {
			t.Errorf("%s: found %v", text, !want)
		}
	}
	for _, reference := range []string{"0240000001", "pay-0240000001", "pay-240000001-x", "order-0551234567"} {
		refer(reference)
		b.become("dev@example.com", identity.Membership{Tenant: demoTenant, Role: roles.Developer})
		for _, text := range []string{reference, reference[:8]} {
			if b.finds(base, text, id) {
				t.Errorf("a developer finds %s by %s", reference, text)
			}
		}
		b.become("money@example.com", identity.Membership{Tenant: demoTenant, Role: roles.Finance})
		for _, path := range []string{"/collections", "/collections.csv", "/payments/" + id} {
			p := b.want(http.StatusOK, base+path)
			if strings.Contains(p.text, reference) || strings.Contains(p.text, "240000001") || !strings.Contains(p.text, "••••") {
				t.Errorf("%s shows %s", path, reference)
			}
		}
	}
}
