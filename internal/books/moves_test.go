package books

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/relocation"
	"github.com/makola/makola/internal/test/booktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// half starts a full check and stores its first step.
func (f *fixture) half() {
	f.t.Helper()
	f.loader.Clock.Advance(48 * time.Hour)
	c, err := f.begin(f.t.Context())
	if err == nil {
		_, err = f.step(f.t.Context(), c)
	}
	if err == nil {
		err = f.db.Write(f.t.Context(), c.save)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// in returns the fixture in another database, with another account for later payments.
func (f *fixture) in(d *db.DB) *fixture {
	f.t.Helper()
	l := booktest.New(f.t, d, f.loader.Clock.Now())
	f.t.Cleanup(l.Close)
	return &fixture{Books: New(d, l.Clock), t: f.t, loader: l, tenant: l.Tenant("Esi Foods", 1_000_000*money.Cedi), old: f.old}
}

// goesOn fails the test unless both checks continue from their stored state, and find faults of old and new payments.
func (f *fixture) goesOn() {
	f.t.Helper()
	before, err := f.State(f.t.Context())
	if err != nil || before.Stage == "" || before.Payments == 0 {
		f.t.Fatalf("no full check is under way: %+v, %v", before, err)
	}
	f.sound("before the full check ends")
	for range 100 {
		if err := f.Work(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
	after, err := f.State(f.t.Context())
	if err != nil || after.Stage != "" || !after.BegunAt.Equal(before.BegunAt) || !after.FullAt.After(before.FullAt) || after.Faults > 0 {
		f.t.Errorf("the full check did not go on: %+v, then %+v, %v", before, after, err)
	}
	f.sound("after it")
	f.new = f.loader.Load(f.tenant, 20, 2, time.Second)
	wrong := faultOf("an amount moved")
	f.exec(wrong.plant, f.new[0].ID)
	if f.recent().Count() == 0 {
		f.t.Error("a wrong new payment is not found")
	}
	f.exec(wrong.mend, f.new[0].ID)
	f.sound("mended")
	f.finds("an old payment", wrong)
}

// After a restore the checks continue from the state in the backup.
func TestRestore_checksGoOn(t *testing.T) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			source := dbtest.Options(t, engine)
			f := newFixture(t, dbtest.OpenWith(t, source))
			f.half()
			made, err := backup.Create(t.Context(), f.db, source, backup.CreateOptions{Folder: filepath.Join(t.TempDir(), "backups"), Version: "test", Clock: f.loader.Clock})
			if err != nil {
				t.Fatal(err)
			}
			target := db.Options{Path: filepath.Join(t.TempDir(), "new", "makola.db")}
			if engine == db.Postgres {
				target = db.Options{URL: dbtest.EmptyURL(t), MaxConns: 4}
			}
			if err := made.Restore(t.Context(), target, backup.RestoreOptions{Clock: f.loader.Clock}); err != nil {
				t.Fatal(err)
			}
			f.in(dbtest.OpenWith(t, target)).goesOn()
		})
	}
}

// After a move to PostgreSQL the checks continue from their state on SQLite.
func TestMove_checksGoOn(t *testing.T) {
	f := newFixture(t, dbtest.Open(t, db.SQLite))
	secret, err := config.NewSecret(slices.Repeat([]byte{1}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	if err := installation.New(f.db, f.loader.Clock).Check(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.half()
	to := dbtest.Open(t, db.Postgres)
	m := relocation.Move{From: f.db, To: to, Clock: f.loader.Clock, Actor: "cli:ama", Origin: "test", Progress: func(string, int64, int64) {},
		Check: func(context.Context, *db.DB) ([]string, error) { return nil, nil }}
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.in(to).goesOn()
}

// An erasure changes no amount, so the checks continue over erased payments.
func TestErasure_checksGoOn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.half()
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			for _, pay := range []book.Payment{f.old[0], f.new[0]} {
				book.EraseParty(tx, pay)
				book.EraseAddress(tx, pay.ID, pay.Account)
				book.EraseNotes(tx, pay.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f.goesOn()
	})
}
