package backup

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// firstSchema is the oldest schema that has the tables of backups.
const firstSchema = 13

// older creates a SQLite database of the first release that had backups.
func older(t *testing.T) source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "makola.db")
	raw, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string, args ...any) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL)`)
	all, err := db.KnownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all[:firstSchema] {
		text, err := os.ReadFile(filepath.Join("..", "db", "migrations", m.Name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		run(string(text))
		run(`INSERT INTO schema_migrations VALUES (?, ?, ?, 1)`, m.Number, m.Name, m.Checksum)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	o := db.Options{Path: path}
	return source{dbtest.OpenWith(t, o), o}
}

// A backup precedes a migration, so it has the old schema. It is restored with the old schema, and a drill migrates
// it to the new one.
func TestBackup_ofAnOlderSchema(t *testing.T) {
	t.Parallel()
	s := older(t)
	b, err := Create(t.Context(), s.db, s.options, CreateOptions{Folder: t.TempDir(), Version: "test", Clock: clock.Real()})
	if err != nil || b.Schema != firstSchema {
		t.Fatalf("schema %d, %v", b.Schema, err)
	}
	target := s.empty(t)
	if err := b.Restore(t.Context(), target, restoring()); err != nil {
		t.Fatal(err)
	}
	restored := dbtest.OpenWith(t, target)
	known, err := db.KnownSchema()
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := restored.PendingMigrations(t.Context()); err != nil || len(pending) != known-firstSchema {
		t.Errorf("%d migrations are to come, %v", len(pending), err)
	}
	v, err := b.Verify(t.Context(), VerifyOptions{RestoreOptions: restoring(), Folder: t.TempDir(), Check: func(ctx context.Context, d *db.DB) ([]string, error) {
		if pending, err := d.PendingMigrations(ctx); err != nil || len(pending) > 0 {
			return nil, fmt.Errorf("%d migrations are to come: %w", len(pending), err)
		}
		return nil, nil
	}})
	if err != nil || len(v.Problems) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
}
