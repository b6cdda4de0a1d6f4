package hubtel

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// order is our request, with which responses are compared.
type order struct {
	reference string
	amount    money.Pesewas
	product   product
}

// product is the interface of Hubtel to which an order was sent.
type product int

const (
	collection product = iota
	payout
	sale // airtime or data: the commission services
)

// envelope is the outer object of every response and callback. Hubtel's hosts write the member names in different
// cases, which encoding/json accepts.
type envelope struct {
	ResponseCode text
	Message      text
	Data         json.RawMessage
}

// payload has all members of Data that Makola uses, for all hosts.
type payload struct {
	ClientReference   text
	TransactionID     text `json:"TransactionId"`
	Description       text
	Status            text // collections and sales: Paid, Unpaid, Refunded
	IsFulfilled       *bool
	TransactionStatus text // payouts: success, pending, failed
	CurrencyCode      text
	CustomerNumber    text
	RecipientName     text
	Amount            amount
	Charges           amount
	AmountAfter       amount `json:"AmountAfterCharges"`
	Fees              amount
	IsRegistered      *bool
	Name              text
}

// payload parses Data. It returns an empty payload if Data is not an object.
func (e envelope) payload() payload {
	var p payload
	if json.Unmarshal(e.Data, &p) != nil {
		return payload{}
	}
	return p
}

// text is a JSON string, or the digits of a JSON number.
type text string

// UnmarshalJSON accepts any value, and reads other values than strings and numbers as empty. One unexpected member
// then does not make the whole response unreadable.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = text(s)
	} else if len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') {
		*t = text(b)
	}
	return nil
}

// amount is an amount in cedis, from a JSON number or a string that contains a number.
type amount struct {
	told    bool
	exact   bool // the amount is a whole number of pesewas
	pesewas money.Pesewas
}

// UnmarshalJSON reads the amount. It clears exact for a value that is not an amount.
func (a *amount) UnmarshalJSON(b []byte) error {
	*a = amount{}
	s := strings.Trim(string(b), `" `)
	if s == "" || s == "null" {
		return nil
	}
	a.told = true
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > 1e12 {
		return nil
	}
	nearest := math.Round(v * 100)
	a.pesewas, a.exact = money.Pesewas(nearest), math.Abs(v*100-nearest) < 1e-4
	return nil
}

// refusal describes a code that Hubtel uses for a refusal. If reason is empty, the message determines the
// reason. words identify the refusal by its message, because the code may be missing.
type refusal struct {
	reason string
	words  string
}

// refusals are Hubtel's final refusals. Sources: the code tables of Receive Money and Send Money (December 2025), of
// the verification interface (February 2026) and of the mobile money codes by network.
var refusals = map[string]refusal{
	"2000": {},
	"2001": {},
	"2050": {words: "insufficient funds"},
	"2051": {words: "not registered"}, // MTN
	"2200": {words: "not registered"}, // Telecel
	"2201": {words: "not registered"},
	"3050": {words: "not registered"},
	"4000": {reason: provider.ReasonInvalidRequest},
	"4010": {reason: provider.ReasonInvalidRequest},
	"4070": {reason: provider.ReasonSetup}, // fees not set
	"4075": {reason: provider.ReasonFloat}, // our balance is too low
	"4101": {reason: provider.ReasonSetup}, // scope or keys
	"4103": {reason: provider.ReasonSetup}, // channel not allowed
	"4105": {reason: provider.ReasonSetup}, // permission
}

// final reports whether a code is a final refusal of an order. The commission services use 4000 also for temporary
// failures ("try again later").
func final(code string, p product) bool {
	_, listed := refusals[code]
	return listed && !(p == sale && code == "4000")
}

// finalRefusals are the refusals that concern the payment when they are in a status response. Other refusals may
// concern the query.
var finalRefusals = map[string]bool{"2000": true, "2001": true, "2050": true, "2051": true, "2200": true, "2201": true, "3050": true, "4070": true, "4075": true}

// unclear are the codes with which Hubtel reports that it does not know the outcome.
var unclear = map[string]bool{"0005": true, "5000": true}

// failures maps parts of messages to reasons. The first match counts.
var failures = []struct {
	words             *regexp.Regexp
	collecting, other string
}{
	{regexp.MustCompile(`\bpin\b`), provider.ReasonPIN, provider.ReasonRefused},
	{regexp.MustCompile(`insufficient|not enough|low balance`), provider.ReasonFunds, provider.ReasonFloat},
	{regexp.MustCompile(`limit|counter`), provider.ReasonLimit, provider.ReasonLimit},
	{regexp.MustCompile(`not found|not registered|invalid number|\bfr[in]\b`), provider.ReasonPayerNotFound, provider.ReasonPayeeNotFound},
	{regexp.MustCompile(`barred|blocked|suspended|inactive`), provider.ReasonBarred, provider.ReasonBarred},
	{regexp.MustCompile(`declin|reject|cancel`), provider.ReasonDeclined, provider.ReasonRefused},
	{regexp.MustCompile(`time ?out|timed out|expired|no response|session`), provider.ReasonExpired, provider.ReasonRefused},
}

func reason(code, message string, p product) string {
	r := refusals[code]
	if r.reason != "" {
		return r.reason
	}
	if r.words != "" {
		message = r.words
	}
	message = strings.ToLower(message)
	for _, f := range failures {
		if f.words.MatchString(message) {
			if p == collection {
				return f.collecting
			}
			return f.other
		}
	}
	return provider.ReasonRefused
}

// words returns Hubtel's texts about the result, which may be in the envelope or the payload.
func (e envelope) words(p payload) string {
	if p.Description == "" || p.Description == e.Message {
		return provider.Clip(string(e.Message))
	}
	return provider.Clip(strings.TrimSpace(string(e.Message) + " " + string(p.Description)))
}

// read returns the envelope of a response. It returns false if there is none.
func read(a provider.Answer) (envelope, bool) {
	var e envelope
	if json.Unmarshal(bytes.TrimSpace(a.Body), &e) != nil || e.ResponseCode == "" {
		return envelope{}, false
	}
	return e, true
}

// submitted returns the outcome of the response to a request that moves money. Below HTTP 500, a documented code is a
// clear refusal. Every other 4xx is a refusal that is not Clear. If the response is neither a refusal nor an
// acceptance, the outcome is Unknown, because Hubtel may have accepted the request.
func submitted(a provider.Answer, want order) provider.Outcome {
	if o, done := provider.Undelivered(a); done {
		return o
	}
	if a.Status >= 500 {
		return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}
	}
	e, ok := read(a)
	if !ok && a.Status >= 400 {
		return provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonRefused, Code: strconv.Itoa(a.Status), Message: "no response code"}
	}
	if !ok {
		return provider.Unreadable(a, "no response code")
	}
	p := e.payload()
	o := provider.Outcome{UpstreamID: provider.Clip(string(p.TransactionID)), Code: string(e.ResponseCode), Message: e.words(p)}
	if p.ClientReference != "" && !provider.SameReference(string(p.ClientReference), want.reference) {
		o.Class, o.Reason = provider.Unknown, provider.ReasonMismatch
		return o
	}
	switch code := string(e.ResponseCode); {
	case code == "0001", code == "0000":
		// A success is final only in the response to a query, which also contains the charges.
		o.Class, o.State = provider.Accepted, provider.Pending
	case final(code, want.product):
		o.Class, o.Clear, o.Reason = provider.Rejected, true, reason(code, o.Message, want.product)
	case a.Status >= 400 && !unclear[code]:
		o.Class, o.Reason = provider.Rejected, reason(code, o.Message, want.product)
	default:
		o.Class, o.Reason = provider.Unknown, provider.ReasonUnknown
	}
	return o
}

// answered reads the envelope of a status response. If ok is false, the outcome is complete. Otherwise the outcome
// has the ids, texts and echo, and the caller sets the rest. The caller also checks whether the echo is about the
// queried payment.
//
// Hubtel documents no response for an unknown reference. A response counts as one only if the operator configured
// it in notKnown, and if it names no payment.
func answered(a provider.Answer, want order, notKnown []config.Reply) (o provider.Outcome, e envelope, p payload, ok bool) {
	e, whole := envelope{}, false
	if a.Err == nil {
		e, whole = read(a)
		p = e.payload()
	}
	if whole && p.ClientReference == "" && slices.Contains(notKnown, config.Reply{Status: a.Status, Code: string(e.ResponseCode)}) {
		return provider.Outcome{Reason: provider.ReasonUnknown, Code: string(e.ResponseCode), Message: e.words(p), NotFound: true}, e, p, false
	}
	if o, done := provider.StatusUnanswered(a); done {
		if whole {
			o = configurationReply(o, a, e)
		}
		return o, e, p, false
	}
	if !whole {
		return provider.Unreadable(a, "no response code"), e, p, false
	}
	o = provider.Outcome{UpstreamID: provider.Clip(string(p.TransactionID)), Code: string(e.ResponseCode), Message: e.words(p)}
	if p.ClientReference == "" {
		// The refusal concerns the query, or its subject is unclear. So it proves nothing about the payment.
		o.Reason = provider.ReasonUnknown
		return configurationReply(o, a, e), e, p, false
	}
	o.Name = string(p.RecipientName)
	o.Echo = echo(p, want)
	return o, e, p, true
}

// configurationReply adds to an outcome the response in the form of a Reply, and Hubtel's text. An operator may copy
// the Reply to the configuration.
func configurationReply(o provider.Outcome, a provider.Answer, e envelope) provider.Outcome {
	o.Code = provider.Clip(config.Reply{Status: a.Status, Code: string(e.ResponseCode)}.String())
	o.Message = e.words(e.payload())
	return o
}

// echo returns the payment as Hubtel repeats it. If the payer pays the charges, Hubtel's Amount includes them, and
// AmountAfterCharges is our amount.
func echo(p payload, want order) *provider.Echo {
	e := &provider.Echo{Reference: string(p.ClientReference), Currency: string(p.CurrencyCode), Party: string(p.CustomerNumber)}
	if p.Amount.told {
		e.AmountTold, e.Amount = true, p.Amount.pesewas
		if !p.Amount.exact {
			e.Amount = -1
		}
		if want.product == collection && p.AmountAfter.exact && p.AmountAfter.pesewas == want.amount && p.Charges.exact && e.Amount == want.amount+p.Charges.pesewas {
			e.Amount = want.amount
		}
	}
	return e
}

// notFulfilled is the code of a purchase that was paid and is not delivered yet.
const notFulfilled = "paid_not_fulfilled"

// paid returns the outcome of the status of a collection or sale. The response code is 0000 even for failed payments.
// The member status has the outcome, and isFulfilled reports whether a purchase was delivered. Open payments and
// failed payments may both have the status Unpaid.
func paid(a provider.Answer, want order, notKnown []config.Reply) provider.Outcome {
	o, e, p, ok := answered(a, want, notKnown)
	if !ok {
		return o
	}
	code := string(e.ResponseCode)
	switch status := strings.ToLower(string(p.Status)); {
	case status == "paid" && code == "0000" && want.product == sale && (p.IsFulfilled == nil || !*p.IsFulfilled):
		o.Class, o.State = provider.Accepted, provider.Pending
		o.Code, o.Message = notFulfilled, "paid, and not fulfilled yet"
	case status == "paid" && code == "0000":
		o.Class, o.State = provider.Accepted, provider.Success
		o.Fee, o.FeeKnown = fee(p, want)
	case status == "refunded" && code == "0000":
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonReversed
		if want.product == sale { // not delivered, and refunded to us
			o.Reason = provider.ReasonRefused
		}
	case status == "unpaid":
		o.Class, o.State, o.Unpaid = provider.Accepted, provider.Pending, true
		o.Reason = unpaidReason(code, o.Message, want.product)
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// unpaidReason returns the reason of a payment that fails with the status Unpaid.
func unpaidReason(code, message string, p product) string {
	switch {
	case finalRefusals[code]: // the code of a callback; Hubtel documents only 0000 for a query
		return reason(code, message, p)
	case p == collection:
		return provider.ReasonExpired
	default:
		return provider.ReasonRefused
	}
}

// fee returns Hubtel's fee. It is part of a payer's amount, or added to a purchase.
func fee(p payload, want order) (money.Pesewas, bool) {
	if want.product == collection && p.AmountAfter.told {
		fee := want.amount - p.AmountAfter.pesewas
		return max(fee, 0), fee >= 0
	}
	return p.Charges.pesewas, p.Charges.told && p.Charges.pesewas >= 0
}

// disbursed returns the outcome of the status of a payout.
func disbursed(a provider.Answer, want order, notKnown []config.Reply) provider.Outcome {
	o, e, p, ok := answered(a, want, notKnown)
	if !ok {
		return o
	}
	code := string(e.ResponseCode)
	if code != "success" && code != "0000" && !finalRefusals[code] {
		o.Reason = provider.ReasonUnknown
		return o
	}
	switch status := strings.ToLower(string(p.TransactionStatus)); {
	case status == "success" && !finalRefusals[code]:
		o.Class, o.State = provider.Accepted, provider.Success
		o.Fee, o.FeeKnown = p.Fees.pesewas, p.Fees.told && p.Fees.pesewas >= 0
	case status == "failed":
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, reason(code, o.Message, payout)
	case status == "pending":
		o.Class, o.State = provider.Accepted, provider.Pending
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// asked reads the envelope of the response to a query that moves no money.
func asked(a provider.Answer) (envelope, provider.Outcome, bool) {
	if o, done := provider.Undelivered(a); done {
		return envelope{}, o, false
	}
	if a.Status >= 500 {
		return envelope{}, provider.Outcome{Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}, false
	}
	e, ok := read(a)
	if !ok {
		return e, provider.Unreadable(a, "no response code"), false
	}
	return e, provider.Outcome{Code: string(e.ResponseCode), Message: e.words(payload{})}, true
}

// walletName returns the registered name of a wallet. HTTP 424 means that the mobile network does not respond now,
// whatever the code is.
func walletName(a provider.Answer) (string, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return "", o
	}
	p := e.payload()
	unregistered := p.IsRegistered != nil && !*p.IsRegistered ||
		o.Code == "3050" || a.Status == http.StatusNotFound && (o.Code == "3000" || o.Code == "2001")
	return named(o, string(p.Name), unregistered && a.Status != http.StatusFailedDependency)
}

// bankName returns the name of a bank account's holder. Hubtel reports an account that it could not verify with HTTP
// 400 and code 2001.
func bankName(a provider.Answer) (string, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return "", o
	}
	unknown := o.Code == "2001" || o.Code == "3000" || o.Code == "4000"
	return named(o, string(e.payload().Name), unknown && a.Status != http.StatusFailedDependency)
}

// named completes the outcome of a name query: the name is known, the account is unknown, or the caller may try
// again.
func named(o provider.Outcome, name string, unknown bool) (string, provider.Outcome) {
	name = strings.TrimSpace(provider.Clip(name))
	switch {
	case unknown:
		o.Class, o.Reason = provider.Rejected, provider.ReasonPayeeNotFound
		return "", o
	case o.Code == "0000" && name != "":
		o.Class, o.State, o.Name = provider.Accepted, provider.Success, name
		return name, o
	default:
		o.Class, o.Reason = provider.Unknown, provider.ReasonUnknown
		return "", o
	}
}

// row is one entry in the response to a query of a service: an offer, or information about a number.
type row struct {
	Display text
	Value   text
	Amount  amount
}

// offers returns the packages for a number. It leaves out entries that cannot be bought directly.
func offers(a provider.Answer) ([]provider.Offer, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return nil, o
	}
	var rows []row
	if o.Code != "0000" || json.Unmarshal(e.Data, &rows) != nil {
		o.Reason = provider.ReasonUnknown
		if _, refused := refusals[o.Code]; refused {
			o.Class, o.Reason = provider.Rejected, reason(o.Code, o.Message, sale)
		}
		return nil, o
	}
	list := make([]provider.Offer, 0, len(rows))
	for _, r := range rows {
		if r.Value != "" && r.Amount.exact && r.Amount.pesewas > 0 {
			list = append(list, provider.Offer{Display: provider.Clip(string(r.Display)), Value: string(r.Value), Amount: r.Amount.pesewas})
		}
	}
	o.Class, o.State = provider.Accepted, provider.Success
	return list, o
}

// holderName returns the name of a number's holder, or "" if it is missing.
func holderName(a provider.Answer) string {
	e, o, ok := asked(a)
	var rows []row
	if !ok || o.Code != "0000" || json.Unmarshal(e.Data, &rows) != nil {
		return ""
	}
	for _, r := range rows {
		if strings.EqualFold(strings.TrimSpace(string(r.Display)), "name") {
			return strings.TrimSpace(provider.Clip(string(r.Value)))
		}
	}
	return ""
}

// balance returns the balance of one of our accounts.
func balance(a provider.Answer) (money.Pesewas, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return 0, o
	}
	held := e.payload().Amount
	if o.Code != "0000" || !held.told || !held.exact {
		o.Reason = provider.ReasonUnknown
		return 0, o
	}
	o.Class, o.State = provider.Accepted, provider.Success
	return held.pesewas, o
}
