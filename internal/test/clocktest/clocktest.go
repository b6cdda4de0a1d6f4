// Package clocktest waits in tests for what gives no signal: a process that
// starts, a counter, a connection that another goroutine ends. A test waits for a signal where
// there is one, and moves a manual clock where only time brings something about.
package clocktest

import (
	"testing"
	"time"
)

// patience is reached by a failing test only, on the slowest machine.
const patience = 10 * time.Minute

// The pauses between two looks: at first a wait should cost nothing, later the
// looks should not.
const (
	firstPause = 100 * time.Microsecond
	lastPause  = 10 * time.Millisecond
)

// Await looks again and again until it is so. what names it in the failure.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	look := time.NewTimer(0)
	defer look.Stop()
	for pause, begun := firstPause, time.Now(); !so(); pause = min(2*pause, lastPause) {
		if time.Since(begun) > patience {
			t.Fatalf("waited %s in vain for %s", patience, what)
		}
		look.Reset(pause)
		<-look.C
	}
}
