package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/test/dbtest"
)

// The exit codes.
const (
	exitOK          = frame.ExitOK
	exitInternal    = frame.ExitInternal
	exitUsage       = frame.ExitUsage
	exitUnavailable = frame.ExitUnavailable
	exitNotFound    = frame.ExitNotFound
	exitConflict    = frame.ExitConflict
	exitForbidden   = frame.ExitForbidden
	exitFunds       = frame.ExitFunds
	exitRefused     = frame.ExitRefused
	exitUnknown     = frame.ExitUnknown
	exitDeclined    = frame.ExitDeclined
	exitWaits       = frame.ExitWaits
)

// patience limits each wait. Only a failing test reaches it.
const patience = 3 * time.Minute

// where is the database that the commands use.
type where struct {
	t     *testing.T
	flags []string
	db    *db.DB // the same database, opened as a server would
}

// each runs fn on a migrated database of each engine, in parallel with other tests.
func each(t *testing.T, fn func(t *testing.T, w where)) {
	t.Parallel()
	eachAlone(t, func(t *testing.T, w where) {
		t.Parallel()
		fn(t, w)
	})
}

// eachAlone is each for a test that sets variables of the environment.
func eachAlone(t *testing.T, fn func(t *testing.T, w where)) {
	t.Run("SQLite", func(t *testing.T) {
		storage := config.Storage{Data: t.TempDir()}
		dbtest.File(t, storage.SQLite())
		d := dbtest.OpenWith(t, db.Options{Path: storage.SQLite()})
		fn(t, where{t, []string{"--data", storage.Data}, d})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := dbtest.URL(t)
		d := dbtest.OpenWith(t, db.Options{URL: url, MaxConns: 2})
		fn(t, where{t, []string{"--database", url, "--data", t.TempDir()}, d})
	})
}

// run runs a command and requires an exit code.
func (w where) run(code int, args ...string) (stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	if got := Run(append(args, w.flags...), &out, &errs); got != code {
		w.t.Fatalf("makola %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// object runs a command that prints one JSON object.
func (w where) object(args ...string) map[string]any {
	w.t.Helper()
	out, _ := w.run(exitOK, append(args, "-o", "json")...)
	var o map[string]any
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		w.t.Fatalf("%s: %v", out, err)
	}
	return o
}

// list runs a command that prints a JSON array.
func (w where) list(args ...string) []map[string]any {
	w.t.Helper()
	out, _ := w.run(exitOK, append(args, "-o", "json")...)
	var l []map[string]any
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		w.t.Fatalf("%s: %v", out, err)
	}
	return l
}

func (w where) tenant(args ...string) (id string) {
	w.t.Helper()
	return w.object(append([]string{"tenant", "create", "Adom Stores", "--mode", "live"}, args...)...)["id"].(string)
}

// has fails the test if o lacks a member or has another value for it.
func has(t *testing.T, o map[string]any, want map[string]any) {
	t.Helper()
	for name, value := range want {
		got, _ := json.Marshal(o[name])
		expected, _ := json.Marshal(value)
		if !bytes.Equal(got, expected) {
			t.Errorf("%s is %s, want %s", name, got, expected)
		}
	}
}

func TestAccountSet_quotas(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant("--quota-groups", "7")
		has(t, w.object("tenant", "show", id), map[string]any{
			"quota_contacts": "default", "quota_groups": "7", "quota_sender_ids": "default", "quota_campaigns": "default"})
		has(t, w.object("tenant", "set", id, "--quota-contacts", "2000000", "--quota-groups", "default", "--quota-sender-ids", "none", "--quota-campaigns", "0", "--reason", "large"), map[string]any{
			"quota_contacts": "2000000", "quota_groups": "default", "quota_sender_ids": "none", "quota_campaigns": "none"})
		want := []any{"quota_contacts: default → 2000000;", "quota_groups: 7 → default;", "quota_sender_ids: default → none;", "quota_campaigns: default → none;"}
		if got := w.list("audit", "list", "--tenant", id)[0]["changes"].([]any); !slices.Equal(got, want) {
			t.Errorf("the changes are %v, not %v", got, want)
		}
		for _, bad := range []string{"-1", "many", "1.5"} {
			if _, said := w.run(exitUsage, "tenant", "set", id, "--quota-contacts="+bad, "--reason", "typing"); !strings.Contains(said, "must be none, default, or a whole number (0 is none)") {
				t.Errorf("%s is answered %q", bad, said)
			}
		}
	})
}

func TestAccounts_createdShownChanged(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant("--collections", "on", "--payout-ip", "10.0.0.0/8", "--payout-ip", "::1", "--transfer-limit", "200.50")
		has(t, w.object("tenant", "show", id), map[string]any{
			"name": "Adom Stores", "mode": "live", "collections": true, "blocked": false, "payouts": true, "transfer_limit": "200.50",
			"bank_transfer_limit": "50000.00", "fee_bearer": "merchant", "duplicates": "refuse", "payout_ips": []string{"10.0.0.0/8", "::1/128"},
			"wallet": "0.00", "sms_credits": 0,
		})
		has(t, w.object("tenant", "set", id, "--blocked", "on", "--payouts", "off", "--fee-bearer", "customer", "--duplicates", "repeat", "--reason", "fraud"), map[string]any{
			"blocked": true, "payouts": false, "fee_bearer": "customer", "duplicates": "repeat", "collections": true, "transfer_limit": "200.50",
			"payout_ips": []string{"10.0.0.0/8", "::1/128"},
		})
		has(t, w.object("tenant", "set", id, "--payout-ip", "192.0.2.0/24", "--name", "Adom", "--reason", "moved"), map[string]any{
			"name": "Adom", "blocked": true, "payout_ips": []string{"192.0.2.0/24"},
		})
		has(t, w.object("tenant", "set", id, "--no-payout-ip", "--reason", "moved"), map[string]any{"payout_ips": []string{}})
		if all := w.list("tenant", "list"); len(all) != 1 || all[0]["id"] != id {
			t.Errorf("the list is %v", all)
		}
		log := w.list("audit", "list", "--tenant", id)
		if len(log) != 4 || log[3]["action"] != "tenant.create" || log[2]["reason"] != "fraud" {
			t.Fatalf("the log is %v", log)
		}
		for at, want := range [][]any{
			{"payout_ips: 192.0.2.0/24 → -;"},
			{"name: Adom Stores → Adom;", "payout_ips: 10.0.0.0/8 ::1/128 → 192.0.2.0/24;"},
			{"blocked: off → on;", "payouts: on → off;", "fee_bearer: merchant → customer;", "duplicates: refuse → repeat;"},
		} {
			if got := log[at]["changes"].([]any); !slices.Equal(got, want) {
				t.Errorf("the changes are %v, not %v", got, want)
			}
		}
		if table, _ := w.run(exitOK, "audit", "list"); !strings.Contains(table, "transfer_limit: 15000.00 → 200.50") || !strings.Contains(table, "Adom") {
			t.Errorf("the table is\n%s", table)
		}
		if !strings.HasPrefix(log[0]["actor"].(string), "cli:") {
			t.Errorf("the actor is %v", log[0]["actor"])
		}
	})
}

func TestKeys_createdRotatedRevoked(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		a := access.New(w.db, clock.Real())
		works := func(key string) bool {
			t.Helper()
			_, err := access.New(w.db, clock.Real()).Authenticate(t.Context(), key)
			return err == nil
		}
		made := w.object("key", "create", "--tenant", id, "--label", "Ama's till", "--scope", "read", "--scope", "payout", "--expires-in", "720h")
		key, keyID := made["key"].(string), made["id"].(string)
		has(t, made, map[string]any{"member": "", "label": "Ama's till", "scopes": []string{"read", "payout"}, "state": "active", "revoked_at": nil})
		caller, err := a.Authenticate(t.Context(), key)
		if err != nil || caller.Tenant != id || !strings.HasPrefix(key, "mk_live_") || caller.Can(access.Collect) {
			t.Fatalf("%+v, %v", caller, err)
		}
		out, _ := w.run(exitOK, "key", "list", "--tenant", id, "-o", "json")
		if strings.Contains(out, key) || !strings.Contains(out, made["hint"].(string)) {
			t.Errorf("the list is %s", out)
		}
		has(t, made, map[string]any{"daily": "0.00"})
		has(t, w.object("key", "set", keyID, "--tenant", id, "--daily", "250.00", "--reason", "a stolen key"), map[string]any{"daily": "250.00", "state": "active"})
		if caller, err := access.New(w.db, clock.Real()).Authenticate(t.Context(), key); err != nil || caller.Daily != 250*money.Cedi {
			t.Errorf("%+v, %v", caller, err)
		}
		has(t, w.object("key", "create", "--tenant", id, "--daily", "10"), map[string]any{"daily": "10.00"})
		w.run(exitUsage, "key", "set", keyID, "--tenant", id, "--daily", "-1", "--reason", "x")
		w.run(exitNotFound, "key", "set", "nothing", "--tenant", id, "--daily", "1", "--reason", "x")
		next := w.object("key", "rotate", keyID, "--tenant", id, "--overlap", "1h", "--reason", "yearly")
		has(t, next, map[string]any{"daily": "250.00"})
		if !works(key) || !works(next["key"].(string)) {
			t.Error("both keys must work during the overlap")
		}
		w.run(exitConflict, "key", "rotate", keyID, "--tenant", id, "--reason", "yearly")
		w.run(exitUsage, "key", "rotate", next["id"].(string), "--tenant", id, "--overlap", "169h", "--reason", "yearly")
		has(t, w.object("key", "revoke", keyID, "--tenant", id, "--reason", "leaked"), map[string]any{"state": "revoked", "replaced_by": next["id"]})
		if works(key) || !works(next["key"].(string)) {
			t.Error("only the revoked key must stop")
		}
		for _, command := range []string{"rotate", "revoke"} {
			w.run(exitNotFound, "key", command, "nothing", "--tenant", id, "--reason", "x")
		}
		w.run(exitNotFound, "key", "create", "--tenant", "nobody")
		w.run(exitNotFound, "key", "list", "--tenant", "nobody")
		w.run(exitUsage, "key", "create", "--tenant", id, "--scope", "everything")
		w.run(exitUsage, "key", "create", "--tenant", id, "--expires-in", "0s")
		w.run(exitUsage, "key", "create")
		for _, entry := range w.list("audit", "list") {
			if text, _ := json.Marshal(entry); strings.Contains(string(text), key[12:40]) {
				t.Errorf("the log has a key: %s", text)
			}
		}
	})
}

func TestFees_setAndShown(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		if got := w.list("fees", "show"); len(got) != 0 {
			t.Errorf("without a plan: %v", got)
		}
		w.list("fees", "set", "default", "--rule", "collection=1%,min=0.10,max=10", "--reason", "agreed")
		own := w.list("fees", "set", id, "--rule", "payout/BANK=8.00+0.5%", "--rule", "payout=1", "--reason", "agreed")
		if len(own) != 2 {
			t.Fatalf("the plan is %v", own)
		}
		has(t, w.list("fees", "show")[0], map[string]any{
			"product": "collection", "channel": "", "flat": "0.00", "percent": "1.00", "minimum": "0.10", "maximum": "10.00"})
		shown := w.list("fees", "show", id)
		if len(shown) != 2 {
			t.Fatalf("the plan is %v", shown)
		}
		has(t, shown[1], map[string]any{"product": "payout", "channel": "BANK", "flat": "8.00", "percent": "0.50", "maximum": nil})
		if got := w.list("fees", "set", id, "--free", "--reason", "agreed"); len(got) != 0 {
			t.Errorf("a free plan: %v", got)
		}
		for _, args := range [][]string{
			{"default"}, {"default", "--free", "--rule", "payout=1"}, {"default", "--rule", "payout"}, {"default", "--rule", "payout=1%+2%"},
			{"default", "--rule", "payout=1+2"}, {"default", "--rule", "payout=x"}, {"default", "--rule", "payout=1,mx=3"},
			{"default", "--rule", "payout=1,max=0"}, {"default", "--rule", "loan=1"}, {"default", "--rule", "payout/mtn=1"},
			{"default", "--rule", "payout=0.001%"}, {"default", "--rule", "payout=1", "--from", "tomorrow"},
		} {
			w.run(exitUsage, append([]string{"fees", "set", "--reason", "agreed"}, args...)...)
		}
		w.run(exitNotFound, "fees", "set", "nobody", "--free", "--reason", "x")
		w.run(exitNotFound, "fees", "show", "nobody")
	})
}

func TestFlags_invalidAreRefused(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		for _, args := range [][]string{
			{"tenant", "set", id, "--reason", "x"}, {"tenant", "set", id, "--blocked", "on"}, {"tenant", "set", id, "--reason", "x", "--collections", "yes"}, {"tenant", "set", id, "--reason", "x", "--payout-ip", "10.1.2.3/8"},
			{"tenant", "set", id, "--reason", "x", "--payout-ip", "::1", "--no-payout-ip"}, {"tenant", "set", id, "--reason", "x", "--transfer-limit", "-1"},
			{"tenant", "set", id, "--reason", "x", "--transfer-limit", "0"}, {"tenant", "set", id, "--reason", "x", "--fee-bearer", "me"}, {"tenant", "set", id, "--reason", "x", "--duplicates", "allow"}, {"tenant", "set", id, "--reason", "x", "--name", ""},
			{"tenant", "create", "x"}, {"tenant", "create", "x", "--mode", "demo"}, {"tenant", "create", "x", "--mode", "live", "--id", "a b"},
			{"tenant", "list", "-o", "xml"}, {"tenant"}, {"nothing"}, {"tenant", "list", "--nothing"},
		} {
			if out, errs := w.run(exitUsage, args...); out != "" || !strings.HasPrefix(errs, "makola: ") {
				t.Errorf("%v printed %q and %q", args, out, errs)
			}
		}
		w.run(exitNotFound, "tenant", "show", "nobody")
		w.run(exitNotFound, "tenant", "set", "nobody", "--blocked", "on", "--reason", "x")
		w.run(exitConflict, "tenant", "create", "x", "--mode", "live", "--id", id)
		if log := w.list("audit", "list"); len(log) != 1 {
			t.Errorf("refused acts are in the log: %v", log)
		}
	})
}

// A list for an unknown or missing tenant is an error, not an empty list.
func TestLists_unknownAccount(t *testing.T) {
	t.Setenv(config.EnvMasterKey, strings.Repeat("ab", config.SecretBytes))
	eachAlone(t, func(t *testing.T, w where) {
		for _, args := range [][]string{
			{"payouts", "list", "nobody"}, {"webhooks", "list", "--tenant", "nobody"}, {"webhooks", "attempts", "x", "--tenant", "nobody"},
			{"contacts", "groups", "nobody"}, {"contacts", "optouts", "nobody"}, {"campaigns", "list", "nobody"}, {"senders", "list", "--tenant", "nobody"},
			{"credits", "report", "--tenant", "nobody"}, {"audit", "list", "--tenant", "nobody"}, {"providers", "routes", "--tenant", "nobody"},
		} {
			w.run(exitNotFound, args...)
		}
		for _, list := range [][]string{{"tenant", "list"}, {"audit", "list"}, {"senders", "list"}, {"jobs", "list"}, {"jobs", "dead"},
			{"providers", "exchanges"}, {"webhooks", "list", "--state", "failed"}} {
			for _, limit := range []string{"--limit=-1", "--limit=0", "--limit=x"} {
				w.run(exitUsage, append(list, limit)...)
			}
		}
	})
}

func TestCommands_neitherCreateNorMigrate(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "none")
	w := where{t: t, flags: []string{"--data", folder}}
	for _, args := range [][]string{{"tenant", "list"}, {"migrate", "status"}} {
		if _, errs := w.run(exitUnavailable, args...); strings.Count(errs, folder) != 1 {
			t.Errorf("the message is %q", errs)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command made %s", folder)
	}
	empty := where{t: t, flags: []string{"--database", dbtest.EmptyURL(t)}}
	for range 2 {
		if _, errs := empty.run(exitUnavailable, "tenant", "list"); !strings.Contains(errs, "makola migrate up") {
			t.Errorf("the message is %q", errs)
		}
	}
	gone := where{t: t, flags: []string{"--database", "postgres://127.0.0.1:1/none?connect_timeout=5"}}
	if _, errs := gone.run(exitUnavailable, "tenant", "list"); !strings.Contains(errs, "because:") {
		t.Errorf("the message is %q", errs)
	}
}

func TestHelp_ofTheProgram(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"tenant", "--help"}, {"key", "create", "--help"}} {
		var out, errs bytes.Buffer
		if code := Run(args, &out, &errs); code != exitOK || !strings.Contains(out.String(), "Usage: makola") || errs.Len() > 0 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}

// The help of the server shows each setting with its flag, variable and default.
func TestHelp_ofSettings(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := Run([]string{"serve", "--help"}, &out, &errs); code != exitOK {
		t.Fatalf("exit %d, %s", code, errs.String())
	}
	help := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"--listen=ADDRESS Address of the JSON interface; port 0 means any free port ($MAKOLA_LISTEN). Default: 127.0.0.1:8080.",
		"--connections=16 Maximum number of connections to PostgreSQL ($MAKOLA_CONNECTIONS).",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, out.String())
		}
	}
}

func TestOutput_threeForms(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.run(exitOK, "tenant", "create", "Kofi, \"Ama\" & Co", "--mode", "test", "--id", "t-1")
		w.run(exitUsage, "tenant", "create", "\x1b[2Jclear", "--mode", "test", "--id", "t-2") // a terminal would act on it
		w.run(exitOK, "tenant", "create", "Ama Mensah", "--mode", "test", "--id", "t-2")
		out, _ := w.run(exitOK, "tenant", "list", "-o", "csv")
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff"))).ReadAll()
		if err != nil || len(rows) != 3 || rows[0][1] != "name" || rows[1][1] != `Kofi, "Ama" & Co` || rows[1][3] != "no" {
			t.Errorf("%v, %v", rows, err)
		}
		out, _ = w.run(exitOK, "tenant", "list")
		if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") || !strings.HasPrefix(lines[1], "t-1 ") {
			t.Errorf("the table is\n%s", out)
		}
		out, _ = w.run(exitOK, "tenant", "show", "t-1")
		if !strings.Contains(out, "transfer limit ") || !strings.Contains(out, "15000.00") || !strings.Contains(out, "payout ips") {
			t.Errorf("one customer is\n%s", out)
		}
	})
}
