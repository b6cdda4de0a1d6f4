package audit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// ring returns master keys. All bytes of a key are the same number.
func ring(t *testing.T, numbers ...byte) config.Secret {
	t.Helper()
	var keys []string
	for _, n := range numbers {
		keys = append(keys, fmt.Sprintf("%x", bytes.Repeat([]byte{n}, config.SecretBytes)))
	}
	s, err := config.ParseSecret(strings.Join(keys, " "))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func noneOlder(*db.Tx) (bool, error) { return false, nil }

// keyed runs fn with a chain in which links 1 to 3 have no key, link 4 records the change to the key, and links 5 to
// 11 have the key.
func keyed(t *testing.T, fn func(f *fixture)) {
	each(t, 3, func(f *fixture) {
		f.startKey()
		f.write(7)
		f.link(7)
		if v := f.verify(Head{}); !v.OK() || v.Links != 11 || v.Keyed != 4 {
			f.t.Fatalf("%+v", v)
		}
		fn(f)
	})
}

func (f *fixture) startKey() {
	f.t.Helper()
	if done, err := f.StartKey(f.t.Context(), noneOlder); err != nil || !done {
		f.t.Fatal(done, err)
	}
}

// relink makes the links from a number on again, as anybody can who has the database but no key.
func (f *fixture) relink(from int64) {
	f.t.Helper()
	write(f.t, f.db, func(tx *db.Tx) error {
		var h Head
		if _, err := tx.One("SELECT number, hash FROM audit_chain WHERE number = $1", []any{from - 1}, &h.Number, &h.Hash); err != nil {
			return err
		}
		var links []link
		err := tx.Query("SELECT "+entryColumns+`, c.linked_at FROM audit_log a JOIN audit_chain c ON c.tenant = a.tenant AND c.entry = a.id
			WHERE c.number >= $1 ORDER BY c.number`, []any{from}, func(r *db.Row) error {
			var e Entry
			l := link{number: h.Number + 1}
			err := scan(r, &e, &l.at)
			l.hash = h.unkeyed(e, l.at)
			h = Head{l.number, l.hash}
			links = append(links, l)
			return err
		})
		for _, l := range links {
			tx.Defer("UPDATE audit_chain SET hash = $2 WHERE number = $1", 1, l.number, l.hash)
		}
		return err
	})
}

// A person with only the database cannot hide a change of the log. Verify names the change.
func TestVerify_findsForgedChain(t *testing.T) {
	const (
		seventh = ` WHERE id = (SELECT entry FROM audit_chain WHERE number = 7)`
		last    = ` WHERE id = (SELECT entry FROM audit_chain WHERE number = 11)`
		put     = "INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details, linked) VALUES ('', 'x', 5, 'a', 'b', '', '', '{}', 1)"
		shift   = "UPDATE audit_chain SET number = number + 1000 WHERE number > 7 AND number < 100"
	)
	sql := func(texts ...string) func(f *fixture) {
		return func(f *fixture) {
			for _, text := range texts {
				f.alter(text)
			}
		}
	}
	for name, c := range map[string]struct {
		attack func(f *fixture)
		kind   Kind
		number int64
	}{
		"changed":            {sql("UPDATE audit_log SET actor = 'kofi'" + seventh), Changed, 7},
		"removed":            {sql("DELETE FROM audit_log" + seventh), Removed, 7},
		"both removed":       {sql("DELETE FROM audit_log"+seventh, "DELETE FROM audit_chain WHERE number = 7"), Removed, 8},
		"moved up":           {sql("DELETE FROM audit_log"+seventh, "DELETE FROM audit_chain WHERE number = 7", shift, "UPDATE audit_chain SET number = number - 1001 WHERE number BETWEEN 1000 AND 2000"), Reordered, 7},
		"inserted":           {sql(put, shift, "UPDATE audit_chain SET number = number - 999 WHERE number BETWEEN 1000 AND 2000", "INSERT INTO audit_chain (number, tenant, entry, linked_at, hash) VALUES (8, '', 'x', 5, '"+strings.Repeat("0", 64)+"')"), Inserted, 8},
		"inserted last":      {sql(put, "INSERT INTO audit_chain (number, tenant, entry, linked_at, hash) VALUES (12, '', 'x', 5, '"+strings.Repeat("0", 64)+"')"), Inserted, 12},
		"inserted, unlinked": {sql(put), Inserted, 0},
		"links exchanged": {sql("UPDATE audit_chain SET number = 1000 WHERE number = 7", "UPDATE audit_chain SET number = 7 WHERE number = 8",
			"UPDATE audit_chain SET number = 8 WHERE number = 1000"), Reordered, 7},
		"entries exchanged": {sql("UPDATE audit_chain SET entry = 'y' WHERE number = 7", "UPDATE audit_chain SET entry = (SELECT entry FROM audit_chain WHERE number = 10), tenant = (SELECT tenant FROM audit_chain WHERE number = 10) || '+' WHERE number = 7",
			"UPDATE audit_chain SET entry = (SELECT id FROM audit_log a WHERE NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.entry = a.id)), tenant = (SELECT tenant FROM audit_log a WHERE NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.entry = a.id)) WHERE number = 10",
			"UPDATE audit_chain SET tenant = (SELECT tenant FROM audit_log a WHERE a.id = audit_chain.entry) WHERE number = 7"), Reordered, 7},
		"truncated": {sql("DELETE FROM audit_log"+last, "DELETE FROM audit_chain WHERE number = 11"), Truncated, 11},
		"truncated with its head": {sql("DELETE FROM audit_log"+last, "DELETE FROM audit_chain WHERE number = 11",
			"UPDATE audit_head SET number = 10, hash = (SELECT hash FROM audit_chain WHERE number = 10)"), Truncated, 0},
		"truncated without a head": {sql("DELETE FROM audit_log"+last, "DELETE FROM audit_chain WHERE number = 11", "DELETE FROM audit_head"), Truncated, 0},
		"relinked": {func(f *fixture) {
			f.alter("UPDATE audit_log SET actor = 'kofi'" + seventh)
			f.relink(7)
		}, Relinked, 7},
		"relinked from the start": {func(f *fixture) {
			f.alter("UPDATE audit_log SET actor = 'kofi' WHERE id = (SELECT entry FROM audit_chain WHERE number = 2)")
			f.relink(1)
		}, Relinked, 3},
		"the last link made anew": {func(f *fixture) {
			f.alter("UPDATE audit_log SET actor = 'kofi'" + last)
			f.relink(11)
		}, Relinked, 11},
		"unkeyed after the changeover": {func(f *fixture) {
			f.write(1)
			f.alter("INSERT INTO audit_chain (number, tenant, entry, linked_at, hash) SELECT 12, tenant, id, at, '" + strings.Repeat("0", 64) + "' FROM audit_log WHERE linked = 0")
			f.alter("UPDATE audit_log SET linked = 1 WHERE linked = 0")
			f.relink(12)
		}, Inserted, 12},
		"the key removed":   {sql("DELETE FROM audit_key"), Removed, 0},
		"the fence removed": {sql("DELETE FROM audit_chain WHERE number > 1000"), Removed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			keyed(t, func(f *fixture) {
				c.attack(f)
				v := f.verify(Head{})
				if !slices.ContainsFunc(v.Faults, func(x Fault) bool { return x.Kind == c.kind && x.Number == c.number }) {
					f.t.Fatalf("%s at %d is not among %+v", c.kind, c.number, v.Faults)
				}
				if name == "the key removed" {
					return
				}
				f.write(1)
				if _, err := f.Link(f.t.Context()); err != nil {
					f.t.Fatal(err)
				}
				if v := f.verify(Head{}); v.OK() || v.Unlinked > 1 {
					f.t.Fatalf("the next link hides it: %+v", v)
				}
			})
		})
	}
}

// Links from before a restore have the right key. If they replace the links that were made after the restore, the
// next links do not fit them.
func TestVerify_linksOfAnotherLife(t *testing.T) {
	keyed(t, func(f *fixture) {
		run := func(texts ...string) {
			f.t.Helper()
			write(f.t, f.db, func(tx *db.Tx) error {
				for _, text := range texts {
					if _, err := tx.Exec(text); err != nil {
						return fmt.Errorf("%s: %w", text, err)
					}
				}
				return nil
			})
		}
		run("CREATE TABLE kept_chain AS SELECT * FROM audit_chain", "CREATE TABLE kept_log AS SELECT * FROM audit_log")
		write(f.t, f.db, func(tx *db.Tx) error { // the backup ends with link 9
			_, err := tx.Exec("DELETE FROM audit_log WHERE id IN (SELECT entry FROM audit_chain WHERE number IN (10, 11))")
			if err == nil {
				_, err = tx.Exec("DELETE FROM audit_chain WHERE number IN (10, 11)")
			}
			if err != nil {
				return err
			}
			k, err := f.key(tx)
			if err != nil {
				return err
			}
			var h Head
			if _, err := tx.One("SELECT number, hash FROM audit_chain WHERE number = 9", nil, &h.Number, &h.Hash); err != nil {
				return err
			}
			_, err = tx.Exec("UPDATE audit_head SET number = $1, hash = $2, mac = $3", h.Number, h.Hash, k.seal(h))
			return err
		})
		f.write(3)
		f.link(3)
		if v := f.verify(Head{}); !v.OK() {
			f.t.Fatalf("the second life: %+v", v)
		}
		run("DELETE FROM audit_log WHERE id = (SELECT entry FROM audit_chain WHERE number = 10)", "DELETE FROM audit_chain WHERE number = 10",
			"INSERT INTO audit_log SELECT * FROM kept_log WHERE id = (SELECT entry FROM kept_chain WHERE number = 10)",
			"INSERT INTO audit_chain SELECT * FROM kept_chain WHERE number = 10")
		if v := f.verify(Head{}); v.OK() {
			f.t.Fatalf("a link of the first life passes in the second: %+v", v)
		}
		run("DROP TABLE kept_chain", "DROP TABLE kept_log") // another test uses the database again
	})
}

// The key is made only when no older node is alive. After that, an older node can link nothing.
func TestStartKey_waitsForOlderNodes(t *testing.T) {
	each(t, 3, func(f *fixture) {
		older := true
		wait := func(*db.Tx) (bool, error) { return older, nil }
		if done, err := f.StartKey(f.t.Context(), wait); done || err != nil {
			f.t.Fatal(done, err)
		}
		f.write(1)
		f.link(1)
		older = false
		for range 2 {
			if done, err := f.StartKey(f.t.Context(), wait); !done || err != nil {
				f.t.Fatal(done, err)
			}
		}
		if v := f.verify(Head{}); !v.OK() || v.Keyed != 5 || v.Links != 5 {
			f.t.Fatalf("%+v", v)
		}
		err := f.db.Write(f.t.Context(), func(tx *db.Tx) error { // as the previous release makes a link
			var h Head
			if _, err := tx.One("SELECT number, hash FROM audit_chain ORDER BY number DESC LIMIT 1", nil, &h.Number, &h.Hash); err != nil {
				return err
			}
			tx.Defer("INSERT INTO audit_chain (number, tenant, entry, linked_at, hash) VALUES ($1, '', 'old', 5, $2)", 1, h.Number+1, strings.Repeat("0", 64))
			return nil
		})
		if err == nil {
			f.t.Fatal("a node of the release before linked an entry without the key")
		}
	})
}

// If a node makes a link without a key while the key is made, one of the two fails.
func TestStartKey_besideAnOlderNode(t *testing.T) {
	each(t, 3, func(f *fixture) {
		f.write(1)
		_, err := f.StartKey(f.t.Context(), func(*db.Tx) (bool, error) {
			if f.db.Engine() == db.SQLite { // SQLite has only one writing transaction at a time
				return false, nil
			}
			_, err := New(f.db, f.clock).Link(context.WithoutCancel(f.t.Context()))
			return false, err
		})
		if err != nil {
			f.t.Log(err)
			f.startKey()
		}
		if _, err := f.Link(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if v := f.verify(Head{}); !v.OK() || v.Keyed == 0 {
			f.t.Fatalf("%+v", v)
		}
	})
}

// A process without the master key reports how many links it could not check.
func TestVerify_withoutTheMasterKey(t *testing.T) {
	keyed(t, func(f *fixture) {
		v, err := New(f.db, f.clock).Verify(f.t.Context(), Head{})
		if err != nil || v.OK() || v.Unchecked != 8 || v.FaultCount != 0 || v.Keyed != 4 || v.Head.Number != 11 {
			f.t.Fatalf("%+v, %v", v, err)
		}
		f.write(1)
		if n, err := New(f.db, f.clock).Link(f.t.Context()); err == nil {
			f.t.Fatalf("%d entries were linked without the key", n)
		}
	})
}

// When the chain's key is sealed under another master key, the key itself stays the same.
func TestReseal_theChainsKey(t *testing.T) {
	keyed(t, func(f *fixture) {
		before, both, after := ring(f.t, 1), ring(f.t, 2, 1), ring(f.t, 2)
		log := New(f.db, f.clock).Keyed(both)
		for _, want := range []int64{1, 0} {
			moved := int64(0)
			if err := log.Reseal(f.t.Context(), func(n int64) { moved += n }); err != nil || moved != want {
				f.t.Fatal(moved, err)
			}
		}
		if under, err := log.SealedUnder(f.t.Context()); err != nil || under[both.Active()] != 1 || len(under) != 1 {
			f.t.Fatal(under, err)
		}
		if _, err := New(f.db, f.clock).Keyed(before).Verify(f.t.Context(), Head{}); err == nil {
			f.t.Fatal("the former master key opens it")
		}
		only := New(f.db, f.clock).Keyed(after.WithReference(before))
		if v, err := only.Verify(f.t.Context(), Head{}); err != nil || !v.OK() || v.Links != 11 {
			f.t.Fatalf("%+v, %v", v, err)
		}
	})
}

// A running node that has seen the key makes no link without it, even if every trace of the key is removed.
func TestKeep_neverGoesBackToNoKey(t *testing.T) {
	each(t, 2, func(f *fixture) {
		ctx, stop := context.WithCancel(f.t.Context())
		said := make(chan string, 100)
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Keep(ctx, slog.New(slog.NewTextHandler(lines(said), nil)), noneOlder)
		}()
		clocktest.Await(f.t, "the key", func() bool { return f.verify(Head{}).Keyed > 0 })
		write(f.t, f.db, func(tx *db.Tx) error {
			for _, sql := range []string{"DELETE FROM audit_key", "DELETE FROM audit_head", "DELETE FROM audit_chain", "UPDATE audit_log SET linked = 0"} {
				tx.Defer(sql, -1)
			}
			return nil
		})
		for line := range said {
			if strings.Contains(line, "the key of the chain was removed") {
				break
			}
		}
		stop()
		<-done
		if v := f.verify(Head{}); v.Links != 0 {
			f.t.Fatalf("%+v", v)
		}
	})
}

// lines is a log writer that sends each line to a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
