package sim

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
)

// The credentials that the simulated MTN knows. They open nothing else.
const (
	mtnEnvironment     = "mtnghana"
	mtnCollectionUser  = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee01"
	mtnCollectionKey   = "51a0c011ec7104000000000000000001"
	mtnCollectionAPI   = "51a0c011ec7104000000000000000002"
	mtnDisbursementUsr = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee02"
	mtnDisbursementKey = "51a0d15b0125e000000000000000001a"
	mtnDisbursementAPI = "51a0d15b0125e000000000000000002a"
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

// mtn is MTN's Open API: the products collection and disbursement, each with a
// subscription key, an API user and tokens of its own.
type mtn struct {
	s        *Sim
	products map[string]*mtnProduct
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

const (
	mtnTokenLife = time.Hour
	mtnCurrency  = "GHS"
	mtnMaxBody   = 64 << 10
)

func newMTN(s *Sim) wire {
	m := &mtn{s: s, products: map[string]*mtnProduct{
		"collection": {
			name: "collection", user: mtnCollectionUser, key: mtnCollectionAPI, subscription: mtnCollectionKey,
			move: OpCollect, moveQuery: OpCollectStatus, kind: Collection,
			resources: map[string]bool{"requesttopay": true}, party: "payer",
		},
		"disbursement": {
			name: "disbursement", user: mtnDisbursementUsr, key: mtnDisbursementAPI, subscription: mtnDisbursementKey,
			move: OpDisburse, moveQuery: OpDisburseStatus, kind: Payout,
			resources: map[string]bool{"transfer": true, "deposit": true, "refund": true}, party: "payee",
		},
	}}
	return wire{serve: m, callback: m.callback, says: mtnSays}
}

// ServeHTTP finds the product and resource: /{product}/token/ and
// /{product}/{version}/{resource}/...
func (m *mtn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seg := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	p := m.products[seg[0]]
	if p == nil || len(seg) < 2 {
		mtnNotFound(w)
		return
	}
	if seg[1] == "token" && len(seg) == 2 && r.Method == http.MethodPost {
		m.token(w, r, p)
		return
	}
	if len(seg) < 3 || seg[1] != "v1_0" && seg[1] != "v2_0" {
		mtnNotFound(w)
		return
	}
	resource, rest := seg[2], seg[3:]
	switch {
	case p.resources[resource] && len(rest) == 0 && r.Method == http.MethodPost:
		m.guarded(w, r, p, p.move, func(c *call) { m.move(c, p, resource) })
	case p.resources[resource] && len(rest) == 1 && r.Method == http.MethodGet:
		m.guarded(w, r, p, p.moveQuery, func(c *call) { m.query(c, p, rest[0]) })
	case resource == "account" && len(rest) >= 1 && rest[0] == "balance" && r.Method == http.MethodGet:
		m.guarded(w, r, p, OpBalance, func(c *call) { m.balance(c, p, rest[1:]) })
	case resource == "accountholder" && len(rest) == 3 && r.Method == http.MethodGet:
		m.guarded(w, r, p, OpWalletName, func(c *call) { m.holder(c, rest[0], rest[1], rest[2]) })
	default:
		mtnNotFound(w)
	}
}

func mtnNotFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, `{"statusCode":404,"message":"Resource not found"}`)
}

// guarded lets a request through that has a subscription key, a token of this
// product and the right environment.
func (m *mtn) guarded(w http.ResponseWriter, r *http.Request, p *mtnProduct, op string, serve func(*call)) {
	c, ok := m.s.begin(w, r, MTN, op)
	switch {
	case !ok:
	case !p.subscribed(r):
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"statusCode":401,"message":"Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."}`))
	case !m.bearer(p, r.Header.Get("Authorization")):
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"error":"invalid_token"}`))
	case r.Header.Get("X-Target-Environment") != mtnEnvironment:
		c.fail(http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT")
	default:
		serve(c)
	}
}

func (p *mtnProduct) subscribed(r *http.Request) bool {
	k := r.Header.Get("Ocp-Apim-Subscription-Key")
	if k == "" {
		k = r.URL.Query().Get("subscription-key")
	}
	return subtle.ConstantTimeCompare([]byte(k), []byte(p.subscription)) == 1
}

// token answers the token call. A body is an error, and tokens carry their own
// end, so that they outlive a restart as real ones do.
func (m *mtn) token(w http.ResponseWriter, r *http.Request, p *mtnProduct) {
	c, ok := m.s.begin(w, r, MTN, OpToken)
	if !ok {
		return
	}
	user, key, basic := r.BasicAuth()
	switch {
	case !p.subscribed(r):
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"statusCode":401,"message":"Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."}`))
	case r.ContentLength != 0:
		c.write(http.StatusBadRequest, "application/json", nil)
	case !basic || user != p.user || key != p.key:
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"error":"login_failed"}`))
	default:
		end := strconv.FormatInt(m.s.clock.Now().Add(mtnTokenLife).Unix(), 10)
		body, _ := json.Marshal(map[string]any{
			"access_token": p.name + "." + end + "." + p.seal(end), "token_type": "access_token", "expires_in": int(mtnTokenLife.Seconds()),
		})
		c.answer(http.StatusOK, "application/json", body)
	}
}

func (p *mtnProduct) seal(end string) string {
	h := hmac.New(sha256.New, []byte(p.key))
	h.Write([]byte(p.name + end))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (m *mtn) bearer(p *mtnProduct, header string) bool {
	parts := strings.Split(strings.TrimPrefix(header, "Bearer "), ".")
	if len(parts) != 3 || parts[0] != p.name || subtle.ConstantTimeCompare([]byte(parts[2]), []byte(p.seal(parts[1]))) != 1 {
		return false
	}
	end, err := strconv.ParseInt(parts[1], 10, 64)
	return err == nil && m.s.clock.Now().Unix() < end
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
	}
	return "An internal error occurred while processing."
}
