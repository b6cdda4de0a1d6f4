package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/outbound"
)

// egress is a CONNECT proxy whose tunnels all lead to one server. It answers with a 503 for the targets in refuses.
type egress struct {
	*httptest.Server
	refuses []string

	mu    sync.Mutex
	asked []string
}

func newEgress(t *testing.T, target net.Addr) *egress {
	e := &egress{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.asked = append(e.asked, r.Method+" "+r.Host)
		e.mu.Unlock()
		if slices.Contains(e.refuses, r.Host) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		far, err := net.Dial("tcp", target.String())
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			defer conn.Close()
			io.Copy(conn, far)
		}()
		io.Copy(far, in)
	}))
	t.Cleanup(e.CloseClientConnections)
	t.Cleanup(e.Close)
	return e
}

// way returns tunnels of this proxy. Successive lookups of a name return the successive elements of answers.
func (e *egress) way(t *testing.T, development bool, answers ...[]string) tunnels {
	t.Helper()
	proxy, err := outbound.NewProxy(e.URL, []string{"excepted.example", "192.168.0.0/16"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := newControl(development, false)
	return tunnels{check: c, proxy: proxy, direct: (&net.Dialer{Control: c.dial}).DialContext, lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if len(answers) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		var list []netip.Addr
		for _, text := range answers[0] {
			list = append(list, netip.MustParseAddr(text))
		}
		answers = answers[1:]
		return list, nil
	}}
}

// The proxy gets only addresses that were checked, never a name, because it might resolve the name to our own
// network.
func TestTunnels_goToCheckedAddresses(t *testing.T) {
	server := httptest.NewServer(nil)
	defer server.Close()
	for name, c := range map[string]struct {
		address     string
		development bool
		resolved    []string
		asked       []string
		err         error // nil: a connection
	}{
		"public":                       {"shop.example:443", false, []string{"93.184.216.34"}, []string{"CONNECT 93.184.216.34:443"}, nil},
		"IPv6 alone":                   {"shop.example:8443", false, []string{"2606:2800:220:1::1"}, []string{"CONNECT [2606:2800:220:1::1]:8443"}, nil},
		"IPv4 before IPv6":             {"shop.example:443", false, []string{"2606:2800:220:1::1", "93.184.216.34"}, []string{"CONNECT 93.184.216.34:443"}, nil},
		"the first does not answer":    {"shop.example:443", false, []string{"93.184.216.1", "93.184.216.34"}, []string{"CONNECT 93.184.216.1:443", "CONNECT 93.184.216.34:443"}, nil},
		"none answers":                 {"shop.example:443", false, []string{"93.184.216.1", "93.184.216.1", "93.184.216.1", "93.184.216.34"}, []string{"CONNECT 93.184.216.1:443", "CONNECT 93.184.216.1:443", "CONNECT 93.184.216.1:443"}, outbound.ErrProxy},
		"private":                      {"shop.example:443", false, []string{"10.0.0.5"}, nil, errNotPublic},
		"private and public":           {"shop.example:443", false, []string{"10.0.0.5", "93.184.216.34"}, []string{"CONNECT 93.184.216.34:443"}, nil},
		"metadata":                     {"shop.example:80", false, []string{"169.254.169.254"}, nil, errNotPublic},
		"mapped":                       {"shop.example:443", false, []string{"::ffff:10.0.0.5"}, nil, errNotPublic},
		"translated":                   {"shop.example:443", false, []string{"64:ff9b::a00:5"}, nil, errNotPublic},
		"link-local":                   {"shop.example:443", false, []string{"fe80::1%eth0"}, nil, errNotPublic},
		"loopback":                     {"shop.example:443", false, []string{"127.0.0.1", "::1"}, nil, errNotPublic},
		"loopback in development":      {"shop.example" + server.Listener.Addr().String()[len("127.0.0.1"):], true, []string{"127.0.0.1"}, nil, nil},
		"an excepted private network":  {"shop.example:443", false, []string{"192.168.0.5"}, nil, errNotPublic},
		"an excepted literal":          {"192.168.0.5:443", false, nil, nil, errNotPublic},
		"no address":                   {"shop.example:443", false, []string{}, nil, new(net.DNSError)},
		"no name":                      {"shop.example:443", false, nil, nil, new(net.DNSError)},
		"localhost without its lookup": {"localhost:443", false, []string{"93.184.216.34"}, nil, errNotPublic},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := newEgress(t, server.Listener.Addr())
			proxy.refuses = []string{"93.184.216.1:443"}
			way := proxy.way(t, c.development)
			if c.resolved != nil {
				way = proxy.way(t, c.development, c.resolved, []string{"10.0.0.6"}) // the second answer is never used, because no second lookup is made
			}
			conn, err := way.dial(t.Context(), "tcp", c.address)
			if err == nil {
				conn.Close()
			}
			var unknown *net.DNSError
			if is := errors.Is(err, c.err) || errors.As(c.err, &unknown) && errors.As(err, &unknown); !is {
				t.Errorf("%v, want %v", err, c.err)
			}
			proxy.mu.Lock()
			defer proxy.mu.Unlock()
			if !slices.Equal(proxy.asked, c.asked) {
				t.Errorf("the proxy was asked for %q, want %q", proxy.asked, c.asked)
			}
		})
	}
}

// A receiver behind a proxy gets its own name in TLS and in the Host header. The customer sees nothing about the
// proxy.
func TestSend_throughAProxy(t *testing.T) {
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, r.Host, " ", r.TLS.ServerName, " ", r.URL)
	}))
	defer receiver.Close()
	proxy := newEgress(t, receiver.Listener.Addr())
	proxy.refuses = []string{"93.184.216.1:443"}
	way := proxy.way(t, false, []string{"93.184.216.34"}, []string{"93.184.216.1"})
	roots := x509.NewCertPool()
	roots.AddCert(receiver.Certificate())
	out := outbound.New(outbound.Options{Dial: way.dial, TLS: &tls.Config{RootCAs: roots}, Handshake: patience, PerHost: 1, HeadBytes: 1 << 10, BodyBytes: answerBytes})
	c := &client{secure: out, plain: out, timeout: patience}
	e := &event{id: "event-1", url: "https://example.com/hook?order=7", body: []byte("{}")}
	a := c.send(t.Context(), e, [][]byte{[]byte("key")}, false, clock.Real().Now())
	if a.status != http.StatusTeapot || a.body != "example.com example.com /hook?order=7" {
		t.Errorf("%+v", a)
	}
	if a = c.send(t.Context(), e, [][]byte{[]byte("key")}, false, clock.Real().Now()); a.status != 0 || a.text() != noMore || !errors.Is(a.err, outbound.ErrProxy) {
		t.Errorf("refused: %+v", a)
	}
	if want := []string{"CONNECT 93.184.216.34:443", "CONNECT 93.184.216.1:443"}; !slices.Equal(proxy.asked, want) {
		t.Errorf("the proxy was asked for %q, want %q", proxy.asked, want)
	}
}
