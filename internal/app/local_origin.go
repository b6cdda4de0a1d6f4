package app

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/makola/makola/internal/config"
)

// meant protects loopback listeners without a key from web pages. A page in a browser on this machine can send
// requests here with its own name as Origin. It can also use a host name that resolves to this machine.
func meant(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		if !ours(r.Host) || origin != "" && !oursAt(origin) || site == "cross-site" {
			http.Error(w, "this address is for programs and pages of this machine", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// ours reports whether a host, with or without a port, is a name of this machine that no other site can use.
func ours(host string) bool {
	name := hostName(host)
	return strings.HasSuffix(name, ".localhost") || config.Loopback(net.JoinHostPort(name, "0"))
}

// hostName returns a host in lower case, without its port and without a final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// hosts returns the function that reports whether this server answers to a host. Production answers to every host,
// because its keys are secret. A development server has a demo key that everybody can read. So it answers only to
// this machine's names and to configured names. A web page that uses its own name for this machine gets no answer.
func (a *App) hosts() func(host string) bool {
	if a.production {
		return func(string) bool { return true }
	}
	names := map[string]bool{}
	if u, err := url.Parse(a.cfg.PublicURL); err == nil {
		names[hostName(u.Host)] = true
	}
	if listen := hostName(a.cfg.Listen); listen != "0.0.0.0" && listen != "::" {
		names[listen] = true
	}
	delete(names, "") // neither setting names a host
	return func(host string) bool { return ours(host) || names[hostName(host)] }
}

func oursAt(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && ours(u.Host)
}
