package cli

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHealthIsWhatTheServerSaysOfItself(t *testing.T) {
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
