package clock

import (
	"slices"
	"time"
)

// StepLeast is the smallest step of a clock: a difference between the change of the wall clock and the elapsed time. A
// machine that slept shows the same difference.
const StepLeast = 30 * time.Second

// anchorFor is how long a reading is compared with later ones. A clock that is slewed drifts by less than a step in it.
const anchorFor = time.Minute

// mostSteps is the maximum number of steps that are kept until Steps returns them.
const mostSteps = 100

// A Step is a moment at which the wall clock was set.
type Step struct {
	At time.Time     // by the clock as it was set
	By time.Duration // positive: forward
}

// steps compares each reading of the clock with an earlier one.
type steps struct {
	wall   time.Time // the earlier reading; zero: none
	passed time.Duration
	last   time.Time // time of the last step; zero: unknown
	seen   []Step    // steps that Steps has not returned yet
	own    []Step    // newest steps of this machine, for Passed
}

func (s *steps) look(now time.Time, passed time.Duration) {
	by := now.Sub(s.wall) - (passed - s.passed)
	switch {
	case s.wall.IsZero():
	case by.Abs() >= StepLeast:
		s.last = now
		if len(s.seen) < mostSteps {
			s.seen = append(s.seen, Step{now, by})
		}
		s.keep(Step{now, by})
	case passed-s.passed < anchorFor:
		return
	}
	s.wall, s.passed = now, passed
}

// keep adds a step of this machine, once.
func (s *steps) keep(step Step) {
	if slices.ContainsFunc(s.own, func(known Step) bool { return known.At.Equal(step.At) }) {
		return
	}
	s.own = append(s.own, step)
	if len(s.own) > mostSteps {
		s.own = s.own[1:]
	}
}

// Steps returns the steps since its last call.
func (c *Clock) Steps() (seen []Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readLocked()
	seen, c.steps.seen = c.steps.seen, nil
	return seen
}

// Recall makes Age and Ago respect a step that was seen by another process, or before a restart.
func (c *Clock) Recall(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.steps.last) {
		c.steps.last = at
	}
}

// RecallOwn makes Passed respect a step of this machine that was seen before a restart.
func (c *Clock) RecallOwn(step Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps.keep(step)
}

// Passed returns the time since a moment of the wall clock, without later forward steps of this machine's clock. The result
// is at least the time since the last step, because the step may have corrected the clock.
func (c *Clock) Passed(since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.readLocked()
	from, forward := since, time.Duration(0)
	for _, s := range c.steps.own {
		if s.At.After(since) {
			from, forward = s.At, forward+s.By
		}
	}
	return max(now.Sub(since)-max(0, forward), now.Sub(from))
}

// Age returns the minimum time that has passed since a moment of the wall clock. If the clock was set after that
// moment, only the time since that step counts. So setting a clock forward does not end anything early.
func (c *Clock) Age(of time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.readLocked()
	if of.Before(c.steps.last) {
		of = c.steps.last
	}
	return now.Sub(of)
}

// Ago returns the moment before which everything has at least this Age. If the clock was set more recently than that, it
// returns the zero time, because nothing from before the step has the age.
func (c *Clock) Ago(age time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.readLocked()
	if now.Sub(c.steps.last) < age {
		return time.Time{}
	}
	return now.Add(-age)
}
