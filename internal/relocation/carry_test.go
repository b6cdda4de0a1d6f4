package relocation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

const carried = `CREATE TABLE carried (n INTEGER NOT NULL, name TEXT NOT NULL, note TEXT, sealed BLOB, raw BLOB NOT NULL, amount INTEGER, PRIMARY KEY (name, n))`

func exec(t *testing.T, d *db.DB, statements ...string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, text := range statements {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// carrying returns a SQLite database with more rows than one transaction copies, and an empty PostgreSQL database.
func carrying(t *testing.T, f *db.Faults) (from, to *db.DB) {
	t.Helper()
	from = dbtest.OpenWith(t, dbtest.Options(t, db.SQLite))
	to = dbtest.OpenWith(t, db.Options{URL: dbtest.EmptyURL(t), MaxConns: 4, Faults: f})
	exec(t, from, carried)
	exec(t, to, strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(carried, "TEXT", `TEXT COLLATE "C"`), "BLOB", "BYTEA"), "INTEGER", "BIGINT"))
	names := []string{"", "a", "A", "Ɛsi", "Zɔ", "ẞ", "😀", "a b", "a-b"}
	err := from.Write(t.Context(), func(tx *db.Tx) error {
		for i := range 1300 {
			var note, sealed, amount any
			if i%2 == 0 {
				note, sealed, amount = "", []byte{}, int64(i)<<40
			}
			if i%3 == 0 {
				note, sealed = fmt.Sprintf("'%d\n", i), []byte{0, 255, byte(i)}
			}
			tx.Defer(`INSERT INTO carried (n, name, note, sealed, raw, amount) VALUES ($1, $2, $3, $4, $5, $6)`, 1,
				i-600, names[i%len(names)], note, sealed, []byte(strings.Repeat("x", i%2)), amount)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return from, to
}

// unguarded is a guard that requires nothing of a transaction.
func unguarded(*db.Tx) {}

func agree(t *testing.T, from, to *db.DB, rows int64) {
	t.Helper()
	source, target, err := contentsOf(t.Context(), from, to, "carried")
	if err != nil || source != target || source.rows != rows {
		t.Fatalf("the source has %d rows (%x), the copy %d (%x): %v", source.rows, source.digest, target.rows, target.digest, err)
	}
}

func TestCarry_rowsAreEqual(t *testing.T) {
	t.Parallel()
	from, to := carrying(t, nil)
	told := 0
	for range 2 { // the second time everything is there already
		if err := carry(t.Context(), from, to, "carried", unguarded, func(n int) { told += n }); err != nil {
			t.Fatal(err)
		}
	}
	if told != 1300 {
		t.Errorf("progress was told %d rows", told)
	}
	agree(t, from, to, 1300)
	_, before, err := contentsOf(t.Context(), from, to, "carried")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		`UPDATE carried SET note = NULL WHERE n = -598`, // the note was empty
		`UPDATE carried SET amount = amount + 1 WHERE n = -596`,
		`DELETE FROM carried WHERE n = 699`,
	} {
		exec(t, to, change)
		_, after, err := contentsOf(t.Context(), from, to, "carried")
		if err != nil || after.digest == before.digest {
			t.Errorf("the digest is the same after %s, %v", change, err)
		}
		before = after
	}
}

// A COMMIT or its answer may be lost at any of the transactions. No row is lost or copied twice.
func TestCarry_resumesAfterInterruption(t *testing.T) {
	t.Parallel()
	for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter} {
		for nth := 1; nth <= 3; nth++ {
			var f db.Faults
			from, to := carrying(t, &f)
			f.At(db.BoundaryCommit, nth, fault)
			err := carry(t.Context(), from, to, "carried", unguarded, func(int) {})
			if err != nil {
				err = carry(t.Context(), from, to, "carried", unguarded, func(int) {})
			}
			if err != nil {
				t.Fatalf("fault %v at COMMIT %d: %v", fault, nth, err)
			}
			agree(t, from, to, 1300)
		}
	}
}

func TestCarry_everyTable(t *testing.T) {
	t.Parallel()
	from, to := dbtest.Open(t, db.SQLite), dbtest.Open(t, db.Postgres)
	var tables []string
	if err := from.Read(t.Context(), func(tx *db.Tx) (err error) { tables, err = tx.Tables(); return err }); err != nil || len(tables) < 60 {
		t.Fatal(len(tables), err)
	}
	for _, table := range tables {
		if table == "schema_migrations" {
			continue // each engine has a table of its own
		}
		if err := carry(t.Context(), from, to, table, unguarded, func(int) { t.Errorf("%s has rows in a new database", table) }); err != nil {
			t.Error(err)
		}
	}
}
