package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// A server refuses to start if its key ring lacks a key under which a secret is sealed. It starts if the ring has that key
// behind the new one. Without the first key, the database appears to belong to another installation.
func TestRing_missingKeyStopsTheStart(t *testing.T) {
	t.Parallel()
	old, fresh := strings.Repeat("ab", config.SecretBytes), strings.Repeat("cd", config.SecretBytes)
	ring := func(text string) config.Secret {
		s, err := config.ParseSecret(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", Storage: freshStorage(t, db.SQLite), DrainFor: time.Minute}
	start := func(s config.Secret) (*App, error) {
		cfg.Secret = s
		return Start(t.Context(), cfg, Options{Log: slog.New(slog.DiscardHandler)})
	}
	references := map[string]bool{}
	for _, s := range []config.Secret{ring(old), ring(fresh + " " + old)} {
		a, err := start(s)
		if err != nil {
			t.Fatal(err)
		}
		references[string(a.cfg.Secret.Derive("payments/provider-reference"))] = true
		if err := a.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(references) != 1 {
		t.Error("a repeated request would be paid twice under the new key")
	}
	for want, s := range map[string]config.Secret{
		"lacks key " + ring(old).Active() + ". It sealed": ring(fresh).WithReference(ring(old)),
		"not the one this database was made with":         ring(fresh),
	} {
		if _, err := start(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it starts: %v; want %q", err, want)
		}
	}
}
