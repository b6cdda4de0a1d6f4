package app

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/makola/makola/internal/config"
)

// meant keeps web pages away from what listens on loopback without a key: a page that a browser on this machine has open
// can send requests here, under its own name (Origin), or under one that it lets point to this machine (Host).
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

// ours says whether a host, with or without a port, is this machine by a name that no other site can give it.
func ours(host string) bool {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "0")
	}
	return config.Loopback(host)
}

func oursAt(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && ours(u.Host)
}
