package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

func openLite(t *testing.T, path string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{Path: path, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

const sqlBulk = `CREATE TABLE bulk (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT`

// The size of the log stays bounded, even if there is a reader at every moment.
func TestLog_staysBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "makola.db")
	d := openLite(t, path)
	const limit = 1 << 20
	d.SQLite().BoundLog(limit, time.Hour) // so long that readers on a busy machine do not count as long ones
	must := func(fn func(tx *db.Tx) error) {
		if err := d.Write(context.Background(), fn); err != nil {
			t.Error(err)
		}
	}
	must(func(tx *db.Tx) error {
		_, err := tx.Exec(sqlBulk)
		return err
	})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				err := d.Read(context.Background(), func(tx *db.Tx) error {
					for range 20 { // one snapshot that lasts for some time
						var n int64
						if _, err := tx.One(`SELECT count(*) FROM bulk WHERE id < 50`, nil, &n); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	row := strings.Repeat("x", 25000)
	largest := int64(0)
	for i := range 600 { // some 20 MB of log
		must(func(tx *db.Tx) error {
			tx.Defer(`INSERT INTO bulk (id, text) VALUES ($1, $2)`, 1, i, row)
			return nil
		})
		if info, err := os.Stat(path + "-wal"); err == nil {
			largest = max(largest, info.Size())
		}
	}
	stop.Store(true)
	wg.Wait()
	if largest > 8*limit || largest < limit/2 {
		t.Errorf("the log grew to %d bytes, the limit is %d", largest, limit)
	}
}

// A second process (a command while the server runs) writes the same file.
func TestWrite_twoProcessesShareFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "makola.db")
	first, second := openLite(t, path), openLite(t, path)
	err := first.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(sqlBulk)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n, d := range []*db.DB{first, second} {
		wg.Go(func() {
			for i := range 50 {
				err := d.Write(context.Background(), func(tx *db.Tx) error {
					var count int64
					// The transaction reads and then writes. If its lock were deferred, two writers would fail here.
					if _, err := tx.One(`SELECT count(*) FROM bulk`, nil, &count); err != nil {
						return err
					}
					tx.Defer(`INSERT INTO bulk (id, text) VALUES ($1, 'x')`, 1, 1000*n+i)
					return nil
				})
				if err != nil {
					t.Errorf("process %d: %v", n, err)
				}
			}
		})
	}
	wg.Wait()
	var count int64
	err = second.Read(t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT count(*) FROM bulk`, nil, &count)
		return err
	})
	if err != nil || count != 100 {
		t.Errorf("%d rows: %v", count, err)
	}
}

// Every connection has our pragmas.
func TestPragmas_onEveryConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "makola.db")
	d := openLite(t, path)
	check := func(tx *db.Tx) error {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
			var got string
			if _, err := tx.One("PRAGMA "+pragma, nil, &got); err != nil {
				return err
			}
			if got != want {
				t.Errorf("%s is %s", pragma, got)
			}
		}
		return nil
	}
	if err := errors.Join(d.Write(t.Context(), check), d.Read(t.Context(), check), d.ReadSnapshot(t.Context(), check), d.ReadWhole(t.Context(), check)); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(context.Context, func(*db.Tx) error) error{"Read": d.Read, "ReadWhole": d.ReadWhole} {
		var sorts string
		err := read(t.Context(), func(tx *db.Tx) error { _, err := tx.One("PRAGMA temp_store", nil, &sorts); return err })
		if err != nil || sorts != "1" {
			t.Errorf("%s sorts in memory, however much it is: %s, %v", name, sorts, err)
		}
	}
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		return tx.Query(`CREATE TABLE sneaky (id TEXT)`, nil, func(*db.Row) error { return nil })
	})
	if err == nil {
		t.Error("a reading connection wrote")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the database: %v, %v", info, err)
	}
}

// Each new connection parses the schema, so reads that follow one another share one.
func TestReads_openNoMoreConnectionsThanNeeded(t *testing.T) {
	d := openLite(t, filepath.Join(t.TempDir(), "makola.db"))
	var read func(nested int)
	read = func(nested int) {
		t.Helper()
		if err := d.Read(t.Context(), func(tx *db.Tx) error {
			var n int64
			if _, err := tx.One(`SELECT count(*) FROM sqlite_master`, nil, &n); err != nil {
				return err
			}
			if nested > 0 {
				read(nested - 1)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ nested, open int }{{0, 2}, {2, 4}, {0, 4}} { // one of them writes
		for range 9 {
			read(step.nested)
		}
		if got := d.SQLite().Open(); got != step.open {
			t.Errorf("after reads within %d others %d connections are open, expected %d", step.nested, got, step.open)
		}
	}
}
