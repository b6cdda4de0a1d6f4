package db_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// Damage finds a page that SQLite did not write.
func TestDamage_findsBadPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "makola.db")
	dbtest.File(t, path)
	look := func() []string {
		t.Helper()
		d, err := db.Open(t.Context(), db.Options{Path: path, MaxConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		found, err := d.Damage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := look(); len(found) > 0 {
		t.Errorf("a new file: %v", found)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The key of the first migration is in the index and in the table. The last copy is changed.
	at := bytes.LastIndex(text, []byte("0001_tenant"))
	const page = 4096
	copy(text[at/page*page:], []byte{13, 0, 0, 0xff, 0xff})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := look(); len(found) == 0 {
		t.Error("a page was overwritten and nothing was found")
	}
}

// Another session sees the exported snapshot of a transaction, without any later write.
func TestExport_snapshotStays(t *testing.T) {
	d, other := dbtest.Open(t, db.Postgres), ""
	err := d.ReadWhole(t.Context(), func(tx *db.Tx) error {
		snapshot, err := tx.Export()
		if err != nil || snapshot == "" {
			t.Errorf("%q, %v", snapshot, err)
		}
		_, err = tx.One(`SELECT current_setting('idle_in_transaction_session_timeout')`, nil, &other)
		return err
	})
	if err != nil || other != "0" {
		t.Errorf("it ends by itself after %q, %v", other, err)
	}
	err = d.Read(t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT current_setting('idle_in_transaction_session_timeout')`, nil, &other)
		return err
	})
	if err != nil || other == "0" {
		t.Errorf("other transactions end by themselves after %q, %v", other, err)
	}
}

// The reported size grows when rows are added.
func TestSize_grows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		size := func() int64 {
			bytes, err := d.Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return bytes
		}
		before := size()
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			for n := range 500 {
				if _, err := tx.Exec("INSERT INTO answers (tenant, idempotency_key, idempotency_hash, made, created_at) VALUES ('shop', $1, '', $2, 0)",
					fmt.Sprint(n), strings.Repeat("a text that takes room ", 50)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if after := size(); before <= 0 || after <= before {
			t.Errorf("%d bytes, then %d", before, after)
		}
	})
}
