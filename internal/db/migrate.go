package db

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// migrationFiles holds the migrations: numbered files, written for SQLite and translated for PostgreSQL. The first
// line names the owner, the only package that writes these tables. A released file never changes; a later change is a
// new file.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// shipped are the migrations of this program.
func shipped() fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // cannot happen: the folder is embedded above
	}
	return files
}

// KnownMigrations lists the migrations of this program in order. It does not read which of them were applied.
func KnownMigrations() ([]Migration, error) { return known(shipped()) }

// Migration is one numbered change of the tables.
type Migration struct {
	Number    int
	Name      string    // the file's name without .sql
	Owner     string    // the package that writes its tables
	Checksum  string    // SHA-256 of the file, in hex
	AppliedAt time.Time // zero while it is pending
	text      string
}

// Pending reports whether the migration has not been applied.
func (m Migration) Pending() bool { return m.AppliedAt.IsZero() }

const (
	sqlMigrationTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
	number INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	checksum TEXT NOT NULL,
	applied_at INTEGER NOT NULL
);`
	sqlMigrationTableThere = `SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'schema_migrations'`
	sqlMigrationTableLite  = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'`
	// Another node's migration may hold the lock for longer than the limit of other locks.
	sqlMigrationPatience = `SET LOCAL lock_timeout = 0`
	sqlMigrationLimit    = `SET LOCAL lock_timeout TO DEFAULT`
	sqlMigrationLock     = `LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE`
	sqlMigrationsApplied = `SELECT number, name, checksum, applied_at FROM schema_migrations ORDER BY number`
	sqlMigrationApplied  = `INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, now_micros())`
)

// ErrChanged is returned if the file of a migration is not the file that was applied.
var ErrChanged = errors.New("db: a migration was changed after it was applied")

// known reads the embedded migrations, in order.
func known(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("db: list the migrations: %w", err)
	}
	sort.Strings(names)
	var list []Migration
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("db: read migration %s: %w", name, err)
		}
		m := Migration{Name: strings.TrimSuffix(name, ".sql"), text: string(text)}
		number, _, _ := strings.Cut(m.Name, "_")
		if m.Number, err = strconv.Atoi(number); err != nil || m.Number < 1 {
			return nil, fmt.Errorf("db: migration %s does not begin with its number", name)
		}
		if i > 0 && list[i-1].Number == m.Number {
			return nil, fmt.Errorf("db: two migrations have the number %d", m.Number)
		}
		first, _, _ := strings.Cut(m.text, "\n")
		owner, ok := strings.CutPrefix(strings.TrimSpace(first), "-- owner: ")
		if !ok || owner == "" {
			return nil, fmt.Errorf("db: migration %s does not name its owner in the first line", name)
		}
		m.Owner = owner
		sum := sha256.Sum256(text)
		m.Checksum = hex.EncodeToString(sum[:])
		list = append(list, m)
	}
	return list, nil
}

// MigrationStatus lists the migrations of this program and when they were applied. If a file has changed since, it
// returns ErrChanged.
func (d *DB) MigrationStatus(ctx context.Context) ([]Migration, error) {
	return d.migrationStatus(ctx, shipped())
}

func (d *DB) migrationStatus(ctx context.Context, files fs.FS) (list []Migration, err error) {
	if list, err = known(files); err != nil {
		return nil, err
	}
	there := sqlMigrationTableLite
	if d.engine == Postgres {
		there = sqlMigrationTableThere
	}
	err = d.Read(ctx, func(t *Tx) error {
		var one int64
		found, err := t.One(there, nil, &one)
		if err != nil || !found {
			return err
		}
		return applied(t, list)
	})
	return list, err
}

// applied sets the fields of migrations that are stored in schema_migrations. It ignores migrations of a newer
// program, because nodes of both versions run together.
func applied(t *Tx, list []Migration) error {
	byNumber := map[int]*Migration{}
	for i := range list {
		byNumber[list[i].Number] = &list[i]
	}
	return t.Query(sqlMigrationsApplied, nil, func(r *Row) error {
		var number int
		var name, checksum string
		var at time.Time
		if err := r.Scan(&number, &name, &checksum, &at); err != nil {
			return err
		}
		m := byNumber[number]
		if m == nil {
			return nil
		}
		if m.Checksum != checksum {
			return fmt.Errorf("%w: %s", ErrChanged, name)
		}
		m.AppliedAt = at
		return nil
	})
}

// PendingMigrations lists the migrations that Migrate would apply.
func (d *DB) PendingMigrations(ctx context.Context) ([]Migration, error) {
	list, err := d.MigrationStatus(ctx)
	return pending(list), err
}

func pending(list []Migration) []Migration {
	var open []Migration
	for _, m := range list {
		if m.Pending() {
			open = append(open, m)
		}
	}
	return open
}

// Migrate applies the pending migrations, each in a transaction of its own. A SQLite file with tables is first copied
// to NAME.before-NNNN in the same folder. Several nodes may call Migrate at once.
func (d *DB) Migrate(ctx context.Context) error { return d.migrate(ctx, shipped()) }

func (d *DB) migrate(ctx context.Context, files fs.FS) error {
	list, err := d.migrationStatus(ctx, files)
	if err != nil {
		return err
	}
	open := pending(list)
	if len(open) == 0 {
		return nil
	}
	if len(open) < len(list) && d.engine == SQLite {
		if err := d.backup(ctx, files, open[0]); err != nil {
			return fmt.Errorf("db: copy the database before migrating it: %w", err)
		}
	}
	if err := d.script(ctx, sqlMigrationTable); err != nil {
		return fmt.Errorf("db: make the table of migrations: %w", err)
	}
	for _, m := range open {
		if err := d.apply(ctx, m); err != nil {
			return fmt.Errorf("db: migration %s: %w", m.Name, err)
		}
	}
	return nil
}

// script runs DDL in a transaction. If two nodes create a table at once, PostgreSQL reports a conflict in its
// catalogue, even with IF NOT EXISTS. script then tries again and finds the table.
func (d *DB) script(ctx context.Context, text string) error {
	run := func(t *Tx) error { return d.opener.Classify(t.session.Script(t.ctx, text)) }
	err := d.Write(ctx, run)
	if errors.Is(err, ErrUnique) {
		err = d.Write(ctx, run)
	}
	return err
}

func (d *DB) apply(ctx context.Context, m Migration) error {
	landed := func(t *Tx) (bool, error) {
		now := []Migration{m}
		now[0].AppliedAt = time.Time{}
		err := applied(t, now)
		return !now[0].Pending(), err
	}
	return d.WriteRecognising(migrating(ctx), landed, func(t *Tx) error {
		if d.engine == Postgres {
			for _, sql := range []string{sqlMigrationPatience, sqlMigrationLock, sqlMigrationLimit} {
				if _, err := t.Exec(sql); err != nil {
					return err
				}
			}
		}
		done, err := landed(t)
		if err != nil || done { // another node applied the migration first
			return err
		}
		if err := d.opener.Classify(t.session.Script(t.ctx, m.text)); err != nil {
			return err
		}
		t.Defer(sqlMigrationApplied, 1, m.Number, m.Name, m.Checksum)
		return nil
	})
}

// backup copies a SQLite database into a file of the same folder before the migration next. The finished copy
// replaces an older one of that name. Another process may migrate at the same time. So the copy is kept only if next
// was still pending when the copy was made.
func (d *DB) backup(ctx context.Context, files fs.FS, next Migration) error {
	name := fmt.Sprintf("%s.before-%04d", d.path, next.Number)
	part, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }() // by then the file was renamed, or is useless
	if err := part.Close(); err != nil {
		return err
	}
	if err := d.SQLite().CopyInto(ctx, part.Name()); err != nil {
		return err
	}
	list, err := d.migrationStatus(ctx, files)
	if err != nil {
		return err
	}
	if open := pending(list); len(open) == 0 || open[0].Number != next.Number {
		return nil
	}
	return os.Rename(part.Name(), name)
}
