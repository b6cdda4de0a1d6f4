package db_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// If any number of bulk reads hang, payments, leases and the bulk work of another tenant continue.
func TestBulk_leavesConnectionsToOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fillPurse(t, d)
		release := make(chan struct{})
		var group sync.WaitGroup
		defer group.Wait()
		defer close(release)
		begun := make(chan struct{}, 32)
		for range 32 {
			group.Go(func() {
				err := d.Read(db.Bulk(t.Context(), "greedy"), func(*db.Tx) error {
					begun <- struct{}{}
					<-release
					return nil
				})
				if err != nil && !errors.Is(err, db.ErrUnavailable) { // the read waited for too long
					t.Error(err)
				}
			})
		}
		<-begun
		for d.Waiting() < 30 {
			select {
			case <-begun:
			default:
			}
			if t.Context().Err() != nil {
				t.Fatal("they never wait")
			}
		}
		if err := spendAlone(t, d, "money"); err != nil {
			t.Errorf("money: %v", err)
		}
		for name, ctx := range map[string]context.Context{"money": t.Context(), "system": db.System(t.Context()), "another tenant": db.Bulk(t.Context(), "modest")} {
			if err := d.Read(ctx, func(tx *db.Tx) error { _, err := tx.One(`SELECT 1`, nil, new(int64)); return err }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := d.Ping(t.Context()); err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}

func spendAlone(t *testing.T, d *db.DB, key string) error {
	return d.WriteRecognising(t.Context(), noted(key), func(tx *db.Tx) error { return spend(tx, key) })
}

// The server ends a bulk statement of a tenant that takes too long, because it would hold its connection. Other
// statements have no such limit.
func TestBulkStatement_endedByTheServer(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.Postgres)
	endless := func(tx *db.Tx) error {
		_, err := tx.One(`SELECT 'x' FROM (SELECT pg_sleep(60)) AS pause`, nil, new(string))
		return err
	}
	err := d.Read(db.Bulk(t.Context(), "a"), endless)
	if refusal := new(pgconn.PgError); !errors.As(err, &refusal) || refusal.Code != "57014" || !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a bulk statement of a minute: %v, want the server's statement timeout (57014)", err)
	}
	for want, ctx := range map[string]context.Context{"10s": db.Bulk(t.Context(), "a"), "0": t.Context()} {
		for name, run := range map[string]func(context.Context, func(*db.Tx) error) error{"Read": d.Read, "ReadSnapshot": d.ReadSnapshot, "Write": d.Write} {
			err := run(ctx, func(tx *db.Tx) error {
				var got string
				_, err := tx.One(`SELECT current_setting('statement_timeout')`, nil, &got)
				if got != want {
					t.Errorf("%s: statement_timeout is %s, want %s", name, got, want)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// If the server hangs, every wait is bounded. If a COMMIT gets no answer, its rows are checked. After a failover,
// queries succeed at once.
func TestWrite_serverHangs(t *testing.T) {
	t.Parallel()
	way, freezer := dbtest.Freezable(t)
	d := dbtest.OpenWith(t, db.Options{URL: way, MaxConns: 8})
	fillPurse(t, d)
	var begun sync.WaitGroup
	warm := make(chan struct{})
	begun.Add(6)
	var group sync.WaitGroup
	ended := func(name string, most time.Duration, want error, run func() error) {
		group.Go(func() {
			from := time.Now()
			err := run()
			if took := time.Since(from); took > most || !errors.Is(err, want) {
				t.Errorf("%s ended after %v: %v", name, took, err)
			}
		})
	}
	for i := range 6 { // connections that hang inside a transaction
		ended(fmt.Sprint("under way ", i), 9*time.Second, db.ErrUnavailable, func() error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				if _, err := tx.One(`SELECT 1`, nil, new(int64)); err != nil {
					return err
				}
				select {
				case <-warm:
				default:
					begun.Done()
					<-warm
				}
				_, err := tx.One(`SELECT 1`, nil, new(int64))
				return err
			})
		})
	}
	begun.Wait()
	freezer.Freeze()
	close(warm)
	read := func(ctx context.Context) func() error {
		return func() error {
			return d.Read(ctx, func(tx *db.Tx) error { _, err := tx.One(`SELECT 1`, nil, new(int64)); return err })
		}
	}
	for range 20 {
		ended("new", 9*time.Second, db.ErrUnavailable, read(t.Context()))
	}
	ended("a lease", 6*time.Second, db.ErrUnavailable, read(db.System(t.Context())))
	group.Wait()
	freezer.Thaw()
	from := time.Now()
	if err := spendAlone(t, d, "after"); err != nil || time.Since(from) > 3*time.Second {
		t.Errorf("afterwards: %v after %v", err, time.Since(from))
	}
	time.AfterFunc(time.Second, freezer.Thaw)
	runs := 0
	if err := d.WriteRecognising(t.Context(), noted("commit"), func(tx *db.Tx) error {
		err := spend(tx, "commit")
		if runs++; runs == 1 {
			freezer.Freeze()
		}
		return err
	}); err != nil {
		t.Errorf("frozen at COMMIT: %v", err)
	}
	if left, notes := purse(t, d); left != 98 || notes != 2 {
		t.Errorf("%d left, %d notes", left, notes)
	}
}

// A restart of the database leaves no outcome in doubt: the rows of a lost COMMIT are checked until the database is
// back.
func TestDoubt_outlivesRestart(t *testing.T) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			o := dbtest.Options(t, e)
			f := &db.Faults{}
			o.Faults = f
			d := dbtest.OpenWith(t, o)
			fillPurse(t, d)
			f.At(db.BoundaryCommit, 1, db.FaultAfter)
			var once sync.Once
			err := d.WriteRecognising(t.Context(), func(tx *db.Tx) (bool, error) {
				once.Do(func() {
					f.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
					time.AfterFunc(time.Second, func() { f.Decide(nil) })
				})
				return noted("restart")(tx)
			}, func(tx *db.Tx) error { return spend(tx, "restart") })
			if err != nil {
				t.Errorf("after a second: %v", err)
			}
			if left, notes := purse(t, d); left != 99 || notes != 1 {
				t.Errorf("%d left, %d notes", left, notes)
			}
		})
	}
}
