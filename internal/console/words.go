package console

import (
	"strings"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/webhook"
)

// The catalogue: every word for a status, a kind or a channel that a page shows.

// statusBadges are the words that customers read (Payment.Word).
var statusBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Pending"},
	"submitted": {Tone: page.Sent, Word: "Submitted"},
	"success":   {Tone: page.Good, Word: "Success"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"invalid":   {Tone: page.Plain, Word: "Invalid"},
}

// unknownBadge is that of a payment whose outcome is unknown.
var unknownBadge = page.Badge{Tone: page.Unknown, Word: "Outcome unknown"}

// waitsBadge is that of a payout that the account's own people have not approved yet.
var waitsBadge = page.Badge{Tone: page.Open, Word: "Waits for approval"}

// badgeOf is the state of a payment as people should see it.
func badgeOf(p book.Payment) page.Badge {
	if p.Waits() {
		return waitsBadge
	}
	if unknown(p) {
		return unknownBadge
	}
	if b, known := statusBadges[p.Word()]; known {
		return b
	}
	return page.Badge{Word: p.Word()}
}

// unknown says that a payment is open because its outcome is unknown.
func unknown(p book.Payment) bool {
	open := p.Status == book.StatusPending
	return open && (!p.EscalatedAt.IsZero() || p.Refusal != book.RefusalNone || p.Classed && p.Class == provider.Unknown)
}

// kindWords name the kinds of payments.
var kindWords = map[book.Kind]string{
	book.KindCollection: "Collection", book.KindPayout: "Payout", book.KindTopUp: "Airtime", book.KindBundle: "Data",
}

// deliveryBadges are the states of webhooks.
var deliveryBadges = map[webhook.State]page.Badge{
	webhook.Pending:    {Tone: page.Open, Word: "Pending"},
	webhook.Delivered:  {Tone: page.Good, Word: "Delivered"},
	webhook.Failed:     {Tone: page.Bad, Word: "Given up"},
	webhook.Superseded: {Tone: page.Plain, Word: "Superseded"},
}

// promptBadges are the states of a handset's prompts, and of what the simulator booked.
var promptBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Waiting"},
	"approved":  {Tone: page.Good, Word: "Approved"},
	"success":   {Tone: page.Good, Word: "Success"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"wrong_pin": {Tone: page.Declined, Word: "Wrong PIN"},
	"expired":   {Tone: page.Plain, Word: "Expired"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
}

// worded gives the badge of a word; one that the catalogue lacks is shown as it is.
func worded(badges map[string]page.Badge, word string) page.Badge {
	if b, known := badges[word]; known {
		return b
	}
	return page.Badge{Word: word}
}

// providerNames are those that people know providers by.
var providerNames = map[string]string{"mtn": "MTN", "mtnmomo": "MTN", "hubtel": "Hubtel", "smpp": "SMS", "smsc": "Message centre"}

func providerName(name string) string {
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

// exchangeWord is the catalogue's word for an operation of an adapter.
func exchangeWord(operation string) string {
	if strings.HasSuffix(operation, "_status") {
		return "asked for the status"
	}
	if word := exchangeWords[operation]; word != "" {
		return word
	}
	return strings.ReplaceAll(operation, "_", " ")
}

// breakerBadges are the states of a provider's breaker, and of binds.
var breakerBadges = map[string]page.Badge{
	"closed": {Tone: page.Good, Word: "Well"}, "open": {Tone: page.Bad, Word: "Failing"}, "half-open": {Tone: page.Open, Word: "Being tried"},
	"bound": {Tone: page.Good, Word: "Bound"}, "not bound": {Tone: page.Bad, Word: "Not bound"}, "partly bound": {Tone: page.Open, Word: "Partly bound"}, "not heard of": {Tone: page.Unknown, Word: "Not heard of"},
	messaging.ReceiptsMatched: {Tone: page.Good, Word: "Matched"}, messaging.ReceiptsUnmatched: {Tone: page.Bad, Word: "Unmatched"}, messaging.ReceiptsOtherBase: {Tone: page.Bad, Word: "Probably another base"},
}

// campaignBadges are the states of campaigns, and messageBadges those of their messages.
var (
	campaignBadges = map[string]page.Badge{
		"active": {Tone: page.Sent, Word: "Under way"}, "stopped": {Tone: page.Declined, Word: "Stopped"}, "done": {Tone: page.Good, Word: "Done"},
	}
	messageBadges = map[string]page.Badge{
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

func operationWord(operation string) string {
	if word := operationWords[operation]; word != "" {
		return word
	}
	return operation
}

// checkWords name the books that are checked.
var checkWords = map[string]string{"ledger": "Ledger", "payments": "Payments against the ledger", "messages": "Messages against the ledger", "audit": "Audit log against its chain"}

// messageKinds name the kinds of sends.
var messageKinds = map[string]string{"campaign": "Campaign", "otp": "One-time password"}

// messageWhy is why a message failed: the operators' codes are numbers, our own reasons words.
func messageWhy(code string) string {
	if code != "" && strings.Trim(code, "0123456789") == "" {
		return "the operator's code " + code
	}
	return strings.ReplaceAll(code, "_", " ")
}

// accountWord names an account of the ledger.
func accountWord(id ledger.AccountID) string {
	name, of, _ := strings.Cut(string(id), "/")
	if strings.HasPrefix(name, "wallet:") {
		return "Wallet"
	}
	if of != "" {
		provider, account, _ := strings.Cut(of, "/")
		return strings.TrimSuffix(upper(name)+" at "+providerName(provider)+", "+account, ", ")
	}
	return upper(strings.ReplaceAll(name, "_", " "))
}

// upper begins a word with a capital letter.
func upper(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// legWord is the catalogue's word for a movement.
func legWord(leg string) string {
	if word := legWords[leg]; word != "" {
		return word
	}
	return upper(strings.ReplaceAll(leg, "_", " "))
}
