package app

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// A production server whose clock is set back refuses payments with 503 and Retry-After, and still answers reads. On PostgreSQL
// it is not ready, because another node may have the right time.
func TestClock_setBackStopsMoney(t *testing.T) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			now := clock.NewManual(time.Now())
			cfg, err := asProduction(config.Server{Listen: "127.0.0.1:0", MetricsListen: "off", Connections: 8, DrainFor: time.Minute, Sim: "http://127.0.0.1:1", Storage: freshStorage(t, engine)})
			if err != nil {
				t.Fatal(err)
			}
			a := startWith(t, cfg, Options{Clock: now, Log: slog.New(slog.DiscardHandler)})
			key := liveKey(t, a)
			ask := func(method, path string) (*http.Response, string) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.doors.api.net.Addr().String()+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("x-api-key", key)
				r.Header.Set("X-Forwarded-For", "192.0.2.1")
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				text, err := io.ReadAll(answer.Body)
				if err != nil {
					t.Fatal(err)
				}
				return answer, string(text)
			}
			const pay, read = "/api/v1/airtime-api/sendAirtime", "/api/v1/account-api/balance"
			if answer, text := ask(http.MethodPost, pay); answer.StatusCode != http.StatusUnprocessableEntity {
				t.Fatalf("before: %d %s", answer.StatusCode, text)
			}
			if err := a.audit.Record(t.Context(), audit.Entry{Actor: "ama", Action: "test"}); err != nil { // the newest row
				t.Fatal(err)
			}
			now.Set(-time.Hour)
			now.Advance(10 * time.Second)
			clocktest.Await(t, "money to stop", func() bool { return a.timekeeper.Stopped() != nil })
			if answer, text := ask(http.MethodPost, pay); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "clock_wrong") {
				t.Errorf("airtime: %d %v %s", answer.StatusCode, answer.Header, text)
			}
			if answer, text := ask(http.MethodGet, read); answer.StatusCode != http.StatusOK {
				t.Errorf("a balance: %d %s", answer.StatusCode, text)
			}
			want := map[db.Engine]int{db.SQLite: http.StatusOK, db.Postgres: http.StatusServiceUnavailable}[engine]
			if answer, text := ask(http.MethodGet, "/readyz"); answer.StatusCode != want || !strings.Contains(text, "clock") {
				t.Errorf("readyz: %d %s", answer.StatusCode, text)
			}
		})
	}
}

// liveKey makes a customer with live money and a key of theirs.
func liveKey(t *testing.T, a *App) string {
	t.Helper()
	id := uuid.Must(uuid.NewV7()).String()
	key, err := a.access.Mint(access.NewKey{Tenant: id})
	if err == nil {
		err = a.db.Write(t.Context(), func(tx *db.Tx) error {
			if _, err := a.tenants.Create(tx, tenant.Tenant{ID: id, Mode: tenant.Live, Name: "Adom Stores"}); err != nil {
				return err
			}
			a.access.CreateKey(tx, key)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return key.Text
}
