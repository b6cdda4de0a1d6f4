package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/test/dbtest"
)

// patience bounds each wait of a test. Only a failing test reaches it.
const patience = 3 * time.Minute

var begin = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func master(t testing.TB, fill byte) config.Secret {
	t.Helper()
	s, err := config.NewSecret([]byte(strings.Repeat(string(rune(fill)), config.SecretBytes)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rig is one node with webhooks in development mode, and one receiver.
type rig struct {
	*Webhooks
	t     testing.TB
	d     *db.DB
	q     *jobs.Queue
	c     *clock.Clock
	inbox *inbox
}

func newRig(t testing.TB, d *db.DB, node string, o Options) *rig {
	t.Helper()
	return newRigOn(t, d, jobs.Options{Node: node, LeaseFor: time.Hour, Heartbeat: time.Hour}, o)
}

func newRigOn(t testing.TB, d *db.DB, queue jobs.Options, o Options) *rig {
	t.Helper()
	r := &rig{t: t, d: d, c: clock.NewManual(begin), inbox: newInbox(t)}
	log := slog.New(slog.DiscardHandler)
	r.q = jobs.New(d, r.c, log, queue)
	if o.Secret.Empty() {
		o.Secret = master(t, 'm')
	}
	o.Development = true
	r.Webhooks = New(d, r.q, r.c, log, o)
	if err := r.q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.q.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return r
}

// warm does the database work that happens once: the search for other nodes' jobs, and the tenant's secret. After it
// the test may inject faults.
func (r *rig) warm() {
	r.t.Helper()
	r.quiet()
	if _, err := r.Secret(r.t.Context(), "tenant"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) quiet() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.q.Quiet(ctx); err != nil {
		r.t.Fatalf("never quiet: %v; %+v", err, r.q.Counts())
	}
}

func (r *rig) send(events ...Event) {
	r.t.Helper()
	if err := r.d.Write(r.t.Context(), func(tx *db.Tx) error { return r.Queue(tx, events...) }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) event(n int, change func(*Event)) Event {
	e := Event{
		ID: fmt.Sprintf("event-%04d", n), Tenant: "tenant", Mode: "test", Subject: fmt.Sprintf("subject-%04d", n), Kind: Payout,
		URL: r.inbox.server.URL + "/hook?order=7", Amount: 1000, Charges: 10, Status: "success",
		Reference: "order-000000007", ProviderReference: "9b1f0f4e-0000-4000-8000-000000000007", First: true,
	}
	if change != nil {
		change(&e)
	}
	return e
}

// one returns the tenant's only delivery, as it is stored.
func (r *rig) one() Delivery {
	r.t.Helper()
	list, err := r.List(r.t.Context(), Filter{Tenant: "tenant"})
	if err != nil || len(list) != 1 {
		r.t.Fatalf("deliveries: %+v, %v", list, err)
	}
	return list[0]
}

func (r *rig) jobsLeft() int {
	r.t.Helper()
	list, err := r.q.List(r.t.Context(), jobs.Filter{Kind: jobKind})
	if err != nil {
		r.t.Fatal(err)
	}
	return len(list)
}

// inbox is a receiver that stores requests and sends scripted responses.
type inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []message
	answer func(n int, w http.ResponseWriter, r *http.Request) // n counts the requests from 1; nil: answer 200
}

type message struct {
	header http.Header
	body   string
	uri    string
	method string
}

func newInbox(t testing.TB) *inbox {
	in := &inbox{}
	in.server = httptest.NewServer(in)
	t.Cleanup(in.server.Close)
	return in
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	in.mu.Lock()
	in.got = append(in.got, message{header: r.Header.Clone(), body: string(body), uri: r.RequestURI, method: r.Method})
	n, answer := len(in.got), in.answer
	in.mu.Unlock()
	if answer != nil {
		answer(n, w, r)
		return
	}
	_, _ = io.WriteString(w, "OK")
}

func (in *inbox) answers(fn func(n int, w http.ResponseWriter, r *http.Request)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.answer = fn
}

func (in *inbox) status(code int) {
	in.answers(func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

func (in *inbox) all() []message {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]message(nil), in.got...)
}

func verify(secret string, m message) error {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return hook.Verify([]byte(m.body), m.header)
}

func TestBody_fieldsByKind(t *testing.T) {
	e := Event{Amount: 100050, Charges: 7, Status: "success", Reference: "ref-1 <&>", ProviderReference: "ext", Phone: "0241234567"}
	for kind, want := range map[Kind]string{
		Payout:     `{"amount":"1000.50","charges":"0.07","status":"success","transaction_id":"ref-1 \u003c\u0026\u003e","ext_transaction_id":"ext"}`,
		Airtime:    `{"amount":"1000.50","charges":"0.07","status":"success","transaction_id":"ref-1 \u003c\u0026\u003e","ext_transaction_id":"ext"}`,
		Collection: `{"amount":"1000.50","charges":"0.07","status":"success","transaction_id":"ref-1 \u003c\u0026\u003e","ext_transaction_id":"ext","phone_number":"0241234567"}`,
	} {
		e.Kind = kind
		got, err := bodyOf(e)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
	for _, status := range []string{"", "pending", "submitted", "declined"} {
		e.Status = status
		if _, err := bodyOf(e); err == nil {
			t.Errorf("an event may say %q", status)
		}
	}
	e.Status, e.Kind = "failed", "gift"
	if _, err := bodyOf(e); err == nil {
		t.Error("an event of no kind has a body")
	}
}

func TestDeliver_signedAndOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.send(r.event(1, nil))
		r.quiet()
		got := r.inbox.all()
		if len(got) != 1 {
			t.Fatalf("%d requests", len(got))
		}
		m := got[0]
		if m.method != http.MethodPost || m.uri != "/hook?order=7" || m.header.Get("Content-Type") != "application/json" ||
			m.header.Get("webhook-id") != "event-0001" || m.header.Get("User-Agent") != userAgent {
			t.Errorf("%+v", m)
		}
		if want := `{"amount":"10.00","charges":"0.10","status":"success","transaction_id":"order-000000007","ext_transaction_id":"9b1f0f4e-0000-4000-8000-000000000007"}`; m.body != want {
			t.Errorf("body %s", m.body)
		}
		s, err := r.Secret(t.Context(), "tenant")
		if err != nil || s.Former != "" || !strings.HasPrefix(s.Current, "whsec_") {
			t.Fatal(s, err)
		}
		if err := verify(s.Current, m); err != nil {
			t.Error(err)
		}
		m.body += " "
		if verify(s.Current, m) == nil {
			t.Error("the signature holds for any body")
		}
		e := r.one()
		if e.State != Delivered || e.Attempts != 1 || e.Status != 200 || e.EndedAt.IsZero() || e.Error != "" || e.Body != got[0].body || e.Mode != "test" {
			t.Errorf("%+v", e)
		}
		if n := r.jobsLeft(); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		if attempts, err := r.Attempts(t.Context(), "tenant", "event-0001"); err != nil || len(attempts) != 0 {
			t.Errorf("%+v, %v", attempts, err)
		}
		r.c.Advance(100 * time.Hour)
		r.quiet()
		if n := len(r.inbox.all()); n != 1 {
			t.Errorf("delivered %d times", n)
		}
		if c := r.Counts(); c.Delivered != 1 || c.Failed != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestQueue_rolledBackIsNeverSent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		no := errors.New("no")
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(r.Queue(tx, r.event(1, nil)), no)
		})
		if !errors.Is(err, no) {
			t.Fatal(err)
		}
		r.send(r.event(2, nil))
		r.quiet()
		if got := r.inbox.all(); len(got) != 1 || got[0].header.Get("webhook-id") != "event-0002" {
			t.Errorf("%+v", got)
		}
	})
}

func TestDeliver_tenAttemptsIn75h(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat(fmt.Sprintf("attempt %d ü\x00 ", n), 1000))
		})
		r.send(r.event(1, nil))
		var pausesSeen []time.Duration
		for {
			r.quiet()
			if r.one().State != Pending {
				break
			}
			list, err := r.q.List(t.Context(), jobs.Filter{Kind: jobKind})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			pause := list[0].RunAt.Sub(r.c.Now())
			pausesSeen = append(pausesSeen, pause)
			r.c.Advance(pause - time.Microsecond)
			r.quiet()
			if n := len(r.inbox.all()); n != len(pausesSeen) {
				t.Fatalf("an attempt came before its time: %d after %d pauses", n, len(pausesSeen))
			}
			r.c.Advance(time.Microsecond)
		}
		got := r.inbox.all()
		if len(got) != 10 {
			t.Fatalf("%d attempts", len(got))
		}
		var total time.Duration
		for i, pause := range pausesSeen {
			total += pause
			if pause < pauses[i]*8/10 || pause > pauses[i]*12/10 || pause == pauses[i] {
				t.Errorf("pause %d is %v, expected %v with jitter", i+1, pause, pauses[i])
			}
		}
		if total < 60*time.Hour || total > 91*time.Hour {
			t.Errorf("all in %v", total)
		}
		for _, m := range got {
			if m.body != got[0].body || m.header.Get("webhook-id") != "event-0001" {
				t.Errorf("an attempt differs: %+v", m)
			}
			s, err := r.Secret(t.Context(), "tenant")
			if err != nil {
				t.Fatal(err)
			}
			// The receiver checks with the machine's clock, although the test moved our clock.
			if err := verify(s.Current, m); err != nil {
				t.Error(err)
			}
		}
		e := r.one()
		if e.State != Failed || e.Attempts != 10 || e.Status != 500 || e.Error != "answered 500" {
			t.Errorf("%+v", e)
		}
		attempts, err := r.Attempts(t.Context(), "tenant", "event-0001")
		if err != nil || len(attempts) != 10 {
			t.Fatal(len(attempts), err)
		}
		for i, a := range attempts {
			if a.Number != i+1 || a.Status != 500 || !strings.HasPrefix(a.Answer, fmt.Sprintf("attempt %d ü? ", i+1)) || len(a.Answer) > answerBytes {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
		}
		if r.jobsLeft() != 0 {
			t.Error("its job is left")
		}
		failed, err := r.List(t.Context(), Filter{State: Failed})
		if err != nil || len(failed) != 1 {
			t.Errorf("%+v, %v", failed, err)
		}
	})
}

func TestDeliver_afterRefusal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			w.WriteHeader(http.StatusAccepted)
		})
		r.send(r.event(1, nil))
		r.quiet()
		r.c.Advance(6 * time.Second)
		r.quiet()
		r.c.Advance(6 * time.Minute)
		r.quiet()
		if e := r.one(); e.State != Delivered || e.Attempts != 3 || e.Status != 202 || e.Error != "" {
			t.Errorf("%+v", e)
		}
		if c := r.Counts(); c.Delivered != 1 || c.Failed != 2 || c.GivenUp != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestDeliver_goneEndsIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.status(http.StatusGone)
		r.send(r.event(1, nil))
		r.quiet()
		r.c.Advance(100 * time.Hour)
		r.quiet()
		if e := r.one(); e.State != Failed || e.Status != 410 || len(r.inbox.all()) != 1 || r.jobsLeft() != 0 {
			t.Errorf("%+v after %d attempts", e, len(r.inbox.all()))
		}
	})
}

func TestSend_followsNoRedirect(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		for i, status := range []int{301, 302, 303, 307, 308} {
			other := newInbox(t)
			r.inbox.answers(func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", other.server.URL)
				w.WriteHeader(status)
			})
			r.send(r.event(i, nil))
			r.quiet()
			if n := len(other.all()); n != 0 {
				t.Errorf("%d was followed", status)
			}
			e, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: fmt.Sprintf("subject-%04d", i)})
			if err != nil || len(e) != 1 || e[0].State != Pending || e[0].Status != status || !strings.Contains(e[0].Error, "redirects are not followed") {
				t.Errorf("%+v, %v", e, err)
			}
		}
	})
}

func TestSend_brokenResponses(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	never := func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}
	hangUp := func(_ int, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	nonsense := func(_ int, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n\r\n")
			_ = conn.Close()
		}
	}
	endless := func(status int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("more ", 4096)); err != nil {
					return
				}
			}
		}
	}
	drip := func(_ int, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		never(0, w, r)
	}
	for _, c := range []struct {
		name    string
		answer  func(int, http.ResponseWriter, *http.Request)
		timeout time.Duration
		state   State
		status  int
		err     string
	}{
		{"no answer", never, 2 * time.Second, Pending, 0, "no answer within 2 s"},
		{"reset", hangUp, patience, Pending, 0, "the connection was closed without an answer"},
		{"not HTTP", nonsense, patience, Pending, 0, "the answer is not HTTP"},
		{"an endless refusal", endless(500), patience, Pending, 500, "answered 500"},
		{"an endless success", endless(200), patience, Delivered, 200, ""},
		{"a success that does not end", drip, patience, Delivered, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, dbtest.Open(t, db.SQLite), "a", Options{Timeout: c.timeout})
			r.inbox.answers(c.answer)
			r.send(r.event(1, nil))
			r.quiet()
			if e := r.one(); e.State != c.state || e.Status != c.status || !strings.Contains(e.Error, c.err) || e.Attempts != 1 {
				t.Errorf("%+v", e)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		r := newRig(t, dbtest.Open(t, db.SQLite), "a", Options{})
		// The local end of an open connection has a port on which nothing listens, and which no other program can
		// get.
		near, err := net.Dial("tcp", r.inbox.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		r.send(r.event(1, func(e *Event) { e.URL = "http://" + near.LocalAddr().String() }))
		r.quiet()
		if e := r.one(); e.State != Pending || e.Status != 0 || e.Error != "the connection was refused" {
			t.Errorf("%+v", e)
		}
	})
}

func TestDeliver_honoursRetryAfter(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		r.send(r.event(1, nil))
		r.quiet()
		r.c.Advance(time.Hour - time.Second)
		r.quiet()
		if n := len(r.inbox.all()); n != 1 {
			t.Fatalf("%d attempts before the hour was over", n)
		}
		r.c.Advance(time.Second)
		r.quiet()
		if n := len(r.inbox.all()); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "7": 7 * time.Second, "99999999": 24 * time.Hour, "soon": 0,
		begin.Add(time.Minute).Format(http.TimeFormat): time.Minute, begin.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, begin); got != want {
			t.Errorf("Retry-After %q: %v", text, got)
		}
	}
}

func TestDeliver_slowReceiverDelaysNoOther(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{Workers: 20, Timeout: patience})
		slow := newInbox(t)
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		defer open()
		var most, inside int
		slow.answers(func(_ int, w http.ResponseWriter, _ *http.Request) {
			slow.mu.Lock()
			inside++
			most = max(most, inside)
			slow.mu.Unlock()
			<-gate
			slow.mu.Lock()
			inside--
			slow.mu.Unlock()
			w.WriteHeader(http.StatusOK)
		})
		quick := make(chan struct{}, 50)
		r.inbox.answers(func(int, http.ResponseWriter, *http.Request) { quick <- struct{}{} })
		var events []Event
		for i := range 100 {
			events = append(events, r.event(i, func(e *Event) { e.URL = slow.server.URL }))
		}
		r.send(events...)
		events = nil
		for i := range 50 {
			events = append(events, r.event(1000+i, nil))
		}
		r.send(events...)
		enough := time.After(patience)
		for got := range 50 {
			select {
			case <-quick:
			case <-enough:
				t.Fatalf("the quick receiver got %d of 50 beside the slow one", got)
			}
		}
		slow.mu.Lock() // a receiver that has answered may get more
		if most > leastAtOnce {
			t.Errorf("an unknown receiver got %d at once", most)
		}
		slow.mu.Unlock()
		open()
		r.quiet()
		if n := len(slow.all()); n != 100 {
			t.Errorf("the slow receiver got %d", n)
		}
	})
}
