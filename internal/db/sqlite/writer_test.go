package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/engine"
	"github.com/makola/makola/internal/db/sqlite"
)

var errRefused = errors.New("refused")

// openShared opens a database with a table of items and a purse.
func openShared(t *testing.T) *db.DB {
	t.Helper()
	return openFaulty(t, nil)
}

// openFaulty is openShared with a connection that breaks on demand.
func openFaulty(t *testing.T, f *db.Faults) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{Path: filepath.Join(t.TempDir(), "makola.db"), MaxConns: 4, Faults: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	d.SQLite().SetGroupTime(time.Hour) // the test decides which transactions share a COMMIT, not the speed of the machine
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(`CREATE TABLE rows (id TEXT PRIMARY KEY, amount INTEGER NOT NULL) STRICT`)
		tx.Defer(`INSERT INTO rows (id, amount) VALUES ('purse', 100000)`, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// awaitLine returns when n transactions wait for the writer.
func awaitLine(t *testing.T, d *db.DB, n int) {
	for d.SQLite().InLine() != n && t.Context().Err() == nil {
		runtime.Gosched()
	}
}

func insert(tx *db.Tx, id string) error {
	_, err := tx.Exec(`INSERT INTO rows (id, amount) VALUES ($1, 1)`, id)
	return err
}

// there counts the rows with an id that another reader sees.
func there(t *testing.T, d *db.DB, id string) (n int64) {
	t.Helper()
	err := d.Read(context.Background(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT count(*) FROM rows WHERE id = $1`, []any{id}, &n)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

// Two transactions share a COMMIT, and the second ends in each possible way.
func TestCommit_sharedByTwo(t *testing.T) {
	for _, c := range []struct {
		name   string
		second func(f *db.Faults, tx *db.Tx, run int) error // after it has read the row of the first
		err    error
		runs   [2]int32
		wrote  int64
	}{
		{"writes", func(_ *db.Faults, tx *db.Tx, _ int) error { return insert(tx, "second") }, nil, [2]int32{1, 1}, 1},
		{"writes at its end", func(_ *db.Faults, tx *db.Tx, _ int) error {
			tx.Defer(`INSERT INTO rows (id, amount) VALUES ('second', 1)`, 1)
			return nil
		}, nil, [2]int32{1, 1}, 1},
		{"only reads", func(*db.Faults, *db.Tx, int) error { return nil }, nil, [2]int32{1, 1}, 0},
		{"refuses after it has read", func(*db.Faults, *db.Tx, int) error { return errRefused }, errRefused, [2]int32{1, 1}, 0},
		{"refuses after it has written", func(_ *db.Faults, tx *db.Tx, _ int) error {
			return errors.Join(insert(tx, "second"), errRefused)
		}, errRefused, [2]int32{2, 2}, 0},
		{"has a guard that fails", func(_ *db.Faults, tx *db.Tx, _ int) error {
			tx.Defer(`UPDATE rows SET amount = 2 WHERE id = 'nobody'`, 1)
			return nil
		}, db.ErrGuard, [2]int32{2, 2}, 0},
		{"has a statement that fails", func(_ *db.Faults, tx *db.Tx, _ int) error {
			_, err := tx.One(`SELECT abs(-9223372036854775807 - 1)`, nil, new(int64)) // overflows
			if err != nil {
				err = errRefused
			}
			return err
		}, errRefused, [2]int32{2, 2}, 0},
		{"makes the engine roll back by itself", func(_ *db.Faults, tx *db.Tx, _ int) error {
			_, err := tx.Exec(`INSERT OR ROLLBACK INTO rows (id, amount) VALUES ('purse', 1)`)
			_ = insert(tx, "second") // without the group it would be a transaction of its own
			return err
		}, db.ErrUnique, [2]int32{2, 2}, 0},
		{"loses its connection", func(f *db.Faults, tx *db.Tx, run int) error {
			if run == 1 {
				f.At(db.BoundaryExchange, 1, db.FaultBefore)
			}
			return insert(tx, "second")
		}, nil, [2]int32{2, 2}, 1},
		{"loses its COMMIT before the engine has it", func(f *db.Faults, tx *db.Tx, run int) error {
			if run == 1 {
				f.At(db.BoundaryCommit, 1, db.FaultBefore)
			}
			return insert(tx, "second")
		}, db.ErrAmbiguous, [2]int32{2, 1}, 0},
		{"loses the answer to its COMMIT", func(f *db.Faults, tx *db.Tx, run int) error {
			if run == 1 {
				f.At(db.BoundaryCommit, 1, db.FaultAfter)
			}
			return insert(tx, "second")
		}, db.ErrAmbiguous, [2]int32{1, 1}, 1},
		{"panics", func(_ *db.Faults, tx *db.Tx, _ int) error {
			panic(errors.Join(errRefused, insert(tx, "second")))
		}, errRefused, [2]int32{2, 1}, 0},
		{"panics before its COMMIT", func(f *db.Faults, tx *db.Tx, _ int) error {
			panicked := false
			f.Decide(func(b db.Boundary) db.Fault {
				if b == db.BoundaryCommit && !panicked {
					panicked = true
					panic(errRefused)
				}
				return db.FaultNone
			})
			return insert(tx, "second")
		}, errRefused, [2]int32{2, 1}, 0},
		{"ends its goroutine", func(_ *db.Faults, tx *db.Tx, _ int) error {
			if insert(tx, "second") == nil {
				runtime.Goexit()
			}
			return nil
		}, errRefused, [2]int32{2, 1}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &db.Faults{}
			d := openFaulty(t, f)
			var runs, after [2]atomic.Int32
			var wg sync.WaitGroup
			second := func(tx *db.Tx) error {
				run := int(runs[1].Add(1))
				tx.AfterCommit(func() { after[1].Add(1) })
				var seen int64
				if _, err := tx.One(`SELECT count(*) FROM rows WHERE id = 'first'`, nil, &seen); err != nil {
					return err
				}
				if run == 1 && (seen != 1 || there(t, d, "first") != 0 || after[0].Load() != 0) {
					t.Errorf("it does not share the first's transaction: sees %d", seen)
				}
				return c.second(f, tx, run)
			}
			first := func(tx *db.Tx) error {
				tx.AfterCommit(func() { after[0].Add(1) })
				if runs[0].Add(1) == 1 {
					wg.Go(func() {
						err := recovered(func() error { return d.Write(context.Background(), second) })
						if !errors.Is(err, c.err) {
							t.Errorf("the second: %v", err)
						}
					})
					awaitLine(t, d, 1)
				}
				return insert(tx, "first")
			}
			if err := d.Write(t.Context(), first); err != nil {
				t.Errorf("the first: %v", err)
			}
			wg.Wait()
			if got := [2]int32{runs[0].Load(), runs[1].Load()}; got != c.runs {
				t.Errorf("%v runs", got)
			}
			if there(t, d, "first") != 1 || there(t, d, "second") != c.wrote || after[0].Load() != 1 {
				t.Errorf("first %d, second %d, %d after the first's commit", there(t, d, "first"), there(t, d, "second"), after[0].Load())
			}
			if want := map[bool]int32{true: 1}[c.err == nil]; after[1].Load() != want {
				t.Errorf("%d after the second's commit", after[1].Load())
			}
		})
	}
}

func recovered(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	return fn()
}

// The first member of a group waits for the last one, so the size of groups is limited. Many waiting transactions use
// as few groups as the limit allows.
func TestGroup_isBounded(t *testing.T) {
	d := openShared(t)
	const crowd = 2*sqlite.GroupMost + 1
	var numbers []int // position of each transaction in its group, in their order
	var wg sync.WaitGroup
	one := func(tx *db.Tx) error {
		err := insert(tx, fmt.Sprint(len(numbers)))
		numbers = append(numbers, d.SQLite().Members())
		return err
	}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for range crowd - 1 {
			wg.Go(func() {
				if err := d.Write(context.Background(), one); err != nil {
					t.Error(err)
				}
			})
		}
		awaitLine(t, d, crowd-1)
		return one(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for i, number := range numbers {
		if number != i%sqlite.GroupMost+1 || len(numbers) != crowd {
			t.Errorf("writer %d of %d is number %d of its group", i, len(numbers), number)
		}
	}
}

// A small transaction does not wait for many long ones, because a group that is old enough gets no further member.
func TestGroup_oldGetsNoMember(t *testing.T) {
	d := openShared(t)
	d.SQLite().SetGroupTime(0)
	var wg sync.WaitGroup
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		wg.Go(func() {
			err := d.Write(context.Background(), func(tx *db.Tx) error {
				if there(t, d, "first") != 1 {
					t.Error("the first waits")
				}
				return insert(tx, "second")
			})
			if err != nil {
				t.Error(err)
			}
		})
		awaitLine(t, d, 1)
		return insert(tx, "first")
	})
	wg.Wait()
	if err != nil || there(t, d, "second") != 1 {
		t.Error(err)
	}
}

// The writes of one member make the COMMIT fail. The other members commit and get no error.
func TestCommit_failureStaysWithItsCause(t *testing.T) {
	d := openShared(t)
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(`CREATE TABLE parts (of TEXT REFERENCES rows (id) DEFERRABLE INITIALLY DEFERRED) STRICT`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	runs := 0
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		if runs++; runs == 1 {
			wg.Go(func() {
				err := d.Write(context.Background(), func(tx *db.Tx) error {
					_, err := tx.Exec(`INSERT INTO parts (of) VALUES ('nobody')`)
					return err
				})
				if err == nil || errors.Is(err, engine.ErrAlone) {
					t.Errorf("a part of nothing: %v", err)
				}
			})
			awaitLine(t, d, 1)
		}
		return insert(tx, "first")
	})
	wg.Wait()
	if err != nil || runs != 2 || there(t, d, "first") != 1 {
		t.Errorf("%d runs: %v", runs, err)
	}
}

// A caller may cancel at the moment in which it gets the connection. It then passes the connection on, or commits for
// the members before it.
func TestWriter_cancelledPassesConnectionOn(t *testing.T) {
	for _, next := range []bool{true, false} {
		d := openShared(t)
		decline, gone := make(chan func(), 1), make(chan struct{})
		var wg sync.WaitGroup
		write := func(fn func(tx *db.Tx) error) {
			wg.Go(func() {
				if err := d.Write(context.Background(), fn); err != nil {
					t.Error(err)
				}
			})
		}
		write(func(tx *db.Tx) error {
			turn := d.SQLite().Wait() // the place of the one that gives up
			decline <- func() { d.SQLite().Decline(<-turn) }
			if next {
				write(func(tx *db.Tx) error {
					<-gone
					return insert(tx, "third")
				})
				awaitLine(t, d, 2)
			}
			return insert(tx, "first")
		})
		(<-decline)()
		close(gone)
		wg.Wait()
		if there(t, d, "first") != 1 || next != (there(t, d, "third") == 1) {
			t.Error("not written")
		}
	}
}

// A transaction in ModeAlone commits together with the members before it, and waits for no further one.
func TestCommit_aloneWithoutWaiting(t *testing.T) {
	d := openShared(t)
	var wg sync.WaitGroup
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		wg.Go(func() {
			err := d.Write(db.Bulk(context.Background(), ""), func(tx *db.Tx) error {
				if there(t, d, "first") != 1 {
					t.Error("the first is not committed")
				}
				wg.Go(func() {
					if err := d.Write(context.Background(), func(tx *db.Tx) error { return insert(tx, "third") }); err != nil {
						t.Error(err)
					}
				})
				awaitLine(t, d, 1)
				return errors.Join(insert(tx, "alone"), errRefused)
			})
			if !errors.Is(err, errRefused) {
				t.Error(err)
			}
		})
		awaitLine(t, d, 1)
		return insert(tx, "first")
	})
	wg.Wait()
	if err != nil || there(t, d, "alone") != 0 || there(t, d, "third") != 1 {
		t.Errorf("%v, alone %d, third %d", err, there(t, d, "alone"), there(t, d, "third"))
	}
}

// Close waits in the line like a transaction. It commits the open group that it gets.
func TestClose_commitsOpenGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "makola.db")
	d := openLite(t, path)
	var wg sync.WaitGroup
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		wg.Go(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		awaitLine(t, d, 1)
		_, err := tx.Exec(`CREATE TABLE rows (id TEXT PRIMARY KEY) STRICT`)
		return err
	})
	wg.Wait()
	if err != nil || there(t, openLite(t, path), "nobody") != 0 {
		t.Error(err)
	}
}

// Writers cancel, fail, and lose connections and answers at the same time. Every reported outcome is true.
func TestGroup_underFaults(t *testing.T) {
	const writers, each = 8, 100
	type outcome struct {
		key                string
		impatient, refuses bool
		err                error
	}
	outcomes := make([]outcome, writers*each)
	f := &db.Faults{}
	d := openFaulty(t, f)
	f.Decide(func(b db.Boundary) db.Fault {
		switch {
		case rand.IntN(20) > 0:
			return db.FaultNone
		case b == db.BoundaryExchange:
			return db.FaultBefore
		}
		return db.Fault(1 + rand.IntN(3))
	})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				o := &outcomes[w*each+i]
				*o = outcome{key: fmt.Sprint(w, " ", i), impatient: rand.IntN(8) == 0, refuses: rand.IntN(4) == 0}
				ctx, cancel := context.WithCancel(context.Background())
				if o.impatient {
					go cancel()
				}
				o.err = d.WriteRecognising(ctx, func(tx *db.Tx) (bool, error) {
					return tx.One(`SELECT amount FROM rows WHERE id = $1`, []any{o.key}, new(int64))
				}, func(tx *db.Tx) error {
					var left int64
					if _, err := tx.One(`SELECT amount FROM rows WHERE id = 'purse'`, nil, &left); err != nil {
						return err
					}
					if o.refuses && i%2 == 0 {
						return errRefused
					}
					tx.Defer(`INSERT INTO rows (id, amount) VALUES ($1, 1)`, 1, o.key)
					tx.Defer(`UPDATE rows SET amount = $1 WHERE id = 'purse' AND amount = $2`, 1, left-1, left)
					if o.refuses {
						return errors.Join(tx.Flush(), errRefused)
					}
					return nil
				})
				cancel()
			}
		})
	}
	wg.Wait()
	f.Decide(nil)
	rows := int64(0)
	for _, o := range outcomes {
		n := there(t, d, o.key)
		if rows += n; errors.Is(o.err, db.ErrAmbiguous) {
			continue
		}
		told := errors.Is(o.err, db.ErrUnavailable) || o.impatient && errors.Is(o.err, context.Canceled)
		if (o.err == nil) != (n == 1) || o.err != nil && !told && !(o.refuses && errors.Is(o.err, errRefused)) {
			t.Errorf("%+v: %d rows", o, n)
		}
	}
	var left int64
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT amount FROM rows WHERE id = 'purse'`, nil, &left)
		return err
	})
	if err != nil || left != 100000-rows || rows < writers*each/3 {
		t.Errorf("%d rows, %d left: %v", rows, left, err)
	}
}
