package app

import (
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

// failurePause is the shortest time between two log lines about failed writes.
const failurePause = time.Minute

// accessLine is a line of the access log.
type accessLine struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"`
	Trace     string    `json:"traceparent,omitempty"`
	Account   string    `json:"account,omitempty"`
	Method    string    `json:"method"`
	Endpoint  string    `json:"endpoint"`
	Status    int       `json:"status"`
	Duration  float64   `json:"duration_ms"`
	Bytes     int       `json:"bytes"`
}

// openAccessLog opens the file that the settings name. "-" is standard output, which is never closed.
func openAccessLog(name string, log *slog.Logger) (*accessLog, func() error, error) {
	if name == "-" {
		return &accessLog{to: os.Stdout, log: log}, func() error { return nil }, nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, nil, fmt.Errorf("app: open the access log: %w", err)
	}
	return &accessLog{to: file, log: log}, file.Close, nil
}

// write appends a line. A full disk must not stop requests, so a failure is only logged, at most once a minute.
func (l *accessLog) write(now time.Time, s api.Seen) {
	line, err := json.Marshal(accessLine{Time: now, RequestID: s.RequestID, Trace: s.Trace, Account: s.Tenant, Method: s.Method, Endpoint: s.Route,
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
