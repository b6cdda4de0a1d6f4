package app

import (
	"net/http"
	"strings"
	"testing"
)

// The page of a provider shows the last test of its configuration. A test moves no money, runs at a limited rate, and reports
// forged callbacks.
func TestProviderPage_tested(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	b.want(http.StatusOK, "/ops/providers", "/ops/providers/paystack", "/ops/providers/arkesel")
	b.want(http.StatusNotFound, "/ops/providers/voda")
	b.want(http.StatusOK, "/ops/providers/paystack", "Not tested yet")
	for _, r := range b.rails {
		if r.Name == "paystack" {
			answer, err := http.Post(b.callbackURL(r), "application/json", strings.NewReader(`{"event":"transfer.success","data":{"reference":"x"}}`))
			if err != nil || answer.StatusCode < 400 {
				t.Fatalf("a forged event: %v %v", answer, err)
			}
			answer.Body.Close()
		}
	}
	b.post(http.StatusSeeOther, "/ops/providers/paystack/test")
	b.want(http.StatusOK, "/ops/providers/paystack", "credentials", "accepted", "1 refused", "float disbursement", "both balances are", "no successful payment")
	b.post(http.StatusSeeOther, "/ops/providers/arkesel/test")
	b.want(http.StatusOK, "/ops/providers/arkesel", "SMS and GHS 20.99 left", "none verified yet")
	b.want(http.StatusOK, "/ops/audit", "provider.test")
	b.post(http.StatusNotFound, "/ops/providers/voda/test")
	for range 28 {
		b.post(http.StatusSeeOther, "/ops/providers/arkesel/test")
	}
	b.post(http.StatusTooManyRequests, "/ops/providers/arkesel/test")
}
