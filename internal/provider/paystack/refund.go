package paystack

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// refundRequest is the body of a refund. Paystack has no field for our reference, so the merchant's note contains
// it.
type refundRequest struct {
	Transaction  string `json:"transaction"`
	Amount       int64  `json:"amount"` // pesewas
	Currency     string `json:"currency"`
	CustomerNote string `json:"customer_note"`
	MerchantNote string `json:"merchant_note"`
}

// noteStart begins the merchant's note of every refund that Makola requests.
const noteStart = "Makola "

// noteOf returns the merchant's note of a refund. A query finds the refund by this note.
func noteOf(reference string) string { return noteStart + provider.PlainReference(reference) }

// Refund returns the money of a charge, or a part of it, to its payer. It must not be called twice, because
// Paystack would refund twice.
func (a *Adapter) Refund(ctx context.Context, r provider.RefundRequest) provider.Outcome {
	return refunded(a.post(ctx, "refund", r.ProviderReference, "/refund", refundRequest{
		Transaction: provider.PlainReference(r.Collected), Amount: int64(r.Amount), Currency: currency,
		CustomerNote: description(r.Label, r.Reference), MerchantNote: noteOf(r.ProviderReference),
	}), r)
}

// refundsListed is the maximum number of refunds of a transaction that a query reads.
const refundsListed = 100

// RefundStatus finds the refund with our note among the refunds of the collection. A query for a reference that does not exist
// has no collection. It uses the reference in place of the collection.
func (a *Adapter) RefundStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	of := r.Collected
	if of == "" {
		of = r.ProviderReference
	}
	answer := a.get(ctx, "refund_status", r.ProviderReference, "/transaction/verify/"+provider.PlainReference(of))
	if r.Collected == "" && noTransaction(answer) {
		return provider.Outcome{NotFound: true, Code: strconv.Itoa(answer.Status), Reason: provider.ReasonUnknown}
	}
	collection := collected(answer)
	if collection.Class != provider.Accepted || collection.UpstreamID == "" || collection.Echo.Reference != "" && !provider.SameReference(collection.Echo.Reference, of) {
		return provider.Outcome{Reason: provider.ReasonUnavailable, Code: collection.Code, Message: collection.Message}
	}
	q := url.Values{"transaction": {collection.UpstreamID}, "perPage": {strconv.Itoa(refundsListed)}}
	return refundFound(a.get(ctx, "refund_status", r.ProviderReference, "/refund?"+q.Encode()), r.ProviderReference, r.Amount)
}

// refund is Paystack's refund. Transaction is an object in the answer to a request, and the number of the transaction in a list.
type refund struct {
	ID          text            `json:"id"`
	Transaction json.RawMessage `json:"transaction"`
	Amount      text            `json:"amount"`
	Currency    text            `json:"currency"`
	Status      text            `json:"status"`
	Note        text            `json:"merchant_note"`
}

// refundStates are the statuses of refunds. All are documented.
var refundStates = map[string]provider.State{
	"pending": provider.Pending, "processing": provider.Pending, statusNeedsHelp: provider.Pending, "processed": provider.Success, statusFailed: provider.Failed,
}

// statusNeedsHelp is the status of a refund that Paystack cannot pay without another account of the payer.
const statusNeedsHelp = "needs-attention"

// refunded reads the answer to a refund.
func refunded(a provider.Answer, r provider.RefundRequest) provider.Outcome {
	return accepted(a, nil, func(e envelope) provider.Outcome {
		var made refund
		if json.Unmarshal(e.Data, &made) != nil {
			return provider.Unreadable(a, "no refund")
		}
		var of transaction
		_ = json.Unmarshal(made.Transaction, &of) // a number in some answers
		return begun(made.outcome(e, r.ProviderReference), string(of.Reference), r.Collected)
	})
}

// refundFound reads the refunds of a transaction and returns the state of ours. A refund of the same amount without a note of
// Makola may be ours, because no source promises that Paystack always returns the note.
func refundFound(a provider.Answer, reference string, amount money.Pesewas) provider.Outcome {
	if o, done := provider.StatusUnanswered(a); done {
		return o
	}
	e, ok := read(a)
	var all []refund
	if !ok || !e.Status.yes || json.Unmarshal(e.Data, &all) != nil || all == nil {
		return provider.Unreadable(a, "no list of refunds")
	}
	var ours []provider.Outcome // refunds that did not fail come first
	given, doubtful := 0, false
	for _, one := range all {
		if !strings.Contains(string(one.Note), noteOf(reference)) {
			of, told := one.Amount.pesewas()
			doubtful = doubtful || !strings.Contains(string(one.Note), noteStart) && (!told || of == amount)
			continue
		}
		o := one.outcome(e, reference)
		if o.State == provider.Failed {
			ours = append(ours, o)
			continue
		}
		ours, given = append([]provider.Outcome{o}, ours...), given+1
	}
	switch {
	case given > 1: // carried out twice
		return provider.Outcome{Reason: provider.ReasonMismatch, Code: ours[0].Code, Message: "Paystack has several refunds with this reference"}
	case len(ours) > 0:
		return ours[0]
	case doubtful:
		return provider.Unreadable(a, "a refund of the same amount has no note of Makola")
	case len(all) >= refundsListed:
		return provider.Unreadable(a, "more refunds than were read")
	}
	return provider.Outcome{NotFound: true, Code: strconv.Itoa(a.Status), Message: "not among the refunds of the transaction", Reason: provider.ReasonUnknown}
}

// outcome returns the state of a refund that has our reference.
func (r refund) outcome(e envelope, reference string) provider.Outcome {
	status := strings.ToLower(string(r.Status))
	o := provider.Outcome{UpstreamID: provider.Clip(string(r.ID)), Code: provider.Clip(status), Message: provider.Clip(string(e.Message)), Reason: provider.ReasonUnknown}
	o.Echo = &provider.Echo{Reference: reference, Currency: provider.Clip(string(r.Currency))}
	o.Echo.Amount, o.Echo.AmountTold = r.Amount.pesewas()
	state, known := refundStates[status]
	if !known {
		return o
	}
	o.Class, o.State, o.Reason = provider.Accepted, state, ""
	switch {
	case state == provider.Failed:
		o.Reason = provider.ReasonRefused
	case status == statusNeedsHelp:
		o.Message = "Paystack cannot reach the payer: give it the payer's bank account in its dashboard"
	}
	return o
}
