package db

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func files(texts map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range texts {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

const (
	firstTable  = "-- owner: one\nCREATE TABLE one (id TEXT PRIMARY KEY, n INTEGER NOT NULL, raw BLOB) STRICT;\nCREATE INDEX one_n ON one (n);\n-- postgres: ALTER TABLE one SET (fillfactor = 50);\n"
	secondTable = "-- owner: two\nCREATE TABLE two (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;\n"
)

// openEach runs fn for each engine. open opens the same initially empty database, as often as the test calls it.
func openEach(t *testing.T, fn func(t *testing.T, open func() *DB)) {
	run := func(name string, options Options) {
		t.Run(name, func(t *testing.T) {
			fn(t, func() *DB {
				d, err := Open(t.Context(), options)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = d.Close() })
				return d
			})
		})
	}
	run("SQLite", Options{Path: filepath.Join(t.TempDir(), "a folder", "ma?ko#la%20.db")})
	if !testing.Short() {
		run("PostgreSQL", Options{URL: emptyURL(t), MaxConns: 4})
	}
}

func (d *DB) names(t *testing.T, list []Migration) string {
	t.Helper()
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

// Migrations apply once, in order, and only forward.
func TestMigrate_forwardOnly(t *testing.T) {
	openEach(t, func(t *testing.T, open func() *DB) {
		d := open()
		first := files(map[string]string{"0001_one.sql": firstTable})
		status, err := d.migrationStatus(t.Context(), first)
		if err != nil || len(status) != 1 || !status[0].Pending() || status[0].Owner != "one" {
			t.Fatalf("before: %+v, %v", status, err)
		}
		if err := d.migrate(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		both := files(map[string]string{"0001_one.sql": firstTable, "0002_two.sql": secondTable})
		status, err = d.migrationStatus(t.Context(), both)
		if err != nil || d.names(t, pending(status)) != "0002_two" {
			t.Fatalf("between: %+v, %v", status, err)
		}
		if err := d.migrate(t.Context(), both); err != nil {
			t.Fatal(err)
		}
		// An older program has no migration to apply if the tables are newer.
		if err := d.migrate(t.Context(), first); err != nil {
			t.Fatalf("an older program: %v", err)
		}
		changed := files(map[string]string{"0001_one.sql": firstTable + "-- a comment\n", "0002_two.sql": secondTable})
		if err := d.migrate(t.Context(), changed); !errors.Is(err, ErrChanged) {
			t.Fatalf("a changed file: %v", err)
		}
	})
}

// A failed migration is rolled back as a whole.
func TestMigrate_failureIsRolledBack(t *testing.T) {
	openEach(t, func(t *testing.T, open func() *DB) {
		d := open()
		broken := files(map[string]string{"0001_one.sql": firstTable, "0002_two.sql": secondTable + "CREATE TABLE nonsense (;"})
		if err := d.migrate(t.Context(), broken); err == nil {
			t.Fatal("no error")
		}
		mended := files(map[string]string{"0001_one.sql": firstTable, "0002_two.sql": secondTable})
		status, err := d.migrationStatus(t.Context(), mended)
		if err != nil || d.names(t, pending(status)) != "0002_two" {
			t.Fatalf("after the break: %+v, %v", status, err)
		}
		if err := d.migrate(t.Context(), mended); err != nil {
			t.Fatal(err)
		}
	})
}

// A migration may take longer than any other transaction: an index on a large table does. A statement of other work ends after five
// seconds.
func TestMigrate_takesItsTime(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{URL: emptyURL(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	slow := files(map[string]string{"0001_one.sql": firstTable + "-- postgres: SELECT pg_sleep(5.2);\n" +
		"-- postgres: SELECT 1 / (CASE WHEN current_setting('lock_timeout') = '15s' THEN 1 ELSE 0 END);\n"})
	if err := d.migrate(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	status, err := d.migrationStatus(t.Context(), slow)
	if err != nil || len(pending(status)) != 0 {
		t.Errorf("after: %+v, %v", status, err)
	}
}

// Several nodes may migrate the same database at once.
func TestMigrate_severalNodesAtOnce(t *testing.T) {
	openEach(t, func(t *testing.T, open func() *DB) {
		all := files(map[string]string{"0001_one.sql": firstTable, "0002_two.sql": secondTable})
		var wg sync.WaitGroup
		for range 4 {
			d := open()
			wg.Go(func() {
				if err := d.migrate(context.Background(), all); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		status, err := open().migrationStatus(t.Context(), all)
		if err != nil || len(pending(status)) != 0 {
			t.Errorf("after: %+v, %v", status, err)
		}
	})
}

// A SQLite file with tables is copied before its schema changes, and the copy is complete.
func TestMigrate_copiesSQLiteFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "makola.db")
	d, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	first := files(map[string]string{"0001_one.sql": firstTable})
	if err := d.migrate(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(path + ".before-*"); len(found) != 0 {
		t.Errorf("an empty file was copied: %v", found)
	}
	err = d.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO one (id, n) VALUES ('kept', 7)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".before-0002", []byte("half of an earlier try"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := files(map[string]string{"0001_one.sql": firstTable, "0002_two.sql": secondTable})
	if err := d.migrate(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(path + ".before-*"); len(found) != 1 {
		t.Errorf("beside the file: %v", found)
	}
	kept, err := Open(t.Context(), Options{Path: path + ".before-0002"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	var n int64
	err = kept.Read(t.Context(), func(tx *Tx) error {
		_, err := tx.One(`SELECT n FROM one WHERE id = 'kept'`, nil, &n)
		return err
	})
	if err != nil || n != 7 {
		t.Errorf("the copy holds %d: %v", n, err)
	}
	status, err := kept.migrationStatus(t.Context(), both)
	if err != nil || len(pending(status)) != 1 {
		t.Errorf("the copy: %+v, %v", status, err)
	}
	if info, err := os.Stat(path + ".before-0002"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy can be read by others: %v, %v", info, err)
	}
}

// Migrations are in order, and each table has one owner.
func TestMigrations_areInOrder(t *testing.T) {
	for name, wrong := range map[string]map[string]string{
		"no owner":     {"0001_one.sql": "CREATE TABLE one (id TEXT);"},
		"no number":    {"one.sql": firstTable},
		"number twice": {"0001_one.sql": firstTable, "0001_two.sql": secondTable},
	} {
		if _, err := known(files(wrong)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	list, err := KnownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)
	writes := map[string]string{}
	for _, m := range list {
		for _, name := range table.FindAllStringSubmatch(m.text, -1) {
			if other, taken := writes[name[1]]; taken && other != m.Owner { // the owner of a table may create it again
				t.Errorf("the table %s belongs to %s and to %s", name[1], other, m.Owner)
			}
			writes[name[1]] = m.Owner
		}
	}
}

// A second server cannot lock the same folder.
func TestLockFolder_oneServerOnly(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	unlock, err := LockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockFolder(folder); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second server: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	unlock, err = LockFolder(folder)
	if err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	_ = unlock()
}

// A closed database returns ErrUnavailable.
func TestClose_thenUnavailable(t *testing.T) {
	openEach(t, func(t *testing.T, open func() *DB) {
		d := open()
		if err := d.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
		if err := d.Write(t.Context(), func(*Tx) error { return nil }); !errors.Is(err, ErrUnavailable) {
			t.Errorf("closed: %v", err)
		}
		if err := d.Ping(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("closed: %v", err)
		}
	})
}
