package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/trace"
)

const (
	keptBuffer = 64 << 10    // maximum bytes of a buffer that is used again
	slowBody   = time.Second // if reading the body took longer, the deadline starts again
)

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
	c.whole = trace.With(c.whole, trace.Parent(r.Header[trace.Header]))
	c.ctx, c.cancel = context.WithTimeout(c.whole, AnswerWithin)
	return c
}

// finish sends the response and returns the call to the pool. After a panic it sends an error.
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
	if h["Cache-Control"] == nil {
		h["Cache-Control"] = []string{"no-store"}
	}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["X-Request-Id"] = []string{c.id}
	c.w.WriteHeader(c.status)
	_, _ = c.w.Write(text) // the client may have disconnected
	c.release()
	c.note()
	if cap(c.out.Bytes()) <= keptBuffer && cap(c.body) <= keptBuffer {
		c.api.calls.Put(c)
	}
}

// turnedAway lists the codes of deliberate refusals, such as for a paused provider or an open breaker. The
// cause of such a refusal is logged once where it occurs, not for each request.
var turnedAway = []string{"server_busy", "storage_low", "recovering", "clock_wrong", "provider_unavailable", "not_served", "sms_unavailable", "name_service_unavailable", "offers_unavailable"}

// note logs and counts the request. Our own failures are logged as errors with their cause. Other requests are logged
// at debug level.
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
		c.api.Observe(Seen{Route: c.where, Method: SeenMethod(c.r.Method), RequestID: c.id, Trace: trace.From(c.whole), Tenant: c.caller.Tenant, Status: c.status, Bytes: len(c.out.Bytes()), Took: took})
	}
	if c.status >= 400 && c.status != StatusLeft && c.failure != nil && c.interfaced && c.api.Refused != nil {
		c.api.Refused(c.refusedRequest(took))
	}
}

// refusedRequest returns the request for the log of refused requests.
func (c *call) refusedRequest(took time.Duration) requestlog.Request {
	message, fields := c.blamed(c.failure)
	return requestlog.Request{RequestID: c.id, Tenant: c.caller.Tenant, At: c.begun, Took: took, Method: SeenMethod(c.r.Method), Endpoint: c.where,
		Status: c.status, Code: c.failure.Code, Message: message, Fields: fields, Key: c.caller.KeyID, Origin: c.origin()}
}

// SeenMethod returns a method for the metrics. It returns "other" for an unknown method, because a client may send
// any text.
func SeenMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// HostNotServed is the message for a host that a development server does not serve.
const HostNotServed = "A development server answers to localhost and to the host of its public URL. Use http://localhost with its port, or set MAKOLA_PUBLIC_URL to the address that you use and restart"

// run serves a request or returns its error.
func (c *call) run() error {
	path := c.r.URL.EscapedPath()
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if c.api.ProxiesOnly && !access.FromProxy(c.r.RemoteAddr, c.api.TrustedProxies) {
		return problem.New(problem.Forbidden, "not_encrypted", "Use https to reach this service, through its proxy")
	}
	if c.api.Hosts != nil && !c.api.Hosts(c.r.Host) {
		return problem.New(problem.Forbidden, "host_not_served", HostNotServed)
	}
	if c.preflight() {
		return nil
	}
	if rest, ok := strings.CutPrefix(path, prefix); ok {
		if strings.HasSuffix(c.r.URL.EscapedPath(), "/") && c.api.lacksID(c.r.Method, rest) {
			rest += "/"
		}
		return c.interfaces(rest)
	}
	if rest, ok := strings.CutPrefix(path, "/callbacks/"); ok {
		c.where = "callbacks"
		return c.callback(rest)
	}
	return c.page(path)
}

// interfaces serves requests under /api/v1. The order of its checks is part of the interface: size, key, path and
// method, rate, permission, then the body.
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
		if c.r.ContentLength != 0 && c.r.ProtoMajor == 1 { // in HTTP/2 this ends only a stream, not the connection
			c.header("Connection", "close") // the body stays unread
		}
		return err
	}
	MarkKnown(c.w)
	if e == nil {
		return noEndpoint()
	}
	if r == nil {
		return c.wrongMethod(e.allow())
	}
	if c.r.ContentLength < 0 { // the check of the size below needs the whole body
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

// ServeHTTP serves one request. Every response is JSON, even after a panic.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := a.begin(w, r)
	defer c.finish()
	if err := c.run(); err != nil {
		c.refuse(err)
	}
}
