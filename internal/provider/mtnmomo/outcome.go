package mtnmomo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// refusals are MTN's final refusals: the documented codes of a request that was not accepted. They come with HTTP 400
// and, in use, also with 500. Source: the ErrorReason of MTN's OpenAPI documents for collection and disbursement.
var refusals = map[string]bool{
	"NOT_ALLOWED": true, "NOT_ALLOWED_TARGET_ENVIRONMENT": true,
	"INVALID_CALLBACK_URL_HOST": true, "INVALID_CURRENCY": true,
	"PAYER_NOT_FOUND": true, "PAYEE_NOT_FOUND": true, "NOT_ENOUGH_FUNDS": true,
	"PAYER_LIMIT_REACHED": true, "PAYEE_NOT_ALLOWED_TO_RECEIVE": true,
}

// reasons maps MTN's codes to ours. Only the simulator uses INVALID_PIN.
var reasons = map[string]string{
	"APPROVAL_REJECTED":              provider.ReasonDeclined,
	"PAYMENT_NOT_APPROVED":           provider.ReasonDeclined,
	"EXPIRED":                        provider.ReasonExpired,
	"COULD_NOT_PERFORM_TRANSACTION":  provider.ReasonExpired,
	"PAYER_DELAYED":                  provider.ReasonExpired,
	"INVALID_PIN":                    provider.ReasonPIN,
	"PAYER_NOT_FOUND":                provider.ReasonPayerNotFound,
	"PAYEE_NOT_FOUND":                provider.ReasonPayeeNotFound,
	"PAYER_LIMIT_REACHED":            provider.ReasonLimit,
	"PAYEE_LIMIT_REACHED":            provider.ReasonLimit,
	"SENDER_ACCOUNT_NOT_ACTIVE":      provider.ReasonBarred,
	"PAYEE_NOT_ALLOWED_TO_RECEIVE":   provider.ReasonBarred,
	"NOT_ALLOWED":                    provider.ReasonSetup,
	"NOT_ALLOWED_TARGET_ENVIRONMENT": provider.ReasonSetup,
	"INVALID_CALLBACK_URL_HOST":      provider.ReasonSetup,
	"INVALID_CURRENCY":               provider.ReasonSetup,
	"TRANSACTION_CANCELED":           provider.ReasonRefused,
	"SERVICE_UNAVAILABLE":            provider.ReasonRefused,
	"INTERNAL_PROCESSING_ERROR":      provider.ReasonUnknown,
	"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED": provider.ReasonFunds,
}

// reasonOf returns our code for one of MTN's codes. MTN has only one code for a low balance. It means the payer's
// balance in a collection, and our balance in a payout.
func reasonOf(product, code string) string {
	if product == "disbursement" {
		switch code {
		case "NOT_ENOUGH_FUNDS", "PAYER_LIMIT_REACHED":
			return provider.ReasonFloat
		case "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED":
			return provider.ReasonRefused
		}
	}
	if code == "NOT_ENOUGH_FUNDS" {
		return provider.ReasonFunds
	}
	if r, ok := reasons[code]; ok {
		return r
	}
	return provider.ReasonUnknown
}

// complaint parses a reason or an error body: an object with code and message, or a plain text. Both results are
// empty for anything else.
func complaint(raw json.RawMessage) (code, message string) {
	var o struct{ Code, Status, Message string }
	if json.Unmarshal(raw, &code) == nil {
		return provider.Clip(code), ""
	}
	if json.Unmarshal(raw, &o) != nil {
		return "", ""
	}
	if o.Code == "" {
		o.Code = o.Status // some versions have the code in the status
	}
	return provider.Clip(o.Code), provider.Clip(o.Message)
}

// enveloped reports whether a response is MTN's own error object. A gateway may use one of MTN's codes, but not the
// object.
func enveloped(a provider.Answer) bool { return bytes.HasPrefix(bytes.TrimSpace(a.Body), []byte("{")) }

// submitted returns the outcome of the response to a submission.
func submitted(product string, a provider.Answer) provider.Outcome {
	if o, ok := provider.Undelivered(a); ok {
		return o
	}
	code, message := complaint(a.Body)
	o := provider.Outcome{Code: code, Message: message}
	if o.Code == "" {
		o.Code = strconv.Itoa(a.Status)
	}
	switch {
	case a.Status == http.StatusAccepted:
		return provider.Outcome{Class: provider.Accepted, Code: o.Code}
	case code == "RESOURCE_ALREADY_EXIST":
		o.Class, o.Duplicate = provider.Accepted, true
	case a.Status < 400:
		o.Reason = provider.ReasonUnavailable
	case refusals[code] && enveloped(a) && a.Status <= http.StatusInternalServerError:
		o.Class, o.Clear, o.Reason = provider.Rejected, true, reasonOf(product, code)
	case a.Status < 500:
		o.Class, o.Reason = provider.Rejected, provider.ReasonInvalidRequest
		if _, known := reasons[code]; known {
			o.Reason = reasonOf(product, code)
		}
	default:
		o.Reason = provider.ReasonUnavailable
	}
	return o
}

// payment is MTN's status object. In the live system amounts, ids and numbers are texts. In the specification's
// examples they are numbers.
type payment struct {
	Amount   json.RawMessage `json:"amount"`
	Currency string          `json:"currency"`
	External json.RawMessage `json:"externalId"`
	Upstream json.RawMessage `json:"financialTransactionId"`
	Payer    otherSide       `json:"payer"`
	Payee    otherSide       `json:"payee"`
	Status   string          `json:"status"`
	Reason   json.RawMessage `json:"reason"`
}

type otherSide struct {
	ID json.RawMessage `json:"partyId"`
}

// answered returns the outcome of the response to a status query.
func (p *mtnProduct) answered(a provider.Answer) provider.Outcome {
	if o, ok := provider.StatusUnanswered(a); ok {
		if code, message := complaint(a.Body); a.Err == nil && code != "" {
			o.Code, o.Message = code, message
			o.NotFound = a.Status == http.StatusNotFound && enveloped(a) && (code == "RESOURCE_NOT_FOUND" || code == "TRANSACTION_NOT_FOUND")
		}
		return o
	}
	var m payment
	if err := json.Unmarshal(a.Body, &m); err != nil {
		return provider.Unreadable(a, "status is not the documented object")
	}
	o := provider.Outcome{Class: provider.Accepted, UpstreamID: plainText(m.Upstream), Echo: p.echo(m)}
	o.Code = provider.Clip(m.Status)
	switch m.Status {
	case "PENDING", "CREATED", "ONGOING":
		return o
	case "SUCCESSFUL":
		o.State = provider.Success
	case "FAILED":
		o.State = provider.Failed
		code, message := complaint(m.Reason)
		o.Reason = reasonOf(p.name, code)
		if code != "" {
			o.Code = code
		}
		o.Message = message
	default:
		return provider.Unreadable(a, "status has an undocumented value: "+m.Status)
	}
	if e := o.Echo; e.Reference == "" || !e.AmountTold || e.Currency == "" || e.Party == "" {
		return provider.Unreadable(a, "a final status does not repeat the payment")
	}
	return o
}

// echo returns the payment as MTN repeats it. The rail's configured currency is reported as GHS, because MTN's
// sandbox supports only euros.
func (p *mtnProduct) echo(m payment) *provider.Echo {
	e := &provider.Echo{Reference: plainText(m.External), Party: plainText(m.Payer.ID), Currency: provider.Clip(m.Currency)}
	if e.Currency == p.adapter.config.Currency {
		e.Currency = "GHS"
	}
	if p.name == "disbursement" {
		e.Party = plainText(m.Payee.ID)
	}
	if text := plainText(m.Amount); text != "" {
		amount, err := money.ParseLenient(text)
		if err != nil {
			amount = -1
		}
		e.Amount, e.AmountTold = amount, true
	}
	return e
}

// plainText returns a JSON text or number without quotes.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return provider.Clip(s)
	}
	if t := strings.TrimSpace(string(raw)); t != "null" {
		return provider.Clip(t)
	}
	return ""
}
