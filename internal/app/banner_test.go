package app

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/sim/mtn"
)

// The first screen shows a working key. The screen of the next start has the same key, and unused references.
func TestBanner_hasWorkingExamples(t *testing.T) {
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
	migrations, err := a.db.MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	schema, first := fmt.Sprintf("schema %d", migrations[len(migrations)-1].Number), a.ready
	shows("Simulator  "+a.sim.url, "MTN        "+a.sim.url+"/mtn", mtn.Credentials()[0].APIKey)
	hub, account := hubtel.Config(a.sim.url), a.sim.local.Centre.Account()
	shows("Hubtel     "+a.sim.url+"/hubtel", hub.ClientID, hub.ClientSecret.Reveal(), hub.POSSales, hub.Prepaid)
	shows("SMS        "+account.Address, account.SystemID, account.Password)
	shows("(new, "+schema+", demo data loaded)", `(demo account "Adom Stores", GHS 5,000.00, 1,000 SMS)`, "export KEY="+a.ready.APIKey)
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
	if a.ready.APIKey != first.APIKey || a.ready.WebhookSecret != first.WebhookSecret || first.WebhookSecret == "" {
		t.Errorf("the second start tells %+v, the first one told %+v", a.ready, first)
	}
	shows("(existing, "+schema+", 1 payment)", "export KEY="+first.APIKey, first.WebhookSecret)
	reference := regexp.MustCompile(`"client_reference":"(payout-[0-9-]+)"`).FindStringSubmatch(screen.String())
	if reference == nil || len(reference[1]) < 12 || len(reference[1]) > 36 {
		t.Errorf("the reference is %q", reference)
	}
	// A revoked key is not shown as a working key.
	keys, err := a.access.Keys(t.Context(), demoTenant)
	if err != nil || len(keys) != 1 {
		t.Fatalf("the demo's keys are %v, %v", keys, err)
	}
	if err := a.db.Write(t.Context(), func(tx *db.Tx) error {
		_, err := a.access.RevokeKey(tx, demoTenant, keys[0].ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	a = begin()
	if a.ready.APIKey != "" {
		t.Errorf("a revoked key is told: %s", a.ready.APIKey)
	}
	shows("none that can be shown", "export KEY=mk_test_...")
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
