package pawapay

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// The statuses of an answer to a request.
const (
	saysAccepted  = "ACCEPTED"
	saysDuplicate = "DUPLICATE_IGNORED" // D: the id was accepted before
	saysRejected  = "REJECTED"
	saysFound     = "FOUND"
	saysNotFound  = "NOT_FOUND" // D
)

// The statuses of a payment. Every other one is unknown.
const (
	statusCompleted = "COMPLETED"
	statusFailed    = "FAILED"
)

var underway = map[string]bool{"ACCEPTED": true, "ENQUEUED": true, "PROCESSING": true, "IN_RECONCILIATION": true}

// refusals are the failure codes that pawaPay lists for the rejection of a new payment, with HTTP 200. All have grade D.
var refusals = map[string]string{
	"AMOUNT_OUT_OF_BOUNDS": provider.ReasonLimit, "INVALID_AMOUNT": provider.ReasonInvalidRequest, "INVALID_PHONE_NUMBER": provider.ReasonInvalidRequest,
	"INVALID_CURRENCY": provider.ReasonSetup, "INVALID_PROVIDER": provider.ReasonSetup, "PROVIDER_TEMPORARILY_UNAVAILABLE": provider.ReasonUnavailable,
}

// failures maps the failure codes of a payment that failed later to reasons. Every other code gets ReasonRefused, because the
// status decides and not the code.
var failures = map[string]string{
	"PAYMENT_NOT_APPROVED": provider.ReasonDeclined, "INSUFFICIENT_BALANCE": provider.ReasonFunds, "PAYER_NOT_FOUND": provider.ReasonPayerNotFound,
	"PAYER_LIMIT_REACHED": provider.ReasonLimit, "RECIPIENT_NOT_FOUND": provider.ReasonPayeeNotFound, "WALLET_LIMIT_REACHED": provider.ReasonLimit,
	"RECIPIENT_NOT_ALLOWED_TO_RECEIVE": provider.ReasonBarred, "PAWAPAY_WALLET_OUT_OF_FUNDS": provider.ReasonFloat,
}

// reply is the envelope of every answer, and of the payment in the answer to a query. An answer with HTTP 500
// has no member status.
type reply struct {
	DepositID string `json:"depositId"`
	PayoutID  string `json:"payoutId"`
	RefundID  string `json:"refundId"`
	Status    string `json:"status"`
	Failure   struct {
		Code    string `json:"failureCode"`
		Message string `json:"failureMessage"`
	} `json:"failureReason"`
	Data json.RawMessage `json:"data"`
}

// about reports whether the answer names our payment or no payment. The documented sample of a refund names
// the refund as a payout.
func (r reply) about(reference string) bool {
	named := false
	for _, id := range []string{r.RefundID, r.PayoutID, r.DepositID} {
		if id == "" {
			continue
		}
		if named = true; provider.SameReference(id, reference) {
			return true
		}
	}
	return !named
}

// said returns an outcome with pawaPay's own texts.
func (r reply) said(a provider.Answer) provider.Outcome {
	o := provider.Outcome{Code: provider.Clip(r.Failure.Code), Message: provider.Clip(r.Failure.Message)}
	if o.Code == "" {
		o.Code = strconv.Itoa(a.Status)
	}
	return o
}

// submitted reads the answer to a request that moves money. No state in it is final, because final states
// come only from queries.
func submitted(a provider.Answer, reference string) provider.Outcome {
	if o, done := provider.Undelivered(a); done {
		return o
	}
	var r reply
	readable := json.Unmarshal(a.Body, &r) == nil
	switch {
	case a.Status >= http.StatusInternalServerError:
		o := r.said(a)
		o.Reason = provider.ReasonUnavailable
		return o
	case !readable && a.Status >= http.StatusBadRequest:
		return provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonRefused, Code: strconv.Itoa(a.Status), Message: "no envelope"}
	case !readable:
		return provider.Unreadable(a, "no envelope")
	case !r.about(reference):
		o := r.said(a)
		o.Reason = provider.ReasonMismatch
		return o
	case a.Status >= http.StatusBadRequest:
		o := r.said(a)
		o.Class, o.Reason = provider.Rejected, provider.ReasonRefused
		return o
	}
	return r.decided(a)
}

// decided reads an answer below HTTP 400. A rejection with a code that pawaPay does not list proves nothing.
func (r reply) decided(a provider.Answer) provider.Outcome {
	o := r.said(a)
	reason, documented := refusals[r.Failure.Code]
	switch {
	case r.Status == saysAccepted:
		o.Class, o.Code = provider.Accepted, r.Status
	case r.Status == saysDuplicate:
		o.Class, o.Code, o.Duplicate = provider.Accepted, r.Status, true
	case r.Status == saysRejected && documented && a.Status == http.StatusOK:
		o.Class, o.Clear, o.Reason = provider.Rejected, true, reason
	case r.Status == saysRejected && r.Failure.Code != "":
		o.Class, o.Reason = provider.Rejected, provider.ReasonRefused
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// payment is the payment in the answer to a query.
type payment struct {
	reply
	Amount     json.RawMessage `json:"amount"`
	Currency   string          `json:"currency"`
	UpstreamID string          `json:"providerTransactionId"`
	Payer      *party          `json:"payer"`
	Recipient  *party          `json:"recipient"`
}

// stated reads the answer to a status query.
func stated(a provider.Answer) provider.Outcome {
	if o, done := provider.StatusUnanswered(a); done {
		return o
	}
	var r reply
	var p payment
	switch {
	case json.Unmarshal(a.Body, &r) != nil:
		return provider.Unreadable(a, "no envelope")
	case r.Status == saysNotFound && len(r.Data) == 0:
		return provider.Outcome{NotFound: true, Reason: provider.ReasonUnknown, Code: saysNotFound}
	case r.Status != saysFound || json.Unmarshal(r.Data, &p) != nil:
		return provider.Unreadable(a, "no payment")
	}
	return p.outcome()
}

// outcome returns the state of a payment. pawaPay reports no charges here; they are rows of its statement.
func (p payment) outcome() provider.Outcome {
	o := provider.Outcome{UpstreamID: provider.Clip(p.UpstreamID), Code: provider.Clip(p.Status), Message: provider.Clip(p.Failure.Message), Echo: p.echo()}
	if p.Failure.Code != "" {
		o.Code = provider.Clip(p.Failure.Code)
	}
	switch {
	case p.Status == statusCompleted:
		o.Class, o.State = provider.Accepted, provider.Success
	case p.Status == statusFailed:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonRefused
		if reason := failures[p.Failure.Code]; reason != "" {
			o.Reason = reason
		}
	case underway[p.Status]:
		o.Class = provider.Accepted
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// echo returns the payment as pawaPay repeats it. A refund names its deposit as well, so the first present id counts.
func (p payment) echo() *provider.Echo {
	e := &provider.Echo{Currency: provider.Clip(p.Currency)}
	for _, id := range []string{p.DepositID, p.PayoutID, p.RefundID} {
		if id != "" {
			e.Reference = provider.Clip(id)
		}
	}
	for _, side := range []*party{p.Payer, p.Recipient} {
		if side != nil {
			e.Party = provider.Clip(side.Details.Phone)
		}
	}
	var text string
	switch {
	case len(p.Amount) == 0:
		return e
	case json.Unmarshal(p.Amount, &text) != nil:
		text = string(p.Amount)
	}
	amount, err := money.Parse(text)
	if e.Amount, e.AmountTold = amount, true; err != nil {
		e.Amount = -1 // matches nothing
	}
	return e
}

// balance reads the balance in cedis.
func balance(a provider.Answer) ([]provider.Held, provider.Outcome) {
	if o, done := provider.Undelivered(a); done {
		return nil, o
	}
	var r struct {
		Balances []struct {
			Country  string `json:"country"`
			Balance  string `json:"balance"`
			Currency string `json:"currency"`
			Provider string `json:"provider"`
		} `json:"balances"`
	}
	if a.Status == http.StatusOK && json.Unmarshal(a.Body, &r) == nil {
		for _, b := range r.Balances {
			held, err := money.Parse(b.Balance)
			if b.Country == country && b.Currency == currency && b.Provider == "" && err == nil {
				return []provider.Held{{Account: provider.AccountDisbursement, Amount: held}}, provider.Outcome{Class: provider.Accepted, State: provider.Success, Code: strconv.Itoa(a.Status)}
			}
		}
	}
	return nil, provider.Unreadable(a, "no balance in cedis")
}
