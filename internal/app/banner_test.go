package app

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
)

// The first screen has a key that works; the next one says what is there and has no key.
func TestTheFirstScreen(t *testing.T) {
	t.Parallel()
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", Connections: 4, DrainFor: time.Minute, Storage: config.Storage{Data: t.TempDir()}}
	var screen bytes.Buffer
	begin := func() *App {
		screen.Reset()
		a, err := Start(context.Background(), cfg, Options{Out: &screen})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	shows := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(screen.String(), text) {
				t.Errorf("%q is not on the screen:\n%s", text, screen.String())
			}
		}
	}
	a := begin()
	shows("(new, schema 11, demo data loaded)", `(demo account "Adom Stores", GHS 5,000.00, 1,000 SMS)`, "export KEY="+a.ready.APIKey)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.ready.APIURL+"/payment-api/momopay",
		strings.NewReader(`{"amount":2,"network":"MTN","phone_number":"0240000001","transaction_id":"my-first-collection-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-api-key", a.ready.APIKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Body.Close() != nil {
		t.Errorf("a collection with the key of the screen: %+v, %v", answer, err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	a = begin()
	shows("(existing, schema 11, 1 payment)", "made at the first start", "export KEY=mk_test_...")
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestGrouped(t *testing.T) {
	for number, want := range map[string]string{"0": "0", "999": "999", "1000": "1,000", "5000.00": "5,000.00", "1234567.89": "1,234,567.89"} {
		if got := grouped(number); got != want {
			t.Errorf("%s is written %s, want %s", number, got, want)
		}
	}
}
