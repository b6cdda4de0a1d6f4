package api

import (
	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// Constant values of responses.
const (
	currency      = "GHS"
	statusFetched = "Status fetched successfully" // of every status except failed
	typeMoMo      = "momo"
	typeTransfer  = "transfer"
	channelBank   = "bank" // in the response of send/bank; histories have BANK
)

// writer writes a response: JSON values and the records of the domains.
type writer struct{ wire.Writer }

// paymentType returns the type of a payment in histories and statuses.
func paymentType(k book.Kind) string {
	if k == book.KindPayout {
		return typeTransfer
	}
	return string(k)
}

// polled returns the status in payment-api/checkstatus. Clients know only pending, success and failed there, so the
// other statuses become one of these. Histories show the kind of failure.
func polled(p book.Payment) string {
	if p.Status == book.StatusDeclined || p.Status == book.StatusInvalid {
		return string(book.StatusFailed)
	}
	return p.PublicStatus()
}

// record writes the members of a payment record.
func (w *writer) record(p book.Payment) {
	w.Cedis("amount", p.Amount)
	w.Text("phone_number", p.MSISDN().Local())
	w.Text("ext_transaction_id", p.ProviderReference)
	w.Text("transaction_id", p.Reference)
	w.Text("type", typeMoMo)
	w.Text("currency", currency)
	w.Text("status", polled(p))
}

// payout writes the members of the response to a payout.
func (w *writer) payout(p book.Payment) {
	w.Text("client_reference", p.Reference)
	w.Text("transaction_id", p.ProviderReference)
	w.Amount("amount", p.Amount)
	w.Cedis("charges", p.Charges)
	if p.Channel == book.ChannelBank {
		w.Text("channel", channelBank)
		w.Text("account_number", p.Account)
		w.Text("account_name", p.AccountName)
		return
	}
	w.Text("channel", p.Channel)
	w.Text("account_number", p.MSISDN().International())
	w.refundOf(p)
}

// refundOf writes the customer's reference of the collection that a refund returns.
func (w *writer) refundOf(p book.Payment) {
	if p.RefundOf != "" {
		w.Text("refund_of", p.Details.Collection)
	}
}

// reason writes why a payment failed: a stable code and a sentence.
func (w *writer) reason(p book.Payment) {
	if p.Reason != "" {
		w.Text("reason", p.Reason)
		w.Text("reason_text", provider.Sentence(p.Reason))
	}
}

// existing writes the payment that already has a duplicate reference. It uses the member names of the payment's own
// endpoint.
func (w *writer) existing(p book.Payment) {
	switch p.Kind {
	case book.KindPayout:
		w.payout(p)
		w.Text("status", p.PublicStatus())
	case book.KindCollection:
		w.record(p)
	case book.KindBundle:
		w.Text("client_reference", p.Reference)
		w.Text("ext_transaction_id", p.ProviderReference)
		w.Amount("amount", p.Amount)
		w.Text("phone_number", p.MSISDN().International())
		w.Text("display", p.Details.Display)
		w.Text("status", p.PublicStatus())
	default:
		w.Text("transaction_id", p.Reference)
		w.Text("ext_transaction_id", p.ProviderReference)
		w.Amount("amount", p.Amount)
		w.Text("phone_number", p.MSISDN().Local())
		w.Text("status", p.PublicStatus())
	}
	w.reason(p)
	w.Time("created_at", p.CreatedAt)
}

// row writes one row of a history. Rows of collections have two further members.
func (w *writer) row(p book.Payment) {
	w.Object("")
	w.Text("transaction_id", p.Reference)
	w.Text("ext_transaction_id", p.ProviderReference)
	w.Text("type", paymentType(p.Kind))
	w.Cedis("amount", p.Amount)
	w.Cedis("charges", p.Charges)
	if p.Kind == book.KindCollection {
		w.Cedis("net_amount", p.Net())
		w.Text("fee_bearer", p.FeeBearer)
	}
	w.Text("currency", currency)
	w.Text("channel", p.Channel)
	switch {
	case p.Received():
		w.Text("direction", "in")
	case p.Channel == book.ChannelWallet:
		w.Text("direction", "out")
	}
	w.Text("account_number", p.Account)
	w.Text("account_name", p.AccountName)
	w.refundOf(p)
	if p.Refunded > 0 {
		w.Cedis("refunded", p.Refunded)
	}
	w.Text("status", p.PublicStatus())
	w.reason(p)
	w.Time("created_at", p.CreatedAt)
	w.End()
}

// batch writes the members of a batch. The sums of a draft include only rows that can be paid.
func (w *writer) batch(b batch.Batch) {
	w.Text("batch_id", b.ID)
	w.Text("name", b.Name)
	w.Text("status", string(b.Status))
	w.Optional("cause", string(b.Cause))
	w.Integer("rows", int64(b.Lines))
	w.Amount("amount", b.Amount)
	w.Cedis("charges", b.Charges)
	w.Amount("reserved", b.Rest)
	w.Moment("created_at", b.CreatedAt)
	w.Moment("started_at", b.StartedAt)
	w.Moment("ended_at", b.EndedAt)
}

// batchRow writes a row of a batch and its outcome.
func (w *writer) batchRow(r batch.Result) {
	w.Object("")
	w.Integer("row", int64(r.Line))
	w.Text("account_number", r.Account)
	w.Text("account_name", r.Name)
	w.Text("channel", r.Channel)
	w.Optional("bank_id", r.Bank)
	w.Amount("amount", r.Amount)
	w.Cedis("charges", r.Charges)
	w.Text("client_reference", r.Reference)
	w.Text("note", r.Note)
	w.Text("status", r.Status)
	w.Optional("reason", r.Reason)
	w.End()
}
