package guides

import (
	"fmt"
	"net/http"
	"strings"
)

// Code is one code of a refusal, as its own page and the table of all of them explain it.
type Code struct {
	Status int    // HTTP
	Name   string // the member code, which never changes its meaning
	Cause  string // Markdown, without a full stop
	Fix    string // Markdown, without a full stop
}

// Reason is why a payment failed: the member reason of statuses and histories.
type Reason struct {
	Name, Meaning string
}

// Codes are all codes that a client can meet, by status. The tests of package api hold them to the code that
// returns them and to the OpenAPI document.
var Codes = []Code{
	{400, "malformed_json", "the body is not one JSON object", "fix the request"},
	{400, "body_incomplete", "the body did not arrive whole", "send it again"},
	{400, "callback_unreadable", "a provider's callback could not be read", "only providers see this"},
	{400, "insufficient_wallet_balance", "the wallet does not cover amount and fee; nothing was recorded", "fund the wallet, then send the same reference again"},
	{400, "payout_failed_refunded", "the provider refused the payout and the wallet is refunded", "read `data.reason`, and use a new reference for a new try; the same request hears the same again"},
	{400, "payment_failed", "the same request came before and its payment failed, where the account's duplicates repeat", "read `data.reason`, and use a new reference for a new try"},
	{401, "invalid_api_key", "the key is missing, unknown, revoked or expired", "check the header `x-api-key`"},
	{401, "otp_not_open", "the request of a one-time password is unknown, of another number, expired, used, replaced by a newer one, or out of tries", "send a new code"},
	{402, "insufficient_sms_balance", "the SMS credits do not cover it; `data` has balance and smsCost; nothing was recorded", "buy credits"},
	{403, "account_blocked", "the account is blocked; statuses can still be asked for", "ask the operator"},
	{403, "scope_missing", "the key may not do this", "use a key with the scope"},
	{403, "ip_not_whitelisted", "payouts are not allowed from the address named", "have it added to the account's list"},
	{403, "daily_limit_reached", "the key has spent what the operator lets it spend in a day (UTC); nothing was recorded", "wait for midnight, or ask the operator"},
	{403, "collections_disabled", "the account may not collect mobile money", "ask the operator"},
	{403, "too_few_people", "a payout of this amount must be approved by people of the account, and too few of them may; nothing was recorded", "ask the account's owner: Team, and Policy"},
	{403, "payouts_stopped", "the account's payouts are stopped", "ask the operator"},
	{403, "group_not_owned", "a contact group belongs to another account; in `sms-api/send` also one that does not exist", "fetch the groups"},
	{403, "contact_not_owned", "the contact belongs to another account", "fetch the contacts"},
	{403, "host_not_served", "a development server was asked by a host name that is neither this machine's nor that of its public URL, such as by a web page that points its own name to this machine", "use `localhost`, or set `MAKOLA_PUBLIC_URL` to the address that you use and restart"},
	{403, "not_encrypted", "the request did not come through the proxy that speaks https", "use the public address"},
	{404, "endpoint_not_found", "no such endpoint", "check the path"},
	{404, "webhook_not_found", "the payment, or this webhook of it, is not the account's own, has no webhook, or is older than 30 days", "look at account-api/webhooks"},
	{404, "request_not_found", "no refused or failed request of the account has this id: it is older than 30 days, was one of very many in a minute, or succeeded", "check the id; a request shows up within a second"},
	{404, "payment_not_found", "no collection or payout of the account has this id or reference", "see [what to do when no answer comes](/docs/idempotency#when-no-answer-comes)"},
	{404, "airtime_not_found", "no top-up has this reference", "see [what to do when no answer comes](/docs/idempotency#when-no-answer-comes)"},
	{404, "bundle_not_found", "no data purchase has this id", "see [what to do when no answer comes](/docs/idempotency#when-no-answer-comes)"},
	{404, "service_not_found", "no such data service", "fetch the services"},
	{404, "package_expired", "the package id is unknown, of another number, or older than 60 minutes", "fetch the packages again"},
	{404, "invalid_plan", "no such `network_id`", "fetch the networks"},
	{404, "campaign_not_found", "no campaign of the account has this id", "check `campaignId`"},
	{404, "group_not_found", "no such contact group", "fetch the groups"},
	{404, "contact_not_found", "no such contact", "fetch the contacts"},
	{405, "method_not_allowed", "the header `Allow` names the methods", "fix the request"},
	{409, "idempotency_in_progress", "a request with the same Idempotency-Key is under way", "wait `Retry-After`, then send the same key again"},
	{409, "reference_in_progress", "the same request is under way, where the account's duplicates repeat", "wait `Retry-After`, then send the same reference again"},
	{409, "refund_in_progress", "another refund of the collection is still open", "wait for its outcome"},
	{410, "webhook_erased", "the webhook is not sent again: the person whom it named was erased from it, and it would tell something else under the same id", "ask for the payment's status"},
	{413, "body_too_large", "the body is larger than the endpoint takes", "send less"},
	{422, "invalid_fields", "fields are missing or bad; `errors` names all of them", "fix them; the same reference may be used"},
	{422, "duplicate_reference", "the reference was used before; `data` is that transaction", "read `data`"},
	{422, "not_refundable", "the collection did not succeed, was reversed, or paid for airtime that did not fail; the message says which", "read the collection's status"},
	{422, "idempotency_key_mismatch", "the Idempotency-Key was used with another body", "new key for a new request"},
	{422, "invalid_sender_id", "the sender ID is unknown or not approved", "use one that `sms-api/senderIds` lists as approved"},
	{422, "sender_id_exists", "the account has asked for this sender ID already", "wait for the review"},
	{422, "forbidden_word", "the name contains a word that no sender ID may have; the message ends with it", "choose another name"},
	{422, "contact_exists", "the number is in the group already", "nothing"},
	{422, "wrong_code", "the one-time password is wrong; five tries are all", "ask the user again"},
	{429, "rate_limited", "too many requests", "wait `Retry-After`"},
	{429, "otp_too_often", "too many codes were sent to this number, or too many were wrong", "wait `Retry-After`"},
	{429, "otp_range_closed", "too few of the codes to numbers that begin like this one were verified, so none is sent to them for a while", "find out who asks for codes and does not tell them back; the operator can open the range before `Retry-After`"},
	{500, "internal_error", "our fault", "after a POST ask for the status first"},
	{503, "database_unavailable", "nothing was recorded", "wait `Retry-After`, then send the same reference again"},
	{503, "recovering", "the service is being recovered; nothing was sent, and a transaction that is unknown may only be forgotten", "wait `Retry-After`, then send the same reference again"},
	{503, "server_busy", "too many requests, or too many large ones of yours, are being read at once; nothing was recorded", "wait `Retry-After`, then send the same reference again"},
	{503, "clock_wrong", "the clock of the server is wrong, and it takes nothing until it is right", "wait `Retry-After`"},
	{503, "storage_low", "the service has too little room for messages and contacts; payments go on", "wait `Retry-After`"},
	{503, "outcome_unknown", "we were interrupted, or got no answer in time, while recording", "ask for the status, or send the same reference again"},
	{503, "provider_unavailable", "the provider is down or paused; nothing was recorded", "wait `Retry-After`, then send the same reference again"},
	{503, "name_service_unavailable", "names cannot be looked up; nothing was recorded", "try later with the same reference"},
	{503, "offers_unavailable", "packages cannot be fetched or checked; nothing was bought", "try later"},
	{503, "sms_unavailable", "no operator is connected for messages; nothing was recorded", "try later"},
	{503, "not_served", "no provider serves this at the moment", "try later"},
}

// Reasons are all reasons that a status can have.
var Reasons = []Reason{
	{"declined_by_payer", "the payer rejected the prompt (status `declined` in the history, `failed` in checkstatus)"},
	{"prompt_expired", "the payer did not answer in time (status `declined` in the history, `failed` in checkstatus)"},
	{"insufficient_funds", "the payer has too little money"},
	{"wrong_pin", "the payer entered a wrong PIN"},
	{"payer_not_found", "no such wallet (status `invalid` in the history, `failed` in checkstatus)"},
	{"payee_not_found", "no such wallet or account"},
	{"limit_reached", "a limit of the wallet is reached"},
	{"account_barred", "the wallet is barred"},
	{"provider_refused", "the provider refused without a better reason"},
	{"provider_unavailable", "the provider could not be reached; nothing was sent"},
	{"invalid_request", "the provider says that the request is not valid"},
	{"service_float_low", "the service is short of funds at the provider"},
	{"service_not_set_up", "the service is not set up at the provider"},
	{"offer_gone", "the package is no longer offered to this number"},
	{"reversed_by_provider", "the provider took the payment back"},
	{"answer_mismatch", "the provider's answer does not match the payment"},
	{"resolved_by_operator", "the provider could not say what became of the payment; the operator ended it, as success or failed, by the provider's statement"},
	{"not_approved", "the account's own people did not approve the payout in time, or rejected it; nothing was sent"},
	{"unknown_error", "the provider did not explain the failure"},
}

// effect states whether a request with the code may have moved money.
func (c Code) effect() string {
	const nothing = "Nothing was recorded, and no money moved. "
	switch c.Name {
	case "payout_failed_refunded", "payment_failed":
		return "The payment is recorded as failed, and its money is back in the wallet. Its reference is used."
	case "duplicate_reference":
		return "This request recorded nothing. An earlier one with the same reference did: its transaction is in `data`."
	case "idempotency_key_mismatch":
		return "This request recorded nothing. An earlier one with the same key did."
	case "outcome_unknown", "internal_error":
		return "**It may have been recorded.** Ask for the status, or send the same request again with the same reference: that never pays twice."
	case "wrong_code":
		return "One of the five tries is used."
	}
	switch c.Status {
	case http.StatusConflict:
		return "An earlier request with the same key or reference is under way. This one did nothing."
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusPaymentRequired:
		return nothing + "The same reference may come again."
	}
	return nothing + "The reference was not used."
}

// page is the code's own page in Markdown.
func (c Code) page() string {
	text := fmt.Sprintf("# %s\n\n**%d %s.** %s.\n\n", c.Name, c.Status, http.StatusText(c.Status), sentence(c.Cause))
	text += "## Is money affected?\n\n" + c.effect() + "\n\n"
	text += "## What to do\n\n" + sentence(c.Fix) + ".\n\n"
	if wait := c.Status; wait == http.StatusConflict || wait == http.StatusTooManyRequests || wait == http.StatusServiceUnavailable {
		text += "The header `Retry-After` says how many seconds to wait.\n\n"
	}
	text += "## The answer\n\n```json\n{\"message\": \"...\", \"code\": \"" + c.Name + "\", \"request_id\": \"req_5d41402abc4b2a76b9719d91\", \"doc_url\": \"@docs@/errors/" + c.Name + "\"}\n```\n\n"
	return text + "`message` explains it to a person. Quote `request_id` when you ask for help. [All codes](/docs/errors#codes)\n"
}

// sentence begins with a capital letter.
func sentence(text string) string {
	if text == "" || text[0] == '`' {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// codeTable is the table of all codes in Markdown.
func codeTable() string {
	var b strings.Builder
	b.WriteString("| Status | Code | What it means | What to do |\n|---|---|---|---|\n")
	for _, c := range Codes {
		fmt.Fprintf(&b, "| %d | [`%s`](/docs/errors/%s) | %s | %s |\n", c.Status, c.Name, c.Name, c.Cause, c.Fix)
	}
	return b.String()
}

// reasonTable is the table of all reasons in Markdown.
func reasonTable() string {
	var b strings.Builder
	b.WriteString("| Reason | What it means |\n|---|---|\n")
	for _, r := range Reasons {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Name, r.Meaning)
	}
	return b.String()
}
