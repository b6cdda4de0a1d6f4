package idempotency

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// fixture counts the requests that are carried out.
type fixture struct {
	*Answers
	t     *testing.T
	clock *clock.Clock
	mu    sync.Mutex
	done  int
}

func open(t *testing.T, d *db.DB) *fixture {
	c := clock.NewManual(morning)
	return &fixture{Answers: NewAnswers(d, c), t: t, clock: c}
}

// answer is the answer to a request.
type answer struct {
	Text     string
	replayed bool
	err      error
}

// ask sends a request with a key. The request makes a text or fails.
func (f *fixture) ask(key, body string, fails error) answer {
	made, replayed, err := Once(f.t.Context(), f.Answers, Caller{Tenant: "shop", IdempotencyKey: key, BodyHash: body}, func(*db.Tx) (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done++
		return fmt.Sprint("number ", f.done), fails
	})
	return answer{made, replayed, err}
}

func (f *fixture) rows() (n int64) {
	f.t.Helper()
	if _, err := f.db.ReadOne(f.t.Context(), `SELECT count(*) FROM answers`, nil, &n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func TestKey_replaysTheFirstAnswer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		first, again := f.ask("key", "body", nil), f.ask("key", "body", nil)
		if first != (answer{Text: "number 1"}) || again != (answer{Text: "number 1", replayed: true}) {
			t.Errorf("first %+v, then %+v", first, again)
		}
		made, replayed, err := Recall[string](t.Context(), f.Answers, Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "body"})
		if made != "number 1" || !replayed || err != nil {
			t.Errorf("recalled %q, %v, %v", made, replayed, err)
		}
		if other := f.ask("key", "another body", nil); other.replayed || problem.From(other.err).Code != "idempotency_key_mismatch" {
			t.Errorf("another request with the key: %+v", other)
		}
		if other, replayed, err := Recall[string](t.Context(), f.Answers, Caller{Tenant: "neighbour", IdempotencyKey: "key", BodyHash: "body"}); other != "" || replayed || err != nil {
			t.Errorf("the key of another tenant: %q, %v, %v", other, replayed, err)
		}
	})
}

func TestKey_absentStoresNoRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		first, again := f.ask("", "body", nil), f.ask("", "body", nil)
		if first.Text != "number 1" || again.Text != "number 2" || again.replayed || f.rows() != 0 {
			t.Errorf("first %+v, then %+v, %d rows", first, again, f.rows())
		}
	})
}

func TestKey_refusalFreesIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		if refused := f.ask("key", "body", problem.Field("name", "is required")); !problem.Is(refused.err, problem.Invalid) || f.rows() != 0 {
			t.Errorf("refused as %+v, %d rows", refused, f.rows())
		}
		if made := f.ask("key", "another body", nil); made.err != nil || made.replayed {
			t.Errorf("the same key after a refusal: %+v", made)
		}
	})
}

func TestKey_concurrentHaveOneAnswer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		answers := make([]answer, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = f.ask("key", "body", nil) })
		}
		all.Wait()
		firsts := 0
		for _, a := range answers {
			if !a.replayed {
				firsts++
			}
			if a.err != nil || a.Text != answers[0].Text {
				t.Errorf("%+v, another has %+v", a, answers[0])
			}
		}
		if firsts != 1 || f.rows() != 1 {
			t.Errorf("%d were answered as the first, %d rows", firsts, f.rows())
		}
	})
}

// A duplicate may be the result of another request with the same key. Then the duplicate is the answer.
func TestKey_duplicateIsReadAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		caller, tries := Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "body"}, 0
		duplicate := problem.New(problem.Duplicate, "exists", "There is one already")
		_, _, err := Once(t.Context(), f.Answers, caller, func(*db.Tx) (string, error) { tries++; return "", duplicate })
		if !errors.Is(err, duplicate) || tries != 2 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}

// A key can be used again a day after its request, even before the sweep.
func TestKey_freeAfterADay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.ask("key", "body", nil)
		f.clock.Advance(Window - time.Microsecond)
		f.ask("young", "body", nil)
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := f.ask("key", "body", nil); !again.replayed {
			t.Errorf("before its time: %+v", again)
		}
		f.clock.Advance(time.Microsecond)
		if other := f.ask("key", "another body", nil); other.replayed || other.err != nil {
			t.Errorf("a day later, before the sweep: %+v", other)
		}
		if again := f.ask("key", "another body", nil); !again.replayed {
			t.Errorf("the new request with the key: %+v", again)
		}
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if young := f.ask("young", "body", nil); !young.replayed {
			t.Errorf("a younger key: %+v", young)
		}
	})
}

// A key that was used before a clock step is kept until a day after the step, also by a process that starts later.
func TestKey_outlivesAStepOfTheClock(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": 40 * time.Hour, "back": -40 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := open(t, d)
				f.ask("key", "body", nil)
				f.clock.Set(by)
				stepped := f.clock.Now()
				if again := f.ask("key", "body", nil); !again.replayed {
					t.Errorf("right after the step: %+v", again)
				}
				f.clock.Advance(Window - time.Second)
				if err := f.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				later := clock.NewManual(f.clock.Now())
				later.Recall(stepped)
				if _, replayed, err := Recall[string](t.Context(), NewAnswers(d, later), Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "body"}); err != nil || !replayed {
					t.Errorf("after a restart, a second before its time: %v, %v", replayed, err)
				}
				f.clock.Advance(time.Second)
				if other := f.ask("key", "another body", nil); by > 0 && (other.replayed || other.err != nil) {
					t.Errorf("a day after the step: %+v", other)
				}
			})
		})
	}
}

func TestSweep_batchesOfAThousand(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		f := open(t, d)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			for i := range 2_500 {
				if err := f.Keep(tx, Caller{Tenant: "shop", IdempotencyKey: fmt.Sprint(i)}, i); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(Window + time.Second)
		commits := 0
		faults.Decide(func(b db.Boundary) db.Fault {
			if b == db.BoundaryCommit {
				commits++
			}
			return db.FaultNone
		})
		if err := f.Sweep(t.Context()); err != nil || commits != 3 || f.rows() != 0 {
			t.Errorf("%v after %d transactions, %d rows are left", err, commits, f.rows())
		}
	})
}
