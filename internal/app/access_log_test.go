package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/config"
)

// The access log has a line for each answered request of the interface and of the console. It contains no personal data.
func TestAccessLog_oneLineARequest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "access.log")
	a := startLocal(t, func(c *config.Server) { c.AccessLog = path })
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	delivered := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { delivered <- r.Header.Get("traceparent") }))
	defer receiver.Close()
	send := func(method, way, body, id, trace string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, way, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-api-key", a.ready.APIKey)
		r.Header.Set("X-Request-Id", id)
		r.Header.Set("traceparent", trace)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		sent, err := io.Copy(io.Discard, answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return int(sent)
	}
	size := send(http.MethodPost, a.ready.APIURL+"/payment-api/send/mobilemoney", `{"amount":"5.00","channel":"MTN","account_number":"0240000001","client_reference":"access-log-0001","callback_url":"`+receiver.URL+`"}`, "req_access-log-1", trace)
	send(http.MethodGet, a.ready.APIURL+"/nothing", "", "req_access-log-2", trace+"0240000001")
	send(http.MethodGet, strings.TrimSuffix(a.ready.APIURL, "/api/v1")+"/sign-in", "", "req_access-log-3", "")

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := map[string]accessLine{}
	for all := bufio.NewScanner(file); all.Scan(); {
		var line accessLine
		if err := json.Unmarshal(all.Bytes(), &line); err != nil || strings.Contains(all.Text(), "0240000001") || strings.Contains(all.Text(), "access-log-0001") {
			t.Errorf("%s: %v", all.Text(), err)
		}
		lines[line.RequestID] = line
	}
	paid, refused := lines["req_access-log-1"], lines["req_access-log-2"]
	if paid.Account != a.ready.TenantID || paid.Method != http.MethodPost || paid.Endpoint != "payment-api/send/mobilemoney" || paid.Status != http.StatusOK || paid.Duration <= 0 || paid.Bytes != size || paid.Time.IsZero() {
		t.Errorf("a payout is %+v, and had %d bytes", paid, size)
	}
	if got := <-delivered; got != trace || paid.Trace != trace || refused.Trace != "" {
		t.Errorf("the trace at the receiver is %q, in the log %q, and %q of a header that is not valid", got, paid.Trace, refused.Trace)
	}
	if refused.Status != http.StatusNotFound || refused.Account != a.ready.TenantID {
		t.Errorf("an unknown path is %+v", refused)
	}
	pages := 0
	for _, line := range lines {
		if line.Method == http.MethodGet && line.Status == http.StatusOK {
			pages++
		}
	}
	if pages != 1 {
		t.Errorf("the page is not there: %+v", lines)
	}
}

// broken is a file that refuses every write.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// If the access log cannot be written, requests still succeed. The server's log reports the failure at most once a minute.
func TestAccessLog_unwritable(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Now()
	l := &accessLog{to: broken{}, log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 100 {
		l.write(now, api.Seen{})
	}
	l.write(now.Add(failurePause), api.Seen{})
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}
