package paystack

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// The sentences about charges that Makola interprets, with their grades.
const (
	saysNoTransaction = "Transaction reference not found"  // 2C: many clients agree; never an outcome by itself
	saysNoCharge      = "Transaction reference is invalid" // D: not known
	saysFunds         = "Insufficient funds"               // D: the reason of a failed charge
)

// The statuses of charges and transactions.
const (
	statusVoucher   = "send_otp"
	statusAbandoned = "abandoned"
	statusFailed    = "failed"
	statusReversed  = "reversed"
)

// underway are the statuses of charges and transactions that are neither paid nor failed.
var underway = map[string]bool{"pay_offline": true, statusVoucher: true, "pending": true, "ongoing": true, "processing": true, "queued": true}

// transaction is Paystack's transaction or charge. A charge lacks most members until it is paid.
type transaction struct {
	ID        text `json:"id"`
	Reference text `json:"reference"`
	Amount    text `json:"amount"`
	Requested text `json:"requested_amount"`
	Currency  text `json:"currency"`
	Status    text `json:"status"`
	Fees      text `json:"fees"`
	Message   text `json:"message"`
	Gateway   text `json:"gateway_response"`
}

// charged reads the answer to a charge. No state in it is final, because final states come only from queries.
func charged(a provider.Answer, reference string) provider.Outcome {
	return accepted(a, nil, func(e envelope) provider.Outcome {
		var t transaction
		if json.Unmarshal(e.Data, &t) != nil {
			return provider.Unreadable(a, "no charge")
		}
		return begun(t.outcome(e), string(t.Reference), reference)
	})
}

// begun is the outcome of a request that Paystack accepted.
func begun(o provider.Outcome, got, want string) provider.Outcome {
	switch {
	case got != "" && !provider.SameReference(got, want):
		o.Class, o.State, o.Reason = provider.Unknown, provider.Pending, provider.ReasonMismatch
	case o.Class == provider.Accepted:
		o.State, o.Reason, o.FeeKnown, o.Fee, o.Unpaid = provider.Pending, "", false, 0, false
	}
	o.Echo = nil
	return o
}

// vouched reads the answer to a voucher. If the charge failed, the voucher was refused. A status query then decides about
// the collection.
func vouched(a provider.Answer, reference string) provider.Outcome {
	o := charged(a, reference)
	if o.Class == provider.Accepted && (o.Code == statusFailed || o.Code == statusVoucher) {
		o.Class, o.Reason = provider.Rejected, provider.ReasonRefused
	}
	o.Message = "" // may repeat the voucher
	return o
}

// noTransaction reports that Paystack has no transaction with a reference.
func noTransaction(a provider.Answer) bool {
	e, ok := read(a)
	return a.Err == nil && ok && !e.Status.yes && a.Status >= 400 && a.Status < 500 && string(e.Message) == saysNoTransaction
}

// collected reads the status of a transaction or a charge.
func collected(a provider.Answer) provider.Outcome {
	return stated[transaction](a, http.StatusBadRequest, saysNoCharge, "no transaction")
}

// outcome returns the state of a transaction. Paystack reports a transaction as abandoned until the customer completes it,
// even before the prompt ends. So this status by itself is no failure (provider.Outcome.Unpaid).
func (t transaction) outcome(e envelope) provider.Outcome {
	status := strings.ToLower(string(t.Status))
	o := provider.Outcome{UpstreamID: provider.Clip(string(t.ID)), Code: provider.Clip(status), Message: provider.Clip(string(t.Message))}
	for _, other := range []text{t.Gateway, e.Message} {
		if o.Message == "" {
			o.Message = provider.Clip(string(other))
		}
	}
	paid, fee, told := t.paid()
	o.Echo = &provider.Echo{Reference: provider.Clip(string(t.Reference)), Amount: paid, AmountTold: told, Currency: provider.Clip(string(t.Currency))}
	switch {
	case status == statusSuccess:
		o.Class, o.State, o.Fee, o.FeeKnown = provider.Accepted, provider.Success, max(fee, 0), fee >= 0
	case status == statusFailed && o.Message == saysFunds:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonFunds
	case status == statusFailed:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonRefused
	case status == statusReversed:
		o.Class, o.State, o.Reason = provider.Accepted, provider.Failed, provider.ReasonReversed
	case status == statusAbandoned:
		o.Class, o.Unpaid, o.Reason = provider.Accepted, true, provider.ReasonExpired
	case underway[status]:
		o.Class = provider.Accepted
	default:
		o.Reason = provider.ReasonUnknown
	}
	return o
}

// paid returns the amount that we requested, and Paystack's fees, or -1 if Paystack does not report them. If the business
// lets payers pay the fees, Paystack's amount is the requested amount plus the fees.
func (t transaction) paid() (amount, fee money.Pesewas, told bool) {
	amount, told = t.Amount.pesewas()
	fee, known := t.Fees.pesewas()
	if !known {
		fee = -1
	}
	requested, asked := t.Requested.pesewas()
	if told && asked && fee > 0 && amount == requested+fee {
		return requested, 0, true
	}
	return amount, fee, told
}
