package app

import (
	"testing"

	"github.com/makola/makola/internal/provider/paystack"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/apitest"
)

// All collections and refunds go through Paystack. An account without an e-mail address is not served, and Telecel only with
// vouchers switched on.
func TestPaystack_collections(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		s.routes(t, paystack.Name, route.Collect)
		collect := func(number, network string) string {
			return `POST /payment-api/momopay
{"amount": 10, "phone_number": "` + number + `", "network": "` + network + `", "transaction_id": "$ref", "callback_url": "$hook"}
=> 200
{"message": "*", "data": {"ext_transaction_id": "$id", "...": 0}}`
		}
		refused := func(network string) string {
			return `POST /payment-api/momopay
{"amount": 10, "phone_number": "0240000000", "network": "` + network + `", "transaction_id": "$ref"}
=> 422
{"errors": {"network": ["*"]}, "...": 0}`
		}
		voucher := func(code, status, more string) string {
			return `POST /payment-api/momopay/voucher
{"transaction_id": "$ref", "code": "` + code + `"}
=> ` + status + `
` + more
		}
		const paid = `webhook {"amount": "10.00", "charges": "0.10", "status": "success", "transaction_id": "$ref", "ext_transaction_id": "$id", "phone_number": "*"}
provider $id collection success
wallet 109.9`
		const taken = `{"message": "Voucher Sent Successfully", "data": {"status": "pending", "transaction_id": "$ref", "ext_transaction_id": "$id"}}`
		const no = `{"errors": {"transaction_id": ["*"]}, "...": 0}`
		s.say(t, "no e-mail address", refused("MTN"))
		const email = `set email=accounts@example.com`
		s.say(t, "no vouchers", email, refused("TELECEL"))
		s.say(t, "paid", email, collect("0240000000", "MTN"), "advance 3s", paid)
		s.say(t, "answer lost", email, `fault {"provider": "paystack", "operation": "collect", "fault": "answer_lost", "count": 1}`, collect("0270000000", "AIRTELTIGO"), "advance 60s", paid)
		s.say(t, "takes no voucher", email+" voucher=on", collect("0240000000", "MTN"), "advance 1s", voucher("123456", "422", no), "advance 3s", paid)
		const vouchers = email + " voucher=on"
		s.say(t, "voucher", vouchers, collect("0200000000", "TELECEL"), "advance 1s\nno webhook", voucher("12 34-56", "200", taken), "advance 5s", paid,
			voucher("123456", "422", no))
		s.say(t, "wrong voucher", vouchers, collect("0200000000", "TELECEL"), "advance 1s", voucher("111111", "422", `{"errors": {"code": ["*"]}, "...": 0}`), "advance 60s",
			`webhook {"status": "failed", "...": 0}
wallet 100`)
		s.say(t, "repeated voucher", vouchers, collect("0200000000", "TELECEL"), "advance 1s", voucher("123456", "200", taken), voucher("123456", "429", ""), "advance 5s", paid)
		s.say(t, "expired", vouchers, collect("0200000000", "TELECEL"), "advance 1m\nadvance 11m\nadvance 11m\nadvance 11m", `webhook {"status": "failed", "...": 0}`, voucher("123456", "422", no), "wallet 100")
		s.say(t, "no such collection", vouchers, `POST /payment-api/momopay/voucher
{"transaction_id": "another-account-1", "code": "123456"}
=> 404`)
		s.say(t, "refund", email, collect("0240000000", "MTN"), "advance 3s", paid, `POST /payment-api/refund
{"transaction_id": "$ref", "amount": 4, "client_reference": "$ref-1"}
=> 200
{"message": "*", "data": {"transaction_id": "$refund", "...": 0}}
advance 3s
wallet 105.9
advance 26h
wallet 105.9`)
	})
}
