package payments

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A payment is queried for clients once in hintTime, independent of other payments.
func TestClientQueries_onceInHintTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q clientQueries
		last := map[string]moment{}
		now := begun
		for range rapid.IntRange(1, 200).Draw(t, "questions") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "quarters")) * hintTime / 4)
			id := rapid.StringMatching(`[a-e]`).Draw(t, "payment")
			at, before := last[id]
			want := !before || now.Sub(at) >= hintTime
			if got := q.allow(id, now); got != want {
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

// At most maxClientQueries payments are remembered. Others are refused until the oldest leave.
func TestClientQueries_bounded(t *testing.T) {
	var q clientQueries
	now, n := begun, 0
	ask := func(count int) (allowed int) {
		for range count {
			n++
			if q.allow(fmt.Sprint("pay_", n), now) {
				allowed++
			}
		}
		return allowed
	}
	const half = maxClientQueries / 2
	for round := range 20 {
		if got := ask(half); got != half {
			t.Fatalf("round %d: %d of %d were allowed while there was room", round, got, half)
		}
		now = now.Add(hintTime / 2)
		if got := ask(maxClientQueries); got != half {
			t.Fatalf("round %d: %d were allowed where %d had room", round, got, half)
		}
		if len(q.queue) != maxClientQueries || len(q.recent) != maxClientQueries || cap(q.queue) > 4*maxClientQueries {
			t.Fatalf("round %d: %d and %d are remembered with room for %d", round, len(q.queue), len(q.recent), cap(q.queue))
		}
		now = now.Add(hintTime / 2) // the first half ends its time and leaves; the second half stays for as long again
	}
}
