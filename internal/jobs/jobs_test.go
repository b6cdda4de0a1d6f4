package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// patience bounds each wait of a test. Only a failing test reaches it.
const patience = 3 * time.Minute

var epochStart = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// quietOptions configure a queue without heartbeats. Tests call beat and keep.
func quietOptions(node string) Options {
	return Options{Node: node, LeaseFor: time.Hour, Heartbeat: time.Hour}
}

func newQueue(t *testing.T, d *db.DB, c *clock.Clock, o Options, handlers ...Handler) *Queue {
	t.Helper()
	q := New(d, c, slog.New(slog.DiscardHandler), o)
	q.maintainEvery = o.Heartbeat // so rare that it does not disturb the test
	for _, h := range handlers {
		q.Register(h)
	}
	return q
}

func start(t *testing.T, q *Queue) *Queue {
	t.Helper()
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	// After its first look, the maintainer looks only when the test calls it.
	clocktest.Await(t, "the first look", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.looked
	})
	return q
}

func add(t *testing.T, d *db.DB, q *Queue, jobs ...Job) {
	t.Helper()
	if err := d.Write(t.Context(), func(tx *db.Tx) error { q.Add(tx, jobs...); return nil }); err != nil {
		t.Fatal(err)
	}
}

func quiet(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := q.Quiet(ctx); err != nil {
		t.Fatalf("never quiet: %v; %+v", err, q.Counts())
	}
}

func rowsLeft(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	_, err := d.ReadOne(t.Context(), "SELECT count(*) FROM jobs", nil, &n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// kill ends the lease of an owner, as the passing of time would.
func kill(t *testing.T, d *db.DB, q *Queue) {
	t.Helper()
	q.mu.Lock()
	owner := q.owner
	q.mu.Unlock()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		n, err := tx.Exec("UPDATE job_leases SET expires_at = 1 WHERE owner = $1", owner)
		if n != 1 {
			t.Errorf("no lease of %s", owner)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// record collects the jobs that handlers ran.
type record struct {
	mu   sync.Mutex
	seen []Job
}

func (r *record) add(j Job) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, j)
	return len(r.seen)
}

func (r *record) all() []Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *record) handler(kind string, out func(Job) Outcome) Handler {
	return Handler{Kind: kind, Run: func(_ context.Context, j Job) Outcome {
		r.add(j)
		return out(j)
	}}
}

func done(Job) Outcome { return Done() }

// A new job runs from memory without a query.
func TestJob_newRunsFromMemory(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		var r record
		during := -1
		q := newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{Kind: "k", Run: func(_ context.Context, j Job) Outcome {
			during = f.Exchanges()
			r.add(j)
			return Done()
		}})
		start(t, q)
		quiet(t, q)
		var after int
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			q.Add(tx, Job{ID: "1", Kind: "k", Subject: "s", Payload: json.RawMessage(`{"v":1}`), Memo: 7})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		quiet(t, q)
		after = f.Exchanges()
		got := r.all()
		if len(got) != 1 {
			t.Fatalf("ran %d times", len(got))
		}
		j := got[0]
		if j.ID != "1" || j.Subject != "s" || string(j.Payload) != `{"v":1}` || j.Memo != 7 || j.Adopted || j.Tries != 0 || !j.RunAt.Equal(epochStart) {
			t.Errorf("the handler saw %+v", j)
		}
		if rowsLeft(t, d) != 0 {
			t.Error("the row is still there")
		}
		// Add costs one exchange, with COMMIT. Between Add and the handler there is no query.
		if during < 1 || after-during > 1 {
			t.Errorf("%d exchanges before the handler, %d after", during, after)
		}
	})
}

// A row may be read from the table before its own COMMIT is reported. The job then gets its memo, unless its handler
// has begun.
func TestMemo_arrivesLate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var q *Queue
		heard := func(j Job) {
			j.Memo = 7
			q.mu.Lock()
			owner := q.owner
			q.mu.Unlock()
			q.remember(owner, []row{{Job: j, owner: owner, created: db.Micros(epochStart)}})
		}
		var memos []any
		q = start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{Kind: "k", Run: func(_ context.Context, j Job) Outcome {
			if memos = append(memos, j.Memo); len(memos) == 1 {
				heard(j)
				return Later(0)
			}
			return Done()
		}}))
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			q.Add(tx, Job{ID: "1", Kind: "k"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		quiet(t, q)
		if len(memos) != 2 || memos[1] != nil {
			t.Errorf("the handler saw %v", memos)
		}
		j := Job{ID: "2", Kind: "k", RunAt: epochStart.Add(time.Hour)}
		q.mu.Lock()
		q.putLocked(&row{Job: j}, q.momentLocked())
		q.mu.Unlock()
		heard(j)
		q.mu.Lock()
		defer q.mu.Unlock()
		if memo := q.memory.Find("2").Job.Memo; memo != 7 {
			t.Errorf("before it began: %v", memo)
		}
	})
}

// A job whose transaction rolled back never runs.
func TestJob_rolledBackNeverRuns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var r record
		q := start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), r.handler("k", done)))
		no := errors.New("no")
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			q.Add(tx, Job{ID: "1", Kind: "k"})
			return no
		})
		if !errors.Is(err, no) {
			t.Fatal(err)
		}
		add(t, d, q, Job{ID: "2", Kind: "k"})
		quiet(t, q)
		if got := r.all(); len(got) != 1 || got[0].ID != "2" {
			t.Errorf("ran %+v", got)
		}
	})
}

// A handler can finish its job in its own transaction.
func TestFinish_inTransaction(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		var q *Queue
		var before int
		q = newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{Kind: "k", Run: func(ctx context.Context, j Job) Outcome {
			err := d.Write(ctx, func(tx *db.Tx) error { q.Finish(tx, j.ID); return nil })
			before = f.Exchanges()
			if err != nil {
				return Retry(err)
			}
			return Later(time.Hour) // has no effect, because the transaction finished the job
		}})
		start(t, q)
		quiet(t, q)
		add(t, d, q, Job{ID: "1", Kind: "k"})
		quiet(t, q)
		if rowsLeft(t, d) != 0 || q.Counts().InMemory != 0 {
			t.Errorf("left: %d rows, %+v", rowsLeft(t, d), q.Counts())
		}
		if after := f.Exchanges(); after != before+1 { // one for the count of rows above
			t.Errorf("%d exchanges after Finish", after-before-1)
		}
	})
}

// A job can be finished before it runs.
func TestFinish_beforeItRuns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done)))
		add(t, d, q, Job{ID: "1", Kind: "k", Subject: "s", RunAt: epochStart.Add(time.Minute)}, Job{ID: "2", Kind: "k", Subject: "s", RunAt: epochStart.Add(time.Minute)})
		if err := d.Write(t.Context(), func(tx *db.Tx) error { q.Finish(tx, "1"); return nil }); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Hour)
		quiet(t, q)
		if got := r.all(); len(got) != 1 || got[0].ID != "2" {
			t.Errorf("ran %+v", got)
		}
		q.Wake("s") // the subject has no job any more
		quiet(t, q)
		if n := q.Counts().InMemory; n != 0 {
			t.Errorf("%d jobs are still known", n)
		}
	})
}

// Later delays a job without writing to the database.
func TestLater_writesNoRow(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(epochStart)
		var r record
		q := newQueue(t, d, c, quietOptions("a"), r.handler("k", func(Job) Outcome { return Later(time.Minute) }))
		start(t, q)
		quiet(t, q)
		add(t, d, q, Job{ID: "1", Kind: "k"})
		quiet(t, q)
		before := f.Exchanges()
		for range 3 {
			if at, ok := c.Next(); !ok || at.Sub(c.Now()) != time.Minute {
				t.Fatalf("the next thing happens at %v", at)
			}
			c.Advance(time.Minute)
			quiet(t, q)
		}
		if n := len(r.all()); n != 4 {
			t.Errorf("ran %d times, expected 4", n)
		}
		if f.Exchanges() != before {
			t.Error("Later asked the database")
		}
		if r.all()[3].Tries != 0 {
			t.Error("Later counted as a failure")
		}
	})
}

// If a clock that was an hour ahead is corrected, no waiting job is delayed and no job that was planned later runs
// earlier.
func TestClock_setBackDelaysNoJob(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", func(j Job) Outcome {
			if j.ID == "again" && len(r.all()) == 1 {
				return Later(2 * time.Minute)
			}
			return Done()
		})))
		ran := func(when string, want ...string) {
			t.Helper()
			quiet(t, q)
			var ids []string
			for _, j := range r.all() {
				ids = append(ids, j.ID)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s %v ran, want %v", when, ids, want)
			}
		}
		add(t, d, q, Job{ID: "again", Kind: "k"})
		ran("at first", "again")
		add(t, d, q, Job{ID: "before", Kind: "k", RunAt: c.Now().Add(time.Minute)})
		c.Set(-time.Hour)
		add(t, d, q, Job{ID: "after", Kind: "k", RunAt: c.Now().Add(3 * time.Minute)})
		ran("at once", "again")
		c.Advance(time.Minute)
		ran("after a minute", "again", "before")
		c.Advance(time.Minute)
		ran("after two minutes", "again", "before", "again")
		c.Advance(time.Minute - 1)
		ran("almost after three minutes", "again", "before", "again")
		c.Advance(1)
		ran("after three minutes", "again", "before", "again", "after")
		if n := rowsLeft(t, d); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// Pauses in memory are durations. If a clock that was behind is corrected, no waiting job runs earlier, and no job
// that is added afterwards is delayed.
func TestPauses_clockSetForward(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", done)))
		ran := func(when string, want ...string) {
			t.Helper()
			quiet(t, q)
			var ids []string
			for _, j := range r.all() {
				ids = append(ids, j.ID)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s %v ran, want %v", when, ids, want)
			}
		}
		add(t, d, q, Job{ID: "before", Kind: "k", RunAt: c.Now().Add(30 * time.Minute)})
		c.Set(time.Hour)
		add(t, d, q, Job{ID: "after", Kind: "k", RunAt: c.Now().Add(10 * time.Minute)})
		ran("at once")
		c.Advance(10 * time.Minute)
		ran("after ten minutes", "after")
		c.Advance(20*time.Minute - 1)
		ran("almost after thirty minutes", "after")
		c.Advance(1)
		ran("after thirty minutes", "after", "before")
	})
}

// A job without a delay runs at once on the node that finds it, even if the clock of the node that added it was
// ahead. A delayed job keeps its delay.
func TestJob_runsAtOnceDespiteClock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ahead, c := clock.NewManual(epochStart.Add(time.Hour)), clock.NewManual(epochStart)
		gone := newQueue(t, d, ahead, quietOptions("gone"))
		add(t, d, gone, Job{ID: "at once", Kind: "k"}, Job{ID: "at a time", Kind: "k", RunAt: ahead.Now().Add(time.Minute)})
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", func(Job) Outcome { return Done() })))
		quiet(t, q)
		if got := r.all(); len(got) != 1 || got[0].ID != "at once" {
			t.Errorf("%v ran", got)
		}
		c.Advance(time.Minute - 1)
		quiet(t, q)
		if got := r.all(); len(got) != 1 {
			t.Errorf("before its minute %v ran", got)
		}
		c.Advance(1)
		quiet(t, q)
		if got := r.all(); len(got) != 2 {
			t.Errorf("after the minute for which it had to wait %v ran", got)
		}
	})
}

// A retry is stored. The pause before the next retry is longer.
func TestRetry_isStoredAndBacksOff(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		q := start(t, newQueue(t, d, c, quietOptions("a"), r.handler("k", func(j Job) Outcome {
			return Retry(fmt.Errorf("no luck \x00 %s", strings.Repeat("ü", 400)))
		})))
		add(t, d, q, Job{ID: "1", Kind: "k"})
		quiet(t, q)
		for try := 1; try <= 4; try++ {
			list, err := q.List(t.Context(), Filter{Kind: "k"})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			j := list[0]
			want := Backoff("1", try-1)
			if j.Tries != try || j.RunAt.Sub(c.Now()) != want || !strings.HasPrefix(j.LastError, "no luck ? ü") || len(j.LastError) > errorBytes {
				t.Fatalf("after %d failures the row says %+v, expected a pause of %v", try, j, want)
			}
			c.Advance(want)
			quiet(t, q)
		}
		if got := r.all(); len(got) != 5 || got[4].Tries != 4 || got[4].LastError == "" {
			t.Errorf("ran %d times, last %+v", len(got), got[len(got)-1])
		}
	})
}

// The backoff doubles up to its maximum.
func TestBackoff_doublesToItsMaximum(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 80: 5 * time.Minute} {
		for _, id := range []string{"a", "b", "c", "d"} {
			got := Backoff(id, tries)
			if got < want*8/10 || got > want*12/10 {
				t.Errorf("after %d failures of %s: %v, expected %v and a fifth", tries, id, got, want)
			}
		}
	}
	if a, again := Backoff("a", 3), Backoff("a", 3); a != again || a == Backoff("b", 3) {
		t.Error("the jitter does not follow from the id")
	}
}

// A job that failed permanently is listed and can be run again.
func TestDeadLetter_isListedAndRerun(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var r record
		h := r.handler("k", func(j Job) Outcome {
			if j.Adopted { // the run after it was rerun
				return Done()
			}
			return RetryAfter(time.Second, errors.New("broken"))
		})
		h.MaxTries = 3
		q := start(t, newQueue(t, d, c, quietOptions("a"), h, r.handler("other", func(Job) Outcome { return Dead(errors.New("hopeless")) })))
		add(t, d, q, Job{ID: "1", Kind: "k"}, Job{ID: "2", Kind: "other", Subject: "s"}, Job{ID: "3", Kind: "k", RunAt: epochStart.Add(24 * time.Hour)})
		for range 3 {
			quiet(t, q)
			c.Advance(time.Second)
		}
		quiet(t, q)
		dead, err := q.List(t.Context(), Filter{Dead: true})
		if err != nil || len(dead) != 2 || dead[0].ID != "1" || dead[0].Tries != 3 || dead[0].LastError != "broken" || dead[0].DeadAt.IsZero() || dead[1].LastError != "hopeless" {
			t.Fatalf("dead letters: %+v, %v", dead, err)
		}
		depth, err := q.Depth(t.Context())
		if err != nil || len(depth) != 2 || depth[0] != (Depth{Kind: "k", Alive: 1, Dead: 1}) || depth[1] != (Depth{Kind: "other", Dead: 1}) {
			t.Fatalf("depth: %+v, %v", depth, err)
		}
		if err := q.Rerun(t.Context(), "3"); !problem.Is(err, problem.InProgress) {
			t.Errorf("rerun of a living job: %v", err)
		}
		if err := q.Rerun(t.Context(), "nothing"); !problem.Is(err, problem.NotFound) {
			t.Errorf("rerun of nothing: %v", err)
		}
		if err := q.Rerun(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		quiet(t, q)
		if n := len(r.all()); n != 5 {
			t.Errorf("ran %d times, expected 3 and 1 and the rerun", n)
		}
		left, err := q.List(t.Context(), Filter{Dead: true})
		if err != nil || len(left) != 1 || left[0].ID != "2" {
			t.Errorf("dead letters after the rerun: %+v, %v", left, err)
		}
	})
}

// If a handler panics, its job fails.
func TestHandler_panicIsAFailure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := start(t, newQueue(t, d, clock.NewManual(epochStart), quietOptions("a"), Handler{Kind: "k", MaxTries: 1, Run: func(context.Context, Job) Outcome {
			panic("oh")
		}}))
		add(t, d, q, Job{ID: "1", Kind: "k"})
		quiet(t, q)
		dead, err := q.List(t.Context(), Filter{Dead: true})
		if err != nil || len(dead) != 1 || dead[0].LastError != "panic: oh" {
			t.Errorf("%+v, %v", dead, err)
		}
	})
}

// A handler can postpone its job in a transaction.
func TestPostpone_inTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(epochStart)
		var q *Queue
		var r record
		q = newQueue(t, d, c, quietOptions("a"), Handler{Kind: "k", Run: func(ctx context.Context, j Job) Outcome {
			r.add(j)
			err := d.Write(ctx, func(tx *db.Tx) error {
				q.Postpone(tx, Postponement{ID: j.ID, At: c.Now().Add(time.Hour), Error: "not now"})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			return Done() // has no effect, because the transaction postponed the job
		}})
		start(t, q)
		add(t, d, q, Job{ID: "1", Kind: "k"})
		quiet(t, q)
		c.Advance(time.Hour - time.Microsecond)
		quiet(t, q)
		if n := len(r.all()); n != 1 {
			t.Fatalf("ran %d times before its time", n)
		}
		c.Advance(time.Microsecond)
		quiet(t, q)
		got := r.all()
		if len(got) != 2 || got[1].Tries != 1 || got[1].LastError != "not now" {
			t.Errorf("%+v", got)
		}
	})
}

// Wake runs a waiting job sooner.
func TestWake_runsJobSooner(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		c := clock.NewManual(epochStart)
		var r record
		gate := make(chan struct{}, 10)
		begun := make(chan struct{}, 10)
		q := start(t, newQueue(t, d, c, quietOptions("a"), Handler{Kind: "k", Run: func(_ context.Context, j Job) Outcome {
			r.add(j)
			begun <- struct{}{}
			<-gate
			return Later(time.Hour)
		}}))
		quiet(t, q)
		add(t, d, q, Job{ID: "1", Kind: "k", Subject: "s", RunAt: epochStart.Add(time.Hour)})
		before := f.Exchanges()
		q.Wake("s")
		<-begun
		q.Wake("s") // while the job runs: one more run
		q.Wake("s")
		gate <- struct{}{}
		<-begun
		gate <- struct{}{}
		quiet(t, q)
		if n := len(r.all()); n != 2 {
			t.Errorf("ran %d times, expected 2", n)
		}
		q.Wake("somebody else's")
		quiet(t, q)
		if f.Exchanges() != before {
			t.Error("a wake of one's own job asked the database")
		}
	})
}
