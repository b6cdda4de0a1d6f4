package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
)

// BenchmarkPayout measures the cost of a payout in the API, without the payment itself and without the network.
func BenchmarkPayout(b *testing.B) {
	h := open(b, nil)
	h.api.add(Route{Method: http.MethodPost, Path: "bench/payout", Scope: access.Payout, Body: moneyBody, Listed: true, handle: func(c *call) error {
		f, err := c.form()
		if err != nil {
			return err
		}
		p := book.Payment{
			Kind: book.KindPayout, Amount: f.amount("amount", payments.MinPayout, c.tenant.PayoutLimitWallet), Account: string(f.phone("account_number")),
			AccountName: f.label("account_name"), Channel: string(f.network("channel", true)), Reference: f.reference("client_reference", true),
			CallbackURL:       f.url("callback_url", func(string, bool) error { return nil }),
			ProviderReference: "00000000-0000-4000-8000-000000000000", Charges: 10, CreatedAt: time.Time{},
		}
		c.asker(f)
		return c.sent(p, false, f.err())
	}})
	body := `{"amount":"10.00","account_number":"0240000000","account_name":"Kwame Mensah","channel":"MTN","client_reference":"payout-20260001","callback_url":"https://shop.example/hook?x=1"}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/api/v1/bench/payout", strings.NewReader(body))
		r.Header.Set("X-Api-Key", h.key.Text)
		r.Header.Set("Idempotency-Key", "0190-0000-0000")
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
