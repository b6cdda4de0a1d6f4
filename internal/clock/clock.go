// Package clock is the one source of time. Everything that needs the time or waits for it gets a *Clock when it is
// made. So a simulated Makola can be moved forward by hours at once, and tests never sleep. There is one type. A
// real clock is the machine's time plus an offset that Advance changes, as the simulator's control endpoint does. A
// manual clock stands still until Advance moves it.
package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Clock returns the time and fires timers. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	manual bool
	at     time.Time     // manual: the time
	made   time.Time     // real: when the clock was made
	offset time.Duration // sum of the durations that Advance has added
	timers timers
	steps  steps
}

// Real gives a clock that follows the machine's.
func Real() *Clock { return &Clock{made: time.Now()} }

// NewManual returns a clock that stays at start until it is advanced.
func NewManual(start time.Time) *Clock { return &Clock{manual: true, at: start.Round(0)} }

// Now gives the time in UTC, cut to the microsecond that the database stores.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.readLocked()
	return now
}

// Reading returns the time like Now, and the time that has passed since the clock was made. The latter cannot be set,
// and may stop while the machine sleeps. Waits in memory use it to notice that the wall clock was set.
func (c *Clock) Reading() (now time.Time, passed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked()
}

// Elapsed returns how much time has passed since the clock was made. Pauses and limits in memory use it, so that setting
// the machine's clock makes them neither longer nor shorter.
func (c *Clock) Elapsed() time.Duration {
	_, passed := c.Reading()
	return passed
}

func (c *Clock) readLocked() (now time.Time, passed time.Duration) {
	exact := c.exactLocked()
	passed = c.offset
	if !c.manual {
		passed = exact.Sub(c.made)
	}
	now = exact.UTC().Truncate(time.Microsecond)
	c.steps.look(now, passed)
	return now, passed
}

// exactLocked returns the time without truncation, for timers. With a deadline cut to a microsecond a timer could
// fire before Now reaches it.
func (c *Clock) exactLocked() time.Time {
	if c.manual {
		return c.at
	}
	return time.Now().Add(c.offset)
}

// Since gives the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Advance moves the clock forward by d and fires the timers that are due,
// earliest first, before it returns. A negative d does nothing: time never
// runs backwards.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= 0 {
		return
	}
	c.offset += d
	if c.manual {
		c.at = c.at.Add(d)
	}
	now := c.exactLocked()
	for len(c.timers) > 0 && !c.timers[0].due.After(now) {
		c.fireLocked(c.timers[0])
	}
	if c.manual {
		return
	}
	for _, t := range c.timers {
		t.real.Reset(t.due.Sub(now))
	}
}

// Set changes the wall time of a manual clock by d, forward or back, as an operator sets a machine's. No time passes,
// and timers keep their remaining time.
func (c *Clock) Set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.manual {
		panic("clock: the machine's clock is not ours to set")
	}
	c.at = c.at.Add(d)
	for _, t := range c.timers {
		t.due = t.due.Add(d)
	}
}

// Timer is one wait. C is closed when the time has come.
type Timer struct {
	C     <-chan struct{}
	c     chan struct{}
	clock *Clock
	due   time.Time
	real  *time.Timer // nil on a manual clock
	index int         // in the heap, -1 when not waiting
}

// Timer returns a timer that fires once d has passed, by the machine's clock or by Advance. A timer that is already
// due fires at once.
func (c *Clock) Timer(d time.Duration) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timerLocked(c.exactLocked(), d)
}

// TimerAt returns a timer that fires at a time. A length computed from Now would be late if the clock moves before
// the timer is set.
func (c *Clock) TimerAt(due time.Time) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.exactLocked()
	return c.timerLocked(now, due.Sub(now))
}

// TimerPassed returns a timer that fires when Elapsed has reached a value. It is also right if the clock is advanced
// between the reading of Elapsed and this call.
func (c *Clock) TimerPassed(at time.Duration) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, passed := c.readLocked()
	return c.timerLocked(c.exactLocked(), at-passed)
}

// timerLocked sets a timer. The caller has the lock.
func (c *Clock) timerLocked(now time.Time, d time.Duration) *Timer {
	done := make(chan struct{})
	t := &Timer{C: done, c: done, clock: c, due: now.Add(d), index: -1}
	if d <= 0 {
		close(done)
		return t
	}
	heap.Push(&c.timers, t)
	if !c.manual {
		t.real = time.AfterFunc(d, t.ring)
	}
	return t
}

// ring is called by the machine's timer. Advance or Stop may have handled the timer before.
func (t *Timer) ring() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index >= 0 {
		t.clock.fireLocked(t)
	}
}

func (c *Clock) fireLocked(t *Timer) {
	heap.Remove(&c.timers, t.index)
	if t.real != nil {
		t.real.Stop()
	}
	close(t.c)
}

// Stop stops the timer and reports whether it was still waiting. It does not close C.
func (t *Timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	if t.real != nil {
		t.real.Stop()
	}
	return true
}

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	return c.Timer(d).wait(ctx)
}

func (t *Timer) wait(ctx context.Context) error {
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SleepUntil waits until Elapsed has reached at, or until ctx is done, whose error it then returns. A Sleep for the
// difference would be too long if the clock moves before its timer is set.
func (c *Clock) SleepUntil(ctx context.Context, at time.Duration) error {
	return c.TimerPassed(at).wait(ctx)
}

// Waiting gives the number of timers that have not fired.
func (c *Clock) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// Next gives the time at which the earliest timer fires. The simulation
// advances the clock to it when nothing else can happen.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].due.UTC(), true
}

// timers is a heap by due time that knows where each timer is.
type timers []*Timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timers) Push(x any) {
	t := x.(*Timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}

// Skew is the maximum difference between the clocks of two nodes.
const Skew = time.Minute

// Day is the UTC day of a moment, in days since 1970.
func Day(at time.Time) int64 { return at.UnixMicro() / (24 * time.Hour).Microseconds() }
