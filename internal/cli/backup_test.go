package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// elsewhere returns a place of the same engine without a database.
func (w where) elsewhere() where {
	if w.db.Engine() == db.Postgres {
		return where{t: w.t, flags: []string{"--database", dbtest.EmptyURL(w.t)}}
	}
	return where{t: w.t, flags: []string{"--data", filepath.Join(w.t.TempDir(), "new")}}
}

// bare runs a command that takes no database.
func (w where) bare(code int, args ...string) (stdout, stderr string) {
	w.t.Helper()
	return where{t: w.t}.run(code, args...)
}

// scratch returns the flag that names a PostgreSQL server for verify and drill.
func (w where) scratch() []string {
	if w.db.Engine() == db.Postgres {
		return w.flags[:2] // the flag of the database; later flags name a data folder
	}
	return nil
}

// A backup is created, listed, drilled and restored. The books of the new database equal the old ones.
func TestBackup_createdAndRestored(t *testing.T) {
	eachAlone(t, func(t *testing.T, w where) {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		identity := filepath.Join(t.TempDir(), "key.txt")
		if err := os.WriteFile(identity, []byte("# made for a test\n"+key.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(config.EnvMasterKey, strings.Repeat("ab", config.SecretBytes))
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "1234.50", "--reason", "opening", "--reference", "slip-1")
		t.Setenv(config.EnvMasterKey, "") // the key is never stored with backups
		folder := filepath.Join(t.TempDir(), "backups")
		made := w.object("backup", "create", "--folder", folder, "--recipient", key.Recipient().String())
		has(t, made, map[string]any{"engine": w.db.Engine().String(), "encrypted": true})
		file := made["file"].(string)

		last, found, err := backup.Last(t.Context(), w.db)
		if err != nil || !found || last.File != file {
			t.Errorf("the database remembers %+v, %v, %v", last, found, err)
		}
		if log := w.list("audit", "list", "--action", "backup.create"); len(log) != 1 {
			t.Errorf("the log is %v", log)
		}
		out, _ := w.bare(exitOK, "backup", "list", "--folder", folder, "-o", "json")
		if !strings.Contains(out, file) || !strings.Contains(out, `"problem": ""`) {
			t.Errorf("the list is %s", out)
		}

		drill := func(code int, more ...string) (o map[string]any) {
			t.Helper()
			out, _ := w.bare(code, slices.Concat([]string{"backup", "drill", "--folder", folder, "-o", "json"}, w.scratch(), more)...)
			if code == exitOK || out != "" {
				if err := json.Unmarshal([]byte(out), &o); err != nil {
					t.Fatalf("%q: %v", out, err)
				}
			}
			return o
		}
		result := drill(exitOK, "--identity", identity)
		has(t, result, map[string]any{"file": file, "ok": true, "problems": []string{}, "encrypted": true})
		if age, took := result["age_seconds"].(float64), result["verify_seconds"].(float64); age <= 0 || took <= 0 {
			t.Errorf("%v old, took %v", age, took)
		}
		has(t, drill(exitInternal, "--identity", identity, "--max-age", "1ns"), map[string]any{"ok": false})
		if _, errs := w.bare(exitForbidden, slices.Concat([]string{"backup", "verify", file}, w.scratch())...); !strings.Contains(errs, "--identity") {
			t.Errorf("without the key: %q", errs)
		}

		other := w.elsewhere()
		other.run(exitForbidden, "restore", file)
		other.run(exitOK, "restore", file, "--identity", identity)
		has(t, other.object("tenant", "show", id), map[string]any{"wallet": "1234.50", "name": "Adom Stores"})
		if _, errs := other.run(exitConflict, "restore", file, "--identity", identity); !strings.Contains(errs, "new, empty place") {
			t.Errorf("over a database: %q", errs)
		}
		w.run(exitConflict, "restore", file, "--identity", identity)
		has(t, other.object("tenant", "show", id), map[string]any{"wallet": "1234.50"})
	})
}

// Verification rejects a backup of books that do not balance, or a backup with a changed byte, with "Do not rely on this
// backup."
func TestDrill_failsForAWrongBackup(t *testing.T) {
	eachAlone(t, func(t *testing.T, w where) {
		t.Setenv(config.EnvMasterKey, strings.Repeat("ab", config.SecretBytes))
		folder := t.TempDir()
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "10", "--reason", "opening", "--reference", "slip-1")
		_, err := w.db.Exec(t.Context(), `UPDATE wallets SET balance = balance + 1 WHERE id = $1`, "wallet:"+id)
		if err != nil {
			t.Fatal(err)
		}
		file := w.object("backup", "create", "--folder", folder)["file"].(string)
		drill := slices.Concat([]string{"backup", "drill", "--folder", folder}, w.scratch())
		if out, errs := w.bare(exitInternal, drill...); !strings.Contains(out, id) || !strings.Contains(errs, "Do not rely on this backup") {
			t.Errorf("the books do not add up: %q, %q", out, errs)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, _ := w.bare(exitInternal, drill...); !strings.Contains(out, "SHA-256") {
			t.Errorf("a byte is wrong: %q", out)
		}
		w.bare(exitNotFound, "backup", "drill", "--folder", t.TempDir())
		w.bare(exitNotFound, "backup", "verify", filepath.Join(folder, "none.db"))
	})
}

func TestBackup_refusals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	nowhere := where{t: t, flags: []string{"--data", filepath.Join(t.TempDir(), "none")}}
	nowhere.run(exitUnavailable, "backup", "create", "--folder", folder)
	storage := config.Storage{Data: t.TempDir()}
	dbtest.File(t, storage.SQLite())
	w := where{t: t, flags: []string{"--data", storage.Data}}
	if _, errs := w.run(exitUsage, "backup", "create", "--folder", folder, "--recipient", "AGE-SECRET-KEY-1QQQ"); strings.Contains(errs, "QQQ") {
		t.Errorf("the message is %q", errs)
	}
	w.run(exitUsage, "backup", "create", "--folder", "")
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(exitUnavailable, "backup", "create", "--folder", file)
	w.run(exitOK, "backup", "create", "--folder", filepath.Join(folder, "b"))
	if entries, _ := os.ReadDir(folder); len(entries) != 2 {
		t.Errorf("in the folder: %v", entries)
	}
}

// A backup of another tool is recorded as the last one, and the audit log has it. An older backup does not replace it, and a backup
// from the future is refused.
func TestBackupRecord_otherTools(t *testing.T) {
	eachAlone(t, func(t *testing.T, w where) {
		record := func(name string, at time.Time) map[string]any {
			t.Helper()
			return w.object("backup", "record", name, "--tool", "pgBackRest", "--made-at", at.Format(time.RFC3339), "--bytes", "4711")
		}
		began := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
		has(t, record("20260303-020000F", began), map[string]any{"file": "pgBackRest: 20260303-020000F", "bytes": 4711, "newest": true})
		has(t, record("20260302-020000F", began.Add(-24*time.Hour)), map[string]any{"newest": false})
		last, found, err := backup.Last(t.Context(), w.db)
		if err != nil || !found || last.File != "pgBackRest: 20260303-020000F" || !last.MadeAt.Equal(began) || last.Bytes != 4711 {
			t.Errorf("the database remembers %+v, %v, %v", last, found, err)
		}
		if log := w.list("audit", "list", "--action", "backup.record"); len(log) != 2 {
			t.Errorf("the audit log has %v", log)
		}
		for _, bad := range [][]string{
			{"", "--tool", "WAL-G", "--made-at", began.Format(time.RFC3339)},
			{"a\nb", "--tool", "WAL-G", "--made-at", began.Format(time.RFC3339)},
			{"a", "--tool", strings.Repeat("a", 201), "--made-at", began.Format(time.RFC3339)},
			{"a", "--tool", "WAL-G", "--made-at", time.Now().Add(time.Hour).Format(time.RFC3339)},
			{"a", "--tool", "WAL-G", "--made-at", "0001-01-01T00:00:00Z"},
			{"a", "--tool", "WAL-G", "--made-at", began.Format(time.RFC3339), "--bytes=-1"},
			{"a", "--tool", "WAL-G"},
		} {
			w.run(exitUsage, append([]string{"backup", "record"}, bad...)...)
		}
		if now, _, _ := backup.Last(t.Context(), w.db); now != last {
			t.Errorf("a refused backup is remembered: %+v", now)
		}
	})
}
