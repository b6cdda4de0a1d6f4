// Package mtn is the simulated MTN: the MoMo Open API with its products collection, disbursement and remittance, each
// with a subscription key, an API user and tokens of its own, and the sandbox's test numbers. docs/providers.md lists
// its documented answers and our inventions.
//
// Files, from the top down; each needs only files below it:
//
//	mtn.go       the paths
//	notify.go, consent.go, holder.go  texts to a customer; consent of a customer; wallets and balances
//	agreed.go    invoices, pre-approvals and payments of bills
//	money.go     payments and their status
//	users.go     API users and tokens
//	statement.go the file of the portal
//	render.go    the status object of a movement, and callbacks
//	agreed_answers.go                 the status objects of invoices, pre-approvals and bills
//	answers.go, call.go, fixtures.go  the objects of answers; one request; test numbers
//	account.go   products and credentials
//	notified.go  limits of notifications to a customer
package mtn

import (
	"net/http"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// New returns MTN as a part of a simulator.
func New(o Options) sim.Part {
	return func(s *sim.Sim) sim.Provider { return newMTN(s, o).provider() }
}

func (m *mtn) provider() sim.Provider {
	return sim.Provider{Name: Name, Adapter: "mtnmomo", Accounts: []string{Sandbox}, Serve: m, Callback: m.callback, Statement: statement, Refusal: refusal}
}

// RefusalAnswers returns useful Answers for refuse and refuse_after: all codes that MTN documents, and some that it
// does not.
func RefusalAnswers() []string {
	return sim.RefusalAnswers("400:NOT_ALLOWED", "500:NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "500:NOT_ALLOWED_TARGET_ENVIRONMENT",
		"INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "500:INVALID_CURRENCY", "PAYER_NOT_FOUND", "500:PAYER_NOT_FOUND", "PAYEE_NOT_FOUND",
		"500:PAYEE_NOT_FOUND", "NOT_ENOUGH_FUNDS", "500:NOT_ENOUGH_FUNDS", "PAYER_LIMIT_REACHED", "PAYEE_NOT_ALLOWED_TO_RECEIVE",
		"404:RESOURCE_NOT_FOUND", "500:INTERNAL_PROCESSING_ERROR", "503:SERVICE_UNAVAILABLE", "409:CONFLICT")
}

// StatusAnswers returns useful Answers for status_answer.
func StatusAnswers() []string {
	return sim.StatusAnswers("500:RESOURCE_NOT_FOUND", "400:PAYER_NOT_FOUND", "500:PAYEE_NOT_FOUND", "404:NOT_ALLOWED")
}

// ServeHTTP finds the product and resource: /{product}/token/ and /{product}/{version}/{resource}/... API users are
// created under /v1_0/apiuser.
func (m *mtn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	p := m.products[path[0]]
	switch {
	case len(path) >= 2 && path[0] == "v1_0" && path[1] == "apiuser":
		m.provision(w, r, path[2:])
	case p == nil || len(path) < 2:
		notFound(w)
	case path[1] == "token" && len(path) == 2 && r.Method == http.MethodPost:
		m.token(w, r, p)
	case path[1] == "oauth2":
		m.consent(w, r, p, strings.Join(path[2:], "/"))
	case len(path) >= 3 && (path[1] == "v1_0" || path[1] == "v2_0"):
		op, serve := m.resource(p, r.Method, path[2], path[3:])
		if serve == nil {
			notFound(w)
			return
		}
		m.guarded(w, r, p, op, serve)
	default:
		notFound(w)
	}
}

// resource returns the operation and handler of a path below a product's version. serve is nil if there is none.
func (m *mtn) resource(p *product, method, resource string, rest []string) (op string, serve func(*call)) {
	switch {
	case p.resources[resource] || resource == "requesttopay":
		return m.movement(p, method, resource, rest)
	case resource == "account" && len(rest) >= 1 && rest[0] == "balance" && method == http.MethodGet:
		return sim.OpBalance, func(c *call) { m.balance(c, rest[1:]) }
	case resource == "accountholder" && len(rest) == 3 && method == http.MethodGet:
		return sim.OpWalletName, func(c *call) { m.holder(c, rest[0], rest[1], rest[2]) }
	case resource == "bc-authorize" && len(rest) == 0 && method == http.MethodPost:
		return sim.OpWalletName, m.authorize
	case p.name == "collection":
		return m.agreed(method, resource, rest)
	}
	return "", nil
}

// movement returns the operation and handler of a path of payments. All products have delivery notifications under
// requesttopay.
func (m *mtn) movement(p *product, method, resource string, rest []string) (op string, serve func(*call)) {
	own := p.resources[resource]
	switch {
	case own && len(rest) == 0 && method == http.MethodPost:
		return p.move, func(c *call) { m.move(c, resource) }
	case own && len(rest) == 1 && method == http.MethodGet:
		return p.moveQuery, func(c *call) { m.query(c, resource, rest[0]) }
	case len(rest) == 2 && rest[1] == "deliverynotification" && method == http.MethodPost:
		if !own {
			resource = anyResource
		}
		return p.moveQuery, func(c *call) { m.notify(c, resource, rest[0]) }
	}
	return "", nil
}

// guarded serves a request that has a subscription key, a token of this product and an existing target environment.
// It refuses any other.
func (m *mtn) guarded(w http.ResponseWriter, r *http.Request, p *product, op string, serve func(*call)) {
	c, ok := m.begin(w, r, op)
	if !ok {
		return
	}
	user, authorized := m.bearer(p, r.Header.Get("Authorization"))
	account, known := m.environments[r.Header.Get("X-Target-Environment")]
	switch {
	case !p.subscribed(r):
		c.notSubscribed()
	case !authorized:
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"error":"invalid_token"}`))
	case !known:
		c.fail(http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT")
	default:
		c.product, c.user, c.account = p, user, account
		serve(c)
	}
}
