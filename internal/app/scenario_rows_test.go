package app

import (
	"slices"
	"testing"
)

// contractRows lists what the interface promises about money, row by row: the contract's endpoints (4.x),
// its state table (3), its error and limit tables (7 and 8), its events (6), its keys (5), and what it
// leaves open and we chose (1.3 and 2). Every row has a scenario, and no scenario covers a row that is not
// here.
var contractRows = map[string]string{
	"4.1/200": "airtime-api/buy answers payment and airtime, both pending", "4.1/403": "account not allowed for momo collection",
	"4.1/404": "invalid plan id", "4.1/422-type": "type is momo",
	"4.2/200": "databundle-api-v2/buy debits the price", "4.2/400": "insufficient wallet balance", "4.2/404": "invalid or expired package id",
	"4.2/404-price": "the price is checked again", "4.2/422-type": "type is e_wallet",
	"4.3/200": "offers and the holder's name", "4.3/404": "unknown service",
	"4.4/200": "status of a package", "4.4/404": "data bundle transaction not found",
	"4.5/201": "networks answer 201",
	"4.6/200": "sendAirtime starts as submitted", "4.6/400": "insufficient wallet balance", "4.6/422": "transaction id already taken", "4.6/422-network": "unknown network_id",
	"4.7/200": "status of a top-up", "4.7/404": "airtime transaction not found",
	"4.8/200": "status of a collection", "4.8/404": "payment not found", "4.8/422-duplicate": "the reference of a collection is used once",
	"4.9/200": "pages, filters, links, meta", "4.9/403": "account blocked", "4.9/422": "filters that make no sense", "4.9/empty": "an empty page",
	"4.10/200": "payout accepted", "4.10/400-funds": "insufficient wallet balance", "4.10/400-failed": "transaction failed, refund issued", "4.10/403": "IP not whitelisted",
	"4.10/422-duplicate": "client reference already taken", "4.10/422-fields": "all bad fields at once", "4.10/422-limit": "the account transfer limit",
	"4.10/channels": "every name of every network", "4.10/leniency": "what existing clients send",
	"4.11/200": "bank payout with the verified name", "4.11/400-funds": "insufficient wallet balance", "4.11/400-failed": "transaction failed, refund issued",
	"4.11/403": "IP not whitelisted", "4.11/422-account": "unknown account before any debit", "4.11/422-duplicate": "client reference already taken",
	"limits/200": "what bounds the account, and what is left", "limits/key": "what a key may still spend today", "limits/403": "account blocked",
	"4.18/200": "the balance record", "4.18/403": "account blocked",

	"3/buy-accepted": "airtime by mobile money: payment pending, airtime pending", "3/buy-success": "the payer pays, the top-up goes out",
	"3/buy-declined": "the payer declines", "3/buy-topup-failed": "paid, and the top-up fails",
	"3/collection-success": "a collection is paid", "3/collection-checkstatus": "pending to success during checkstatus, credited already",
	"3/collection-declined": "declined and expired prompts", "3/collection-invalid": "no such wallet", "3/collection-failed": "no funds, wrong PIN",
	"3/collection-handset": "the payer answers late", "3/collection-late": "ended, then paid after all: credited and told",
	"3/bundle-accepted": "payment success, data_bundle submitted", "3/bundle-success": "the package is delivered", "3/bundle-failed-checkstatus": "failed and refunded during checkstatus",
	"3/topup-accepted": "wallet debited, submitted", "3/topup-success": "success, callback", "3/topup-failed": "failed, refunded, callback",
	"3/topup-failed-checkstatus": "failed and refunded during checkstatus", "3/topup-wrong-network": "the network refuses the number",
	"3/payout-accepted": "wallet debited by amount plus fee", "3/payout-success": "webhook with status success", "3/payout-failed": "webhook with status failed, amount plus fee refunded",
	"3/payout-rejected": "refunded at once, 400", "3/bank-success": "a bank payout settles", "3/bank-failed": "a bank payout fails after acceptance",
	"3/unknown-success": "the answer was lost, success later", "3/unknown-failed": "the answer was lost, failed later", "3/unknown-garbled": "the answer was unreadable",
	"3/paid-and-refused": "refused by the provider that has done it",
	"3/provider-down":    "the provider is down for a moment",
	"3/callback-twice":   "a repeated callback", "3/callback-missing": "no callback", "3/callback-stale": "a contradicting late callback", "3/callback-forged": "a forged callback",

	"5/401": "a key is needed everywhere", "5/member": "a member's key acts on the owner",
	"6/payout-webhook": "the payout webhook's five fields", "6/airtime-webhook": "the airtime callback", "6/webhook-retry": "a receiver that is down",

	"7/400-funds": "insufficient wallet balance", "7/400-failed": "payout failed and was refunded", "7/403-collections": "account not allowed for momo collection",
	"7/403-blocked": "account blocked", "7/403-ip": "IP not whitelisted", "7/404-plan": "invalid plan id", "7/404-package": "invalid or expired package id",
	"7/404-payment": "payment not found", "7/404-bundle": "data bundle transaction not found", "7/404-airtime": "airtime transaction not found",
	"7/422-duplicate": "duplicate client reference", "7/422-transaction": "duplicate transaction id",

	"8/airtime-buy-rate": "airtime-api/buy 60 per hour", "8/bundle-status-rate": "databundle-api-v2/checkstatus 60 per minute",
	"8/airtime-status-rate": "airtime-api/checkstatus 60 per minute", "8/airtime-buy-amount": "0.50 to 5000", "8/airtime-amount": "0.50 to 100",
	"8/payout-amount": "0.50 to the limit", "8/bank-amount": "0.50 to the limit", "8/collect-amount": "0.10 to 15000", "8/reference": "12 to 36 characters",
	"8/airtime-reference": "12 to 36 characters", "8/package-validity": "60 minutes", "8/page-size": "1 to 100, default 15",

	"1.3/services": "the data services", "1.3/service-unknown": "an unknown service", "1.3/banks": "the banks under both paths", "1.3/names": "names of wallets and accounts",
	"4.12/200": "a sender ID is asked for", "4.12/422-twice": "already requested this sender id", "4.12/422-word": "the message ends with the lower-case word",
	"4.13/200": "sender IDs with their status, approved first",
	"4.14/200": "a text to a list", "4.14/get": "the same by GET", "4.14/groups": "groups and numbers together, each number once", "4.14/invalid": "the valid are sent, the invalid reported",
	"4.14/402": "insufficient balance, with balance and smsCost", "4.14/422-sender": "invalid sender id", "4.14/422-nobody": "neither recipients nor groups",
	"4.14/422-invalid": "no recipient is a number", "4.14/403": "a group that is not the caller's",
	"4.15/200": "a code is made and sent", "4.15/402": "insufficient balance", "4.15/422-sender": "invalid sender id", "4.15/422-placeholder": "message must contain the placeholder",
	"4.16/200": "groups with their counts", "4.17/200": "a group is deleted with its contacts", "4.17/403": "caller does not own the group", "4.17/404": "group not found",
	"3/sender-pending": "a request is pending", "3/sender-approved": "an operator approves", "3/sender-rejected": "an operator rejects, with a reason",
	"7/402": "insufficient SMS balance", "7/403-group": "caller does not own a contact group", "7/404-group": "contact group not found",
	"7/422-sender-exists": "sender ID already requested", "7/422-word": "forbidden word in sender name", "7/422-sender": "invalid sender id",
	"7/422-nobody": "neither recipients nor groups", "7/422-placeholder": "OTP message lacks the placeholder",
	"8/sender-rate": "sms-api/requestSenderId 60 per hour", "8/sender-name": "up to 11 characters", "8/sms-cost": "ceil(characters / 160) credits per recipient",
	"8/otp-length": "minimum 4, default 4", "8/otp-expiry": "minimum 2 minutes, default 5",
	"1.3/verify": "a code is compared", "1.3/verify-422": "a wrong code", "1.3/verify-401": "unknown, expired, used, void, out of tries", "1.3/campaign-messages": "what became of each recipient",
	"1.3/groups": "groups are made and renamed", "1.3/contacts": "contacts are added, changed, listed, deleted", "1.3/bulk": "many contacts at once", "1.3/contacts-foreign": "contacts of somebody else",
	"2/message-delivered": "submitted, then delivered", "2/message-failed": "receipts that say no", "2/message-refused": "what no operator took is refunded", "2/message-odd": "receipts twice, stale and never",
	"2/message-queue": "an operator's queue is full for a while", "2/message-stop": "an operator stops a campaign", "2/message-optout": "who opted out gets nothing", "2/message-long": "long messages in parts",
	"2/message-alphabet": "the cedi sign and emoji", "2/sms-scopes": "keys for messages only", "2/sms-blocked": "a blocked account sends nothing",
	"2/sms-idempotency": "Idempotency-Key of messages", "2/otp-rate": "five codes to a number in ten minutes", "2/otp-range": "a range of numbers whose codes are never verified is closed", "2/otp-void": "a new request voids the one before",
	"2/fee-bearer": "the customer bears the fee", "2/collections-off": "momopay needs collections", "2/payouts-stopped": "an operator stops payouts",
	"2/resolve": "an operator ends what no provider will", "2/wallet-transfer": "an operator moves money between two wallets",
	"2/reversed-payout": "done, then taken back", "2/reversed-collection": "paid, then taken back",
	"2/blocked-in-flight": "work in flight of a blocked account", "2/idempotency": "Idempotency-Key", "2/bundle-twice": "the same package twice",
	"2/duplicates-repeat": "duplicates: refuse or repeat",
}

func TestEveryRowOfTheContractHasAScenario(t *testing.T) {
	covered := map[string]bool{}
	titles := map[string]bool{}
	for _, name := range scenarioFiles(t) {
		for _, s := range readScenarios(t, name) {
			if len(s.covers) == 0 || len(s.steps) == 0 {
				t.Errorf("%s, line %d: %q covers nothing", name, s.line, s.title)
			}
			if titles[name+s.title] {
				t.Errorf("%s, line %d: %q is there twice", name, s.line, s.title)
			}
			titles[name+s.title] = true
			for _, row := range s.covers {
				if contractRows[row] == "" {
					t.Errorf("%s, line %d: no row is called %q", name, s.line, row)
				}
				covered[row] = true
			}
		}
	}
	var missing []string
	for row, promise := range contractRows {
		if !covered[row] {
			missing = append(missing, row+": "+promise)
		}
	}
	slices.Sort(missing)
	for _, row := range missing {
		t.Errorf("no scenario covers %s", row)
	}
}
