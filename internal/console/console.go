// Package console is Makola's HTML transport. It checks each request of a browser, calls the handler of its route and renders
// the result. It has the pages for signing in and for one's own account. The pages of the sites are routes that it is given.
// Like package api it opens no transaction and has no rule about money: a handler reads a form, calls one function of a domain
// package and renders.
//
// Package ops has the pages of the installation (/ops), package tenant those of an account (/app/TENANT), and package handsets
// those of the simulator (/sim). Both sites share records (payments, messages, refused requests), settings (people,
// keys) and approvals (change requests and the policy). Package words names states and reasons. Package page has the parts of a page.
//
// Routes, their forms and the permission that each needs are data. Package roles decides which role has which permission.
//
// Files, from the top down:
//
//	serve.go, observe.go  answer requests and count them
//	sign.go               signing in and out, and the console's own routes
//	account.go            one's own account
//	notices.go            when one is notified
//	forgotten.go          a new password in place of a forgotten one
//	kept.go               the contents of a form during a step-up
//	visit.go, route.go, refusal.go, shell.go, live.go  one request, and the shell around its page
//	table.go, form.go, subject.go, upload.go, file.go, cookie.go  what handlers use: columns of lists, parameters, the account, files
//	console.go, watch.go, place.go  dependencies, session watching, sites
//
// The *_templ.go files are generated from the .templ files.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/tenant"
)

// Deps are the dependencies of the console.
type Deps struct {
	Identity *identity.Identity
	Tenants  *tenant.Store
	Audit    *audit.Log
	Notices  *notice.Notices
	Clock    *clock.Clock
	Log      *slog.Logger

	// PublicURL is the address under which browsers reach this server, without a slash at its end.
	PublicURL string
	// Seal seals the contents of forms while a person enters the second factor. If it is nil, the contents are lost.
	Seal *config.Sealer
	// Installation is part of the cookies' names, so that several servers on one machine do not share a session.
	Installation string
	// TrustedProxies and ProxiesOnly are the same settings as for the JSON interface.
	TrustedProxies []netip.Prefix
	ProxiesOnly    bool
	// Hosts reports whether the server serves the host of a request. nil means that it serves every host.
	Hosts func(host string) bool
	// Home is the path of an operator's first page on a development server: the demo account. Empty: the overview.
	Home string

	// Development admits people who open the link of the first screen. In production the console asks for a password
	// and, where a role needs it, a second factor. Without any people a production console is not set up yet.
	Development bool
	// NewLink makes a sign-in link and prints it in the server's terminal. It is nil in production.
	NewLink func(ctx context.Context) error
	// Stopped returns the refusal of requests that move money while the clock of this node is wrong. nil means never.
	Stopped func() error
	// Waiting counts the items that await the visitor on the pages of the navigation, by their path under the site.
	// nil means no counts.
	Waiting func(p Place) (map[string]int, error)
	// Observe receives how each request was answered; nil for none.
	Observe func(api.Seen)
}

// Console answers the requests of browsers.
type Console struct {
	Deps
	mux    *http.ServeMux
	assets http.Handler
	cross  *http.CrossOriginProtection
	viewed viewings
	// exporting are the people whose export is running.
	exporting busy

	setUp    atomic.Bool // there are people; it stays true, because people are never removed
	mu       sync.Mutex
	linkFrom time.Duration // from this time on (Elapsed) a link can be printed on request again
}

// The limits of a request.
const (
	// AnswerWithin is the most time that a page may take.
	AnswerWithin = 9 * time.Second
	formBytes    = 32 << 10
	linkEvery    = 10 * time.Second
)
