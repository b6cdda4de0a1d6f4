package hubtel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// answer is the envelope of most responses and callbacks. In responses of the hosts for collection statuses,
// verification and balances, member names begin with a small letter.
type answer struct {
	Message      string `json:"Message"`
	ResponseCode string `json:"ResponseCode"`
	Data         any    `json:"Data"`
}

type smallAnswer struct {
	Message      string `json:"message"`
	ResponseCode string `json:"responseCode"`
	Data         any    `json:"data"`
}

// plainAnswer is the envelope of payouts, and of the callbacks of sales.
type plainAnswer struct {
	ResponseCode string `json:"ResponseCode"`
	Data         any    `json:"Data"`
}

// envelope returns the envelope of an operation's responses.
func envelope(op, message, code string, data any) any {
	switch op {
	case sim.OpDisburse, sim.OpDisburseStatus:
		return plainAnswer{code, data}
	case sim.OpCollectStatus, sim.OpTopUpStatus, sim.OpBundleStatus, sim.OpBankName, sim.OpBalance:
		return smallAnswer{message, code, data}
	default:
		return answer{message, code, data}
	}
}

// refusal returns a refusal of an order with a code.
func refusal(op, code string, o sim.Order) (status int, body []byte) {
	if code == "" {
		code = "2001"
	}
	const message = "Transaction failed due to an error with the Payment Processor"
	var data any
	if o.Reference != "" {
		data = orderData(sim.Entry{Order: o, Status: sim.Failed, Reason: sim.Refused})
	}
	return http.StatusOK, sim.Encode(envelope(op, message, code, data))
}

// cedis formats an amount as Hubtel does, as a JSON number.
func cedis(p money.Pesewas) json.RawMessage { return json.RawMessage(p.String()) }

// codeOf returns Hubtel's code and sentence for a reason.
func codeOf(r sim.Reason, kind sim.Kind) (code, message string) {
	switch r {
	case sim.NotRegistered:
		if kind == sim.Payout {
			return "3050", "Mobile Number is not registered for Mobile Payment"
		}
		return "2001", "Account holder with FRI not found"
	case sim.FloatLow:
		return "4075", "Insufficient prepaid balance."
	case sim.Declined:
		return "2001", "The customer declined the payment request"
	case sim.Expired:
		return "2001", "The payment request timed out: USSD session timeout"
	case sim.NoFunds:
		return "2001", "The customer has insufficient funds"
	case sim.WrongPIN:
		return "2001", "The customer entered an invalid PIN"
	case sim.OverLimit:
		return "2001", "The mobile money user has reached counter or balance limits"
	case sim.Barred:
		return "2001", "The account holder is barred"
	default:
		return "2001", "Transaction failed due to an error with the Payment Processor"
	}
}

// outcome returns the code and sentence for the current state of an entry.
func outcome(e sim.Entry) (code, message string) {
	switch e.Status {
	case sim.Success:
		return "0000", "success"
	case sim.Pending:
		return "0001", "Transaction pending. Expect callback request for final state"
	default:
		return codeOf(e.Reason, e.Kind)
	}
}

// orderID returns Hubtel's id of an entry.
func orderID(e sim.Entry) string { return fmt.Sprintf("51a0%028x", e.Number) }

// networkID returns the network's id of a final entry.
func networkID(e sim.Entry) string {
	if e.Status == sim.Pending || e.Number == 0 {
		return ""
	}
	return strconv.FormatInt(2_000_000_000+e.Number, 10)
}

// orderData returns the data of the response to an open or refused order. Each of the three interfaces has its own
// documented form.
func orderData(e sim.Entry) map[string]any {
	_, message := outcome(e)
	d := map[string]any{"TransactionId": "", "ClientReference": e.Reference, "Amount": cedis(e.Amount)}
	if e.Number > 0 {
		d["TransactionId"] = orderID(e)
	}
	switch e.Kind {
	case sim.Collection:
		d["Description"], d["Charges"], d["DeliveryFee"] = e.Text, cedis(e.Fee), cedis(0)
		d["AmountAfterCharges"], d["AmountCharged"] = cedis(e.Amount-e.Fee), cedis(e.Amount)
		if e.Status == sim.Failed {
			d["Description"] = message
		}
	case sim.Payout:
		d["Description"], d["ExternalTransactionId"], d["Charges"], d["AmountDebited"] = message, "", cedis(0), cedis(0)
		d["Meta"], d["RecipientName"] = nil, nil
	default:
		d["Meta"] = map[string]string{"Commission": e.Commission.String()}
	}
	return d
}

// callback returns the callback about a final entry, by POST and unsigned.
func callback(e sim.Entry) sim.Callback {
	code, message := outcome(e)
	d := map[string]any{
		"TransactionId": orderID(e), "ClientReference": e.Reference, "Description": message, "Amount": cedis(e.Amount),
		"Charges": cedis(e.Fee), "ExternalTransactionId": networkID(e),
	}
	var body any = plainAnswer{code, d}
	if e.Kind == sim.Collection {
		d["AmountAfterCharges"], d["AmountCharged"] = cedis(e.Amount-e.Fee), cedis(e.Amount)
		d["OrderId"], d["PaymentDate"] = orderID(e), e.Settled.Format(time.RFC3339Nano)
		word := "failed"
		if e.Status == sim.Success {
			word = "success"
		}
		body = answer{word, code, d}
	} else {
		debited := money.Pesewas(0)
		if e.Status == sim.Success {
			debited = e.Amount + e.Fee
		}
		d["AmountDebited"], d["Meta"], d["RecipientName"] = cedis(debited), nil, nil
		if e.Kind != sim.Payout {
			d["Meta"] = map[string]string{"Commission": e.Commission.String()}
		} else if given, family, ok := sim.Name(e.Party); ok && e.Status == sim.Success {
			d["RecipientName"] = given + " " + family
		}
	}
	return sim.Callback{Method: http.MethodPost, URL: e.CallbackURL, Header: http.Header{"Content-Type": {"application/json"}}, Body: sim.Encode(body)}
}
