package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// source is a database with rows to back up.
type source struct {
	db      *db.DB
	options db.Options
}

func each(t *testing.T, fn func(t *testing.T, s source)) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			o := dbtest.Options(t, e)
			s := source{db: dbtest.OpenWith(t, o), options: o}
			s.write(t, `INSERT INTO wallets (id, asset, floor, balance, sequence, at) VALUES ('wallet:ama', 'GHS', 0, 1500, 1, 7)`)
			s.write(t, `INSERT INTO job_holds (name, owner) VALUES ('a', ''), ('b', '')`)
			fn(t, s)
		})
	}
}

func (s source) write(t testing.TB, text string) {
	t.Helper()
	_, err := s.db.Exec(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
}

// empty returns the options of an empty database of the same engine, for a restore.
func (s source) empty(t testing.TB) db.Options {
	t.Helper()
	if s.db.Engine() == db.Postgres {
		return db.Options{URL: dbtest.EmptyURL(t), MaxConns: 2}
	}
	return db.Options{Path: filepath.Join(t.TempDir(), "new", "makola.db")}
}

func (s source) backup(t testing.TB, recipients ...age.Recipient) Backup {
	t.Helper()
	b, err := Create(t.Context(), s.db, s.options, CreateOptions{Folder: filepath.Join(t.TempDir(), "backups"), Recipients: recipients,
		Version: "test", Clock: clock.Real()})
	if err != nil {
		t.Fatalf("make a backup: %v", err)
	}
	return b
}

func restoring(keys ...age.Identity) RestoreOptions {
	return RestoreOptions{Identities: keys, Clock: clock.Real()}
}

func newKey(t testing.TB) *age.X25519Identity {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// nothingThere fails the test if a refused or failed restore left a database.
func nothingThere(t testing.TB, target db.Options) {
	t.Helper()
	if target.URL == "" {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(target.Path), "*"))
		hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(target.Path), workshopPattern))
		left = slices.DeleteFunc(append(left, hidden...), func(name string) bool { return filepath.Base(name) == "makola.lock" })
		if len(left) > 0 {
			t.Errorf("the restore has left %v", left)
		}
		return
	}
	err := look(t.Context(), target, func(tx *db.Tx) error {
		tables, err := tx.Tables()
		if err == nil && len(tables) > 0 {
			err = fmt.Errorf("the restore has left %v", tables)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// refused fails the test unless err is the problem with this code.
func refused(t testing.TB, err error, code string) {
	t.Helper()
	if p := problem.From(err); err == nil || p.Code != code {
		t.Errorf("%v (%s), want the refusal %s", err, problem.From(err).Code, code)
	}
}

func TestRestore_equalsTheOriginal(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		key := newKey(t)
		for name, recipients := range map[string][]age.Recipient{"clear": nil, "encrypted": {key.Recipient()}} {
			t.Run(name, func(t *testing.T) {
				before := time.Now()
				made := s.backup(t, recipients...)
				s.write(t, `DELETE FROM job_holds`) // a change after the backup
				defer s.write(t, `INSERT INTO job_holds (name, owner) VALUES ('a', ''), ('b', '')`)
				b, err := Find(made.Path)
				if err != nil {
					t.Fatal(err)
				}
				target := s.empty(t)
				if err := b.Restore(t.Context(), target, restoring(key)); err != nil {
					t.Fatal(err)
				}
				d := dbtest.OpenWith(t, target)
				var holds, balance int64
				_, err = d.ReadOne(t.Context(), `SELECT (SELECT count(*) FROM job_holds), (SELECT balance FROM wallets WHERE id = 'wallet:ama')`, nil, &holds, &balance)
				if err != nil || holds != 2 || balance != 1500 {
					t.Errorf("%d rows, a balance of %d, %v", holds, balance, err)
				}
				r, found, err := LastRestore(t.Context(), d)
				if err != nil || !found || r.Backup != made.ID || !r.MadeAt.Equal(made.MadeAt) || r.At.Before(before) || r.ID == "" {
					t.Errorf("%+v, %v, %v", r, found, err)
				}
				if r.MadeAt.After(time.Now()) || r.MadeAt.Before(before.Truncate(time.Millisecond)) {
					t.Errorf("the backup was made at %v", r.MadeAt)
				}
				if pending, err := d.PendingMigrations(t.Context()); err != nil || len(pending) > 0 {
					t.Errorf("%v, %v", pending, err)
				}
			})
		}
		if _, found, err := LastRestore(t.Context(), s.db); found || err != nil {
			t.Errorf("the database itself was restored: %v, %v", found, err)
		}
	})
}

// A restored database can be backed up and restored too. Each restore adds a row.
func TestRestore_ofARestoredDatabase(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		var last string
		for range 2 {
			b, target := s.backup(t), s.empty(t)
			if err := b.Restore(t.Context(), target, restoring()); err != nil {
				t.Fatal(err)
			}
			s = source{dbtest.OpenWith(t, target), target}
			r, _, err := LastRestore(t.Context(), s.db)
			if err != nil || r.ID == last || r.Backup != b.ID {
				t.Errorf("%+v after %s, %v", r, last, err)
			}
			last = r.ID
		}
	})
}

func TestBackup_fileModeIsPrivate(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		b := s.backup(t, newKey(t).Recipient())
		folder := filepath.Dir(b.Path)
		for path, want := range map[string]fs.FileMode{folder: fs.ModeDir | 0o700, b.Path: 0o600, b.Path + manifestSuffix: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		if entries, _ := os.ReadDir(folder); len(entries) != 2 {
			t.Errorf("in the folder: %v", entries)
		}
		dump, err := os.ReadFile(b.Path)
		manifest, _ := os.ReadFile(b.Path + manifestSuffix)
		if err != nil || !strings.HasPrefix(string(dump), "age-encryption.org/") || strings.Contains(string(dump)+string(manifest), "wallet") {
			t.Errorf("something of the ledger can be read (%v)", err)
		}
		if s.options.Path != "" {
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.options.Path), workshopPattern)); len(left) > 0 {
				t.Errorf("the copy in the clear is still there: %v", left)
			}
		}
	})
}

// change writes the manifest of a backup again after an edit.
func change(t testing.TB, b Backup, edit func(m *Manifest)) {
	t.Helper()
	m := b.Manifest
	edit(&m)
	text, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(b.Path+manifestSuffix, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// edit changes the bytes of a file.
func edit(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRestore_refusesDamage(t *testing.T) {
	cut := func(text []byte) []byte { return text[:len(text)-20] }
	damages := []struct {
		name, code string
		do         func(t testing.TB, b Backup)
	}{
		{"a byte of the dump", "backup_damaged", func(t testing.TB, b Backup) {
			edit(t, b.Path, func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
		}},
		{"a dump that is cut", "backup_damaged", func(t testing.TB, b Backup) { edit(t, b.Path, cut) }},
		{"a dump that is longer", "backup_damaged", func(t testing.TB, b Backup) {
			edit(t, b.Path, func(text []byte) []byte { return append(text, 0) })
		}},
		{"no dump", "backup_damaged", func(t testing.TB, b Backup) { _ = os.Remove(b.Path) }},
		{"a manifest that is cut", "backup_damaged", func(t testing.TB, b Backup) { edit(t, b.Path+manifestSuffix, cut) }},
		{"an empty manifest", "backup_damaged", func(t testing.TB, b Backup) {
			edit(t, b.Path+manifestSuffix, func([]byte) []byte { return nil })
		}},
		{"no manifest", "no_backup", func(t testing.TB, b Backup) { _ = os.Remove(b.Path + manifestSuffix) }},
		{"another one's manifest", "backup_damaged", func(t testing.TB, b Backup) { change(t, b, func(m *Manifest) { m.File = "makola-1.db" }) }},
		{"a manifest of tomorrow", "backup_damaged", func(t testing.TB, b Backup) { change(t, b, func(m *Manifest) { m.Format++ }) }},
		{"an id that is SQL", "backup_damaged", func(t testing.TB, b Backup) { change(t, b, func(m *Manifest) { m.ID = "'); DROP TABLE wallets; --" }) }},
		{"no contents", "backup_damaged", func(t testing.TB, b Backup) { change(t, b, func(m *Manifest) { m.Contents = nil }) }},
	}
	each(t, func(t *testing.T, s source) {
		target := s.empty(t)
		for _, d := range damages {
			b := s.backup(t)
			d.do(t, b)
			found, err := Find(b.Path)
			if err == nil {
				err = found.Restore(t.Context(), target, restoring())
			}
			if p := problem.From(err); err == nil || p.Code != d.code {
				t.Errorf("%s: %v", d.name, err)
			}
			nothingThere(t, target)
		}
	})
}

// If a restore finds an error late, it leaves no database either. Here the SHA-256 is right and the dump is not.
func TestRestore_lateFailureLeavesNoDatabase(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		target := s.empty(t)
		b := s.backup(t)
		edit(t, b.Path, func(text []byte) []byte { return text[:len(text)*2/3] })
		sum, size, err := digest(t.Context(), b.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(t, b, func(m *Manifest) { m.SHA256, m.Bytes = sum, size })
		b, err = Find(b.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(t.Context(), target, restoring()); err == nil {
			t.Error("a dump that is cut was restored")
		}
		nothingThere(t, target)
	})
}

func TestRestore_checksTheManifest(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		for name, edit := range map[string]func(c *Contents){
			"rows":     func(c *Contents) { c.Rows["wallets"]++ },
			"a table":  func(c *Contents) { c.Rows["none"] = 0 },
			"balances": func(c *Contents) { c.Balances[0].Balance++ },
		} {
			b := s.backup(t)
			edit(b.Contents)
			refusal := b.Restore(t.Context(), s.empty(t), restoring())
			if refusal == nil || problem.From(refusal).Code != "backup_damaged" {
				t.Errorf("other %s than the manifest says: %v", name, refusal)
			}
		}
	})
}

func TestBackup_needsTheRightKey(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		right, other, target := newKey(t), newKey(t), s.empty(t)
		b := s.backup(t, right.Recipient())
		refused(t, b.Restore(t.Context(), target, restoring()), "wrong_key")
		refused(t, b.Restore(t.Context(), target, restoring(other)), "wrong_key")
		nothingThere(t, target)
		if err := b.Restore(t.Context(), target, restoring(other, right)); err != nil {
			t.Error(err)
		}
	})
}

func TestRestore_refusesExistingDatabase(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		b := s.backup(t)
		refused(t, b.Restore(t.Context(), s.options, restoring()), "target_in_use")
		if s.db.Engine() == db.Postgres {
			s.write(t, `INSERT INTO job_leases (owner, node, epoch, expires_at) VALUES ('alpha/1', 'alpha', 1, now_micros() + 60000000)`)
			err := b.Restore(t.Context(), s.options, restoring())
			if refused(t, err, "target_in_use"); !strings.Contains(fmt.Sprint(err), "alpha") {
				t.Errorf("the refusal does not name the server: %v", err)
			}
			return
		}
		target := s.empty(t)
		folder := filepath.Dir(target.Path)
		unlock, err := db.LockFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Restore(t.Context(), target, restoring())
		if refused(t, err, "target_in_use"); !strings.Contains(fmt.Sprint(err), "process") {
			t.Errorf("the refusal does not name the server: %v", err)
		}
		nothingThere(t, target)
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		// The write-ahead log of another database next to the target would be written into the restored database.
		log := target.Path + "-wal"
		if err := os.WriteFile(log, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, b.Restore(t.Context(), target, restoring()), "target_in_use")
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
		nothingThere(t, target)
	})
}

func TestRestore_refusesNewerSchema(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		s.write(t, `INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (9999, '9999_later', '', 1)`)
		b, target := s.backup(t), s.empty(t)
		if b.Schema != 9999 {
			t.Errorf("the manifest says schema %d", b.Schema)
		}
		refused(t, b.Restore(t.Context(), target, restoring()), "schema_newer")
		// A changed manifest does not help either.
		b.Schema = 1
		refused(t, b.Restore(t.Context(), target, restoring()), "backup_damaged")
	})
}

func TestRestore_refusesOtherEngine(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		target := db.Options{URL: "postgres://127.0.0.1:1/none"}
		if s.db.Engine() == db.Postgres {
			target = db.Options{Path: filepath.Join(t.TempDir(), "makola.db")}
		}
		refused(t, s.backup(t).Restore(t.Context(), target, restoring()), "other_engine")
	})
}

func TestBackup_migratesMissingTables(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		s.write(t, `DROP TABLE restores`)
		folder := t.TempDir()
		_, err := Create(t.Context(), s.db, s.options, CreateOptions{Folder: folder, Version: "test", Clock: clock.Real()})
		refused(t, err, "migrations_pending")
		if entries, _ := os.ReadDir(folder); len(entries) > 0 {
			t.Errorf("in the folder: %v", entries)
		}
	})
}

// A backup contains the commits up to one moment, also while other transactions write.
func TestBackup_consistentUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		s.write(t, `INSERT INTO shards (asset, id, shard, balance) VALUES ('GHS', 'funding', 0, -1500)`)
		ctx, cancel := context.WithCancel(t.Context())
		over, begun := make(chan error), make(chan struct{})
		go func() {
			for n := 0; ; n++ {
				err := s.db.Write(ctx, func(tx *db.Tx) error { // money moves, and its sum stays the same
					tx.Defer(`UPDATE wallets SET balance = balance + 1 WHERE id = 'wallet:ama'`, 1)
					tx.Defer(`UPDATE shards SET balance = balance - 1 WHERE id = 'funding'`, 1)
					return nil
				})
				if n == 0 {
					close(begun)
				}
				if err != nil {
					over <- err
					return
				}
			}
		}()
		<-begun
		b := s.backup(t)
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("the load was stopped by %v", err)
		}
		sum := int64(0)
		for _, line := range b.Contents.Balances {
			sum += line.Balance
		}
		if len(b.Contents.Balances) != 2 || sum != 0 {
			t.Errorf("the balances are %v", b.Contents.Balances)
		}
		if err := b.Restore(t.Context(), s.empty(t), restoring()); err != nil {
			t.Error(err)
		}
	})
}

func TestBackup_interruptedLeavesNoFile(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		steps := []string{"copying", "encrypting", "checking"}
		if s.db.Engine() == db.Postgres {
			steps = []string{"dumping", "checking"}
		}
		for _, step := range steps {
			ctx, cancel := context.WithCancel(t.Context())
			folder := t.TempDir()
			_, err := Create(ctx, s.db, s.options, CreateOptions{Folder: folder, Recipients: []age.Recipient{newKey(t).Recipient()}, Version: "test",
				Clock: clock.Real(), Progress: func(now string, _, _ int64) {
					if now == step {
						cancel()
					}
				}})
			if cancel(); err == nil {
				t.Errorf("%s was broken off and the backup is there", step)
			}
			if entries, _ := os.ReadDir(folder); len(entries) > 0 {
				t.Errorf("broken off while %s, in the folder: %v", step, entries)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.options.Path), workshopPattern)); s.options.Path != "" && len(left) > 0 {
				t.Errorf("broken off while %s, beside the database: %v", step, left)
			}
		}
	})
}

func TestList_marksIncompleteBackups(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		folder := t.TempDir()
		var made []Backup
		for range 3 {
			b, err := Create(t.Context(), s.db, s.options, CreateOptions{Folder: folder, Version: "test", Clock: clock.Real()})
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, b)
		}
		if err := os.Remove(made[2].Path + manifestSuffix); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "notes.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := List(folder)
		if err != nil || len(list) != 3 || list[0].ID != made[1].ID || list[1].ID != made[0].ID || list[2].Problem == "" || list[0].Problem != "" {
			t.Errorf("%+v, %v", list, err)
		}
		if newest, err := Newest(folder); err != nil || newest.ID != made[1].ID {
			t.Errorf("%+v, %v", newest, err)
		}
	})
	if list, err := List(filepath.Join(t.TempDir(), "none")); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	_, err := Newest(t.TempDir())
	refused(t, err, "no_backup")
}

// The next backup removes what killed backups left. It does not touch a backup that is being made.
func TestBackup_removesLeftovers(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	alive, remove, err := workshop(parent)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := os.MkdirTemp(parent, workshopPattern)
	if err != nil {
		t.Fatal(err)
	}
	_, removeNext, err := workshop(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a dead maker: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("the folder of one that is alive: %v", err)
	}
	if err := errors.Join(remove(), removeNext()); err != nil {
		t.Error(err)
	}
}

func TestBackup_storesTheLastRun(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		if _, found, err := Last(t.Context(), s.db); found || err != nil {
			t.Errorf("%v, %v", found, err)
		}
		older, newer := s.backup(t), s.backup(t)
		for _, b := range []Backup{newer, older} { // the older backup is written later
			err := s.db.Write(t.Context(), func(tx *db.Tx) error { Record(tx, b); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		m, found, err := Last(t.Context(), s.db)
		if err != nil || !found || m.Backup != newer.ID || !m.MadeAt.Equal(newer.MadeAt) || m.Bytes != newer.Bytes || m.File != newer.Path || m.Took <= 0 {
			t.Errorf("%+v, %v, %v", m, found, err)
		}
	})
}

func TestVerify_leavesNoFiles(t *testing.T) {
	each(t, func(t *testing.T, s source) {
		b, place := s.backup(t), t.TempDir()
		o := VerifyOptions{RestoreOptions: restoring(), Folder: place, Server: s.options.URL}
		var looked db.Engine = -1
		o.Check = func(ctx context.Context, d *db.DB) ([]string, error) {
			looked = d.Engine()
			_, found, err := LastRestore(ctx, d)
			if !found {
				return nil, fmt.Errorf("the restored database does not know it: %w", err)
			}
			return []string{"something"}, err
		}
		v, err := b.Verify(t.Context(), o)
		if err != nil || looked != s.db.Engine() || !slices.Equal(v.Problems, []string{"something"}) || v.Took <= 0 {
			t.Errorf("%+v, %v", v, err)
		}
		edit(t, b.Path, func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
		v, err = b.Verify(t.Context(), o)
		if err != nil || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "SHA-256") {
			t.Errorf("%+v, %v", v, err)
		}
		if entries, _ := os.ReadDir(place); len(entries) > 0 {
			t.Errorf("left: %v", entries)
		}
	})
}

func TestKey_errorsDoNotRevealIt(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(strings.ToLower(key.String())+"x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Identities(path)
	if err == nil || strings.Contains(strings.ToLower(err.Error()), strings.ToLower(key.String()[20:40])) {
		t.Errorf("a bad file of keys: %v", err)
	}
	if _, err := Recipients([]string{key.String()}); err == nil || strings.Contains(err.Error(), key.String()[20:40]) {
		t.Errorf("a private key in place of a public one: %v", err)
	}
	if _, err := Identities(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
	if list, err := Recipients([]string{key.Recipient().String()}); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
