package app

import (
	"testing"

	"github.com/makola/makola/internal/provider/pawapay"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/apitest"
)

// All payouts, collections and refunds go through pawaPay. Its signed callbacks settle them, because the simulated dashboard
// has the address of this server.
func TestPawaPay_payments(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		s.routes(t, pawapay.Name, route.DisburseWallet, route.Collect)
		const wallet = `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000001", "channel": "MTN", "client_reference": "$ref", "callback_url": "$hook"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}`
		const paid = `webhook {"amount": "1.00", "charges": "0.10", "status": "success", "transaction_id": "$ref", "ext_transaction_id": "$id"}
provider $id payout success
wallet 98.9`
		fault := func(operation, kind string) string {
			return `fault {"provider": "pawapay", "operation": "` + operation + `", "fault": "` + kind + `", "count": 1}`
		}
		s.say(t, "wallet", wallet, "advance 3s", paid)
		s.say(t, "answer lost", fault("disburse", "answer_lost"), wallet, "advance 60s", paid)
		s.say(t, "nothing arrived", fault("disburse", "error_before"), wallet, "advance 60s", paid)
		s.say(t, "used id rejected", `sim POST /pawapay {"reject_repeats": true}`, fault("disburse", "error_after"), wallet, "advance 60s", paid, `sim POST /pawapay {"reject_repeats": false}`)
		s.say(t, "forged and twice", fault("disburse", "callback_forged"), fault("disburse", "callback_duplicate"), wallet, "advance 3s\nadvance 3s", paid)
		s.say(t, "documented refusal", `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000030", "channel": "MTN", "client_reference": "$ref"}
=> 400
wallet 100`)
		s.say(t, "recipient not found", `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0593456089", "channel": "MTN", "client_reference": "$ref", "callback_url": "$hook"}
=> 200
{"...": 0}
advance 3s
webhook {"status": "failed", "...": 0}
wallet 100`)
		const collect = `POST /payment-api/momopay
{"amount": 10, "phone_number": "0200000000", "network": "TELECEL", "transaction_id": "$ref", "callback_url": "$hook"}
=> 200
{"message": "*", "data": {"ext_transaction_id": "$id", "...": 0}}`
		const collected = `webhook {"amount": "10.00", "charges": "0.10", "status": "success", "transaction_id": "$ref", "ext_transaction_id": "$id", "phone_number": "*"}
provider $id collection success
wallet 109.9`
		s.say(t, "collected", collect, "advance 3s", collected)
		s.say(t, "refund", collect, "advance 3s", collected, `POST /payment-api/refund
{"transaction_id": "$ref", "amount": 4, "client_reference": "$ref-1"}
=> 200
{"message": "*", "data": {"transaction_id": "$refund", "...": 0}}
advance 3s
wallet 105.9
advance 26h
wallet 105.9`)
	})
}
