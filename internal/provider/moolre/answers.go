package moolre

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// The codes that the adapter reads, with their grades: D for Moolre's own page, 1S for a single public client.
const (
	codePrompted  = "TR099"  // D: the payer has the prompt
	codeConfirm   = "TP14"   // D: the payer has to confirm the number by a code
	codeConfirmed = "TP17"   // 1S: the number is confirmed, send the collection again
	codePaidOut   = "OBGH01" // D: Moolre has the payout
	codeNotFound  = "SS07"   // D for collections: not found, or not approved yet. Never a failure
	codeName      = "AVD01"  // D
	codeNoName    = "AVD02"  // D: no such wallet
	codeBalance   = "SW01"   // D
	codeBanks     = "SD01"   // D
	codeAuth      = "AIN"    // D: AIN01 and AIN04 refuse the caller
)

// The states of a transaction. Every other state is unknown. One public client treats 3 as pending, another as not found (1S).
const (
	statePending = "0"
	stateSuccess = "1"
	stateFailed  = "2"
)

// text is a JSON string or number, because Moolre writes statuses, states and amounts as either. The texts of a list are joined
// by spaces. Any other value is empty.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	var s string
	var list []text
	switch {
	case json.Unmarshal(b, &s) == nil:
		*t = text(s)
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		*t = text(b)
	case len(b) > 0 && b[0] == '[' && len(b) < 4096 && json.Unmarshal(b, &list) == nil:
		for _, each := range list {
			*t = text(strings.TrimSpace(string(*t) + " " + string(each)))
		}
	}
	return nil
}

// envelope is the envelope of every answer.
type envelope struct {
	Status  text            `json:"status"` // 1 or 0
	Code    text            `json:"code"`
	Message text            `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e envelope) yes() bool { return e.Status == "1" }

// read returns the envelope of an answer. ok is false if the answer has no envelope.
func read(a provider.Answer) (e envelope, ok bool) {
	if a.Err != nil || json.Unmarshal(bytes.TrimSpace(a.Body), &e) != nil {
		return envelope{}, false
	}
	return e, (e.Status == "1" || e.Status == "0") && e.Code != ""
}

// said returns an outcome with Moolre's code and message.
func (e envelope) said(a provider.Answer) provider.Outcome {
	o := provider.Outcome{Code: provider.Clip(string(e.Code)), Message: provider.Clip(string(e.Message))}
	if o.Code == "" {
		o.Code = strconv.Itoa(a.Status)
	}
	return o
}

// transaction is the object of a payout or a status.
type transaction struct {
	State     text `json:"txstatus"`
	ID        text `json:"transactionid"`
	Reference text `json:"externalref"`
	Amount    text `json:"amount"`
	Payer     text `json:"payer"`
	Payee     text `json:"payee"`
}

// transaction returns the transaction of an answer. ok is false if the answer has no transaction, or a transaction without a state.
func (e envelope) transaction() (t transaction, ok bool) {
	return t, json.Unmarshal(e.Data, &t) == nil && t.State != ""
}

// answered reads the answer to a request that moves money. took returns the outcome if Moolre accepted the request; decided is
// false if the answer does not show this.
func answered(a provider.Answer, took func(envelope) (o provider.Outcome, decided bool)) provider.Outcome {
	if o, done := provider.Undelivered(a); done {
		return o
	}
	if a.Status >= http.StatusInternalServerError {
		return provider.Outcome{Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}
	}
	e, ok := read(a)
	switch {
	case !ok && a.Status >= http.StatusBadRequest:
		return provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonRefused, Code: strconv.Itoa(a.Status), Message: "no envelope"}
	case !ok:
		return provider.Unreadable(a, "no envelope")
	}
	if o, decided := took(e); decided {
		return o
	}
	o := e.said(a)
	switch {
	case e.yes(): // a code that is not documented
		o.Reason = provider.ReasonUnknown
	case strings.HasPrefix(o.Code, codeAuth):
		o.Class, o.Reason = provider.Rejected, provider.ReasonSetup
	default:
		o.Class, o.Reason = provider.Rejected, provider.ReasonRefused
	}
	return o
}

// accepted returns a function for answered. It decides if the answer has one of codes, which mean that Moolre accepted the request.
// No state in such an answer is final, because final states come only from status queries.
func accepted(a provider.Answer, codes ...string) func(envelope) (provider.Outcome, bool) {
	return func(e envelope) (provider.Outcome, bool) {
		o := e.said(a)
		o.Class = provider.Accepted
		return o, e.yes() && a.Status < http.StatusBadRequest && slices.Contains(codes, string(e.Code))
	}
}

// prompted reads the answer to a collection.
func prompted(a provider.Answer) provider.Outcome {
	o := answered(a, accepted(a, codePrompted, codeConfirm))
	o.AwaitsVoucher = o.Class == provider.Accepted && o.Code == codeConfirm
	return o
}

// confirmed reads the answer to a collection that has the payer's code. If Moolre asks for a code again, it has refused this
// code.
func confirmed(a provider.Answer) provider.Outcome {
	o := answered(a, accepted(a, codePrompted, codeConfirmed))
	if o.Code == codeConfirm {
		o.Class, o.Reason = provider.Rejected, provider.ReasonRefused
	}
	o.Message = "" // the message may contain the code
	return o
}

// transferred reads the answer to a payout.
func transferred(a provider.Answer, reference string) provider.Outcome {
	return answered(a, func(e envelope) (provider.Outcome, bool) {
		o := e.said(a)
		t, there := e.transaction()
		o.UpstreamID = provider.Clip(string(t.ID))
		switch {
		case t.Reference != "" && !provider.SameReference(string(t.Reference), reference):
			o.UpstreamID, o.Reason = "", provider.ReasonMismatch
			return o, true
		case there && (t.State == statePending || t.State == stateSuccess), !there && e.yes() && e.Code == codePaidOut:
			o.Class = provider.Accepted
			return o, a.Status < http.StatusBadRequest
		}
		return o, false
	})
}

// collected reads the status of a collection.
func collected(a provider.Answer, reference string) provider.Outcome {
	e, ok := read(a)
	documented := ok && e.Code == codeNotFound && (a.Status == http.StatusOK || a.Status == http.StatusBadRequest || a.Status == http.StatusNotFound)
	return stated(a, documented, func(t transaction) text { return t.Payer }, reference)
}

// disbursed reads the status of a payout. notKnown has the configured responses that report an unknown payout.
func disbursed(a provider.Answer, reference string, notKnown []config.Reply) provider.Outcome {
	e, ok := read(a)
	return stated(a, ok && slices.Contains(notKnown, reply(a, e)), func(t transaction) text { return t.Payee }, reference)
}

// reply returns an answer in the form of a setting.
func reply(a provider.Answer, e envelope) config.Reply {
	return config.Reply{Status: a.Status, Code: string(e.Code)}
}

// stated reads the answer to a status query. notFound is true if the code reports an unknown reference. Such an answer has no
// transaction, or a transaction with the state of a failure. That state proves nothing.
func stated(a provider.Answer, notFound bool, party func(transaction) text, reference string) provider.Outcome {
	e, ok := read(a)
	t, there := e.transaction()
	if ok && (notFound || e.Code == codeNotFound) {
		o := provider.Outcome{Reason: provider.ReasonUnknown, Code: string(e.Code), Message: provider.Clip(string(e.Message))}
		if o.NotFound = notFound && (!there || t.State == stateFailed); !o.NotFound {
			o.Code = provider.Clip(reply(a, e).String())
		}
		return o
	}
	o, done := provider.StatusUnanswered(a)
	if !done && (!ok || !there) {
		o, done = provider.Unreadable(a, "no transaction"), true
	}
	if done {
		if ok { // an operator may copy the code to the settings
			o.Code, o.Message = provider.Clip(reply(a, e).String()), provider.Clip(string(e.Message))
		}
		return o
	}
	o = e.said(a)
	o.UpstreamID, o.Echo = provider.Clip(string(t.ID)), t.echo(party(t))
	named := provider.SameReference(string(t.Reference), reference) && t.ID != "" && t.ID != "0"
	switch {
	case t.State == stateSuccess && e.yes():
		o.Class, o.State = provider.Accepted, provider.Success
	case t.State == stateFailed && named: // Moolre names the payment, so Moolre has it
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonRefused
	case t.State == statePending:
		o.Class = provider.Accepted
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// echo returns the payment as Moolre repeats it. Moolre may write a name instead of a number; echo omits the name.
func (t transaction) echo(party text) *provider.Echo {
	e := &provider.Echo{Reference: provider.Clip(string(t.Reference))}
	if number := provider.Clip(string(party)); strings.Trim(number, "+0123456789") == "" {
		e.Party = number
	}
	if t.Amount == "" {
		return e
	}
	amount, err := money.Parse(string(t.Amount))
	if e.Amount, e.AmountTold = amount, true; err != nil {
		e.Amount = -1 // matches nothing
	}
	return e
}

// asked decodes the answer to a query.
func asked(a provider.Answer) (e envelope, o provider.Outcome, ok bool) {
	if o, done := provider.Undelivered(a); done {
		return e, o, false
	}
	if a.Status >= http.StatusInternalServerError {
		return e, provider.Outcome{Reason: provider.ReasonUnavailable, Code: strconv.Itoa(a.Status)}, false
	}
	if e, ok = read(a); !ok {
		return e, provider.Unreadable(a, "no envelope"), false
	}
	o = e.said(a)
	o.Reason = provider.ReasonUnknown
	return e, o, true
}

// holder reads the holder of a wallet or a bank account.
func holder(a provider.Answer) (string, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return "", o
	}
	o.Message = "" // the message may contain the number
	var name string
	switch {
	case !e.yes() && e.Code == codeNoName && a.Status == http.StatusBadRequest:
		o.Class, o.Reason = provider.Rejected, provider.ReasonPayeeNotFound
	case e.yes() && e.Code == codeName && a.Status == http.StatusOK && json.Unmarshal(e.Data, &name) == nil && strings.TrimSpace(name) != "":
		o.Class, o.State, o.Reason, o.Name = provider.Accepted, provider.Success, "", strings.Join(strings.Fields(provider.Clip(name)), " ")
	}
	return o.Name, o
}

// balance reads the balance. Moolre charges percentages, so the balance may have fractions of a pesewa. They are cut off.
func balance(a provider.Answer) ([]provider.Held, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return nil, o
	}
	var account struct {
		Balance text `json:"balance"`
	}
	if !e.yes() || e.Code != codeBalance || a.Status != http.StatusOK || json.Unmarshal(e.Data, &account) != nil {
		return nil, o
	}
	whole, part, _ := strings.Cut(string(account.Balance), ".")
	if strings.Trim(part, "0123456789") != "" {
		return nil, o
	}
	held, err := money.Parse(whole + "." + (part + "00")[:2])
	if err != nil || held < 0 {
		return nil, o
	}
	o.Class, o.State, o.Reason, o.Message = provider.Accepted, provider.Success, "", ""
	return []provider.Held{{Account: provider.AccountDisbursement, Amount: held}}, o
}

// banksListed is the maximum number of banks that are read. Ghana has about thirty.
const banksListed = 1000

// bankList reads the list of banks.
func bankList(a provider.Answer) ([]provider.PayableBank, provider.Outcome) {
	e, o, ok := asked(a)
	if !ok {
		return nil, o
	}
	var rows []struct {
		Code text `json:"code"`
		Name text `json:"name"`
	}
	if !e.yes() || e.Code != codeBanks || a.Status != http.StatusOK || json.Unmarshal(e.Data, &rows) != nil || len(rows) == 0 || len(rows) > banksListed {
		return nil, o
	}
	var banks []provider.PayableBank
	for _, r := range rows {
		if r.Code != "" {
			banks = append(banks, provider.PayableBank{Code: provider.Clip(string(r.Code)), Name: provider.Clip(string(r.Name))})
		}
	}
	o.Class, o.State, o.Reason = provider.Accepted, provider.Success, ""
	return banks, o
}
