package clock

import (
	"testing"
	"time"
)

func TestSeldom_onceAMinute(t *testing.T) {
	t.Parallel()
	var s Seldom
	begin := time.Date(2026, 3, 6, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after  time.Duration
		missed int
		ok     bool
	}{{0, 0, true}, {time.Second, 0, false}, {59 * time.Second, 0, false}, {time.Minute, 2, true}, {2 * time.Minute, 0, true},
		{time.Minute + time.Second, 0, false}, {0, 1, true}} { // the clock was set back
		if missed, ok := s.May(begin.Add(c.after)); missed != c.missed || ok != c.ok {
			t.Errorf("after %v: %d, %v", c.after, missed, ok)
		}
	}
}
