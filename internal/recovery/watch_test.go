package recovery

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// node is one process of a node on a database.
type node struct {
	*Watch
	t testing.TB
	r *Recovery
}

func up(t testing.TB, d *db.DB, o WatchOptions) *node {
	t.Helper()
	n := &node{t: t, r: New(d, clock.NewManual(morning), slog.New(slog.NewTextHandler(t.Output(), nil)))}
	n.Watch = NewWatch(n.r, o)
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.down)
	return n
}

// down stops a node. Its files remain.
func (n *node) down() {
	n.t.Helper()
	if err := n.Stop(context.Background()); err != nil {
		n.t.Error(err)
	}
}

// is checks which recovery another node finds.
func (n *node) is(phase Phase, cause string) State {
	n.t.Helper()
	s, err := New(n.r.db, n.r.clock, n.r.log).State(n.t.Context())
	if err != nil || s.Phase != phase || !strings.Contains(s.Cause, cause) {
		n.t.Fatalf("phase %q because %q, %v; want %q because %q", s.Phase, s.Cause, err, phase, cause)
	}
	return s
}

// again lets the node check the database, as it does before a POST when a connection was opened since the last check.
func (n *node) again() {
	n.t.Helper()
	n.looked.Store(^uint64(0))
	if err := n.Sure(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// commits stores a campaign and reports its row to the node's watch.
func (n *node) commits(id string) {
	n.t.Helper()
	err := n.r.db.Write(n.t.Context(), func(tx *db.Tx) error {
		n.Commits(tx, 0, Campaign, "t", id)
		_, err := tx.Exec(`INSERT INTO campaigns (tenant, id, mode, kind, sender_id, sender, message, encoding, segments, credits, recipients, invalid, excluded,
			status, access_key, idempotency_key, idempotency_hash, created_at, numbers, turn, marked_at, left_over, refunded)
			VALUES ('t', $1, 'test', 'campaign', 's', 's', 'm', 'gsm7', 1, 1, 1, 0, 0, 'active', '', '', '', 1, '', 0, 0, 0, 0)`, id)
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

func run(t *testing.T, d *db.DB, sql string, args ...any) {
	t.Helper()
	_, err := d.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatch_normalStartsAreNoRecovery: a first start and a restart begin no recovery. On PostgreSQL neither does the
// start of a node without a file.
func TestWatch_normalStartsAreNoRecovery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := WatchOptions{Node: "a", Folder: t.TempDir()}
		for _, id := range []string{"c1", "c2"} {
			n := up(t, d, o)
			n.commits(id)
			n.again()
			n.down()
			n.is(PhaseNone, "")
		}
		if text, err := os.ReadFile(filepath.Join(o.Folder, seenFile)); err != nil || !strings.Contains(string(text), `"c2"`) {
			t.Errorf("%s, %v", text, err)
		}
		if d.Engine() == db.Postgres {
			up(t, d, WatchOptions{Node: "b", Folder: t.TempDir()}).is(PhaseNone, "")
		}
	})
}

// warned is a log that signals the first warning.
type warned struct {
	slog.Handler
	once *sync.Once
	came chan struct{}
}

func (w warned) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.once.Do(func() { close(w.came) })
	}
	return w.Handler.Handle(ctx, r)
}

// TestWatch_lastRowsWrittenLater: the folder of the file was missing for a moment, and no row followed. The last rows
// are still written to the file.
func TestWatch_lastRowsWrittenLater(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := WatchOptions{Folder: filepath.Join(t.TempDir(), "data")}
		if err := os.Mkdir(o.Folder, 0o700); err != nil {
			t.Fatal(err)
		}
		log := warned{slog.NewTextHandler(t.Output(), nil), new(sync.Once), make(chan struct{})}
		n := &node{t: t, r: New(d, clock.NewManual(morning), slog.New(log))}
		n.Watch = NewWatch(n.r, o)
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(o.Folder, o.Folder+"-away"); err != nil {
			t.Fatal(err)
		}
		n.commits("c1")
		<-log.came
		if err := os.Rename(o.Folder+"-away", o.Folder); err != nil {
			t.Fatal(err)
		}
		n.down()
		if text, err := os.ReadFile(filepath.Join(o.Folder, seenFile)); err != nil || !strings.Contains(string(text), `"c1"`) {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// TestWatch_missingRowBeginsOneRecovery: every node that lost rows at the same time uses the same recovery.
func TestWatch_missingRowBeginsOneRecovery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := WatchOptions{Node: "a", Folder: t.TempDir()}, WatchOptions{Node: "b", Folder: t.TempDir()}
		n := up(t, d, a)
		n.commits("c1")
		n.down()
		other := n
		if d.Engine() == db.Postgres { // a node that continues to run
			other = up(t, d, b)
			other.commits("c2")
		}
		run(t, d, `DELETE FROM campaigns WHERE tenant = 't'`)
		n = up(t, d, a)
		begun := n.is(PhaseClosed, "c1")
		if err := n.r.Open(t.Context(), "looked", "ama"); err != nil {
			t.Fatal(err)
		}
		other.again()
		if s := n.is(PhaseOpen, "c1"); !s.BegunAt.Equal(begun.BegunAt) {
			t.Errorf("%+v", s)
		}
		if err := n.r.End(t.Context(), "done", "ama"); err != nil {
			t.Fatal(err)
		}
		n.down()
		n = up(t, d, a) // its file still names the row
		n.is(PhaseEnded, "")
		n.commits("c3")
		run(t, d, `DELETE FROM campaigns WHERE tenant = 't'`)
		n.again()
		n.is(PhaseClosed, "c3")
	})
}

// TestWatch_olderCopyBeginsARecovery: a copy from before the last recovery lacks the rows that were committed after
// it.
func TestWatch_olderCopyBeginsARecovery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := WatchOptions{Node: "a", Folder: t.TempDir()}
		n := up(t, d, o)
		first := *n.life.Load()
		if err := n.r.Begin(t.Context(), "a snapshot", morning, "told", "ama"); err != nil {
			t.Fatal(err)
		}
		n.again()
		n.commits("c1")
		n.down()
		run(t, d, `DELETE FROM campaigns WHERE tenant = 't'`)
		run(t, d, `DELETE FROM recovery_lives WHERE life <> $1`, first)
		run(t, d, `UPDATE recovery_place SET life = $1`, first)
		run(t, d, `DELETE FROM recovery`)
		up(t, d, o).is(PhaseClosed, "c1")
	})
}

func TestWatch_restoreBeginsOneRecovery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := WatchOptions{Node: "a", Folder: t.TempDir()}
		up(t, d, o).down()
		o.Restored = Restore{ID: "r1", MadeAt: morning.Add(-time.Hour)}
		n := up(t, d, o)
		if s := n.is(PhaseClosed, "restored"); !s.Since.Equal(morning.Add(-time.Hour)) {
			t.Errorf("%+v", s)
		}
		if err := n.r.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
		n.down()
		up(t, d, o).is(PhaseOpen, "restored")
	})
}

// TestWatch_promotionOpensAtOnce: after a promotion the recovery opens at once. If each commit reaches a standby
// before it is answered and no row is missing, there is no recovery.
func TestWatch_promotionOpensAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		synchronous, missing bool
		phase                Phase
	}{
		"asynchronous":           {phase: PhaseOpen},
		"synchronous":            {synchronous: true, phase: PhaseNone},
		"synchronous, row short": {synchronous: true, missing: true, phase: PhaseOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, db.Postgres)
			n := up(t, d, WatchOptions{Node: "a", Folder: t.TempDir(), Synchronous: c.synchronous})
			n.commits("c1")
			if c.missing {
				run(t, d, `DELETE FROM campaigns WHERE tenant = 't'`)
			}
			run(t, d, `UPDATE recovery_place SET timeline = '00000000'`)
			n.again()
			n.is(c.phase, "")
			n.again()
			n.is(c.phase, "")
		})
	}
}

// TestWatch_detectsACopiedDatabase: the database is another server's or another database. On SQLite it may also be a
// file from before the last start.
func TestWatch_detectsACopiedDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, change := range map[db.Engine][]string{
			db.SQLite:   {`UPDATE recovery_place SET token = 'an older one'`},
			db.Postgres: {`UPDATE recovery_place SET system = '1'`, `UPDATE recovery_place SET tables = '1/1'`},
		}[d.Engine()] {
			o := WatchOptions{Node: "a", Folder: t.TempDir()}
			run(t, d, `DELETE FROM recovery_place`)
			up(t, d, o).down()
			run(t, d, change)
			up(t, d, o).is(PhaseClosed, "database")
			run(t, d, `DELETE FROM recovery`)
		}
	})
}

// TestWatch_fileWithoutPlaceIsACopy: a SQLite database was moved without the node's file.
func TestWatch_fileWithoutPlaceIsACopy(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.SQLite)
	up(t, d, WatchOptions{Node: "a", Folder: t.TempDir()}).down()
	up(t, d, WatchOptions{Node: "a", Folder: t.TempDir()}).is(PhaseClosed, placeFile)
}

// TestWatch_killedStartIsNoRecovery: a start is killed after it wrote the new token to the file and before it wrote
// it to the database.
func TestWatch_killedStartIsNoRecovery(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.SQLite)
	o := WatchOptions{Node: "a", Folder: t.TempDir()}
	up(t, d, o).down()
	path := filepath.Join(o.Folder, placeFile)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, "one that the database did not get\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := up(t, d, o)
	n.is(PhaseNone, "")
	if text, err := os.ReadFile(path); err != nil || len(strings.Fields(string(text))) != 1 {
		t.Errorf("%s, %v", text, err)
	}
}

// TestSure_readsMemoryOnly: Sure costs two reads of memory.
func TestSure_readsMemoryOnly(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.SQLite)
	n := up(t, d, WatchOptions{Node: "a", Folder: t.TempDir()})
	n.down()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.Sure(t.Context()); err != nil {
		t.Error(err)
	}
	var none *Watch
	none.Commits(nil, 0, Payment, "t", "p")
	if err := none.Sure(t.Context()); err != nil {
		t.Error(err)
	}
}
