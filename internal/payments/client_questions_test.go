package payments

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A payment is asked about at most once in hintTime, and again as soon as that
// is over, whatever else was asked about meanwhile.
func TestAskedOnceInHintTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q clientQuestions
		last := map[string]moment{}
		now := begun
		for range rapid.IntRange(1, 200).Draw(t, "questions") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "quarters")) * hintTime / 4)
			id := rapid.StringMatching(`[a-e]`).Draw(t, "payment")
			at, before := last[id]
			want := !before || now.Sub(at) >= hintTime
			if got := q.may(id, now); got != want {
				t.Fatalf("%s may be asked about: %v, want %v (%v after the last time)", id, got, want, now.Sub(at))
			}
			if want {
				last[id] = now
			}
			if len(q.recent) != len(q.queue) || len(q.queue) > len(last) {
				t.Fatalf("%d payments are known and %d in the queue, of %d", len(q.recent), len(q.queue), len(last))
			}
		}
	})
}

// At most askedKept are remembered; who comes then is refused until the oldest
// ones have left.
func TestAskedIsBounded(t *testing.T) {
	var q clientQuestions
	now, n := begun, 0
	ask := func(count int) (allowed int) {
		for range count {
			n++
			if q.may(fmt.Sprint("pay_", n), now) {
				allowed++
			}
		}
		return allowed
	}
	const half = askedKept / 2
	for round := range 20 {
		if got := ask(half); got != half {
			t.Fatalf("round %d: %d of %d were allowed while there was room", round, got, half)
		}
		now = now.Add(hintTime / 2)
		if got := ask(askedKept); got != half {
			t.Fatalf("round %d: %d were allowed where %d had room", round, got, half)
		}
		if len(q.queue) != askedKept || len(q.recent) != askedKept || cap(q.queue) > 4*askedKept {
			t.Fatalf("round %d: %d and %d are remembered with room for %d", round, len(q.queue), len(q.recent), cap(q.queue))
		}
		now = now.Add(hintTime / 2) // the first half leaves; the other one is there for as long again
	}
}
