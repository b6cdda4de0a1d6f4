package batch

import (
	"testing"
	"time"
)

// A set takes about the wanted time. After a slow set the next one is smaller, and after a quick set at most twice as large. The
// pause is as long as the set.
func TestPace_followsTheTimeOfASet(t *testing.T) {
	p := pace{time: 10 * time.Millisecond, most: 100}
	for i, step := range []struct {
		took  time.Duration
		next  int
		pause time.Duration
	}{
		{time.Millisecond, 10, 2 * time.Millisecond},
		{5 * time.Millisecond, 20, 10 * time.Millisecond},
		{100 * time.Millisecond, leastRows, 200 * time.Millisecond},
		{time.Minute, leastRows, mostPause},
		{0, 10, 0},
		{0, 20, 0},
		{0, 40, 0},
		{0, 80, 0},
		{0, 100, 0},
	} {
		if pause := p.took(p.rows(), step.took); p.rows() != step.next || pause != step.pause {
			t.Errorf("step %d: %d rows after a pause of %s, want %d after %s", i, p.rows(), pause, step.next, step.pause)
		}
	}
}
