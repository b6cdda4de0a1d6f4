package guides

import (
	"fmt"
	"net/http"
	"strings"
)

// Code is one error code, with the texts of its own page and of the table of codes.
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

// Codes are all codes that a client can receive, by status. Tests of package api compare them with the code that
// returns them and with the OpenAPI document.
var Codes = []Code{
	{400, "malformed_json", "the body is not one JSON object", "fix the request"},
	{400, "body_incomplete", "the body did not arrive whole", "send it again"},
	{400, "callback_unreadable", "a provider's callback could not be read", "only providers see this"},
	{400, "insufficient_wallet_balance", "the wallet does not cover amount and fee; nothing was recorded", "fund the wallet, then send the same request again"},
	{400, "payout_failed_refunded", "the provider refused the payout and the wallet is refunded", "read `data.reason`, and use a new reference to try again; the same request gets the same answer"},
	{400, "payment_failed", "the same request was sent before and its payment failed; the account answers duplicates by repeating the first answer", "read `data.reason`, and use a new reference to try again"},
	{401, "invalid_api_key", "the key is missing, unknown, revoked or expired", "check the header `x-api-key`"},
	{401, "otp_not_open", "the one-time password does not exist, belongs to another number, has expired, was used, was replaced by a newer one, or has no tries left", "send a new code"},
	{402, "insufficient_sms_balance", "the account has too few SMS credits; `data` has `balance` and `smsCost`; nothing was recorded", "buy credits"},
	{403, "account_blocked", "the account is blocked; statuses can still be read", "ask the operator"},
	{403, "scope_missing", "the key does not have the scope of this endpoint", "use a key with the scope"},
	{403, "ip_not_whitelisted", "payouts are not allowed from the IP address that the message names", "have it added to the account's list"},
	{403, "daily_limit_reached", "the key has reached its daily limit (UTC); nothing was recorded", "wait until midnight UTC, or ask the operator for a higher limit"},
	{403, "collections_disabled", "the account may not collect mobile money", "ask the operator"},
	{403, "too_few_people", "a payout of this amount needs approvals, and too few people of the account may approve; nothing was recorded", "ask the account's owner to add approvers (Team) or to change the policy (Policy)"},
	{403, "payouts_stopped", "the account's payouts are stopped", "ask the operator"},
	{403, "group_not_owned", "a contact group belongs to another account; in `sms-api/send` also one that does not exist", "fetch the list of groups"},
	{403, "contact_not_owned", "the contact belongs to another account", "fetch the list of contacts"},
	{403, "host_not_served", "the host name of the request is neither this machine's nor that of the public URL; a development server refuses it, because a foreign web page could point its own name here", "use `localhost`, or set `MAKOLA_PUBLIC_URL` to the address that you use and restart"},
	{403, "not_encrypted", "the request did not come through the proxy that ends TLS", "use the public address"},
	{403, "batch_of_people", "people of the account made the batch, so no key changes it", "use the batch's page"},
	{403, "batch_paused_by_person", "a person or a recovery paused the batch, so no key resumes it", "ask a person of the account to resume it on its page"},
	{403, "key_revoked", "the key that made the batch was revoked or has expired", "make the batch with another key"},
	{404, "endpoint_not_found", "no such endpoint", "check the path"},
	{404, "webhook_not_found", "the account has no such payment or webhook of the last 30 days", "list them with account-api/webhooks"},
	{404, "request_not_found", "the account has no refused or failed request with this id; the request succeeded, is older than 30 days, or was one of too many in a minute", "check the id; a request appears within a second"},
	{404, "payment_not_found", "the account has no collection or payout with this id or reference", "see [what to do when no answer comes](/docs/idempotency#when-no-answer-comes)"},
	{404, "airtime_not_found", "the account has no airtime purchase with this reference", "see [what to do when no answer comes](/docs/idempotency#when-no-answer-comes)"},
	{404, "bundle_not_found", "the account has no data purchase with this id", "see [what to do when no answer comes](/docs/idempotency#when-no-answer-comes)"},
	{404, "service_not_found", "no such data service", "fetch the list of services"},
	{404, "package_expired", "the package id does not exist, belongs to another number, or is older than 60 minutes", "fetch the packages again"},
	{404, "invalid_plan", "no such `network_id`", "fetch the list of networks"},
	{404, "campaign_not_found", "the account has no campaign with this id", "check `campaignId`"},
	{404, "group_not_found", "no such contact group", "fetch the list of groups"},
	{404, "contact_not_found", "no such contact", "fetch the list of contacts"},
	{404, "batch_not_found", "no batch of the account has this id; to `submit` it, the key must have made it", "check `batch_id`"},
	{405, "method_not_allowed", "the endpoint does not have this method", "use a method that the header `Allow` names"},
	{409, "idempotency_in_progress", "a request with the same Idempotency-Key is in progress", "wait `Retry-After`, then send the same key again"},
	{409, "reference_in_progress", "the same request is in progress; the account answers duplicates by repeating the first answer", "wait `Retry-After`, then send the same reference again"},
	{409, "refund_in_progress", "another refund of the collection is still open", "wait for its outcome"},
	{409, "upload_in_progress", "the rows of another batch are being checked: one of an account at a time", "wait `Retry-After`, then send it again"},
	{409, "names_pending", "the registered names of bank accounts in the batch are being looked up", "wait `Retry-After`, then submit it again"},
	{409, "batch_moved", "the batch, or another of the account, was changed at the same time", "wait `Retry-After`, then send it again"},
	{410, "webhook_erased", "the webhook is not sent again, because a person was erased from its body", "get the payment's status"},
	{413, "body_too_large", "the body is larger than the endpoint allows", "send a smaller body, or several requests"},
	{422, "invalid_fields", "fields are missing or invalid; `errors` names all of them", "fix them and send the request again; its reference was not used"},
	{422, "duplicate_reference", "the reference was used before; `data` is that transaction", "read `data`"},
	{422, "duplicate_batch", "the same rows were sent under the same name; `data` is that batch", "read `data`; to pay them again give the reason in `again`"},
	{422, "rows_paid_before", "an earlier batch of the last 30 days paid rows of this one; the message says how many", "leave those rows out, or give the reason in `again`"},
	{422, "batch_status", "the batch's status does not allow it; the message names the status", "read the batch"},
	{422, "bad_rows", "rows of the batch cannot be paid", "correct them on the batch's page"},
	{422, "names_unknown", "rows of the batch go to bank accounts whose registered name is unknown", "make a batch without them"},
	{422, "changed_since", "the fees, or the rows that earlier batches paid, changed at the same time; nothing was sent", "submit it again"},
	{422, "too_many_drafts", "the account has 20 batches that were not sent", "submit one, or discard one on its page; drafts are deleted after seven days"},
	{422, "not_refundable", "the collection did not succeed, was reversed, or paid for airtime that did not fail; the message says which", "read the collection's status"},
	{422, "idempotency_key_mismatch", "the Idempotency-Key was used with another body", "use a new key for a new request"},
	{422, "invalid_sender_id", "the sender ID is unknown or not approved", "use one that `sms-api/senderIds` lists as approved"},
	{422, "sender_id_exists", "the account has requested this sender ID before", "wait for the review"},
	{422, "forbidden_word", "the name contains a reserved word; the message ends with it", "choose another name"},
	{422, "contact_exists", "the number is in the group already", "do nothing"},
	{422, "wrong_code", "the one-time password is wrong; a code has five tries", "ask the user for the code again"},
	{429, "rate_limited", "too many requests", "wait `Retry-After`"},
	{429, "otp_too_often", "too many codes were sent to this number, or too many were wrong", "wait `Retry-After`"},
	{429, "otp_range_closed", "too few codes to numbers with this prefix were verified, so codes to them are stopped for a while", "find out who requests codes and never verifies them; the operator can open the range before `Retry-After`"},
	{500, "internal_error", "the server failed", "after a POST, get the status before you send it again"},
	{503, "older_node", "a server of the previous release is still running, and cannot check the reserve of a batch", "wait `Retry-After`, then submit it again"},
	{503, "database_unavailable", "nothing was recorded", "wait `Retry-After`, then send the same reference again"},
	{503, "recovering", "the service is in recovery; nothing was sent; a transaction that is not found may still exist", "wait `Retry-After`, then send the same reference again"},
	{503, "server_busy", "the server handles too many requests, or too many large ones of your account; nothing was recorded", "wait `Retry-After`, then send the same reference again"},
	{503, "clock_wrong", "the server's clock is wrong, and it accepts no money until the clock is right", "wait `Retry-After`"},
	{503, "storage_low", "the service has too little storage for messages and contacts; payments continue", "wait `Retry-After`"},
	{503, "outcome_unknown", "the server was interrupted while it recorded the request", "get the status, or send the same request again"},
	{503, "provider_unavailable", "the provider is down or paused; nothing was recorded", "wait `Retry-After`, then send the same reference again"},
	{503, "name_service_unavailable", "names cannot be looked up; nothing was recorded", "try again later with the same reference"},
	{503, "offers_unavailable", "packages cannot be fetched or checked; nothing was bought", "try again later"},
	{503, "sms_unavailable", "no mobile operator is connected; nothing was recorded", "try again later"},
	{503, "not_served", "no provider offers this at the moment", "try again later"},
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
	{"provider_refused", "the provider refused and gave no reason"},
	{"provider_unavailable", "the provider could not be reached; nothing was sent"},
	{"invalid_request", "the provider rejected the request as invalid"},
	{"service_float_low", "the operator's account at the provider has too little money"},
	{"service_not_set_up", "the operator has not set up the service at the provider"},
	{"offer_gone", "the package is no longer offered to this number"},
	{"reversed_by_provider", "the provider reversed the payment"},
	{"answer_mismatch", "the provider's response does not match the payment"},
	{"resolved_by_operator", "the provider did not report the outcome; the operator decided it from the provider's statement"},
	{"not_approved", "people of the account rejected the payout, or did not approve it in time; nothing was sent"},
	{"unknown_error", "the provider did not explain the failure"},
}

// effect returns a sentence about whether a request with the code may have moved money.
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
		return "**It may have been recorded.** Get the status, or send the same request with the same reference again, which never pays twice."
	case "wrong_code":
		return "One of the five tries is used."
	}
	switch c.Status {
	case http.StatusConflict:
		return "An earlier request with the same key or reference is in progress. This one did nothing."
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusPaymentRequired:
		return nothing + "You may use the same reference again."
	}
	return nothing + "The reference was not used."
}

// page is the code's own page in Markdown.
func (c Code) page() string {
	text := fmt.Sprintf("# %s\n\n**%d %s.** %s.\n\n", c.Name, c.Status, http.StatusText(c.Status), sentence(c.Cause))
	text += "## Is money affected?\n\n" + c.effect() + "\n\n"
	text += "## What to do\n\n" + sentence(c.Fix) + ".\n\n"
	if wait := c.Status; wait == http.StatusConflict || wait == http.StatusTooManyRequests || wait == http.StatusServiceUnavailable {
		text += "The header `Retry-After` is the number of seconds to wait.\n\n"
	}
	text += "## The answer\n\n```json\n{\"message\": \"...\", \"code\": \"" + c.Name + "\", \"request_id\": \"req_5d41402abc4b2a76b9719d91\", \"doc_url\": \"@docs@/errors/" + c.Name + "\"}\n```\n\n"
	return text + "`message` explains the error to a person. Quote `request_id` when you ask for help. [All codes](/docs/errors#codes)\n"
}

// sentence returns a text with a capital first letter.
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
