package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/clocktest"
)

// patience bounds each wait of a test. No test waits for it to pass.
const patience = 3 * time.Minute

// newClient returns a client and the number of connections that it opened.
func newClient(t *testing.T, change func(*Options)) (*Client, *atomic.Int64) {
	t.Helper()
	opened := new(atomic.Int64)
	o := Options{
		TLS: &tls.Config{}, Handshake: patience, PerHost: 8, Kept: 8, KeptFor: patience,
		HeadBytes: 4 << 10, BodyBytes: 1000,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	if change != nil {
		change(&o)
	}
	c := New(o)
	t.Cleanup(c.Close)
	return c, opened
}

func post(t *testing.T, ctx context.Context, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// speaker is a server that answers each request on a connection with the next of the texts. After the last it closes
// the connection.
func speaker(t *testing.T, texts ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for _, text := range texts {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					io.WriteString(conn, text)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

const accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok"

func TestConnection_isReused(t *testing.T) {
	for name, serve := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			server := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				w.Header().Set("X-Seen", r.Header.Get("X-Said"))
				if r.URL.Path == "/chunked" {
					http.NewResponseController(w).Flush()
				}
				fmt.Fprintf(w, "%s %s", r.Method, b)
			}))
			defer server.Close()
			c, opened := newClient(t, func(o *Options) {
				o.TLS.RootCAs = x509.NewCertPool()
				if server.Certificate() != nil {
					o.TLS.RootCAs.AddCert(server.Certificate())
				}
			})
			for _, path := range []string{"/", "/chunked", "/"} {
				r := post(t, t.Context(), server.URL+path)
				r.Header.Set("X-Said", "yes")
				a := c.Do(r, patience)
				if a.Err != nil || a.Status != 200 || string(a.Body) != `POST {"a":1}` || !a.Written || a.Header.Get("X-Seen") != "yes" {
					t.Errorf("%s: %+v", path, a)
				}
			}
			if opened.Load() != 1 {
				t.Errorf("%d connections", opened.Load())
			}
		})
	}
}

// TestConnection_notReusedInDoubt: a connection is not used again if anything about it is in doubt.
func TestConnection_notReusedInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		err    error
	}{
		"the other side says so":   {"HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 202, nil},
		"HTTP/1.0":                 {"HTTP/1.0 202 Accepted\r\nContent-Length: 2\r\n\r\nok", 202, nil},
		"more than the answer":     {accepted + accepted, 202, nil},
		"too long a body":          {"HTTP/1.1 202 Accepted\r\nContent-Length: 1001\r\n\r\n" + strings.Repeat("x", 1001), 202, ErrTooLong},
		"another protocol":         {"HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, nil},
		"too long a head":          {"HTTP/1.1 202 Accepted\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 0, ErrTooLong},
		"notices without an end":   {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 7), 0, nil},
		"not HTTP":                 {"220 smtp.example.com\r\n\r\n", 0, nil},
		"a torn body of no length": {"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz\r\n", 202, nil},
	} {
		t.Run(name, func(t *testing.T) {
			// The client would get the second answer only if it used the connection again.
			address := speaker(t, c.answer, "HTTP/1.1 500 Wrong\r\nContent-Length: 0\r\n\r\n")
			client, opened := newClient(t, nil)
			for range 2 {
				a := client.Do(post(t, t.Context(), address), patience)
				if a.Status != c.status || !a.Written || c.err != nil && !errors.Is(a.Err, c.err) || c.status == 0 && a.Err == nil {
					t.Errorf("%+v", a)
				}
			}
			if opened.Load() != 2 {
				t.Errorf("%d connections", opened.Load())
			}
		})
	}
}

func TestResponse_afterInformational(t *testing.T) {
	c, _ := newClient(t, nil)
	a := c.Do(post(t, t.Context(), speaker(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+accepted)), patience)
	if a.Err != nil || a.Status != 202 || string(a.Body) != "ok" || a.Header.Get("Link") != "" {
		t.Errorf("%+v", a)
	}
}

// TestConnection_closedIsNotWritten: the other side closed an idle connection.
func TestConnection_closedIsNotWritten(t *testing.T) {
	address := speaker(t, accepted) // the server closes each connection after one request without announcing it
	c, opened := newClient(t, nil)
	for i := range 3 {
		if a := c.Do(post(t, t.Context(), address), patience); a.Err != nil || a.Status != 202 {
			t.Fatalf("%+v", a)
		}
		clocktest.Await(t, "the closing to arrive", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, h := range c.hosts {
				return len(h.idle) == 1 && !quiet(h.idle[0].socket)
			}
			return false
		})
		if opened.Load() != int64(i)+1 {
			t.Errorf("%d connections", opened.Load())
		}
	}
}

func TestResponse_lostHasItsCause(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/closed":
			panic(http.ErrAbortHandler)
		case "/torn":
			w.Header().Set("Content-Length", "9")
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		<-silent
	}))
	defer server.Close()
	defer close(silent)
	c, _ := newClient(t, nil)
	if a := c.Do(post(t, t.Context(), server.URL+"/closed"), patience); !errors.Is(a.Err, ErrClosed) || !a.Written || a.Status != 0 {
		t.Errorf("closed: %+v", a)
	}
	if a := c.Do(post(t, t.Context(), server.URL+"/torn"), patience); a.Err == nil || !a.Written || a.Status != 200 || string(a.Body) != "half" {
		t.Errorf("torn: %+v", a)
	}
	// The time is doubled until it is enough to write the request.
	for enough, written := time.Millisecond, false; !written; enough *= 2 {
		a := c.Do(post(t, t.Context(), server.URL+"/silent"), enough)
		if written = a.Written; !errors.Is(a.Err, ErrTimeout) {
			t.Fatalf("silent: %+v", a)
		}
	}
	why := errors.New("we stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	c.opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &tellingConn{conn, func() { cancel(why) }}, err
	}
	if a := c.Do(post(t, ctx, server.URL+"/silent"), patience); !errors.Is(a.Err, why) || !a.Written {
		t.Errorf("given up: %+v", a)
	}
	if a := c.Do(post(t, ctx, server.URL+"/silent"), patience); !errors.Is(a.Err, why) || a.Written {
		t.Errorf("given up before: %+v", a)
	}
}

// tellingConn calls written when something was written.
type tellingConn struct {
	net.Conn
	written func()
}

func (c *tellingConn) Write(p []byte) (int, error) {
	defer c.written()
	return c.Conn.Write(p)
}

// TestBody_hasItsOwnTimeout: the status counts although the body never ends.
func TestBody_hasItsOwnTimeout(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		<-silent
	}))
	defer server.Close()
	defer close(silent)
	c, _ := newClient(t, func(o *Options) { o.BodyTime = 50 * time.Millisecond })
	if a := c.Do(post(t, t.Context(), server.URL), patience); a.Status != 200 || string(a.Body) != "half" || !errors.Is(a.Err, ErrTimeout) {
		t.Errorf("%+v", a)
	}
}

// TestSlots_arePerHost: callers wait for a slot until their time ends. Callers for one host do not wait for those for
// another.
func TestSlots_arePerHost(t *testing.T) {
	var under, most atomic.Int64
	release := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		<-release
	})
	server, other := httptest.NewServer(handler), speaker(t, accepted)
	defer server.Close()
	c, opened := newClient(t, func(o *Options) { o.PerHost = 3 })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if a := c.Do(post(t, t.Context(), server.URL), patience); a.Err != nil || a.Status != 200 {
				t.Errorf("%+v", a)
			}
		})
	}
	clocktest.Await(t, "three requests", func() bool { return under.Load() == 3 })
	if a := c.Do(post(t, t.Context(), server.URL), time.Millisecond); !errors.Is(a.Err, ErrTimeout) || a.Written {
		t.Errorf("without a slot: %+v", a)
	}
	if a := c.Do(post(t, t.Context(), other), patience); a.Status != 202 {
		t.Errorf("another host: %+v", a)
	}
	close(release)
	wg.Wait()
	if most.Load() != 3 || opened.Load() > 4 {
		t.Errorf("%d at once over %d connections", most.Load(), opened.Load())
	}
}

// TestHosts_idleAreForgotten: hosts that are no longer used are forgotten.
func TestHosts_idleAreForgotten(t *testing.T) {
	c, _ := newClient(t, func(o *Options) { o.KeptFor = time.Millisecond })
	for range 5 {
		if a := c.Do(post(t, t.Context(), speaker(t, accepted, accepted)), patience); a.Status != 202 {
			t.Errorf("%+v", a)
		}
	}
	if a := c.Do(post(t, t.Context(), "http://host.invalid/"), patience); a.Err == nil || a.Written {
		t.Errorf("no such host: %+v", a)
	}
	clocktest.Await(t, "the sweep", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.hosts) == 0 && c.kept == 0 && c.sweep == nil
	})
}

func TestConnections_idleLimit(t *testing.T) {
	c, opened := newClient(t, func(o *Options) { o.Kept = 2 })
	addresses := []string{speaker(t, accepted, accepted), speaker(t, accepted, accepted), speaker(t, accepted, accepted)}
	for range 2 {
		for _, address := range addresses {
			if a := c.Do(post(t, t.Context(), address), patience); a.Status != 202 {
				t.Errorf("%+v", a)
			}
		}
	}
	if c.kept != 2 || opened.Load() != 4 { // each connection to the third host is a new one
		t.Errorf("%d kept, %d opened", c.kept, opened.Load())
	}
	c.Close()
	if c.kept != 0 || len(c.hosts) != 0 {
		t.Errorf("%d kept for %d hosts after closing", c.kept, len(c.hosts))
	}
}

func TestDial_addresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://example.com": "example.com:80", "https://example.com/x": "example.com:443", "https://example.com:8443": "example.com:8443",
		"http://[::1]:9": "[::1]:9", "https://[2001:db8::1]/": "[2001:db8::1]:443", "https://makɔla.example/": "xn--makla-lkc.example:443",
		"ftp://example.com": "", "https://a\u200db\u2260\u0338.example/": "",
	} {
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := addressOf(r.URL)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", address, got, err)
		}
	}
}

// FuzzAnswers: whatever a server answers, the exchange ends within its bounds and keeps no connection that is in
// doubt.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(accepted))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			r, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			theirs.Write(said)
		}()
		c, _ := newClient(t, func(o *Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		})
		a := c.Do(post(t, t.Context(), "http://example.com/"), patience)
		if !a.Written || len(a.Body) > 1000 || a.Status == 0 && a.Err == nil || errors.Is(a.Err, ErrTimeout) {
			t.Errorf("%q: %+v", said, a)
		}
	})
}
