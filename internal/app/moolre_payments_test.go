package app

import (
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider/moolre"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/apitest"
)

// All payouts, collections and refunds go through Moolre. An account without vouchers has no collections there, because Moolre
// may ask any payer for a code.
func TestMoolre_payments(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		s.routes(t, moolre.Name, route.DisburseWallet, route.DisburseBank, route.WalletName, route.BankName, route.Collect)
		if err := s.app.db.Write(t.Context(), func(tx *db.Tx) error { return s.app.routes.SetBankCode(tx, "040100", moolre.Name, "030501") }); err != nil {
			t.Fatal(err)
		}
		const wallet = `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000001", "channel": "MTN", "client_reference": "$ref", "callback_url": "$hook"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}`
		const paid = `webhook {"amount": "1.00", "charges": "0.10", "status": "success", "transaction_id": "$ref", "ext_transaction_id": "$id"}
provider $id payout success
wallet 98.9`
		fault := func(operation, kind string) string {
			return `fault {"provider": "moolre", "operation": "` + operation + `", "fault": "` + kind + `", "count": 1}`
		}
		s.say(t, "wallet", wallet, "advance 10s", paid)
		s.say(t, "answer lost", fault("disburse", "answer_lost"), wallet, "advance 60s", paid)
		s.say(t, "bank", `POST /payment-api/send/bank
{"amount": 1, "account_number": "1234567890", "bank_id": "$bank", "client_reference": "$ref"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}
advance 10s
provider $id payout success`)
		s.say(t, "refused, and nobody knows for certain", `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000030", "channel": "MTN", "client_reference": "$ref", "callback_url": "$hook"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}
advance 2h
no webhook
wallet 98.9
resolve $id failed
webhook {"status": "failed", "...": 0}
wallet 100`)
		const failed = `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000024", "channel": "MTN", "client_reference": "$ref", "callback_url": "$hook"}
=> 200
{"...": 0}
advance 10s
webhook {"status": "failed", "...": 0}
wallet 100`
		s.say(t, "failed after acceptance", failed)

		collect := func(number, network, status string) string {
			return `POST /payment-api/momopay
{"amount": 10, "phone_number": "` + number + `", "network": "` + network + `", "transaction_id": "$ref", "callback_url": "$hook"}
=> ` + status
		}
		const taken = `
{"message": "*", "data": {"ext_transaction_id": "$id", "...": 0}}`
		const collected = `webhook {"amount": "10.00", "charges": "0.10", "status": "success", "transaction_id": "$ref", "ext_transaction_id": "$id", "phone_number": "*"}
provider $id collection success
wallet 109.9`
		voucher := func(code, status, more string) string {
			return `POST /payment-api/momopay/voucher
{"transaction_id": "$ref", "code": "` + code + `"}
=> ` + status + `
` + more
		}
		const vouchers = "set voucher=on"
		s.say(t, "no vouchers", collect("0240000000", "MTN", "422"))
		s.say(t, "collected", vouchers, collect("0200000000", "TELECEL", "200")+taken, "advance 5s", collected)
		s.say(t, "answer to a collection lost", vouchers, fault("collect", "answer_lost"), collect("0270000000", "AIRTELTIGO", "200")+taken, "advance 60s", collected)
		s.say(t, "forged callbacks", vouchers, fault("collect", "callback_forged"), fault("collect", "callback_duplicate"), collect("0240000000", "MTN", "200")+taken, "advance 5s\nadvance 5s", collected)
		s.say(t, "prompt stays open, and is approved late", vouchers, collect("0240000003", "MTN", "200")+taken, "advance 3h\nno webhook\nwallet 100", `sim POST /transactions/$id {"action": "succeed"}`, "advance 10m", collected)
		s.say(t, "payer confirms by code", vouchers, `sim POST /moolre {"confirm": true}`, collect("0240000000", "MTN", "200")+taken, "advance 5s\nno webhook",
			voucher("111111", "422", `{"errors": {"code": ["*"]}, "...": 0}`), "advance 5s", voucher("123456", "200", `{"...": 0}`), "advance 10s", collected, voucher("123456", "422", `{"...": 0}`), `sim POST /moolre {"confirm": false}`)
		s.say(t, "no code was asked for", vouchers, collect("0240000003", "MTN", "200")+taken, "advance 3s", voucher("123456", "422", `{"errors": {"transaction_id": ["*"]}, "...": 0}`),
			`sim POST /transactions/$id {"action": "succeed"}`, "advance 10m", collected)
		s.say(t, "refund is a payout", vouchers, collect("0240000000", "MTN", "200")+taken, "advance 5s", collected, `POST /payment-api/refund
{"transaction_id": "$ref", "amount": 4, "client_reference": "$ref-1"}
=> 200
{"message": "*", "data": {"transaction_id": "$refund", "...": 0}}
advance 10s
wallet 105.9`)
	})
}
