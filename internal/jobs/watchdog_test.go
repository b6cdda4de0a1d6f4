package jobs

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// A loop that stops, or periodic work that does not end, is logged once. It is logged again when it continues.
func TestWatchdog_logsMissedWorkOnce(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, db.SQLite)
	c := clock.NewManual(epochStart)
	var said strings.Builder
	q := New(d, c, slog.New(slog.NewTextHandler(&said, nil)), Options{Node: "a", LeaseFor: time.Hour, Heartbeat: time.Hour})
	q.maintainEvery = time.Hour
	begun, end := make(chan struct{}), make(chan struct{})
	q.Periodic("sweep", time.Hour, func(context.Context) error { close(begun); <-end; return nil })
	start(t, q)
	missed := map[string]bool{}
	for range 2 {
		q.watch(missed)
	}
	if len(missed) != 0 || said.Len() != 0 {
		t.Fatalf("missed at once: %v\n%s", missed, &said)
	}
	c.Advance(time.Hour)
	<-begun
	q.mu.Lock()
	q.lookedAt = time.Now().Add(-5 * q.opts.Heartbeat)
	q.memory.Find("periodic/sweep").Job.since = time.Now().Add(-periodicLate)
	q.mu.Unlock()
	for range 2 {
		q.watch(missed)
	}
	if text := said.String(); strings.Count(text, "level=ERROR") != 2 || !strings.Contains(text, `work="job maintenance"`) || !strings.Contains(text, "work=sweep") {
		t.Errorf("what is missed was told of like this:\n%s", text)
	}
	close(end)
	quiet(t, q)
	q.mu.Lock()
	q.lookedAt = time.Now()
	q.mu.Unlock()
	said.Reset()
	for range 2 {
		q.watch(missed)
	}
	if text := said.String(); strings.Count(text, "level=INFO") != 2 || len(missed) != 0 {
		t.Errorf("what goes on was told of like this:\n%s", text)
	}
}
