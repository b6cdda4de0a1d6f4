package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/prometheus/client_golang/prometheus"
)

// Probes have a request id like every answer. The longest possible answer is sent before its connection is closed.
func TestProbes_haveRequestIDs(t *testing.T) {
	a := &App{draining: make(chan struct{})}
	close(a.draining)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("X-Request-Id", "probe-0001")
		w := httptest.NewRecorder()
		a.handler().ServeHTTP(w, r)
		if got := w.Header().Get("X-Request-Id"); w.Code != want || got != "probe-0001" {
			t.Errorf("%s: %d, request id %q", path, w.Code, got)
		}
	}
	if writeTimeout <= api.ListWithin {
		t.Errorf("the connection lives for %v, the answer may take %v", writeTimeout, api.ListWithin)
	}
}

// Pages without a key answer HEAD like GET, and the guides are compressed. Clients may cache the style sheet of the guides for
// ever.
func TestPublicPages_answerHead(t *testing.T) {
	t.Parallel()
	b := browse(t)
	for path, status := range map[string]int{"/docs": http.StatusOK, "/docs/reference": http.StatusOK, "/openapi.json": http.StatusOK, "/docs/nothing": http.StatusNotFound} {
		head, get := b.do(http.MethodHead, path, nil), b.get(path)
		if head.StatusCode != status || get.StatusCode != status || head.text != "" || head.ContentLength != int64(len(get.text)) || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d with %d bytes of %q, GET %d", path, head.StatusCode, head.ContentLength, head.Header.Get("Content-Type"), get.StatusCode)
		}
		if get.Uncompressed != strings.HasPrefix(path, "/docs") {
			t.Errorf("%s: compressed is %v", path, get.Uncompressed)
		}
		if p := b.do(http.MethodDelete, path, nil); p.StatusCode != http.StatusMethodNotAllowed || p.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("DELETE %s: %d, Allow %q", path, p.StatusCode, p.Header.Get("Allow"))
		}
	}
	style := regexp.MustCompile(`/docs/guides\.[0-9a-f]{12}\.css`).FindString(b.get("/docs").text)
	if p := b.get(style); p.StatusCode != http.StatusOK || p.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
		t.Errorf("the style sheet %q: %d, %q", style, p.StatusCode, p.Header.Get("Cache-Control"))
	}
	b.want(http.StatusOK, "/docs/search?q=verify+signature", "/docs/webhooks#verify-the-signature")
}

// A node with little storage stays ready and reports it. If a proxy removed the node, payments would stop, too.
func TestReady_withLowStorage(t *testing.T) {
	t.Parallel()
	for reserve, want := range map[int64]string{
		0:       `{"message":"ready"}`,
		1 << 40: `"refused":["the disk is nearly full: contacts, campaigns and sender IDs are refused"]`,
	} {
		a := startLocal(t, func(c *config.Server) { c.DiskReserve = reserve })
		if status, body := askReady(a); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("with a reserve of %d MB: %d %s", reserve, status, body)
		}
	}
}

// The probe lists every kind of request that a ready node refuses, each with its reason.
func TestReadiness_namesEachRefusal(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(c *config.Server) { c.DiskReserve = 1 << 40 })
	if err := a.recovery.Begin(t.Context(), "a test", time.Time{}, "a test", "cli:test"); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, "the recovery to be named", func() bool { _, body := askReady(a); return strings.Contains(body, "customers get 503") })
	if status, body := askReady(a); status != http.StatusOK || !strings.Contains(body, `"ready, but a recovery is closed: `) || !strings.Contains(body, `"the disk is nearly full: `) {
		t.Errorf("%d %s", status, body)
	}
}

// The probe reports that PostgreSQL has no free connection. It does not repeat PostgreSQL's message, which contains a role.
func TestReadiness_namesLackOfConnections(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	super, err := db.Open(t.Context(), db.Options{URL: address, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close()
	run := func(sql string) {
		t.Helper()
		if err := super.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql); return err }); err != nil {
			t.Fatal(err)
		}
	}
	role := "makola_t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	run(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'x'`)
	defer run(`DROP ROLE ` + role)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	d, err := db.Open(t.Context(), db.Options{URL: u.String(), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	run(`ALTER ROLE ` + role + ` CONNECTION LIMIT 0`)
	run(`DO $$ BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '` + role + `'; END $$`)
	quiet := slog.New(slog.DiscardHandler)
	a := &App{log: quiet, callers: quiet, draining: make(chan struct{})}
	a.db = d
	w := httptest.NewRecorder()
	a.readiness(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || body != `{"message":"the database has no connections left"}`+"\n" {
		t.Errorf("%d %s", w.Code, body)
	}
}

func askReady(a *App) (status int, body string) {
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code, w.Body.String()
}

// Profiles are available only on this machine.
func TestProfiles_loopbackOnly(t *testing.T) {
	handler := (&meters{registry: prometheus.NewRegistry()}).handler()
	for from, want := range map[string]int{"127.0.0.1:5000": http.StatusOK, "[::1]:5000": http.StatusOK, "192.0.2.1:5000": http.StatusNotFound} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/goroutine?debug=1", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("a client at %s: %d, want %d", from, w.Code, want)
		}
	}
}

// stuck is a metric whose query never ends.
type stuck struct{ asked, let chan struct{} }

func (s stuck) Describe(d chan<- *prometheus.Desc) { d <- queueDead }
func (s stuck) Collect(chan<- prometheus.Metric)   { s.asked <- struct{}{}; <-s.let }

// A scrape or a profile does not delay a stop, because the drain time is for customers' requests.
func TestStop_notDelayedByAScrape(t *testing.T) {
	figure := stuck{make(chan struct{}), make(chan struct{})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(figure)
	a := &App{cfg: config.Server{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0"}, log: slog.New(slog.DiscardHandler), draining: make(chan struct{})}
	a.meters = &meters{registry: registry}
	if err := errors.Join(a.bind(t.Context()), a.listenMetrics(t.Context())); err != nil {
		t.Fatal(err)
	}
	scraped := make(chan struct{})
	go func() {
		defer close(scraped)
		if answer, err := http.Get(a.ready.MetricsURL); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-figure.asked
	over, end := context.WithCancel(t.Context())
	end()
	if err := a.Stop(over); err != nil {
		t.Errorf("with a scrape under way the stop says %v", err)
	}
	<-scraped
	close(figure.let)
}

// A failed start stops its started parts within the time for draining, because a job of an earlier run may wait for a receiver
// that does not answer.
func TestStart_failureEndsInTime(t *testing.T) {
	a := &App{cfg: config.Server{DrainFor: time.Hour}, draining: make(chan struct{})}
	interrupted, end := context.WithCancel(t.Context())
	end()
	busy := errors.New("address in use")
	started := func(context.Context) error {
		a.later(func(ctx context.Context) error {
			if until, limited := ctx.Deadline(); ctx.Err() != nil || !limited || time.Until(until) > time.Hour {
				t.Errorf("it may take until %v, limited %v, %v", until, limited, ctx.Err())
			}
			return nil
		})
		return nil
	}
	if err := a.rise(interrupted, started, func(context.Context) error { return busy }); !errors.Is(err, busy) || len(a.undo) != 0 {
		t.Errorf("%v, %d things are left running", err, len(a.undo))
	}
}

// A public URL may end with a slash. The addresses for providers' callbacks are then still correct.
func TestPublicURL_trailingSlash(t *testing.T) {
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	a := &App{cfg: config.Server{PublicURL: "https://pay.example/", Secret: secret}}
	a.rails = []provider.Rail{{Name: "mtn", Mode: "live"}}
	if err := a.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.findCallbacks(a.cfg.PublicURL)
	if got := a.callbackURL(a.rails[0]); !strings.HasPrefix(got, "https://pay.example/callbacks/mtn/") {
		t.Errorf("MTN is told to call %q", got)
	}
}

// Errors that net/http logs itself, such as of a failed handshake, have the same form as all other log lines.
func TestLog_hasListenerErrors(t *testing.T) {
	var log bytes.Buffer
	a := &App{log: slog.New(slog.NewJSONHandler(&log, nil)), draining: make(chan struct{})}
	l, err := listen("a listener", "127.0.0.1:0", false, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	a.serve(l, l.shutdown)
	for range 1_000 {
		l.server.ErrorLog.Print("http: TLS handshake error")
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := log.String(); !strings.Contains(got, `"level":"WARN","msg":"http: TLS handshake error"`) {
		t.Errorf("the log has %q", got)
	}
	if n := strings.Count(log.String(), "\n"); n != linesOfAKind {
		t.Errorf("a thousand complaints are %d lines", n)
	}
}

// Log lines that anybody can cause are limited for each kind, whatever addresses they contain. At the end of the minute a line
// gives the number of omitted lines, even if nothing else is logged. A message centre that sends unreadable receipts has the same
// limit.
func TestSMPP_logIsBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := startWith(t, config.Server{Ephemeral: true, Listen: "127.0.0.1:0", MetricsListen: "off", DrainFor: time.Minute}, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, r := range a.sms {
		for range 1_000 {
			r.options.Log.Warn("acknowledged unreadable delivery receipt", "bind", "one")
		}
	}
	if err := a.Stop(t.Context()); err != nil { // after the stop nothing writes to the log
		t.Error(err)
	}
	if got := strings.Count(log.String(), "acknowledged unreadable delivery receipt"); got != linesOfAKind {
		t.Errorf("%d lines, want %d", got, linesOfAKind)
	}
}

func TestBoundedLog_countsOmitted(t *testing.T) {
	var log bytes.Buffer
	few := fewLines(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	var minutes []func()
	few.Handler().(boundedLog).kinds.after = func(_ time.Duration, end func()) { minutes = append(minutes, end) }
	server := serverLog{few.With("listener", "one")}
	for i := range 1_000 {
		_, _ = fmt.Fprintf(server, "http: TLS handshake error from 192.0.2.%d:%d: EOF\n", i%250, i)
		few.Error("request failed", "route", "a", "code", "x", "request_id", i)
		few.Error("request failed", "route", "b", "code", "x", "request_id", i)
		few.Debug("request", "request_id", i)
	}
	for text, want := range map[string]int{"TLS handshake": linesOfAKind, "route=a": linesOfAKind, "route=b": linesOfAKind, "level=DEBUG": 1_000} {
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%d lines of %q, want %d", got, text, want)
		}
	}
	log.Reset()
	for _, end := range minutes {
		end()
	}
	if got := log.String(); strings.Count(got, "lines=990") != 3 || !strings.Contains(got, `kind="http: TLS handshake error from"`) {
		t.Errorf("the end of the minute logged %s", got)
	}
	log.Reset()
	for i := range 10 * lineKinds {
		few.Warn(fmt.Sprintf("kind%d", i))
	}
	if got := strings.Count(log.String(), "\n"); got > lineKinds+linesOfAKind {
		t.Errorf("%d lines of endless kinds", got)
	}
}

// read returns the value of a metric's series, which has these values of labels.
func (m *meters) read(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			var values []string
			for _, l := range series.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(values, labels) {
				return series.GetGauge().GetValue() + series.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s %v", name, labels)
	return 0
}

// A node has metrics of its open requests and of its deliveries.
func TestMetrics_ofANode(t *testing.T) {
	t.Parallel()
	a, err := Start(t.Context(), config.Server{Environment: "development", Listen: "127.0.0.1:0", Ephemeral: true, DrainFor: time.Minute}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer receiver.Close()

	body, send := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/payment-api/send/mobilemoney", body)
	r.RemoteAddr = "127.0.0.1:5000"
	r.Header.Set("X-Api-Key", a.ready.APIKey)
	w, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		a.handler().ServeHTTP(w, r)
	}()
	clocktest.Await(t, "the request", func() bool { return a.meters.read(t, "makola_http_in_flight") == 1 })
	fmt.Fprintf(send, `{"amount": 1, "channel": "MTN", "account_number": "0240000001", "client_reference": "measured-0001", "callback_url": %q}`, receiver.URL)
	send.Close()
	<-answered
	if w.Code != http.StatusOK {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	// The provider's callback is also a request, and may be in progress.
	clocktest.Await(t, "no request in flight", func() bool { return a.meters.read(t, "makola_http_in_flight") == 0 })
	clocktest.Await(t, "an attempt that fails", func() bool { return a.meters.read(t, "makola_webhook_attempts_total", "failed") == 1 })
	if n := a.meters.read(t, "makola_webhook_attempts_total", "delivered"); n != 0 {
		t.Errorf("%v were delivered", n)
	}
}

// A probe whose sender has disconnected is not an error of the database, and causes no log line.
func TestReadiness_senderGone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d := dbtest.Open(t, db.SQLite)
	a := &App{log: slog.New(slog.NewJSONHandler(&log, nil)), draining: make(chan struct{})}
	a.db = d
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.readiness(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
}

// signalled is a log that closes a channel when a message arrives.
type signalled struct {
	slog.Handler
	message string
	came    chan struct{}
	once    *sync.Once
}

func (s signalled) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == s.message {
		s.once.Do(func() { close(s.came) })
	}
	return nil
}

func (s signalled) Enabled(context.Context, slog.Level) bool { return true }
func (s signalled) WithAttrs([]slog.Attr) slog.Handler       { return s }

// A production server that starts before its database waits for it. One whose database does not exist fails at once.
func TestStart_waitsForTheDatabase(t *testing.T) {
	t.Parallel()
	way, server := dbtest.Freezable(t)
	server.Cut()
	cfg, err := asProduction(config.Server{Listen: "127.0.0.1:0", MetricsListen: "off", Connections: 4, DrainFor: time.Minute, Sim: "http://127.0.0.1:1", Storage: config.Storage{Data: t.TempDir(), Database: way}})
	if err != nil {
		t.Fatal(err)
	}
	waits := signalled{message: "waiting for the database", came: make(chan struct{}), once: new(sync.Once)}
	go func() {
		<-waits.came
		server.Thaw()
	}()
	startWith(t, cfg, Options{Log: slog.New(waits)})
	select {
	case <-waits.came:
	default:
		t.Error("it did not wait")
	}

	cfg.Database, cfg.Data = strings.Replace(way, "makola_t_", "absent_", 1), t.TempDir()
	if _, err := Start(t.Context(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "does not exist on 127.0.0.1") {
		t.Errorf("a database that is not there: %v", err)
	}
}
