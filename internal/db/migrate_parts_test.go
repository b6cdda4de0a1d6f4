package db

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// some returns only the shipped migrations with these names. A database may have been at that version before the
// others came.
func some(t *testing.T, names ...string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := fs.ReadFile(shipped(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return files
}

// The migration gives the parts of messages another key and keeps every row.
func TestMigration_keepsParts(t *testing.T) {
	openEach(t, func(t *testing.T, open func() *DB) {
		d := open()
		if err := d.migrate(t.Context(), some(t, "0008_messaging.sql")); err != nil {
			t.Fatal(err)
		}
		const insert = `INSERT INTO parts (upstream_id, tenant, campaign, message, part, recipient, state, submitted_at)
			VALUES ($1, 'shop', 'c', $2, $3, '233240000000', $4, 5)`
		if err := d.Write(t.Context(), func(tx *Tx) error {
			tx.Defer(insert, 1, "a", 0, 1, "open")
			tx.Defer(insert, 1, "", 0, 2, "rejected") // ids may be the same
			tx.Defer(insert, 1, "", 1, 2, "rejected")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all, whole int64
		if err := d.Read(t.Context(), func(tx *Tx) error {
			_, err := tx.One(`SELECT count(*), count(*) FILTER (WHERE upstream_id = 'a' AND tenant = 'shop' AND campaign = 'c' AND message = 0 AND part = 1
				AND recipient = '233240000000' AND state = 'open' AND submitted_at = 5) FROM parts`, nil, &all, &whole)
			return err
		}); err != nil || all != 3 || whole != 1 {
			t.Errorf("%d parts are left, %d of them as they were: %v", all, whole, err)
		}
	})
}
