// Package api is Makola's JSON interface over HTTP. Each request matches a row of one route table and passes the
// checks in a fixed order: size, key, path, rate, permission. A form reads its fields and collects every bad field at
// once. The handler then calls one verb of a domain package and renders the result.
//
// This package holds no rules about money and opens no transactions. It holds the statuses and messages of the
// interface, which existing client programs compare literally. That is why package wire reads and writes JSON itself:
// it must be lenient with the input of those programs, and strict about ambiguous input.
//
// Files, each needs only files below it:
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
	TextRails  []provider.TextRail // of providers of texts over HTTP
	// Reported stores a provider's report on a text.
	Reported func(context.Context, provider.TextRail, provider.Receipt) error
	Routes   *route.Table
	Webhooks *webhook.Webhooks
	Requests *requestlog.Log
	Recovery *recovery.Recovery
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret

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
	// Short reports whether the disk is nearly full; nil for never.
	Short func() bool
	// Stopped returns the refusal of everything that changes something while the clock of this node is wrong; nil for never.
	Stopped func() error
	// Observe is called at the end of every request; it may be nil. It must not block.
	Observe func(Seen)
	// Refused is called at the end of every refused or failed request under /api/v1; it may be nil. It must not
	// block.
	Refused func(requestlog.Request)
}

// Seen is one answered request for the metrics and the access log. Route is a path of the table and Method
// one of HTTP's own, else "other", so that there are few of them.
type Seen struct {
	Route, Method     string
	RequestID, Tenant string // empty: the request has none
	Trace             string // its traceparent; empty: none
	Status, Bytes     int    // Bytes of the body that was sent
	Took              time.Duration
}

// API answers every request that arrives at the public listener.
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

// Route is one row of the interface: its path, its conditions and its handler. The order in which the conditions are
// checked is the same for all routes.
type Route struct {
	Method string
	Path   string // under /api/v1, parameters in braces
	Scope  access.Scope
	Limit  ratelimit.Limit // none when Max is 0
	Body   int64           // bytes
	// Open allows a blocked account to call it, and exempts it from the general rate limit. Clients poll it for the
	// status of their payments.
	Open bool
	// Listed requires an address on the payout allow-list.
	Listed bool
	// Spends marks other routes that spend money or credits. A tenant may require the allow-list for them, too.
	Spends bool
	// Collects requires that collections are enabled.
	Collects bool
	// Stores marks a route that stores rows that no payment needs. It is refused while the disk is nearly full.
	Stores bool
	// Reference is the field that holds the client's reference: a duplicate is
	// blamed on it.
	Reference string

	handle func(*call) error
}

// call is one request on its way through.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	whole  context.Context // as long as the client is there
	ctx    context.Context // of whole, with an end
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
	held       held // of the memory for bodies

	status  int
	out     writer
	shared  []byte // the answer where it is the same for all clients; nil: out has it
	kind    string // content type
	failure *problem.Error
	cause   error
}

// params gives the names of the parameters in the path.
func (r *Route) params() []string {
	var names []string
	for _, s := range strings.Split(r.Path, "/") {
		if name, ok := strings.CutPrefix(s, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// callback is where the callbacks of one rail arrive.
type callback struct {
	path  string // under /callbacks/
	rail  provider.Rail
	texts *provider.TextRail // not nil: reports on texts arrive here
}

// public is a resource that needs no key.
type public struct {
	document []byte // OpenAPI
	guides   *guides.Guides
}
