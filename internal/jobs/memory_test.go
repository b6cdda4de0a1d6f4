package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/scheduler"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// Jobs beyond the memory limit are fetched later.
func TestMemory_overflowIsFetchedLater(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		o := quietOptions("a")
		o.MemoryMax = 20
		var r record
		gate := make(chan struct{})
		q := start(t, newQueue(t, d, c, o, Handler{Kind: "k", Workers: 16, Run: func(_ context.Context, j Job) Outcome {
			<-gate
			r.add(j)
			return Done()
		}}))
		const all = 700 // more than one search fetches
		var jobs []Job
		for i := range all {
			jobs = append(jobs, Job{ID: fmt.Sprintf("%04d", i), Kind: "k"})
		}
		add(t, d, q, jobs...)
		if n := q.Counts(); n.InMemory > 25 || !n.Overflowing || n.Overflows < all-25 {
			t.Fatalf("memory is not bounded: %+v", n)
		}
		close(gate)
		quiet(t, q)
		ids := map[string]int{}
		for _, j := range r.all() {
			ids[j.ID]++
			if j.Adopted {
				t.Fatalf("%s counts as adopted", j.ID)
			}
		}
		if len(ids) != all || len(r.all()) != all {
			t.Errorf("%d jobs ran %d times", len(ids), len(r.all()))
		}
		if rowsLeft(t, d) != 0 || q.Counts().Overflowing {
			t.Errorf("%d rows left, %+v", rowsLeft(t, d), q.Counts())
		}
	})
}

// Overdue returns for how long the first due job has waited.
func TestOverdue_ageOfTheFirstJob(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		gate, begun := make(chan struct{}), make(chan struct{}, 3)
		q := start(t, newQueue(t, d, c, quietOptions("a"), Handler{Kind: "k", Workers: 1, Run: func(context.Context, Job) Outcome {
			begun <- struct{}{}
			<-gate
			return Done()
		}}))
		add(t, d, q, Job{Kind: "k"})
		<-begun
		if late := q.Overdue(); len(late) != 1 || late["k"] != 0 {
			t.Errorf("while the only job runs: %v", late)
		}
		add(t, d, q, Job{Kind: "k"}, Job{Kind: "k", RunAt: epochStart.Add(time.Hour)})
		c.Advance(90 * time.Second)
		if late := q.Overdue(); late["k"] != 90*time.Second {
			t.Errorf("one waits for a worker: %v", late)
		}
		close(gate)
		quiet(t, q)
		if late := q.Overdue(); late["k"] != 0 {
			t.Errorf("one is not due yet: %v", late)
		}
	})
}

// Jobs due later leave memory for jobs due sooner.
func TestMemory_keepsJobsDueFirst(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		o := quietOptions("a")
		o.MemoryMax = 20
		var r record
		var begun sync.Map
		q := start(t, newQueue(t, d, c, o, r.handler("poll", func(j Job) Outcome {
			if _, again := begun.LoadOrStore(j.ID, true); j.Fresh == again {
				t.Errorf("%s is fresh: %v; it ran before: %v", j.ID, j.Fresh, again)
			}
			if j.Tries == 0 && c.Now().Equal(epochStart) {
				return Later(time.Hour) // only the memory has this delay
			}
			return Done()
		}), r.handler("k", done)))
		quiet(t, q)
		for i := range 4 {
			var jobs []Job
			for n := range 10 {
				subject := fmt.Sprintf("subject-%d-%d", i, n)
				jobs = append(jobs, Job{ID: subject + []string{"", "/0", "/17"}[n%3], Kind: "poll", Subject: subject})
			}
			add(t, d, q, jobs...)
			quiet(t, q)
			look(t, q)
		}
		if n := q.Counts(); n.InMemory > 20 || !n.Overflowing || n.Overflows == 0 || n.Ran != 40 {
			t.Fatalf("%+v", n)
		}
		add(t, d, q, Job{ID: "now", Kind: "k"})
		quiet(t, q)
		if got := r.all(); got[len(got)-1].ID != "now" {
			t.Fatalf("the job of now did not run: %+v", q.Counts())
		}
		// A job that is not in memory is still found if it is woken.
		q.mu.Lock()
		var away string
		for i := range 4 {
			for n := range 10 {
				s := fmt.Sprintf("subject-%d-%d", i, n)
				if !slices.ContainsFunc(slices.Collect(q.memory.All()), func(e *scheduler.Entry[held]) bool { return e.Subject == s }) {
					away = s
				}
			}
		}
		q.mu.Unlock()
		before := len(r.all())
		q.Wake(away)
		quiet(t, q)
		look(t, q)
		quiet(t, q)
		// The maintainer and this test may both read the hint. The job then runs twice.
		if got := r.all()[before:]; len(got) == 0 || slices.ContainsFunc(got, func(j Job) bool { return j.Subject != away }) {
			t.Errorf("the wake of %s ran %+v", away, got)
		}
		before = len(r.all())
		c.Advance(59 * time.Minute)
		look(t, q)
		quiet(t, q)
		if n := len(r.all()) - before; n != 0 {
			t.Errorf("%d jobs ran before the hour that their handlers named", n)
		}
		c.Advance(2 * time.Minute)
		look(t, q)
		quiet(t, q)
		if n := rowsLeft(t, d); n != 0 {
			t.Errorf("%d rows left; %+v", n, q.Counts())
		}
	})
}

// If the answer to COMMIT is lost, no job is lost.
func TestCommit_lostResponseLosesNoJob(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(epochStart)
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done)))
		quiet(t, q)
		f.At(db.BoundaryCommit, 1, db.FaultAfter)
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			q.Add(tx, Job{ID: "1", Kind: "k"})
			return nil
		})
		if !errors.Is(err, db.ErrAmbiguous) {
			t.Fatalf("the fault did not happen: %v", err)
		}
		c.Advance(2 * strayAge)
		q.mu.Lock()
		q.overflow.strays = time.Time{}
		q.mu.Unlock()
		look(t, q)
		quiet(t, q)
		if got := r.all(); len(got) != 1 {
			t.Errorf("ran %+v", got)
		}
	})
}

// If the database fails, no outcome of a job is lost.
func TestOutcome_survivesDatabaseFailure(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(epochStart)
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done), r.handler("bad", func(Job) Outcome {
			return Dead(errors.New("never"))
		})))
		quiet(t, q)
		add(t, d, q, Job{ID: "1", Kind: "k"}, Job{ID: "2", Kind: "bad"})
		f.Decide(func(b db.Boundary) db.Fault { return db.FaultBefore })
		quiet(t, q)
		f.Decide(nil)
		if n := rowsLeft(t, d); n > 2 {
			t.Fatalf("%d rows", n)
		}
		c.Advance(unwrittenPause)
		quiet(t, q)
		dead, err := q.List(t.Context(), Filter{Dead: true})
		if n := rowsLeft(t, d); n != 1 || err != nil || len(dead) != 1 || dead[0].ID != "2" {
			t.Errorf("%d rows left, dead letters %+v, %v", n, dead, err)
		}
	})
}

// lines counts log lines, and signals the first.
type lines struct {
	n     atomic.Int32
	first chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	if l.n.Add(1) == 1 {
		close(l.first)
	}
	return len(p), nil
}

// A database may be readable but refuse writes, for example on a full disk. The search for a dead node's jobs then
// pauses before each retry.
func TestAdoption_restsAfterFailure(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(epochStart)
		later := func(Job) Outcome { return Later(time.Hour) }
		var r record
		a := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", later)))
		add(t, d, a, Job{ID: "1", Kind: "k"})
		quiet(t, a)
		b := newQueue(t, d, c, quietOptions("b"), r.handler("k", later))
		failed := &lines{first: make(chan struct{})}
		b.log = slog.New(slog.NewTextHandler(failed, nil))
		start(t, b)
		quiet(t, b)
		kill(t, d, a)
		err := d.Write(t.Context(), func(tx *db.Tx) error { b.lease.Expire(tx); return nil })
		if err != nil {
			t.Fatal(err)
		}
		f.Decide(func(at db.Boundary) db.Fault {
			if at == db.BoundaryCommit {
				return db.FaultBefore
			}
			return db.FaultNone
		})
		b.mu.Lock()
		b.looked = false
		b.mu.Unlock()
		b.nudge()
		select {
		case <-failed.first:
		case <-time.After(patience):
			t.Fatal("nobody looked")
		}
		for range 20 { // gives the maintainer enough time for as many retries
			if err := b.maintain(t.Context()); err == nil {
				t.Fatal("the fault did not happen")
			}
		}
		if n := failed.n.Load(); n != 1 {
			t.Errorf("the maintainer failed %d times at once", n)
		}
		f.Decide(nil)
	})
}

// A dead node is found by its missing heartbeat.
func TestDeadNode_foundByMissingHeartbeat(t *testing.T) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			options := dbtest.Options(t, e)
			faulty := options
			faulty.Faults = &db.Faults{}
			da, d := dbtest.OpenWith(t, faulty), dbtest.OpenWith(t, options)
			// The lease is so long that even a busy machine does not lose it before the test stops the heartbeats.
			short := Options{LeaseFor: 5 * time.Second, Heartbeat: 50 * time.Millisecond}
			var r record
			oa, ob := short, short
			oa.Node, ob.Node = "a", "b"
			a := start(t, newQueue(t, da, clock.Real(), oa, r.handler("k", func(Job) Outcome { return Later(time.Hour) })))
			done := make(chan Job, 1)
			b := start(t, newQueue(t, d, clock.Real(), ob, Handler{Kind: "k", Run: func(_ context.Context, j Job) Outcome {
				done <- j
				return Done()
			}}))
			epoch := a.Epoch() // read before the fault, because a machine that stands still for longer than a lease also loses it
			add(t, da, a, Job{ID: "1", Kind: "k"})
			quiet(t, a)
			faulty.Faults.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
			select {
			case j := <-done:
				if !j.Adopted {
					t.Error("not told that it is adopted")
				}
			case <-time.After(patience):
				t.Fatalf("the silent node's job was never adopted: %+v", b.Counts())
			}
			if a.Counts().LeaseHolds && a.Epoch() == epoch {
				t.Error("the silent node would still begin jobs")
			}
			faulty.Faults.Decide(nil)
			clocktest.Await(t, "the node's return", func() bool { return a.Epoch() != epoch })
		})
	}
}

// A run can move its job to another line, which has another limit.
func TestJob_changesItsLine(t *testing.T) {
	const jobsThere = 4
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var together sync.WaitGroup // all first runs at once; otherwise the test does not end
		together.Add(jobsThere)
		var atOnce, most, ended atomic.Int32
		h := Handler{
			Kind: "k", Workers: jobsThere,
			Key: func(j Job) string {
				if j.Memo.(*atomic.Bool).Load() {
					return "second"
				}
				return "first"
			},
			PerKey: func(key string) int { return map[string]int{"first": jobsThere, "second": 1}[key] },
			Run: func(_ context.Context, j Job) Outcome {
				if !j.Memo.(*atomic.Bool).Swap(true) {
					together.Done()
					together.Wait()
					return Later(0)
				}
				now := atOnce.Add(1)
				runtime.Gosched()
				raise(&most, now)
				atOnce.Add(-1)
				ended.Add(1)
				return Done()
			},
		}
		q := start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), h))
		var jobs []Job
		for range jobsThere {
			jobs = append(jobs, Job{Kind: "k", Memo: new(atomic.Bool)})
		}
		add(t, d, q, jobs...)
		quiet(t, q)
		if most.Load() != 1 || ended.Load() != jobsThere {
			t.Errorf("%d of %d ended, %d of the second line at once, expected 1", ended.Load(), jobsThere, most.Load())
		}
	})
}

// raise sets the value to the maximum of itself and to, also under concurrent calls.
func raise(most *atomic.Int32, to int32) {
	for was := most.Load(); was < to && !most.CompareAndSwap(was, to); was = most.Load() {
	}
}

// A long line does not delay the jobs of a short one.
func TestLine_longDoesNotDelayShort(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		slow := make(chan struct{})
		var atOnce, most atomic.Int32
		quick := make(chan struct{}, 10)
		h := Handler{
			Kind: "k", Workers: 5,
			Key:    func(j Job) string { return string(j.Payload) },
			PerKey: func(key string) int { return 2 },
			Run: func(_ context.Context, j Job) Outcome {
				if string(j.Payload) == `"slow"` {
					raise(&most, atOnce.Add(1))
					<-slow
					atOnce.Add(-1)
					return Done()
				}
				quick <- struct{}{}
				return Done()
			},
		}
		q := start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), h))
		var jobs []Job
		for range 50 {
			jobs = append(jobs, Job{Kind: "k", Payload: []byte(`"slow"`)})
		}
		for range 5 {
			jobs = append(jobs, Job{Kind: "k", Payload: []byte(`"quick"`)})
		}
		add(t, d, q, jobs...)
		for range 5 {
			select {
			case <-quick:
			case <-time.After(patience):
				t.Fatal("a slow line held up a quick one")
			}
		}
		close(slow)
		quiet(t, q)
		if most.Load() != 2 {
			t.Errorf("%d of one line ran at once, expected 2", most.Load())
		}
	})
}

// A larger limit of a line takes effect at once.
func TestLine_largerLimitTakesEffect(t *testing.T) {
	var limit atomic.Int32
	limit.Store(1)
	var inside atomic.Int32
	all := make(chan struct{})
	var once sync.Once
	d := dbtest.Open(t, db.SQLite)
	q := start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{
		Kind: "k", Workers: 8,
		Key:    func(Job) string { return "one" },
		PerKey: func(string) int { return int(limit.Load()) },
		Run: func(_ context.Context, j Job) Outcome {
			if string(j.Payload) == "1" {
				limit.Store(8)
				return Done()
			}
			if inside.Add(1) == 8 {
				once.Do(func() { close(all) })
			}
			select {
			case <-all:
			case <-time.After(patience):
				t.Error("the limit grew but was not used")
			}
			return Done()
		},
	}))
	jobs := []Job{{Kind: "k", Payload: []byte("1")}}
	for range 8 {
		jobs = append(jobs, Job{Kind: "k"})
	}
	add(t, d, q, jobs...)
	quiet(t, q)
}
