package api

import (
	_ "embed"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

const slogDebug = slog.LevelDebug

//go:embed testing.html
var testingPage []byte

// page answers what is public and needs no key: the OpenAPI document and the
// page about testing. Everything else that is not known is a 404 in JSON.
func (c *call) page(path string) error {
	var text []byte
	switch path {
	case "/openapi.json":
		text = *c.api.document.Load()
	case "/docs", "/docs/testing":
		text, c.kind = testingPage, "text/html; charset=utf-8"
		c.header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	default:
		return noEndpoint()
	}
	c.where = path
	if c.r.Method != http.MethodGet {
		c.kind = "application/json"
		return c.wrongMethod(http.MethodGet)
	}
	c.out.buf = append(c.out.buf, text...)
	return nil
}

// What browsers of the configured origins may send and read.
const (
	corsMethods = "GET, POST, PATCH, DELETE"
	corsHeaders = "x-api-key, content-type, accept, idempotency-key, x-request-id"
	corsExposed = "X-Request-Id, Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining"
)

// preflight lets the configured origins in and answers a browser's question
// before the request, which comes without a key. With no origin configured
// nothing here happens.
func (c *call) preflight() (answered bool) {
	if len(c.api.Origins) == 0 {
		return false
	}
	c.w.Header().Add("Vary", "Origin")
	origin := c.r.Header.Get("Origin")
	known := slices.ContainsFunc(c.api.Origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origin) })
	if origin == "" || !known {
		return false
	}
	c.header("Access-Control-Allow-Origin", origin)
	c.header("Access-Control-Expose-Headers", corsExposed)
	if c.r.Method != http.MethodOptions || c.r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	c.header("Access-Control-Allow-Methods", corsMethods)
	c.header("Access-Control-Allow-Headers", corsHeaders)
	c.header("Access-Control-Max-Age", "600")
	c.out.buf = append(c.out.buf, "{}"...)
	return true
}
