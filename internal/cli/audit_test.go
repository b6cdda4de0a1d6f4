package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
)

// TestAudit_verifiedAndExported: the audit log has each change of a command with its machine. The export has the links of the
// chain, and the verification detects a changed entry.
func TestAudit_verifiedAndExported(t *testing.T) {
	t.Setenv("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.1 22")
	eachAlone(t, func(t *testing.T, w where) {
		w.run(exitOK, "tenant", "create", "Adom", "--mode", "live")
		entry := w.list("audit", "list")[0]
		if !strings.HasSuffix(entry["origin"].(string), ", from 192.0.2.7") || entry["link"] != float64(0) {
			t.Fatalf("%v", entry)
		}
		if v := w.object("audit", "verify"); v["unlinked"] != float64(1) || v["ok"] != true {
			t.Fatalf("%v", v)
		}
		if _, err := audit.New(w.db, clock.Real()).Link(t.Context()); err != nil {
			t.Fatal(err)
		}
		head := w.object("audit", "verify")["head"].(string)
		out, _ := w.run(exitOK, "audit", "export", "--reason", "for the auditor")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var first, last struct {
			Hash, ID, Action, Reason string
			Link                     int64
		}
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 || "1:"+first.Hash != head || first.ID != entry["id"] {
			t.Fatalf("%s, %v, head %s", out, err, head)
		}
		if err := json.Unmarshal([]byte(lines[1]), &last); err != nil || last.Action != "audit.export" || last.Reason != "for the auditor" || last.Link != 0 {
			t.Fatalf("%s, %v", out, err)
		}
		w.run(exitOK, "audit", "verify", "--head", head)
		other := "1:" + strings.Repeat("0", 64)
		if out, _ := w.run(exitInternal, "audit", "verify", "--head", other); !strings.Contains(out, "replaced") {
			t.Fatal(out)
		}
		if _, errs := w.run(exitUsage, "audit", "verify", "--head", "1:2"); !strings.Contains(errs, "hexadecimal") {
			t.Fatal(errs)
		}
		if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
			tx.Defer("UPDATE audit_log SET reason = 'old' WHERE id = $1", 1, first.ID)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if out, errs := w.run(exitInternal, "audit", "verify"); !strings.Contains(out, "link 1, entry "+first.ID) || !strings.Contains(errs, "1 faults") {
			t.Fatal(out, errs)
		}
	})
}

// The chain's key is counted and moved with the other sealed secrets. A machine without the master key reports which parts it
// could not check.
func TestAuditVerify_withAndWithoutTheMasterKey(t *testing.T) {
	one, two := strings.Repeat("ab", config.SecretBytes), strings.Repeat("cd", config.SecretBytes)
	eachAlone(t, func(t *testing.T, w where) {
		t.Setenv(config.EnvMasterKey, one)
		secret, err := config.ParseSecret(one)
		if err != nil {
			t.Fatal(err)
		}
		if err := installation.New(w.db, clock.Real()).Check(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		log := audit.New(w.db, clock.Real()).Keyed(secret)
		if done, err := log.StartKey(t.Context(), func(*db.Tx) (bool, error) { return false, nil }); err != nil || !done {
			t.Fatal(done, err)
		}
		w.run(exitOK, "tenant", "create", "Adom", "--mode", "live")
		if _, err := log.Link(t.Context()); err != nil {
			t.Fatal(err)
		}
		verified := func() {
			t.Helper()
			if v := w.object("audit", "verify"); v["ok"] != true || v["keyed_from"] != float64(1) || v["unchecked"] != float64(0) || v["linked"] != float64(2) {
				t.Fatalf("%v", v)
			}
		}
		verified()
		t.Setenv(config.EnvMasterKey, two+" "+one)
		w.run(exitOK, "keys", "rotate", "--reason", "test")
		if keys := w.list("keys", "status"); keys[0]["audit_keys"] != float64(1) {
			t.Fatalf("%v", keys)
		}
		verified()
		t.Setenv(config.EnvMasterKey, two)
		w.run(exitUsage, "audit", "verify")
		t.Setenv(config.EnvMasterKey, "")
		w.run(exitOK, "tenant", "list")
		if out, errs := w.run(exitUsage, "audit", "verify"); !strings.Contains(errs, "2 links need the master key and were not checked") || !strings.Contains(out, "unchecked    2") {
			t.Fatal(out, errs)
		}
	})
}
