package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/test/dbtest"
)

// TestRecovery_stepsInOrder: each step is in the audit log, in its order, and every command warns that a recovery is in
// progress.
func TestRecovery_stepsInOrder(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		has(t, w.object("recovery", "status"), map[string]any{"phase": "none", "conflicts": []string{}})
		w.run(exitUsage, "recovery", "open", "--reason", "too early")
		w.run(exitUsage, "recovery", "begin")
		has(t, w.object("recovery", "begin", "--since", "2026-03-03T09:00:00Z", "--reason", "a snapshot of the machine"),
			map[string]any{"phase": "closed", "since": "2026-03-03T09:00:00Z", "reason": "a snapshot of the machine"})
		if _, line := w.run(exitOK, "tenant", "list"); !strings.Contains(line, "A recovery is closed since") {
			t.Errorf("stderr is %q", line)
		}
		has(t, w.object("recovery", "skip", "hubtel", "--reason", "closed for good"), map[string]any{"skipped": []string{"hubtel/live"}})
		has(t, w.object("recovery", "allow", "Adom Stores", "--reason", "asked them"), map[string]any{"allowed": []string{id}})
		w.run(exitUsage, "recovery", "end", "--reason", "done", "--sign-floats", "agree")
		has(t, w.object("recovery", "open", "--reason", "redone"), map[string]any{"phase": "open"})
		w.run(exitUsage, "recovery", "end", "--reason", "done")
		has(t, w.object("recovery", "end", "--reason", "done", "--sign-floats", "both portals, 9:00"), map[string]any{"phase": "ended"})
		if _, line := w.run(exitOK, "tenant", "list"); strings.Contains(line, "recovery") {
			t.Errorf("stderr is %q", line)
		}
		var actions []string
		for _, a := range w.list("audit", "list") {
			actions = append(actions, a["action"].(string))
		}
		if got := strings.Join(actions, " "); got != "recovery.end recovery.open recovery.allow recovery.skip recovery.begin tenant.create" {
			t.Error(got)
		}
	})
}

// TestClaims_fromAFile: claims are read from a file and listed, and the recovery cannot end before they are decided.
func TestClaims_fromAFile(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		file := filepath.Join(t.TempDir(), "claims.csv")
		if err := os.WriteFile(file, []byte("kind,reference,amount,party,channel\npayout,order-0000001,10.50,0244000001,MTN\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.run(exitUsage, "recovery", "claim", id, file, "--reason", "statement of 3 March")
		w.object("recovery", "begin", "--reason", "a snapshot of the machine")
		w.object("recovery", "claim", id, file, "--reason", "statement of 3 March")
		claims := w.list("recovery", "claims")
		if len(claims) != 1 || claims[0]["state"] != "waiting" || claims[0]["party"] != "233244000001" || claims[0]["amount"] != "10.50" {
			t.Errorf("%v", claims)
		}
		w.object("recovery", "open", "--reason", "redone")
		if _, line := w.run(exitForbidden, "recovery", "end", "--reason", "done", "--sign-floats", "agree"); !strings.Contains(line, "1 claims wait") {
			t.Errorf("stderr is %q", line)
		}
		if err := os.WriteFile(file, []byte("payout,order-0000001,nothing,0244000001,MTN\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, line := w.run(exitUsage, "recovery", "claim", id, file, "--reason", "again"); !strings.Contains(line, "Line 1: amount") {
			t.Errorf("stderr is %q", line)
		}
	})
}

// TestRecovery_lostChangesListed: the recovery lists the changes that are in this machine's journal and not in the audit log.
func TestRecovery_lostChangesListed(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		folder := w.flags[len(w.flags)-1]
		id := w.tenant()
		w.object("tenant", "set", id, "--blocked", "on", "--reason", "asked by 233244123456")
		path := filepath.Join(folder, audit.JournalName)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(path)
		if lines := strings.Count(string(text), "\n"); lines != 2 || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "233244123456") {
			t.Errorf("%d lines, %v: %s", lines, info.Mode(), text)
		}
		if forgotten := w.object("recovery", "status")["forgotten_acts"].([]any); len(forgotten) > 0 {
			t.Errorf("forgotten %v", forgotten)
		}
		more := strings.ReplaceAll(string(text), `"id":"`, `"id":"of the life before `)
		if err := os.WriteFile(path, []byte(string(text)+more+`{"id":"torn`), 0o600); err != nil {
			t.Fatal(err)
		}
		forgotten := w.object("recovery", "status")["forgotten_acts"].([]any)
		if len(forgotten) != 2 || !strings.Contains(forgotten[1].(string), "tenant.block") {
			t.Errorf("forgotten %v", forgotten)
		}
	})
}

// If the journal cannot be written, a command fails before it changes anything. Otherwise nobody would know of the change after a
// restore.
func TestJournal_unwritableRefusesChanges(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		folder := w.flags[len(w.flags)-1]
		id := w.tenant()
		path := filepath.Join(folder, audit.JournalName)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // root may write into closed folders, so a folder takes the place of the file
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"tenant", "set", id, "--blocked", "on", "--reason", "asked"}, {"key", "create", "--tenant", id}, {"recovery", "begin", "--reason", "a snapshot"},
			{"people", "create", "--email", "ama@example.com", "--role", "owner"},
		} {
			if _, said := w.run(exitUnavailable, args...); !strings.Contains(said, "Nothing was changed") || !strings.Contains(said, path) {
				t.Errorf("%v: %s", args, said)
			}
		}
		if entries := w.list("audit", "list"); len(entries) != 1 {
			t.Errorf("the audit log has %v", entries)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		w.run(exitOK, "tenant", "set", id, "--blocked", "on", "--reason", "asked")
	})
}

// In production a command with only the database's URL is refused, because its change would be in no journal.
func TestJournal_noFolderInProduction(t *testing.T) {
	url := dbtest.URL(t)
	t.Chdir(t.TempDir()) // a folder without ./makola-data
	d := dbtest.OpenWith(t, db.Options{URL: url, MaxConns: 2})
	w := where{t, []string{"--database", url}, d}
	id := w.tenant() // in development
	secret, err := config.NewSecret(bytes.Repeat([]byte{7}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	of := installation.New(d, clock.Real())
	if err := errors.Join(of.Check(t.Context(), secret), of.MarkProduction(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, said := w.run(exitUnavailable, "tenant", "set", id, "--blocked", "on", "--reason", "asked"); !strings.Contains(said, "--data or MAKOLA_DATA") {
		t.Errorf("stderr is %q", said)
	}
	w.flags = append(w.flags, "--data", t.TempDir())
	w.run(exitOK, "tenant", "set", id, "--blocked", "on", "--reason", "asked")
}

// A recovery first lists the changes of keys and people in the journal. Without a journal it lists every live key and every
// person. It opens for customers after a person has confirmed the list.
func TestRecoveryOpen_confirmsAccess(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		folder := w.flags[len(w.flags)-1]
		path := filepath.Join(folder, audit.JournalName)
		id := w.tenant()
		w.object("key", "create", "--tenant", id)
		w.object("people", "create", "--email", "ama@example.com", "--role", "owner")
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w.object("recovery", "begin", "--reason", "a snapshot of the machine")
		if rows := w.list("recovery", "access"); len(rows) != 0 {
			t.Errorf("nothing was forgotten, and there are %v", rows)
		}

		revoked := `{"id":"of the life before","at":"2026-03-03T09:00:00Z","actor":"ama@example.com","action":"key.revoke","tenant":"` + id + `","subject":"k-1","reason":"it leaked"}` + "\n"
		if err := os.WriteFile(path, append([]byte(revoked), written...), 0o600); err != nil {
			t.Fatal(err)
		}
		if rows := w.list("recovery", "access"); len(rows) != 1 || rows[0]["id"] != "k-1" || !strings.Contains(rows[0]["why"].(string), "it leaked") {
			t.Errorf("a forgotten revocation is listed as %v", rows)
		}
		w.run(exitForbidden, "recovery", "open", "--reason", "redone")

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		status, said := w.run(exitOK, "recovery", "status", "-o", "json")
		if !strings.Contains(status, "missing: ") || !strings.Contains(said, "No journal from before") {
			t.Errorf("status prints %s and %s", status, said)
		}
		rows, said := w.list("recovery", "access"), ""
		if len(rows) != 2 || rows[0]["kind"] != "key" || rows[1]["name"] != "ama@example.com" {
			t.Errorf("without a journal there are %v", rows)
		}
		_, said = w.run(exitOK, "recovery", "access")
		code := said[strings.LastIndex(said, " ")+1:]
		w.run(exitUsage, "recovery", "open", "--reason", "redone", "--confirm-access", "00000000")
		w.object("recovery", "open", "--reason", "redone", "--confirm-access", strings.TrimSpace(code))
	})
}
