package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Proxy opens tunnels through an egress proxy by CONNECT. A tunnel is used like any other connection. If it cannot be
// opened, no byte of the request left this machine, because CONNECT contains none. A nil Proxy connects directly.
type Proxy struct {
	address       string      // host:port
	secure        *tls.Config // nil: plain TCP to the proxy
	authorization string      // Proxy-Authorization header of each CONNECT; empty: none
	secrets       []string    // texts that are never logged, even if the proxy repeats them
	route         func(*url.URL) (*url.URL, error)
	dialer        net.Dialer
	log           *slog.Logger
}

const (
	tunnelTime      = 10 * time.Second // maximum time for opening a tunnel
	tunnelHead      = 16 << 10         // maximum bytes of the head of the proxy's response
	tunnelTextBytes = 200              // maximum bytes of the proxy's text
)

// ErrProxy is returned if the egress proxy opened no tunnel. Customers may see its text, so it contains neither an
// address nor a text of the proxy.
var ErrProxy = errors.New("egress proxy opened no tunnel")

// ErrProxyURL is returned by NewProxy for a text that is not the URL of a proxy. It does not contain the text, which
// may have a password.
var ErrProxyURL = errors.New("no URL of a proxy")

// NewProxy returns the proxy at raw, which is http://[user:password@]host:port or the same with https. For an empty
// raw it returns nil. Connections to loopback addresses, and to addresses that match an exception, are direct. log
// receives the reasons for failed tunnels.
func NewProxy(raw string, exceptions []string, log *slog.Logger) (*Proxy, error) {
	for _, entry := range exceptions {
		if !CheckException(entry) {
			return nil, errors.New("no host, suffix or network: " + strconv.Quote(entry))
		}
	}
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.Opaque != "" || strings.ContainsAny(raw, "?#") || !isPort(u.Port()) {
		return nil, ErrProxyURL
	}
	p := &Proxy{dialer: net.Dialer{KeepAlive: 30 * time.Second}, log: log}
	if p.address, err = addressOf(u); err != nil {
		return nil, ErrProxyURL
	}
	if u.Scheme == "https" {
		name, _, _ := net.SplitHostPort(p.address)
		p.secure = &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	}
	if user := u.User.Username(); u.User != nil {
		if user == "" || strings.Contains(user, ":") { // Basic authentication splits at the first colon
			return nil, ErrProxyURL
		}
		password, _ := u.User.Password()
		pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		p.authorization = "Basic " + pair
		p.secrets = []string{pair, password}
	}
	p.route = (&httpproxy.Config{HTTPSProxy: "http://" + p.address, NoProxy: strings.Join(exceptions, ",")}).ProxyFunc()
	return p, nil
}

// CheckException reports whether an entry of NO_PROXY is valid. It may be a host with its subdomains, only subdomains
// (.example.com or *.example.com), an IP address, or a network in CIDR notation. All except networks may have a port.
func CheckException(entry string) bool {
	entry = strings.TrimSpace(entry)
	if _, err := netip.ParsePrefix(entry); err == nil {
		return true
	}
	host := entry
	if name, port, err := net.SplitHostPort(entry); err == nil {
		if !isPort(port) {
			return false
		}
		host = name
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == ""
	}
	host = strings.TrimPrefix(strings.TrimPrefix(host, "*."), ".")
	name, err := hostNames.ToASCII(host)
	last := name[strings.LastIndexByte(name, '.')+1:]
	return err == nil && strings.Trim(last, "0123456789") != "" // 10.0.0 and 10.0.0.256 are not host names
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Address returns the host and port of the proxy.
func (p *Proxy) Address() string { return p.address }

// Through reports whether connections to address go through the proxy. address is host:port. Connections to loopback
// never do.
func (p *Proxy) Through(address string) bool {
	if p == nil {
		return false
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return false
	}
	via, err := p.route(&url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)})
	return err != nil || via != nil
}

// Dial returns a function that opens tunnels. For addresses that do not go through the proxy it calls direct.
func (p *Proxy) Dial(direct Dial) Dial {
	if p == nil {
		return direct
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if !p.Through(address) {
			return direct(ctx, network, address)
		}
		return p.Tunnel(ctx, address)
	}
}

// Tunnel opens a tunnel to address, which is host:port. Its error is ErrProxy; the proxy's own text is logged.
func (p *Proxy) Tunnel(ctx context.Context, address string) (net.Conn, error) {
	within, cancel := context.WithTimeout(ctx, tunnelTime)
	defer cancel()
	conn, err := p.Reach(within)
	if err == nil {
		if err = p.connect(within, conn, address); err == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // otherwise the caller gave up, which is not the proxy's fault
		p.report(ctx, address, err)
	}
	return nil, err
}

// Reach opens a connection to the proxy, with TLS if its URL is https. It sends no request.
func (p *Proxy) Reach(ctx context.Context) (net.Conn, error) {
	socket, err := p.dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, &tunnelError{reason: "no connection to the proxy", cause: err}
	}
	if p.secure == nil {
		return socket, nil
	}
	t := tls.Client(socket, p.secure)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, &tunnelError{reason: "no TLS with the proxy", cause: err}
	}
	return t, nil
}

// connect requests a tunnel to address over conn. It clears the deadline of conn.
func (p *Proxy) connect(ctx context.Context, conn net.Conn, address string) error {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {"makola"}}}
	if p.authorization != "" {
		request.Header.Set("Proxy-Authorization", p.authorization)
	}
	var message bytes.Buffer
	if err := request.Write(&message); err != nil {
		return &tunnelError{reason: "the address is not valid", cause: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(longAgo) })
	defer stop()
	if _, err := conn.Write(message.Bytes()); err != nil {
		return &tunnelError{reason: "the connection to the proxy failed", cause: err}
	}
	k := newConn(conn)
	// The body is not closed, because closing it would read the tunnel to its end.
	response, err := k.head(request, tunnelHead)
	switch {
	case err != nil:
		return &tunnelError{reason: "no answer from the proxy", cause: err}
	case response.StatusCode < 200 || response.StatusCode > 299:
		h := response.Header
		return &tunnelError{reason: "the proxy answered " + strconv.Itoa(response.StatusCode),
			cause: errors.New(response.Status), detail: cmp.Or(h.Get("Proxy-Status"), h.Get("X-Squid-Error"))}
	case k.in.Buffered() > 0: // nothing was sent inside the tunnel yet
		return &tunnelError{reason: "the proxy sent data after its answer", cause: ErrTooLong}
	case !stop():
		return &tunnelError{reason: "no answer from the proxy", cause: context.Cause(ctx)}
	}
	return nil
}

// report logs the reason for a failed tunnel.
func (p *Proxy) report(ctx context.Context, address string, err error) {
	p.log.WarnContext(ctx, ErrProxy.Error(), "proxy", p.address, "to", address, "error", p.Explain(err))
}

// Explain returns an error of the proxy with its cause and the proxy's own text, for operators only. The text is cut.
// It contains no credentials, even if the proxy repeats them.
func (p *Proxy) Explain(err error) string {
	var t *tunnelError
	if p == nil || !errors.As(err, &t) {
		return err.Error()
	}
	text := t.cause.Error()
	if t.detail != "" {
		text += " (" + t.detail + ")"
	}
	for _, secret := range p.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return t.reason + ": " + strings.ToValidUTF8(text[:min(len(text), tunnelTextBytes)], "?")
}

// tunnelError is the error of a failed tunnel. errors.Is matches only ErrProxy. Otherwise callers would take a cause
// such as a refused connection for the receiver's.
type tunnelError struct {
	reason string // our text
	cause  error  // may contain the proxy's text and address
	detail string // the proxy's text
}

func (e *tunnelError) Error() string { return ErrProxy.Error() + ": " + e.reason }

func (e *tunnelError) Unwrap() error { return ErrProxy }

// bottom returns the TCP connection under the TLS of a proxy, or c itself.
func bottom(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}
