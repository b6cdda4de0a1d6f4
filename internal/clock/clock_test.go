package clock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 6, 12, 0, 0, 123456789, time.FixedZone("X", 3600))

func fired(t *Timer) bool {
	select {
	case <-t.C:
		return true
	default:
		return false
	}
}

// wait blocks until ch is closed; the deadline is only reached on failure.
func wait(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(3 * time.Minute):
		t.Fatal("the timer never fired")
	}
}

func TestManual_standsStill(t *testing.T) {
	c := NewManual(noon)
	if got, want := c.Now(), time.Date(2026, 3, 6, 11, 0, 0, 123456000, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Fatalf("Now is %v, want %v", got, want)
	}
	a, b, now := c.Timer(time.Second), c.Timer(time.Minute), c.Timer(0)
	if !fired(now) || c.Waiting() != 2 {
		t.Fatalf("a timer of no length waits (%d waiting)", c.Waiting())
	}
	if next, ok := c.Next(); !ok || !next.Equal(noon.Add(time.Second)) {
		t.Fatalf("Next is %v, %v", next, ok)
	}
	c.Advance(time.Second - 1)
	if fired(a) {
		t.Fatal("fired a nanosecond early")
	}
	c.Advance(1)
	if !fired(a) || fired(b) || a.Stop() {
		t.Fatal("the timer that is due, and only it, must have fired")
	}
	if !b.Stop() || b.Stop() || c.Waiting() != 0 {
		t.Fatal("Stop does not take the timer away once")
	}
	c.Advance(time.Hour)
	if fired(b) {
		t.Fatal("a stopped timer fired")
	}
	if _, ok := c.Next(); ok {
		t.Fatal("Next without timers")
	}
	before := c.Now()
	c.Advance(-time.Hour)
	if !c.Now().Equal(before) {
		t.Fatal("time ran backwards")
	}
}

func TestTime_comparison(t *testing.T) {
	t.Parallel()
	c := NewManual(noon)
	due := c.Now().Add(time.Second)
	c.Advance(time.Second / 2)
	first := c.TimerAt(due)
	c.Advance(time.Second / 2)
	if second := c.TimerAt(due); !fired(first) || !fired(second) || c.Waiting() != 0 {
		t.Errorf("at its time the timer set before it fired: %v, the one set then: %v", fired(first), fired(second))
	}
	if fired(c.TimerAt(c.Now().Add(time.Second))) {
		t.Error("a timer fired before its time")
	}
	wait(t, Real().TimerAt(time.Now().Add(time.Millisecond)).C)
}

func TestManual_setFiresNoTimer(t *testing.T) {
	c := NewManual(noon)
	timer := c.Timer(time.Minute)
	c.Advance(time.Second)
	before, _ := c.Reading()
	c.Set(-time.Hour)
	if now, passed := c.Reading(); !now.Equal(before.Add(-time.Hour)) || !now.Equal(c.Now()) || passed != time.Second {
		t.Errorf("the time went from %v to %v, and %v passed", before, now, passed)
	}
	c.Advance(time.Minute - time.Second - 1)
	if fired(timer) {
		t.Error("fired early")
	}
	c.Advance(1)
	if !fired(timer) {
		t.Error("the timer waits for longer than it was set for")
	}
	r := Real()
	from, began := r.Reading()
	r.Advance(time.Hour)
	to, ended := r.Reading()
	if far := to.Sub(from); far < time.Hour || ended-began < time.Hour {
		t.Errorf("the time went on by %v, and %v passed", far, ended-began)
	}
}

func TestReal_firesAloneAndByAdvance(t *testing.T) {
	c := Real()
	wait(t, c.Timer(time.Millisecond).C)
	long := c.Timer(24 * time.Hour)
	later := c.Timer(24*time.Hour + 10*time.Millisecond)
	before := c.Now()
	c.Advance(24 * time.Hour)
	if !fired(long) {
		t.Fatal("Advance returned before it fired the timer that is due")
	}
	if d := c.Now().Sub(before); d < 24*time.Hour {
		t.Fatalf("the clock moved by %v", d)
	}
	wait(t, later.C) // its machine timer was set again for the remaining time
	if c.Waiting() != 0 {
		t.Fatalf("%d timers wait", c.Waiting())
	}
}

func TestSleep_endsWithItsContext(t *testing.T) {
	c := NewManual(noon)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) || c.Waiting() != 0 {
		t.Fatalf("Sleep gave %v and left %d timers", err, c.Waiting())
	}
	if err := c.Sleep(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
}

// A wait until a time does not become longer if the clock moves between reading the time and waiting.
func TestSleepUntil_clockMovedBefore(t *testing.T) {
	c := NewManual(noon)
	at := c.Elapsed() + time.Second
	c.Advance(time.Minute)
	if err := c.SleepUntil(t.Context(), at); err != nil || c.Waiting() != 0 {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.SleepUntil(ctx, c.Elapsed()+time.Second); !errors.Is(err, context.Canceled) || c.Waiting() != 0 {
		t.Fatalf("SleepUntil gave %v and left %d timers", err, c.Waiting())
	}
}

func TestTimers_concurrent(t *testing.T) {
	c := Real()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			timer := c.Timer(time.Duration(i+1) * time.Hour)
			if i%2 == 0 {
				timer.Stop()
				return
			}
			<-timer.C
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case <-done:
			if c.Waiting() != 0 {
				t.Fatalf("%d timers are left", c.Waiting())
			}
			return
		default:
			c.Advance(time.Hour)
		}
	}
}
