// Package console is Makola's HTML transport: pages for the people of a tenant (/app/TENANT), for those of the
// installation (/ops), and, in development mode, the handsets of the simulator (/sim). It stands beside package api and
// like it opens no transaction and knows no rule about money: a handler reads a form, calls one verb of a domain package
// and renders.
//
// Routes, their forms and the permission that each needs are data (routes.go); what a role may do is the policy of
// package identity. Package page has the parts of a page; the words for states and reasons are in words.go.
//
// Files: visit.go carries one request through its checks, routes.go says who may make it, sign.go signs in and out,
// shell.go is what surrounds a page, refusal.go the pages of errors, live.go the parts that a page asks for again, observe.go
// counts requests.
// lists.go, filters.go, files.go and bookkeeping.go are lists, campaigns.go messages, operate.go the installation's pages, search.go the search of payments, payment.go a payment's
// story, account.go one's own account, acts.go what moves money and waits for a second person, policy.go for how
// many, audits.go what people did, requests.go what the JSON interface refused, orders.go the forms that ask for acts, money_orders.go those about floats, credits and the ends of payments, operation_orders.go those about providers, routes, dead letters, campaigns and fees,
// people.go people, keys.go the keys and settings of accounts and sender IDs. new_payout.go sends a tenant's payout. handsets.go, hooks.go and simulator.go are /sim. The *_templ.go files are generated from the .templ files.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Deps is what the console stands on.
type Deps struct {
	Identity  *identity.Identity
	Tenants   *tenant.Store
	Access    *access.Access
	Limits    *ratelimit.Limiter
	Audit     *audit.Log
	Changes   *changes.Changes
	Ledger    *ledger.Ledger
	Payments  *payments.Payments
	Lookups   *lookup.Lookups
	Messaging *messaging.Messaging
	Webhooks  *webhook.Webhooks
	Senders   *senderid.Store
	Requests  *requestlog.Log
	Jobs      *jobs.Queue
	Routes    *route.Table
	Clock     *clock.Clock
	Log       *slog.Logger

	// PublicURL is the address under which browsers reach this server, without a slash at its end.
	PublicURL string
	// Installation tells the cookies of several servers of one machine apart.
	Installation string
	// TrustedProxies and ProxiesOnly are those of the JSON interface.
	TrustedProxies []netip.Prefix
	ProxiesOnly    bool
	// Hosts reports whether the server answers to the host of a request; nil: to every host.
	Hosts func(host string) bool
	// Development lets people in who come by the link of the first screen. In production the console asks them for a
	// password and, where a role needs it, a second factor; without any people it is not set up yet.
	Development bool
	// Simulator is the control of the simulator (/sim/v1); nil: there is none.
	Simulator http.Handler
	// Checks says what the last checks of the books found.
	Checks func() []Check
	// FormKey signs the forms that move money; every node has the same.
	FormKey []byte
	// NumberKey hashes the numbers that people search for, in the audit log.
	NumberKey []byte
	// NewLink makes a sign-in link and prints it where the server was started; nil: there is no such place.
	NewLink func(ctx context.Context) error
	// Stopped returns the refusal of what moves money while the clock of this node is wrong; nil for never.
	Stopped func() error
	// Observe is told how each request was answered; nil: nobody is.
	Observe func(api.Seen)
}

// Console answers the requests of browsers.
type Console struct {
	Deps
	mux    *http.ServeMux
	assets http.Handler
	cross  *http.CrossOriginProtection
	sim    simulator
	hooks  hooks
	viewed viewings
	// exporting are those who take a file.
	exporting busy

	setUp    atomic.Bool // there are people, who are never removed
	mu       sync.Mutex
	linkFrom time.Duration // from when a link may be printed on request again, by Elapsed
}

// The limits of a request.
const (
	answerWithin = 9 * time.Second
	formBytes    = 32 << 10
	linkEvery    = 10 * time.Second
)

// owned are the paths of the console: these, and what is under those that end in a slash. Every other path belongs to
// the JSON interface.
var owned = []string{"/", "/account", "/account/", "/first", "/first/again", "/sign-in", "/sign-out", "/theme", "/app", "/app/", "/ops", "/ops/", "/sim", "/sim/", page.Assets}

// Owns says whether a path belongs to the console.
func Owns(path string) bool {
	for _, o := range owned {
		if path == o || o != "/" && strings.HasSuffix(o, "/") && strings.HasPrefix(path, o) {
			return true
		}
	}
	return false
}

// New builds the console.
func New(d Deps) *Console {
	c := &Console{Deps: d, mux: http.NewServeMux(), assets: page.AssetServer(), cross: http.NewCrossOriginProtection(), sim: simulator{d.Simulator}}
	if u, err := url.Parse(d.PublicURL); err == nil && u.Host != "" {
		_ = c.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host) // an address that is none trusts no origin
	}
	c.cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.begin(w, r, nil).refuse(errCrossSite())
	}))
	for _, route := range Routes() {
		if route.Development && !d.Development || route.Simulator && d.Simulator == nil {
			continue
		}
		c.mux.Handle(route.Method+" "+route.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if o, counted := w.(*observed); counted {
				o.route = route.Path
			}
			c.begin(w, r, &route).run()
		}))
	}
	for _, route := range strayRoutes() {
		c.mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) { c.begin(w, r, &route).run() })
	}
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { c.begin(w, r, nil).refuse(errNoPage()) })
	return c
}

// serve answers one request.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case c.ProxiesOnly && !fromProxy(r, c.TrustedProxies):
		c.begin(w, r, nil).refuse(errNotEncrypted())
	case c.Hosts != nil && !c.Hosts(r.Host):
		c.begin(w, r, nil).refuse(errHost())
	case strings.HasPrefix(r.URL.Path, page.Assets):
		c.assets.ServeHTTP(w, r)
	case !c.Development && !c.hasPeople(r.Context()):
		c.begin(w, r, nil).notSetUp()
	default:
		c.cross.Handler(c.mux).ServeHTTP(w, r)
	}
}

// hasPeople says whether the console of a production server is set up. Where that cannot be found out it is taken for
// set up: signing in will say what is wrong.
func (c *Console) hasPeople(ctx context.Context) bool {
	if c.setUp.Load() {
		return true
	}
	set, err := c.Identity.SetUp(ctx)
	if err != nil || set {
		c.setUp.Store(err == nil)
		return true
	}
	return false
}
