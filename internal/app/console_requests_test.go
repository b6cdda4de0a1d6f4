package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/roles"
)

// refusedOnce sends a request of the demo account that is refused, and waits until the request log has it.
func (b *browsed) refusedOnce(key, requestID string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.ready.APIURL+"/payment-api/momopay", strings.NewReader(`{"amount":"-1","phone_number":"0249123456x"}`))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("X-Request-Id", requestID)
	if p := b.read(r); p.StatusCode < 400 {
		b.t.Fatalf("it answers %d %s", p.StatusCode, p.text)
	}
	if err := b.requests.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func TestRefusedRequest_found(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	b.refusedOnce(b.ready.APIKey, "req_of_demo_0001")
	b.refusedOnce("mk_test_nonsense", "req_of_nobody_01")
	own, ops := "/app/"+demoTenant, "/ops"
	for _, base := range []string{own, ops} {
		to := b.want(http.StatusSeeOther, base+"/search?q=req_of_demo_0001").Header.Get("Location")
		if !strings.HasPrefix(to, base+"/requests/") {
			t.Fatalf("%s: the search leads to %q", base, to)
		}
		p := b.want(http.StatusOK, to, "req_of_demo_0001", "payment-api/momopay", "422 ", "Field amount", "/docs/errors/")
		if strings.Contains(p.text, "0249123456") {
			t.Errorf("%s shows a number", to)
		}
		b.want(http.StatusOK, base+"/requests?status=422&endpoint=payment-api/momopay", "payment-api/momopay")
		b.want(http.StatusOK, base+"/requests?status=503", "No results")
		b.want(http.StatusUnprocessableEntity, base+"/requests?status=200")
	}
	nobody := b.want(http.StatusSeeOther, ops+"/search?q=req_of_nobody_01").Header.Get("Location")
	b.want(http.StatusOK, nobody, "No valid key")
	id := nobody[strings.LastIndex(nobody, "/"):]
	b.want(http.StatusNotFound, own+"/requests"+id)
	b.want(http.StatusOK, own+"/search?q=req_of_nobody_01", "No results")
}

// A refused request of another account is a 404. The search does not lead to it for a role without the permission.
func TestRefusedRequest_otherTenantsAreHidden(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.refusedOnce(b.ready.APIKey, "req_of_demo_0002")
	found, err := b.requests.List(t.Context(), requestlog.Filter{Tenant: demoTenant})
	if err != nil || len(found.Requests) != 1 {
		t.Fatalf("%+v %v", found, err)
	}
	other := b.another().ID
	b.become("owner@other.example", identity.Membership{Tenant: other, Role: roles.Owner})
	b.want(http.StatusNotFound, "/app/"+other+"/requests/"+found.Requests[0].ID)
	b.want(http.StatusOK, "/app/"+other+"/requests?request=req_of_demo_0002", "No results")
	b.want(http.StatusOK, "/app/"+other+"/search?q=req_of_demo_0002", "No results")
	b.become("finance@demo.example", identity.Membership{Tenant: demoTenant, Role: roles.Finance})
	b.want(http.StatusOK, "/app/"+demoTenant+"/search?q=req_of_demo_0002", "No results")
}

// The interface, too, returns only the account's own requests.
func TestRefusedRequest_ofTheKeysTenant(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.refusedOnce(b.ready.APIKey, "req_of_demo_0003")
	other := b.another()
	key, err := b.access.Mint(access.NewKey{Tenant: other.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.db.Write(t.Context(), func(tx *db.Tx) error { b.access.CreateKey(tx, key); return nil }); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{b.ready.APIKey: http.StatusOK, key.Text: http.StatusNotFound, "": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.ready.APIURL+"/account-api/requests/req_of_demo_0003", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", text)
		if p := b.read(r); p.StatusCode != want {
			t.Errorf("it answers %d, not %d: %s", p.StatusCode, want, p.text)
		}
	}
}
