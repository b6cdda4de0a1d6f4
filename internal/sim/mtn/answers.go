package mtn

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// noResource is the gateway's response to an unknown path.
const noResource = `{"statusCode":404,"message":"Resource not found"}`

func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, noResource)
}

// refusal returns an error object of MTN with a code.
func refusal(op, code string, _ sim.Order) (status int, body []byte) {
	if code == "" && op == sim.OpCollect {
		code = "PAYER_NOT_FOUND"
	} else if code == "" {
		code = "PAYEE_NOT_ALLOWED_TO_RECEIVE"
	}
	body, _ = json.Marshal(reason{code, sentence(code)})
	return http.StatusBadRequest, body
}

// party is the other party of a movement.
type party struct {
	Type string `json:"partyIdType"`
	ID   string `json:"partyId"`
}

func (p *party) isNumber() bool {
	return p != nil && strings.EqualFold(p.Type, "MSISDN") && digits(p.ID)
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

type reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// sentence returns the sentence of a code, in the style of MTN.
func sentence(code string) string {
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
		return "The payer does not have enough funds."
	case "NOT_ALLOWED":
		return "Authorization failed. Insufficient permissions."
	case "INVALID_CALLBACK_URL_HOST":
		return "Callback URL with different host name then configured for API User"
	case "SERVICE_UNAVAILABLE":
		return "Service temporarily unavailable, try again later."
	}
	return "An internal error occurred while processing."
}

// codeOf returns MTN's code for a reason. INVALID_PIN is our invention, because MTN publishes none. A reason that is
// not in the table is already a code.
func codeOf(e sim.Entry) string {
	side := func(payer, payee string) string {
		if e.Kind == sim.Collection {
			return payer
		}
		return payee
	}
	switch e.Reason {
	case sim.Declined:
		return "APPROVAL_REJECTED"
	case sim.Expired:
		return "EXPIRED"
	case sim.NoFunds, sim.FloatLow:
		return "NOT_ENOUGH_FUNDS"
	case sim.WrongPIN:
		return "INVALID_PIN"
	case sim.NotRegistered:
		return side("PAYER_NOT_FOUND", "PAYEE_NOT_FOUND")
	case sim.OverLimit:
		return side("PAYER_LIMIT_REACHED", "PAYEE_LIMIT_REACHED")
	case sim.Barred:
		return side("SENDER_ACCOUNT_NOT_ACTIVE", "PAYEE_NOT_ALLOWED_TO_RECEIVE")
	case sim.OverRefunded:
		return "COULD_NOT_PERFORM_TRANSACTION"
	case sim.ReversedLater:
		return "TRANSACTION_CANCELED"
	case sim.Internal, sim.Refused, "":
		return "INTERNAL_PROCESSING_ERROR"
	}
	return string(e.Reason)
}

// transactionID returns the network's id of a movement.
func transactionID(e sim.Entry) string { return strconv.FormatInt(4_000_000_000+e.Number, 10) }

// stateOf returns MTN's status for the state of an entry.
func stateOf(e sim.Entry) string {
	switch e.Status {
	case sim.Success:
		return "SUCCESSFUL"
	case sim.Pending:
		return "PENDING"
	}
	return "FAILED"
}

// reasonOf returns the reason object of the specification, or nil if nothing failed.
func reasonOf(e sim.Entry) *reason {
	if e.Status == sim.Success || e.Status == sim.Pending {
		return nil
	}
	code := codeOf(e)
	return &reason{code, sentence(code)}
}
