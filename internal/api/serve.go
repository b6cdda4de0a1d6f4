package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/tenant"
)

const (
	prefix = "/api/v1/"
	// AnswerWithin bounds a whole request, its body aside. A POST keeps it even when
	// the client has gone: what was begun is finished and recorded. One of large
	// lists has ListWithin.
	AnswerWithin = 9 * time.Second
	ListWithin   = 60 * time.Second
	keptBuffer   = 64 << 10    // bytes of a buffer that is used again
	slowBody     = time.Second // a body that took longer is not counted
)

// call is one request on its way through.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	whole  context.Context // as long as the client is there
	ctx    context.Context // of whole, with an end
	cancel context.CancelFunc
	begun  time.Time
	id     string // request id

	route  *Route
	where  string // the route's path for the metrics
	params []string
	// interfaced says that the path is under /api/v1.
	interfaced bool
	caller     access.Caller
	tenant     tenant.Tenant
	body       []byte
	held       held // of the memory for bodies

	status  int
	out     writer
	shared  []byte // the answer where it is the same for all clients; nil: out has it
	kind    string // content type
	failure *problem.Error
	cause   error
}

func (a *API) begin(w http.ResponseWriter, r *http.Request) *call {
	c := a.calls.Get().(*call)
	body, out := c.body[:0], c.out
	*c = call{api: a, w: w, r: r, begun: a.Clock.Now(), where: "other", body: body, status: http.StatusOK, kind: "application/json"}
	c.out = out
	c.out.Reset()
	c.id = RequestID(r)
	c.whole = r.Context()
	if r.Method != http.MethodGet {
		c.whole = context.WithoutCancel(c.whole)
	}
	c.ctx, c.cancel = context.WithTimeout(c.whole, AnswerWithin)
	return c
}

// within gives the handler its time.
func (c *call) within(d time.Duration) {
	c.cancel()
	c.ctx, c.cancel = context.WithTimeout(c.whole, d)
}

// RequestID takes over the client's id if it is fit to be shown, else makes one.
func RequestID(r *http.Request) string {
	given := r.Header.Get("X-Request-Id")
	if len(given) >= 8 && len(given) <= 64 && wordy(given) {
		return given
	}
	var b [12]byte
	rand.Read(b[:])
	return "req_" + hex.EncodeToString(b[:])
}

// key returns the API key of the request, and no key where two of them differ.
// A proxy may have checked the one and Makola would serve the other.
func (c *call) key() string {
	key, one := c.once("X-Api-Key")
	if !one {
		return ""
	}
	return key
}

// once returns the value of a request header and reports whether the header has
// no other value.
func (c *call) once(name string) (value string, one bool) {
	values := c.r.Header[name]
	for _, v := range values {
		if v != values[0] {
			return values[0], false
		}
	}
	return c.r.Header.Get(name), true
}

func (c *call) header(name, value string) { c.w.Header().Set(name, value) }

// finish sends the answer, or that of a panic, and gives the call back.
func (c *call) finish() {
	if r := recover(); r != nil {
		if r == http.ErrAbortHandler {
			panic(r)
		}
		c.refuse(fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
	}
	c.cancel()
	h := c.w.Header()
	h["Content-Type"] = []string{c.kind}
	text := c.out.Bytes()
	if c.shared != nil {
		text = c.shared
	}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	h["Cache-Control"] = []string{"no-store"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["X-Request-Id"] = []string{c.id}
	c.w.WriteHeader(c.status)
	_, _ = c.w.Write(text) // a client that has gone needs no answer
	c.release()
	c.note()
	if cap(c.out.Bytes()) <= keptBuffer && cap(c.body) <= keptBuffer {
		c.api.calls.Put(c)
	}
}

// turnedAway are the codes of refusals by decision: a provider is paused, its breaker is open or it says
// nothing of use, or we have none. That is told where it happens, once, not with each request.
var turnedAway = []string{"server_busy", "storage_low", "recovering", "clock_wrong", "provider_unavailable", "not_served", "sms_unavailable", "name_service_unavailable", "offers_unavailable"}

// note logs and counts the request. A failure of ours is logged as an error with its cause;
// everything else is logged with debugging on.
func (c *call) note() {
	took := c.api.Clock.Now().Sub(c.begun)
	if c.status >= 500 && !slices.Contains(turnedAway, c.failure.Code) {
		c.api.log.Error("request failed", "request_id", c.id, "method", c.r.Method, "route", c.where, "status", c.status,
			"code", c.failure.Code, "tenant", c.caller.Tenant, "took", took, "error", c.cause)
	} else if c.api.log.Enabled(c.ctx, slog.LevelDebug) {
		c.api.log.Debug("request", "request_id", c.id, "method", c.r.Method, "route", c.where, "status", c.status,
			"tenant", c.caller.Tenant, "key", c.caller.KeyID, "took", took)
	}
	if c.api.Observe != nil {
		c.api.Observe(Seen{Route: c.where, Method: SeenMethod(c.r.Method), RequestID: c.id, Tenant: c.caller.Tenant, Status: c.status, Bytes: len(c.out.Bytes()), Took: took})
	}
	if c.status >= 400 && c.status != StatusLeft && c.failure != nil && c.interfaced && c.api.Refused != nil {
		c.api.Refused(c.refusedRequest(took))
	}
}

// refusedRequest is the request for the log of requests.
func (c *call) refusedRequest(took time.Duration) requestlog.Request {
	message, fields := c.blamed(c.failure)
	return requestlog.Request{RequestID: c.id, Tenant: c.caller.Tenant, At: c.begun, Took: took, Method: SeenMethod(c.r.Method), Endpoint: c.where,
		Status: c.status, Code: c.failure.Code, Message: message, Fields: fields, Key: c.caller.KeyID, Origin: c.origin()}
}

// SeenMethod is a method for the metrics: a client may make up any.
func SeenMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// HostNotServed is the text of the refusal of a host to which a development server does not answer.
const HostNotServed = "A development server answers to localhost and to the host of its public URL. Use http://localhost with its port, or set MAKOLA_PUBLIC_URL to the address that you use and restart"

// run answers a request or says why not.
func (c *call) run() error {
	path := c.r.URL.EscapedPath()
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if c.api.ProxiesOnly && !access.FromProxy(c.r.RemoteAddr, c.api.TrustedProxies) {
		return problem.New(problem.Forbidden, "not_encrypted", "This service is reached over https, through its proxy")
	}
	if c.api.Hosts != nil && !c.api.Hosts(c.r.Host) {
		return problem.New(problem.Forbidden, "host_not_served", HostNotServed)
	}
	if c.preflight() {
		return nil
	}
	if rest, ok := strings.CutPrefix(path, prefix); ok {
		return c.interfaces(rest)
	}
	if rest, ok := strings.CutPrefix(path, "/callbacks/"); ok {
		c.where = "callbacks"
		return c.callback(rest)
	}
	return c.page(path)
}

// interfaces answers what is under /api/v1. The order of its checks is part of
// the interface: size, key, path and method, rate, permission, then the body.
func (c *call) interfaces(path string) error {
	c.interfaced = true
	e, params := c.api.find(path)
	var r *Route
	limit := int64(moneyBody)
	if e != nil {
		c.where, c.params = e.path, params
		if r = e.method(c.r.Method); r != nil {
			limit = r.Body
		}
	}
	c.route = r
	if c.r.ContentLength > limit {
		c.readPast()
		return tooLarge(limit)
	}
	var err error
	if c.caller, err = c.api.Access.AuthenticateFrom(c.ctx, c.key(), c.address()); err != nil {
		if c.r.ContentLength != 0 && c.r.ProtoMajor == 1 { // else it ends one stream, not a connection of many
			c.header("Connection", "close") // nothing of the body is read
		}
		return err
	}
	if w, bounded := c.w.(interface{ Known() }); bounded {
		w.Known()
	}
	if e == nil {
		return noEndpoint()
	}
	if r == nil {
		return c.wrongMethod(e.allow())
	}
	if c.r.ContentLength < 0 { // its size is known when it was read, and comes first
		if err := c.read(limit); err != nil {
			return err
		}
	}
	if err := c.rated(); err != nil {
		return err
	}
	if err := c.permitted(); err != nil {
		return err
	}
	if err := c.recovering(); err != nil {
		return err
	}
	if c.api.Stopped != nil && c.r.Method != http.MethodGet {
		if err := c.api.Stopped(); err != nil {
			return err
		}
	}
	if err := c.read(limit); err != nil {
		return err
	}
	switch {
	case limit > moneyBody:
		c.within(ListWithin)
	case c.r.ContentLength != 0 && c.api.Clock.Since(c.begun) > slowBody:
		c.within(AnswerWithin)
	}
	return r.handle(c)
}

// recoveringPause is when a customer may ask again who is kept out of a recovery.
const recoveringPause = 30 * time.Second

// recovering keeps customers out while operators redo what a database that went
// back in time has forgotten.
func (c *call) recovering() error {
	s, err := c.api.Recovery.State(c.ctx)
	if err != nil || !s.Closed() {
		return err
	}
	e := problem.New(problem.Unavailable, "recovering", "The service is being recovered. Nothing was sent; try again shortly, with the same reference.")
	e.RetryAfter = recoveringPause
	return e
}

func noEndpoint() error {
	return problem.New(problem.NotFound, "endpoint_not_found", "No such endpoint")
}

// wrongMethod has a status that no other refusal has.
func (c *call) wrongMethod(allow string) error {
	c.header("Allow", allow)
	c.refuse(problem.New(problem.NotFound, "method_not_allowed", "This endpoint takes "+allow))
	c.status = http.StatusMethodNotAllowed
	return nil
}

func tooLarge(limit int64) error {
	return problem.New(problem.TooLarge, "body_too_large", "The request body is larger than "+strconv.FormatInt(limit>>10, 10)+" KB")
}

// Bounds of a body that is read for nothing.
const (
	pastBody = 16 << 20
	pastTime = 5 * time.Second
)

// readPast takes the body of a request that is refused for its size from a client that writes all of it before it reads: to such a
// one, a connection that is closed meanwhile is reset, and the refusal is lost.
func (c *call) readPast() {
	waits := c.r.Header.Get("Expect") != "" // until it is asked to go on, which it is by the first reading
	if c.r.ProtoMajor != 1 || c.r.ContentLength > pastBody || waits {
		return
	}
	if http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(pastTime)) == nil {
		_, _ = io.Copy(io.Discard, c.r.Body) // net/http lets no more through than was declared
	}
}

// read reads the body once, into memory that is the call's until it ends.
func (c *call) read(limit int64) error {
	if c.r.Body == nil || c.r.ContentLength == 0 || len(c.body) > 0 {
		return nil
	}
	expected := c.r.ContentLength
	if expected < 0 {
		expected = min(limit, moneyBody)
	}
	if err := c.resize(expected); err != nil {
		return err
	}
	if n := c.r.ContentLength; n > int64(cap(c.body)) {
		c.body = make([]byte, 0, n)
	}
	in := io.LimitReader(c.r.Body, limit+1)
	for {
		if len(c.body) == cap(c.body) {
			c.body = slices.Grow(c.body, 512)
		}
		n, err := in.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		switch size := int64(len(c.body)); {
		case size > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF):
			return c.resize(size)
		case err != nil:
			return problem.Wrap(err, problem.Malformed, "body_incomplete", "The request body did not arrive whole")
		case size > moneyBody:
			if err := c.resize(size); err != nil {
				return err
			}
		}
	}
}

// rated counts the request against the endpoint's limit and the general one.
func (c *call) rated() error {
	if c.api.general.Max > 0 && !c.route.Open {
		if err := c.counted(); err != nil {
			return err
		}
	}
	if l := c.route.Limit; l.Max > 0 {
		return c.take(c.ctx, windowName(l.Window), l.ForKey(c.caller.KeyID), l)
	}
	return nil
}

// countTime is how long a request that only reads waits until it is counted.
const countTime = 500 * time.Millisecond

// counted counts the request against the general limit. A database that takes no writes does not stop requests that only read:
// they go on uncounted.
func (c *call) counted() error {
	if c.r.Method != http.MethodGet || c.route.Spends || c.route.Stores {
		return c.take(c.ctx, "general", c.api.general)
	}
	ctx, cancel := context.WithTimeout(c.ctx, countTime)
	defer cancel()
	if err := c.take(ctx, "general", c.api.general); problem.Is(err, problem.RateLimited) || c.ctx.Err() != nil {
		return err
	}
	return nil
}

func windowName(window time.Duration) string {
	switch window {
	case time.Hour:
		return "hourly"
	case time.Minute:
		return "minutely"
	}
	return window.String()
}

// take counts one request against limits until one of them refuses, and tells the client of the one that leaves fewest.
func (c *call) take(ctx context.Context, name string, limits ...access.Limit) error {
	d := access.Decision{Allowed: true}
	for _, l := range limits {
		if l.Max <= 0 || !d.Allowed {
			continue
		}
		one, err := c.api.Access.Take(ctx, c.caller.Tenant, l)
		if err != nil {
			return err
		}
		if d.Max == 0 || !one.Allowed || one.Remaining < d.Remaining {
			d = one
		}
	}
	seconds := func(d time.Duration) string { return strconv.FormatInt(wholeSeconds(d), 10) }
	most, left := strconv.FormatInt(d.Max, 10), strconv.FormatInt(d.Remaining, 10)
	c.header("RateLimit-Policy", `"`+name+`";q=`+most+`;w=`+seconds(d.Window))
	c.header("RateLimit", `"`+name+`";r=`+left+`;t=`+seconds(d.ResetAfter))
	c.header("X-RateLimit-Limit", most)
	c.header("X-RateLimit-Remaining", left)
	if d.Allowed {
		return nil
	}
	e := problem.New(problem.RateLimited, "rate_limited", "Too many requests. At most "+most+" are allowed in "+seconds(d.Window)+" seconds")
	e.RetryAfter = max(d.ResetAfter, time.Second)
	return e
}

// permitted asks whether this tenant, this key and this address may call the
// endpoint.
func (c *call) permitted() error {
	var err error
	if c.tenant, err = c.api.Tenants.Get(c.ctx, c.caller.Tenant); err != nil {
		return err
	}
	if c.tenant.Blocked && !c.route.Open {
		return tenant.Blocked()
	}
	if !c.caller.Can(c.route.Scope) {
		return problem.New(problem.Forbidden, "scope_missing", "This API key does not have the scope "+string(c.route.Scope))
	}
	if c.route.Listed || c.route.Spends && c.tenant.Listed == tenant.ListedSpending {
		from := c.address()
		ok, err := c.api.Access.PayoutIPAllowed(c.ctx, c.caller.Tenant, from)
		if err != nil {
			return err
		}
		if !ok {
			return notListed(from)
		}
	}
	if c.route.Collects && !c.tenant.CollectionsEnabled {
		return tenant.NoCollections()
	}
	if c.route.Stores && c.api.Short != nil && c.api.Short() {
		e := problem.New(problem.Unavailable, "storage_low", "This cannot be stored at the moment. Try again later")
		e.RetryAfter = time.Minute
		return e
	}
	return nil
}

func notListed(from netip.Addr) error {
	seen := "unknown"
	if from.IsValid() {
		seen = from.String()
	}
	return problem.New(problem.Forbidden, "ip_not_whitelisted", "Access denied. Your IP address("+seen+") is not whitelisted.")
}

// origin is address as it is written down; empty: unknown.
func (c *call) origin() string {
	if from := c.address(); from.IsValid() {
		return from.String()
	}
	return ""
}

// address is the client's own, seen through the trusted proxies only.
func (c *call) address() netip.Addr {
	return access.ClientIP(c.r.RemoteAddr, c.r.Header.Values("X-Forwarded-For"), c.api.TrustedProxies)
}

// form reads the path and the body, or the query string of a method that has
// no body.
func (c *call) form() (*form, error) {
	f := &form{dev: c.api.Development, scans: c.api.scans}
	if len(c.params) > 0 {
		if err := c.path(f); err != nil {
			return nil, err
		}
	}
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodDelete {
		query, err := url.ParseQuery(c.r.URL.RawQuery)
		if err != nil { // what could be read lacks fields that were sent
			return nil, problem.Field("query", "is not a valid query string: % and ; in a value are written %25 and %3B")
		}
		f.query = query
		return f, nil
	}
	var err error
	c.api.scans.do(len(c.body), func() { f.object, err = wire.Decode(c.body, &f.fields) })
	return f, err
}

// path gives the form the parameters of the path by their names.
func (c *call) path(f *form) error {
	f.path = map[string]string{}
	names := c.route.params()
	for i, escaped := range c.params {
		text, err := url.PathUnescape(escaped)
		if err != nil || !utf8.ValidString(text) {
			return problem.Field(names[i], badUnicode)
		}
		f.path[names[i]] = text
	}
	return nil
}

// params gives the names of the parameters in the path.
func (r *Route) params() []string {
	var names []string
	for _, s := range strings.Split(r.Path, "/") {
		if name, ok := strings.CutPrefix(s, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// success begins the answer of a success: its message and its data member.
func (c *call) success(message string) *writer {
	c.out.Object("")
	c.out.Text("message", message)
	return &c.out
}
