package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/dbtest"
)

// The history of an installation reads the same on the other engine, by every command that lists, sums up or verifies.
func TestMigrateCopy_readsTheSame(t *testing.T) {
	t.Parallel()
	folder, url := sampleFolder(t), dbtest.EmptyURL(t)
	here := where{t: t, flags: []string{"--data", folder}}
	there := where{t: t, flags: []string{"--database", url, "--data", folder}}
	bare := where{t: t}

	tenants := here.list("tenant", "list")
	if len(tenants) == 0 {
		t.Fatal("the sample has no customers")
	}
	id := tenants[0]["id"].(string)
	reads := [][]string{{"tenant", "list"}, {"people", "list"}, {"fees", "show"}, {"key", "list", "--tenant", id}, {"wallet", "show", id}, {"payouts", "list", id}, {"payouts", "stuck"},
		{"ledger", "check"}, {"ledger", "statement", id}, {"audit", "list"}, {"audit", "verify"}, {"webhooks", "list", "--tenant", id}, {"senders", "list"}, {"campaigns", "list", id},
		{"contacts", "groups", id}, {"jobs", "list"}, {"jobs", "dead"}, {"jobs", "depth"}, {"providers", "routes"}, {"catalogue", "list"}}
	begun := time.Now().Add(-time.Second)
	// isNow reports whether a line is the time at which a command ran.
	isNow := func(line string) bool {
		at, err := time.Parse(`"at": "`+time.RFC3339+`",`, strings.TrimSpace(line))
		return err == nil && at.After(begun)
	}
	before := map[string]string{}
	for _, args := range reads {
		before[args[0]+" "+args[1]], _ = here.run(exitOK, append(slices.Clone(args), "-o", "json")...)
	}

	out, said := bare.run(exitOK, "migrate", "copy", "--data", folder, "--to", url, "-o", "csv")
	if !strings.Contains(out, `"move","tables","rows","already"`) || !strings.Contains(said, "has moved") {
		t.Errorf("the move prints %q and says %q", out, said)
	}
	for _, args := range reads {
		name := args[0] + " " + args[1]
		after, _ := there.run(exitOK, append(slices.Clone(args), "-o", "json")...)
		if name == "audit list" || name == "audit verify" { // the move adds one entry
			if name == "audit list" && !strings.Contains(after, `"database.move"`) {
				t.Errorf("the log does not have the move: %.300s", after)
			}
			continue
		}
		if len(after) != len(before[name]) {
			t.Errorf("makola %s printed %d bytes, and prints %d", name, len(before[name]), len(after))
		} else {
			old, new := strings.Split(before[name], "\n"), strings.Split(after, "\n")
			for i := range min(len(old), len(new)) {
				if old[i] != new[i] && !(isNow(old[i]) && isNow(new[i])) {
					t.Errorf("makola %s: line %d of %d was %s, and of %d is %s", name, i+1, len(old), old[i], len(new), new[i])
					break
				}
			}
		}
	}
	for _, args := range reads {
		if _, said := here.run(exitForbidden, args...); !strings.Contains(said, "moved") {
			t.Errorf("makola %s in the old folder says %s", args[0], said)
		}
	}
	if _, said := bare.run(exitOK, "migrate", "copy", "--data", folder, "--to", url); !strings.Contains(said, "moved already") {
		t.Errorf("the move again says %s", said)
	}
	if _, said := bare.run(exitForbidden, "migrate", "copy", "--data", folder, "--to", url, "--abandon"); !strings.Contains(said, "can no longer be abandoned") {
		t.Errorf("abandoning it says %s", said)
	}
}

func TestMigrateCopy_refusals(t *testing.T) {
	t.Parallel()
	folder, url := filepath.Join(t.TempDir(), "old"), dbtest.EmptyURL(t)
	bare := where{t: t}
	for _, bad := range [][]string{{"--data", folder}, {"--data", "", "--to", url}, {"--data", folder, "--to", url, "--target-is-gone"}} {
		bare.run(exitUsage, append([]string{"migrate", "copy"}, bad...)...)
	}
	copying := []string{"migrate", "copy", "--data", folder, "--to", url}
	bare.run(exitUnavailable, copying...) // no database
	here := where{t: t, flags: []string{"--data", folder}}
	here.run(exitOK, "migrate", "up")
	if _, said := bare.run(exitUsage, copying...); !strings.Contains(said, "nothing to move") {
		t.Errorf("a database without an installation: %s", said)
	}
	if _, said := bare.run(exitUsage, append(copying, "--abandon")...); !strings.Contains(said, "nothing to abandon") {
		t.Errorf("abandoning nothing: %s", said)
	}
}
