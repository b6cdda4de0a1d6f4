package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// patience bounds each wait of a test. Only a failing test reaches it.
const patience = 3 * time.Minute

// newLease returns a lease. The test decides when it beats.
func newLease(d *db.DB, node string, beat time.Duration) *Lease {
	calls := Callbacks{Acquired: func(string) {}, Lost: func() {}, Renewed: func() {}}
	return New(d, slog.New(slog.DiscardHandler), Options{Node: node, For: time.Hour, Heartbeat: beat}, calls)
}

func begin(t *testing.T, d *db.DB, node string) *Lease {
	t.Helper()
	l := newLease(d, node, time.Hour)
	if err := l.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// A named lease belongs to one node at a time.
func TestLease_oneNodeAtATime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := begin(t, d, "a"), begin(t, d, "b")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var inside atomic.Int32
		type turn struct {
			ctx        context.Context
			exit, over chan struct{}
		}
		turns := map[*Lease]chan turn{a: make(chan turn, 1), b: make(chan turn, 1)}
		ended := map[*Lease]chan error{a: make(chan error, 1), b: make(chan error, 1)}
		hold := func(l *Lease) {
			ended[l] <- l.Hold(ctx, "bind", func(held context.Context) {
				if inside.Add(1) != 1 {
					t.Error("two nodes hold the same name")
				}
				mine := turn{held, make(chan struct{}), make(chan struct{})}
				defer close(mine.over)
				defer inside.Add(-1)
				turns[l] <- mine
				select {
				case <-mine.exit:
				case <-held.Done():
				}
			})
		}
		go hold(a)
		first := <-turns[a]
		go hold(b)
		for range 3 { // b tries at each heartbeat, without success
			if err := b.Beat(ctx); err != nil {
				t.Fatal(err)
			}
		}
		// a is silent for too long. Its watchdog ends the hold before another node can take the lease.
		a.dropHolds()
		<-first.ctx.Done()
		<-first.over
		if err := d.Write(ctx, func(tx *db.Tx) error {
			n, err := tx.Exec("UPDATE job_leases SET expires_at = 1 WHERE owner = $1", a.current())
			if n != 1 {
				t.Error("a has no lease")
			}
			b.Expire(tx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var second turn
		for waiting := true; waiting; {
			if err := b.Beat(ctx); err != nil {
				t.Fatal(err)
			}
			select {
			case second = <-turns[b]:
				waiting = false
			case <-ctx.Done():
				t.Fatal("the hold never came to the other node")
			case <-time.After(10 * time.Millisecond):
			}
		}
		if err := a.Beat(ctx); err != nil { // a is back under a new epoch, and waits for the lease
			t.Fatal(err)
		}
		close(second.exit)
		if err := <-ended[b]; err != nil {
			t.Errorf("Hold ended with %v", err)
		}
		var third turn
		for waiting := true; waiting; {
			if err := a.Beat(ctx); err != nil {
				t.Fatal(err)
			}
			select {
			case third = <-turns[a]:
				waiting = false
			case <-ctx.Done():
				t.Fatal("the hold never came back")
			case <-time.After(10 * time.Millisecond):
			}
		}
		if third.ctx.Err() != nil {
			t.Error("the new hold is over already")
		}
		a.Drain()
		a.Wait()
		if err := <-ended[a]; !errors.Is(err, errStopped) {
			t.Errorf("Hold of a stopped queue ended with %v", err)
		}
	})
}

// Named leases end with the node lease under which they were acquired, even without a heartbeat since.
func TestLease_endsWithNodeLease(t *testing.T) {
	l := newLease(nil, "a", time.Hour)
	l.freeHold, l.dropHold = context.WithCancel(context.Background())
	l.beatAt = time.Now().Add(-l.holdFor()) // the start took that long
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.Keep(quit, func() {})
	}()
	select {
	case <-l.freeHold.Done():
	case <-time.After(patience):
		t.Error("they go on when the lease may be over")
	}
	close(quit)
	<-ended
}

// If the machine slept, its monotonic clock stood still and the watchdog is late. The next heartbeat ends the leases,
// even one that does not reach the database.
func TestLease_endsAfterMachineSlept(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		l := newLease(d, "a", 10*time.Millisecond)
		if err := l.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := l.freeHold
		f.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
		quit, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			l.Keep(quit, func() {})
		}()
		clocktest.Await(t, "the end of the holds", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.beatAt = time.Now().Round(0).Add(-l.opts.For) // only by the wall clock
			return held.Err() != nil
		})
		close(quit)
		<-ended
		f.Decide(nil)
	})
}
