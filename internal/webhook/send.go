package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/trace"
)

const (
	answerBytes = 4 << 10     // bytes of an error response that are stored
	drainTime   = time.Second // for reading the rest of a response whose status is known
	idleTime    = 4 * time.Second
	userAgent   = "Makola-Webhooks/1"
)

// client makes the HTTP requests.
type client struct {
	secure, plain *outbound.Client
	timeout       time.Duration
}

func newClient(o Options) *client {
	return &client{
		secure:  newOutbound(o, newControl(o.Development, false)),
		plain:   newOutbound(o, newControl(o.Development, true)),
		timeout: o.Timeout,
	}
}

func newOutbound(o Options, c control) *outbound.Client {
	dialer := &net.Dialer{Timeout: o.Timeout * 2 / 3, Control: c.dial}
	way := tunnels{check: c, proxy: o.Proxy, direct: dialer.DialContext, lookup: net.DefaultResolver.LookupNetIP}
	return outbound.New(outbound.Options{
		Dial:      way.dial,
		TLS:       &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		Handshake: o.Timeout * 2 / 3,
		PerHost:   maxPerHost,
		Kept:      1024,
		KeptFor:   idleTime, // shorter than servers usually keep connections, so that a closing server does not look like a refusal
		HeadBytes: 64 << 10,
		BodyBytes: answerBytes,
		BodyTime:  drainTime,
	})
}

// answer is a receiver's response.
type answer struct {
	status int // 0: no response
	body   string
	after  time.Duration // Retry-After
	err    error         // why there is no status, for our log
	why    string        // the same for the customer, without details
	took   time.Duration
}

// ok reports whether the response counts as a delivery.
func (a answer) ok() bool { return a.status >= 200 && a.status <= 299 }

// text returns one line that explains why the response is not a delivery.
func (a answer) text() string {
	switch {
	case a.ok():
		return ""
	case a.err != nil:
		return a.why
	case a.status >= 300 && a.status <= 399:
		return fmt.Sprintf("answered %d: redirects are not followed", a.status)
	}
	return fmt.Sprintf("answered %d", a.status)
}

// send makes one attempt. at is part of the signature. It is the machine's time, because the receiver compares it
// with its own.
func (c *client) send(ctx context.Context, e *event, keys [][]byte, development bool, at time.Time) (a answer) {
	begun := time.Now()
	defer func() { a.took = time.Since(begun) }()
	to, text := parseURL(e.url, development)
	if text != "" {
		text = "the address " + text
		return answer{err: errors.New(text), why: text}
	}
	out := c.secure
	if to.Scheme == "http" {
		out = c.plain
	}
	// Do returns when the status is known. The rest of the response is read for a moment, so that the connection can
	// be used again. It does not occupy a worker.
	got := out.Do(request(ctx, e, keys, to, at), c.timeout)
	if got.Status == 0 {
		return answer{err: got.Err, why: why(got, c.timeout)}
	}
	a.status = got.Status
	a.after = retryAfter(got.Header.Get("Retry-After"), at)
	if !a.ok() {
		a.body = clip(string(got.Body), answerBytes)
	}
	return a
}

const (
	// notFound is one text for three kinds of names: unknown ones, names in our own network, and names that our resolver cannot
	// resolve. With different texts a customer could find the names of our network.
	notFound = "the host was not found, or has no public address"
	noMore   = "the connection failed"
)

// why returns the reason for a missing response for the customer. It contains no address and no error of ours,
// because they would reveal the structure of our network.
func why(a outbound.Answer, timeout time.Duration) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var network net.Error
	is := func(target error) bool { return errors.Is(a.Err, target) }
	switch {
	case is(outbound.ErrProxy):
		return noMore
	case is(outbound.ErrTimeout) && a.Written:
		return fmt.Sprintf("no answer within %g s", timeout.Seconds())
	case is(outbound.ErrTimeout):
		return "no answer in time"
	case is(errNotPublic), errors.As(a.Err, &name):
		return notFound
	case is(syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.As(a.Err, &certificate):
		return "the certificate is not valid"
	case errors.As(a.Err, &plain):
		return "the host does not use TLS"
	case is(outbound.ErrClosed), is(io.EOF), is(syscall.ECONNRESET), is(syscall.EPIPE):
		return "the connection was closed without an answer"
	case a.Written && !errors.As(a.Err, &network):
		return "the answer is not HTTP, or its header is too long"
	}
	return noMore
}

// ours reports whether a text was made by why or send.
func ours(text string) bool {
	return strings.HasPrefix(text, "the ") || strings.HasPrefix(text, "no answer ")
}

// plainly returns the stored error of an attempt for people. It replaces the dialer's texts, which earlier
// versions stored.
func plainly(status int, text string) string {
	if status == 0 && text != "" && !ours(text) {
		return noMore
	}
	return text
}

func request(ctx context.Context, e *event, keys [][]byte, to *url.URL, at time.Time) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host,
		Header: http.Header{
			"Content-Type":      {"application/json"},
			"Accept":            {"application/json"},
			"User-Agent":        {userAgent},
			"Webhook-Id":        {e.id},
			"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
			"Webhook-Signature": {sign(keys, e.id, at, e.body)},
		},
		Body: io.NopCloser(bytes.NewReader(e.body)), ContentLength: int64(len(e.body)),
	}
	if e.trace != "" {
		r.Header.Set(trace.Header, e.trace)
	}
	return r.WithContext(ctx)
}

// retryAfter parses a Retry-After header. It returns at most a day.
func retryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	var wait time.Duration
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), 24*time.Hour)
}

// clip returns a foreign text in a form that can be stored.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// hostPart returns the host and port of an address, as the key of its receiver. All spellings of a host give the same
// key.
func hostPart(raw string) string {
	if encoded, err := outbound.EncodeURL(raw); err == nil {
		raw = encoded
	}
	_, rest, _ := strings.Cut(raw, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return strings.ToLower(rest)
}
