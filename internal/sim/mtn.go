package sim

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
)

// The credentials that the simulated MTN knows. They open nothing else.
const (
	mtnEnvironment     = "mtnghana"
	mtnSandbox         = "sandbox"
	mtnCollectionUser  = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee01"
	mtnCollectionKey   = "51a0c011ec7104000000000000000001"
	mtnCollectionAPI   = "51a0c011ec7104000000000000000002"
	mtnDisbursementUsr = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee02"
	mtnDisbursementKey = "51a0d15b0125e000000000000000001a"
	mtnDisbursementAPI = "51a0d15b0125e000000000000000002a"
	mtnRemittanceUser  = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee03"
	mtnRemittanceKey   = "51a04e3177a4ce000000000000000001"
	mtnRemittanceAPI   = "51a04e3177a4ce000000000000000002"
)

// MTNConfig is the configuration of an adapter that talks to the MTN of a
// simulator reached at base, such as http://127.0.0.1:8080.
func MTNConfig(base string) config.MTN {
	return config.MTN{
		URL: strings.TrimSuffix(base, "/") + "/" + MTN, Environment: mtnEnvironment, Currency: mtnCurrency,
		CollectionKey: mtnCollectionKey, CollectionUser: mtnCollectionUser, CollectionAPIKey: mtnCollectionAPI,
		DisbursementKey: mtnDisbursementKey, DisbursementUser: mtnDisbursementUsr, DisbursementAPIKey: mtnDisbursementAPI,
	}
}

// MTNCredential is what a client of the simulated MTN needs for one product.
type MTNCredential struct {
	Product, SubscriptionKey, User, APIKey string
}

// MTNCredentials gives the credentials of each product. They serve both target
// environments, sandbox and mtnghana.
func MTNCredentials() []MTNCredential {
	return []MTNCredential{
		{"collection", mtnCollectionKey, mtnCollectionUser, mtnCollectionAPI},
		{"disbursement", mtnDisbursementKey, mtnDisbursementUsr, mtnDisbursementAPI},
		{"remittance", mtnRemittanceKey, mtnRemittanceUser, mtnRemittanceAPI},
	}
}

// mtn is MTN's Open API: the products collection, disbursement and remittance,
// each with a subscription key, an API user and tokens of its own.
type mtn struct {
	s            *Sim
	products     map[string]*mtnProduct
	environments map[string]mtnAccount
	notified     notified
}

type mtnProduct struct {
	name            string
	user, key       string // of the token call
	subscription    string
	move, moveQuery string          // operations as faults name them
	kind            Kind            // of what it moves
	resources       map[string]bool // paths that move money
	party           string          // member of the body that names the other side
}

// mtnAccount is the account that a target environment leads to.
type mtnAccount struct {
	provider, currency string
}

const (
	mtnTokenLife       = time.Hour
	mtnCurrency        = "GHS"
	mtnSandboxCurrency = "EUR"
	mtnMaxBody         = 64 << 10
)

func newMTN(s *Sim) wire {
	m := &mtn{s: s, notified: notified{last: map[string]time.Time{}}, environments: map[string]mtnAccount{
		mtnEnvironment: {MTN, mtnCurrency},
		mtnSandbox:     {MTNSandbox, cmp.Or(s.opts.MTNSandboxCurrency, mtnSandboxCurrency)},
	}, products: map[string]*mtnProduct{
		"collection": {
			name: "collection", user: mtnCollectionUser, key: mtnCollectionAPI, subscription: mtnCollectionKey,
			move: OpCollect, moveQuery: OpCollectStatus, kind: Collection,
			resources: map[string]bool{"requesttopay": true, "requesttowithdraw": true}, party: "payer",
		},
		"disbursement": {
			name: "disbursement", user: mtnDisbursementUsr, key: mtnDisbursementAPI, subscription: mtnDisbursementKey,
			move: OpDisburse, moveQuery: OpDisburseStatus, kind: Payout,
			resources: map[string]bool{"transfer": true, "deposit": true, "refund": true}, party: "payee",
		},
		"remittance": {
			name: "remittance", user: mtnRemittanceUser, key: mtnRemittanceAPI, subscription: mtnRemittanceKey,
			move: OpDisburse, moveQuery: OpDisburseStatus, kind: Payout,
			resources: map[string]bool{"transfer": true, "cashtransfer": true}, party: "payee",
		},
	}}
	return wire{serve: m, callback: m.callback, says: mtnSays}
}

// ServeHTTP finds the product and resource: /{product}/token/ and
// /{product}/{version}/{resource}/...; API users are made under /v1_0/apiuser.
func (m *mtn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seg := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(seg) >= 2 && seg[0] == "v1_0" && seg[1] == "apiuser" {
		m.provision(w, r, seg[2:])
		return
	}
	p := m.products[seg[0]]
	if p == nil || len(seg) < 2 {
		mtnNotFound(w)
		return
	}
	if seg[1] == "token" && len(seg) == 2 && r.Method == http.MethodPost {
		m.token(w, r, p)
		return
	}
	if seg[1] == "oauth2" {
		m.consent(w, r, p, strings.Join(seg[2:], "/"))
		return
	}
	if len(seg) < 3 || seg[1] != "v1_0" && seg[1] != "v2_0" {
		mtnNotFound(w)
		return
	}
	resource, rest := seg[2], seg[3:]
	switch {
	case p.resources[resource] && len(rest) == 0 && r.Method == http.MethodPost:
		m.guarded(w, r, p, p.move, func(c *mtnCall) { m.move(c, resource) })
	case p.resources[resource] && len(rest) == 1 && r.Method == http.MethodGet:
		m.guarded(w, r, p, p.moveQuery, func(c *mtnCall) { m.query(c, resource, rest[0]) })
	case len(rest) == 2 && rest[1] == "deliverynotification" && r.Method == http.MethodPost && (p.resources[resource] || resource == "requesttopay"):
		if !p.resources[resource] {
			resource = anyResource
		}
		m.guarded(w, r, p, p.moveQuery, func(c *mtnCall) { m.notify(c, resource, rest[0]) })
	case resource == "account" && len(rest) >= 1 && rest[0] == "balance" && r.Method == http.MethodGet:
		m.guarded(w, r, p, OpBalance, func(c *mtnCall) { m.balance(c, rest[1:]) })
	case resource == "accountholder" && len(rest) == 3 && r.Method == http.MethodGet:
		m.guarded(w, r, p, OpWalletName, func(c *mtnCall) { m.holder(c, rest[0], rest[1], rest[2]) })
	case resource == "bc-authorize" && len(rest) == 0 && r.Method == http.MethodPost:
		m.guarded(w, r, p, OpWalletName, m.authorize)
	default:
		mtnNotFound(w)
	}
}

func mtnNotFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, `{"statusCode":404,"message":"Resource not found"}`)
}

// mtnCall is a call with a token: of a product, by an API user, to the account
// of its target environment.
type mtnCall struct {
	*call
	product *mtnProduct
	user    apiUser
	account mtnAccount
}

// guarded lets a request through that has a subscription key, a token of this
// product and a target environment that there is.
func (m *mtn) guarded(w http.ResponseWriter, r *http.Request, p *mtnProduct, op string, serve func(*mtnCall)) {
	c, ok := m.s.begin(w, r, MTN, op)
	if !ok {
		return
	}
	user, authorized := m.bearer(p, r.Header.Get("Authorization"))
	account, known := m.environments[r.Header.Get("X-Target-Environment")]
	switch {
	case !p.subscribed(r):
		c.notSubscribed()
	case !authorized:
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"error":"invalid_token"}`))
	case !known:
		c.fail(http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT")
	default:
		serve(&mtnCall{c, p, user, account})
	}
}

func (p *mtnProduct) subscribed(r *http.Request) bool {
	k := r.Header.Get("Ocp-Apim-Subscription-Key")
	if k == "" {
		k = r.URL.Query().Get("subscription-key")
	}
	return subtle.ConstantTimeCompare([]byte(k), []byte(p.subscription)) == 1
}

func (c *call) notSubscribed() {
	c.write(http.StatusUnauthorized, "application/json", []byte(`{"statusCode":401,"message":"Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."}`))
}

// fail answers with MTN's error object.
func (c *call) fail(status int, code string) {
	body, _ := json.Marshal(mtnReason{code, mtnText(code)})
	c.write(status, "application/json", body)
}

// mtnSays renders a code in MTN's error object.
func mtnSays(op, code string, _ Order) (status int, body []byte) {
	if code == "" && op == OpCollect {
		code = "PAYER_NOT_FOUND"
	} else if code == "" {
		code = "PAYEE_NOT_ALLOWED_TO_RECEIVE"
	}
	body, _ = json.Marshal(mtnReason{code, mtnText(code)})
	return http.StatusBadRequest, body
}

type mtnReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// mtnText is the sentence beside a code, in MTN's manner.
func mtnText(code string) string {
	switch code {
	case "RESOURCE_ALREADY_EXIST":
		return "Duplicated reference id. Creation of resource failed."
	case "RESOURCE_NOT_FOUND":
		return "Requested resource was not found."
	case "PAYER_NOT_FOUND", "PAYEE_NOT_FOUND":
		return "Payee does not exist"
	case "NOT_ALLOWED_TARGET_ENVIRONMENT":
		return "Access to target environment is forbidden."
	case "INVALID_CURRENCY":
		return "Currency not supported."
	case "NOT_ENOUGH_FUNDS":
		return "Not enough funds."
	case "NOT_ALLOWED":
		return "Authorization failed. Insufficient permissions."
	case "INVALID_CALLBACK_URL_HOST":
		return "Callback URL with different host name then configured for API User"
	case "SERVICE_UNAVAILABLE":
		return "Service temporarily unavailable, try again later."
	}
	return "An internal error occurred while processing."
}
