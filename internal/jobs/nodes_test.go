package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

func look(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.exchangeHints(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The jobs of a dead node are adopted.
func TestAdoption_ofDeadNodesJobs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		later := func(Job) Outcome { return Later(time.Hour) }
		a := start(t, newQueue(t, d, c, quietOptions("a"), ra.handler("k", later)))
		b := start(t, newQueue(t, d, c, quietOptions("b"), rb.handler("k", done)))
		quiet(t, b)
		var jobs []Job
		for i := range setSize + 20 {
			jobs = append(jobs, Job{ID: fmt.Sprintf("job-%04d", i), Kind: "k", Memo: i})
		}
		add(t, d, a, jobs...)
		add(t, d, a, Job{ID: "strange", Kind: "unknown to both"})
		quiet(t, a)

		look(t, b)
		quiet(t, b)
		if n := len(rb.all()); n != 0 {
			t.Fatalf("%d jobs of a living node were taken", n)
		}
		kill(t, d, a)
		look(t, b)
		quiet(t, b)
		got := rb.all()
		if len(got) != len(jobs) {
			t.Fatalf("%d of %d jobs were adopted", len(got), len(jobs))
		}
		for _, j := range got {
			if !j.Adopted || j.Memo != nil {
				t.Fatalf("adopted as %+v", j)
			}
		}
		if n := rowsLeft(t, d); n != 1 {
			t.Errorf("%d rows are left, expected the one that nobody knows", n)
		}
	})
}

// A node that was paused beyond the end of its lease writes nothing afterwards.
func TestNodePaused_doesNoHarm(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		inside, let := make(chan struct{}), make(chan struct{})
		a := newQueue(t, d, c, quietOptions("a"), Handler{Kind: "k", Run: func(_ context.Context, j Job) Outcome {
			ra.add(j)
			if j.ID == "slow" && !j.Adopted {
				close(inside)
				<-let
				return Retry(errors.New("from the old life"))
			}
			return Done()
		}})
		start(t, a)
		b := start(t, newQueue(t, d, c, quietOptions("b"), rb.handler("k", func(Job) Outcome { return Later(time.Hour) })))
		quiet(t, b)
		add(t, d, a, Job{ID: "slow", Kind: "k"}, Job{ID: "waits", Kind: "k", RunAt: epochStart.Add(time.Minute)})
		<-inside
		kill(t, d, a)
		look(t, b)
		quiet(t, b)
		if n := len(rb.all()); n != 1 { // the other job is not due yet
			t.Fatalf("b ran %d jobs", n)
		}
		epoch := a.Epoch()

		// The paused node continues. Jobs that it adds under the old epoch are adopted. It drops the jobs in its
		// memory, and its running handlers have no effect.
		add(t, d, a, Job{ID: "late", Kind: "k", RunAt: epochStart.Add(time.Minute)})
		if err := a.lease.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.Epoch() <= epoch {
			t.Errorf("the epoch went from %d to %d", epoch, a.Epoch())
		}
		close(let)
		add(t, d, a, Job{ID: "new", Kind: "k"})
		look(t, a)
		quiet(t, a)
		c.Advance(2 * time.Minute)
		quiet(t, a)
		quiet(t, b)
		ran := map[string]int{}
		for _, j := range ra.all() {
			ran["a "+j.ID]++
		}
		for _, j := range rb.all() {
			ran["b "+j.ID]++
		}
		want := map[string]int{"a slow": 1, "b slow": 1, "b waits": 1, "a late": 1, "a new": 1}
		if fmt.Sprint(ran) != fmt.Sprint(want) {
			t.Errorf("ran %v, expected %v", ran, want)
		}
		list, err := b.List(t.Context(), Filter{})
		if err != nil || len(list) != 2 || list[0].Tries != 0 || list[0].LastError != "" {
			t.Errorf("the old life wrote: %+v, %v", list, err)
		}
		if lost := a.Counts().LeasesLost; lost != 1 {
			t.Errorf("%d leases were lost", lost)
		}
	})
}

// A node that has not noticed the loss of its lease writes nothing.
func TestLostLease_nodeWritesNoRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		inside, let := make(chan struct{}), make(chan struct{})
		late := func(out Outcome) func(context.Context, Job) Outcome {
			return func(context.Context, Job) Outcome {
				inside <- struct{}{}
				<-let
				return out
			}
		}
		var rb record
		later := func(Job) Outcome { return Later(time.Hour) }
		no := errors.New("from a node that is dead")
		a := start(t, newQueue(t, d, c, quietOptions("a"), Handler{Kind: "retry", Run: late(Retry(no))}, Handler{Kind: "dead", Run: late(Dead(no))}))
		b := start(t, newQueue(t, d, c, quietOptions("b"), rb.handler("retry", later), rb.handler("dead", later)))
		quiet(t, b)
		add(t, d, a, Job{ID: "1", Kind: "retry"}, Job{ID: "2", Kind: "dead"}, Job{ID: "3", Kind: "retry", RunAt: epochStart.Add(time.Hour)})
		<-inside
		<-inside
		kill(t, d, a)
		look(t, b)
		quiet(t, b)
		close(let)
		quiet(t, a)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			a.Postpone(tx, Postponement{ID: "3", At: epochStart.Add(10 * time.Hour), Error: "from a node that is dead"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list, err := b.List(t.Context(), Filter{})
		if err != nil || len(list) != 3 || len(rb.all()) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, j := range list {
			if j.Tries != 0 || j.LastError != "" || !strings.HasPrefix(j.Node, "b/") || j.RunAt.After(epochStart.Add(time.Hour)) {
				t.Errorf("it wrote %+v", j)
			}
		}
	})
}

// The jobs of a living node are not adopted.
func TestAdoption_sparesLivingNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		a := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done)))
		b := start(t, newQueue(t, d, c, quietOptions("b"), r.handler("k", done)))
		add(t, d, a, Job{ID: "1", Kind: "k", RunAt: epochStart.Add(time.Hour)})
		// b searched a moment ago and considered a dead.
		if err := b.adopt(t.Context(), b.owner, a.owner); err != nil {
			t.Fatal(err)
		}
		// A dead node adopts nothing either.
		kill(t, d, b)
		look(t, a)
		add(t, d, New(d, c, nil, quietOptions("command")), Job{ID: "2", Kind: "k", RunAt: epochStart.Add(time.Hour)})
		if err := b.adopt(t.Context(), b.owner, ownerNobody); err != nil {
			t.Fatal(err)
		}
		list, err := a.List(t.Context(), Filter{})
		if err != nil || len(list) != 2 || list[0].Adopted || !strings.HasPrefix(list[0].Node, "a/") || b.Counts().Adopted != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A job that is committed after the loss of the lease is adopted.
func TestLostLease_lateCommitIsAdopted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var r record
		q := start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), r.handler("k", done)))
		quiet(t, q)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.AfterCommit(func() {
				kill(t, d, q)
				if err := q.lease.Beat(t.Context()); err != nil {
					t.Error(err)
				}
			})
			q.Add(tx, Job{ID: "1", Kind: "k"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := q.Counts().InMemory; n != 0 {
			t.Errorf("%d jobs of the old epoch are in memory", n)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error { // nobody released the lease, so it must expire
			_, err := tx.Exec("UPDATE job_leases SET expires_at = 1 WHERE owner <> $1", q.owner)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		look(t, q)
		quiet(t, q)
		if got := r.all(); len(got) != 1 || !got[0].Adopted {
			t.Errorf("ran %+v", got)
		}
	})
}

// An adopted job waits until its run on the previous node has ended.
func TestAdoption_waitsForOldRun(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var inside, most atomic.Int32
		var r record
		begun, let := make(chan struct{}, 2), make(chan struct{})
		var a *Queue
		a = newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{Kind: "k", Run: func(ctx context.Context, j Job) Outcome {
			raise(&most, inside.Add(1))
			defer inside.Add(-1)
			r.add(j)
			begun <- struct{}{}
			<-let
			if !j.Adopted {
				return Dead(errors.New("from the old life"))
			}
			if dead, err := a.List(ctx, Filter{Dead: true}); err != nil || len(dead) != 0 {
				t.Errorf("the ghost's word counted: %+v, %v", dead, err)
			}
			return Done()
		}})
		start(t, a)
		add(t, d, a, Job{ID: "1", Kind: "k"})
		<-begun
		kill(t, d, a)
		if err := a.lease.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		look(t, a) // it adopts its own job while the earlier handler still runs
		if n := rowsLeft(t, d); n != 1 {
			t.Fatalf("%d rows", n)
		}
		close(let)
		quiet(t, a)
		if got := r.all(); len(got) != 2 || got[0].Adopted || !got[1].Adopted || most.Load() != 1 {
			t.Errorf("ran %+v, %d at once", got, most.Load())
		}
		if n := rowsLeft(t, d); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// A job that waits for its earlier run is dropped if the lease is lost again, because another node then has it.
func TestAdoption_waitingJobIsLostToo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		begun, let := make(chan struct{}, 2), make(chan struct{})
		a := start(t, newQueue(t, d, c, quietOptions("a"), Handler{Kind: "k", Run: func(_ context.Context, j Job) Outcome {
			ra.add(j)
			begun <- struct{}{}
			<-let
			return Later(time.Hour)
		}}))
		b := start(t, newQueue(t, d, c, quietOptions("b"), rb.handler("k", func(Job) Outcome { return Later(time.Hour) })))
		add(t, d, a, Job{ID: "1", Kind: "k"})
		<-begun
		for _, next := range []*Queue{a, b} { // a adopts from itself, b adopts from a
			kill(t, d, a)
			if err := a.lease.Beat(t.Context()); err != nil {
				t.Fatal(err)
			}
			look(t, next)
		}
		quiet(t, b)
		look(t, a)
		close(let)
		quiet(t, a)
		if x, y := len(ra.all()), len(rb.all()); x != 1 || y != 1 || a.Counts().InMemory != 0 {
			t.Errorf("a, which owned it, ran it %d times, b, which owns it, %d; a remembers %d jobs", x, y, a.Counts().InMemory)
		}
	})
}

// A graceful stop hands the jobs over to other nodes.
func TestStop_handsJobsOver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		begun, let := make(chan struct{}), make(chan struct{})
		a := newQueue(t, d, c, quietOptions("a"), Handler{Kind: "k", Workers: 1, Run: func(ctx context.Context, j Job) Outcome {
			ra.add(j)
			close(begun)
			<-let
			if ctx.Err() != nil {
				t.Error("the handler was told to end although there was time")
			}
			return Done()
		}})
		start(t, a)
		b := start(t, newQueue(t, d, c, quietOptions("b"), rb.handler("k", done)))
		quiet(t, b)
		add(t, d, a, Job{ID: "1", Kind: "k"})
		<-begun
		add(t, d, a, Job{ID: "2", Kind: "k"}, Job{ID: "3", Kind: "k", RunAt: epochStart.Add(time.Hour)})
		stopped := make(chan error)
		go func() { stopped <- a.Stop(context.Background()) }()
		clocktest.Await(t, "the stop", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.phase == draining
		})
		close(let)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if n := len(ra.all()); n != 1 {
			t.Errorf("%d jobs ran on the stopping node", n)
		}
		look(t, b) // no lease has to expire
		quiet(t, b)
		if got := rb.all(); len(got) != 1 || got[0].ID != "2" || !got[0].Adopted {
			t.Errorf("b ran %+v", got)
		}
		c.Advance(time.Hour)
		quiet(t, b)
		if n := rowsLeft(t, d); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		add(t, d, a, Job{ID: "4", Kind: "k"}) // by a request that was still running
		look(t, b)
		quiet(t, b)
		if got := rb.all(); len(got) != 3 || got[2].ID != "4" {
			t.Errorf("b ran %+v", got)
		}
	})
}

// A stop ends handlers that take too long.
func TestStop_endsSlowHandlers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		begun := make(chan struct{})
		q := newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{Kind: "k", Run: func(ctx context.Context, _ Job) Outcome {
			close(begun)
			<-ctx.Done()
			return Retry(ctx.Err())
		}})
		start(t, q)
		add(t, d, q, Job{ID: "1", Kind: "k"})
		<-begun
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := q.Stop(over); !errors.Is(err, context.Canceled) {
			t.Errorf("Stop: %v", err)
		}
		list, err := q.List(t.Context(), Filter{})
		if err != nil || len(list) != 1 || list[0].Tries != 1 {
			t.Errorf("its outcome was not written: %+v, %v", list, err)
		}
	})
}

// A restarted node adopts the jobs of its earlier process at once.
func TestRestart_adoptsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		first := newQueue(t, d, c, quietOptions("a"), r.handler("k", func(Job) Outcome { return Later(time.Hour) }))
		start(t, first) // it is never stopped, because it crashed
		add(t, d, first, Job{ID: "1", Kind: "k"})
		quiet(t, first)
		second := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done)))
		quiet(t, second)
		if got := r.all(); len(got) != 2 || !got[1].Adopted {
			t.Errorf("ran %+v", got)
		}
		if second.Epoch() <= first.Epoch() {
			t.Error("the epoch did not grow")
		}
		// The first process was still alive and has the same name. Both continue.
		if err := first.lease.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := second.lease.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first.Counts().LeasesLost != 1 || second.Counts().LeasesLost != 0 {
			t.Errorf("namesakes take each other's leases: %d, %d", first.Counts().LeasesLost, second.Counts().LeasesLost)
		}
	})
}

// The jobs that a command adds run on any node.
func TestJob_ofCommandRunsOnAnyNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		command := New(d, c, nil, quietOptions("command"))
		add(t, d, command, Job{ID: "1", Kind: "k", Memo: 1})
		server := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done)))
		quiet(t, server)
		if got := r.all(); len(got) != 1 || got[0].Memo != nil {
			t.Errorf("ran %+v", got)
		}
	})
}

// Wake reaches a job on another node.
func TestWake_reachesOtherNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		a := start(t, newQueue(t, d, c, quietOptions("a"), ra.handler("k", func(Job) Outcome { return Later(time.Hour) })))
		b := start(t, newQueue(t, d, c, quietOptions("b"), rb.handler("k", done)))
		look(t, a)
		look(t, b)
		add(t, d, a, Job{ID: "1", Kind: "k", Subject: "s"})
		quiet(t, a)
		b.Wake("s")
		quiet(t, b) // until the hint is written
		look(t, a)
		quiet(t, a)
		if n := len(ra.all()); n != 2 {
			t.Errorf("ran %d times, expected once and the wake", n)
		}
		look(t, a)
		quiet(t, a)
		if n := len(ra.all()); n != 2 {
			t.Errorf("the hint was taken twice")
		}
		var left int
		_, err := d.ReadOne(t.Context(), "SELECT count(*) FROM job_wakes", nil, &left)
		if err != nil || left != 0 {
			t.Errorf("%d hints are left, %v", left, err)
		}
	})
}

// If a job is woken while an earlier hint is being written, a second hint is written. The owner may already have read
// the first.
func TestWake_whileHintIsWritten(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(epochStart)
		start(t, newQueue(t, d, c, quietOptions("a")))
		b := start(t, newQueue(t, d, c, quietOptions("b")))
		look(t, b)
		var written atomic.Int32
		f.Decide(func(at db.Boundary) db.Fault {
			if at == db.BoundaryCommit && written.Add(1) == 1 {
				b.Wake("s")
			}
			return db.FaultNone
		})
		b.Wake("s")
		quiet(t, b)
		f.Decide(nil)
		if n := written.Load(); n != 2 {
			t.Errorf("%d hints were written, expected 2", n)
		}
	})
}

// Periodic work runs on one node at a time.
func TestPeriodic_runsOnOneNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ran [2]atomic.Int32
		var queues [2]*Queue
		for i := range queues {
			q := newQueue(t, d, c, quietOptions(fmt.Sprint("node-", i)))
			q.Periodic("sweep", time.Hour, func(context.Context) error {
				if ran[i].Add(1) == 2 {
					return errors.New("this time it failed")
				}
				return nil
			})
			queues[i] = start(t, q)
			quiet(t, q)
		}
		for range 4 {
			c.Advance(time.Hour)
			quiet(t, queues[0])
			quiet(t, queues[1])
		}
		if ran[0].Load() != 4 || ran[1].Load() != 0 {
			t.Fatalf("ran %d and %d times", ran[0].Load(), ran[1].Load())
		}
		depth, err := queues[0].Depth(t.Context())
		if err != nil || len(depth) != 0 {
			t.Errorf("periodic work counts as depth: %+v, %v", depth, err)
		}
		kill(t, d, queues[0])
		look(t, queues[1])
		c.Advance(time.Hour)
		quiet(t, queues[1])
		if ran[1].Load() != 1 {
			t.Error("the other node did not take the periodic work over")
		}
	})
}

// A job goes to a node that handles its kind.
func TestJob_goesToNodeOfItsKind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var ra, rb record
		var hasA, hasB atomic.Bool
		hasA.Store(true)
		begun, goOn := make(chan struct{}), make(chan struct{})
		ha := ra.handler("k", func(Job) Outcome {
			close(begun)
			<-goOn
			return Pass()
		})
		ha.Takes = hasA.Load
		hb := rb.handler("k", done)
		hb.Takes = hasB.Load
		a := start(t, newQueue(t, d, c, quietOptions("a"), ha))
		b := start(t, newQueue(t, d, c, quietOptions("b"), hb))

		// The first job is given back by a node that can no longer run it. The second is added when no node can run
		// it.
		add(t, d, a, Job{ID: "passed", Kind: "k", Memo: "lost on the way"})
		<-begun
		hasA.Store(false)
		close(goOn)
		quiet(t, a)
		add(t, d, a, Job{ID: "parked", Kind: "k"})
		quiet(t, a)
		look(t, a)
		look(t, b)
		quiet(t, b)
		if n := len(ra.all()); n != 1 {
			t.Fatalf("the node that cannot do it began %d jobs", n)
		}
		if n := len(rb.all()); n != 0 {
			t.Fatalf("%d jobs went to a node that does not take them", n)
		}
		list, err := a.List(t.Context(), Filter{})
		if err != nil || len(list) != 2 || list[0].Node != "" || list[1].Node != "" {
			t.Fatalf("waiting jobs are listed as %+v, %v", list, err)
		}

		hasB.Store(true)
		if err := b.takeParked(t.Context()); err != nil {
			t.Fatal(err)
		}
		quiet(t, b)
		got := rb.all()
		if len(got) != 2 {
			t.Fatalf("%d of 2 jobs ran on the node that takes them", len(got))
		}
		for _, j := range got {
			if !j.Adopted || j.Memo != nil {
				t.Errorf("handed over as %+v", j)
			}
		}
		if n := rowsLeft(t, d); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
