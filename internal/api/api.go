// Package api is Makola's JSON interface over HTTP. Each request matches a row of one route table and passes the
// checks in a fixed order: size, key, path, rate, permission. A form reads its fields and collects every bad field at
// once. The handler then calls one function of a domain package and renders the result.
//
// This package has no rules about money and opens no transactions. It has the statuses and messages of the interface,
// which existing client programs compare literally. Package wire reads and writes JSON itself, because it must accept
// the input of those programs and still refuse ambiguous input.
//
// Files, each of which uses only files below it:
//
//	routes.go                      the table: path, conditions and handler of each endpoint; the interface built from it
//	serve.go                       one call: its checks in order (the size of its body first), its answer, its log line
//	callbacks.go                   requests of providers
//	pages.go                       pages without a key: the guides, preflights
//	collections.go, payouts.go, batches.go, airtime.go, bundles.go, sms.go, contacts.go
//	                               the endpoints of one product each
//	history.go                     pages of payments
//	lists.go                       balances, banks, networks, services, names
//	statement.go                   movements of a balance
//	requests.go                    refused requests
//	webhooks.go                    deliveries and replays; the fingerprint of the secret
//	addresses.go                   addresses that may pay out
//	limits.go                      the limits of an account and of its key
//	checks.go                      rate limits and permissions of a call
//	paging.go                      links and numbers of the pages of every list
//	refusal.go                     the status and the body of an error
//	idempotency.go                 the caller and its Idempotency-Key; the header of a replayed answer
//	body.go                        the body of a call, within its size and the memory for bodies
//	match.go                       the endpoint of a path
//	call.go                        parts of a call that handlers share: headers, address, form, the begin of an answer
//	api.go                         the types: the interface, its routes and calls
//	render.go                      payments as several endpoints write them, and the names of their states
//	form_lists.go                  lists of fields
//	form.go                        the fields of a request
//	room.go                        memory for request bodies
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Deps holds the dependencies of the interface.
type Deps struct {
	Access     *access.Access
	Limits     *ratelimit.Limiter
	Tenants    *tenant.Store
	Ledger     *ledger.Ledger
	Payments   *payments.Payments
	Batches    *batch.Batches
	Changes    *changes.Changes
	Statements *statement.Reader
	Lookups    *lookup.Lookups
	Senders    *senderid.Store
	Contacts   *contacts.Store
	Messaging  *messaging.Messaging
	TextRails  []provider.TextRail // rails of the providers that take texts over HTTP
	// Reported stores a provider's delivery report on a text.
	Reported func(context.Context, provider.TextRail, provider.Receipt) error
	Routes   *route.Table
	Webhooks *webhook.Webhooks
	Requests *requestlog.Log
	Recovery *recovery.Recovery
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret

	// PublicURL is the base of links in responses, without a slash at its end.
	PublicURL string
	// TrustedProxies are the peers whose X-Forwarded-For header is used.
	TrustedProxies []netip.Prefix
	// ProxiesOnly refuses every peer except the trusted proxies. The proxies end TLS, so any other connection is not
	// encrypted.
	ProxiesOnly bool
	// Hosts reports whether the server serves the host of a request. If it is nil, the server serves every host.
	Hosts func(host string) bool
	// Origins are the browser origins that may call. If there are none, CORS is off.
	Origins []string
	// GeneralLimit is the number of requests a minute that a tenant may make over all endpoints. 0 means no limit.
	GeneralLimit int64
	// USSDCode is the ussd_code in the response of otp/send. The operator configures it.
	USSDCode string
	// Development allows callback URLs over http to loopback addresses.
	Development bool
	// Short reports whether the disk is nearly full. If it is nil, the disk never is.
	Short func() bool
	// Stopped returns an error while the clock of this node is wrong. Requests that change something are then
	// refused. If it is nil, the clock is never wrong.
	Stopped func() error
	// Observe is called at the end of every request. It may be nil. It must not block.
	Observe func(Seen)
	// Refused is called at the end of every refused or failed request under /api/v1. It may be nil. It must not
	// block.
	Refused func(requestlog.Request)
}

// Seen is one answered request, for the metrics and the access log. Route is a path of the route table or "other",
// and Method a method of HTTP or "other". So both have few values.
type Seen struct {
	Route, Method     string
	RequestID, Tenant string // empty if the request has none
	Trace             string // traceparent of the request; empty if it has none
	Status, Bytes     int    // Bytes is the size of the response body
	Took              time.Duration
}

// API serves every request that arrives at the public listener.
type API struct {
	Deps
	log       *slog.Logger
	routes    []*Route
	static    map[string]*endpoint // paths without parameters
	patterns  []*endpoint
	general   ratelimit.Limit
	callbacks []callback
	calls     sync.Pool
	public    atomic.Pointer[public]
	small     *room // memory for small request bodies
	large     *room
	scans     scans
}

// endpoint is one path with the routes of its methods.
type endpoint struct {
	path     string
	segments []string
	routes   []*Route
}

// Route is one row of the interface: its path, its conditions and its handler. All routes check the conditions in the
// same order.
type Route struct {
	Method string
	Path   string // under /api/v1, parameters in braces
	Scope  access.Scope
	Limit  ratelimit.Limit // no limit if Max is 0
	Body   int64           // maximum size of the request body in bytes
	// Open lets a blocked account call the route, and exempts the route from the general rate limit. It is for routes
	// that clients poll for the status of their payments.
	Open bool
	// Listed requires that the request comes from an address on the payout allow-list.
	Listed bool
	// Spends marks a route without Listed that spends money or credits. A tenant can require the allow-list for these
	// routes, too.
	Spends bool
	// Collects requires that collections are enabled for the account.
	Collects bool
	// Stores marks a route that stores rows that no payment needs. It is refused while the disk is nearly full.
	Stores bool
	// Reference is the field with the client's reference. The error about a duplicate names it.
	Reference string

	handle func(*call) error
}

// call is one request while it is served.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	whole  context.Context // ends when a GET request's client disconnects
	ctx    context.Context // the whole request, with a deadline
	cancel context.CancelFunc
	begun  time.Time
	id     string // request id

	route  *Route
	where  string // the route's path for the metrics
	params []string
	// interfaced is true for a path under /api/v1.
	interfaced bool
	caller     access.Caller
	tenant     tenant.Tenant
	body       []byte
	held       held // the memory that is reserved for the body

	status  int
	out     writer
	shared  []byte // the response if all clients get the same bytes; nil: the response is in out
	kind    string // content type of the response
	failure *problem.Error
	cause   error
}

// params returns the names of the parameters in the path.
func (r *Route) params() []string {
	var names []string
	for _, s := range strings.Split(r.Path, "/") {
		if name, ok := strings.CutPrefix(s, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// callback is the path of the callbacks of one rail.
type callback struct {
	path  string // under /callbacks/
	rail  provider.Rail
	texts *provider.TextRail // not nil: the path receives delivery reports on texts
}

// public has the resources that need no key.
type public struct {
	document []byte // the OpenAPI document
	guides   *guides.Guides
}
