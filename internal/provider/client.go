package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

// ClientOptions shapes a Client. Zero values take the defaults named here.
type ClientOptions struct {
	Provider string // "mtn"; goes into every Exchange
	Mode     string // "test" or "live"; goes into every Exchange
	Clock    *clock.Clock
	Timeout  time.Duration // a whole exchange; default 30 s
	MaxConns int           // for each host; default 64; more callers wait
	// MaxAnswer bounds an answer in bytes; default 256 KB. A longer answer
	// is an unreadable one.
	MaxAnswer int64
	RootCAs   *x509.CertPool  // nil: the system's
	Proxy     *outbound.Proxy // nil: providers are dialled directly
	// Record receives each exchange, redacted, after it ended. It must not
	// block. nil: there is no observer.
	Record func(Exchange)
}

// Client is the one HTTP client of all adapters. It follows no redirects, keeps no cookies, replays nothing and
// bounds the bytes that it reads. It knows for certain whether a request's first byte left.
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
	Reference string        // the ProviderReference, if it is about one
	Timeout   time.Duration // zero: the client's
	// Hide are texts that the log of exchanges must hide in addition to those that Redact finds, such as a bank
	// account in the path.
	Hide []string
	// HideBody keeps the request's body out of the log, because it contains a person's text.
	HideBody bool
	// HideAnswer keeps the whole response out of the log, because it contains personal data.
	HideAnswer bool
}

// Answer is what came back.
type Answer = outbound.Answer

type paymentKey struct{}

// About sets the payment of the exchanges made with the context, only for the log: providers know it by its
// ProviderReference.
func About(ctx context.Context, payment string) context.Context {
	return context.WithValue(ctx, paymentKey{}, payment)
}

// Exchange is a call as the operators' log keeps it: bodies redacted and cut,
// headers never.
type Exchange struct {
	At        time.Time
	Took      time.Duration
	Provider  string
	Mode      string
	Operation string
	Payment   string // our id, if it is about one and its caller set it (About)
	Reference string
	Method    string
	URL       string
	Status    int
	Request   string
	Answer    string
	Written   bool
	Err       string
}

// recordedBytes is how much of each body an Exchange keeps.
const recordedBytes = 4096

// NewClient makes a client for one provider.
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
		Kept:      2 * o.MaxConns, // a provider has its interface and its name look-ups on different hosts
		// Shorter than any gateway's own idle limit: a POST on a connection
		// that the other side is just closing would become Unknown.
		KeptFor:   20 * time.Second,
		HeadBytes: 256 << 10,
		BodyBytes: o.MaxAnswer,
	})}
}

// connectTime bounds the opening of a connection, and again that of its TLS.
const connectTime = 10 * time.Second

// Close drops the idle connections.
func (c *Client) Close() { c.http.Close() }

// Do makes one exchange. Its errors are part of the returned answer.
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

// withoutURL drops the URL that net/http puts into its errors: it can hold a
// phone number.
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

// hide leaves the last four characters of each text to be hidden.
func hide(s string, texts []string) string {
	for _, t := range texts {
		if len(t) > 4 {
			s = strings.ReplaceAll(s, t, "***"+t[len(t)-4:])
		}
	}
	return s
}

func cut(b []byte) string {
	if len(b) > recordedBytes {
		b = b[:recordedBytes]
	}
	return string(b)
}

// Undelivered returns the outcome of a response that every adapter reads the same way. ok is false if the provider's
// own codes decide. It is for requests that move money; status queries have StatusUnanswered.
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
// answered 200. The payment stays Unknown, whatever happened to the query.
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

// Unreadable is the outcome of an answer that arrived whole and means nothing
// to us.
func Unreadable(a Answer, why string) Outcome {
	return Outcome{Class: Unknown, Reason: ReasonUnknown, Code: strconv.Itoa(a.Status), Message: Clip(why)}
}

// Clip cuts a provider's text to the 200 characters of Outcome.Message and drops everything that is not text.
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

// retryAfter reads a Retry-After in seconds; dates are not worth a clock race.
func retryAfter(a Answer) time.Duration {
	n, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, time.Hour)
}
