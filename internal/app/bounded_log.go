package app

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Limits of the lines that unknown clients can cause, such as by failed handshakes.
const (
	linesOfAKind = 10 // in linesFor
	linesFor     = time.Minute
	lineKinds    = 256 // more kinds than exist; all further kinds count as one
)

// boundedLog is a slog.Handler for lines that unknown clients can cause. It passes on ten lines a minute of each
// kind, and at the end of the minute the number of lines that it dropped. A kind is a message with its route, path
// and code. Debug lines are never dropped.
type boundedLog struct {
	slog.Handler
	kinds *logKinds
}

// logKinds counts lines by kind.
type logKinds struct {
	log   *slog.Logger // without limits
	after func(time.Duration, func())

	mu    sync.Mutex
	lines map[string]int // number of lines in this minute
}

// fewLines returns a logger with limits.
func fewLines(log *slog.Logger) *slog.Logger {
	k := &logKinds{log: log, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, lines: map[string]int{}}
	return slog.New(boundedLog{log.Handler(), k})
}

// Handle implements slog.Handler.
func (b boundedLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return b.Handler.Handle(ctx, r)
	}
	kind := kindOf(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "route" || a.Key == "path" || a.Key == "code" {
			kind += " " + a.Value.String()
		}
		return true
	})
	if !b.kinds.may(kind) {
		return nil
	}
	return b.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (b boundedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundedLog{b.Handler.WithAttrs(attrs), b.kinds}
}

// WithGroup implements slog.Handler.
func (b boundedLog) WithGroup(name string) slog.Handler {
	return boundedLog{b.Handler.WithGroup(name), b.kinds}
}

// may counts a line and reports whether it is one of the first lines of its minute.
func (k *logKinds) may(kind string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.lines[kind]; !known && len(k.lines) >= lineKinds {
		kind = "other"
	}
	if k.lines[kind]++; k.lines[kind] == 1 {
		k.after(linesFor, func() { k.end(kind) })
	}
	return k.lines[kind] <= linesOfAKind
}

// end ends the minute of a kind.
func (k *logKinds) end(kind string) {
	k.mu.Lock()
	left := k.lines[kind] - linesOfAKind
	delete(k.lines, kind)
	k.mu.Unlock()
	if left > 0 {
		k.log.Warn("suppressed similar log lines", "kind", kind, "lines", left)
	}
}

// kindOf returns the beginning of a message: up to the first word with an address or a cause, and at most six words.
// net/http writes both into its messages.
func kindOf(message string) string {
	words := strings.Fields(message)
	for i, word := range words {
		if i == 6 || i > 0 && strings.ContainsAny(word, ":[") {
			words = words[:i]
			break
		}
	}
	return strings.Join(words, " ")
}

// serverLog logs the lines that net/http writes about a listener.
type serverLog struct{ log *slog.Logger }

// Write implements io.Writer, for one line at a time.
func (s serverLog) Write(line []byte) (int, error) {
	s.log.Warn(strings.TrimSpace(string(line)))
	return len(line), nil
}
