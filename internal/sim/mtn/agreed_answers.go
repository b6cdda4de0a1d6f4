package mtn

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/makola/makola/internal/sim"
)

// The resources of collection other than requests to pay. Paths and members are those of MTN's portal, as exported by
// maxkabechani/mtn-momo-sdk@cda0a69 (2026-04-20). MTN publishes neither test numbers nor times for these resources. A
// number has the same outcome as for a request to pay.
const (
	invoices     = "collection/invoice"
	preapprovals = "collection/preapproval"
	bills        = "collection/payment"
)

// agreedStatus has the functions that return the status object of an entry, by resource.
var agreedStatus = map[string]func(sim.Entry) any{invoices: invoiceStatus, preapprovals: preapprovalStatus, bills: billStatus}

// invoice is the body of an invoice. Responses repeat it.
type invoice struct {
	External    string `json:"externalId"`
	Amount      string `json:"amount"`
	Currency    string `json:"currency"`
	Validity    string `json:"validityDuration,omitempty"` // seconds
	Payer       *party `json:"intendedPayer"`
	Payee       *party `json:"payee,omitempty"`
	Description string `json:"description,omitempty"`
}

// invoiceStatus returns the status object of an invoice. The state CREATED never occurs, because the payer is
// prompted at once.
func invoiceStatus(e sim.Entry) any {
	var b invoice
	_ = json.Unmarshal([]byte(e.Wire), &b) // written by invoice
	validity, _ := strconv.ParseInt(b.Validity, 10, 64)
	b.Amount, b.Payee, b.Validity = e.Amount.String(), nil, ""
	status := struct {
		Reference string `json:"referenceId"`
		invoice
		Status  string  `json:"status"`
		Payment string  `json:"paymentReference,omitempty"`
		ID      string  `json:"invoiceId"`
		Expires string  `json:"expiryDateTime,omitempty"`
		Reason  *reason `json:"errorReason,omitempty"`
	}{Reference: e.Reference, invoice: b, Status: stateOf(e), ID: "INV-" + strconv.FormatInt(e.Number, 10), Reason: reasonOf(e)}
	if validity > 0 {
		status.Expires = e.At.Add(time.Duration(validity) * time.Second).UTC().Format(time.RFC3339)
	}
	if e.Status == sim.Success {
		status.Payment = transactionID(e)
	}
	return status
}

// preapproval is the body of a pre-approval, with which a customer allows the merchant to debit the wallet without a
// prompt.
type preapproval struct {
	Payer    *party `json:"payer"`
	Currency string `json:"payerCurrency"`
	Message  string `json:"payerMessage"`
	Validity int64  `json:"validityTime,omitempty"` // seconds, from the approval
}

// ends returns when an approved pre-approval expires.
func (b preapproval) ends(e sim.Entry) time.Time {
	return e.Settled.Add(time.Duration(b.Validity) * time.Second)
}

func preapprovalStatus(e sim.Entry) any {
	var b preapproval
	_ = json.Unmarshal([]byte(e.Wire), &b) // written by preapprove
	ends := int64(0)
	if e.Status == sim.Success {
		ends = b.ends(e).Unix()
	}
	b.Validity = 0
	return struct {
		preapproval
		Status  string  `json:"status"`
		Expires int64   `json:"expirationDateTime,omitempty"`
		Reason  *reason `json:"reason,omitempty"`
	}{b, stateOf(e), ends, reasonOf(e)}
}

// bill is the body of a payment of a bill or of airtime from our account.
type bill struct {
	External string `json:"externalTransactionId"`
	Money    struct {
		Amount   string `json:"amount"`
		Currency string `json:"currency"`
	} `json:"money"`
	Customer string `json:"customerReference"`
	Company  string `json:"serviceProviderUserName"`
}

func billStatus(e sim.Entry) any {
	status := struct {
		Reference   string  `json:"referenceId"`
		Status      string  `json:"status"`
		Transaction string  `json:"financialTransactionId,omitempty"`
		Reason      *reason `json:"reason,omitempty"`
	}{Reference: e.Reference, Status: stateOf(e), Reason: reasonOf(e)}
	if e.Status == sim.Success {
		status.Transaction = transactionID(e)
	}
	return status
}
