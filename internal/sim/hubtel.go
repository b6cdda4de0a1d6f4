package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
)

// The account and credentials that the simulated Hubtel knows.
const (
	hubtelID      = "51abcd01"
	hubtelSecret  = "51a0c0ffee0000000000000000000003"
	hubtelPOS     = "2018001"
	hubtelPrepaid = "2018002"
	hubtelMaxBody = 64 << 10
)

// HubtelConfig is the configuration of an adapter that talks to the Hubtel of
// a simulator reached at base, such as http://127.0.0.1:8080.
func HubtelConfig(base string) config.Hubtel {
	base = strings.TrimSuffix(base, "/") + "/" + Hubtel
	return config.Hubtel{
		ClientID: hubtelID, ClientSecret: hubtelSecret, POSSales: hubtelPOS, Prepaid: hubtelPrepaid, Commission: hubtelPrepaid,
		ReceiveURL: base + "/rmp", StatusURL: base + "/api-txnstatus", SendURL: base + "/smp", SendStatusURL: base + "/smrsc",
		VerifyURL: base + "/rnv", ServicesURL: base + "/cs", BalanceURL: base + "/trnf",
		UnpaidAfter:    10 * time.Minute,
		StatusNotKnown: hubtelNotKnown, SendStatusNotKnown: hubtelNotKnown,
		ServiceIDs: map[string]string{"mtn_broadband": hubtelBroadband},
	}
}

// hubtelNotKnown is what the simulated status hosts say of a reference that they
// do not have: an invention, because Hubtel documents nothing, in the words that
// its verification interface has for it.
var hubtelNotKnown = []config.Reply{{Status: http.StatusNotFound, Code: "3000"}}

// hubtel is Hubtel: seven hosts as seven first path elements, one Basic
// credential, a list of addresses that may call at all.
type hubtel struct {
	s       *Sim
	mux     *http.ServeMux
	allowed []netip.Prefix // empty: everybody

	mu   sync.Mutex
	used map[string]bool // references refused at once: used up all the same
}

func newHubtel(s *Sim) wire {
	h := &hubtel{s: s, mux: http.NewServeMux(), allowed: s.opts.HubtelAllowed, used: map[string]bool{}}
	for pattern, serve := range map[string]struct {
		op      string
		account string
		serve   func(*call)
	}{
		"POST /rmp/merchantaccount/merchants/{account}/receive/mobilemoney": {OpCollect, hubtelPOS, h.collect},
		"GET /api-txnstatus/transactions/{account}/status":                  {OpCollectStatus, hubtelPOS, h.transactionStatus},
		"POST /smp/api/merchants/{account}/send/mobilemoney":                {OpDisburse, hubtelPrepaid, h.sendWallet},
		"POST /smp/api/merchants/{account}/send/bank/gh/{bank}":             {OpDisburse, hubtelPrepaid, h.sendBank},
		"GET /smrsc/api/merchants/{account}/transactions/status":            {OpDisburseStatus, hubtelPrepaid, h.sendStatus},
		"GET /rnv/v2/merchantaccount/merchants/{account}/mobilemoney/verify": {
			OpWalletName, hubtelPOS, h.walletName},
		"GET /rnv/v2/merchantaccount/merchants/{account}/bank/verify/{bank}/{number}": {
			OpBankName, hubtelPOS, h.bankName},
		"GET /cs/commissionservices/{account}/" + hubtelSIMName: {OpWalletName, hubtelPOS, h.simName},
		"GET /cs/commissionservices/{account}/{service}":        {OpOffers, hubtelPrepaid, h.offers},
		"POST /cs/commissionservices/{account}/{service}":       {OpTopUp, hubtelPrepaid, h.sell},
		"GET /trnf/api/inter-transfers/{account}":               {OpBalance, hubtelPOS, h.balance},
		"GET /trnf/api/inter-transfers/prepaid/{account}":       {OpBalance, hubtelPrepaid, h.balance},
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			h.guarded(w, r, h.operation(serve.op, r), serve.account, serve.serve)
		})
	}
	return wire{serve: h.mux, callback: h.callback, says: hubtelSaysOf}
}

// operation tells airtime from data, which share their paths, and from
// collections, with which they share the status.
func (h *hubtel) operation(op string, r *http.Request) string {
	switch op {
	case OpTopUp:
		if hubtelServices[r.PathValue("service")].kind == Bundle {
			return OpBundle
		}
	case OpCollectStatus:
		e, _ := h.s.status(Hubtel, r.URL.Query().Get("clientReference"))
		switch e.Kind {
		case TopUp:
			return OpTopUpStatus
		case Bundle:
			return OpBundleStatus
		}
	}
	return op
}

// guarded lets a request through that comes from a listed address with the
// right credential and account. An address that is not listed meets the
// gateway, which speaks HTML.
func (h *hubtel) guarded(w http.ResponseWriter, r *http.Request, op, account string, serve func(*call)) {
	c, ok := h.s.begin(w, r, Hubtel, op)
	if !ok {
		return
	}
	user, secret, _ := r.BasicAuth()
	switch {
	case !h.listed(r.RemoteAddr):
		c.write(http.StatusForbidden, "text/html", []byte("<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>\r\n<center><h1>403 Forbidden</h1></center>\r\n</body>\r\n</html>\r\n"))
	case user != hubtelID || secret != hubtelSecret:
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"Message":"Unauthorized"}`))
	case r.PathValue("account") != account:
		c.hubtelSays(http.StatusBadRequest, "4101", "The business isn't fully set up to do this.", nil)
	default:
		serve(c)
	}
}

func (h *hubtel) listed(remote string) bool {
	if len(h.allowed) == 0 {
		return true
	}
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, p := range h.allowed {
		if p.Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// hubtelAnswer is the envelope of every answer and callback. The hosts of
// collection statuses, verification and balances write small first letters.
type hubtelAnswer struct {
	Message      string `json:"Message"`
	ResponseCode string `json:"ResponseCode"`
	Data         any    `json:"Data"`
}

type hubtelSmallAnswer struct {
	Message      string `json:"message"`
	ResponseCode string `json:"responseCode"`
	Data         any    `json:"data"`
}

// hubtelPlainAnswer is the envelope of payouts, and of the callbacks of sales.
type hubtelPlainAnswer struct {
	ResponseCode string `json:"ResponseCode"`
	Data         any    `json:"Data"`
}

// hubtelEnvelope is the envelope of an operation's answers.
func hubtelEnvelope(op, message, code string, data any) any {
	switch op {
	case OpDisburse, OpDisburseStatus:
		return hubtelPlainAnswer{code, data}
	case OpCollectStatus, OpTopUpStatus, OpBundleStatus, OpBankName, OpBalance:
		return hubtelSmallAnswer{message, code, data}
	default:
		return hubtelAnswer{message, code, data}
	}
}

// hubtelSaysOf renders a code, with the order that it is about.
func hubtelSaysOf(op, code string, o Order) (status int, body []byte) {
	if code == "" {
		code = "2001"
	}
	const message = "Transaction failed due to an error with the Payment Processor"
	var data any
	if o.Reference != "" {
		data = hubtelData(Entry{Order: o, Status: Failed, Reason: Refused})
	}
	return http.StatusOK, hubtelJSON(hubtelEnvelope(op, message, code, data))
}

// hubtelSays answers what no fault takes away: it enters and moves nothing.
func (c *call) hubtelSays(status int, code, message string, data any) {
	c.write(status, "application/json", hubtelJSON(hubtelAnswer{message, code, data}))
}

func hubtelJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values only
	}
	return b
}

// cedis is an amount as Hubtel writes it, a JSON number.
func cedis(p money.Pesewas) json.RawMessage { return json.RawMessage(p.String()) }

// hubtelBody is every member that a request may have. encoding/json takes the
// names in any case, as Hubtel does.
type hubtelBody struct {
	CustomerMsisdn     string
	RecipientMsisdn    string
	RecipientName      string
	BankAccountNumber  string
	Destination        string
	Channel            string
	Amount             json.Number
	PrimaryCallbackURL string
	CallbackURL        string
	Description        string
	ClientReference    string
	Extradata          struct{ Bundle string }
}

// body reads a request that moves money and checks what all of them share.
// ok is false when the request was answered.
func (c *call) hubtelBody() (b hubtelBody, amount money.Pesewas, ok bool) {
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, hubtelMaxBody))
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if b.CallbackURL == "" {
		b.CallbackURL = b.PrimaryCallbackURL
	}
	wrong := ""
	if err != nil {
		wrong = "the body is no JSON"
	}
	if amount, err = hubtelAmount(b.Amount); wrong == "" && (err != nil || amount <= 0) {
		wrong = "Amount must be positive with two decimals"
	}
	if wrong == "" && b.CallbackURL == "" {
		wrong = "a callback URL is required"
	}
	if wrong == "" && (b.ClientReference == "" || len(b.ClientReference) > 36 || !alphanumeric(b.ClientReference)) {
		wrong = "ClientReference must be alphanumeric with at most 36 characters"
	}
	if wrong == "" && strings.ContainsAny(b.Description, "&%^") {
		wrong = "Description has invalid characters"
	}
	if wrong != "" {
		c.hubtelInvalid(wrong)
		return b, 0, false
	}
	return b, amount, true
}

func (c *call) hubtelInvalid(what string) {
	c.hubtelSays(http.StatusBadRequest, "4000", "Validation errors. Something is not quite right with this request: "+what, nil)
}

// hubtelAmount reads a JSON number with at most two decimals, of which more
// may be zero.
func hubtelAmount(n json.Number) (money.Pesewas, error) {
	s := string(n)
	if whole, rest, dotted := strings.Cut(s, "."); dotted && len(rest) > 2 && strings.Trim(rest[2:], "0") == "" {
		s = whole + "." + rest[:2]
	}
	return money.Parse(s)
}

func alphanumeric(s string) bool {
	for _, r := range s {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return true
}

// place enters an order and answers what keeps it out. A reference is used up
// by its first request, whatever became of that one, and a second is refused
// like any other bad request: Hubtel has no words of its own for it.
func (h *hubtel) place(c *call, o Order) (Entry, bool) {
	h.mu.Lock()
	used := h.used[plain(o.Reference)]
	h.mu.Unlock()
	if used {
		c.hubtelInvalid("ClientReference")
		return Entry{}, false
	}
	p, ok := c.order(o)
	switch {
	case !ok:
		return Entry{}, false
	case p.Existed:
		c.hubtelInvalid("ClientReference")
	case p.Refused != "":
		h.mu.Lock()
		h.used[plain(o.Reference)] = true
		h.mu.Unlock()
		if f := c.hit.of(RefuseOutright); f.Answer != "" {
			c.says(f.Answer, o)
			break
		}
		code, message := hubtelCode(p.Refused, o.Kind)
		c.write(http.StatusOK, "application/json", hubtelJSON(hubtelEnvelope(c.op, message, code, hubtelData(Entry{Order: o, Status: Failed, Reason: p.Refused}))))
	default:
		return p.Entry, true
	}
	return Entry{}, false
}

// hubtelCode is Hubtel's code and sentence for a reason.
func hubtelCode(r Reason, kind Kind) (code, message string) {
	switch r {
	case NotRegistered:
		if kind == Payout {
			return "3050", "Mobile Number is not registered for Mobile Payment"
		}
		return "2001", "Account holder with FRI not found"
	case FloatLow:
		return "4075", "Insufficient prepaid balance."
	case Declined:
		return "2001", "The customer declined the payment request"
	case Expired:
		return "2001", "The payment request timed out: USSD session timeout"
	case NoFunds:
		return "2001", "The customer has insufficient funds"
	case WrongPIN:
		return "2001", "The customer entered an invalid PIN"
	case OverLimit:
		return "2001", "The mobile money user has reached counter or balance limits"
	case Barred:
		return "2001", "The account holder is barred"
	default:
		return "2001", "Transaction failed due to an error with the Payment Processor"
	}
}

// told is the code and sentence of an entry as it stands.
func hubtelTold(e Entry) (code, message string) {
	switch e.Status {
	case Success:
		return "0000", "success"
	case Pending:
		return "0001", "Transaction pending. Expect callback request for final state"
	default:
		return hubtelCode(e.Reason, e.Kind)
	}
}

// hubtelID is the id that Hubtel gives an entry.
func (e Entry) hubtelID() string { return fmt.Sprintf("51a0%028x", e.Number) }

// hubtelExternal is the id that the network gives it once it is final.
func (e Entry) hubtelExternal() string {
	if e.Status == Pending || e.Number == 0 {
		return ""
	}
	return strconv.FormatInt(2_000_000_000+e.Number, 10)
}

// hubtelData is what the answer to an order holds, as each of the three
// interfaces documents it: while it is open, and when it was refused.
func hubtelData(e Entry) map[string]any {
	_, message := hubtelTold(e)
	d := map[string]any{"TransactionId": "", "ClientReference": e.Reference, "Amount": cedis(e.Amount)}
	if e.Number > 0 {
		d["TransactionId"] = e.hubtelID()
	}
	switch e.Kind {
	case Collection:
		d["Description"], d["Charges"], d["DeliveryFee"] = e.Text, cedis(e.Fee), cedis(0)
		d["AmountAfterCharges"], d["AmountCharged"] = cedis(e.Amount-e.Fee), cedis(e.Amount)
		if e.Status == Failed {
			d["Description"] = message
		}
	case Payout:
		d["Description"], d["ExternalTransactionId"], d["Charges"], d["AmountDebited"] = message, "", cedis(0), cedis(0)
		d["Meta"], d["RecipientName"] = nil, nil
	default:
		d["Meta"] = map[string]string{"Commission": e.Commission.String()}
	}
	return d
}

// callback is what Hubtel sends when an entry is final, by POST and unsigned.
func (h *hubtel) callback(e Entry) Callback {
	code, message := hubtelTold(e)
	d := map[string]any{
		"TransactionId": e.hubtelID(), "ClientReference": e.Reference, "Description": message, "Amount": cedis(e.Amount),
		"Charges": cedis(e.Fee), "ExternalTransactionId": e.hubtelExternal(),
	}
	var body any = hubtelPlainAnswer{code, d}
	if e.Kind == Collection {
		d["AmountAfterCharges"], d["AmountCharged"] = cedis(e.Amount-e.Fee), cedis(e.Amount)
		d["OrderId"], d["PaymentDate"] = e.hubtelID(), e.Settled.Format(time.RFC3339Nano)
		word := "failed"
		if e.Status == Success {
			word = "success"
		}
		body = hubtelAnswer{word, code, d}
	} else {
		debited := money.Pesewas(0)
		if e.Status == Success {
			debited = e.Amount + e.Fee
		}
		d["AmountDebited"], d["Meta"], d["RecipientName"] = cedis(debited), nil, nil
		if e.Kind != Payout {
			d["Meta"] = map[string]string{"Commission": e.Commission.String()}
		} else if given, family, ok := Name(e.Party); ok && e.Status == Success {
			d["RecipientName"] = given + " " + family
		}
	}
	return Callback{Method: http.MethodPost, URL: e.CallbackURL, Header: http.Header{"Content-Type": {"application/json"}}, Body: hubtelJSON(body)}
}
