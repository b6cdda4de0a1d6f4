package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

const (
	prefix = "/api/v1/"
	// AnswerWithin is the maximum time of a request after its body was read. A request other than GET continues even
	// if its client disconnects, so that its result is recorded. A request with large lists has ListWithin.
	AnswerWithin = 9 * time.Second
	ListWithin   = 60 * time.Second
)

// within restarts the call's deadline with the duration d.
func (c *call) within(d time.Duration) {
	c.cancel()
	c.ctx, c.cancel = context.WithTimeout(c.whole, d)
}

// MarkKnown ends the connection's limits for unknown clients, because the client has a valid key or session.
func MarkKnown(w http.ResponseWriter) {
	if limited, is := w.(interface{ Known() }); is {
		limited.Known()
	}
}

// RequestID returns the client's request id if it has a safe form, and otherwise a new id.
func RequestID(r *http.Request) string {
	given := r.Header.Get("X-Request-Id")
	if len(given) >= 8 && len(given) <= 64 && wordy(given) {
		return given
	}
	var b [12]byte
	rand.Read(b[:])
	return "req_" + hex.EncodeToString(b[:])
}

// key returns the API key of the request. If the request has two different keys, key returns none: a proxy may have
// checked one of them, and Makola would use the other.
func (c *call) key() string {
	key, one := c.once("X-Api-Key")
	if !one {
		return ""
	}
	return key
}

// once returns the value of a request header. one is false if the header has different values.
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

// origin returns the client's address as text, or "" if it is unknown.
func (c *call) origin() string {
	if from := c.address(); from.IsValid() {
		return from.String()
	}
	return ""
}

// address returns the client's own address. It trusts only the configured proxies.
func (c *call) address() netip.Addr {
	return access.ClientIP(c.r.RemoteAddr, c.r.Header.Values("X-Forwarded-For"), c.api.TrustedProxies)
}

// form reads the path and the body. For GET and DELETE it reads the query string instead of the body.
func (c *call) form() (*form, error) {
	f := &form{dev: c.api.Development, scans: c.api.scans}
	if len(c.params) > 0 {
		if err := c.path(f); err != nil {
			return nil, err
		}
	}
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodDelete {
		query, err := url.ParseQuery(c.r.URL.RawQuery)
		if err != nil { // the parsed part may lack fields that the client sent
			return nil, problem.Field("query", "is not a valid query string: % and ; in a value are written %25 and %3B")
		}
		f.query = query
		return f, nil
	}
	var err error
	c.api.scans.do(len(c.body), func() { f.object, err = wire.Decode(c.body, &f.fields) })
	return f, err
}

// path adds the parameters of the path to the form.
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

// success begins the response of a success. It writes the message; the data member follows.
func (c *call) success(message string) *writer {
	c.out.Object("")
	c.out.Text("message", message)
	return &c.out
}

// fetched begins the response of a status query. Some clients treat a payment as failed if the message mentions a
// failure. So only the message of a failed payment gives a reason.
func (c *call) fetched(p book.Payment) *writer {
	message := statusFetched
	if polled(p) == string(book.StatusFailed) {
		message = provider.Sentence(cmp.Or(p.Reason, provider.ReasonUnknown))
	}
	return c.success(message)
}
