package paystack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// answer is the envelope of every answer.
type answer struct {
	Status  bool   `json:"status"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
	Meta    any    `json:"meta,omitempty"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
}

// nextSteps are the texts that go with the codes of refusals.
var nextSteps = map[string]string{
	"invalid_transfer_recipient":   "Provide a valid recipient. Ensure you are passing the recipient code in the recipient param",
	"duplicate_transfer_reference": "Create a new reference for the new transfer",
	"unknown":                      "Try again later",
}

func refused(message, kind, code string) answer {
	a := answer{Message: message, Type: kind, Code: code}
	if code != "" {
		a.Meta = map[string]any{"nextStep": cmp.Or(nextSteps[code], "Check the parameters and try again")}
	}
	return a
}

// refusal returns the response for the code in a fault's Answer.
func refusal(_, code string, _ sim.Order) (status int, body []byte) {
	code = cmp.Or(code, "invalid_transfer_recipient")
	message, kind := "Recipient specified is invalid", "validation_error"
	if code != "invalid_transfer_recipient" {
		message, kind = "The request could not be processed", "api_error"
	}
	return http.StatusBadRequest, sim.Encode(refused(message, kind, code))
}

// stamp writes a time as Paystack does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// transferID and transferCode are the ids of a transfer.
func transferID(e sim.Entry) int64    { return 860_000_000 + e.Number }
func transferCode(e sim.Entry) string { return fmt.Sprintf("TRF_51a0%012x", e.Number) }

// numberOf returns the number of the entry with a transfer code.
func numberOf(code string) (number int64, ok bool) {
	n, err := fmt.Sscanf(code, "TRF_51a0%012x", &number)
	return number, n == 1 && err == nil
}

// wired is the part of a transfer that the book stores for responses.
type wired struct {
	Kind, Bank, Name, Code string
	OTP                    bool
}

func wireOf(e sim.Entry) wired {
	var w wired
	_ = json.Unmarshal([]byte(e.Wire), &w) // our own
	return w
}

// statusOf is Paystack's status of a transfer.
func statusOf(e sim.Entry) string {
	switch {
	case e.Reversed:
		return "reversed"
	case e.Status == sim.Pending && wireOf(e).OTP:
		return "otp"
	case e.Status == sim.Pending:
		return "pending"
	default:
		return string(e.Status)
	}
}

// recipientObject is a recipient as in the response to its creation.
func recipientObject(r recipient, at time.Time) map[string]any {
	b, _ := bankOf(r.bank)
	return map[string]any{
		"active": true, "createdAt": stamp(at), "updatedAt": stamp(at), "currency": currency, "domain": "test", "id": recipientID(r),
		"integration": integration, "name": r.name, "recipient_code": r.code, "type": r.kind, "is_deleted": false,
		"details": map[string]any{
			"authorization_code": nil, "account_number": r.account, "account_name": nil, "bank_code": r.bank, "bank_name": b.name,
		},
	}
}

// recipientID returns a number that is made from the recipient's code.
func recipientID(r recipient) int64 {
	n := int64(0)
	for _, c := range []byte(r.code) {
		n = (n*31 + int64(c)) % 90_000_000
	}
	return 10_000_000 + n
}

// written returns a party as in recipients: a wallet has ten digits.
func written(party string) string {
	if m, err := msisdn.Parse(party); err == nil && strings.HasPrefix(party, "233") {
		return m.Local()
	}
	return party
}

// transferObject is a transfer as every answer and event has it.
func transferObject(e sim.Entry) map[string]any {
	return map[string]any{
		"amount": int64(e.Amount), "currency": currency, "domain": "test", "failures": nil, "id": transferID(e), "integration": integration,
		"reason": e.Text, "reference": e.Reference, "source": "balance", "source_details": nil, "status": statusOf(e), "titan_code": nil,
		"transfer_code": transferCode(e), "transferred_at": nil, "request": 1_060_000_000 + e.Number,
		"createdAt": stamp(e.At), "updatedAt": stamp(latest(e)),
	}
}

func latest(e sim.Entry) time.Time {
	if e.Settled.IsZero() {
		return e.At
	}
	return e.Settled
}

// queuedObject is the response to a transfer. It has the recipient as a number.
func queuedObject(e sim.Entry) map[string]any {
	o, w := transferObject(e), wireOf(e)
	o["transfersessionid"], o["transfertrials"], o["recipient"] = []any{}, []any{}, recipientID(recipient{code: w.Code})
	return o
}

// otpObject is the answer to a transfer that waits for an OTP.
func otpObject(e sim.Entry) map[string]any {
	o := queuedObject(e)
	for _, absent := range []string{"transfersessionid", "transfertrials", "source_details", "failures", "titan_code", "transferred_at", "request"} {
		delete(o, absent)
	}
	return o
}

// verifiedObject is a transfer in the answer to a status query, with its recipient as an object.
func verifiedObject(e sim.Entry) map[string]any {
	o, w := transferObject(e), wireOf(e)
	to := recipientObject(recipient{code: w.Code, kind: w.Kind, name: w.Name, account: written(e.Party), bank: w.Bank}, e.At)
	to["description"], to["email"], to["metadata"], to["isDeleted"] = "", nil, nil, false
	o["recipient"], o["session"] = to, map[string]any{"provider": nil, "id": nil}
	o["fee_charged"], o["fees_breakdown"], o["gateway_response"] = charged(e), nil, nil
	return o
}

// charged is the fee of a transfer, which only a successful one has.
func charged(e sim.Entry) int64 {
	if e.Status != sim.Success {
		return 0
	}
	return int64(e.Fee)
}

// bankObject is a row of the list of banks.
func bankObject(b bank) map[string]any {
	const made = "2018-03-29T12:54:59.000Z"
	return map[string]any{
		"name": b.name, "slug": b.slug, "code": b.code, "longcode": "", "gateway": nil, "pay_with_bank": false, "active": true,
		"is_deleted": nil, "country": "Ghana", "currency": currency, "type": b.kind, "id": b.id, "createdAt": made, "updatedAt": made,
	}
}
