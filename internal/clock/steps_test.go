package clock

import (
	"testing"
	"time"
)

// A step in either direction is seen once, at the next reading, and a clock that is advanced or drifts has none.
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

// An age counts from the last step, and nothing from before the step is old before that.
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
