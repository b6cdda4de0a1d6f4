package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/dbtest"
)

// framed is an HTTP/2 client that does nothing by itself.
type framed struct {
	conn   net.Conn
	frames *http2.Framer
	next   uint32
}

// newFramed connects a client that allows the server to send a number of bytes of each body.
func newFramed(t testing.TB, address string, window uint32) *framed {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f := &framed{conn: conn, frames: http2.NewFramer(conn, conn), next: 1}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	return f
}

// get sends a GET request. It returns an error if the server has closed the connection.
func (f *framed) get(path string, headers ...string) error {
	var block strings.Builder
	pack := hpack.NewEncoder(&block)
	pairs := append([]string{":method", "GET", ":scheme", "https", ":authority", "localhost", ":path", path}, headers...)
	for i := 0; i < len(pairs); i += 2 {
		_ = pack.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // writing to a builder never fails
	}
	id := f.next
	f.next += 2
	return f.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true})
}

// read reads frames until done returns true for one of them, or until the connection ends.
func (f *framed) read(t testing.TB, done func(http2.Frame) bool) (ended bool) {
	t.Helper()
	if err := f.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := f.frames.ReadFrame()
		if timeout, is := err.(net.Error); is && timeout.Timeout() {
			t.Fatal("the server sends nothing")
		}
		if err != nil {
			return true
		}
		if done(frame) {
			return false
		}
	}
}

// withTLS is a development server with a certificate and its address. Zero is the production time for answers that their
// client does not read.
func withTLS(t *testing.T, most time.Duration, change func(*config.Server)) (*App, string) {
	t.Helper()
	cfg := localConfig(t)
	cfg.TLSCert, cfg.TLSKey = WriteCertificate(t, t.TempDir(), 1)
	if change != nil {
		change(&cfg)
	}
	a := startWith(t, cfg, Options{Log: slog.New(slog.DiscardHandler), AnswerTime: most})
	return a, a.doors.api.net.Addr().String()
}

// A stream whose client reads nothing for the time limit ends, for any request. Its connection stays open.
func TestAnswers_unreadEndInTime(t *testing.T) {
	t.Parallel()
	const most = 3 * time.Second
	_, address := withTLS(t, most, nil)
	f := newFramed(t, address, 0)
	paths := []string{"/docs/reference", "/openapi.json", "/healthz", "/sign-in", "/api/v1/account-api/balance"}
	begun := time.Now()
	for _, path := range paths {
		if err := f.get(path); err != nil {
			t.Fatal(err)
		}
	}
	resets := 0
	if f.read(t, func(frame http2.Frame) bool {
		if _, is := frame.(*http2.RSTStreamFrame); is {
			resets++
		}
		return resets == len(paths)
	}) {
		t.Fatalf("the connection ended after %d resets", resets)
	}
	if took := time.Since(begun); took < most/2 || took > most+15*time.Second {
		t.Errorf("ended after %v", took)
	}
}

// A connection may have eight unread answers to requests without a key. The next request waits until one of them has ended. A
// trusted proxy's connection has no such limit.
func TestAnswers_unreadOfAConnectionAreFew(t *testing.T) {
	t.Parallel()
	proxied := func(c *config.Server) {
		c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix("127.0.0.0/8"))
	}
	for name, one := range map[string]struct {
		change func(*config.Server)
		key    bool
		waits  bool
	}{"a stranger": {waits: true}, "a key": {key: true}, "a proxy": {change: proxied}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, address := withTLS(t, 3*time.Second, one.change)
			f := newFramed(t, address, 0)
			ask := func(n int) (err error) {
				for i := range n {
					if one.key {
						err = f.get("/api/v1/account-api/balance", "x-api-key", a.ready.APIKey)
					} else {
						err = f.get("/docs/reference", "x-forwarded-for", fmt.Sprintf("192.0.2.%d", i))
					}
				}
				return err
			}
			if err := ask(keylessAnswers); err != nil {
				t.Fatal(err)
			}
			headers := 0
			if f.read(t, func(frame http2.Frame) bool {
				if _, is := frame.(*http2.HeadersFrame); is {
					headers++
				}
				return headers == keylessAnswers
			}) {
				t.Fatal("the connection ended early")
			}
			if err := ask(1); err != nil {
				t.Fatal(err)
			}
			waited := false
			if f.read(t, func(frame http2.Frame) bool {
				if _, is := frame.(*http2.RSTStreamFrame); is {
					waited = true
				}
				_, is := frame.(*http2.HeadersFrame)
				return is
			}) {
				t.Fatal("the connection ended")
			}
			if waited != one.waits {
				t.Errorf("the next answer came after another had ended: %v", waited)
			}
		})
	}
}

// A page that is the same for everybody is not copied for each client that does not read it.
func TestAnswers_thatAreSharedHaveOneCopy(t *testing.T) {
	a := startLocal(t, nil)
	w := &counting{header: http.Header{}}
	for _, path := range []string{"/docs/reference", "/openapi.json"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.handler().ServeHTTP(w, r) // renders
		size := w.bytes
		var before, after runtime.MemStats
		handler := a.handler()
		const times = 500
		runtime.ReadMemStats(&before)
		for range times {
			handler.ServeHTTP(w, r)
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 16<<10 || size < 32<<10 {
			t.Errorf("%s of %d bytes allocates %d bytes each time", path, size, each)
		}
		w.bytes = 0
	}
}

// counting is a client that counts the bytes that it reads.
type counting struct {
	header http.Header
	bytes  int
}

func (c *counting) Header() http.Header { return c.header }
func (c *counting) WriteHeader(int)     {}
func (c *counting) Write(text []byte) (int, error) {
	c.bytes += len(text)
	return len(text), nil
}

// If the unread answers of a node use too much memory, it ends the answer that its client has not read for the longest time. So
// no new answer is refused.
func TestAnswers_unreadOfANodeAreBounded(t *testing.T) {
	t.Parallel()
	a, address := withTLS(t, 0, nil)
	var all []*framed
	for range nodeAnswers/answerCost/keylessAnswers + 8 {
		f := newFramed(t, address, 0)
		for range keylessAnswers {
			if err := f.get("/docs/reference"); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, f)
	}
	if !all[0].read(t, func(http2.Frame) bool { return false }) {
		t.Error("the first connection goes on")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(strings.TrimSuffix(a.ready.APIURL, "/api/v1") + "/docs/reference")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("a client that reads was answered %s, %v", answer.Status, err)
	}
	if a.meters.read(t, "makola_http_unread_total") == 0 {
		t.Error("ended answers are not counted")
	}
}

// A client that disconnects before the answer causes no log line. It is counted with the status 499.
func TestClients_thatLeaveMakeNoErrors(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", Storage: freshStorage(t, engine), DrainFor: time.Minute}
			cfg.Connections = 8
			a := startWith(t, cfg, Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			site := strings.TrimSuffix(a.ready.APIURL, "/api/v1")
			handler := a.handler()
			for _, path := range []string{"GET /", "GET /sign-in", "GET /account", "GET /first?t=x", "POST /sign-in", "POST /first", "GET /ops", "GET /docs/reference", "GET /readyz",
				"GET /sim", "GET /no/such", "GET /api/v1/account-api/balance", "GET /api/v1/account-api/transactions", "POST /api/v1/payment-api/momopay", "POST /callbacks/mtn/x"} {
				method, path, _ := strings.Cut(path, " ")
				for _, key := range []string{"", "mk_test_wrong", a.ready.APIKey} {
					ctx, leave := context.WithCancel(t.Context())
					leave()
					r, err := http.NewRequestWithContext(ctx, method, site+path, strings.NewReader("email=ama%40example.com&password=guess"))
					if err != nil {
						t.Fatal(err)
					}
					r.RemoteAddr = "127.0.0.1:4000"
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					r.Header.Set("X-Api-Key", key)
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					if w.Code >= 500 && path != "/readyz" {
						t.Errorf("%s %s: %d", method, path, w.Code)
					}
				}
			}
			if n := a.meters.read(t, "makola_http_requests_total", "499", "GET", "/sign-in"); n == 0 {
				t.Error("clients that left are not counted as 499")
			}
			if got := log.String(); got != "" {
				t.Errorf("clients that left were logged:\n%s", got)
			}
		})
	}
}

// lockedBuffer is a buffer for many writers.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
