package api

import (
	"net/http"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/ratelimit"
)

// Routes returns all routes of the interface. The OpenAPI document lists the same routes, which a test checks.
func Routes() []Route {
	return []Route{
		{Method: http.MethodPost, Path: "payment-api/momopay", Scope: access.Collect, Body: moneyBody, Collects: true, Reference: "transaction_id", handle: collect},
		{Method: http.MethodPost, Path: "payment-api/momopay/voucher", Scope: access.Collect, Limit: ratelimit.VoucherLimit(), Body: moneyBody, handle: voucher},
		{Method: http.MethodGet, Path: "payment-api/checkstatus/{transaction_id}", Scope: access.Read, Body: moneyBody, Open: true, handle: paymentStatus},
		{Method: http.MethodGet, Path: "payment-api/collections/history", Scope: access.Read, Body: moneyBody, handle: collections},
		{Method: http.MethodGet, Path: "payment-api/transfers/history", Scope: access.Read, Body: moneyBody, handle: transfers},
		{Method: http.MethodPost, Path: "payment-api/send/mobilemoney", Scope: access.Payout, Body: moneyBody, Listed: true, Reference: "client_reference", handle: payoutToWallet},
		{Method: http.MethodPost, Path: "payment-api/send/bank", Scope: access.Payout, Body: moneyBody, Listed: true, Reference: "client_reference", handle: payoutToBank},
		{Method: http.MethodPost, Path: "payment-api/refund", Scope: access.Payout, Body: moneyBody, Listed: true, Reference: "client_reference", handle: refund},
		{Method: http.MethodPost, Path: "payment-api/batches", Stores: true, Scope: access.Batches, Body: bulkBody, Listed: true, handle: makeBatch},
		{Method: http.MethodGet, Path: "payment-api/batches", Scope: access.Batches, Body: moneyBody, handle: listBatches},
		{Method: http.MethodGet, Path: "payment-api/batches/{batch_id}", Scope: access.Batches, Body: moneyBody, handle: batchStatus},
		{Method: http.MethodGet, Path: "payment-api/batches/{batch_id}/rows", Scope: access.Batches, Body: moneyBody, handle: batchRows},
		{Method: http.MethodPost, Path: "payment-api/batches/{batch_id}/submit", Scope: access.Batches, Body: moneyBody, Listed: true, handle: submitBatch},
		{Method: http.MethodPost, Path: "payment-api/batches/{batch_id}/pause", Scope: access.Batches, Body: moneyBody, Listed: true, handle: pauseBatch},
		{Method: http.MethodPost, Path: "payment-api/batches/{batch_id}/resume", Scope: access.Batches, Body: moneyBody, Listed: true, handle: resumeBatch},
		{Method: http.MethodPost, Path: "payment-api/batches/{batch_id}/cancel", Scope: access.Batches, Body: moneyBody, Listed: true, handle: cancelBatch},
		{Method: http.MethodGet, Path: "payment-api/banks/list", Scope: access.Read, Body: moneyBody, handle: banks},
		{Method: http.MethodGet, Path: "payment-api/banks", Scope: access.Read, Body: moneyBody, handle: banks},
		{Method: http.MethodGet, Path: "payment-api/bankNameQuery", Scope: access.Read, Limit: ratelimit.NameLimit(), Body: moneyBody, handle: bankName},
		{Method: http.MethodGet, Path: "kyc-api/msisdNameQuery", Scope: access.Read, Limit: ratelimit.NameLimit(), Body: moneyBody, handle: walletName},
		{Method: http.MethodGet, Path: "account-api/balance", Scope: access.Read, Body: moneyBody, handle: balance},
		{Method: http.MethodGet, Path: "account-api/statement", Scope: access.Read, Body: moneyBody, handle: statementPage},
		{Method: http.MethodGet, Path: "account-api/limits", Scope: access.Read, Body: moneyBody, handle: limits},
		{Method: http.MethodGet, Path: "account-api/requests/{request_id}", Scope: access.Webhooks, Body: moneyBody, handle: refusedRequests},
		{Method: http.MethodGet, Path: "account-api/webhooks", Scope: access.Webhooks, Body: moneyBody, handle: listWebhooks},
		{Method: http.MethodPost, Path: "account-api/webhooks/replay", Scope: access.Webhooks, Limit: ratelimit.ReplayLimit(), Body: moneyBody, handle: replayFailed},
		{Method: http.MethodGet, Path: "account-api/webhooks/payment/{transaction_id}", Scope: access.Webhooks, Body: moneyBody, handle: paymentWebhooks},
		{Method: http.MethodPost, Path: "account-api/webhooks/payment/{transaction_id}/replay", Scope: access.Webhooks, Limit: ratelimit.ReplayLimit(), Body: moneyBody, handle: replayWebhook},
		{Method: http.MethodGet, Path: "account-api/webhook-secret", Scope: access.Webhooks, Body: moneyBody, handle: webhookSecret},
		{Method: http.MethodGet, Path: "account-api/addresses", Scope: access.Webhooks, Body: moneyBody, handle: addresses},

		{Method: http.MethodGet, Path: "airtime-api/networks", Scope: access.Read, Body: moneyBody, handle: networks},
		{Method: http.MethodPost, Path: "airtime-api/sendAirtime", Spends: true, Scope: access.Airtime, Body: moneyBody, Reference: "transaction_id", handle: sendAirtime},
		{Method: http.MethodPost, Path: "airtime-api/buy", Scope: access.Airtime, Limit: ratelimit.AirtimeBuyLimit(), Body: moneyBody, Collects: true, Reference: "transaction_id", handle: buyAirtime},
		{Method: http.MethodGet, Path: "airtime-api/checkstatus/{transaction_id}", Scope: access.Read, Limit: ratelimit.AirtimeStatusLimit(), Body: moneyBody, Open: true, handle: airtimeStatus},

		{Method: http.MethodGet, Path: "databundle-api-v2/services", Scope: access.Read, Body: moneyBody, handle: services},
		{Method: http.MethodGet, Path: "databundle-api-v2/offers/{service_id}/{phone_number}", Scope: access.Read, Limit: ratelimit.OfferLimit(), Body: moneyBody, handle: offers},
		{Method: http.MethodPost, Path: "databundle-api-v2/buy", Spends: true, Scope: access.Airtime, Body: moneyBody, Reference: "client_reference", handle: buyBundle},
		{Method: http.MethodGet, Path: "databundle-api-v2/checkstatus/{ext_transaction_id}", Scope: access.Read, Limit: ratelimit.BundleStatusLimit(), Body: moneyBody, Open: true, handle: bundleStatus},

		{Method: http.MethodPost, Path: "sms-api/requestSenderId", Stores: true, Scope: access.SMS, Limit: ratelimit.SenderIDLimit(), Body: moneyBody, handle: requestSender},
		{Method: http.MethodGet, Path: "sms-api/senderIds", Scope: access.SMS, Body: moneyBody, handle: senders},
		{Method: http.MethodPost, Path: "sms-api/send", Spends: true, Stores: true, Scope: access.SMS, Body: bulkBody, handle: sendSMS},
		{Method: http.MethodGet, Path: "sms-api/send", Spends: true, Stores: true, Scope: access.SMS, Body: moneyBody, handle: sendSMS},
		{Method: http.MethodGet, Path: "sms-api/campaignMessages/{campaignId}", Scope: access.Read, Body: moneyBody, handle: campaignMessages},
		{Method: http.MethodPost, Path: "sms-api/otp/send", Spends: true, Scope: access.OTP, Body: moneyBody, handle: sendOTP},
		{Method: http.MethodPost, Path: "sms-api/otp/verify", Scope: access.OTP, Body: moneyBody, handle: verifyOTP},

		{Method: http.MethodGet, Path: "sms-api/contact/getGroups", Scope: access.Contacts, Body: moneyBody, handle: groups},
		{Method: http.MethodPost, Path: "sms-api/contact/addGroup", Stores: true, Scope: access.Contacts, Body: moneyBody, handle: addGroup},
		{Method: http.MethodPatch, Path: "sms-api/contact/updateGroup/{id}", Scope: access.Contacts, Body: moneyBody, handle: updateGroup},
		{Method: http.MethodDelete, Path: "sms-api/contact/deleteGroup/{groupId}", Scope: access.Contacts, Body: moneyBody, handle: deleteGroup},
		{Method: http.MethodGet, Path: "sms-api/contact/getContacts/{groupId}", Scope: access.Contacts, Body: moneyBody, handle: listContacts},
		{Method: http.MethodPost, Path: "sms-api/contact/addContact", Stores: true, Scope: access.Contacts, Body: moneyBody, handle: addContact},
		{Method: http.MethodPost, Path: "sms-api/contact/addBulkContact", Stores: true, Scope: access.Contacts, Body: bulkBody, handle: addContacts},
		{Method: http.MethodPatch, Path: "sms-api/contact/updateContact/{id}", Scope: access.Contacts, Body: moneyBody, handle: updateContact},
		{Method: http.MethodDelete, Path: "sms-api/contact/deleteContact/{id}", Scope: access.Contacts, Body: moneyBody, handle: deleteContact},
	}
}

// New returns the interface.
func New(d Deps) *API {
	a := &API{Deps: d, log: d.Log, static: map[string]*endpoint{}, general: ratelimit.GeneralLimit(d.GeneralLimit),
		small: newRoom(smallRoom, smallShare), large: newRoom(largeRoom, largeShare), scans: newScans()}
	a.calls.New = func() any { return &call{api: a} }
	for _, r := range Routes() {
		a.add(r)
	}
	a.callbacks = callbacks(d.Secret, d.Routes, d.TextRails)
	a.Exemplify(Examples{})
	return a
}
