//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/webhook"
)

const (
	// killsOfRotation is the number of kills during the rotation of the master key.
	killsOfRotation = 8
	// sealedBefore is the number of secrets that are sealed under the old key. The rotation needs many transactions for them.
	sealedBefore = 2500
)

// The runbook of a key rotation works with two servers under load that are restarted at each step, and with a rotation that is
// killed repeatedly. No payout or webhook is lost, every secret is unchanged, and the old key can be removed.
func TestMasterKey_rotatedUnderLoadAndKills(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	folder := t.TempDir()
	old, fresh := strings.Repeat("a1", config.SecretBytes), strings.Repeat("b2", config.SecretBytes)
	ring, reference := filepath.Join(folder, "ring"), filepath.Join(folder, "reference")
	write := func(path string, keys ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ring, old)
	where.environment = []string{"MAKOLA_MASTER_KEY_FILE=" + ring}
	servers := []*process{where.serve(t, "one", sim), where.serve(t, "two", sim)}
	first := servers[0].ready
	where.command(t, "wallet", "fund", first.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, newClient(first.APIURL, first.APIKey))
	secrets := sealMany(t, where, old)

	l := startLoad(t, "ring", in.server.URL, newClient(first.APIURL, first.APIKey))
	roll := func() { // one after the other
		t.Helper()
		for n := range servers {
			l.target.Store(newClient(servers[1-n].ready.APIURL, first.APIKey))
			servers[n].signal(syscall.SIGTERM)
			if code := servers[n].wait(); code != 0 {
				t.Errorf("a server ended with %d", code)
			}
			servers[n] = where.serve(t, "again", sim)
		}
		before := l.sent.Load()
		clocktest.Await(t, "the load to go on", func() bool { return l.sent.Load() >= before+2*callers })
	}
	write(reference, old)
	where.environment = append(where.environment, "MAKOLA_REFERENCE_KEY_FILE="+reference)
	write(ring, old, fresh)
	roll()
	write(ring, fresh, old)
	roll()
	random := rand.New(rand.NewPCG(5, 1))
	for n := range killsOfRotation {
		where.killed(t, time.Duration(60+random.IntN(40*(n+1)))*time.Millisecond, "keys", "rotate", "--reason", "yearly")
	}
	where.command(t, "keys", "rotate", "--reason", "yearly")
	var keys []struct {
		Key    string `json:"key"`
		Sealed int    `json:"sealed"`
	}
	decode(t, where.command(t, "keys", "status", "-o", "json"), &keys)
	if len(keys) != 2 || keys[0].Sealed <= sealedBefore || keys[1].Sealed != 0 {
		t.Fatalf("sealed under each key: %+v", keys)
	}
	write(ring, fresh)
	roll()
	for tenant, want := range secrets {
		if got := secretOf(t, where, fresh, tenant); got != want {
			t.Fatalf("the secret of %s is another one after the rotation", tenant)
		}
	}
	verify(t, verification{site: where, sim: sim, servers: servers, api: newClient(servers[0].ready.APIURL, first.APIKey), inbox: in, opening: opening, payouts: l.end()})
	var shown map[string]any
	decode(t, where.command(t, "webhooks", "secret", first.TenantID, "-o", "json"), &shown)
	if text, _ := json.Marshal(shown); !bytes.Contains(text, []byte(first.WebhookSecret)) {
		t.Error("the customer's secret is another one after the rotation")
	}
}

// hooks returns the webhooks of a site with a key ring.
func hooks(t *testing.T, where site, ring string) (*db.DB, *webhook.Webhooks) {
	t.Helper()
	secret, err := config.ParseSecret(ring)
	if err != nil {
		t.Fatal(err)
	}
	d, quiet := dbtest.OpenWith(t, db.Options{URL: where.url, MaxConns: 2}), slog.New(slog.DiscardHandler)
	return d, webhook.New(d, jobs.New(d, clock.Real(), quiet, jobs.Options{Node: "test"}), clock.Real(), quiet, webhook.Options{Secret: secret})
}

// sealMany seals secrets of tenants under a key, and returns some of them.
func sealMany(t *testing.T, where site, ring string) map[string]string {
	t.Helper()
	d, webhooks := hooks(t, where, ring)
	some := map[string]string{}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for n := range sealedBefore {
			tenant := fmt.Sprintf("00000000-0000-7000-8000-%012d", n)
			text, err := webhooks.EnsureSecret(tx, tenant)
			if err != nil {
				return err
			}
			if n%500 == 0 {
				some[tenant] = text
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return some
}

func secretOf(t *testing.T, where site, ring, tenant string) string {
	t.Helper()
	_, webhooks := hooks(t, where, ring)
	s, err := webhooks.Secret(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return s.Current
}
