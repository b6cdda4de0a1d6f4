// Package console is Makola's HTML transport. It is the frame of all pages: it carries a request of a browser through its checks,
// and renders what the handler of its route returns. It has the pages of signing in and of one's own account; the pages of the
// sites are routes that it is given. Like package api it opens no transaction and has no rule about money: a handler reads a
// form, calls one verb of a domain package and renders.
//
// Package ops has the pages of the installation (/ops), package tenant those of an account (/app/TENANT), and package handsets
// those of the simulator (/sim). Both sites share records (payments, messages, refused requests), settings (people,
// keys) and approvals (change requests and the policy). Package words names states and reasons. Package page has the parts of a page.
//
// Routes, their forms and the permission that each needs are data; what a role may do is the policy of package identity.
//
// Files, from the top down:
//
//	serve.go, observe.go  answer requests and count them
//	sign.go               signing in and out, and the frame's own routes
//	account.go            one's own account
//	kept.go               the contents of a form while a person gives the second factor
//	visit.go, route.go, refusal.go, shell.go, live.go  one request on its way, and what stands around its page
//	table.go, form.go, subject.go, file.go, cookie.go  what handlers use of a visit: columns of lists, parameters, the account, files
//	console.go, watch.go, place.go  what the console stands on
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
	"github.com/makola/makola/internal/tenant"
)

// Deps is what the console stands on.
type Deps struct {
	Identity *identity.Identity
	Tenants  *tenant.Store
	Audit    *audit.Log
	Clock    *clock.Clock
	Log      *slog.Logger

	// PublicURL is the address under which browsers reach this server, without a slash at its end.
	PublicURL string
	// Seal keeps the contents of forms while a person gives the second factor; nil: they are lost.
	Seal *config.Sealer
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
	// NewLink makes a sign-in link and prints it where the server was started; nil: there is no such place.
	NewLink func(ctx context.Context) error
	// Stopped returns the refusal of what moves money while the clock of this node is wrong; nil for never.
	Stopped func() error
	// Waiting counts what awaits the visitor on the pages of the navigation, by their path under the site; nil for no counts.
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
	// exporting are those who take a file.
	exporting busy

	setUp    atomic.Bool // there are people, who are never removed
	mu       sync.Mutex
	linkFrom time.Duration // from when a link may be printed on request again, by Elapsed
}

// The limits of a request.
const (
	// AnswerWithin is the most time that a page may take.
	AnswerWithin = 9 * time.Second
	formBytes    = 32 << 10
	linkEvery    = 10 * time.Second
)
