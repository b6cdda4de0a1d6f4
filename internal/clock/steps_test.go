package clock

import (
	"testing"
	"time"
)

// A step in either direction is detected once, at the next reading. A clock that is advanced or drifts has no step.
func TestSteps_seenAtTheNextReading(t *testing.T) {
	t.Parallel()
	c := NewManual(noon)
	c.Now()
	c.Advance(48 * time.Hour)
	for range 100 { // a clock that is slewed: 29 s an hour
		c.Set(29 * time.Second)
		c.Advance(time.Hour)
		c.Now()
	}
	if seen := c.Steps(); len(seen) != 0 {
		t.Fatalf("without a step: %v", seen)
	}
	for _, by := range []time.Duration{time.Hour, -24 * time.Hour, StepLeast} {
		c.Set(by)
		want := Step{c.Now(), by}
		c.Advance(time.Second)
		if seen := c.Steps(); len(seen) != 1 || seen[0] != want {
			t.Errorf("a step by %v is seen as %v", by, seen)
		}
	}
	if seen := c.Steps(); len(seen) != 0 {
		t.Errorf("taken again: %v", seen)
	}
}

// An age counts only the time since the last step.
func TestAge_fromTheLastStep(t *testing.T) {
	t.Parallel()
	c := NewManual(noon)
	old := c.Now()
	c.Advance(time.Hour)
	if got := c.Age(old); got != time.Hour {
		t.Errorf("an hour later: %v", got)
	}
	c.Set(24 * time.Hour)
	if got := c.Age(old); got != 0 {
		t.Errorf("right after the step: %v", got)
	}
	young := c.Now()
	c.Advance(time.Minute)
	if got := c.Age(young); got != time.Minute || !c.Ago(2*time.Minute).IsZero() {
		t.Errorf("a minute after the step: %v, and two minutes ago is %v", got, c.Ago(2*time.Minute))
	}
	if got := c.Ago(time.Minute); !got.Equal(young) {
		t.Errorf("a minute ago is %v, want %v", got, young)
	}
	other := NewManual(c.Now())
	other.Recall(young)
	if got := other.Age(old); got != time.Minute {
		t.Errorf("for a process that started later: %v", got)
	}
}

// TestPassed_withoutTheStepsForward: Passed does not count the time by which the clock was set forward. Steps that are undone
// change nothing. After a correction of any size, a day still passes in a day.
func TestPassed_withoutTheStepsForward(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		steps []time.Duration // one step each hour
		after time.Duration   // time after the last step
		want  time.Duration
	}{
		{"none", nil, time.Hour, time.Hour},
		{"forward", []time.Duration{26 * time.Hour}, time.Hour, 2 * time.Hour},
		{"a pause each hour", []time.Duration{time.Minute, time.Minute, time.Minute}, 30 * time.Hour, 33 * time.Hour},
		{"undone", []time.Duration{26 * time.Hour, -26 * time.Hour}, time.Hour, 3 * time.Hour},
		{"a year to the right time", []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour}, 25 * time.Hour, 25 * time.Hour},
		{"back", []time.Duration{-time.Minute}, 2 * time.Hour, 3*time.Hour - time.Minute},
	} {
		c := NewManual(noon)
		since := c.Now()
		for _, by := range tt.steps {
			c.Advance(time.Hour)
			c.Now()
			c.Set(by)
			c.Now()
		}
		other := NewManual(c.Now())
		for _, s := range c.Steps() {
			other.RecallOwn(s)
		}
		c.Advance(tt.after)
		other.Advance(tt.after)
		if got, recalled := c.Passed(since), other.Passed(since); got != tt.want || recalled != tt.want {
			t.Errorf("%s: %v, and %v after a restart, want %v", tt.name, got, recalled, tt.want)
		}
	}
}
