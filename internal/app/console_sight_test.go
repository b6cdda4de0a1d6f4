package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// An account's people see nothing of the installation's own on any page, in any file or in any answer: no provider by name
// but the network that they chose, no cost of a provider, no account at a provider.
func TestAccountPages_nothingOfTheInstallation(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		paid := b.the("handset-0000000001")
		p, err := b.payments.Find(t.Context(), paid)
		if err != nil || p.Status != book.StatusSuccess || p.UpstreamID == "" {
			t.Fatalf("the payment of this test: %+v, %v", p, err)
		}
		form := b.want(http.StatusOK, "/ops/payments/"+paid, "New note")
		b.post(http.StatusSeeOther, "/ops/payments/"+paid+"/notes", "id", form.hidden(t, "id"), "note", "operators-own-note")
		b.become("owner@adom.example", identity.Membership{Tenant: demoTenant, Role: roles.Owner})
		pages := b.crawl(map[string]string{"tenant": demoTenant, "id": paid})
		own := 0
		for path, p := range pages {
			if !strings.HasPrefix(path, "/app/"+demoTenant) || p.StatusCode != http.StatusOK {
				continue
			}
			own++
			for _, word := range []string{"hubtel", "mtnmomo", "provider's fee", "provider_fee", "commission", "float", "clearing at", "revenue", "operators-own-note", "payment.note"} {
				if at := strings.Index(strings.ToLower(p.text), word); at >= 0 {
					t.Errorf("%s has %q: %.200s", path, word, p.text[max(0, at-80):])
				}
			}
		}
		if own < 20 {
			t.Errorf("only %d pages were read", own)
		}
	})
}
