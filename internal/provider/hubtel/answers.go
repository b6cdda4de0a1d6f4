package hubtel

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// order is what we asked for, against which answers are read.
type order struct {
	reference  string
	amount     money.Pesewas
	collecting bool
}

// envelope is the outside of every answer and callback. Hubtel's hosts spell
// the members in different cases; encoding/json does not mind.
type envelope struct {
	ResponseCode text
	Message      text
	Data         json.RawMessage
}

// payload is every member of Data that is read, over all hosts.
type payload struct {
	ClientReference   text
	TransactionID     text `json:"TransactionId"`
	Description       text
	Status            text // collections: Paid, Unpaid, Refunded
	TransactionStatus text // payouts: success, pending, failed
	CurrencyCode      text
	CustomerNumber    text
	RecipientName     text
	Amount            amount
	Charges           amount
	AmountAfter       amount `json:"AmountAfterCharges"`
	Fees              amount
	Meta              struct{ Commission amount }
	IsRegistered      *bool
	Name              text
}

// payload reads Data; what is no object holds nothing.
func (e envelope) payload() payload {
	var p payload
	if json.Unmarshal(e.Data, &p) != nil {
		return payload{}
	}
	return p
}

// text is a JSON string, or a number as its digits.
type text string

// UnmarshalJSON takes what is no text as empty: one odd member must not make
// a whole answer unreadable.
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

// amount is an amount of cedis, as a JSON number or a text with one.
type amount struct {
	told    bool
	exact   bool // a whole number of pesewas
	pesewas money.Pesewas
}

// UnmarshalJSON reads the amount; what is told and is none is not exact.
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

// refusals are the codes that are a definite no, with their reasons; an empty
// one is in the message. Hubtel documents no others, and a code that is not
// here is not understood.
var refusals = map[string]string{
	"2001": "",
	"3050": "not registered",
	"4000": provider.ReasonInvalidRequest,
	"4070": provider.ReasonSetup, // fees not set
	"4075": provider.ReasonFloat, // our balance is too low
	"4101": provider.ReasonSetup, // scope or keys
	"4103": provider.ReasonSetup, // channel not allowed
}

// lastWords are the refusals that, in a status answer, speak of the payment.
// The others may as well speak of the question.
var lastWords = map[string]bool{"2001": true, "3050": true, "4070": true, "4075": true}

// silent are the codes that say nothing about a reference when no payment
// comes with them; any other then means that there is none.
var silent = map[string]bool{"0000": true, "success": true, "0001": true, "0005": true, "5000": true, "4070": true, "4101": true, "4103": true}

// failures finds the reason of a 2001 in its message, the first that fits.
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

func reason(code, message string, collecting bool) string {
	r := refusals[code]
	if r != "" && r != "not registered" {
		return r
	}
	message = strings.ToLower(message)
	if r == "not registered" {
		message = r
	}
	for _, f := range failures {
		if f.words.MatchString(message) {
			if collecting {
				return f.collecting
			}
			return f.other
		}
	}
	return provider.ReasonRefused
}

// words joins what Hubtel says, which it puts in either place.
func (e envelope) words(p payload) string {
	if p.Description == "" || p.Description == e.Message {
		return provider.Clip(string(e.Message))
	}
	return provider.Clip(strings.TrimSpace(string(e.Message) + " " + string(p.Description)))
}

// read gives the envelope of an answer, or false when it has none.
func read(a provider.Answer) (envelope, bool) {
	var e envelope
	if json.Unmarshal(bytes.TrimSpace(a.Body), &e) != nil || e.ResponseCode == "" {
		return envelope{}, false
	}
	return e, true
}

// submitted reads the answer to a request that moves money. Only the
// documented codes below HTTP 500 are a no; whatever else is not an acceptance
// is Unknown, because the request may have been taken.
func submitted(a provider.Answer, want order) provider.Outcome {
	if o, done := provider.Undelivered(a); done {
		return o
	}
	if a.Status >= 500 {
		return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}
	}
	e, ok := read(a)
	if !ok {
		return provider.Unreadable(a, "no response code")
	}
	p := e.payload()
	o := provider.Outcome{UpstreamID: string(p.TransactionID), Code: string(e.ResponseCode), Message: e.words(p)}
	if p.ClientReference != "" && !provider.SameReference(string(p.ClientReference), want.reference) {
		o.Class, o.Reason = provider.Unknown, provider.ReasonMismatch
		return o
	}
	code := string(e.ResponseCode)
	_, refused := refusals[code]
	switch {
	case code == "0001", code == "0000":
		// A final success is believed from a query only: it tells the
		// charges too.
		o.Class, o.State = provider.Accepted, provider.Pending
	case refused:
		o.Class, o.Clear, o.Reason = provider.Rejected, true, reason(code, o.Message, want.collecting)
	default:
		o.Class, o.Reason = provider.Unknown, provider.ReasonUnknown
	}
	return o
}

// answered opens the answer to a status query. The outcome holds when ok is
// false; otherwise it carries the ids, words and echo to build on. Whether the
// echo is of the payment that was asked about is the caller's question.
func answered(a provider.Answer, want order) (o provider.Outcome, e envelope, p payload, ok bool) {
	if o, done := provider.StatusUnanswered(a); done {
		o.NotFound = a.Status == http.StatusNotFound
		return o, e, p, false
	}
	if e, ok = read(a); !ok {
		return provider.Unreadable(a, "no response code"), e, p, false
	}
	p = e.payload()
	o = provider.Outcome{UpstreamID: string(p.TransactionID), Code: string(e.ResponseCode), Message: e.words(p)}
	if p.ClientReference == "" {
		// It speaks of the question, or of nothing: no word about the payment.
		o.Reason, o.NotFound = provider.ReasonUnknown, !silent[string(e.ResponseCode)]
		return o, e, p, false
	}
	o.Name = string(p.RecipientName)
	o.Echo = echo(p, want)
	return o, e, p, true
}

// echo is what Hubtel repeats of the payment. Where the account makes the
// payer bear the charges, Amount is what the payer pays and AmountAfterCharges
// what we asked for.
func echo(p payload, want order) *provider.Echo {
	e := &provider.Echo{Reference: string(p.ClientReference), Currency: string(p.CurrencyCode), Party: string(p.CustomerNumber)}
	if p.Amount.told {
		e.AmountTold, e.Amount = true, p.Amount.pesewas
		if !p.Amount.exact {
			e.Amount = -1
		}
		if want.collecting && p.AmountAfter.exact && p.AmountAfter.pesewas == want.amount && p.Charges.exact && e.Amount == want.amount+p.Charges.pesewas {
			e.Amount = want.amount
		}
	}
	return e
}

// collected reads the status of a collection. Unpaid is said of an open
// collection and of a failed one; old tells that it has been open too long.
func collected(a provider.Answer, want order, old bool) provider.Outcome {
	o, e, p, ok := answered(a, want)
	if !ok {
		return o
	}
	code := string(e.ResponseCode)
	failed := lastWords[code]
	switch status := strings.ToLower(string(p.Status)); {
	case status == "paid" && code == "0000":
		o.Class, o.State = provider.Accepted, provider.Success
		o.Fee, o.FeeKnown = collectionFee(p, want)
	case status == "refunded" && code == "0000":
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonReversed
	case status == "unpaid" && failed:
		// Not in Hubtel's documents, but plain: the code of the callback.
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, reason(code, o.Message, true)
	case status == "unpaid" && old:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonExpired
	case status == "unpaid":
		o.Class, o.State = provider.Accepted, provider.Pending
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// collectionFee is what Hubtel keeps of the amount that we asked for.
func collectionFee(p payload, want order) (money.Pesewas, bool) {
	if p.AmountAfter.told {
		fee := want.amount - p.AmountAfter.pesewas
		return max(fee, 0), fee >= 0
	}
	return p.Charges.pesewas, p.Charges.told && p.Charges.pesewas >= 0
}

// disbursed reads the status of a payout.
func disbursed(a provider.Answer, want order) provider.Outcome {
	o, e, p, ok := answered(a, want)
	if !ok {
		return o
	}
	code := string(e.ResponseCode)
	if code != "success" && code != "0000" && !lastWords[code] {
		o.Reason = provider.ReasonUnknown
		return o
	}
	switch status := strings.ToLower(string(p.TransactionStatus)); {
	case status == "success" && !lastWords[code]:
		o.Class, o.State = provider.Accepted, provider.Success
		o.Fee, o.FeeKnown = p.Fees.pesewas, p.Fees.told && p.Fees.pesewas >= 0
	case status == "failed":
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, reason(code, o.Message, false)
	case status == "pending":
		o.Class, o.State = provider.Accepted, provider.Pending
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// served reads the status of a top-up or bundle.
func served(a provider.Answer, want order) provider.Outcome {
	o, e, p, ok := answered(a, want)
	if !ok {
		return o
	}
	code := string(e.ResponseCode)
	switch {
	case code == "0000":
		o.Class, o.State = provider.Accepted, provider.Success
		o.Fee, o.Commission = p.Charges.pesewas, p.Meta.Commission.pesewas
		o.FeeKnown = p.Meta.Commission.told && o.Commission >= 0 && o.Fee >= 0
	case code == "0001":
		o.Class, o.State = provider.Accepted, provider.Pending
	case lastWords[code]:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, reason(code, o.Message, false)
	default: // 0005 and what nobody documented
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// asked opens the answer to a question that moves nothing.
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

// walletName reads the registration of a wallet.
func walletName(a provider.Answer) (string, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return "", o
	}
	p := e.payload()
	unregistered := p.IsRegistered != nil && !*p.IsRegistered
	return named(o, string(p.Name), unregistered || o.Code == "3050" || o.Code == "2001")
}

// bankName reads the name of a bank account.
func bankName(a provider.Answer) (string, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return "", o
	}
	return named(o, string(e.payload().Name), o.Code == "2001" || o.Code == "4000")
}

// named ends a name query: known by that name, not known, or ask another time.
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

// row is one line of a service's query: an offer, or a fact about a number.
type row struct {
	Display text
	Value   text
	Amount  amount
}

// offers reads the packages that a number is offered. Rows that could not be
// bought as they stand are left out.
func offers(a provider.Answer) ([]provider.Offer, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return nil, o
	}
	var rows []row
	if o.Code != "0000" || json.Unmarshal(e.Data, &rows) != nil {
		o.Reason = provider.ReasonUnknown
		if _, refused := refusals[o.Code]; refused {
			o.Class, o.Reason = provider.Rejected, reason(o.Code, o.Message, false)
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

// holderName reads the name behind a number; empty when it is not told.
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

// balance reads what an account of ours holds.
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
