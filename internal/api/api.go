// Package api is Makola's JSON interface over HTTP. A request is matched to a
// row of one route table, passes the checks in a fixed order (size, key, path,
// rate, permission), is read by a form that collects every bad field
// at once, calls one verb of a domain package, and is rendered. No rule about
// money lives here and no transaction is opened here: what this package knows
// is the interface's own words, which existing client programs compare
// literally. That is why JSON is read and written by hand, in package wire: leniency towards what
// those programs send, and strictness about what is ambiguous, are the product.
//
// Files, along the way of a request:
//
//	routes.go                      the table: where an endpoint is, who may call it, what it does
//	serve.go                       one call: its checks in order (the size of its body first), its answer, its log line
//	room.go                        how much of bodies is in memory at once
//	form.go, form_lists.go         the fields of a request; lists of them
//	idempotency.go                 who asks, under which key; the mark of an answer that was given before
//	collections.go, payouts.go, airtime.go, bundles.go, sms.go, contacts.go
//	                               the endpoints of one product each
//	lists.go, limits.go            what an account is, has and may
//	requests.go                    requests that were refused
//	webhooks.go, addresses.go      deliveries and replays; the secret's fingerprint; who may pay out from where
//	history.go, paging.go          pages of payments; what pages of every list share
//	render.go                      what answers of several endpoints share: a payment, and the words for its state
//	refusal.go                     the status and the body of an error
//	callbacks.go                   what providers send
//	pages.go                       what is served without a key: the guides, preflights
package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/enquiry"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Deps is what the interface stands on.
type Deps struct {
	Access    *access.Access
	Tenants   *tenant.Store
	Ledger    *ledger.Ledger
	Payments  *payments.Payments
	Enquiries *enquiry.Enquiries
	Senders   *senderid.Store
	Contacts  *contacts.Store
	Messaging *messaging.Messaging
	Routes    *route.Table
	Webhooks  *webhook.Webhooks
	Requests  *requestlog.Log
	Recovery  *recovery.Recovery
	Clock     *clock.Clock
	Log       *slog.Logger
	Secret    config.Secret

	// PublicURL is the address that links carry, without a slash at its end.
	PublicURL string
	// TrustedProxies are the peers whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// ProxiesOnly refuses every peer but the trusted proxies: they end TLS, and
	// no other connection is encrypted.
	ProxiesOnly bool
	// Hosts reports whether the server answers to the host of a request; nil: to every host.
	Hosts func(host string) bool
	// Origins are the browser origins that may call; none turns CORS off.
	Origins []string
	// GeneralLimit is how many requests a minute a tenant may make over all
	// endpoints; 0 is no limit.
	GeneralLimit int64
	// USSDCode is the ussd_code of otp/send, a text of the operator's.
	USSDCode string
	// Development also takes callback URLs over http to loopback.
	Development bool
	// Short says whether the disk is nearly full; nil for never.
	Short func() bool
	// Stopped returns the refusal of everything that changes something while the clock of this node is wrong; nil for never.
	Stopped func() error
	// Observe is told of every request when it is over; it may be nil. It
	// must not block.
	Observe func(Seen)
	// Refused is told of every request under /api/v1 that was refused or failed,
	// when it is over; it may be nil. It must not block.
	Refused func(requestlog.Request)
}

// Seen is one answered request for the metrics and the access log. Route is a path of the table and Method
// one of HTTP's own, else "other", so that there are few of them.
type Seen struct {
	Route, Method     string
	RequestID, Tenant string // empty: the request has none
	Status, Bytes     int    // Bytes of the body that was sent
	Took              time.Duration
}

// API answers every request that arrives at the public listener.
type API struct {
	Deps
	log       *slog.Logger
	static    map[string]*endpoint // paths without parameters
	patterns  []*endpoint
	general   access.Limit
	callbacks []callback
	calls     sync.Pool
	public    atomic.Pointer[public]
	small     *room // of bodies in memory
	large     *room
	scans     scans
}

// endpoint is one path with the routes of its methods.
type endpoint struct {
	path     string
	segments []string
	routes   []*Route
}

// New builds the interface.
func New(d Deps) *API {
	a := &API{Deps: d, log: d.Log, static: map[string]*endpoint{}, general: access.GeneralLimit(d.GeneralLimit),
		small: newRoom(smallRoom, smallShare), large: newRoom(largeRoom, largeShare), scans: newScans()}
	a.calls.New = func() any { return &call{api: a} }
	for _, r := range Routes() {
		a.add(r)
	}
	a.callbacks = callbacks(d.Secret, d.Routes)
	a.Exemplify(Examples{})
	return a
}

func (a *API) add(r Route) {
	e := a.static[r.Path]
	if i := slices.IndexFunc(a.patterns, func(e *endpoint) bool { return e.path == r.Path }); i >= 0 {
		e = a.patterns[i]
	}
	if e == nil {
		e = &endpoint{path: r.Path, segments: strings.Split(r.Path, "/")}
		if strings.Contains(r.Path, "{") {
			a.patterns = append(a.patterns, e)
		} else {
			a.static[r.Path] = e
		}
	}
	e.routes = append(e.routes, &r)
}

// find matches an escaped path; params are the texts of its parameters, still
// escaped.
func (a *API) find(path string) (e *endpoint, params []string) {
	if e := a.static[path]; e != nil {
		return e, nil
	}
	segments := strings.Split(path, "/")
next:
	for _, e := range a.patterns {
		if len(e.segments) != len(segments) {
			continue
		}
		params = params[:0]
		for i, want := range e.segments {
			switch {
			case want[:1] == "{" && segments[i] != "":
				params = append(params, segments[i])
			case want != segments[i]:
				continue next
			}
		}
		return e, params
	}
	return nil, nil
}

// method finds the route of a method.
func (e *endpoint) method(method string) *Route {
	for _, r := range e.routes {
		if r.Method == method {
			return r
		}
	}
	return nil
}

// allow lists the methods of the endpoint for the header of that name.
func (e *endpoint) allow() string {
	var methods []string
	for _, r := range e.routes {
		methods = append(methods, r.Method)
	}
	return strings.Join(methods, ", ")
}

// ServeHTTP answers one request, in JSON whatever happens.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := a.begin(w, r)
	defer c.finish()
	if err := c.run(); err != nil {
		c.refuse(err)
	}
}
