package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/apitest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/webhook"
)

// The routes and the OpenAPI document have the same endpoints.
func TestRoutes_matchDocument(t *testing.T) {
	document, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]apitest.Operation{}
	for _, o := range document.Operations {
		documented[o.Method+" "+o.Path] = o
	}
	for _, r := range Routes() {
		name := r.Method + " " + prefix + r.Path
		o, ok := documented[name]
		if !ok {
			t.Errorf("%s is served and not documented", name)
			continue
		}
		if want := (apitest.Rate{Requests: r.Limit.Max, Seconds: int64(r.Limit.Window.Seconds()), OfKey: r.Limit.OfKey}); o.Rate != want {
			t.Errorf("%s is limited to %+v, documented is %+v", name, want, o.Rate)
		}
		if limited := r.Limit.Max > 0 || !r.Open; o.Limited() != limited {
			t.Errorf("%s may answer 429: %v, documented is %v", name, limited, o.Limited())
		}
		if o.BodyLimit != r.Body && (o.BodyLimit != 0 || r.Body != moneyBody) {
			t.Errorf("%s takes bodies of %d bytes, documented are %d", name, r.Body, o.BodyLimit)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("%s is documented and not served", name)
	}
}

// house is the API on a real database, without payments.
type house struct {
	t       testing.TB
	api     *API
	clock   *clock.Clock
	db      *db.DB
	access  *access.Access
	tenants *tenant.Store
	tenant  string
	key     access.Minted
	log     bytes.Buffer
	seen    []Seen
}

// probes are routes of this test in place of the real ones. Their handlers answer at once.
var probes = []Route{
	{Method: http.MethodPost, Path: "probe/payout", Scope: access.Payout, Body: 1 << 10, Listed: true, handle: echo},
	{Method: http.MethodPost, Path: "probe/collect", Scope: access.Collect, Body: 1 << 10, Collects: true, handle: echo},
	{Method: http.MethodGet, Path: "probe/limited/{id}", Scope: access.Read, Body: 1 << 10, Limit: ratelimit.Limit{Name: "probe", Max: 3, Window: time.Minute}, handle: echo},
	{Method: http.MethodGet, Path: "probe/shared", Scope: access.Read, Body: 1 << 10, Limit: ratelimit.Limit{Name: "shared", Max: 3, OfKey: 2, Window: time.Minute}, handle: echo},
	{Method: http.MethodGet, Path: "probe/open/{id}", Scope: access.Read, Body: 1 << 10, Open: true, handle: echo},
	{Method: http.MethodDelete, Path: "probe/open/{id}", Scope: access.Read, Body: 1 << 10, handle: echo},
	{Method: http.MethodGet, Path: "probe/panic", Scope: access.Read, handle: func(*call) error { panic("the secret of the house") }},
	{Method: http.MethodGet, Path: "probe/down", Scope: access.Read, handle: func(*call) error { return db.ErrUnavailable }},
	{Method: http.MethodGet, Path: "probe/late", Scope: access.Read, handle: func(*call) error { return fmt.Errorf("read: %w", context.DeadlineExceeded) }},
	{Method: http.MethodGet, Path: "probe/broken", Scope: access.Read, handle: func(*call) error { return errors.New("the secret of the house") }},
	{Method: http.MethodGet, Path: "probe/half", Scope: access.Read, handle: func(c *call) error {
		c.success("half").Object("data")
		return problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}},
}

func echo(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id := f.path["id"]
	if c.r.Method == http.MethodPost {
		f.amount("amount", 50, noLimit)
	}
	if err := f.err(); err != nil {
		return err
	}
	w := c.success("ok")
	w.Object("data")
	w.Text("id", id)
	w.End()
	w.End()
	return nil
}

func open(t testing.TB, change func(*Deps)) *house {
	t.Helper()
	d := dbtest.Open(t, db.SQLite)
	h := &house{t: t, db: d, clock: clock.NewManual(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))}
	h.access = access.New(d, h.clock)
	books := ledger.New(d, h.clock, "node")
	h.tenants = tenant.New(d, books, h.clock)
	var err error
	if h.key, err = h.access.Mint(access.NewKey{Tenant: "t1"}); err != nil {
		t.Fatal(err)
	}
	h.write(func(tx *db.Tx) error {
		made, err := h.tenants.Create(tx, tenant.Tenant{ID: "t1", Name: "Adom Stores", Mode: tenant.Test, CollectionsEnabled: true})
		h.tenant = made.ID
		h.access.CreateKey(tx, h.key)
		return err
	})
	h.allow("192.0.2.0/24")
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	deps := Deps{
		Access: h.access, Limits: ratelimit.New(h.db, h.clock), Tenants: h.tenants, Ledger: books, Clock: h.clock, Secret: secret, PublicURL: "https://pay.example",
		Recovery: recovery.New(d, h.clock, slog.New(slog.DiscardHandler)),
		Routes:   route.New(d, h.clock, slog.New(slog.DiscardHandler), nil, nil),
		Log:      slog.New(slog.NewTextHandler(&h.log, nil)), Observe: func(s Seen) { h.seen = append(h.seen, s) },
	}
	if change != nil {
		change(&deps)
	}
	h.api = New(deps)
	for _, r := range probes {
		h.api.add(r)
	}
	return h
}

func (h *house) write(fn func(*db.Tx) error) {
	h.t.Helper()
	if err := h.db.Write(context.Background(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) allow(prefixes ...string) {
	h.t.Helper()
	h.write(func(tx *db.Tx) error {
		var list []netip.Prefix
		for _, p := range prefixes {
			list = append(list, netip.MustParsePrefix(p))
		}
		_, err := h.access.SetPayoutIPs(tx, h.tenant, list)
		return err
	})
}

func (h *house) set(c tenant.Change) {
	h.t.Helper()
	h.write(func(tx *db.Tx) error {
		_, _, err := h.tenants.Set(tx, h.tenant, c)
		return err
	})
}

// answer is the response to a request.
type answer struct {
	*httptest.ResponseRecorder
	apitest.Refusal
}

// ask sends a request with the test key, unless a header overrides it. A header without a value is left out.
func (h *house) ask(method, target, body string, headers ...string) answer {
	h.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-Api-Key", h.key.Text)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.api.ServeHTTP(w, r)
	a := answer{ResponseRecorder: w}
	if w.Header().Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(w.Body.Bytes(), &a.Refusal); err != nil {
			h.t.Fatalf("%s %s: %v: %s", method, target, err, w.Body)
		}
	}
	if id := w.Header().Get("X-Request-Id"); id == "" || w.Code >= 400 && id != a.RequestID || w.Header().Get("Cache-Control") != "no-store" {
		h.t.Errorf("%s %s: the headers are %v", method, target, w.Header())
	}
	return a
}

// want compares an answer with a status and an error code, which is empty for a success.
func (a answer) want(t *testing.T, status int, code string) answer {
	t.Helper()
	if a.Code() != status || a.Refusal.Code != code {
		t.Errorf("answered %d %q, want %d %q: %s", a.Code(), a.Refusal.Code, status, code, a.Body)
	}
	return a
}

// Code returns the HTTP status. The code of the error is in Refusal.
func (a answer) Code() int { return a.ResponseRecorder.Code }

const v1 = "/api/v1/probe/"

// A client that invents methods and paths, with or without a key, adds no series of metrics.
func TestMetrics_boundedSeries(t *testing.T) {
	h := open(t, nil)
	for _, method := range []string{"GET", "BREW", "get", "PROPFIND"} {
		h.ask(method, "/api/v1/made-up/"+method, "", "X-Api-Key", "")
	}
	for i, want := range []string{"GET", "other", "other", "other"} {
		if s := h.seen[i]; s.Method != want || s.Route != "other" {
			t.Errorf("the metrics saw %+v, want method %s", s, want)
		}
	}
}

// The checks of a request run in their fixed order.
func TestChecks_order(t *testing.T) {
	h := open(t, nil)
	large := `{"amount":1,"x":"` + strings.Repeat("x", 1<<10) + `"}`
	// At first the request has every fault. Each step corrects one of them.
	h.allow("10.0.0.0/8")
	blocked := true
	h.set(tenant.Change{Blocked: &blocked})
	h.ask("POST", v1+"payout", large, "X-Api-Key", "").want(t, 413, "body_too_large")
	h.ask("POST", v1+"payout", "{", "X-Api-Key", "").want(t, 401, "invalid_api_key")
	h.ask("POST", v1+"payout", "{", "X-Api-Key", "mk_test_nonsense").want(t, 401, "invalid_api_key")
	h.ask("PUT", v1+"payout", "{").want(t, 405, "method_not_allowed")
	h.ask("POST", v1+"payouts", "{").want(t, 404, "endpoint_not_found")
	h.ask("POST", v1+"payout", "{").want(t, 403, "account_blocked")
	h.ask("GET", v1+"open/7", "").want(t, 200, "")
	h.ask("DELETE", v1+"open/7", "").want(t, 403, "account_blocked")
	blocked = false
	h.set(tenant.Change{Blocked: &blocked})
	a := h.ask("POST", v1+"payout", "{").want(t, 403, "ip_not_whitelisted")
	if a.Message != "Access denied. Your IP address(192.0.2.1) is not whitelisted." {
		t.Errorf("the message is %q", a.Message)
	}
	h.allow("192.0.2.1/32")
	h.ask("POST", v1+"payout", "{").want(t, 400, "malformed_json")
	h.ask("POST", v1+"payout", `{"amount":0.1}`).want(t, 422, "invalid_fields")
	h.ask("POST", v1+"payout", `{"amount":1}`).want(t, 200, "")
	h.ask("POST", v1+"payout", `{"amount":1}`, "Content-Type", "text/plain", "Authorization", "Bearer x").want(t, 200, "")
	off := false
	h.set(tenant.Change{CollectionsEnabled: &off})
	h.ask("POST", v1+"collect", "{").want(t, 403, "collections_disabled")
}

// A tenant may require the allow-list for every request that spends money or credits. The contract requires it only
// for payouts.
func TestAllowList_coversSpending(t *testing.T) {
	h := open(t, nil)
	h.api.add(Route{Method: http.MethodPost, Path: "probe/airtime", Scope: access.Airtime, Body: 1 << 10, Spends: true, handle: echo})
	h.allow("10.0.0.0/8")
	h.ask("POST", v1+"airtime", `{"amount":1}`).want(t, 200, "")
	spending := tenant.ListedSpending
	h.set(tenant.Change{Listed: &spending})
	h.ask("POST", v1+"airtime", `{"amount":1}`).want(t, 403, "ip_not_whitelisted")
	h.ask("GET", v1+"open/7", "").want(t, 200, "")
	h.allow("192.0.2.1/32")
	h.ask("POST", v1+"airtime", `{"amount":1}`).want(t, 200, "")
	var spends []string
	for _, r := range Routes() {
		if r.Spends {
			spends = append(spends, r.Path)
		}
	}
	if want := []string{"airtime-api/sendAirtime", "databundle-api-v2/buy", "sms-api/send", "sms-api/send", "sms-api/otp/send"}; !slices.Equal(spends, want) {
		t.Errorf("what spends is %v", spends)
	}
}

// A key reaches only the endpoints of its scopes.
func TestKey_limitedToItsScopes(t *testing.T) {
	h := open(t, nil)
	reads, err := h.access.Mint(access.NewKey{Tenant: h.tenant, Member: "ama", Scopes: []access.Scope{access.Read}})
	if err != nil {
		t.Fatal(err)
	}
	h.write(func(tx *db.Tx) error { h.access.CreateKey(tx, reads); return nil })
	h.ask("GET", v1+"open/7", "", "X-Api-Key", reads.Text).want(t, 200, "")
	h.ask("POST", v1+"payout", "{}", "X-Api-Key", reads.Text).want(t, 403, "scope_missing")
	h.ask("POST", v1+"collect", "{}", "X-Api-Key", reads.Text).want(t, 403, "scope_missing")
}

// Rate limits count every request. Headers show the remaining number.
func TestLimits_countEveryRequest(t *testing.T) {
	h := open(t, nil)
	for i, left := range []string{"2", "1", "0"} {
		a := h.ask("GET", v1+"limited/%00", "") // the request is counted whatever its answer is
		if got := a.Header().Get("X-RateLimit-Remaining"); got != left || a.Header().Get("X-RateLimit-Limit") != "3" {
			t.Errorf("request %d: %s are left, want %s", i, got, left)
		}
		if a.Header().Get("RateLimit-Policy") != `"minutely";q=3;w=60` || a.Header().Get("RateLimit") != `"minutely";r=`+left+`;t=60` {
			t.Errorf("request %d: %v", i, a.Header())
		}
	}
	h.clock.Advance(1500 * time.Millisecond)
	a := h.ask("GET", v1+"limited/7", "").want(t, 429, "rate_limited")
	if a.Header().Get("Retry-After") != "59" {
		t.Errorf("Retry-After is %q", a.Header().Get("Retry-After"))
	}
	h.ask("GET", v1+"limited/7", "", "X-Api-Key", "").want(t, 401, "invalid_api_key")
	h.ask("GET", v1+"open/7", "").want(t, 200, "")
	h.clock.Advance(time.Minute)
	h.ask("GET", v1+"limited/7", "").want(t, 200, "")
}

// The general limit counts every request except status queries.
func TestLimits_general(t *testing.T) {
	h := open(t, func(d *Deps) { d.GeneralLimit = 2 })
	h.ask("DELETE", v1+"open/7", "").want(t, 200, "")
	h.ask("DELETE", v1+"open/7", "").want(t, 200, "")
	h.ask("DELETE", v1+"open/7", "").want(t, 429, "rate_limited")
	h.ask("GET", v1+"open/7", "").want(t, 200, "") // status queries are never limited by the general limit
}

// Unclean paths are refused; one trailing slash is accepted.
func TestPath_uncleanIsRefused(t *testing.T) {
	h := open(t, nil)
	for target, want := range map[string]int{
		v1 + "open/7": 200, v1 + "open/7/": 200, v1 + "open/7//": 404, v1 + "open//7": 404, v1 + "open/./7": 404, "/api/v1/./probe/open/7": 404,
		"/api/v1//probe/open/7": 404, "/api//v1/probe/open/7": 404, v1 + "open/": 404, v1 + "open": 404, v1 + "Open/7": 404, "/api/v2/probe/open/7": 404,
		"/": 404, "/api": 404, "/api/v1": 404, "/api/v1/": 404, "/favicon.ico": 404, v1 + "open/a%2Fb": 200, v1 + "open/%ff": 422, v1 + "open/a%20b": 200,
		v1 + "open/7?": 200, v1 + "open/7?a=1;b=2": 422, v1 + "open/7?x=%zz": 422,
	} {
		if got := h.ask("GET", target, "", "Content-Type", "application/json").Code(); got != want {
			t.Errorf("%s answers %d, want %d", target, got, want)
		}
	}
	a := h.ask("PATCH", v1+"open/7", "").want(t, 405, "method_not_allowed")
	if got := a.Header().Get("Allow"); got != "GET, DELETE" {
		t.Errorf("Allow is %q", got)
	}
	if got := h.ask("GET", v1+"open/a%2Fb", "").Body.String(); !strings.Contains(got, `"id":"a/b"`) {
		t.Errorf("the parameter arrives as %s", got)
	}
}

// A body without a declared length is limited while it is read.
func TestBody_withoutLengthIsBounded(t *testing.T) {
	h := open(t, nil)
	send := func(body io.Reader, key string) int {
		r := httptest.NewRequest("POST", v1+"payout", body)
		r.ContentLength = -1
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		return w.Code
	}
	if got := send(strings.NewReader(`{"amount":1}`), h.key.Text); got != 200 {
		t.Errorf("a short body answers %d", got)
	}
	endless := io.MultiReader(strings.NewReader(`{"amount":1,"x":"`), &repeat{})
	if got := send(endless, h.key.Text); got != 413 {
		t.Errorf("an endless body answers %d", got)
	}
	if got := send(io.MultiReader(strings.NewReader(`{"amount"`), failing{}), h.key.Text); got != 400 {
		t.Errorf("a body that breaks off answers %d", got)
	}
}

// Endpoints with lists accept larger bodies.
func TestBody_listsMayBeLong(t *testing.T) {
	h := open(t, nil)
	for path, limit := range map[string]int{"sms-api/send": 4 << 20, "sms-api/contact/addBulkContact": 4 << 20, "sms-api/otp/send": 64 << 10} {
		h.ask("POST", prefix+path, strings.Repeat(" ", limit), "X-Api-Key", "").want(t, 401, "invalid_api_key")
		h.ask("POST", prefix+path, strings.Repeat(" ", limit+1), "X-Api-Key", "").want(t, 413, "body_too_large")
	}
}

type repeat struct{}

func (repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The cause of an internal error is logged but not sent to the client.
func TestErrors_hideTheirCause(t *testing.T) {
	h := open(t, nil)
	for target, code := range map[string]string{"panic": "internal_error", "broken": "internal_error"} {
		a := h.ask("GET", v1+target, "").want(t, 500, code)
		if strings.Contains(a.Body.String(), "secret") {
			t.Errorf("%s tells %s", target, a.Body)
		}
		if !strings.Contains(h.log.String(), "the secret of the house") || !strings.Contains(h.log.String(), a.RequestID) {
			t.Errorf("the log does not tell what happened: %s", h.log.String())
		}
		h.log.Reset()
	}
	for target, code := range map[string]string{"down": "database_unavailable", "late": "outcome_unknown"} {
		if a := h.ask("GET", v1+target, "").want(t, 503, code); a.Header().Get("Retry-After") == "" {
			t.Errorf("%s: a 503 without Retry-After", target)
		}
	}
	if a := h.ask("GET", v1+"half", "").want(t, 404, "payment_not_found"); strings.Contains(a.Body.String(), "half") {
		t.Errorf("half an answer is left: %s", a.Body)
	}
	h.db.Close()
	h.clock.Advance(time.Minute) // until all caches have expired
	h.ask("GET", v1+"open/7", "").want(t, 503, "database_unavailable")
	if len(h.seen) != 6 || h.seen[5].Route != "probe/open/{id}" || h.seen[5].Status != 503 {
		t.Errorf("the metrics saw %v", h.seen)
	}
}

// If an operator has paused a provider, refused requests are not logged, because the log is for problems that need
// attention. Metrics count them.
func TestLog_omitsRefusalsByPause(t *testing.T) {
	h := open(t, nil)
	mtn := provider.Rail{Name: "mtn", Mode: "test", Collector: struct{ provider.Collector }{}} // never called
	routes := route.New(h.db, h.clock, slog.New(slog.DiscardHandler), []string{"mtn"}, []provider.Rail{mtn})
	if err := routes.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, op := range map[string]route.Operation{"collect-now": route.Collect, "top-up-now": route.TopUp} {
		h.api.add(Route{Method: http.MethodGet, Path: "probe/" + path, Scope: access.Read, handle: func(c *call) error {
			_, _, err := routes.Choose(c.ctx, op, "MTN", h.tenant, string(tenant.Test))
			return err
		}})
	}
	h.write(func(tx *db.Tx) error {
		return routes.Pause(tx, route.Pause{Mode: "test", Provider: "mtn", Operation: route.Any, Reason: "their outage"})
	})
	h.ask("GET", v1+"collect-now", "").want(t, 503, "provider_unavailable")
	h.ask("GET", v1+"top-up-now", "").want(t, 503, "not_served")
	if len(h.seen) != 2 || h.seen[0].Status != 503 || h.seen[1].Status != 503 || h.log.Len() > 0 {
		t.Errorf("the metrics saw %+v, the log has %s", h.seen, h.log.String())
	}
	h.ask("GET", v1+"down", "").want(t, 503, "database_unavailable")
	if !strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("of a database that is away the log has %q", h.log.String())
	}
}

// A client that disconnects during a read is not our error, so operators are not alerted.
func TestLog_omitsClientsThatHangUp(t *testing.T) {
	h := open(t, nil)
	gone, hangUp := context.WithCancel(context.Background())
	hangUp()
	r := httptest.NewRequest("GET", v1+"open/7", nil).WithContext(gone)
	r.Header.Set("X-Api-Key", h.key.Text)
	h.api.ServeHTTP(httptest.NewRecorder(), r)
	if len(h.seen) != 1 || h.seen[0].Status != StatusLeft || h.log.Len() > 0 {
		t.Errorf("the metrics saw %+v, the log has %s", h.seen, h.log.String())
	}
}

// Every answer has a request id.
func TestRequestID_inEveryAnswer(t *testing.T) {
	h := open(t, nil)
	if got := h.ask("GET", v1+"open/7", "", "X-Request-Id", "0190-my-own-id").Header().Get("X-Request-Id"); got != "0190-my-own-id" {
		t.Errorf("the client's id became %q", got)
	}
	for _, bad := range []string{"short", "with space in it", strings.Repeat("x", 65), "a\x01bcdefgh"} {
		if got := h.ask("GET", v1+"open/7", "", "X-Request-Id", bad).Header().Get("X-Request-Id"); !strings.HasPrefix(got, "req_") {
			t.Errorf("%q is repeated as %q", bad, got)
		}
	}
}

// Only a trusted proxy may name the client's address.
func TestAddress_behindTrustedProxy(t *testing.T) {
	h := open(t, func(d *Deps) { d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	h.allow("203.0.113.7/32")
	h.ask("POST", v1+"payout", `{"amount":1}`, "X-Forwarded-For", "203.0.113.7").want(t, 200, "")
	h.ask("POST", v1+"payout", `{"amount":1}`, "X-Forwarded-For", "203.0.113.7, 198.51.100.1").want(t, 403, "ip_not_whitelisted")
	h.ask("POST", v1+"payout", `{"amount":1}`, "X-Forwarded-For", "rubbish").want(t, 403, "ip_not_whitelisted")
	h.api.TrustedProxies = nil
	h.ask("POST", v1+"payout", `{"amount":1}`, "X-Forwarded-For", "203.0.113.7").want(t, 403, "ip_not_whitelisted")
}

// CORS headers are sent to configured origins only.
func TestCORS_offUnlessConfigured(t *testing.T) {
	ask := func(h *house, origin string) answer {
		return h.ask("OPTIONS", v1+"payout", "", "X-Api-Key", "", "Origin", origin, "Access-Control-Request-Method", "POST")
	}
	off := open(t, nil)
	if a := ask(off, "https://shop.example").want(t, 401, "invalid_api_key"); a.Header().Get("Access-Control-Allow-Origin") != "" || a.Header().Get("Vary") != "" {
		t.Errorf("the headers are %v", a.Header())
	}
	on := open(t, func(d *Deps) { d.Origins = []string{"https://shop.example/"} })
	if a := ask(on, "https://shop.example").want(t, 200, ""); a.Header().Get("Access-Control-Allow-Origin") != "https://shop.example" ||
		!strings.Contains(a.Header().Get("Access-Control-Allow-Headers"), "x-api-key") {
		t.Errorf("the headers are %v", a.Header())
	}
	if a := ask(on, "https://evil.example").want(t, 401, "invalid_api_key"); a.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the headers are %v", a.Header())
	}
	if a := on.ask("GET", v1+"open/7", "", "Origin", "https://shop.example"); a.Header().Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("the headers are %v", a.Header())
	}
}

// The OpenAPI document needs no key.
func TestDocument_servedWithoutKey(t *testing.T) {
	h := open(t, nil)
	if a := h.ask("GET", "/openapi.json", "", "X-Api-Key", ""); a.Code() != 200 || !json.Valid(a.Body.Bytes()) || a.Body.Len() < 10_000 {
		t.Errorf("the document answers %d, %d bytes", a.Code(), a.Body.Len())
	} else if !strings.Contains(a.Body.String(), `"servers": [{"url": "https://pay.example"}]`) {
		t.Error("the document does not say where this server is")
	}
	h.api.Exemplify(Examples{SenderID: "the-sender", GroupID: "the-group"})
	if a := h.ask("GET", "/openapi.json", "", "X-Api-Key", ""); !strings.Contains(a.Body.String(), `"sender_id": "the-sender"`) || !strings.Contains(a.Body.String(), `"contact_group_id": "the-group"`) {
		t.Error("the examples do not have the ids of the demo account")
	}
	for _, page := range []string{"/docs/testing", "/docs/testing/", "/docs"} {
		if a := h.ask("GET", page, "", "X-Api-Key", ""); a.Code() != 200 || !strings.HasPrefix(a.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s answers %d %s", page, a.Code(), a.Header().Get("Content-Type"))
		}
	}
	h.ask("POST", "/docs/testing", "").want(t, 405, "method_not_allowed")
}

// operatorCodes are codes that only the command line and background work can return.
var operatorCodes = []string{"payment_has_owner", "payment_erased", "payment_needs_no_attention", "tenant_not_found", "key_not_found", "key_not_active", "payment_final", "payment_in_progress", "payment_changed", "invalid_url",
	"campaign_over", "sender_id_reviewed", "sender_id_not_found", "group_exists", "claim_not_known", "range_not_closed", "payment_waits", "batch_in_progress", "reserve_short"}

// The guides explain every code and reason that the code uses.
func TestGuides_explainEveryCode(t *testing.T) {
	explained := map[string]bool{}
	for _, c := range guides.Codes {
		explained[c.Name] = true
	}
	for _, r := range guides.Reasons {
		explained[r.Name] = true
	}
	explains := func(word string) {
		t.Helper()
		if !explained[word] {
			t.Errorf("internal/guides/codes.go does not explain %s", word)
		}
	}
	for _, c := range []struct {
		files, pattern string
		least          int
	}{
		{"*.go", `problem\.(?:New|Wrap)\((?:err, )?problem\.[A-Za-z]+, "([a-z_]+)"`, 10},
		{"../payments/*.go", `problem\.(?:New|Wrap)\((?:err, )?problem\.[A-Za-z]+, "([a-z_]+)"`, 5},
		{"../payments/book/*.go", `problem\.(?:New|Wrap)\((?:err, )?problem\.[A-Za-z]+, "([a-z_]+)"`, 4},
		{"../messaging/*.go", `problem\.New\(problem\.[A-Za-z]+, "([a-z_]+)"`, 4},
		{"../messaging/delivery/*.go", `Code: "([a-z_]+)"`, 1},
		{"../messaging/otp/*.go", `problem\.New\(problem\.[A-Za-z]+, "([a-z_]+)"`, 1},
		{"../messaging/otp/*.go", `Code: "([a-z_]+)"`, 2},
		{"../contacts/*.go", `problem\.New\(problem\.[A-Za-z]+, "([a-z_]+)"`, 5},
		{"../senderid/*.go", `problem\.New\(problem\.[A-Za-z]+, "([a-z_]+)"`, 3},
		{"../senderid/*.go", `Code: "([a-z_]+)"`, 2},
		{"../idempotency/*.go", `problem\.New\(problem\.[A-Za-z]+, "([a-z_]+)"`, 1},
		{"../access/keys.go", `problem\.New\(problem\.Unauthenticated, "([a-z_]+)"`, 1},
		{"../route/*.go", `problem\.(?:New|Wrap)\((?:why, )?problem\.Unavailable, "([a-z_]+)"`, 2},
		{"../db/engine/errors.go", `problem\.New\(problem\.Unavailable, "([a-z_]+)"`, 2},
		{"../provider/reason.go", `Reason[A-Za-z]+ += "([a-z_]+)"`, 15},
	} {
		files, err := filepath.Glob(c.files)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "operator.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(c.pattern).FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
		}
		if len(found) < c.least {
			t.Errorf("%s names %d codes, at least %d were expected: does the pattern still fit?", c.files, len(found), c.least)
		}
		for code := range found {
			if !slices.Contains(operatorCodes, code) {
				explains(code)
			}
		}
	}
	explains(problem.CodeInvalidFields)
	explains("internal_error")
}

// The OpenAPI document lists the codes and reasons of the guides, and no others. TestGuides_explainEveryCode compares
// the guides with the code.
func TestDocument_hasCodesOfGuides(t *testing.T) {
	document, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	var codes, reasons []string
	for _, c := range guides.Codes {
		codes = append(codes, c.Name)
	}
	for _, r := range guides.Reasons {
		reasons = append(reasons, r.Name)
	}
	for _, c := range []struct {
		what              string
		explained, listed []string
	}{
		{"codes", codes, append(document.Codes(), "callback_unreadable")}, // only providers get this code
		{"reasons", reasons, document.Reasons()},
	} {
		slices.Sort(c.explained)
		slices.Sort(c.listed)
		if !slices.Equal(c.explained, c.listed) {
			t.Errorf("the pages explain the %s\n%v\nopenapi.json lists\n%v", c.what, c.explained, c.listed)
		}
	}
	var kinds []string
	for _, k := range []webhook.Kind{webhook.Airtime, webhook.BatchEnded, webhook.Collection, webhook.Payout, webhook.Received} {
		kinds = append(kinds, string(k))
	}
	if !slices.Equal(kinds, document.Webhooks()) {
		t.Errorf("webhooks are %v, documented are %v", kinds, document.Webhooks())
	}
}

// Every kind of problem has its status.
func TestStatus_ofEveryKind(t *testing.T) {
	for kind, want := range map[problem.Kind]int{
		problem.Malformed: 400, problem.InsufficientFunds: 400, problem.Refused: 400, problem.Unauthenticated: 401, problem.InsufficientCredits: 402, problem.Forbidden: 403,
		problem.NotFound: 404, problem.InProgress: 409, problem.Gone: 410, problem.TooLarge: 413, problem.Invalid: 422, problem.Duplicate: 422, problem.RateLimited: 429,
		problem.Internal: 500, "new": 500, problem.Unavailable: 503,
	} {
		if got := status(kind); got != want {
			t.Errorf("%s is %d, want %d", kind, got, want)
		}
	}
}
