package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
)

// TestStepsOfARecoveryComeInTheirOrder: each is for the audit log, in its order, and every command says that a recovery lasts.
func TestStepsOfARecoveryComeInTheirOrder(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		has(t, w.object("recovery", "status"), map[string]any{"phase": "none", "conflicts": []string{}})
		w.run(exitUsage, "recovery", "open", "--reason", "too early")
		w.run(exitUsage, "recovery", "begin")
		has(t, w.object("recovery", "begin", "--since", "2026-03-03T09:00:00Z", "--reason", "a snapshot of the machine"),
			map[string]any{"phase": "closed", "since": "2026-03-03T09:00:00Z", "reason": "a snapshot of the machine"})
		if _, line := w.run(exitOK, "tenant", "list"); !strings.Contains(line, "A recovery lasts (closed)") {
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

// TestClaimsAreReadFromAFile, waited for before the end, and listed.
func TestClaimsAreReadFromAFile(t *testing.T) {
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

// TestForgottenActsAreListed: those that this machine wrote down and that the audit log does not have.
func TestForgottenActsAreListed(t *testing.T) {
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
		if len(forgotten) != 2 || !strings.Contains(forgotten[1].(string), "tenant.set") {
			t.Errorf("forgotten %v", forgotten)
		}
	})
}
