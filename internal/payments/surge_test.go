package payments

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/provider"
)

func TestASurgeIsShortAndRare(t *testing.T) {
	fake := clock.NewManual(morning)
	var s surge
	s.clock = fake
	come := func(n int) {
		for range n {
			s.enter()
		}
	}
	gone := func(n int) {
		for range n {
			s.leave()
		}
	}
	is := func(want bool, when string) {
		t.Helper()
		if s.on() != want {
			t.Errorf("%s: a surge %v, want %v", when, !want, want)
		}
	}
	come(surgeFrom - 1)
	is(false, "one request too few")
	come(1)
	is(true, "enough requests")
	gone(surgeFrom)
	fake.Advance(calmTime - time.Microsecond)
	is(true, "a moment without requests")
	come(surgeBelow)
	fake.Advance(calmTime)
	is(true, "they come again")
	gone(1)
	fake.Advance(calmTime)
	is(false, "a calm")
	come(surgeFrom)
	is(false, "a second surge within the pause")
	fake.Advance(surgePause)
	come(1)
	is(true, "a second surge after the pause")
	fake.Advance(surgeTime - time.Microsecond)
	is(true, "just before its end")
	fake.Advance(time.Microsecond)
	is(false, "its end, whoever still waits")
	fake.Advance(surgePause)
	come(1)
	is(true, "a third surge")
	s.clock = clock.NewManual(morning.Add(-time.Hour))
	is(false, "the clock was set back")
	come(1)
	is(true, "another surge after that")
}

// TestQuestionsWaitInASurge: all of those about payouts, and for no longer. Who waits at
// a till hears of a collection.
func TestQuestionsWaitInASurge(t *testing.T) {
	const earlier = 12
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		var slow atomic.Bool
		posts, asked, tills := make(chan struct{}, surgeFrom), make(chan struct{}, 4*earlier+surgeFrom), make(chan struct{}, 1)
		collection := ""
		answers, release := make(chan struct{}), make(chan struct{})
		h.first.script(func(int, string) provider.Outcome {
			if slow.Load() {
				posts <- struct{}{}
				<-release
			}
			return pending
		}, func(_ int, reference string) provider.Outcome {
			if reference == collection {
				tills <- struct{}{}
				return success
			}
			asked <- struct{}{}
			<-answers
			return success
		})
		n := h.node("a")
		done := make(chan error, surgeFrom)
		pay := func(r Payout) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r.Amount = MinPayout
			_, _, err := n.Payout(ctx, h.caller(), r)
			return err
		}
		payAtOnce := func(times int) {
			for range times {
				if err := pay(h.payout()); err != nil {
					t.Fatal(err)
				}
			}
		}
		payAtOnce(earlier)
		in, _, err := n.Collect(t.Context(), h.caller(), h.collect())
		if err != nil {
			t.Fatal(err)
		}
		n.quiet()
		collection = in.ProviderReference
		slow.Store(true)
		for range surgeFrom {
			r := h.payout()
			go func() { done <- pay(r) }()
		}
		for range surgeFrom {
			<-posts
		}
		slow.Store(false)
		h.clock.Advance(askPauses[0] + time.Second)
		select {
		case <-tills:
		case <-time.After(patience):
			t.Error("nobody asks about the collection")
		}
		payAtOnce(earlier) // time enough for questions to be asked
		if n := len(asked); n != 0 {
			t.Errorf("%d questions were asked while %d requests wait", n, surgeFrom)
		}
		h.clock.Advance(surgeTime)
		for range earlier { // though none is answered
			<-asked
		}
		close(answers)
		close(release)
		for range surgeFrom {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		n.quiet()
		n.books()
	})
}
