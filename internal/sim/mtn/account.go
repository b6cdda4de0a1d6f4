package mtn

import (
	"cmp"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/sim"
)

// The names of MTN's accounts, as in paths, faults and the book.
const (
	Name = "mtn"
	// Sandbox is MTN's account for the target environment sandbox, with its own currency. Movements of other clients
	// there do not change Makola's float. It has the same paths and faults as MTN.
	Sandbox = "mtn_sandbox"
)

// Options configure the behaviour of the simulated MTN.
type Options struct {
	// ReasonObject makes status responses contain the reason as an object, as MTN's specification does, instead of
	// the plain text of the live system.
	ReasonObject bool
	// SandboxCurrency is the currency of the target environment sandbox. Empty means EUR, as at MTN.
	SandboxCurrency string
}

// The credentials that the simulated MTN accepts. They are valid nowhere else.
const (
	environment      = "mtnghana"
	sandbox          = "sandbox"
	collectionUser   = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee01"
	collectionKey    = "51a0c011ec7104000000000000000001"
	collectionAPI    = "51a0c011ec7104000000000000000002"
	disbursementUser = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee02"
	disbursementKey  = "51a0d15b0125e000000000000000001a"
	disbursementAPI  = "51a0d15b0125e000000000000000002a"
	remittanceUser   = "6e4f9a3c-1f0b-4f0e-9d5e-51a0c0ffee03"
	remittanceKey    = "51a04e3177a4ce000000000000000001"
	remittanceAPI    = "51a04e3177a4ce000000000000000002"
)

// Config returns the configuration of an adapter for the simulated MTN at base, such as http://127.0.0.1:8080.
func Config(base string) config.MTN {
	return config.MTN{
		URL: strings.TrimSuffix(base, "/") + "/" + Name, Environment: environment, Currency: ghanaCurrency,
		CollectionKey: collectionKey, CollectionUser: collectionUser, CollectionAPIKey: collectionAPI,
		DisbursementKey: disbursementKey, DisbursementUser: disbursementUser, DisbursementAPIKey: disbursementAPI,
	}
}

// Credential has the credentials of a client of the simulated MTN for one product.
type Credential struct {
	Product, SubscriptionKey, User, APIKey string
}

// Credentials returns the credentials of each product. They are valid in both target environments, sandbox and
// mtnghana.
func Credentials() []Credential {
	return []Credential{
		{"collection", collectionKey, collectionUser, collectionAPI},
		{"disbursement", disbursementKey, disbursementUser, disbursementAPI},
		{"remittance", remittanceKey, remittanceUser, remittanceAPI},
	}
}

// mtn is MTN's Open API: the products collection, disbursement and remittance. Each has its own subscription key, API
// user and tokens.
type mtn struct {
	s            *sim.Sim
	products     map[string]*product
	environments map[string]account
	reasonObject bool
	notified     notified
}

type product struct {
	name            string
	user, key       string // credentials of the token call
	subscription    string
	move, moveQuery string          // operations, named as in faults
	kind            sim.Kind        // kind of its movements
	resources       map[string]bool // paths that move money
	party           string          // member of the body with the other party
}

// account is the account of a target environment.
type account struct {
	provider, currency string
}

const (
	tokenLife       = time.Hour
	ghanaCurrency   = "GHS"
	sandboxCurrency = "EUR"
	maxBody         = 64 << 10
)

func newMTN(s *sim.Sim, o Options) *mtn {
	return &mtn{s: s, reasonObject: o.ReasonObject, notified: notified{last: map[string]time.Time{}}, environments: map[string]account{
		environment: {Name, ghanaCurrency},
		sandbox:     {Sandbox, cmp.Or(o.SandboxCurrency, sandboxCurrency)},
	}, products: map[string]*product{
		"collection": {
			name: "collection", user: collectionUser, key: collectionAPI, subscription: collectionKey,
			move: sim.OpCollect, moveQuery: sim.OpCollectStatus, kind: sim.Collection,
			resources: map[string]bool{"requesttopay": true, "requesttowithdraw": true}, party: "payer",
		},
		"disbursement": {
			name: "disbursement", user: disbursementUser, key: disbursementAPI, subscription: disbursementKey,
			move: sim.OpDisburse, moveQuery: sim.OpDisburseStatus, kind: sim.Payout,
			resources: map[string]bool{"transfer": true, "deposit": true, "refund": true}, party: "payee",
		},
		"remittance": {
			name: "remittance", user: remittanceUser, key: remittanceAPI, subscription: remittanceKey,
			move: sim.OpDisburse, moveQuery: sim.OpDisburseStatus, kind: sim.Payout,
			resources: map[string]bool{"transfer": true, "cashtransfer": true}, party: "payee",
		},
	}}
}

func (p *product) subscribed(r *http.Request) bool {
	k := r.Header.Get("Ocp-Apim-Subscription-Key")
	if k == "" {
		k = r.URL.Query().Get("subscription-key")
	}
	return subtle.ConstantTimeCompare([]byte(k), []byte(p.subscription)) == 1
}
