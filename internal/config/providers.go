package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MTN has the credentials of an account at MTN's Open API. Collection and disbursement have their own subscription
// keys and users; either may be omitted. The defaults are for production. The simulator has its own values.
type MTN struct {
	URL                string     `name:"url" env:"URL" placeholder:"URL" help:"Base URL of MTN's Open API. Empty disables MTN."`
	Environment        string     `name:"environment" env:"ENVIRONMENT" default:"mtnghana" help:"Value of the header X-Target-Environment."`
	Currency           string     `name:"currency" env:"CURRENCY" default:"GHS" help:"Currency of the MTN account. MTN's sandbox requires EUR."`
	CollectionKey      Credential `name:"collection-key" env:"COLLECTION_KEY" hidden:"" help:"Subscription key of the collection product."`
	CollectionUser     string     `name:"collection-user" env:"COLLECTION_USER" help:"API user of the collection product."`
	CollectionAPIKey   Credential `name:"collection-api-key" env:"COLLECTION_API_KEY" hidden:"" help:"API key of that API user."`
	DisbursementKey    Credential `name:"disbursement-key" env:"DISBURSEMENT_KEY" hidden:"" help:"Subscription key of the disbursement product."`
	DisbursementUser   string     `name:"disbursement-user" env:"DISBURSEMENT_USER" help:"API user of the disbursement product."`
	DisbursementAPIKey Credential `name:"disbursement-api-key" env:"DISBURSEMENT_API_KEY" hidden:"" help:"API key of that API user."`
}

// Enabled reports whether the operator configured MTN at all.
func (m MTN) Enabled() bool { return m.URL != "" }

// Collects reports whether the collection product is configured.
func (m MTN) Collects() bool {
	return m.Enabled() && m.CollectionUser != "" && m.CollectionKey != "" && m.CollectionAPIKey != ""
}

// Disburses reports whether the disbursement product is configured.
func (m MTN) Disburses() bool {
	return m.Enabled() && m.DisbursementUser != "" && m.DisbursementKey != "" && m.DisbursementAPIKey != ""
}

// Missing lists the settings that an account lacks.
func (m MTN) Missing() []string {
	if m.Collects() || m.Disburses() {
		return nil
	}
	return []string{"MTN credentials: set MAKOLA_MTN_COLLECTION_KEY, MAKOLA_MTN_COLLECTION_USER and MAKOLA_MTN_COLLECTION_API_KEY, or the same three of DISBURSEMENT"}
}

// Hubtel has the credentials of a merchant account at Hubtel, whose interface has six hosts, and a seventh for
// balances. Hubtel accepts each reference once, and only listed addresses may call it.
type Hubtel struct {
	ClientID     string     `name:"client-id" env:"CLIENT_ID" help:"Hubtel client id. Empty disables Hubtel."`
	ClientSecret Credential `name:"client-secret" env:"CLIENT_SECRET" hidden:"" help:"Hubtel client secret."`
	POSSales     string     `name:"pos-sales" env:"POS_SALES" help:"POS sales id, for collections, name queries and the status of airtime and data."`
	Prepaid      string     `name:"prepaid" env:"PREPAID" help:"Prepaid deposit id, for payouts."`
	Commission   string     `name:"commission" env:"COMMISSION" help:"Account of the commission services, for airtime and data. Empty uses the prepaid deposit id."`

	ReceiveURL    string `name:"receive-url" env:"RECEIVE_URL" default:"https://rmp.hubtel.com" help:"Base URL for collections."`
	StatusURL     string `name:"status-url" env:"STATUS_URL" default:"https://api-txnstatus.hubtel.com" help:"Base URL for the status of collections, airtime and data."`
	SendURL       string `name:"send-url" env:"SEND_URL" default:"https://smp.hubtel.com" help:"Base URL for payouts."`
	SendStatusURL string `name:"send-status-url" env:"SEND_STATUS_URL" default:"https://smrsc.hubtel.com" help:"Base URL for the status of payouts."`
	VerifyURL     string `name:"verify-url" env:"VERIFY_URL" default:"https://rnv.hubtel.com" help:"Base URL for name queries."`
	ServicesURL   string `name:"services-url" env:"SERVICES_URL" default:"https://cs.hubtel.com" help:"Base URL for airtime and data."`
	BalanceURL    string `name:"balance-url" env:"BALANCE_URL" default:"https://trnf.hubtel.com" help:"Base URL for balances."`

	// UnpaidAfter is the age from which the status Unpaid of a collection or sale may mean a failure. Hubtel returns
	// Unpaid for open and for failed payments.
	UnpaidAfter time.Duration `name:"unpaid-after" env:"UNPAID_AFTER" default:"10m" help:"Age from which the status Unpaid of a collection or sale at Hubtel may count as a failure. At least 5m."`
	// StatusNotKnown and SendStatusNotKnown are the responses with which the two status hosts report an unknown
	// reference. Hubtel documents no such response. A response that is not configured here proves nothing about
	// the payment.
	StatusNotKnown     []Reply `name:"status-not-known" env:"STATUS_NOT_KNOWN" placeholder:"STATUS:CODE" help:"HTTP status and response code that mean Hubtel has no such collection, top-up or data package, such as 404:3000. May be repeated."`
	SendStatusNotKnown []Reply `name:"send-status-not-known" env:"SEND_STATUS_NOT_KNOWN" placeholder:"STATUS:CODE" help:"HTTP status and response code that mean Hubtel has no such payout, such as 404:3000. May be repeated."`
	// ServiceIDs replaces Hubtel's ids of single services, by our keys.
	ServiceIDs map[string]string `name:"service-id" env:"SERVICE_IDS" placeholder:"KEY=ID" help:"Hubtel's id of a service, such as mtn_airtime, telecel_data or mtn_broadband. May be repeated."`
}

// Enabled reports whether the operator configured Hubtel at all.
func (h Hubtel) Enabled() bool { return h.ClientID != "" }

// host is one of Hubtel's hosts, with the suffix of its variable's name.
type host struct{ name, url string }

func (h Hubtel) hosts() []host {
	return []host{{"RECEIVE_URL", h.ReceiveURL}, {"STATUS_URL", h.StatusURL}, {"SEND_URL", h.SendURL}, {"SEND_STATUS_URL", h.SendStatusURL},
		{"VERIFY_URL", h.VerifyURL}, {"SERVICES_URL", h.ServicesURL}, {"BALANCE_URL", h.BalanceURL}}
}

// Missing lists the settings that an account lacks.
func (h Hubtel) Missing() []string {
	var missing []string
	if h.ClientSecret == "" {
		missing = append(missing, "the Hubtel client secret: set MAKOLA_HUBTEL_CLIENT_SECRET")
	}
	if h.POSSales == "" && h.Prepaid == "" {
		missing = append(missing, "a Hubtel account: set MAKOLA_HUBTEL_POS_SALES, MAKOLA_HUBTEL_PREPAID or both")
	}
	if h.Commission != "" && h.POSSales == "" {
		missing = append(missing, "the POS sales id, which Hubtel needs for queries of airtime and data: set MAKOLA_HUBTEL_POS_SALES")
	}
	return missing
}

// Paystack has the credentials of a business at Paystack. Test and live money have the same host; the secret key
// decides which is used. The key also signs Paystack's events.
type Paystack struct {
	SecretKey Credential `name:"secret-key" env:"SECRET_KEY" hidden:"" help:"Paystack secret key, sk_live_... Empty disables Paystack."`
	URL       string     `name:"url" env:"URL" default:"https://api.paystack.co" help:"Base URL of Paystack's interface."`

	// VisibleAfter is the time after which Paystack shows a transfer. It was not measured, so it is zero and has
	// no setting. Only the simulator sets it.
	VisibleAfter time.Duration `kong:"-"`
}

// Enabled reports whether the operator configured Paystack at all.
func (p Paystack) Enabled() bool { return p.SecretKey != "" }

// Test reports whether the key belongs to Paystack's test mode, in which no money moves.
func (p Paystack) Test() bool { return strings.HasPrefix(p.SecretKey.Reveal(), "sk_test_") }

// Missing lists the settings that an account lacks.
func (p Paystack) Missing() []string {
	if strings.HasPrefix(p.SecretKey.Reveal(), "sk_live_") {
		return nil
	}
	return []string{"a live secret key of Paystack, which begins with sk_live_: set MAKOLA_PAYSTACK_SECRET_KEY"}
}

// PawaPay is an account with pawaPay. Its sandbox has a separate host.
type PawaPay struct {
	Token           Credential `name:"token" env:"TOKEN" hidden:"" help:"API token of pawaPay. Empty disables pawaPay."`
	URL             string     `name:"url" env:"URL" default:"https://api.pawapay.io" help:"Base URL of pawaPay's interface."`
	SignedCallbacks bool       `name:"signed-callbacks" env:"SIGNED_CALLBACKS" help:"Refuse callbacks of pawaPay without a signature. Set it once signed callbacks are switched on in its dashboard."`

	// VisibleAfter is the time after which pawaPay shows a payment. It was not measured, so it is zero and has no setting. Only
	// the simulator sets it.
	VisibleAfter time.Duration `kong:"-"`
}

// Enabled reports whether the operator configured pawaPay at all.
func (p PawaPay) Enabled() bool { return p.Token != "" }

// Test reports whether the account belongs to pawaPay's sandbox, in which no money moves.
func (p PawaPay) Test() bool { return strings.Contains(p.URL, "//api.sandbox.pawapay.io") }

// Missing lists the settings that an enabled account lacks.
func (p PawaPay) Missing() []string {
	if !p.Test() {
		return nil
	}
	return []string{"the production host of pawaPay: leave MAKOLA_PAWAPAY_URL unset, and set MAKOLA_PAWAPAY_TOKEN to a token of production"}
}

// Moolre is an account (wallet) with Moolre. Its sandbox has a host of its own and needs no keys.
type Moolre struct {
	User           string     `name:"user" env:"USER" help:"Moolre user name. Empty disables Moolre."`
	AccountNumber  string     `name:"account-number" env:"ACCOUNT_NUMBER" help:"Number of the Moolre account that collects and pays."`
	PrivateKey     Credential `name:"private-key" env:"PRIVATE_KEY" hidden:"" help:"Private API key of Moolre."`
	PublicKey      Credential `name:"public-key" env:"PUBLIC_KEY" hidden:"" help:"Public API key of Moolre."`
	CallbackSecret Credential `name:"callback-secret" env:"CALLBACK_SECRET" hidden:"" help:"Secret of the Moolre account, which its callbacks contain. Without it, only the secret address of the callbacks protects them."`
	URL            string     `name:"url" env:"URL" default:"https://api.moolre.com" help:"Base URL of Moolre's interface."`

	// TransferNotKnown are the responses with which a status query reports an unknown payout. Moolre documents none.
	TransferNotKnown []Reply `name:"transfer-not-known" env:"TRANSFER_NOT_KNOWN" placeholder:"STATUS:CODE" help:"HTTP status and response code that mean Moolre has no such payout, such as 200:SS07. May be repeated."`

	// VisibleAfter is the time after which Moolre shows a payment. It was not measured, so it is zero and has no setting. Only the
	// simulator sets it.
	VisibleAfter time.Duration `kong:"-"`
}

// Enabled reports whether the operator configured Moolre at all.
func (m Moolre) Enabled() bool { return m.User != "" }

// Test reports whether the account belongs to Moolre's sandbox, in which no money moves.
func (m Moolre) Test() bool { return strings.Contains(m.URL, "//sandbox.moolre.com") }

// Missing lists the settings that an enabled account lacks.
func (m Moolre) Missing() []string {
	var missing []string
	if m.Test() {
		missing = append(missing, "the production host of Moolre: leave MAKOLA_MOOLRE_URL unset")
	}
	if m.AccountNumber == "" || m.PrivateKey == "" || m.PublicKey == "" {
		missing = append(missing, "a Moolre account and its keys: set MAKOLA_MOOLRE_ACCOUNT_NUMBER, MAKOLA_MOOLRE_PRIVATE_KEY and MAKOLA_MOOLRE_PUBLIC_KEY")
	}
	return missing
}

// Reply is an HTTP response with a documented meaning: its status with the code in its body.
type Reply struct {
	Status int
	Code   string
}

// UnmarshalText parses the result of String. It refuses a status about the caller and a server error, because
// they prove nothing about a payment.
func (r *Reply) UnmarshalText(text []byte) error {
	status, code, _ := strings.Cut(string(text), ":")
	n, err := strconv.Atoi(strings.TrimSpace(status))
	code = strings.TrimSpace(code)
	if err != nil || code == "" || n < 200 || n/100 == 3 || n >= 500 || n == 401 || n == 403 || n == 429 {
		return fmt.Errorf("%q is not an HTTP status and a response code such as 404:3000", text)
	}
	r.Status, r.Code = n, code
	return nil
}

// String returns the reply in the form of the setting, such as 404:3000.
func (r Reply) String() string { return strconv.Itoa(r.Status) + ":" + r.Code }
