package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/openapi"
)

// Examples are the values of the demo account that appear in the examples of the guides and of the OpenAPI document.
// All are empty in production.
type Examples struct {
	Key      string
	SenderID string
	GroupID  string
	BankID   string
	SimURL   string // base URL of the simulator's control interface
	MTNURL   string // base URL of the simulator that replaces MTN's sandbox
}

// Exemplify replaces the examples by values of the demo account.
func (a *API) Exemplify(e Examples) {
	document := openapi.For(a.PublicURL, e.SenderID, e.GroupID)
	a.public.Store(&public{document, guides.New(guides.Values{
		URL: a.PublicURL, Document: document, Key: e.Key, Sender: e.SenderID, Bank: e.BankID, Sim: e.SimURL, MTN: e.MTNURL,
	})})
}

// page serves resources without a key: the OpenAPI document and the guides. Every other unknown path is a 404 in
// JSON.
func (c *call) page(path string) error {
	p := guides.Page{Status: http.StatusOK, Kind: c.kind}
	switch {
	case path == "/openapi.json":
		p.Text = c.api.public.Load().document
	case path == guides.SearchPath:
		var err error
		if p, err = c.api.public.Load().guides.Search(c.r.URL.Query().Get("q")); err != nil {
			return err
		}
	case path == guides.Prefix || strings.HasPrefix(path, guides.Prefix+"/"):
		var err error
		if p, err = c.api.public.Load().guides.Page(path); err != nil {
			return err
		}
	default:
		return noEndpoint()
	}
	c.where = path
	if p.Status == http.StatusNotFound {
		c.where = guides.Prefix // limits the number of values of the metrics' label, because clients may request any path
	}
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return c.wrongMethod(http.MethodGet + ", " + http.MethodHead)
	}
	if p.Kind != c.kind {
		c.kind = p.Kind
		c.header("Content-Security-Policy", guides.Policy)
	}
	c.status = p.Status
	c.shared = p.Text
	if p.Forever {
		c.header("Cache-Control", "public, max-age=31536000, immutable")
	}
	if p.Small != nil {
		c.header("Vary", "Accept-Encoding")
		if strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
			c.header("Content-Encoding", "gzip")
			c.shared = p.Small
		}
	}
	return nil
}

// Methods and headers that browsers of the configured origins may use.
const (
	corsMethods = "GET, POST, PATCH, DELETE"
	corsHeaders = "x-api-key, content-type, accept, idempotency-key, x-request-id, traceparent"
	corsExposed = "X-Request-Id, Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining"
)

// preflight sets the CORS headers for the configured origins. It answers a browser's preflight request, which has no
// key. If no origin is configured, it does nothing.
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
	c.out.Object("")
	c.out.End()
	return true
}
