package db_test

import (
	"errors"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

type item struct {
	id     string
	amount int64
	note   *string
	raw    []byte
}

func itemColumns() []db.Column[item] {
	return []db.Column[item]{
		{Name: "id", Text: func(i item) string { return i.id }},
		{Name: "amount", Int: func(i item) int64 { return i.amount }},
		{Name: "note", NullText: func(i item) *string { return i.note }},
		{Name: "raw", Blob: func(i item) []byte { return i.raw }},
	}
}

const sqlItems = `CREATE TABLE items (id TEXT PRIMARY KEY, amount INTEGER NOT NULL CHECK (amount >= 0), note TEXT, raw BLOB)`

func makeItems(t testing.TB, d *db.DB) {
	t.Helper()
	text := sqlItems
	if d.Engine() == db.Postgres {
		text = `CREATE TABLE items (id TEXT PRIMARY KEY, amount BIGINT NOT NULL CHECK (amount >= 0), note TEXT, raw BYTEA)`
	}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every type of argument is read back as it was written.
func TestWrite_readsBackEachType(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeItems(t, d)
		odd := "ɛ \"quoted\" \\ back\nline 'single'"
		var rows []item
		for i := range 21 { // more than two chunks, and the last one is not full
			rows = append(rows, item{id: string(rune('a' + i)), amount: int64(i) << 40})
		}
		rows[3].note, rows[20].note = &odd, &odd
		rows[5].raw = []byte{0, 1, 255}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			db.Insert(tx, "items", itemColumns(), rows)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		set := db.RowsOf(itemColumns(), rows)
		err = d.Read(t.Context(), func(tx *db.Tx) error {
			var n, sum int64
			if _, err := tx.One(`SELECT count(*), sum(i.amount) FROM items i JOIN rows($1) AS r ON r.id = i.id
				AND r.amount = i.amount AND r.note IS NOT DISTINCT FROM i.note AND r.raw IS NOT DISTINCT FROM i.raw WHERE i.id >= $2`,
				[]any{set, "b"}, &n, &sum); err != nil {
				return err
			}
			if n != 20 || sum != 210<<40 {
				t.Errorf("found %d rows with sum %d", n, sum)
			}
			var found int64
			if _, err := tx.One(`SELECT count(*) FROM items WHERE id IN (SELECT value FROM texts($1))`, []any{[]string{"a", "c", "zz", odd}}, &found); err != nil {
				return err
			}
			if found != 2 {
				t.Errorf("texts found %d", found)
			}
			var yes bool
			var big int64
			ok, err := tx.One(`SELECT EXISTS (SELECT 1 FROM items WHERE id = $1), greatest(CAST($2 AS INTEGER), 3) FROM items WHERE id = $1 FOR UPDATE`, []any{"a", 9}, &yes, &big)
			if err != nil {
				return err
			}
			if !ok || !yes || big != 9 {
				t.Errorf("got %v %v %d", ok, yes, big)
			}
			return nil
		})
		if d.Engine() == db.Postgres && err != nil {
			t.Log(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// If a deferred statement changes another number of rows than expected, the whole transaction fails.
func TestDefer_guardRefusesTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeItems(t, d)
		one := []item{{id: "x", amount: 5}}
		change := func(want int64) error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				tx.Defer(`INSERT INTO items (id, amount) VALUES ($1, $2)`, 1, "y", 1)
				tx.Defer(`UPDATE items SET amount = r.amount FROM rows($1) AS r WHERE items.id = r.id AND items.amount < $2`, want, db.RowsOf(itemColumns(), one), 100)
				return nil
			})
		}
		if err := change(1); !errors.Is(err, db.ErrGuard) {
			t.Fatalf("no row to update: %v", err)
		}
		if err := change(0); err != nil {
			t.Fatal(err)
		}
		if err := change(0); !errors.Is(err, db.ErrUnique) {
			t.Fatalf("the key is taken: %v", err)
		}
	})
}
