package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
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
	RootCAs   *x509.CertPool // nil: the system's
	// Record receives each exchange, redacted, after it ended. It must not
	// block. nil: nobody listens.
	Record func(Exchange)
}

// Client is the one HTTP client of all adapters. It follows no redirects,
// keeps no cookies, replays nothing, bounds what it reads, and knows for
// certain whether a request's first byte left.
type Client struct {
	opts ClientOptions
	http *http.Client
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
	// Hide are texts that the log of exchanges must not show beside what
	// Redact finds by itself, such as a bank account in the path.
	Hide []string
	// HideAnswer keeps the whole answer out of the log: it tells who a person is.
	HideAnswer bool
}

// Answer is what came back.
type Answer struct {
	Status int // 0: no answer
	Header http.Header
	Body   []byte
	// Written reports whether any byte of the request may have left this
	// machine. False is proof that none did, and that none will.
	Written bool
	// Err says why there is no (whole) answer; nil when Status and Body are
	// what the provider sent.
	Err error
}

// Exchange is a call as the operators' log keeps it: bodies redacted and cut,
// headers never.
type Exchange struct {
	At        time.Time
	Took      time.Duration
	Provider  string
	Mode      string
	Operation string
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
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: c}, nil
		},
		TLSClientConfig:       &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: o.Timeout,
		MaxConnsPerHost:       o.MaxConns,
		MaxIdleConnsPerHost:   o.MaxConns,
		// Shorter than any gateway's own idle limit: a POST on a connection
		// that the other side is just closing would become Unknown.
		IdleConnTimeout:    20 * time.Second,
		DisableCompression: true,
		// HTTP/1.1 only: one request at a time on a connection is what makes
		// "was anything written?" a question with an answer.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	return &Client{opts: o, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do makes one exchange. It never returns an error beside the answer.
func (c *Client) Do(ctx context.Context, r Request) Answer {
	start := c.opts.Clock.Now()
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = c.opts.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := c.do(ctx, r)
	if c.opts.Record != nil {
		c.opts.Record(c.exchange(start, r, a))
	}
	return a
}

func (c *Client) do(ctx context.Context, r Request) Answer {
	var body io.Reader
	if r.Body != nil {
		// Hiding the reader's type keeps GetBody nil, so that the transport
		// has nothing to replay with.
		body = struct{ io.Reader }{bytes.NewReader(r.Body)}
	}
	w := &writeWatch{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { w.got(i.Conn) },
	})
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return Answer{Err: fmt.Errorf("build request: %w", withoutURL(err))}
	}
	if r.Body != nil {
		req.ContentLength = int64(len(r.Body))
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header.Set("User-Agent", "makola")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Answer{Written: w.written(), Err: withoutURL(err)}
	}
	defer res.Body.Close()
	a := Answer{Status: res.StatusCode, Header: res.Header, Written: true}
	a.Body, err = io.ReadAll(io.LimitReader(res.Body, c.opts.MaxAnswer+1))
	switch {
	case err != nil:
		a.Err = fmt.Errorf("read answer: %w", withoutURL(err))
	case int64(len(a.Body)) > c.opts.MaxAnswer:
		a.Body, a.Err = a.Body[:c.opts.MaxAnswer], errors.New("answer too long")
	}
	return a
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

// Undelivered gives the outcome of an answer that every adapter reads the same
// way, and false when the provider's own words decide. It is for requests that
// move money; status calls have StatusUnanswered.
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
		o.Class, o.NotSentBySocket = NotSent, true
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden, a.Status == http.StatusTooManyRequests:
		o.Class = NotSent
	case a.Err != nil, a.Status < 200, a.Status >= 300 && a.Status < 400:
		o.Class = Unknown
	default:
		return Outcome{}, false
	}
	return o, true
}

// StatusUnanswered gives the outcome of a status call that got no usable
// answer, and false when the provider answered 200: whatever became of the
// question, the payment stays Unknown.
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

// Clip cuts a provider's words to the 200 characters that Outcome.Message
// holds and drops what is not text.
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

// watchedConn knows whether anything was written since the last mark, and can
// be sealed so that nothing will be.
type watchedConn struct {
	net.Conn
	mu      sync.Mutex
	touched bool
	sealed  bool
}

var errSealed = errors.New("connection given up before its first byte")

// Write notes the attempt before the first byte can leave.
func (c *watchedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, errSealed
	}
	c.touched = true
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// writeWatch follows one request over the connections that it was given.
type writeWatch struct {
	mu    sync.Mutex
	dirty bool // an earlier connection of this request was written to
	conn  *watchedConn
}

func (w *writeWatch) got(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	wc, ok := c.(*watchedConn)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		w.dirty = w.dirty || w.conn.seal()
	}
	if !ok { // cannot happen; if it does, we prove nothing
		w.dirty = true
		return
	}
	wc.mu.Lock()
	wc.touched = false
	wc.mu.Unlock()
	w.conn = wc
}

// written gives the verdict. A connection that is found untouched is sealed
// first: the transport's writer may still be holding the request.
func (w *writeWatch) written() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil && w.conn.seal() {
		w.dirty = true
	}
	return w.dirty
}

// seal closes the door unless something was written, and reports whether it was.
func (c *watchedConn) seal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.touched {
		c.sealed = true
	}
	return c.touched
}
