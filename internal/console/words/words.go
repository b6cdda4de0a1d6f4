// Package words has the words and badges that pages show for the codes of domain packages: statuses of accounts, payments, webhooks
// and campaigns, kinds of payments, operations of providers, accounts and transfers of the ledger, and reasons. A code that
// a table lacks is shown unchanged.
package words

import (
	"strings"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// InWords is the smallest amount that a form also shows in words.
const InWords = money.Pesewas(5_000_00)

// Channel returns the name of a payment's channel, such as Telecel.
func Channel(code string) string {
	switch code {
	case book.ChannelBank:
		return "Bank"
	case book.ChannelWallet:
		return "Wallet"
	}
	return msisdn.Network(code).Name()
}

// Mode names the mode of an account.
func Mode(m tenant.Mode) string {
	switch m {
	case tenant.Live:
		return "Live"
	case tenant.Test:
		return "Test"
	}
	return string(m)
}

// AnyOr returns text, or "All" if value means all.
func AnyOr(value, text string) string {
	if value == "*" {
		return "All"
	}
	return text
}

// OnOff names the state of a switch.
func OnOff(on bool) string {
	if on {
		return "On"
	}
	return "Off"
}

// TenantBadge returns the status of an account.
func TenantBadge(t tenant.Tenant) page.Badge {
	switch {
	case t.Blocked:
		return page.Badge{Tone: page.Bad, Word: "Blocked"}
	case t.PayoutsStopped:
		return page.Badge{Tone: page.Open, Word: "Payouts stopped"}
	}
	return page.Badge{Tone: page.Good, Word: "Active"}
}

// StatusBadges are the statuses of payments that customers see (Payment.Word).
var StatusBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Pending"},
	"submitted": {Tone: page.Sent, Word: "Submitted"},
	"success":   {Tone: page.Good, Word: "Success"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"invalid":   {Tone: page.Plain, Word: "Invalid"},
}

// UnknownBadge is the status of a payment whose outcome is unknown.
var UnknownBadge = page.Badge{Tone: page.Unknown, Word: "Outcome unknown"}

// WaitsBadge is the status of a payout that awaits approval.
var WaitsBadge = page.Badge{Tone: page.Open, Word: "Awaiting approval"}

// BadgeOf returns the status of a payment.
func BadgeOf(p book.Payment) page.Badge {
	if p.AwaitsApproval() {
		return WaitsBadge
	}
	if Unknown(p) {
		return UnknownBadge
	}
	if b, known := StatusBadges[p.PublicStatus()]; known {
		return b
	}
	return page.Badge{Word: p.PublicStatus()}
}

// Unknown reports whether a payment is open because its outcome is unknown.
func Unknown(p book.Payment) bool { return p.OutcomeUnknown() }

// KindWords name the kinds of payments.
var KindWords = map[book.Kind]string{
	book.KindCollection: "Collection", book.KindPayout: "Payout", book.KindTopUp: "Airtime", book.KindBundle: "Data package",
}

// KindsWords name them in the plural.
var KindsWords = map[book.Kind]string{
	book.KindCollection: "Collections", book.KindPayout: "Payouts", book.KindTopUp: "Airtime", book.KindBundle: "Data packages",
}

// DeliveryBadges are the states of webhooks.
var DeliveryBadges = map[webhook.State]page.Badge{
	webhook.Pending:    {Tone: page.Open, Word: "Pending"},
	webhook.Delivered:  {Tone: page.Good, Word: "Delivered"},
	webhook.Failed:     {Tone: page.Bad, Word: "Failed"},
	webhook.Superseded: {Tone: page.Plain, Word: "Replaced"},
}

// Worded returns the badge of a word. A word that is not in the table is shown unchanged.
func Worded(badges map[string]page.Badge, word string) page.Badge {
	if b, known := badges[word]; known {
		return b
	}
	return page.Badge{Word: word}
}

// providerNames are the names of providers.
var providerNames = map[string]string{"mtn": "MTN", "mtnmomo": "MTN", "hubtel": "Hubtel", "paystack": "Paystack", "pawapay": "pawaPay", "moolre": "Moolre", "smpp": "SMS", "hubtelsms": "Hubtel SMS", "arkesel": "Arkesel", "smsc": "Message centre"}

// ProviderName returns the name of a provider.
func ProviderName(name string) string {
	if known := providerNames[name]; known != "" {
		return known
	}
	return name
}

// legWords name the ledger transfers of a payment.
var legWords = map[string]string{
	book.LegHold: "Amount reserved", book.LegFee: "Charges reserved", book.LegFinal: "Amount settled", book.LegFinalFee: "Charges settled",
	book.LegContradicted: "Amount corrected", book.LegContradictedFee: "Charges corrected", book.LegContradictedRest: "Remainder corrected",
	book.LegProviderFee: "Provider's fee", book.LegCommission: "Provider's commission",
}

// exchangeWords name the requests to providers.
var exchangeWords = map[string]string{
	"collect": "payment request", "requesttopay": "payment request", "disburse": "submission", "disburse_wallet": "submission", "disburse_bank": "submission",
	"transfer": "submission", "topup": "submission", "bundle": "submission", "wallet_name": "name lookup", "wallet_active": "number lookup",
	"bank_name": "name lookup", "token": "sign-in",
}

// ExchangeWord names a request to a provider by the operation of its adapter.
func ExchangeWord(operation string) string {
	if strings.HasSuffix(operation, "_status") {
		return "status query"
	}
	if word := exchangeWords[operation]; word != "" {
		return word
	}
	return strings.ReplaceAll(operation, "_", " ")
}

// BreakerBadges are the statuses of circuit breakers, binds and delivery receipts.
var BreakerBadges = map[string]page.Badge{
	"closed": {Tone: page.Good, Word: "Working"}, "open": {Tone: page.Bad, Word: "Failing"}, "half-open": {Tone: page.Open, Word: "Testing"},
	"bound": {Tone: page.Good, Word: "Connected"}, "not bound": {Tone: page.Bad, Word: "Not connected"}, "partly bound": {Tone: page.Open, Word: "Partly connected"}, "not heard of": {Tone: page.Unknown, Word: "No report"},
	messaging.ReceiptsMatched: {Tone: page.Good, Word: "Matched"}, messaging.ReceiptsUnmatched: {Tone: page.Bad, Word: "Unmatched"}, messaging.ReceiptsOtherBase: {Tone: page.Bad, Word: "Probably wrong number base"},
}

// CampaignBadges are the statuses of campaigns, MessageBadges those of their messages.
var (
	CampaignBadges = map[string]page.Badge{
		"active": {Tone: page.Sent, Word: "Sending"}, "stopped": {Tone: page.Declined, Word: "Stopped"}, "done": {Tone: page.Good, Word: "Done"},
	}
	MessageBadges = map[string]page.Badge{
		"queued": {Tone: page.Open, Word: "Queued"}, "submitted": {Tone: page.Sent, Word: "Submitted"}, "delivered": {Tone: page.Good, Word: "Delivered"},
		"failed": {Tone: page.Bad, Word: "Failed"}, "expired": {Tone: page.Plain, Word: "Expired"}, "rejected": {Tone: page.Bad, Word: "Rejected"},
		"unknown": {Tone: page.Unknown, Word: "Unknown"}, "invalid": {Tone: page.Plain, Word: "Invalid number"},
	}
)

// operationWords name the operations of providers.
var operationWords = map[string]string{
	"collect": "Collections", "disburse_wallet": "Payouts to wallets", "disburse_bank": "Payouts to banks", "refund": "Refunds", "wallet_name": "Wallet name lookups", "bank_name": "Bank name lookups",
	"topup": "Airtime", "offers": "Data package offers", "bundle": "Data packages",
}

// OperationWord names an operation of a provider.
func OperationWord(operation string) string {
	if word := operationWords[operation]; word != "" {
		return word
	}
	return operation
}

// requestWords name the requests to providers by the operations of their log.
var requestWords = map[string]string{"collect": "Collection", "requesttopay": "Collection", "disburse": "Payout", "transfer": "Payout", "refund": "Refund", "topup": "Airtime", "bundle": "Data package",
	"offers": "Data package offers", "wallet_name": "Wallet name", "wallet_active": "Wallet check", "bank_name": "Bank name", "balance": "Balance", "float": "Balance", "token": "Access token"}

// RequestWord names a request to a provider.
func RequestWord(operation string) string {
	of, status := strings.CutSuffix(operation, "_status")
	word := requestWords[of]
	if word == "" {
		word = Capital(strings.ReplaceAll(of, "_", " "))
	}
	if status {
		word += " status query"
	}
	return word
}

// CheckWords name the books that are checked.
var CheckWords = map[string]string{"ledger": "Ledger", "payments": "Payments against the ledger", "messages": "Messages against the ledger", "batches": "Batches against the ledger", "audit": "Audit log against its chain"}

// MessageKinds name the kinds of sends.
var MessageKinds = map[string]string{"campaign": "Campaign", "otp": "One-time password"}

// MessageWhy returns the reason why a message failed. Numeric codes are those of the mobile operator.
func MessageWhy(code string) string {
	if code != "" && strings.Trim(code, "0123456789") == "" {
		return "Operator code " + code
	}
	return Capital(strings.ReplaceAll(code, "_", " "))
}

// AccountWord names an account of the ledger.
func AccountWord(id ledger.AccountID) string {
	name, of, _ := strings.Cut(string(id), "/")
	if strings.HasPrefix(name, "wallet:") {
		return "Wallet"
	}
	if id.IsBank() {
		return "Bank account " + of
	}
	if of != "" {
		provider, account, _ := strings.Cut(of, "/")
		return strings.TrimSuffix(Capital(name)+" at "+ProviderName(provider)+", "+account, ", ")
	}
	return Capital(strings.ReplaceAll(name, "_", " "))
}

// placeWords name accounts of the ledger to the people of an account, who know no providers and no floats.
var placeWords = map[string]string{"clearing": "On hold", "fees": "Charges", "suspense": "Under review", "funding": "Funding", "used": "Used", "reserve": "Batch reserve",
	"receivable": "Debt", "float": "Outside", "bank": "Funding", "transit": "Outside"}

// PlaceWord returns the word for an account of the ledger that an account's people read.
func PlaceWord(id ledger.AccountID) string {
	name, _, _ := strings.Cut(string(id), "/")
	if word := placeWords[name]; word != "" {
		return word
	}
	return AccountWord(ledger.AccountID(name))
}

// Capital returns a word with a capital first letter.
func Capital(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// movementWords are the words for the products in the kinds of the ledger's transfers.
var movementWords = map[string]string{"topup": "Airtime", "bundle": "Data package"}

// MovementWord names the kind of a transfer of the ledger, such as topup_succeeded.
func MovementWord(kind string) string {
	of, rest, _ := strings.Cut(kind, "_")
	if word := movementWords[of]; word != "" {
		return strings.TrimSpace(word + " " + strings.ReplaceAll(rest, "_", " "))
	}
	return Capital(strings.ReplaceAll(kind, "_", " "))
}

// LegWord names a ledger transfer of a payment.
func LegWord(leg string) string {
	if word := legWords[leg]; word != "" {
		return word
	}
	return Capital(strings.ReplaceAll(leg, "_", " "))
}
