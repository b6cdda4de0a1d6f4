package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A disk counts as short below its reserve, and for a minute after the database reported that it is full.
func TestDisk_shortBelowReserve(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "makola.db")
	for reserve, want := range map[int64]bool{0: false, 1: false, 1 << 60: true} {
		k := newDisk(path, reserve)
		if got := k.short(); got != want || k.full() {
			t.Errorf("with a reserve of %d: short %v, full %v", reserve, got, k.full())
		}
	}
	k := newDisk("", 1<<60)
	k.note(errors.New("another"))
	k.note(&pgconn.PgError{Code: "53300"})
	if k.short() {
		t.Error("a disk of somebody else is short")
	}
	k.note(fmt.Errorf("%w: %w", ErrUnavailable, &pgconn.PgError{Code: "53100"}))
	if !k.short() || !k.full() {
		t.Error("a full disk is not short")
	}
	k.fullAt.Add(-int64(fullFor + time.Second))
	if k.short() || k.full() {
		t.Error("it stays short for ever")
	}
}

// SQLite's error for a full disk marks the disk as full. Reads still work.
func TestDisk_fullSQLiteIsNoticed(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "makola.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Write(t.Context(), func(tx *Tx) error {
		for _, sql := range []string{"CREATE TABLE big (x TEXT)", "PRAGMA max_page_count = 3", "INSERT INTO big VALUES (hex(zeroblob(100000)))"} {
			if _, err := tx.Exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, ErrUnavailable) || !d.Short() {
		t.Errorf("%v, short %v", err, d.Short())
	}
	if err := d.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
