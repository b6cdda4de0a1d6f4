package outbound

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/clocktest"
)

// connector is a small CONNECT proxy. answer replies to each CONNECT and may replace the tunnel.
type connector struct {
	listener net.Listener
	answer   func(conn net.Conn, r *http.Request) (tunnel bool)

	mu    sync.Mutex
	asked []*http.Request
	open  []net.Conn
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// establish answers as a usual proxy does.
func establish(conn net.Conn, _ *http.Request) bool {
	_, err := io.WriteString(conn, established)
	return err == nil
}

func newConnector(t *testing.T, secure *tls.Config, answer func(net.Conn, *http.Request) bool) *connector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	c := &connector{listener: l, answer: answer}
	t.Cleanup(func() { l.Close(); c.cut() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *connector) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.asked = append(c.asked, r)
	c.open = append(c.open, conn)
	c.mu.Unlock()
	if !c.answer(conn, r) {
		return
	}
	// In tests every name leads to loopback.
	_, port, _ := net.SplitHostPort(r.Host)
	target, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return
	}
	defer target.Close()
	go func() {
		defer conn.Close()
		defer target.Close()
		io.Copy(conn, target)
	}()
	io.Copy(target, in)
}

// cut breaks every tunnel.
func (c *connector) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
}

// connects returns the targets of the CONNECTs so far.
func (c *connector) connects() (targets []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.asked {
		targets = append(targets, r.Method+" "+r.RequestURI+" "+r.Host)
	}
	return targets
}

func (c *connector) url() string { return "http://" + c.listener.Addr().String() }

func newProxy(t *testing.T, raw string, log io.Writer, exceptions ...string) *Proxy {
	t.Helper()
	p, err := NewProxy(raw, exceptions, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// through makes a client use a proxy and trust a server under the name shop.example.
func through(p *Proxy, server *httptest.Server) func(*Options) {
	return func(o *Options) {
		o.Dial = p.Dial(o.Dial)
		if server.Certificate() != nil {
			o.TLS.RootCAs = x509.NewCertPool()
			o.TLS.RootCAs.AddCert(server.Certificate())
		}
	}
}

// example returns a server's URL under a name that only the proxy resolves.
func example(server *httptest.Server) string {
	u, _ := url.Parse(server.URL)
	return u.Scheme + "://example.com:" + u.Port() + "/"
}

// A request goes through a tunnel to the name, with TLS inside. Later requests use the same tunnel.
func TestProxy_tunnelsAreKept(t *testing.T) {
	for name, serve := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/proxy with TLS %v", name, secure), func(t *testing.T) {
				server := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					name := "no TLS"
					if r.TLS != nil {
						name = r.TLS.ServerName
					}
					fmt.Fprint(w, r.Host, " ", name, r.Header["Proxy-Authorization"])
				}))
				defer server.Close()
				keys := httptest.NewTLSServer(nil)
				defer keys.Close()
				var config *tls.Config
				if secure {
					config = &tls.Config{Certificates: keys.TLS.Certificates}
				}
				proxy := newConnector(t, config, establish)
				raw := "http://ama:p%40ss@" + proxy.listener.Addr().String()
				if secure {
					raw = strings.Replace(raw, "http:", "https:", 1)
				}
				p := newProxy(t, raw, io.Discard)
				if secure {
					p.secure.RootCAs = x509.NewCertPool()
					p.secure.RootCAs.AddCert(keys.Certificate())
				}
				client, direct := newClient(t, through(p, server))
				address := example(server)
				for range 3 {
					a := client.Do(post(t, t.Context(), address), patience)
					host := strings.Trim(strings.TrimPrefix(address, name+"://"), "/")
					want := host + " example.com[]"
					if name == "http" {
						want = host + " no TLS[]"
					}
					if a.Err != nil || a.Status != 200 || string(a.Body) != want {
						t.Fatalf("%+v, %s, want %s", a, a.Body, want)
					}
				}
				u, _ := url.Parse(address)
				if got := proxy.connects(); len(got) != 1 || got[0] != "CONNECT "+u.Host+" "+u.Host || direct.Load() != 0 {
					t.Errorf("%q, %d direct", got, direct.Load())
				}
				given := proxy.asked[0].Header.Get("Proxy-Authorization")
				if given != "Basic "+base64.StdEncoding.EncodeToString([]byte("ama:p@ss")) {
					t.Errorf("the proxy is given %q", given)
				}
			})
		}
	}
}

// If the connection breaks at any point before the tunnel is open, no byte of the request was sent, although CONNECT
// was.
func TestProxy_failureSendsNoByte(t *testing.T) {
	var served atomic.Int64
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })
	server, plain := httptest.NewUnstartedServer(handler), httptest.NewServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	defer server.Close()
	defer plain.Close()
	says := func(text string) func(net.Conn, *http.Request) bool {
		return func(conn net.Conn, _ *http.Request) bool { io.WriteString(conn, text); return false }
	}
	silent := func(conn net.Conn, _ *http.Request) bool { io.Copy(io.Discard, conn); return false }
	secure, clear := example(server), example(plain)
	for name, c := range map[string]struct {
		answer  func(net.Conn, *http.Request) bool
		address string
		reason  string // text in the error; empty: the error does not blame the proxy
	}{
		"closed before its answer": {says(""), secure, "no answer from the proxy"},
		"closed in its answer":     {says("HTTP/1.1 200 Conn"), secure, "no answer from the proxy"},
		"closed in its headers":    {says("HTTP/1.1 200 OK\r\nVia: x\r\n"), secure, "no answer from the proxy"},
		"407":                      {says("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n"), secure, "the proxy answered 407"},
		"403":                      {says("HTTP/1.1 403 ACL\r\nContent-Length: 2\r\n\r\nno"), secure, "the proxy answered 403"},
		"502":                      {says("HTTP/1.0 502 Bad Gateway\r\n\r\n"), secure, "the proxy answered 502"},
		"a redirect":               {says("HTTP/1.1 302 Found\r\nLocation: https://example.com/\r\n\r\n"), secure, "the proxy answered 302"},
		"another protocol":         {says("HTTP/1.1 101 Switching Protocols\r\n\r\n"), secure, "the proxy answered 101"},
		"not HTTP":                 {says("SSH-2.0-OpenSSH_9.2\r\n\r\n"), secure, "no answer from the proxy"},
		"too long a head":          {says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*tunnelHead) + "\r\n\r\n"), secure, "no answer from the proxy"},
		"notices without an end":   {says(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9)), secure, "no answer from the proxy"},
		"more than its answer":     {says(established + accepted), secure, "the proxy sent data after its answer"},
		"more, in plain HTTP":      {says(established + accepted), clear, "the proxy sent data after its answer"},
		"closed before TLS":        {says(established), secure, ""},
		"no TLS behind it":         {establish, strings.Replace(clear, "http:", "https:", 1), ""},
		"an unknown certificate":   {establish, secure, ""},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := newConnector(t, nil, c.answer)
			client, _ := newClient(t, func(o *Options) { o.Dial = newProxy(t, proxy.url(), io.Discard).Dial(o.Dial) })
			if name != "an unknown certificate" {
				through(nil, server)(&client.opts)
			}
			a := client.Do(post(t, t.Context(), c.address), patience)
			if a.Written || a.Status != 0 || a.Err == nil || errors.Is(a.Err, ErrProxy) != (c.reason != "") || !strings.Contains(a.Err.Error(), c.reason) {
				t.Errorf("%+v", a)
			}
			if len(proxy.connects()) != 1 || served.Load() != 0 {
				t.Errorf("%v, and the server got %d requests", proxy.connects(), served.Load())
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		proxy := newConnector(t, nil, silent)
		client, _ := newClient(t, func(o *Options) { o.Dial = newProxy(t, proxy.url(), io.Discard).Dial(o.Dial) })
		if a := client.Do(post(t, t.Context(), example(server)), 50*time.Millisecond); a.Written || !errors.Is(a.Err, ErrTimeout) {
			t.Errorf("%+v", a)
		}
		why := errors.New("we stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			clocktest.Await(t, "CONNECT", func() bool { return len(proxy.connects()) == 2 })
			cancel(why)
		}()
		if a := client.Do(post(t, ctx, example(server)), patience); a.Written || !errors.Is(a.Err, why) {
			t.Errorf("given up: %+v", a)
		}
	})
	t.Run("down", func(t *testing.T) {
		proxy := newConnector(t, nil, establish)
		proxy.listener.Close()
		client, _ := newClient(t, func(o *Options) { o.Dial = newProxy(t, proxy.url(), io.Discard).Dial(o.Dial) })
		if a := client.Do(post(t, t.Context(), example(server)), patience); a.Written || !errors.Is(a.Err, ErrProxy) {
			t.Errorf("%+v", a)
		}
	})
	t.Run("no TLS with the proxy", func(t *testing.T) {
		proxy := newConnector(t, nil, establish)
		p := newProxy(t, strings.Replace(proxy.url(), "http:", "https:", 1), io.Discard)
		client, _ := newClient(t, func(o *Options) { o.Dial = p.Dial(o.Dial) })
		if a := client.Do(post(t, t.Context(), example(server)), patience); a.Written || !errors.Is(a.Err, ErrProxy) || !strings.Contains(a.Err.Error(), "no TLS with the proxy") {
			t.Errorf("%+v", a)
		}
	})
}

// If a tunnel breaks after the request was written into it, the outcome is unknown.
func TestProxy_brokenTunnelIsUnknown(t *testing.T) {
	var proxy *connector
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/half" {
			w.Header().Set("Content-Length", "9")
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
		}
		if r.URL.Path != "/kept" {
			proxy.cut()
		}
	}))
	defer server.Close()
	proxy = newConnector(t, nil, establish)
	client, _ := newClient(t, through(newProxy(t, proxy.url(), io.Discard), server))
	address := example(server)
	for _, path := range []string{"", "half"} {
		if a := client.Do(post(t, t.Context(), address+path), patience); !a.Written || a.Err == nil || errors.Is(a.Err, ErrProxy) {
			t.Errorf("%q: %+v", path, a)
		}
	}
	// If a tunnel broke while it was idle, no request is written to it.
	if a := client.Do(post(t, t.Context(), address+"kept"), patience); a.Err != nil {
		t.Fatalf("%+v", a)
	}
	proxy.cut()
	clocktest.Await(t, "the break to arrive", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		for _, h := range client.hosts {
			return len(h.idle) == 1 && !quiet(h.idle[0].socket)
		}
		return false
	})
	if a := client.Do(post(t, t.Context(), address+"kept"), patience); a.Err != nil || a.Status != 200 || len(proxy.connects()) != 4 {
		t.Errorf("%+v after %v", a, proxy.connects())
	}
}

// The proxy's own text appears only in the log, without the credentials that it repeats.
func TestProxy_logsWithoutCredentials(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte("ama:hunter2!"))
	proxy := newConnector(t, nil, func(conn net.Conn, _ *http.Request) bool {
		fmt.Fprintf(conn, "HTTP/1.1 407 bad hunter2! %s\r\nX-Squid-Error: ERR_CACHE_ACCESS_DENIED %s\r\n\r\n%s", pair, pair, strings.Repeat("x", 9000))
		return false
	})
	var lines bytes.Buffer
	p := newProxy(t, "http://ama:hunter2%21@"+proxy.listener.Addr().String(), &lines)
	_, err := p.Tunnel(t.Context(), "momo.example:443")
	if !errors.Is(err, ErrProxy) || err.Error() != "egress proxy opened no tunnel: the proxy answered 407" {
		t.Errorf("%v", err)
	}
	said := lines.String()
	for _, want := range []string{"level=WARN", "proxy=" + p.Address(), "to=momo.example:443", "the proxy answered 407: 407 bad *** ***", "(ERR_CACHE_ACCESS_DENIED ***)"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	for _, secret := range []string{pair, "hunter2"} {
		if strings.Contains(said+err.Error()+fmt.Sprintf("%v", err), secret) {
			t.Errorf("%q is in %s, %v", secret, said, err)
		}
	}
	lines.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Tunnel(ctx, "momo.example:443"); err == nil || lines.Len() > 0 {
		t.Errorf("a caller that gave up: %v, %s", err, &lines)
	}
}

// Exceptions and loopback are dialled directly.
func TestProxy_exceptions(t *testing.T) {
	p := newProxy(t, "http://proxy.example:3128", io.Discard, "bank.example", ".internal.example", "10.0.0.0/8", "93.184.216.34", "fd00::/8", "shop.example:8443")
	var direct, tunnel []string
	for _, address := range []string{
		"localhost:80", "LOCALHOST.:80", "app.localhost:443", "127.0.0.1:80", "[::1]:80", "127.8.9.1:1", "[::ffff:127.0.0.1]:80",
		"bank.example:443", "api.bank.example:443", "BANK.example.:443", "a.internal.example:443", "10.1.2.3:443", "93.184.216.34:443", "[fd00::1]:443", "shop.example:8443",
	} {
		if p.Through(address) {
			tunnel = append(tunnel, address)
		}
	}
	for _, address := range []string{
		"internal.example:443", "mybank.example:443", "11.0.0.1:443", "shop.example:443", "[2001:db8::1]:443", "localhost.example:443", "momo.example:443",
	} {
		if !p.Through(address) {
			direct = append(direct, address)
		}
	}
	if len(tunnel)+len(direct) > 0 {
		t.Errorf("through the proxy: %q; directly: %q", tunnel, direct)
	}
	if (*Proxy)(nil).Through("momo.example:443") {
		t.Error("no proxy is used")
	}
	good := []string{"bank.example", ".example", "*.example", "a-b.example:443", "10.0.0.0/8", "10.1.2.3", "10.1.2.3:80", "::1", "[::1]:443", "fd00::/8", " 10.0.0.0/8", "bücher.example"}
	for _, entry := range good {
		if !CheckException(entry) {
			t.Errorf("%q is refused", entry)
		}
	}
	for _, entry := range []string{"", "*", ".", "*.", "10.0.0.0/33", "10.0.0", "10.0.0.256", "a b", "https://bank.example", "bank.example/", "bank.example:0", "bank.example:https", ":443", "a..b", "*bank*", "*bank.example", "fe80::1%eth0", "ama@bank.example"} {
		if CheckException(entry) {
			t.Errorf("%q is accepted", entry)
		}
	}
}

// A URL that cannot be a proxy's is refused, and the error does not contain it.
func TestNewProxy_refusesOtherURLs(t *testing.T) {
	for raw, address := range map[string]string{
		"http://proxy.example:3128": "proxy.example:3128", "https://ama:secret@proxy.example:3129/": "proxy.example:3129",
		"http://ama@[fd00::1]:8080": "[fd00::1]:8080", "http://10.0.0.1:1": "10.0.0.1:1",
	} {
		if p, err := NewProxy(raw, nil, nil); err != nil || p.Address() != address {
			t.Errorf("%q: %+v, %v", raw, p, err)
		}
	}
	if p, err := NewProxy("", []string{"bank.example"}, nil); p != nil || err != nil {
		t.Errorf("without a URL: %+v, %v", p, err)
	}
	for _, raw := range []string{
		"proxy.example:3128", "proxy.example", "http://proxy.example", "http://proxy.example:0", "http://proxy.example:70000", "http://:3128", "socks5://proxy.example:1080",
		"http://proxy.example:3128/path", "http://proxy.example:3128?x", "http://proxy.example:3128#x", "http://:secret@proxy.example:1", "http://a%3Ab:secret@proxy.example:1",
		"http://ama:secret@proxy.example:port", "http://ama:sec ret%@proxy.example:1", "http:proxy.example:1",
	} {
		if _, err := NewProxy(raw, nil, nil); !errors.Is(err, ErrProxyURL) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if _, err := NewProxy("http://proxy.example:3128", []string{"bank.example", "10.0.0.0/33"}, nil); err == nil || !strings.Contains(err.Error(), "10.0.0.0/33") {
		t.Errorf("a network of 33 bits: %v", err)
	}
}

// FuzzTunnel: whatever a proxy answers, a tunnel is opened only after a status 2xx with nothing after its head.
func FuzzTunnel(f *testing.F) {
	for _, seed := range []string{established, "HTTP/1.1 407 X\r\n\r\n", "HTTP/1.1 100 C\r\n\r\n" + established, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 204 \r\nTransfer-Encoding: chunked\r\n\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			defer theirs.Close()
			if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
				theirs.Write(said)
			}
		}()
		err := newProxy(t, "http://proxy.example:3128", io.Discard).connect(t.Context(), ours, "momo.example:443")
		opens := slices.ContainsFunc(strings.Split(string(said), "\n"), func(line string) bool {
			_, code, _ := strings.Cut(line, " ")
			return strings.HasPrefix(strings.TrimLeft(code, " "), "2")
		})
		if err == nil && (!opens || !bytes.HasSuffix(said, []byte("\n"))) || err != nil && !errors.Is(err, ErrProxy) {
			t.Errorf("%q: %v", said, err)
		}
	})
}
