package paystack

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// text is a JSON string or number, because Paystack writes ids and amounts in both ways. Any other value
// becomes empty.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	var s string
	switch {
	case json.Unmarshal(b, &s) == nil:
		*t = text(s)
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		*t = text(b)
	}
	return nil
}

// pesewas is an amount, which Paystack writes as a whole number of pesewas.
func (t text) pesewas() (amount money.Pesewas, told bool) {
	if t == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil || n < 0 {
		return -1, true // matches nothing
	}
	return money.Pesewas(n), true
}

// flag is the status of an envelope; one of the older samples has it as a text.
type flag struct{ told, yes bool }

func (f *flag) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	*f = flag{told: s == "true" || s == "false", yes: s == "true"}
	return nil
}

// envelope is the envelope of every answer. Older errors have no code.
type envelope struct {
	Status  flag            `json:"status"`
	Message text            `json:"message"`
	Code    text            `json:"code"`
	Data    json.RawMessage `json:"data"`
}

// read returns the envelope of an answer, or false if it has none.
func read(a provider.Answer) (envelope, bool) {
	var e envelope
	err := json.Unmarshal(bytes.TrimSpace(a.Body), &e)
	return e, err == nil && e.Status.told
}

// The codes and sentences that Makola interprets, with their grades. D means Paystack's own sample, 2C two or more
// independent clients that agree.
const (
	codeDuplicate    = "duplicate_transfer_reference"                      // 2C: the transfer exists
	codeNoRecipient  = "invalid_transfer_recipient"                        // D: the one final refusal
	codeBankCode     = "invalid_bank_code"                                 // 2C: of a name query
	codeParams       = "invalid_params"                                    // 2C: of a name query
	saysBalance      = "Your balance is not enough to fulfil this request" // 2C: not final
	saysNoTransfer   = "Transfer not found"                                // D: not known
	saysUnresolvable = "Could not resolve account name"                    // 2C: no such account
	saysKey          = "Invalid key"                                       // D
)

// final are the codes of refusals that Paystack itself documents. A refusal that only other clients report is not
// final.
var final = map[string]bool{codeNoRecipient: true}

// The statuses of transfers. The conclusive ones are those of Paystack's page "How transfers work".
const (
	statusOTP     = "otp"
	statusSuccess = "success"
)

var (
	open   = map[string]bool{"pending": true, "received": true}
	failed = map[string]string{
		"failed": provider.ReasonRefused, "reversed": provider.ReasonReversed, "abandoned": provider.ReasonRefused,
		"blocked": provider.ReasonRefused, "rejected": provider.ReasonRefused,
	}
)

// transfer is Paystack's transfer. Recipient is a number in the answer to a request, and an object in the
// answer to a status query.
type transfer struct {
	ID        text            `json:"id"`
	Reference text            `json:"reference"`
	Amount    text            `json:"amount"`
	Currency  text            `json:"currency"`
	Status    text            `json:"status"`
	Fee       text            `json:"fee_charged"`
	Gateway   text            `json:"gateway_response"`
	Recipient json.RawMessage `json:"recipient"`
}

// account returns the payee's account number if the answer has it.
func (t transfer) account() string {
	var to struct {
		Details struct {
			Account text `json:"account_number"`
		} `json:"details"`
	}
	if json.Unmarshal(t.Recipient, &to) != nil {
		return ""
	}
	return provider.Clip(string(to.Details.Account))
}

// said returns an outcome with the provider's own texts.
func (e envelope) said(a provider.Answer) provider.Outcome {
	o := provider.Outcome{Code: provider.Clip(string(e.Code)), Message: provider.Clip(string(e.Message))}
	if o.Code == "" {
		o.Code = strconv.Itoa(a.Status)
	}
	return o
}

// recipientCode reads the answer to the creation of a recipient. If it has no code, the outcome is also the outcome of the
// payout, because no transfer was sent.
func recipientCode(a provider.Answer) (string, provider.Outcome) {
	o, done := provider.Undelivered(a)
	if !done {
		e, ok := read(a)
		var created struct {
			Code text `json:"recipient_code"`
		}
		if ok && e.Status.yes && a.Status < 300 && json.Unmarshal(e.Data, &created) == nil && created.Code != "" {
			return string(created.Code), provider.Outcome{}
		}
		o = e.said(a)
	}
	o.Class = provider.NotSent
	if o.Reason == "" {
		o.Reason = provider.ReasonUnavailable
	}
	return "", o
}

// submitted reads the answer to a transfer. No state in it is final, because final states come only from
// queries.
func submitted(a provider.Answer, reference string) provider.Outcome {
	documented := func(o *provider.Outcome) bool {
		switch {
		case o.Code == codeDuplicate:
			o.Class, o.Duplicate = provider.Accepted, true
		case final[o.Code] && a.Status == http.StatusBadRequest:
			o.Class, o.Clear, o.Reason = provider.Rejected, true, provider.ReasonPayeeNotFound
		default:
			return false
		}
		return true
	}
	return accepted(a, documented, func(e envelope) provider.Outcome { return queued(a, e, reference) })
}

// accepted reads the answer to a request that moves money. took reads the answer if Paystack accepted the request. documented
// decides about a refusal by its code; it is nil if Paystack documents no codes. Every other refusal is not Clear.
func accepted(a provider.Answer, documented func(*provider.Outcome) bool, took func(envelope) provider.Outcome) provider.Outcome {
	if o, done := provider.Undelivered(a); done {
		return o
	}
	if a.Status >= 500 {
		return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}
	}
	e, ok := read(a)
	switch {
	case !ok && a.Status >= 400:
		return provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonRefused, Code: strconv.Itoa(a.Status), Message: "no envelope"}
	case !ok:
		return provider.Unreadable(a, "no envelope")
	case e.Status.yes && a.Status < 400:
		return took(e)
	}
	o := e.said(a)
	switch {
	case e.Status.yes, a.Status < 400: // a success with an error's HTTP status, or the reverse
		o.Reason = provider.ReasonUnknown
	case documented != nil && documented(&o):
	case strings.HasPrefix(o.Message, saysBalance):
		o.Class, o.Reason = provider.Rejected, provider.ReasonFloat
	case o.Message == saysKey:
		o.Class, o.Reason = provider.Rejected, provider.ReasonSetup
	default:
		o.Class, o.Reason = provider.Rejected, provider.ReasonRefused
	}
	return o
}

// queued reads the transfer in the answer to a transfer request.
func queued(a provider.Answer, e envelope, reference string) provider.Outcome {
	var t transfer
	if json.Unmarshal(e.Data, &t) != nil {
		return provider.Unreadable(a, "no transfer")
	}
	o := t.outcome(e)
	switch {
	case t.Reference != "" && !provider.SameReference(string(t.Reference), reference):
		o.Class, o.Reason = provider.Unknown, provider.ReasonMismatch
	case o.Class == provider.Accepted:
		o.State, o.Reason, o.FeeKnown, o.Fee, o.Echo = provider.Pending, "", false, 0, nil
	default:
		o.Echo = nil
	}
	return o
}

// disbursed reads the status of a transfer.
func disbursed(a provider.Answer) provider.Outcome {
	return stated[transfer](a, http.StatusNotFound, saysNoTransfer, "no transfer")
}

// stated reads the answer to a status query. An answer with this HTTP status and the sentence notKnown means that Paystack
// does not know the reference. missing is the message for an answer without a T.
func stated[T interface {
	outcome(envelope) provider.Outcome
}](a provider.Answer, status int, notKnown text, missing string) provider.Outcome {
	e, ok := read(a)
	if a.Err == nil && ok && a.Status == status && !e.Status.yes && e.Message == notKnown {
		o := e.said(a)
		o.NotFound, o.Reason = true, provider.ReasonUnknown
		return o
	}
	if o, done := provider.StatusUnanswered(a); done {
		if ok && a.Err == nil {
			o.Message = provider.Clip(string(e.Message))
		}
		return o
	}
	var t T
	if !ok || !e.Status.yes || json.Unmarshal(e.Data, &t) != nil {
		return provider.Unreadable(a, missing)
	}
	return t.outcome(e)
}

// outcome returns the state of a transfer. A transfer that waits for an OTP has not failed, because it may still be paid.
// An operator must correct the set-up.
func (t transfer) outcome(e envelope) provider.Outcome {
	status := strings.ToLower(string(t.Status))
	o := provider.Outcome{UpstreamID: provider.Clip(string(t.ID)), Code: provider.Clip(status), Message: provider.Clip(string(t.Gateway)), Echo: t.echo()}
	if o.Message == "" {
		o.Message = provider.Clip(string(e.Message))
	}
	reason, gone := failed[status]
	switch {
	case status == statusSuccess:
		o.Class, o.State = provider.Accepted, provider.Success
		fee, told := t.Fee.pesewas()
		o.Fee, o.FeeKnown = max(fee, 0), told && fee >= 0
	case gone:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, reason
	case open[status]:
		o.Class = provider.Accepted
	case status == statusOTP:
		o.Reason, o.Message = provider.ReasonSetup, "Paystack waits for an OTP: switch off OTPs of transfers in its dashboard"
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// echo returns the transfer as Paystack repeats it.
func (t transfer) echo() *provider.Echo {
	e := &provider.Echo{Reference: provider.Clip(string(t.Reference)), Currency: provider.Clip(string(t.Currency)), Party: t.account()}
	e.Amount, e.AmountTold = t.Amount.pesewas()
	return e
}

// asked reads the envelope of the answer to a query that moves no money.
func asked(a provider.Answer) (envelope, provider.Outcome, bool) {
	if o, done := provider.Undelivered(a); done {
		return envelope{}, o, false
	}
	if a.Status >= 500 {
		return envelope{}, provider.Outcome{Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}, false
	}
	e, ok := read(a)
	if !ok {
		return e, provider.Unreadable(a, "no envelope"), false
	}
	return e, e.said(a), true
}

// accountName reads the holder of a wallet or a bank account.
func accountName(a provider.Answer) (string, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return "", o
	}
	var holder struct {
		Name text `json:"account_name"`
	}
	switch {
	case a.Status == http.StatusUnprocessableEntity && (o.Code == codeBankCode || o.Code == codeParams) && strings.HasPrefix(o.Message, saysUnresolvable):
		o.Class, o.Reason = provider.Rejected, provider.ReasonPayeeNotFound
	case a.Status == http.StatusOK && e.Status.yes && json.Unmarshal(e.Data, &holder) == nil && strings.TrimSpace(string(holder.Name)) != "":
		o.Class, o.State, o.Name = provider.Accepted, provider.Success, strings.Join(strings.Fields(provider.Clip(string(holder.Name))), " ")
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o.Name, o
}

// balance reads the balance in cedis.
func balance(a provider.Answer) ([]provider.Held, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return nil, o
	}
	var rows []struct {
		Currency text `json:"currency"`
		Balance  text `json:"balance"`
	}
	if e.Status.yes && a.Status == http.StatusOK && json.Unmarshal(e.Data, &rows) == nil {
		for _, r := range rows {
			if held, told := r.Balance.pesewas(); r.Currency == currency && told && held >= 0 {
				o.Class, o.State = provider.Accepted, provider.Success
				return []provider.Held{{Account: provider.AccountDisbursement, Amount: held}}, o
			}
		}
	}
	o.Reason = provider.ReasonUnknown
	return nil, o
}

// bankList reads the list of banks. It returns an error if the list may continue on another page.
func bankList(a provider.Answer) ([]provider.PayableBank, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return nil, o
	}
	var rows []struct {
		Code    text `json:"code"`
		Name    text `json:"name"`
		Active  bool `json:"active"`
		Deleted *any `json:"is_deleted"`
	}
	if !e.Status.yes || a.Status != http.StatusOK || json.Unmarshal(e.Data, &rows) != nil || len(rows) == 0 || len(rows) >= banksListed {
		o.Reason = provider.ReasonUnknown
		return nil, o
	}
	var banks []provider.PayableBank
	for _, r := range rows {
		if r.Active && r.Code != "" && (r.Deleted == nil || *r.Deleted != true) {
			banks = append(banks, provider.PayableBank{Code: provider.Clip(string(r.Code)), Name: provider.Clip(string(r.Name))})
		}
	}
	o.Class, o.State = provider.Accepted, provider.Success
	return banks, o
}
