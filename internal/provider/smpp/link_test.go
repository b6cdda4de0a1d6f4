package smpp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
)

// A segment that was not sent uses no turn. Earlier, the link was silent for minutes after a reset, because each
// unsent segment had used a turn.
func TestRate_unsentSegmentUsesNoSlot(t *testing.T) {
	now := clock.NewManual(noon)
	b := newBucket(now, 1)
	due := func(after string) {
		t.Helper()
		if late := b.due() - now.Elapsed(); late > time.Second {
			t.Fatalf("after %s the next turn is due in %s", after, late)
		}
	}
	dead := make(chan struct{})
	if _, err := b.wait(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 100 {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := b.wait(t.Context(), dead); !errors.Is(err, errSessionLost) {
				t.Errorf("a turn on a connection that is gone: %v", err)
			}
		}()
	}
	clocktest.Await(t, "a hundred that wait", func() bool { return now.Waiting() == 100 })
	close(dead)
	group.Wait()
	due("a hundred that waited")
	for range 100 {
		if _, err := b.wait(t.Context(), dead); !errors.Is(err, errSessionLost) {
			t.Fatal(err)
		}
	}
	due("a hundred that came to a dead connection")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.wait(gone, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	due("a caller that is gone")
	now.Advance(time.Second)
	if _, err := b.wait(t.Context(), nil); err != nil { // returns at once
		t.Error(err)
	}
}

// If the clock is set, in either direction, no text is delayed, no submit that waits for its answer is given up, and
// no silent peer is kept.
func TestLink_clockSet(t *testing.T) {
	for _, by := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		now := clock.NewManual(noon)
		b := newBucket(now, 1)
		for range 2 {
			if _, at, _ := b.book(); at-now.Elapsed() > time.Second {
				t.Fatalf("before the step a turn is due in %v", at-now.Elapsed())
			}
		}
		s := &session{link: newLink(Bind{}.withDefaults(), Transceiver, Options{Clock: now, Log: slog.New(slog.DiscardHandler)}),
			heard: now.Elapsed(), waiting: map[uint32]*submission{1: {since: now.Elapsed()}}}
		now.Set(by)
		if _, at, _ := b.book(); at-now.Elapsed() > 2*time.Second {
			t.Errorf("after a step by %v the third turn is due in %v", by, at-now.Elapsed())
		}
		if late, ask, silent := s.look(now.Elapsed()); len(late) > 0 || ask || silent {
			t.Errorf("a step by %v: %d given up, asked %v, silent %v", by, len(late), ask, silent)
		}
		now.Advance(s.link.bind.EnquireEvery)
		if _, ask, _ := s.look(now.Elapsed()); !ask {
			t.Errorf("after a step by %v a silent peer is not asked", by)
		}
	}
}

// due returns the time of the next turn, in the clock's Elapsed.
func (b *bucket) due() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

// A segment may have its turn and then find no room in the window, or the session ended. It then returns its turn.
func TestRate_slotIsReturned(t *testing.T) {
	now := clock.NewManual(noon)
	b := Bind{Rate: 1}.withDefaults()
	l := newLink(b, Transceiver, Options{Clock: now, Log: slog.New(slog.DiscardHandler)})
	for name, s := range map[string]*session{
		"a full window":    {link: l, window: make(chan struct{}), dead: make(chan struct{})},
		"an ended session": {link: l, window: make(chan struct{}, 1), dead: make(chan struct{}), closed: errUnbound},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan provider.Outcome, 1)
		now.Advance(time.Second)
		go s.submit(ctx, segment("hello"), func(o provider.Outcome) { outcome <- o })
		clocktest.Await(t, "a turn that is taken", func() bool { return len(outcome) > 0 || l.rate.due() > now.Elapsed() })
		cancel()
		if o := <-outcome; o.Class != provider.NotSent {
			t.Errorf("%s: %+v", name, o)
		}
		if due := l.rate.due(); due > now.Elapsed() {
			t.Errorf("%s: the next turn is due at %s", name, due)
		}
	}
}
