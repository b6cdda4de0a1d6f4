package mtn

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/sim"
)

// mtnRequest is a request to the simulated MTN with all its headers.
func mtnRequest(t testing.TB, s *sim.Sim, product, method, path, body string) *http.Request {
	t.Helper()
	c := Config("http://sim")
	user, key, sub := c.CollectionUser, c.CollectionAPIKey.Reveal(), c.CollectionKey.Reveal()
	if product == "disbursement" {
		user, key, sub = c.DisbursementUser, c.DisbursementAPIKey.Reveal(), c.DisbursementKey.Reveal()
	}
	r := httptest.NewRequest("POST", "/mtn/"+product+"/token/", nil)
	r.SetBasicAuth(user, key)
	r.Header.Set("Ocp-Apim-Subscription-Key", sub)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	token, _, ok := strings.Cut(strings.TrimPrefix(w.Body.String(), `{"access_token":"`), `"`)
	if w.Code != 200 || !ok {
		t.Fatalf("token: %d %s", w.Code, w.Body)
	}
	r = httptest.NewRequest(method, "/mtn/"+product+"/"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Ocp-Apim-Subscription-Key", sub)
	r.Header.Set("X-Target-Environment", "mtnghana")
	r.Header.Set("X-Reference-Id", uuid.NewString())
	return r
}

const payBody = `{"amount":"5.00","currency":"GHS","externalId":"x","payer":{"partyIdType":"MSISDN","partyId":"233244123456"},"payerMessage":"Rent","payeeNote":"Rent"}`

// BenchmarkCreate measures requests to pay without the HTTP server, with a durable book and many concurrent callers.
func BenchmarkCreate(b *testing.B) {
	for _, dir := range []string{"", b.TempDir()} {
		b.Run(fmt.Sprintf("durable=%v", dir != ""), func(b *testing.B) {
			s, err := sim.New(sim.Options{Dir: dir}, New(Options{}))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			proto := mtnRequest(b, s, "collection", "POST", "v1_0/requesttopay", "")
			b.SetParallelism(64)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := proto.Clone(b.Context())
					r.Body = io.NopCloser(strings.NewReader(payBody))
					r.Header.Set("X-Reference-Id", uuid.NewString())
					w := httptest.NewRecorder()
					s.Handler().ServeHTTP(w, r)
					if w.Code != http.StatusAccepted {
						b.Errorf("%d %s", w.Code, w.Body)
					}
				}
			})
		})
	}
}

// BenchmarkStatus measures a status query without the HTTP server.
func BenchmarkStatus(b *testing.B) {
	s, err := sim.New(sim.Options{}, New(Options{}))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r := mtnRequest(b, s, "collection", "POST", "v1_0/requesttopay", payBody)
	reference := r.Header.Get("X-Reference-Id")
	s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	r = mtnRequest(b, s, "collection", "GET", "v1_0/requesttopay/"+reference, "")
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
