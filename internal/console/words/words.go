// Package words is the catalogue of the console: every word for a status, a kind, a channel or a place that a page shows.
package words

import (
	"strings"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// InWords is the amount from which it is written in words, too.
const InWords = money.Pesewas(5_000_00)

var NetworkWords = map[msisdn.Network]string{msisdn.MTN: "MTN", msisdn.Telecel: "Telecel", msisdn.AirtelTigo: "AirtelTigo"}

// OnOff names the state of a switch.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// TenantBadge names the state of an account.
func TenantBadge(t tenant.Tenant) page.Badge {
	switch {
	case t.Blocked:
		return page.Badge{Tone: page.Bad, Word: "Blocked"}
	case t.PayoutsStopped:
		return page.Badge{Tone: page.Open, Word: "Payouts stopped"}
	}
	return page.Badge{Tone: page.Good, Word: "Active"}
}

// StatusBadges are the words that customers read (Payment.Word).
var StatusBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Pending"},
	"submitted": {Tone: page.Sent, Word: "Submitted"},
	"success":   {Tone: page.Good, Word: "Success"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"invalid":   {Tone: page.Plain, Word: "Invalid"},
}

// UnknownBadge is that of a payment whose outcome is unknown.
var UnknownBadge = page.Badge{Tone: page.Unknown, Word: "Outcome unknown"}

// WaitsBadge is that of a payout that the account's own people have not approved yet.
var WaitsBadge = page.Badge{Tone: page.Open, Word: "Waits for approval"}

// BadgeOf is the state of a payment as people should see it.
func BadgeOf(p book.Payment) page.Badge {
	if p.Waits() {
		return WaitsBadge
	}
	if Unknown(p) {
		return UnknownBadge
	}
	if b, known := StatusBadges[p.Word()]; known {
		return b
	}
	return page.Badge{Word: p.Word()}
}

// Unknown says that a payment is open because its outcome is unknown.
func Unknown(p book.Payment) bool {
	open := p.Status == book.StatusPending
	return open && (!p.EscalatedAt.IsZero() || p.Refusal != book.RefusalNone || p.Classed && p.Class == provider.Unknown)
}

// KindWords name the kinds of payments.
var KindWords = map[book.Kind]string{
	book.KindCollection: "Collection", book.KindPayout: "Payout", book.KindTopUp: "Airtime", book.KindBundle: "Data",
}

// DeliveryBadges are the states of webhooks.
var DeliveryBadges = map[webhook.State]page.Badge{
	webhook.Pending:    {Tone: page.Open, Word: "Pending"},
	webhook.Delivered:  {Tone: page.Good, Word: "Delivered"},
	webhook.Failed:     {Tone: page.Bad, Word: "Given up"},
	webhook.Superseded: {Tone: page.Plain, Word: "Superseded"},
}

// Worded gives the badge of a word; one that the catalogue lacks is shown as it is.
func Worded(badges map[string]page.Badge, word string) page.Badge {
	if b, known := badges[word]; known {
		return b
	}
	return page.Badge{Word: word}
}

// providerNames are those that people know providers by.
var providerNames = map[string]string{"mtn": "MTN", "mtnmomo": "MTN", "hubtel": "Hubtel", "smpp": "SMS", "smsc": "Message centre"}

// ProviderName returns the name by which people know a provider.
func ProviderName(name string) string {
	if known := providerNames[name]; known != "" {
		return known
	}
	return name
}

// legWords name the movements of a payment in the ledger.
var legWords = map[string]string{
	book.LegHold: "Amount held", book.LegFee: "Charges held", book.LegFinal: "Amount settled", book.LegFinalFee: "Charges settled",
	book.LegContradicted: "Amount corrected", book.LegContradictedFee: "Charges corrected", book.LegContradictedRest: "Rest corrected",
	book.LegProviderFee: "Provider's fee", book.LegCommission: "Provider's commission",
}

// exchangeWords say what an exchange with a provider was about.
var exchangeWords = map[string]string{
	"collect": "the payer was asked", "requesttopay": "the payer was asked", "disburse": "submitted", "disburse_wallet": "submitted", "disburse_bank": "submitted",
	"transfer": "submitted", "topup": "submitted", "bundle": "submitted", "wallet_name": "asked for the name", "wallet_active": "asked for the number",
	"bank_name": "asked for the name", "token": "signed in",
}

// ExchangeWord is the catalogue's word for an operation of an adapter.
func ExchangeWord(operation string) string {
	if strings.HasSuffix(operation, "_status") {
		return "asked for the status"
	}
	if word := exchangeWords[operation]; word != "" {
		return word
	}
	return strings.ReplaceAll(operation, "_", " ")
}

// BreakerBadges are the states of a provider's breaker, and of binds.
var BreakerBadges = map[string]page.Badge{
	"closed": {Tone: page.Good, Word: "Well"}, "open": {Tone: page.Bad, Word: "Failing"}, "half-open": {Tone: page.Open, Word: "Being tried"},
	"bound": {Tone: page.Good, Word: "Bound"}, "not bound": {Tone: page.Bad, Word: "Not bound"}, "partly bound": {Tone: page.Open, Word: "Partly bound"}, "not heard of": {Tone: page.Unknown, Word: "Not heard of"},
	messaging.ReceiptsMatched: {Tone: page.Good, Word: "Matched"}, messaging.ReceiptsUnmatched: {Tone: page.Bad, Word: "Unmatched"}, messaging.ReceiptsOtherBase: {Tone: page.Bad, Word: "Probably another base"},
}

// CampaignBadges are the states of campaigns, and MessageBadges those of their messages.
var (
	CampaignBadges = map[string]page.Badge{
		"active": {Tone: page.Sent, Word: "Under way"}, "stopped": {Tone: page.Declined, Word: "Stopped"}, "done": {Tone: page.Good, Word: "Done"},
	}
	MessageBadges = map[string]page.Badge{
		"queued": {Tone: page.Open, Word: "Queued"}, "submitted": {Tone: page.Sent, Word: "Submitted"}, "delivered": {Tone: page.Good, Word: "Delivered"},
		"failed": {Tone: page.Bad, Word: "Failed"}, "expired": {Tone: page.Plain, Word: "Expired"}, "rejected": {Tone: page.Bad, Word: "Rejected"},
		"unknown": {Tone: page.Unknown, Word: "Unknown"}, "invalid": {Tone: page.Plain, Word: "No number"},
	}
)

// operationWords name what providers do.
var operationWords = map[string]string{
	"collect": "Collections", "disburse_wallet": "Payouts to wallets", "disburse_bank": "Payouts to banks", "wallet_name": "Names of wallets", "bank_name": "Names of accounts",
	"topup": "Airtime", "offers": "Offers of data", "bundle": "Data packages",
}

// OperationWord names an operation of providers.
func OperationWord(operation string) string {
	if word := operationWords[operation]; word != "" {
		return word
	}
	return operation
}

// CheckWords name the books that are checked.
var CheckWords = map[string]string{"ledger": "Ledger", "payments": "Payments against the ledger", "messages": "Messages against the ledger", "batches": "Batches against the ledger", "audit": "Audit log against its chain"}

// MessageKinds name the kinds of sends.
var MessageKinds = map[string]string{"campaign": "Campaign", "otp": "One-time password"}

// MessageWhy is why a message failed: the operators' codes are numbers, our own reasons words.
func MessageWhy(code string) string {
	if code != "" && strings.Trim(code, "0123456789") == "" {
		return "the operator's code " + code
	}
	return strings.ReplaceAll(code, "_", " ")
}

// AccountWord names an account of the ledger.
func AccountWord(id ledger.AccountID) string {
	name, of, _ := strings.Cut(string(id), "/")
	if strings.HasPrefix(name, "wallet:") {
		return "Wallet"
	}
	if of != "" {
		provider, account, _ := strings.Cut(of, "/")
		return strings.TrimSuffix(upper(name)+" at "+ProviderName(provider)+", "+account, ", ")
	}
	return upper(strings.ReplaceAll(name, "_", " "))
}

// upper begins a word with a capital letter.
func upper(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// LegWord is the catalogue's word for a movement.
func LegWord(leg string) string {
	if word := legWords[leg]; word != "" {
		return word
	}
	return upper(strings.ReplaceAll(leg, "_", " "))
}
