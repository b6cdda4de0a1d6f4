package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/trace"
)

// ClientOptions configure a Client. Zero values select the defaults given here.
type ClientOptions struct {
	Provider string // "mtn"; goes into every Exchange
	Mode     string // "test" or "live"; goes into every Exchange
	Clock    *clock.Clock
	Timeout  time.Duration // maximum time of a complete exchange; default 30 s
	MaxConns int           // maximum connections to each host; default 64; further callers wait
	// MaxAnswer is the maximum size of a response in bytes; default 256 KB. A longer response counts as unreadable.
	MaxAnswer int64
	RootCAs   *x509.CertPool  // nil: the certificates of the system
	Proxy     *outbound.Proxy // nil: direct connections to providers
	// Record receives each exchange, redacted, after it ended. It must not block. It may be nil.
	Record func(Exchange)
}

// Client is the HTTP client of all adapters. It follows no redirects, keeps no cookies, repeats no request and limits
// the bytes that it reads. It reports with certainty whether the first byte of a request was written.
type Client struct {
	opts ClientOptions
	http *outbound.Client
}

// Request is one call to a provider.
type Request struct {
	Method    string
	URL       string
	Header    http.Header
	Body      []byte
	Operation string        // "collect", "token", ...
	Reference string        // ProviderReference of the payment; empty if the request is not about a payment
	Timeout   time.Duration // zero: the timeout of the client
	// Hide has texts that the log of exchanges must hide, such as a bank account in the path. Redact hides further
	// texts.
	Hide []string
	// HideBody keeps the request's body out of the log, because it contains a person's text.
	HideBody bool
	// Text is a person's text in the body. The log hides it wherever the response repeats it.
	Text string
	// HideAnswer keeps the whole response out of the log, because it contains personal data.
	HideAnswer bool
}

// Answer is the response to a request.
type Answer = outbound.Answer

type paymentKey struct{}

// About returns a context that carries a payment's id to the log of exchanges. The provider itself receives only the
// ProviderReference.
func About(ctx context.Context, payment string) context.Context {
	return context.WithValue(ctx, paymentKey{}, payment)
}

// Exchange is a call as it is stored in the operators' log. Bodies are redacted and cut; headers are never stored.
type Exchange struct {
	At        time.Time
	Took      time.Duration
	Provider  string
	Mode      string
	Operation string
	Payment   string // our id of the payment, if the call's context has one (About)
	Reference string
	Method    string
	URL       string
	Status    int
	Request   string
	Answer    string
	Written   bool
	Err       string
}

// recordedBytes is the maximum number of bytes of each body in an Exchange.
const recordedBytes = 4096

// NewClient returns a client for one provider.
func NewClient(o ClientOptions) *Client {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 64
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = 256 << 10
	}
	dialer := &net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}
	return &Client{opts: o, http: outbound.New(outbound.Options{
		Dial:      o.Proxy.Dial(dialer.DialContext),
		TLS:       &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		Handshake: connectTime,
		PerHost:   o.MaxConns,
		Kept:      2 * o.MaxConns, // a provider may serve name lookups on another host
		// This is shorter than the idle limit of any gateway. If a gateway closed the connection during a POST, the
		// outcome would be Unknown.
		KeptFor:   20 * time.Second,
		HeadBytes: 256 << 10,
		BodyBytes: o.MaxAnswer,
	})}
}

// connectTime is the maximum time for opening a connection. The same time limits its TLS handshake.
const connectTime = 10 * time.Second

// Close closes the idle connections.
func (c *Client) Close() { c.http.Close() }

// Do makes one exchange. Errors are part of the returned Answer.
func (c *Client) Do(ctx context.Context, r Request) Answer {
	start := c.opts.Clock.Now()
	a := c.do(ctx, r)
	if c.opts.Record != nil {
		e := c.exchange(start, r, a)
		e.Payment, _ = ctx.Value(paymentKey{}).(string)
		c.opts.Record(e)
	}
	return a
}

func (c *Client) do(ctx context.Context, r Request) Answer {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return Answer{Err: fmt.Errorf("build request: %w", withoutURL(err))}
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header.Set("User-Agent", "makola")
	}
	if parent := trace.From(ctx); parent != "" {
		req.Header.Set(trace.Header, parent)
	}
	return c.http.Do(req, cmp.Or(max(r.Timeout, 0), c.opts.Timeout))
}

// withoutURL removes the URL that net/http adds to its errors, because it may contain a phone number.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (c *Client) exchange(start time.Time, r Request, a Answer) Exchange {
	e := Exchange{
		At: start, Took: c.opts.Clock.Now().Sub(start),
		Provider: c.opts.Provider, Mode: c.opts.Mode,
		Operation: r.Operation, Reference: r.Reference,
		Method: r.Method, URL: Redact(hide(r.URL, r.Hide)), Status: a.Status,
		Request: Redact(hide(cut(r.Body), r.Hide)), Answer: Redact(hide(cut(a.Body), r.Hide)),
		Written: a.Written,
	}
	if r.Text != "" {
		e.Answer = Redact(hide(cut(without(a.Body, r.Text)), r.Hide))
	}
	if r.HideBody && e.Request != "" {
		e.Request = "***"
	}
	if r.HideAnswer && e.Answer != "" {
		e.Answer = "***"
	}
	if a.Err != nil {
		e.Err = a.Err.Error()
	}
	return e
}

// hide replaces all characters of each text except the last four.
func hide(s string, texts []string) string {
	for _, t := range texts {
		if len(t) > 4 {
			s = strings.ReplaceAll(s, t, "***"+t[len(t)-4:])
		}
	}
	return s
}

// without returns a body in which a text is hidden, as it is and as it stands in JSON.
func without(body []byte, text string) []byte {
	written, _ := json.Marshal(text) // a text can always be marshalled
	for _, form := range [][]byte{[]byte(text), written[1 : len(written)-1]} {
		body = bytes.ReplaceAll(body, form, []byte(hidden))
	}
	return body
}

func cut(b []byte) string {
	if len(b) > recordedBytes {
		b = b[:recordedBytes]
	}
	return string(b)
}

// Undelivered returns the outcome of a response that all adapters read the same way. If ok is false, the provider's
// own codes decide. It is for requests that move money; status queries use StatusUnanswered.
func Undelivered(a Answer) (Outcome, bool) {
	o := Outcome{Reason: ReasonUnavailable, RetryAfter: retryAfter(a)}
	if a.Err != nil {
		o.Message = Clip(a.Err.Error())
	}
	if a.Status != 0 {
		o.Code = strconv.Itoa(a.Status)
	}
	switch {
	case !a.Written:
		o.Class = NotSent
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden, a.Status == http.StatusTooManyRequests:
		o.Class = Barred
	case a.Err != nil, a.Status < 200, a.Status >= 300 && a.Status < 400:
		o.Class = Unknown
	default:
		return Outcome{}, false
	}
	return o, true
}

// StatusUnanswered returns the outcome of a status query without a usable response. ok is false if the provider
// answered 200. The outcome is always Unknown, because a failed query proves nothing about the payment.
func StatusUnanswered(a Answer) (Outcome, bool) {
	if a.Err == nil && a.Status == http.StatusOK {
		return Outcome{}, false
	}
	o := Outcome{Class: Unknown, Reason: ReasonUnavailable, RetryAfter: retryAfter(a)}
	if a.Err != nil {
		o.Message = Clip(a.Err.Error())
	}
	if a.Status != 0 {
		o.Code = strconv.Itoa(a.Status)
	}
	return o, true
}

// Unreadable returns the outcome of a complete response that we cannot interpret.
func Unreadable(a Answer, why string) Outcome {
	return Outcome{Class: Unknown, Reason: ReasonUnknown, Code: strconv.Itoa(a.Status), Message: Clip(why)}
}

// Clip shortens a provider's text to the 200 characters of Outcome.Message and replaces characters that cannot be
// shown.
func Clip(s string) string {
	out := make([]rune, 0, min(len(s), 200))
	for _, r := range s {
		if len(out) == 200 {
			break
		}
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

// retryAfter reads a Retry-After in seconds. It ignores dates, because the provider's clock may differ from ours.
func retryAfter(a Answer) time.Duration {
	n, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, time.Hour)
}
