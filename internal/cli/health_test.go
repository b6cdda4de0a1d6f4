package cli

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHealth_runningServer(t *testing.T) {
	t.Parallel()
	ready := http.StatusOK
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(ready)
		} else if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	health := func(want int, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(append([]string{"health"}, args...), &out, &errs); code != want {
			t.Errorf("%v: %d, %s%s", args, code, out.String(), errs.String())
		}
	}
	address := plain.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	health(exitOK, "--listen", address)
	health(exitOK, "--listen", "0.0.0.0:"+port)
	health(exitOK, "--listen", ":"+port, "--live")
	health(exitOK, "--listen", secure.Listener.Addr().String(), "--tls-cert", "cert.pem")
	health(exitUsage, "--listen", "nowhere")
	ready = http.StatusServiceUnavailable
	health(exitUnavailable, "--listen", address)
	health(exitOK, "--listen", address, "--live")
	plain.Close()
	health(exitUnavailable, "--listen", address, "--live")
}

// --ready-for ends when the server was ready for the whole time. A failed probe starts the time again.
func TestHealth_readyFor(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := looks.Add(1); n == 1 || n == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	plain(t, exitOK, "health", "--listen", address, "--ready-for", "300ms")
	if n := looks.Load(); n < 5 {
		t.Errorf("it was called well after %d looks, of which the third failed", n)
	}
	server.Config.Handler = http.NotFoundHandler()
	if _, said := plain(t, exitUnavailable, "health", "--listen", address, "--ready-for", "300ms", "--within", "600ms"); !strings.Contains(said, "404") {
		t.Errorf("stderr is %q", said)
	}
	plain(t, exitUsage, "health", "--listen", address, "--live", "--ready-for", "1s")
}
