package messaging

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Rows that a customer stores for free have a quota, which the refusal names; each customer has its own.
func TestARequestBeyondAQuotaIsRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100, sleep: true}) // nothing is delivered
		h.quotas = config.Quotas{Contacts: 3, Groups: 2, Campaigns: 1}
		refused := func(err error, field, want string) {
			t.Helper()
			p := problem.From(err)
			if err == nil || p.Kind != problem.Invalid || len(p.Fields[field]) != 1 || !strings.Contains(p.Fields[field][0], want) {
				t.Errorf("answered %v, want %s: %q", err, field, want)
			}
		}
		group := func(name string) (Group, error) {
			g, _, err := h.AddGroup(t.Context(), h.caller(), name, "")
			return g, err
		}
		first, err := group("one")
		if err != nil {
			t.Fatal(err)
		}
		second, err := group("two")
		if err != nil {
			t.Fatal(err)
		}
		_, err = group("three")
		refused(err, "name", "at most 2 contact groups")

		add := func(g Group, numbers ...string) error {
			var list []NewContact
			for _, n := range numbers {
				list = append(list, NewContact{Phone: n})
			}
			_, _, err := h.AddContacts(t.Context(), h.caller(), g.ID, list)
			return err
		}
		if err := add(first, "0240000001", "0240000002"); err != nil {
			t.Fatal(err)
		}
		refused(add(second, "0240000001", "0240000002"), "contacts", "at most 3 contacts")
		if err := add(first, "0240000001", "0240000002"); err != nil {
			t.Errorf("contacts that are there already: %v", err)
		}
		if err := add(second, "0240000003"); err != nil {
			t.Errorf("the last that fits: %v", err)
		}
		_, _, err = h.AddContact(t.Context(), h.caller(), second.ID, NewContact{Phone: "0240000004"})
		refused(err, "contacts", "at most 3 contacts")

		var many []string
		for i := range smallChunk + 1 {
			many = append(many, fmt.Sprintf("02400001%02d", i))
		}
		if _, err := h.send("first", many...); err != nil {
			t.Fatal(err)
		}
		_, err = h.send("second", many...)
		refused(err, "recipients", "at most 1 campaigns of more than 10 recipients")
		if _, err := h.send("alone", "0240000001"); err != nil {
			t.Errorf("a single message beside it: %v", err)
		}
		h.wantBalance(100 - smallChunk - 1 - 1)

		// The tenant's own quotas replace the installation's.
		quotas := func(c tenant.QuotaChange) {
			h.write(func(tx *db.Tx) error {
				_, _, err := h.tenants.Set(tx, "shop", tenant.Change{Quotas: c})
				return err
			})
		}
		of := func(n tenant.Quota) *tenant.Quota { return &n }
		quotas(tenant.QuotaChange{Contacts: of(4), Groups: of(3), Campaigns: of(2)})
		if _, err := group("three"); err != nil {
			t.Errorf("a third group under a quota of 3: %v", err)
		}
		_, err = group("four")
		refused(err, "name", "at most 3 contact groups")
		if err := add(second, "0240000004"); err != nil {
			t.Errorf("a fourth contact under a quota of 4: %v", err)
		}
		refused(add(second, "0240000005"), "contacts", "at most 4 contacts")
		_, err = h.Import(t.Context(), "shop", second.ID, strings.NewReader("0240000005\n"), nil)
		refused(err, "contacts", "at most 4 contacts")
		if _, err := h.send("second", many...); err != nil {
			t.Errorf("a second campaign under a quota of 2: %v", err)
		}
		_, err = h.send("third", many...)
		refused(err, "recipients", "at most 2 campaigns")
		quotas(tenant.QuotaChange{Contacts: of(tenant.NoQuota), Groups: of(tenant.InstallationQuota), Campaigns: of(tenant.NoQuota)})
		_, err = group("four")
		refused(err, "name", "at most 2 contact groups")
		if err := add(second, "0240000005", "0240000006"); err != nil {
			t.Errorf("contacts without a quota: %v", err)
		}
		if _, err := h.send("third", many...); err != nil {
			t.Errorf("a campaign without a quota: %v", err)
		}

		neighbour, _ := h.customer("neighbour", 0, "Bantama")
		if _, _, err := h.AddGroup(t.Context(), idempotency.Caller{Tenant: neighbour.ID}, "one", ""); err != nil {
			t.Errorf("a neighbour: %v", err)
		}
	})
}
