package app

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// fewPerMinute is how many of net/http's own complaints a listener logs in a minute. A client of the listener can cause any
// number, such as of handshakes that fail.
const fewPerMinute = 10

// fewLines logs lines, and counts those that are too many.
type fewLines struct {
	log *slog.Logger

	mu    sync.Mutex
	begun time.Time // of the minute
	lines int       // in it
}

// Write implements io.Writer, for one line at a time.
func (f *fewLines) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.begun) >= time.Minute {
		if left := f.lines - fewPerMinute; left > 0 {
			f.log.Warn("more complaints of this listener were not logged", "lines", left)
		}
		f.begun, f.lines = now, 0
	}
	if f.lines++; f.lines <= fewPerMinute {
		f.log.Warn(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}
