package clock

import (
	"slices"
	"time"
)

// StepLeast is the smallest difference between the wall clock and the time that has passed that counts as a step. A machine
// that slept shows the same difference.
const StepLeast = 30 * time.Second

// anchorFor is how long a reading is compared with later ones. A clock that is slewed drifts by less than a step in it.
const anchorFor = time.Minute

// mostSteps is how many steps are kept until Steps takes them.
const mostSteps = 100

// A Step is a moment at which the wall clock was set.
type Step struct {
	At time.Time     // by the clock as it was set
	By time.Duration // positive: forward
}

// steps compares each reading of the clock with an earlier one.
type steps struct {
	wall   time.Time // of the earlier reading; zero: there is none
	passed time.Duration
	last   time.Time // the At of the last step; zero: none is known
	seen   []Step    // that Steps has not taken yet
	own    []Step    // of this machine, the newest ones; for Passed
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

// Steps takes the steps that were seen since it was last called.
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

// Passed returns how much time has passed since a moment of the wall clock, without what this machine's clock was set forward
// since. At the least it is the time since the last step: the clock may have been set forward to the right time.
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

// Age returns the least time that has passed since a moment of the wall clock. If the clock was set since then, only
// the time since that step counts. So a clock that is set forward does not end anything early.
func (c *Clock) Age(of time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.readLocked()
	if of.Before(c.steps.last) {
		of = c.steps.last
	}
	return now.Sub(of)
}

// Ago returns the moment before which everything has at least this Age. It is the zero time while the clock was set more
// recently than that: nothing from before the step has the age.
func (c *Clock) Ago(age time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.readLocked()
	if now.Sub(c.steps.last) < age {
		return time.Time{}
	}
	return now.Add(-age)
}
