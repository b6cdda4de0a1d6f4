package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// spend is a transaction with two exchanges. It reads a row, then takes an amount from it and notes that under key.
func spend(tx *db.Tx, key string) error {
	var amount int64
	if found, err := tx.One(`SELECT amount FROM items WHERE id = $1 FOR UPDATE`, []any{"purse"}, &amount); err != nil || !found {
		return fmt.Errorf("the purse: %v: %w", found, err)
	}
	tx.Defer(`UPDATE items SET amount = $1 WHERE id = $2`, 1, amount-1, "purse")
	tx.Defer(`INSERT INTO items (id, amount) VALUES ($1, 1)`, 1, key)
	return nil
}

func noted(key string) func(tx *db.Tx) (bool, error) {
	return func(tx *db.Tx) (bool, error) {
		var one int64
		return tx.One(`SELECT 1 FROM items WHERE id = $1`, []any{key}, &one)
	}
}

// settledPurse reads the purse after all transactions have ended, including those that the server still runs on
// connections that we lost.
func settledPurse(t *testing.T, d *db.DB) (left, notes int64) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT amount FROM items WHERE id = 'purse' FOR UPDATE`, nil, &left)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return purse(t, d)
}

func purse(t *testing.T, d *db.DB) (left, notes int64) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT (SELECT amount FROM items WHERE id = 'purse'), (SELECT count(*) FROM items WHERE id <> 'purse')`, nil, &left, &notes)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left, notes
}

func fillPurse(t *testing.T, d *db.DB) {
	t.Helper()
	makeItems(t, d)
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		tx.Defer(`INSERT INTO items (id, amount) VALUES ('purse', 100)`, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A transaction is tested with every fault at each of its boundaries. It takes effect exactly once, or the caller
// gets ErrAmbiguous.
func TestWrite_everyFaultAtEachBoundary(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		fillPurse(t, d)
		done := int64(0)
		for _, boundary := range []db.Boundary{db.BoundaryExchange, db.BoundaryCommit} {
			for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
				name := fmt.Sprintf("boundary %d, fault %d", boundary, fault)
				ends := 0
				afters := 0
				body := func(key string) func(*db.Tx) error {
					return func(tx *db.Tx) error {
						tx.AtEnd(func() { ends++ })
						tx.AfterCommit(func() { afters++ })
						return spend(tx, key)
					}
				}
				// A Write that recognises nothing.
				f.At(boundary, 1, fault)
				err := d.Write(t.Context(), body(name))
				left, notes := purse(t, d)
				lost := boundary == db.BoundaryCommit && fault != db.FaultConflict
				if lost != errors.Is(err, db.ErrAmbiguous) || !lost && err != nil {
					t.Errorf("%s: %v", name, err)
				}
				switch happened := notes - done; {
				case err == nil && (happened != 1 || afters != 1), happened < 0, happened > 1, err != nil && afters != 0:
					t.Errorf("%s: it happened %d times, AfterCommit ran %d times: %v", name, happened, afters, err)
				case fault == db.FaultAfter && happened != 1, fault == db.FaultBefore && lost && happened != 0:
					t.Errorf("%s: it happened %d times", name, happened)
				}
				if done = notes; left != 100-notes {
					t.Errorf("%s: %d left after %d", name, left, notes)
				}
				if wantEnds := map[bool]int{true: 1, false: 2}[lost]; ends != wantEnds {
					t.Errorf("%s: AtEnd ran %d times, want %d", name, ends, wantEnds)
				}
				// A transaction that recognises its rows always learns the outcome.
				afters = 0
				f.At(boundary, 1, fault)
				err = d.WriteRecognising(t.Context(), noted(name+" again"), body(name+" again"))
				left, notes = purse(t, d)
				if err != nil || notes != done+1 || left != 100-notes || afters != 1 {
					t.Errorf("%s: recognising: %d left, %d notes after %d, AfterCommit %d: %v", name, left, notes, done, afters, err)
				}
				done = notes
			}
		}
	})
}

// If the outcome of a COMMIT is in doubt, its rows may become visible late. The next run finds them. AfterCommit then
// runs once, for the run whose rows are stored.
func TestAfterCommit_runsOnceWhenFoundLate(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		fillPurse(t, d)
		for key, note := range map[string]func(*db.Tx, string) error{
			"at COMMIT": func(tx *db.Tx, key string) error {
				tx.Defer(`INSERT INTO items (id, amount) VALUES ($1, 1)`, 1, key)
				return nil
			},
			"before COMMIT": func(tx *db.Tx, key string) error {
				_, err := tx.Exec(`INSERT INTO items (id, amount) VALUES ($1, 1)`, key)
				return err
			},
		} {
			looks, run := 0, 0
			var afters []int
			f.At(db.BoundaryCommit, 1, db.FaultAfter)
			err := d.WriteRecognising(t.Context(), func(tx *db.Tx) (bool, error) {
				if looks++; looks == 1 {
					return false, nil // the server has not finished the COMMIT yet
				}
				return noted(key)(tx)
			}, func(tx *db.Tx) error {
				run++
				this := run
				tx.AfterCommit(func() { afters = append(afters, this) })
				return note(tx, key)
			})
			if err != nil || run != 2 || looks != 2 || fmt.Sprint(afters) != "[1]" {
				t.Errorf("seen %s: %d runs, %d looks, AfterCommit of the runs %v: %v", key, run, looks, afters, err)
			}
		}
	})
}

// Behind a pooler, the check for the rows may come before the server has finished. If the next run cannot reach the
// database, the outcome stays ErrAmbiguous.
func TestDoubt_staysWhenServerIsGone(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		fillPurse(t, d)
		for _, fault := range []db.Fault{db.FaultBefore, db.FaultConflict} {
			key := fmt.Sprint("fault ", fault)
			f.At(db.BoundaryCommit, 1, db.FaultAfter)
			err := d.WriteRecognising(t.Context(), func(*db.Tx) (bool, error) {
				f.Decide(func(b db.Boundary) db.Fault {
					if b == db.BoundaryExchange {
						return fault
					}
					return db.FaultNone
				})
				return false, nil
			}, func(tx *db.Tx) error { return spend(tx, key) })
			f.Decide(nil)
			if !errors.Is(err, db.ErrAmbiguous) || problem.From(err).Code != "outcome_unknown" {
				t.Errorf("%s: %v", key, err)
			}
			err = d.Read(t.Context(), func(tx *db.Tx) error {
				there, err := noted(key)(tx)
				if !there {
					t.Errorf("%s: it did not happen", key)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The check for the rows fails, and so does the run after it. If every exchange fails, the caller gets an error.
func TestWrite_faultsDuringRecognition(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		fillPurse(t, d)
		f.At(db.BoundaryCommit, 1, db.FaultBefore)   // the COMMIT of the first run
		f.At(db.BoundaryExchange, 2, db.FaultBefore) // the check whether the rows were committed
		f.At(db.BoundaryExchange, 4, db.FaultBefore) // the second run
		f.At(db.BoundaryCommit, 3, db.FaultAfter)    // the COMMIT of the second run
		if err := d.WriteRecognising(t.Context(), noted("a"), func(tx *db.Tx) error { return spend(tx, "a") }); err != nil {
			t.Fatal(err)
		}
		if left, notes := purse(t, d); left != 99 || notes != 1 {
			t.Fatalf("%d left, %d notes", left, notes)
		}
		for _, fault := range []db.Fault{db.FaultBefore, db.FaultConflict} {
			f.Decide(func(db.Boundary) db.Fault { return fault })
			err := d.Write(t.Context(), func(tx *db.Tx) error { return spend(tx, "b") })
			if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous) {
				t.Errorf("fault %d for ever: %v", fault, err)
			}
		}
		f.Decide(func(b db.Boundary) db.Fault {
			if b == db.BoundaryCommit {
				return db.FaultBefore
			}
			return db.FaultNone
		})
		err := d.WriteRecognising(t.Context(), noted("b"), func(tx *db.Tx) error { return spend(tx, "b") })
		if !errors.Is(err, db.ErrAmbiguous) {
			t.Errorf("no commit is ever answered, the looks neither: %v", err)
		}
		f.Decide(nil)
		if left, notes := purse(t, d); left != 99 || notes != 1 {
			t.Fatalf("%d left, %d notes", left, notes)
		}
	})
}

// If the function ignores an error of the transaction, the transaction is still rolled back.
func TestWrite_swallowedErrorRollsBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fillPurse(t, d)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if _, err := tx.Exec(`INSERT INTO items (id, amount) VALUES ('x', 1)`); err != nil {
				return err
			}
			_, _ = tx.Exec(`INSERT INTO items (id, amount) VALUES ('purse', 1)`)
			return nil
		})
		if !errors.Is(err, db.ErrUnique) {
			t.Errorf("swallowed: %v", err)
		}
		if _, notes := purse(t, d); notes != 0 {
			t.Error("half a transaction was committed")
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Defer(`UPDATE items SET amount = 1 WHERE id = $1`, 1, struct{}{})
			return nil
		})
		if err == nil {
			t.Error("an argument that cannot be stored was stored")
		}
	})
}

// A panic rolls the transaction back and returns the connection.
func TestWrite_panicRollsBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fillPurse(t, d)
		for range 20 { // more than the number of connections
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was swallowed")
					}
				}()
				_ = d.Write(t.Context(), func(tx *db.Tx) error {
					if _, err := tx.Exec(`UPDATE items SET amount = 0`); err != nil {
						return err
					}
					panic("stop")
				})
			}()
		}
		if left, _ := purse(t, d); left != 100 {
			t.Errorf("%d left", left)
		}
	})
}

// Nested transactions, writes in a read, and other misuse return errors.
func TestWrite_refusesMisuse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fillPurse(t, d)
		var kept *db.Tx
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			kept = tx
			// A second connection for the same caller could exhaust the pool, so it is refused.
			if err := d.Read(tx.Context(), func(*db.Tx) error { return nil }); err == nil {
				t.Error("a transaction inside a transaction")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Exec(`UPDATE items SET amount = 0`); err == nil {
			t.Error("a statement after the end")
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Query(`SELECT id FROM items`, nil, func(*db.Row) error {
				_, err := tx.Exec(`UPDATE items SET amount = 0`)
				return err
			})
		})
		if err == nil {
			t.Error("a statement inside another one's rows")
		}
		err = d.Read(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE items SET amount = 0`)
			return err
		})
		if err == nil {
			t.Error("a write while reading")
		}
		// An error that the caller returns for a row is not mistaken for a lost connection.
		runs := 0
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			runs++
			return tx.Query(`SELECT id FROM items`, nil, func(*db.Row) error { return io.ErrUnexpectedEOF })
		})
		if runs != 1 || err != io.ErrUnexpectedEOF { // the error is returned unchanged
			t.Errorf("%d runs: %v", runs, err)
		}
		if left, _ := purse(t, d); left != 100 {
			t.Errorf("%d left", left)
		}
	})
}

// A cancelled context stops a transaction before COMMIT. It never stops a running COMMIT.
func TestCancel_stopsNoRunningCommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fillPurse(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		err := d.Write(ctx, func(tx *db.Tx) error {
			cancel()
			return spend(tx, "a")
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before its statements: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		err = d.Write(ctx, func(tx *db.Tx) error {
			if err := spend(tx, "b"); err != nil {
				return err
			}
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before its commit: %v", err)
		}
		if left, notes := purse(t, d); left != 100 || notes != 0 {
			t.Errorf("%d left, %d notes", left, notes)
		}
	})
}

// ReadWhole and ReadSnapshot read the database as it is at one moment. They do not see a write that commits during
// the read.
func TestReadWhole_isASnapshot(t *testing.T) {
	t.Run("ReadWhole", func(t *testing.T) { snapshotSeesOneMoment(t, (*db.DB).ReadWhole) })
	t.Run("ReadSnapshot", func(t *testing.T) { snapshotSeesOneMoment(t, (*db.DB).ReadSnapshot) })
}

func snapshotSeesOneMoment(t *testing.T, read func(*db.DB, context.Context, func(*db.Tx) error) error) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fillPurse(t, d)
		err := read(d, t.Context(), func(tx *db.Tx) error {
			var before, after int64
			if _, err := tx.One(`SELECT amount FROM items WHERE id = 'purse'`, nil, &before); err != nil {
				return err
			}
			if err := d.Write(context.Background(), func(tx *db.Tx) error { return spend(tx, "a") }); err != nil {
				return err
			}
			if _, err := tx.One(`SELECT amount FROM items WHERE id = 'purse'`, nil, &after); err != nil {
				return err
			}
			if before != 100 || after != 100 {
				t.Errorf("%d, then %d", before, after)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if left, _ := purse(t, d); left != 99 {
			t.Errorf("%d left", left)
		}
	})
}

// The statistics count transactions that got a connection, the time that they waited for it, and repeated runs.
func TestStats_countsTransactions(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		makeItems(t, d)
		f.At(db.BoundaryCommit, 1, db.FaultConflict)
		before := d.Counts()
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			if n := d.Counts(); n.Running != 1 {
				t.Errorf("in a transaction: %+v", n)
			}
			_, err := tx.Exec(`DELETE FROM items`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if n := d.Counts(); n.Running != 0 || n.Retried != before.Retried+1 {
			t.Errorf("after one conflict: %+v, before it %+v", n, before)
		}
		var group sync.WaitGroup
		waited, release := d.Counts().Waited, make(chan struct{})
		for range 64 { // more than the number of connections
			group.Go(func() {
				if err := d.Write(t.Context(), func(*db.Tx) error { <-release; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		clocktest.Await(t, "a transaction with a connection", func() bool { return d.Counts().Running > 0 })
		close(release)
		group.Wait()
		if n := d.Counts(); n.Running != 0 || n.Waited == waited {
			t.Errorf("at the end: %+v, before it %v", n, waited)
		}
	})
}

// Writers that lock rows in opposite orders deadlock on PostgreSQL. The aborted one runs again, and no caller gets an
// error.
func TestWrite_repeatsConflicts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		makeItems(t, d)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			db.Insert(tx, "items", itemColumns(), []item{{id: "a"}, {id: "b"}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		meet := make(chan struct{})
		for g, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			wg.Go(func() {
				first := true
				err := d.Write(context.Background(), func(tx *db.Tx) error {
					if _, err := tx.Exec(`UPDATE items SET amount = amount + 1 WHERE id = $1`, order[0]); err != nil {
						return err
					}
					if d.Engine() == db.Postgres && first { // each has locked its first row
						first = false
						if g == 0 {
							<-meet
						} else {
							meet <- struct{}{}
						}
					}
					_, err := tx.Exec(`UPDATE items SET amount = amount + 1 WHERE id = $1`, order[1])
					return err
				})
				if err != nil {
					t.Errorf("writer %d: %v", g, err)
				}
			})
		}
		wg.Wait()
		err = d.Read(t.Context(), func(tx *db.Tx) error {
			var sum int64
			_, err := tx.One(`SELECT sum(amount) FROM items`, nil, &sum)
			if sum != 4 {
				t.Errorf("sum %d", sum)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A group commit takes two exchanges with PostgreSQL.
func TestWrite_groupTakesTwoExchanges(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		fillPurse(t, d)
		before := f.Exchanges()
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			var seen []string
			note := func(name string) func(*db.Row) error {
				return func(r *db.Row) error {
					var n int64
					seen = append(seen, name)
					return r.Scan(&n)
				}
			}
			if err := tx.Gather(
				db.Query{SQL: `SELECT amount FROM items WHERE id = $1 FOR UPDATE`, Args: []any{"purse"}, Each: note("first")},
				db.Query{SQL: `SELECT count(*) FROM items`, Each: note("second")},
				db.Query{SQL: `SELECT amount FROM items WHERE id = 'nobody'`, Each: note("third")},
			); err != nil {
				return err
			}
			if fmt.Sprint(seen) != "[first second]" {
				t.Errorf("rows in the order %v", seen)
			}
			for i := range 5 {
				tx.Defer(`INSERT INTO items (id, amount) VALUES ($1, 1)`, 1, fmt.Sprint("n", i))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := f.Exchanges() - before; n != 2 {
			t.Errorf("%d exchanges", n)
		}
	})
}

// If a read meets a conflict at the end of its time, it reports the database as unavailable, not as an internal
// error.
func TestRead_conflictAtDeadlineIsUnavailable(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f.Decide(func(db.Boundary) db.Fault { cancel(); return db.FaultConflict })
		err := d.Read(ctx, func(tx *db.Tx) error {
			var n int64
			_, err := tx.One(`SELECT 1`, nil, &n)
			return err
		})
		if !errors.Is(err, db.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
}
