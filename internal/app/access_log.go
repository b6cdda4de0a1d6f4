package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/makola/makola/internal/api"
)

// accessLog writes one line of JSON for each answered request. It has no bodies, no addresses and no numbers of people. The
// file is opened for appending, so that logrotate's copytruncate works on it.
type accessLog struct {
	mu     sync.Mutex
	to     io.Writer
	log    *slog.Logger
	failed time.Time // when a failure to write was last logged
}

// failurePause is the shortest time between two lines about writes that fail.
const failurePause = time.Minute

// accessLine is a line of the access log.
type accessLine struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"`
	Account   string    `json:"account,omitempty"`
	Method    string    `json:"method"`
	Endpoint  string    `json:"endpoint"`
	Status    int       `json:"status"`
	Duration  float64   `json:"duration_ms"`
	Bytes     int       `json:"bytes"`
}

// openAccessLog opens the file that the settings name; "-" is standard output.
func (a *App) openAccessLog(context.Context) error {
	switch a.cfg.AccessLog {
	case "":
		return nil
	case "-":
		a.accessLog = &accessLog{to: os.Stdout, log: a.log}
		return nil
	}
	file, err := os.OpenFile(a.cfg.AccessLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("app: open the access log: %w", err)
	}
	a.accessLog = &accessLog{to: file, log: a.log}
	a.later(func(context.Context) error { return file.Close() })
	return nil
}

// seen counts an answered request and writes it to the access log.
func (a *App) seen(s api.Seen) {
	a.meters.seen(s)
	if a.accessLog != nil {
		a.accessLog.write(a.clock.Now(), s)
	}
}

// write appends a line. A full disk must stop no request: the failure is logged, at most once a minute.
func (l *accessLog) write(now time.Time, s api.Seen) {
	line, err := json.Marshal(accessLine{Time: now, RequestID: s.RequestID, Account: s.Tenant, Method: s.Method, Endpoint: s.Route,
		Status: s.Status, Duration: float64(s.Took.Microseconds()) / 1000, Bytes: s.Bytes})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.to.Write(append(line, '\n'))
	}
	if err != nil && (l.failed.IsZero() || now.Sub(l.failed) >= failurePause) {
		l.failed = now
		l.log.Error("failed to write access log", "error", err)
	}
}
